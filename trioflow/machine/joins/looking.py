"""Looking at the joins of a scope when all tokens are at rest: who is ready, who counts on whom, who is stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from trioflow.machine.joins.inclusive import BLOCKER
from trioflow.machine.joins.queues import (
    close_incident,
    doubt,
    doubt_stuck_behind,
    enqueue,
    open_incident,
    overtake,
    release_holder,
    watch,
)
from trioflow.machine.joins.rules import Look, rule_of
from trioflow.machine.state import IncidentKind, Join

if TYPE_CHECKING:
    from trioflow.machine.program import FlowProgram, NodeProgram, Program
    from trioflow.machine.state import Scope, State, Track
    from trioflow.machine.turn import Turn

__all__ = ["derive", "doubt_all", "fire_with_what_is_there", "index", "look_again", "settle"]


# ------------------------------------------------------------------ the face


def settle(turn: Turn) -> None:
    """Look at every join that something happened to: those that are ready fire, all those of a scope together.

    If none is, those that can never fire become incidents.
    """
    unsettled = sorted(turn.state.unsettled.items())
    turn.state.unsettled.clear()
    for _, scope in unsettled:
        looked = _look(turn.program, scope)
        ready = {node_id for node_id in looked if _is_ready(turn.program, scope, node_id)}
        changed = {node_id for node_id in looked if _is_judged_wrongly(turn.program, scope, node_id)} - ready
        if ready:
            for node_id in sorted(changed):  # a set has no order of its own
                doubt(turn.state, scope, node_id)
            _fire(turn, scope, ready)
        else:
            _judge(turn, scope, changed)
            for node_id in looked:
                scope.joins[node_id].since = None


def look_again(turn: Turn, scope: Scope, node_id: str) -> None:
    """Have a join look for all its holders anew (an operator retries its incident); still stuck, it is since before."""
    join = scope.joins[node_id]
    join.since = None if join.incident is None else join.incident.first
    _set_free(turn, scope, node_id)
    doubt(turn.state, scope, node_id)
    node = turn.program.nodes[node_id]
    rule_of(node).look_again(turn, scope, node)


def fire_with_what_is_there(turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> Track | None:
    """An operator lets a join at an incident go on, along these flows (none: it chooses): what is there is consumed.

    Returns the token that is to begin its activity, if it is a start quantity; of a gateway it has gone on.
    """
    _set_free(turn, scope, node.id)
    return rule_of(node).force(turn, scope, node, flows)


def _set_free(turn: Turn, scope: Scope, node_id: str) -> None:
    """An operator takes the incident of a join away: a token may come out, and those behind could be served again."""
    close_incident(turn, scope.joins[node_id])
    doubt_stuck_behind(turn, scope, node_id)


def doubt_all(state: State, scope: Scope) -> None:
    """A token starts out of nothing, by no way in the model: what could never be served may be served now."""
    for node_id in scope.joins:
        doubt(state, scope, node_id)


def index(program: Program, state: State) -> None:
    """Build the queues of a folded state, from the arrivals and gates in the order of their ids."""
    for arrival in state.arrivals.values():
        enqueue(_join_at(program, state, arrival.scope, arrival.node), arrival)
    for gate in state.gates.values():
        join = _join_at(program, state, gate.scope, gate.node)
        join.gate, join.taken = gate, frozenset(gate.flows)


def derive(program: Program, state: State) -> None:
    """Find the holders of all joins of a folded state; nobody fires, because nobody was ready when it was captured."""
    for scope in state.scopes.values():
        scope.doubted.update(dict.fromkeys(scope.joins))
        _look(program, scope)
    state.rested = state.header.counter


def _join_at(program: Program, state: State, scope_id: int, node_id: str) -> Join:
    scope = state.scopes[scope_id]
    if node_id not in scope.joins:
        scope.joins[node_id] = Join()
        watch(state, scope, program.nodes[node_id])
    return scope.joins[node_id]


# ------------------------------------------------------------------ what follows from a look


def _is_served(program: Program, scope: Scope, node_id: str) -> bool:
    node = program.nodes[node_id]
    return rule_of(node).is_served(node, scope.joins[node_id])


def _is_ready(program: Program, scope: Scope, node_id: str) -> bool:
    return rule_of(program.nodes[node_id]).is_ready(scope.joins[node_id])


def _is_failed(join: Join) -> bool:
    """It is at an incident that is not about being stuck: an operator can let it go on any time."""
    return join.incident is not None and join.incident.kind is not IncidentKind.STUCK


def _can_go_on(program: Program, scope: Scope, node_id: str) -> bool:
    """Whether tokens can still come out of the join: it is about to fire, can be served, or an operator can mend it."""
    is_held = _is_served(program, scope, node_id)
    return is_held or _is_failed(scope.joins[node_id]) or _is_ready(program, scope, node_id)


def _is_judged_wrongly(program: Program, scope: Scope, node_id: str) -> bool:
    join = scope.joins[node_id]
    if not join.queues or _is_failed(join):
        return False
    return _is_served(program, scope, node_id) is (join.incident is not None)


def _fire(turn: Turn, scope: Scope, ready: Iterable[str]) -> None:
    for node_id in _in_document_order(turn.program, scope, ready):
        if node_id in scope.joins:
            node = turn.program.nodes[node_id]
            rule_of(node).fire(turn, scope, node)


def _judge(turn: Turn, scope: Scope, changed: Iterable[str]) -> None:
    for node_id in _in_document_order(turn.program, scope, changed):
        join = scope.joins[node_id]
        if join.incident is not None:
            overtake(turn, node_id, join)
            continue
        node = turn.program.nodes[node_id]
        open_incident(turn, scope, node, IncidentKind.STUCK, rule_of(node).why_stuck(turn.program, node, join))


def _in_document_order(program: Program, scope: Scope, node_ids: Iterable[str]) -> list[str]:
    chosen = set(node_ids)
    if len(chosen) < 2:
        return list(chosen)
    return [node_id for node_id in program.scopes[scope.node].nodes if node_id in chosen]


# ------------------------------------------------------------------ looking


def _look(program: Program, scope: Scope) -> set[str]:
    """Find holders for all that lost theirs; the joins that were looked at, each with all the holders it can have."""
    doubted = [node_id for node_id in scope.doubted if node_id in scope.joins]
    scope.doubted.clear()
    looked = set(doubted)
    for node_id, want in _wanted(program, scope, doubted):
        looked.add(node_id)
        _find_one(_look_at(program, scope, node_id, scope.occupied.__contains__), want)
    unserved = [node_id for node_id in looked if not _can_go_on(program, scope, node_id)]
    undecided = [node_id for node_id in unserved if node_id in doubted or scope.joins[node_id].incident is None]
    if undecided:
        looked |= _look_among_joins(program, scope, undecided)
    return looked


def _wanted(program: Program, scope: Scope, doubted: Iterable[str]) -> list[tuple[str, str]]:
    """The (join, want) pairs that have no holder any more, or never had one."""
    wanted: dict[tuple[str, str], None] = {}
    for vacant in scope.vacated:
        if vacant in scope.occupied:
            continue
        for node_id, want in sorted(scope.held.get(vacant, ())):
            release_holder(scope, node_id, want)
            wanted[(node_id, want)] = None
    scope.vacated.clear()
    for node_id in doubted:
        look = _look_at(program, scope, node_id, scope.occupied.__contains__)
        rule = rule_of(look.node)
        for want, holder in list(look.join.holders.items()):
            if not rule.keeps(look, want, holder):
                release_holder(scope, node_id, want)
        wanted.update(((node_id, want), None) for want in rule.wants(look.node, look.join))
    return [(node_id, want) for node_id, want in wanted if want not in scope.joins[node_id].holders]


def _look_at(program: Program, scope: Scope, node_id: str, can_serve: Callable[[str], bool]) -> Look:
    return Look(program, scope, program.nodes[node_id], scope.joins[node_id], can_serve)


def _find_one(look: Look, want: str) -> None:
    holder = rule_of(look.node).find(look, want)
    if holder is not None:
        look.join.holders[want] = holder
        look.scope.held.setdefault(holder, set()).add((look.node.id, want))


def _look_among_joins(program: Program, scope: Scope, undecided: Iterable[str]) -> set[str]:
    """Decide for joins that found no free token, together with all that counted on them: the least fixed point."""
    suspects = _suspects(scope, undecided)
    unserved = {node_id for node_id in suspects if not _can_go_on(program, scope, node_id)}

    def can_serve(node_id: str) -> bool:
        if node_id in scope.occupied:
            return True
        return node_id in scope.joins and node_id not in unserved and _can_go_on(program, scope, node_id)

    grown = True
    while grown:
        served = {
            node_id for node_id in suspects if node_id in unserved and _finds_all(program, scope, node_id, can_serve)
        }
        unserved -= served
        grown = bool(served)
    return set(suspects)


def _suspects(scope: Scope, undecided: Iterable[str]) -> list[str]:
    """These joins and all that count on them, directly or not; none of them counts on another one any more.

    Who is held back by one of them still is: that does not depend on whether it can go on.
    """
    suspects = list(undecided)
    known = set(suspects)
    for suspect in suspects:
        for node_id, want in sorted(scope.held.get(suspect, ())):
            if want == BLOCKER:
                continue
            release_holder(scope, node_id, want)
            if node_id not in known:
                known.add(node_id)
                suspects.append(node_id)
    return suspects


def _finds_all(program: Program, scope: Scope, node_id: str, can_serve: Callable[[str], bool]) -> bool:
    look = _look_at(program, scope, node_id, can_serve)
    for want in rule_of(look.node).wants(look.node, look.join):
        if want not in look.join.holders:
            _find_one(look, want)
    return _is_served(program, scope, node_id)
