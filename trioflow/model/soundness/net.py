"""The net of one scope: its nodes and everything that a token can move along.

Sequence flows are arcs; so are the jumps from a link to its target, from an activity to its boundary events, and from
an entry before all nodes to what starts the scope.  What a node does with tokens is said in three words: how it
merges what arrives, in which role it gives to each arc that leaves, and whether its throw ends the scope.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

from attrs import define, field, frozen

from trioflow.model.activities import Activity, SubProcess
from trioflow.model.checks.view import has_kind, is_event_sub_process, is_link, kinds, starts
from trioflow.model.events import (
    BoundaryEvent,
    CompensateEventDefinition,
    IntermediateCatchEvent,
)
from trioflow.model.flow import FlowNode, SequenceFlow
from trioflow.model.gateways import (
    ComplexGateway,
    EventBasedGateway,
    ExclusiveGateway,
    InclusiveGateway,
    ParallelGateway,
)
from trioflow.model.graph import Graph
from trioflow.model.process import Process
from trioflow.model.soundness.outside import ENDING, thrown_kinds

__all__ = ["ENTRY", "Arc", "Merge", "Net", "Node", "Role", "in_flow"]

ENTRY = 0
"""The number of the node before all others."""

_SURPRISES = frozenset({"timer", "error", "escalation", "cancel"})


class Merge(enum.Enum):
    """What a node waits for before it passes a token on."""

    ONE = "one"
    """Nothing: each token passes by itself."""
    ALL = "all"
    """One token on every arc."""
    SOME = "some"
    """Every token that can still come."""
    UNKNOWN = "unknown"
    """What only the data or a count says."""


class Role(enum.Enum):
    """When a node gives a token to an arc."""

    ALWAYS = "always"
    NEVER = "never"
    CHOICE = "choice"
    """To exactly one of the arcs in this role."""
    OPTIONAL = "optional"
    """If its own condition is true."""
    DEFAULT = "default"
    """If no condition of an optional arc is true."""
    INTERRUPTS = "interrupts"
    """Instead of all the other roles, if its event comes."""
    SPAWNS = "spawns"
    """A token more, if its event comes, each time it comes."""


@frozen(eq=False)
class Arc:
    """A way from a node to a node; ``flow`` is the sequence flow, None for the other kinds of arcs."""

    number: int
    source: int
    target: int
    role: Role
    flow: SequenceFlow | None = None


@define(eq=False)
class Node:
    """A flow node, or the entry, which has no element.

    ``ends_scope``: a token here ends all tokens of the scope.  ``aborts``: and the scope then does not complete.
    ``unclear``: how many tokens leave is not known.  ``outs`` has no arcs that never carry a token; ``ins`` has all.
    """

    number: int
    element: FlowNode | None = None
    merge: Merge = Merge.ONE
    ends_scope: bool = False
    aborts: bool = False
    unclear: bool = False
    incomplete: bool = False
    """It is a sub-process that never goes on by its normal flows."""
    surprise: bool = False
    """It is a boundary event for what goes wrong inside its host or takes too long there: it may well not fire."""
    ins: list[Arc] = field(factory=list)
    outs: list[Arc] = field(factory=list)
    sides: list[int] = field(factory=list)
    """Its boundary events that are cut off."""

    @property
    def joins(self) -> bool:
        """Whether it does not simply pass on what arrives."""
        return self.merge is not Merge.ONE and len(self.ins) > 1

    @property
    def has_flows(self) -> bool:
        """Whether a token can go on from here, other than by a boundary event."""
        return any(arc.role not in (Role.INTERRUPTS, Role.SPAWNS) for arc in self.outs)


def in_flow(node: FlowNode) -> bool:
    """Whether tokens of the scope come here: no handler, no event sub-process."""
    return not (isinstance(node, Activity) and node.is_for_compensation) and not is_event_sub_process(node)


@define(eq=False)
class Net:
    """The nodes of one scope by number, the entry first.

    A non-interrupting event whose flow never meets the rest of the scope, save at end events, is cut off: its host
    has no arc to it, and what follows it is looked at by itself.
    """

    graph: Graph
    scope: Process | SubProcess
    nodes: list[Node] = field(factory=list)
    arcs: list[Arc] = field(factory=list)

    @classmethod
    def of(
        cls,
        graph: Graph,
        scope: Process | SubProcess,
        *,
        interrupting: AbstractSet[str],
        incomplete: AbstractSet[str] = frozenset(),
        sides: bool = True,
    ) -> Net:
        """The net of a scope.

        ``interrupting`` as from ``interrupters``; ``incomplete``: ids of sub-processes that never complete;
        ``sides``: whether to cut off events with a flow of their own.
        """
        net = cls(graph, scope)
        net.nodes.append(Node(ENTRY))
        numbers: dict[str, int] = {}
        for element in graph.children.get(scope.id, ()):
            if in_flow(element) and element.id not in numbers:
                numbers[element.id] = len(net.nodes)
                net.nodes.append(_node(graph, element, len(net.nodes), interrupting))
                net.nodes[-1].incomplete = element.id in incomplete
        for source, target, role, flow in net._arcs(numbers):
            net._connect(source, target, role, flow)
        if sides:
            net._cut_off_sides()
        return net

    def _connect(self, source: int, target: int, role: Role, flow: SequenceFlow | None) -> None:
        arc = Arc(len(self.arcs), source, target, role, flow)
        self.arcs.append(arc)
        if role is not Role.NEVER:
            self.nodes[source].outs.append(arc)
        self.nodes[target].ins.append(arc)

    def _arcs(self, numbers: dict[str, int]) -> Iterator[tuple[int, int, Role, SequenceFlow | None]]:
        jumps = self._jumps()
        for node in self.nodes[1:]:
            element = node.element
            assert element is not None
            for boundary in self.graph.boundary.get(element.id, ()):
                if boundary.id in numbers and not has_kind(self.graph, boundary, CompensateEventDefinition):
                    role = Role.INTERRUPTS if boundary.cancel_activity else Role.SPAWNS
                    yield node.number, numbers[boundary.id], role, None
            for flow, role in _leaving(self.graph, element):
                if flow.target_ref in numbers:
                    yield node.number, numbers[flow.target_ref], Role.NEVER if node.incomplete else role, flow
            if jumps.get(element.id) in numbers:
                yield node.number, numbers[jumps[element.id]], Role.ALWAYS, None
        yield from self._entries(numbers)

    def _jumps(self) -> dict[str, str]:
        """The source of a link to its target."""
        targets = self.graph.link_targets(self.scope.id)
        sources = self.graph.link_sources(self.scope.id)
        return {source.id: targets[name][0].id for name in sources if name in targets for source in sources[name]}

    def _entries(self, numbers: dict[str, int]) -> Iterator[tuple[int, int, Role, SequenceFlow | None]]:
        begin = starts(self.graph, self.scope.id)
        role = Role.CHOICE if begin else Role.ALWAYS
        for element in begin or self._implicit():
            if element.id in numbers:
                yield ENTRY, numbers[element.id], role, None

    def _implicit(self) -> Iterator[FlowNode]:
        """Without a start event, what nothing leads to starts with the scope."""
        for node in self.nodes[1:]:
            element = node.element
            if element is None or self.graph.incoming.get(element.id) or isinstance(element, BoundaryEvent):
                continue
            if not (isinstance(element, IntermediateCatchEvent) and is_link(self.graph, element)):
                yield element

    # -------------------------------------------------------------- walking

    def reachable(self, start: int) -> list[int]:
        """The nodes that can be reached from one, itself first."""
        found, todo = {start: None}, [start]
        while todo:
            for arc in self.nodes[todo.pop()].outs:
                if arc.target not in found:
                    found[arc.target] = None
                    todo.append(arc.target)
        return list(found)

    def names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The ids of nodes, without the entry."""
        elements = (self.nodes[number].element for number in numbers)
        return tuple(element.id for element in elements if element is not None)

    def leading_to_an_end_of_the_scope(self) -> frozenset[int]:
        """The nodes from which a token can come to where it ends the whole scope."""
        found = {node.number for node in self.nodes if node.ends_scope}
        todo = list(found)
        while todo:
            for arc in self.nodes[todo.pop()].ins:
                if arc.source not in found:
                    found.add(arc.source)
                    todo.append(arc.source)
        return frozenset(found)

    # -------------------------------------------------------------- sides

    def _cut_off_sides(self) -> None:
        for arc in self.arcs:
            if arc.role is Role.SPAWNS and self._is_side(arc):
                host, event = self.nodes[arc.source], self.nodes[arc.target]
                host.outs.remove(arc)
                event.ins.remove(arc)
                host.sides.append(event.number)

    def _is_side(self, spawn: Arc) -> bool:
        """Whether all that follows, save end events, is reached through this event only; linear in what follows."""
        if len(self.nodes[spawn.target].ins) > 1:
            return False
        arrived: dict[int, int] = {spawn.target: 1}
        todo = [spawn.target]
        while todo:
            for arc in self.nodes[todo.pop()].outs:
                arrived[arc.target] = arrived.get(arc.target, 0) + 1
                if arrived[arc.target] == len(self.nodes[arc.target].ins):
                    todo.append(arc.target)
        partly = (self.nodes[node] for node, count in arrived.items() if count < len(self.nodes[node].ins))
        return not any(node.outs or node.sides or node.joins for node in partly)


# ------------------------------------------------------------------ what one node is


def _node(graph: Graph, element: FlowNode, number: int, interrupting: AbstractSet[str]) -> Node:
    thrown = thrown_kinds(graph, element)
    return Node(
        number,
        element,
        merge=_merge(element),
        ends_scope=element.id in interrupting or not thrown.isdisjoint(ENDING),
        aborts=not thrown.isdisjoint({"error", "cancel"}),
        unclear=_is_unclear(graph, element),
        surprise=isinstance(element, BoundaryEvent) and _SURPRISES.issuperset(kinds(graph, element)),
    )


def _merge(element: FlowNode) -> Merge:
    match element:
        case ParallelGateway():
            return Merge.ALL
        case InclusiveGateway():
            return Merge.SOME
        case ComplexGateway():
            return Merge.UNKNOWN
        case Activity() if element.start_quantity > 1:
            return Merge.UNKNOWN
        case _:
            return Merge.ONE


def _is_unclear(graph: Graph, element: FlowNode) -> bool:
    match element:
        case Activity():
            # An activity that starts with several tokens never starts with the one that an arc brings it.
            return element.completion_quantity > 1 or element.start_quantity > 1
        case ComplexGateway():
            return len(graph.outgoing.get(element.id, ())) > 1
        case EventBasedGateway():
            return element.event_gateway_type == "Parallel"
        case _:
            return False


def _leaving(graph: Graph, element: FlowNode) -> Iterator[tuple[SequenceFlow, Role]]:
    """The flows out of a node and their roles."""
    flows = graph.outgoing.get(element.id, ())
    if isinstance(element, (ExclusiveGateway, EventBasedGateway)):
        yield from ((flow, Role.CHOICE if len(flows) > 1 else Role.ALWAYS) for flow in flows)
        return
    if isinstance(element, ParallelGateway):
        yield from ((flow, Role.ALWAYS) for flow in flows)
        return
    default = getattr(element, "default", None)
    optional = {flow.id for flow in flows if flow.condition_expression is not None and flow.id != default}
    for flow in flows:
        if flow.id == default:
            yield flow, _default_role(element, conditional=len(optional), others=len(flows) - 1)
        else:
            yield flow, Role.OPTIONAL if flow.id in optional else Role.ALWAYS


def _default_role(element: FlowNode, *, conditional: int, others: int) -> Role:
    """Behind a gateway the default is taken if nothing else is, behind an activity if no conditional flow is."""
    if isinstance(element, InclusiveGateway) and others > conditional:
        return Role.NEVER
    return Role.DEFAULT if conditional else Role.ALWAYS
