"""Scopes and paths: what a process or sub-process holds, and how one node follows another."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, TypeVar, Unpack

from attrs import evolve, field, frozen

from trioflow.errors import ModelError
from trioflow.model.activities import Activity, SubProcess
from trioflow.model.base import BaseElement, Expression
from trioflow.model.builder.document import Document
from trioflow.model.builder.mapping import data_fields
from trioflow.model.builder.parts import ActivityOptions, NodeOptions, activity_fields, expression, node_fields
from trioflow.model.builder.vocabulary import On, Vocabulary
from trioflow.model.data import DataObject, DataObjectReference, DataState, DataStoreReference, Property
from trioflow.model.events import BoundaryEvent
from trioflow.model.flow import Artifact, Association, FlowNode, LaneSet, SequenceFlow
from trioflow.model.graph import elements_of

__all__ = ["Path", "Scope", "SubProcessPath"]

_Data = TypeVar("_Data", DataObject, DataObjectReference, DataStoreReference)


class Scope(Vocabulary):
    """The inside of a process or sub-process under construction."""

    def __init__(self, scope_id: str, document: Document, parent: Scope | None = None) -> None:
        self.id = scope_id
        self._document = document
        self.parent = parent
        self._elements: list[BaseElement] = []
        self._nodes: dict[str, FlowNode] = {}
        self._defaults: dict[str, str] = {}
        self._inside: dict[str, Scope] = {}
        self._artifacts: list[Artifact] = []
        self._lane_sets: list[LaneSet] = []
        self.declared_properties: list[Property] = []
        self._data: dict[str, str] = {}

    @property
    def scope(self) -> Scope:
        """Itself: nodes added here are not connected."""
        return self

    @property
    def document(self) -> Document:
        """The document that this belongs to: there messages, signals, items and so on are declared."""
        return self._document

    # -------------------------------------------------------------- nodes

    def at(self, node_id: str) -> Path:
        """The path that stands at an existing node of this scope."""
        self._require(node_id)
        return Path(scope=self, id=node_id)

    def event_subprocess(self, node_id: str, **options: Unpack[ActivityOptions]) -> SubProcessPath:
        """An event sub-process: it has no flows, its start event says when it runs."""
        return self.place_subprocess(
            SubProcess, activity_fields(node_id, options) | {"triggered_by_event": True}, options
        )

    def place(self, kind: type[FlowNode], fields: dict[str, Any], options: NodeOptions) -> Path:
        """Add a node of any kind, not connected."""
        take = self.document.take
        take(fields["id"], kind.tag)
        data = data_fields(kind, fields, options, declare=self.data_id, take=take)
        self._hold(kind(**(fields | data)))
        return Path(scope=self, id=fields["id"])

    def place_subprocess(self, kind: type[SubProcess], fields: dict[str, Any], options: NodeOptions) -> SubProcessPath:
        """Add a sub-process of any kind, not connected."""
        path = self.place(kind, fields, options)
        inside = self._inside[path.id] = Scope(path.id, self.document, self)
        return SubProcessPath(scope=self, id=path.id, inside=inside)

    def _hold(self, node: FlowNode) -> None:
        self._nodes[node.id] = node
        self._elements.append(node)

    def boundary(
        self,
        host: str,
        node_id: str,
        *,
        on: On,
        interrupting: bool = True,
        parallel: bool = False,
        **options: Unpack[NodeOptions],
    ) -> Path:
        """A boundary event at the activity ``host`` of this scope."""
        if not isinstance(self._require(host), Activity):
            raise ModelError(
                f"The boundary event {node_id!r} cannot stand at {host!r} ({self._nodes[host].tag}); "
                f"attach it to an activity."
            )
        own = {"attached_to_ref": host, "cancel_activity": interrupting, "parallel_multiple": parallel}
        return self.place(BoundaryEvent, node_fields(node_id, options) | self._definitions(on) | own, options)

    # -------------------------------------------------------------- connections

    def flow(
        self,
        source: str,
        target: str,
        *,
        condition: str | Expression | None = None,
        default: bool = False,
        flow_id: str | None = None,
        name: str | None = None,
    ) -> SequenceFlow:
        """Connect two nodes of this scope; flows leave a node in the order in which they are made.

        Raises ModelError for an unknown node, a node of another scope, a second default flow, and a
        default flow with a condition.
        """
        for end in (source, target):
            self._require(end)
        flow_id = self._connection_id(flow_id, "flow", source, target)
        if default:
            self._set_default(source, flow_id, condition)
        flow = SequenceFlow(
            id=flow_id, name=name, source_ref=source, target_ref=target, condition_expression=expression(condition)
        )
        self._elements.append(flow)
        return flow

    def _connection_id(self, given: str | None, what: str, source: str, target: str) -> str:
        if given is None:
            return self.document.free_id(f"{what}_{source}_{target}", what)
        self.document.take(given, what)
        return given

    def _set_default(self, source: str, flow_id: str, condition: str | Expression | None) -> None:
        if condition is not None:
            raise ModelError(f"The default flow {flow_id!r} has a condition; leave one of the two out.")
        if not hasattr(self._nodes[source], "default"):
            raise ModelError(f"{source!r} ({self._nodes[source].tag}) has no default flow; give conditions instead.")
        if source in self._defaults:
            raise ModelError(
                f"{source!r} already has the default flow {self._defaults[source]!r}; it can have only one."
            )
        self._defaults[source] = flow_id

    def associate(
        self, source: str, target: str, *, direction: str = "One", association_id: str | None = None
    ) -> Association:
        """Draw an association; from a compensation boundary event it names the handler."""
        for end in (source, target):
            self._require(end)
        association_id = self._connection_id(association_id, "association", source, target)
        association = Association(
            id=association_id, source_ref=source, target_ref=target, association_direction=direction
        )
        self._artifacts.append(association)
        return association

    def _require(self, node_id: str) -> FlowNode:
        if node_id in self._nodes:
            return self._nodes[node_id]
        holder = self._root().holder(node_id)
        if holder is None:
            raise ModelError(f"There is no node {node_id!r} in {self.id!r} yet; add it before you connect it.")
        raise ModelError(
            f"The node {node_id!r} is in {holder.id!r}, not in {self.id!r}: flows do not leave their scope; "
            f"connect the sub-process itself, or use an event."
        )

    def _root(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def holder(self, node_id: str) -> Scope | None:
        """The scope that holds the node: this one or one inside it, else None."""
        if node_id in self._nodes:
            return self
        found = (inside.holder(node_id) for inside in self._inside.values())
        return next((scope for scope in found if scope is not None), None)

    # -------------------------------------------------------------- data and everything else

    def data_object(
        self,
        data_id: str,
        *,
        name: str | None = None,
        item: str | None = None,
        collection: bool = False,
        state: str | None = None,
    ) -> DataObject:
        """Declare a data object of this scope; ``item`` is the id of its item definition."""
        data = DataObject(
            id=data_id, name=name, item_subject_ref=item, is_collection=collection, data_state=_state(state)
        )
        return self._declare(data, name or data_id)

    def data_object_reference(
        self, data_id: str, data_object: str, *, name: str | None = None, state: str | None = None
    ) -> DataObjectReference:
        """Another appearance of a data object, possibly in another state."""
        reference = DataObjectReference(id=data_id, name=name, data_object_ref=data_object, data_state=_state(state))
        return self._declare(reference, data_id)

    def data_store_reference(self, data_id: str, data_store: str, *, name: str | None = None) -> DataStoreReference:
        """An appearance of a data store of the document."""
        return self._declare(DataStoreReference(id=data_id, name=name, data_store_ref=data_store), data_id)

    def property(self, property_id: str, *, name: str | None = None, item: str | None = None) -> Property:
        """Declare a property of this process or sub-process."""
        self.document.take(property_id, "property")
        return self._declare_property(Property(id=property_id, name=name, item_subject_ref=item))

    def _declare_property(self, declared: Property) -> Property:
        self.declared_properties.append(declared)
        self._data[declared.name or declared.id] = declared.id
        return declared

    def add(self, element: BaseElement) -> None:
        """Add a ready element: a lane set, an artifact, a node or a flow that was made elsewhere."""
        self.document.take(element.id, element.tag)
        for inner, _ in elements_of(element) if isinstance(element, SubProcess) else ():
            self.document.take(inner.id, inner.tag)
        match element:
            case LaneSet():
                self._lane_sets.append(element)
            case Artifact():
                self._artifacts.append(element)
            case FlowNode():
                self._hold(element)
            case _:
                self._elements.append(element)

    def _declare(self, data: _Data, name: str) -> _Data:
        self.document.take(data.id, data.tag)
        self._elements.append(data)
        self._data[name] = data.id
        return data

    def data_id(self, name: str) -> str:
        """The id of the data with this name, seen from here.

        An undeclared name becomes a property of the process: that is where it would live.
        """
        if name in self._data:
            return self._data[name]
        if self.parent is not None:
            return self.parent.data_id(name)
        property_id = self.document.free_id(f"{self.id}_{name}", "property")
        return self._declare_property(Property(id=property_id, name=name)).id

    # -------------------------------------------------------------- the result

    def content(self) -> dict[str, Any]:
        """The fields of the definition that this scope becomes."""
        incoming: dict[str, list[str]] = {}
        outgoing: dict[str, list[str]] = {}
        for flow in self._elements:
            if isinstance(flow, SequenceFlow):
                incoming.setdefault(flow.target_ref, []).append(flow.id)
                outgoing.setdefault(flow.source_ref, []).append(flow.id)
        finished = (
            self._finished(element, incoming.get(element.id, ()), outgoing.get(element.id, ()))
            if isinstance(element, FlowNode)
            else element
            for element in self._elements
        )
        return {
            "flow_elements": tuple(finished),
            "artifacts": tuple(self._artifacts),
            "lane_sets": tuple(self._lane_sets),
        }

    def _finished(self, node: FlowNode, incoming: Iterable[str], outgoing: Iterable[str]) -> FlowNode:
        fields: dict[str, Any] = {"incoming": tuple(incoming), "outgoing": tuple(outgoing)}
        if node.id in self._defaults:
            fields["default"] = self._defaults[node.id]
        if isinstance(node, SubProcess) and node.id in self._inside:
            inside = self._inside[node.id]
            fields |= inside.content()
            fields["properties"] = (*node.properties, *inside.declared_properties)
        return evolve(node, **fields)


def _state(name: str | None) -> DataState | None:
    return None if name is None else DataState(name=name)


@frozen(kw_only=True)
class Path(Vocabulary):
    """Stands at a node; each node method adds the next one and gives the path that stands there.

    A path does not move: two calls on the same one make two branches.
    """

    scope: Scope = field(repr=False)
    id: str
    _condition: str | Expression | None = None
    _default: bool = False
    _flow_name: str | None = None

    def when(self, condition: str | Expression, *, name: str | None = None) -> Path:
        """The next flow has this condition."""
        return Path(scope=self.scope, id=self.id, condition=condition, flow_name=name)

    def otherwise(self, *, name: str | None = None) -> Path:
        """The next flow is the default flow."""
        return Path(scope=self.scope, id=self.id, default=True, flow_name=name)

    def to(self, target: str | Path) -> Path:
        """Flow to a node that exists already: a join, or back in a loop."""
        target_id = target.id if isinstance(target, Path) else target
        self.scope.flow(self.id, target_id, condition=self._condition, default=self._default, name=self._flow_name)
        return Path(scope=self.scope, id=target_id)

    def boundary(
        self, node_id: str, *, on: On, interrupting: bool = True, parallel: bool = False, **options: Unpack[NodeOptions]
    ) -> Path:
        """A boundary event at this activity; the path goes on from the event."""
        return self.scope.boundary(self.id, node_id, on=on, interrupting=interrupting, parallel=parallel, **options)

    def undone_by(self, handler: str | Path) -> Path:
        """From a compensation boundary event: the activity that undoes its host.  Stays where it is."""
        self.scope.associate(self.id, handler.id if isinstance(handler, Path) else handler)
        return self

    def place(self, kind: type[FlowNode], fields: dict[str, Any], options: NodeOptions) -> Path:
        """Add a node of any kind after this one."""
        return self.to(self.scope.place(kind, fields, options))

    def place_subprocess(self, kind: type[SubProcess], fields: dict[str, Any], options: NodeOptions) -> SubProcessPath:
        """Add a sub-process of any kind after this node."""
        path = self.scope.place_subprocess(kind, fields, options)
        self.to(path)
        return path


@frozen(kw_only=True)
class SubProcessPath(Path):
    """Stands at a sub-process; ``with`` it, or by ``inside``, its nodes are added."""

    inside: Scope = field(repr=False)

    def __enter__(self) -> Scope:
        return self.inside

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing to undo: the block only shows what is inside."""
