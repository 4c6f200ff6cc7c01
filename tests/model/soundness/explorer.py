"""The token game over the flows of one scope, played in every way: the oracle of the soundness tests.

It knows nothing of conditions and regions: it moves tokens from place to place as the standard says and looks at every
marking that comes of it, up to a bound.  A place is a node and the flow that a token came there by (or ``""`` for a
jump: from the start, a link, an activity to its boundary event).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

from attrs import define, field

from trioflow.model import (
    Activity,
    BoundaryEvent,
    ComplexGateway,
    EndEvent,
    Event,
    EventBasedGateway,
    ExclusiveGateway,
    FlowNode,
    Graph,
    InclusiveGateway,
    IntermediateCatchEvent,
    ParallelGateway,
    Process,
    SequenceFlow,
    StartEvent,
    SubProcess,
)

Place = tuple[str, str]
Marking = frozenset[tuple[Place, int]]

_ENDING = {"terminate", "error", "cancel"}


class NotModelled(Exception):
    """The scope has something that this game has no rule for."""


@define(eq=False)
class Game:
    """All markings that a scope can come to.

    ``crowded``: nodes that pass each token on and have two at once.  ``fired``: nodes that were passed.  ``complete``:
    all markings were seen.
    """

    graph: Graph
    scope: Process | SubProcess
    max_markings: int = 4_000
    max_tokens: int = 3
    crowded: set[str] = field(factory=set)
    fired: set[str] = field(factory=set)
    complete: bool = True
    seen: set[Marking] = field(factory=set)
    moves: list[tuple[Marking, str, Marking]] = field(factory=list)
    """Marking, node that was passed, marking after it."""

    def play(self) -> Game:
        """Look at every marking."""
        todo = [_frozen(Counter([place])) for place in self._starts()]
        if not any(isinstance(node, StartEvent) for node in self._nodes()):
            todo = [_frozen(Counter(self._starts()))]
        self.seen.update(todo)
        while todo:
            marking = todo.pop()
            self._look_at(marking)
            for node, after in self._after(marking):
                self.moves.append((marking, node, after))
                if after not in self.seen:
                    self.seen.add(after)
                    todo.append(after)
            if len(self.seen) > self.max_markings:
                self.complete = False
                break
        return self

    def keeps(self, node: str) -> bool:
        """Whether a token at the node, or at what it leads to, always has one after it there."""
        members = self.behind(node)

        def holds(marking: Marking) -> bool:
            return any(node in members for (node, _), _ in marking)

        return all(holds(after) for before, _, after in self.moves if holds(before))

    def behind(self, node: str) -> set[str]:
        """The node and all that it leads to."""
        found, todo = {node}, [node]
        while todo:
            new = set(self._next(todo.pop())) - found
            found |= new
            todo += new
        return found

    def stuck(self) -> set[str]:
        """The joins that hold a token in some marking, and from there neither pass it on nor lose it, ever.

        That can be said only if all markings were seen.
        """
        assert self.complete
        joins = {node for marking in self.seen for (node, _), _ in marking if self._is_join(node)}
        return {join for join in joins if any(_holds(each, join) for each in self.seen - self._served(join))}

    def _served(self, join: str) -> set[Marking]:
        """The markings that can come to one in which the join is passed, or no token is left."""
        before: dict[Marking, list[Marking]] = {}
        for marking, _, after in self.moves:
            before.setdefault(after, []).append(marking)
        found = {marking for marking, node, after in self.moves if node == join or not after}
        todo = list(found)
        while todo:
            for marking in before.get(todo.pop(), ()):
                if marking not in found:
                    found.add(marking)
                    todo.append(marking)
        return found

    def _nodes(self) -> Iterator[FlowNode]:
        for node in self.graph.children[self.scope.id]:
            handler = isinstance(node, SubProcess) and node.triggered_by_event
            if not handler and not (isinstance(node, Activity) and node.is_for_compensation):
                yield node

    def _starts(self) -> list[Place]:
        found = [(node.id, "") for node in self._nodes() if isinstance(node, StartEvent)]
        if found:
            return found
        return [
            (node.id, "")
            for node in self._nodes()
            if not self.graph.incoming.get(node.id)
            and not isinstance(node, BoundaryEvent)
            and not (isinstance(node, IntermediateCatchEvent) and "link" in self._kinds(node))
        ]

    def _kinds(self, node: FlowNode) -> set[str]:
        definitions = self.graph.event_definitions(node) if isinstance(node, Event) else ()
        return {definition.kind for definition in definitions}

    # -------------------------------------------------------------- markings

    def _look_at(self, marking: Marking) -> None:
        tokens = Counter[str]()
        for (node, _), count in marking:
            tokens[node] += count
        for node, count in tokens.items():
            if count > 1 and not self._is_join(node) and any(True for _ in self._next(node)):
                self.crowded.add(node)

    def _is_join(self, node: str) -> bool:
        kind = self.graph.nodes[node]
        if isinstance(kind, ComplexGateway) or (isinstance(kind, Activity) and kind.start_quantity > 1):
            raise NotModelled(node)
        return isinstance(kind, (ParallelGateway, InclusiveGateway)) and len(self.graph.incoming.get(node, ())) > 1

    def _after(self, marking: Marking) -> Iterator[tuple[str, Marking]]:
        tokens = Counter(dict(marking))
        for node, consumed in self._enabled(marking):
            self.fired.add(node)
            left = tokens - Counter(consumed)
            if isinstance(self.graph.nodes[node], EndEvent) and self._kinds(self.graph.nodes[node]) & _ENDING:
                yield node, frozenset()
                continue
            for made in self._outcomes(self.graph.nodes[node]):
                after = left + Counter(made)
                if max(after.values(), default=0) > self.max_tokens:
                    self.complete = False
                    continue
                yield node, _frozen(after)

    def _enabled(self, marking: Marking) -> Iterator[tuple[str, list[Place]]]:
        held: dict[str, list[Place]] = {}
        for place, _ in sorted(marking):
            held.setdefault(place[0], []).append(place)
        for node, places in held.items():
            if not self._is_join(node):
                yield from ((node, [place]) for place in places)
            elif isinstance(self.graph.nodes[node], ParallelGateway):
                if len(places) == len(self.graph.incoming[node]):
                    yield node, places
            elif self._inclusive_fires(node, places, held):
                yield node, places

    # -------------------------------------------------------------- the inclusive join (13.4.3, table 13.3)

    def _inclusive_fires(self, join: str, places: list[Place], held: dict[str, list[Place]]) -> bool:
        arrived = {flow for _, flow in places}
        missing = {flow.id for flow in self.graph.incoming[join]} - arrived
        for node in held:
            if node != join:
                reached = self._reaches(node, join)
                if reached & missing and not reached & arrived:
                    return False
        return True

    def _reaches(self, start: str, join: str) -> set[str]:
        """The flows into the join that can be reached from a node without passing the join."""
        found, seen, todo = set[str](), {start}, [start]
        while todo:
            node = todo.pop()
            found.update(flow.id for flow in self.graph.outgoing.get(node, ()) if flow.target_ref == join)
            for after in self._next(node):
                if after != join and after not in seen:
                    seen.add(after)
                    todo.append(after)
        return found

    def _next(self, node: str) -> Iterator[str]:
        yield from (flow.target_ref for flow in self.graph.outgoing.get(node, ()))
        yield from (boundary.id for boundary in self.graph.boundary.get(node, ()))
        yield from (place[0] for place in self._jump(self.graph.nodes[node]))

    # -------------------------------------------------------------- what a node gives

    def _outcomes(self, node: FlowNode) -> Iterator[list[Place]]:
        if isinstance(node, Activity) and node.completion_quantity > 1:
            raise NotModelled(node.id)
        boundaries = [each for each in self.graph.boundary.get(node.id, ()) if "compensation" not in self._kinds(each)]
        spawning = [each for each in boundaries if not each.cancel_activity]
        for fired in product((False, True), repeat=len(spawning)):
            made: list[Place] = [(each.id, "") for each, fires in zip(spawning, fired, strict=True) if fires]
            yield from ([*made, (each.id, "")] for each in boundaries if each.cancel_activity)
            yield from ([*made, *flows] for flows in self._flows(node))

    def _flows(self, node: FlowNode) -> Iterator[list[Place]]:
        flows = self.graph.outgoing.get(node.id, ())
        if isinstance(node, (ExclusiveGateway, EventBasedGateway)) and len(flows) > 1:
            if isinstance(node, EventBasedGateway) and node.event_gateway_type == "Parallel":
                raise NotModelled(node.id)
            yield from ([_place(flow)] for flow in flows)
            return
        default = getattr(node, "default", None)
        optional = [flow for flow in flows if flow.condition_expression is not None and flow.id != default]
        if isinstance(node, ParallelGateway):
            optional = []
        others = [flow for flow in flows if flow not in optional and flow.id != default]
        for chosen in product((False, True), repeat=len(optional)):
            taken = [flow for flow, is_true in zip(optional, chosen, strict=True) if is_true]
            nothing = not taken and not (isinstance(node, InclusiveGateway) and others)
            taken += others
            taken += [flow for flow in flows if flow.id == default and nothing]
            # Flows, but none to take: an incident, and no matter of soundness.
            if taken or not flows:
                yield [_place(flow) for flow in taken] + self._jump(node)

    def _jump(self, node: FlowNode) -> list[Place]:
        targets = self.graph.link_targets(self.scope.id)
        for name, sources in self.graph.link_sources(self.scope.id).items():
            if any(source.id == node.id for source in sources) and name in targets:
                return [(targets[name][0].id, "")]
        return []


def _place(flow: SequenceFlow) -> Place:
    return flow.target_ref, flow.id


def _holds(marking: Marking, node: str) -> bool:
    return any(place[0] == node for place, _ in marking)


def _frozen(tokens: Counter[Place]) -> Marking:
    return frozenset((place, count) for place, count in tokens.items() if count)
