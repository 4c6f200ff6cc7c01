"""The complex gateway, in two phases (clause 13.4.5, Table 13.5).

*Waiting for start*: the activation condition is evaluated when a token arrives (so never before the first), when data
that it reads is written, and when the gateway starts over with tokens that are left.  When it is true, one token of
each flow that has one is consumed, and every outgoing flow whose condition is true gets a token, one without a
condition too; if there is none the default, else it is an incident.  Now there is a ``Gate``, which remembers the
flows that gave.

*Waiting for reset*: the other flows are awaited as an inclusive join would await them, those that gave counting as
filled.  On reset one token of each other flow that has one is consumed; outgoing flows with a condition of their own
that is true get a token, if there is none the default, and without a default none and no error (*choice*: a flow
without a condition gets none).  Then it starts over.  A further token on a flow that gave waits for the next round.

What expressions can read, beside the data: ``waitingForStart``; ``activationCount``, how many tokens wait at the
gateway; ``activationCounts``, a record of how many wait on each incoming flow, by its id.  Conditions are
evaluated before anything is consumed: if that fails, all tokens stay where they are, and the incident is the gateway's.

Without an activation condition it joins like an inclusive gateway, and then there is nothing to reset (*choice*).
No token is left in a scope: it completes, and what waits for its reset is over with it (*choice*).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trioflow.errors import ExpressionError
from trioflow.machine.data import ScopeView
from trioflow.machine.joins import inclusive
from trioflow.machine.joins.inclusive import BLOCKER, HOPE
from trioflow.machine.joins.quantity import ANY_TOKEN, find_any
from trioflow.machine.joins.queues import (
    doubt,
    doubt_stuck_behind,
    end_round,
    line_up,
    merge,
    open_incident,
    overtake,
)
from trioflow.machine.joins.rules import JoinRule, Look, arrived
from trioflow.machine.state import Gate, IncidentKind, Resume

if TYPE_CHECKING:
    from trioflow.machine.program import Evaluable, FlowProgram, NodeProgram, Program
    from trioflow.machine.state import Join, Scope, State, Track
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = ["Complex", "flows_on_activation", "reconsider"]

_OWN = ("waitingForStart", "activationCount", "activationCounts")


class Complex(JoinRule):
    """Before its activation it wants a further token, then what an inclusive join wants."""

    __slots__ = ("activation", "reads")
    weighs_arrivals = True

    def __init__(self, activation: Evaluable | None) -> None:
        self.activation = activation
        self.reads = tuple(sorted(activation.names.difference(_OWN))) if activation is not None else ()

    def _awaits(self, join: Join) -> bool:
        """Whether what it waits for is decided by the rule of the inclusive join."""
        return self.activation is None or join.gate is not None

    def wants(self, node: NodeProgram, join: Join) -> Iterable[str]:
        return (BLOCKER, HOPE) if self._awaits(join) else (ANY_TOKEN,)

    def find(self, look: Look, want: str) -> str | None:
        return find_any(look) if want == ANY_TOKEN else inclusive.find(look, want)

    def keeps(self, look: Look, want: str, holder: str) -> bool:
        return want == ANY_TOKEN or inclusive.keeps(look, want, holder)

    def is_served(self, node: NodeProgram, join: Join) -> bool:
        return HOPE in join.holders if self._awaits(join) else ANY_TOKEN in join.holders

    def is_ready(self, join: Join) -> bool:
        return self._awaits(join) and inclusive.is_ready(join)

    def fire(self, turn: Turn, scope: Scope, node: NodeProgram) -> None:
        if scope.joins[node.id].gate is not None:
            _reset(turn, scope, node)
            return
        node.behaviour.joined(turn, _consume(turn, scope, node), node)

    # -------------------------------------------------------------- the activation

    def arrive(self, turn: Turn, track: Track, node: NodeProgram) -> None:
        """A token arrives: queue it, and activate the gateway if its condition is true now."""
        join = line_up(turn, track, node)
        if not self._awaits(join):
            self.activate_if_true(turn, turn.state.scopes[track.scope], node)

    def activate_if_true(self, turn: Turn, scope: Scope, node: NodeProgram) -> None:
        """Evaluate the activation condition; what cannot be evaluated is an incident of the gateway."""
        assert self.activation is not None
        view = _GateView(turn.state, scope, node, starts=True)
        try:
            is_true = turn.decide_in(self.activation, view, f", by which {node.label} is activated,")
            flows = _on_activation(turn, node, view) if is_true else []
        except ExpressionError as error:
            _fail(turn, scope, node, IncidentKind.EXPRESSION, str(error))
            return
        if not is_true:
            _mend(turn, scope, node)
        elif node.outgoing and not flows:
            _fail(turn, scope, node, IncidentKind.NO_OUTGOING_FLOW, _NOTHING_TO_TAKE.format(node.label))
        else:
            _leave(turn, self._activate(turn, scope, node), flows)

    def _activate(self, turn: Turn, scope: Scope, node: NodeProgram) -> Track:
        join = scope.joins[node.id]
        gave = tuple(flow.id for flow in node.incoming if flow.id in join.queues)
        gate = Gate(turn.state.new_id(), scope.id, node.id, gave)
        turn.state.gates.put(gate)
        join.gate, join.taken = gate, frozenset(gave)
        turn.facts.append(("gateway-activated", node.id, 0, {"flows": gave}))
        return _consume(turn, scope, node, flows=gave)

    # -------------------------------------------------------------- the operator

    def look_again(self, turn: Turn, scope: Scope, node: NodeProgram) -> None:
        if not self._awaits(scope.joins[node.id]):
            self.activate_if_true(turn, scope, node)

    def force(self, turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> Track | None:
        if scope.joins[node.id].gate is not None:
            _force_reset(turn, scope, node, flows)
            return None
        activate = self._activate if self.activation is not None else _consume
        track = activate(turn, scope, node)
        if flows:
            turn.take(track, flows)
        else:
            node.behaviour.resolved(turn, track, node)
        return None

    def why_stuck(self, program: Program, node: NodeProgram, join: Join) -> str:
        holds = f"it holds a token from {arrived(join, node)}, and"
        rest = "resolve the incident to go on with what is there, or drop its tokens"
        if join.gate is not None:
            why = inclusive.why_held(program, node, join)
            return f"the gateway {node.label} can never reset: {holds} {why}; {rest}"
        if self.activation is None:
            return f"the gateway {node.label} can never fire: {holds} {inclusive.why_held(program, node, join)}; {rest}"
        return (
            f"no token can activate the gateway {node.label} any more: {holds} no live token can reach it, while "
            f"its activation condition {self.activation.text!r} is not true; {rest}"
        )


_NOTHING_TO_TAKE = (
    "the gateway {} is activated, but no outgoing sequence flow can be taken: no condition is true and there is no "
    "default flow; give it a default flow, or resolve the incident along a flow"
)


def reconsider(turn: Turn, names: Iterable[str]) -> None:
    """These names were written: the gateways whose activation condition reads one of them are asked again."""
    state = turn.state
    asked = {key: None for name in names for key in state.gated.get(name, ())}
    for scope_id, node_id in sorted(asked):
        scope = state.scopes.get(scope_id)
        if scope is not None and node_id in scope.joins:
            node = turn.program.nodes[node_id]
            node.behaviour.join_rule.look_again(turn, scope, node)


# ------------------------------------------------------------------ consuming


def _consume(turn: Turn, scope: Scope, node: NodeProgram, flows: Iterable[str] | None = None) -> Track:
    survivor = merge(turn, scope, node, [flow.id for flow in node.incoming] if flows is None else flows)
    assert survivor is not None
    end_round(turn, scope, node)
    return survivor


def _leave(turn: Turn, track: Track, flows: list[FlowProgram]) -> None:
    if track.hops > turn.program.options.hop_limit:
        turn.livelock(track, Resume.LEAVE)
    elif flows:
        turn.take(track, flows)
    else:
        turn.end(track)


# ------------------------------------------------------------------ the reset


def _reset(turn: Turn, scope: Scope, node: NodeProgram) -> None:
    try:
        flows = _on_reset(turn, scope, node)
    except ExpressionError as error:
        _fail(turn, scope, node, IncidentKind.EXPRESSION, str(error))
        return
    _start_over(turn, scope, node, flows)


def _force_reset(turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> None:
    """What cannot be evaluated is not taken: the operator named no flow."""
    if not flows:
        try:
            flows = _on_reset(turn, scope, node)
        except ExpressionError:
            flows = []
    _start_over(turn, scope, node, flows)


def _start_over(turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> None:
    join = scope.joins[node.id]
    assert join.gate is not None
    came = tuple(flow.id for flow in node.incoming if flow.id in join.queues and flow.id not in join.taken)
    turn.state.gates.drop(join.gate.id)
    join.gate, join.taken = None, frozenset()
    turn.facts.append(("gateway-reset", node.id, 0, {"flows": came}))
    survivor = merge(turn, scope, node, came)
    if survivor is None and flows:
        survivor = turn.new_track(scope, node.id)
        doubt_stuck_behind(turn, scope, node.id)
    end_round(turn, scope, node)
    if survivor is not None:
        _leave(turn, survivor, flows)
    left = scope.joins.get(node.id)
    if left is not None and left.queues:
        node.behaviour.join_rule.look_again(turn, scope, node)


# ------------------------------------------------------------------ the outgoing flows


def flows_on_activation(turn: Turn, scope: Scope, node: NodeProgram) -> list[FlowProgram]:
    """The flows that an activated gateway takes; none: an incident."""
    return _on_activation(turn, node, _GateView(turn.state, scope, node, starts=True))


def _on_activation(turn: Turn, node: NodeProgram, view: _GateView) -> list[FlowProgram]:
    chosen = [flow for flow in node.outgoing if flow is not node.default and _is_taken(turn, flow, view)]
    return chosen or _default(node)


def _is_taken(turn: Turn, flow: FlowProgram, view: _GateView) -> bool:
    return flow.condition is None or turn.decide_in(flow.condition, view, f" of sequence flow {flow.id!r}")


def _on_reset(turn: Turn, scope: Scope, node: NodeProgram) -> list[FlowProgram]:
    view = _GateView(turn.state, scope, node, starts=False)
    return [flow for flow in node.conditional if _is_taken(turn, flow, view)] or _default(node)


def _default(node: NodeProgram) -> list[FlowProgram]:
    return [] if node.default is None else [node.default]


class _GateView(ScopeView):
    """The gateway's own names, then what can be read in its scope."""

    __slots__ = ("_join", "_node", "_starts")

    def __init__(self, state: State, scope: Scope, node: NodeProgram, *, starts: bool) -> None:
        super().__init__(state, scope.id)
        self._node = node
        self._join = scope.joins.get(node.id)
        self._starts = starts

    def __getitem__(self, name: str) -> Value:
        match name:
            case "waitingForStart":
                return self._starts
            case "activationCount":
                return 0 if self._join is None else self._join.count
            case "activationCounts":
                queues = {} if self._join is None else self._join.queues
                return {flow.id: len(queues.get(flow.id, ())) for flow in self._node.incoming}
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        yield from _OWN
        yield from (name for name in super().__iter__() if name not in _OWN)


# ------------------------------------------------------------------ incidents of the gateway


def _fail(turn: Turn, scope: Scope, node: NodeProgram, kind: IncidentKind, message: str) -> None:
    """The gateway cannot decide: its tokens stay, and a retry looks again.  The same failure is no new incident."""
    incident = scope.joins[node.id].incident
    if incident is not None and incident.kind is kind:
        incident.last, incident.message = turn.now, message
        turn.state.incidents.touch(incident)
        return
    overtake(turn, node.id, scope.joins[node.id])
    open_incident(turn, scope, node, kind, message)


def _mend(turn: Turn, scope: Scope, node: NodeProgram) -> None:
    """Its condition can be evaluated and is not true: it waits on, or is stuck, which the next look tells."""
    join = scope.joins[node.id]
    if join.incident is not None and join.incident.kind is not IncidentKind.STUCK:
        overtake(turn, node.id, join)
        doubt(turn.state, scope, node.id)
