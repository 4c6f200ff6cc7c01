"""Standard loop and multi-instance, on every kind of activity (clauses 10.3.8, 13.3.6, 13.3.7).

The token that arrived hosts one *loop* scope, and in it an *instance* scope for each instance that runs.  The position
is in the counters: how many instances were opened (``loop.index``), completed, terminated.  What an instance brings
goes into its slot of ``loop.items``; there too waits the item of an instance that may not start yet.  So an instance
costs the same whether there are ten or a hundred thousand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.machine import activities, ledger
from trioflow.machine.associations import Association, carried
from trioflow.machine.data import ScopeView
from trioflow.machine.state import IncidentKind, Opening, Resume, Scope, ScopeKind, Track, TrackState

if TYPE_CHECKING:
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = ["BehaviourEvent", "MultiInstance", "StandardLoop", "loop_of", "open_some"]

COUNTER = "loopCounter"
INSTANCES = "numberOfInstances"
ACTIVE = "numberOfActiveInstances"
COMPLETED = "numberOfCompletedInstances"
TERMINATED = "numberOfTerminatedInstances"


def loop_of(track: Track) -> Scope | None:
    """The loop scope that a token hosts; None: it hosts none (yet)."""
    return next((scope for scope in track.hosted.values() if scope.kind is ScopeKind.LOOP), None)


def _open_loop(turn: Turn, host: Track, node: NodeProgram, values: Mapping[str, Value]) -> Scope:
    turn.open_entry(host)
    turn.fact("activity-started", host)
    loop = turn.new_scope(node.id, host, kind=ScopeKind.LOOP)
    turn.declare(loop, values)
    return loop


def _open_instance(turn: Turn, host: Track, node: NodeProgram, loop: Scope, values: Mapping[str, Value]) -> None:
    loop.index += 1
    turn.state.scopes.touch(loop)
    assert node.activity is not None
    own = {} if node.activity.data is None else dict.fromkeys(node.activity.data.own)
    activities.open_instance(turn, host, node, {**own, COUNTER: loop.index, **values}, parent=loop.id, index=loop.index)


def _end_instance(turn: Turn, host: Track, body: Track, scope: Scope) -> None:
    host.hops = body.hops
    turn.drop_hosted(body)
    turn.forget(body)
    turn.discard_scope(scope)


# ------------------------------------------------------------------ standard loop


@frozen(kw_only=True)
class StandardLoop:
    """One instance after the other, as long as the condition holds and the maximum is not reached.

    The test sees how many rounds are done (0 before the first) as ``loopCounter``; inside it counts from 1.
    """

    condition: Evaluable | None
    test_before: bool
    maximum: int | None

    @property
    def own(self) -> tuple[str, ...]:
        """It keeps nothing."""
        return ()

    def begin(self, turn: Turn, host: Track, node: NodeProgram) -> None:
        """Open the first round, or go on where a test failed."""
        loop = loop_of(host) or _open_loop(turn, host, node, {COUNTER: 0})
        turn.rest(host, TrackState.HOSTING)
        self._next(turn, host, node, loop)

    def completed(self, turn: Turn, body: Track, node: NodeProgram, outputs: Mapping[str, Value]) -> None:
        """A round is done."""
        scope = turn.state.scopes[body.scope]
        assert scope.parent is not None
        assert scope.host is not None
        loop, host = turn.state.scopes[scope.parent], turn.state.tracks[scope.host]
        if outputs:
            turn.write_in(host.scope, node.id, outputs)
        turn.fact("iteration-completed", body, index=scope.index)
        ledger.instance_completed(turn, body, node, scope, loop.id)
        _end_instance(turn, host, body, scope)
        turn.declare(loop, {COUNTER: loop.index})
        self._next(turn, host, node, loop)

    def terminated(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> None:  # noqa: ARG002  # the port
        """The token of a round was given up, and with it the loop's."""
        turn.end(host)

    def _next(self, turn: Turn, host: Track, node: NodeProgram, loop: Scope) -> None:
        try:
            again = self._again(turn, loop)
        except ExpressionError as error:
            turn.incident(host, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        if again:
            _open_instance(turn, host, node, loop, {})
        else:
            activities.finish(turn, host, node, {})

    def _again(self, turn: Turn, loop: Scope) -> bool:
        if self.maximum is not None and loop.index >= self.maximum:
            return False
        if self.condition is None or (loop.index == 0 and not self.test_before):
            return True
        return turn.decide(self.condition, loop.id)


# ------------------------------------------------------------------ multi-instance


class _Action(Protocol):
    def prepare(self, turn: Turn, track: Track) -> Value: ...

    def perform(self, turn: Turn, track: Track, node: NodeProgram, prepared: Value) -> None: ...


@frozen(kw_only=True)
class BehaviourEvent:
    """An event that the activity throws when an instance completes (``behavior``; Table 10.31).

    ``at``: ``each`` completion, the ``first`` one, or with ``condition`` those where it is true.
    """

    actions: tuple[_Action, ...]
    first_only: bool = False
    condition: Evaluable | None = None


@frozen(kw_only=True)
class MultiInstance:
    """An instance for each item of a collection, or as many as the cardinality says; one by one or in parallel.

    ``collection``, ``item``, ``output_collection``, ``output_item`` are names of variables.  Where the collections are
    data inputs and outputs of the activity, ``collection_from`` and ``output_to`` move them, once.
    """

    sequential: bool
    cardinality: Evaluable | None = None
    collection: str | None = None
    collection_from: tuple[Association, ...] = ()
    item: str | None = None
    output_collection: str | None = None
    output_to: tuple[Association, ...] = ()
    output_item: str | None = None
    until: Evaluable | None = None
    max_concurrent: Evaluable | None = None
    events: tuple[BehaviourEvent, ...] = ()

    @property
    def own(self) -> tuple[str, ...]:
        """The output item: it goes into its slot, not around the activity."""
        return () if self.output_item is None else (self.output_item,)

    def begin(self, turn: Turn, host: Track, node: NodeProgram) -> None:
        """Count the instances, once, and open as many as may run at a time."""
        try:
            items, count = self._items(turn, host, node)
            together = min(count, self._limit(turn, host))
        except (ExpressionError, UnstorableValue) as error:
            turn.incident(host, IncidentKind.EXPRESSION, Resume.ENTER, str(error))
            return
        loop = _open_loop(turn, host, node, {INSTANCES: count, ACTIVE: 0, COMPLETED: 0, TERMINATED: 0})
        turn.rest(host, TrackState.HOSTING)
        if count == 0:
            self._finish(turn, host, node, loop)
            return
        if items is not None:
            later = enumerate(islice(items, together, None), together + 1)
            _keep(turn, loop, {index: value for index, value in later if value is not None})
        loop.opening = True
        left = None if items is None else deque(islice(items, together))
        turn.state.openings.append(Opening(loop, left, together))

    def open_next(self, turn: Turn, host: Track, node: NodeProgram, loop: Scope, value: Value) -> None:
        """Open one instance with its item."""
        own: dict[str, Value] = {} if self.item is None else {self.item: value}
        if self.output_item is not None:
            own.setdefault(self.output_item, None)
        _count(turn, loop, ACTIVE, 1)
        _open_instance(turn, host, node, loop, own)

    def completed(self, turn: Turn, body: Track, node: NodeProgram, outputs: Mapping[str, Value]) -> None:
        """An instance is done: count it, throw the behaviour event, look at the completion condition."""
        scope = turn.state.scopes[body.scope]
        assert scope.parent is not None
        assert scope.host is not None
        loop, host = turn.state.scopes[scope.parent], turn.state.tracks[scope.host]
        if outputs:
            turn.write_in(host.scope, node.id, outputs)
        _count(turn, loop, ACTIVE, -1)
        _count(turn, loop, COMPLETED, 1)
        try:
            is_over = self.until is not None and turn.decide(self.until, scope.id, f" of {node.label}")
            events = [event for event in self.events if _is_thrown(turn, event, loop, scope)]
            thrown = [(action, action.prepare(turn, body)) for event in events for action in event.actions]
        except ExpressionError as error:
            _count(turn, loop, ACTIVE, 1)
            _count(turn, loop, COMPLETED, -1)
            turn.incident(body, IncidentKind.EXPRESSION, Resume.LEAVE, str(error))
            return
        turn.fact("iteration-completed", body, index=scope.index)
        if self.output_item is not None:
            _keep(turn, loop, {scope.index: scope.data.get(self.output_item)})
        ledger.instance_completed(turn, body, node, scope, loop.id)
        _end_instance(turn, host, body, scope)
        for action, prepared in thrown:
            action.perform(turn, host, node, prepared)
            if loop.id not in turn.state.scopes:
                return  # what was thrown ended the activity
        if is_over:
            self._finish(turn, host, node, loop)
        else:
            self._go_on(turn, host, node, loop)

    def terminated(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> None:
        """It counts as terminated, and evaluates no condition; its slot of the output collection stays null."""
        assert scope.parent is not None
        loop = turn.state.scopes[scope.parent]
        _count(turn, loop, ACTIVE, -1)
        _count(turn, loop, TERMINATED, 1)
        turn.facts.append(("iteration-terminated", node.id, host.id, {"index": scope.index}))
        turn.discard_scope(scope)
        self._go_on(turn, host, node, loop)

    def _go_on(self, turn: Turn, host: Track, node: NodeProgram, loop: Scope) -> None:
        """The place of the instance that ended is free for the next one; after the last the activity completes."""
        if loop.opening:
            return
        if loop.index < _number(loop, INSTANCES):
            index = loop.index + 1
            value = loop.items.get(index)
            if value is not None:
                _keep(turn, loop, {index: None})
            self.open_next(turn, host, node, loop, value)
        elif _number(loop, ACTIVE) == 0:
            self._finish(turn, host, node, loop)

    def _finish(self, turn: Turn, host: Track, node: NodeProgram, loop: Scope) -> None:
        """The activity completes, once: instances that still run are cancelled, the output collection is published."""
        values: dict[str, Value] = {}
        if self.output_collection is not None:
            opened, count = loop.index, _number(loop, INSTANCES)
            slots = [loop.items.get(index) if index <= opened else None for index in range(1, count + 1)]
            values[self.output_collection] = slots
            if self.output_to:
                values = carried(turn, self.output_to, values, ScopeView(turn.state, host.scope))
        activities.finish(turn, host, node, values)

    def _items(self, turn: Turn, host: Track, node: NodeProgram) -> tuple[list[Value] | None, int]:
        if self.collection is not None:
            view: Mapping[str, Value] = ScopeView(turn.state, host.scope)
            if self.collection_from:
                view = carried(turn, self.collection_from, view, {})
            if self.collection not in view:
                raise ExpressionError(f"{node.label} repeats over the variable {self.collection!r}, which is not there")
            items = view[self.collection]
            if not isinstance(items, list):
                raise ExpressionError(f"{node.label} repeats over {self.collection!r}, which is {items!r} and no list")
            return list(items), len(items)
        assert self.cardinality is not None
        count = turn.evaluate(host, self.cardinality)
        return None, _whole(count, self.cardinality, "a number of instances, 0 or more", least=0)

    def _limit(self, turn: Turn, host: Track) -> int:
        if self.sequential:
            return 1
        if self.max_concurrent is None:
            return _NO_LIMIT
        value = turn.evaluate(host, self.max_concurrent)
        return _whole(value, self.max_concurrent, "how many instances may run at a time, 1 or more", least=1)


_NO_LIMIT = 1 << 62


def _whole(value: Any, expression: Evaluable, meaning: str, *, least: int) -> int:
    if type(value) is int and value >= least:
        return value
    raise ExpressionError(f"{expression.text!r} gave {value!r}, but must give {meaning}")


def _number(loop: Scope, name: str) -> int:
    value = loop.data[name]
    assert type(value) is int
    return value


def _count(turn: Turn, loop: Scope, name: str, change: int) -> None:
    turn.declare(loop, {name: _number(loop, name) + change})


def _keep(turn: Turn, loop: Scope, values: Mapping[int, Value]) -> None:
    """Fill slots of the loop; null empties one."""
    for index, value in values.items():
        if value is None:
            loop.items.pop(index, None)
        else:
            loop.items[index] = value
        turn.state.touched_items[(loop.id, index)] = None


def _is_thrown(turn: Turn, event: BehaviourEvent, loop: Scope, scope: Scope) -> bool:
    if event.condition is not None:
        return turn.decide(event.condition, scope.id, " of a complex behaviour definition")
    return not event.first_only or _number(loop, COMPLETED) == 1


def open_some(turn: Turn, budget: int) -> int:
    """Open instances of the activity that began to first, ``budget`` at most; how many were opened."""
    state = turn.state
    opening = state.openings[0]
    loop = opening.loop
    opened = 0
    if loop.id in state.scopes:
        assert loop.host is not None
        host = state.tracks[loop.host]
        node = turn.program.nodes[host.node]
        assert node.activity is not None
        frame = node.activity.frame
        assert isinstance(frame, MultiInstance)
        while opened < budget and loop.index < opening.until:
            frame.open_next(turn, host, node, loop, None if opening.left is None else opening.left.popleft())
            opened += 1
        if loop.index < opening.until:
            return opened
        loop.opening = False
    state.openings.popleft()
    return opened
