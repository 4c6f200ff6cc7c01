"""The indexed graph of one process: who connects, contains and attaches to whom, in document order.

A graph is derived from frozen definitions, is immutable by convention, and is shared by all instances.
It is forgiving: a flow to nowhere is kept out of the index (the checks report it), so that one walk can
collect every finding.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from trioflow.model.activities import SubProcess
from trioflow.model.base import BaseElement
from trioflow.model.events import (
    BoundaryEvent,
    Event,
    EventDefinition,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    LinkEventDefinition,
)
from trioflow.model.flow import FlowNode, SequenceFlow
from trioflow.model.process import Definitions, Process

__all__ = ["Graph", "elements_of"]


def elements_of(container: Process | SubProcess) -> Iterator[tuple[BaseElement, str]]:
    """Every flow element inside, at any depth, with the id of the container that holds it, in document order."""
    for element in container.flow_elements:
        yield element, container.id
        if isinstance(element, SubProcess):
            yield from elements_of(element)


@define(eq=False)
class Graph:
    """The index of one process of one document.

    ``outgoing``/``incoming``: node id to its sequence flows, in the order of the ``sequenceFlow`` elements.
    ``parent``: node or flow id to the id of its container (the process or a sub-process).
    ``children``: container id to its nodes.  ``boundary``: activity id to its boundary events.
    """

    definitions: Definitions
    process: Process
    nodes: dict[str, FlowNode] = field(factory=dict)
    flows: dict[str, SequenceFlow] = field(factory=dict)
    outgoing: dict[str, tuple[SequenceFlow, ...]] = field(factory=dict)
    incoming: dict[str, tuple[SequenceFlow, ...]] = field(factory=dict)
    parent: dict[str, str] = field(factory=dict)
    children: dict[str, tuple[FlowNode, ...]] = field(factory=dict)
    boundary: dict[str, tuple[BoundaryEvent, ...]] = field(factory=dict)
    roots: dict[str, BaseElement] = field(factory=dict)

    @classmethod
    def of(cls, definitions: Definitions, process: Process) -> Graph:
        """Index ``process``, which is one of ``definitions``' root elements."""
        graph = cls(definitions, process)
        graph.roots = {element.id: element for element in definitions.root_elements if element.id}
        graph._index_nodes()
        graph._index_flows()
        return graph

    def _index_nodes(self) -> None:
        children: dict[str, list[FlowNode]] = {self.process.id: []}
        boundary: dict[str, list[BoundaryEvent]] = {}
        for element, container in elements_of(self.process):
            if isinstance(element, FlowNode):
                self.nodes.setdefault(element.id, element)
                self.parent.setdefault(element.id, container)
                children.setdefault(container, []).append(element)
            if isinstance(element, SubProcess):
                children.setdefault(element.id, [])
            if isinstance(element, BoundaryEvent):
                boundary.setdefault(element.attached_to_ref, []).append(element)
        self.children = {key: tuple(value) for key, value in children.items()}
        self.boundary = {key: tuple(value) for key, value in boundary.items()}

    def _index_flows(self) -> None:
        outgoing: dict[str, list[SequenceFlow]] = {}
        incoming: dict[str, list[SequenceFlow]] = {}
        for element, container in elements_of(self.process):
            if not isinstance(element, SequenceFlow):
                continue
            self.flows.setdefault(element.id, element)
            self.parent.setdefault(element.id, container)
            if element.source_ref in self.nodes and element.target_ref in self.nodes:
                outgoing.setdefault(element.source_ref, []).append(element)
                incoming.setdefault(element.target_ref, []).append(element)
        self.outgoing = {key: tuple(value) for key, value in outgoing.items()}
        self.incoming = {key: tuple(value) for key, value in incoming.items()}

    def event_definitions(self, event: Event) -> tuple[EventDefinition, ...]:
        """The definitions of an event, inline first, then those it refers to (missing ones are left out)."""
        referred = (self.roots.get(ref) for ref in event.event_definition_refs)
        return event.event_definitions + tuple(each for each in referred if isinstance(each, EventDefinition))

    def container(self, node_id: str) -> Process | SubProcess:
        """The process or sub-process that directly holds the node."""
        parent = self.parent[node_id]
        node = self.nodes.get(parent)
        return node if isinstance(node, SubProcess) else self.process

    def link_targets(self, container_id: str) -> dict[str, tuple[IntermediateCatchEvent, ...]]:
        """Link name to the catching link events of one scope (the checks want exactly one each)."""
        targets: dict[str, list[IntermediateCatchEvent]] = {}
        for node in self.children.get(container_id, ()):
            if isinstance(node, IntermediateCatchEvent):
                for name in self._link_names(node):
                    targets.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in targets.items()}

    def link_sources(self, container_id: str) -> dict[str, tuple[IntermediateThrowEvent, ...]]:
        """Link name to the throwing link events of one scope."""
        sources: dict[str, list[IntermediateThrowEvent]] = {}
        for node in self.children.get(container_id, ()):
            if isinstance(node, IntermediateThrowEvent):
                for name in self._link_names(node):
                    sources.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in sources.items()}

    def _link_names(self, event: Event) -> Iterator[str]:
        for definition in self.event_definitions(event):
            if isinstance(definition, LinkEventDefinition):
                yield definition.name or ""
