"""The inclusive join (clause 13.4.3, Table 13.3).

It fires when at least one of its flows holds a token, and no token *holds it back*.  One at node *n*, elsewhere in the
scope instance, does that if it can reach an empty flow of the join (by boundary events too), and can reach no flow that
holds a token already (by sequence flows and links alone).  For each node, which flows can be reached is a matter of
the model alone (``reach.ways_to``); which are empty is looked up in the queues.  The join consumes one token of each
flow that holds one.

Decided when all tokens are at rest, for all joins that are ready at that point together: whatever order the tokens
moved in, the answer is the same.  Between two firings flows only fill, so a node that does not hold the join back
will not do so later: the nodes that do are listed once in a round and then only crossed off (``Join.candidates``);
what comes to rest afterwards is found from the newest backwards.

A token that waits at another join counts as one that stands there.  If all that hold a join back wait for joins
themselves, somebody else may still release it, by bringing a token to a flow that those can reach too.  So the join
can still be served while anybody who can go on reaches one of its empty flows (``HOPE``).  When nobody does, no token
comes any more and those who hold it back stay: it is stuck.  Two joins that hold each other back (the vicious circle)
are stuck together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from trioflow.machine.joins.queues import end_round, merge
from trioflow.machine.joins.reach import ways_to
from trioflow.machine.joins.rules import JoinRule, Look, arrived, listed, missing
from trioflow.machine.state import IncidentKind

if TYPE_CHECKING:
    from trioflow.machine.program import FlowProgram, NodeProgram, Program, Ways
    from trioflow.machine.state import Join, Scope, Track
    from trioflow.machine.turn import Turn

__all__ = ["BLOCKER", "HOPE", "INCLUSIVE", "Inclusive", "awaited", "find", "is_ready", "keeps", "why_held"]

BLOCKER = ""
"""The want under which a join remembers who holds it back: without one it is ready (no flow id is empty)."""
HOPE = "?"
"""The want under which it remembers who can still bring a token to an empty flow."""


class Inclusive(JoinRule):
    """It wants somebody who holds it back, else it is ready, and somebody who can still come, else it is stuck."""

    __slots__ = ()
    weighs_arrivals = True

    def wants(self, node: NodeProgram, join: Join) -> Iterable[str]:
        return (BLOCKER, HOPE)

    def find(self, look: Look, want: str) -> str | None:
        return find(look, want)

    def keeps(self, look: Look, want: str, holder: str) -> bool:
        return keeps(look, want, holder)

    def is_served(self, node: NodeProgram, join: Join) -> bool:
        return HOPE in join.holders

    def is_ready(self, join: Join) -> bool:
        return is_ready(join)

    def fire(self, turn: Turn, scope: Scope, node: NodeProgram) -> None:
        node.behaviour.joined(turn, _merge(turn, scope, node), node)

    def force(self, turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> Track | None:
        track = _merge(turn, scope, node)
        if flows:
            turn.take(track, flows)
        else:
            node.behaviour.resolved(turn, track, node)
        return None

    def why_stuck(self, program: Program, node: NodeProgram, join: Join) -> str:
        return (
            f"the join {node.label} can never fire: it holds a token from {arrived(join, node)}, and "
            f"{why_held(program, node, join)}; resolve the incident to go on with what is there, or drop its tokens"
        )


INCLUSIVE = Inclusive()


def why_held(program: Program, node: NodeProgram, join: Join) -> str:
    """Who holds a stuck join back, in words."""
    label = program.nodes[join.holders[BLOCKER]].label
    flows = listed(list(awaited(program, node, join)))
    return f"the token at {label} holds it back, which could still come by {flows} but can never go on"


def awaited(program: Program, node: NodeProgram, join: Join) -> Iterator[str]:
    """The empty flows by which a token of those who hold the join back can come, in document order."""
    holding = ways_to(program, node)[join.holders[BLOCKER]].holding
    return (flow for flow in missing(join, node) if flow in holding)


def _merge(turn: Turn, scope: Scope, node: NodeProgram) -> Track:
    survivor = merge(turn, scope, node, [flow.id for flow in node.incoming])
    assert survivor is not None
    end_round(turn, scope, node)
    return survivor


# ------------------------------------------------------------------ the rule, for the reset of a complex gateway too


def is_ready(join: Join) -> bool:
    """Nobody holds it back, as it was just looked at; what failed waits for an operator instead."""
    is_failed = join.incident is not None and join.incident.kind is not IncidentKind.STUCK
    return BLOCKER not in join.holders and not is_failed


def keeps(look: Look, want: str, holder: str) -> bool:
    """Whether the holder still holds the join back, or can still bring a token to an empty flow."""
    ways = ways_to(look.program, look.node)[holder]
    return _holds_back(ways, look.join) if want == BLOCKER else _reaches_empty(ways, look.join)


def find(look: Look, want: str) -> str | None:
    """The node of a token that holds the join back; or of one that can go on and reach an empty flow."""
    ways = ways_to(look.program, look.node)
    if want == BLOCKER:
        return _find_blocker(look, ways)
    blocker = look.join.holders.get(BLOCKER)
    if blocker is not None and look.can_serve(blocker):
        return blocker
    return next((node for node in _can_go_on(look) if node in ways and _reaches_empty(ways[node], look.join)), None)


def _can_go_on(look: Look) -> Iterator[str]:
    yield from reversed(look.scope.occupied)
    yield from (node for node in look.scope.joins if node != look.node.id and look.can_serve(node))


def _find_blocker(look: Look, ways: Mapping[str, Ways]) -> str | None:
    scope, join = look.scope, look.join

    def holds_back(node: str) -> bool:
        return node in ways and _holds_back(ways[node], join)

    if join.candidates is None:
        join.candidates = [node for node in scope.occupied if holds_back(node)]
    while join.candidates:
        node = join.candidates[-1]
        if node in scope.occupied and holds_back(node):
            return node
        join.candidates.pop()
    others = (node for node, other in scope.joins.items() if node != look.node.id and other.queues)
    return next((node for node in chain(reversed(scope.occupied), others) if holds_back(node)), None)


def _holds_back(ways: Ways, join: Join) -> bool:
    if not join.queues.keys().isdisjoint(ways.releasing) or not join.taken.isdisjoint(ways.releasing):
        return False
    return bool(ways.releasing) or _reaches_empty(ways, join)


def _reaches_empty(ways: Ways, join: Join) -> bool:
    filled = len(join.queues) + len(join.taken)
    return len(ways.holding) > filled or any(
        flow not in join.queues and flow not in join.taken for flow in ways.holding
    )
