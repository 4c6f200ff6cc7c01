"""What must hold of joins in every state: part of ``machine.invariants``, and like it computed from scratch.

The machine searches backwards from a join, keeps what it found, and looks again when that goes; here every node is
asked for every join, forwards, by a search of its own that knows nothing of tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from trioflow.machine import joins
from trioflow.machine.program import NodeProgram, Program
from trioflow.machine.state import IncidentKind, Join, Scope, State

__all__ = ["holds_back", "of_holders", "of_queues"]


def of_queues(program: Program, state: State) -> Iterator[str]:
    """The queues are those of the arrivals, the gates those of the table, and no parallel join forgot to fire."""
    expected: dict[int, dict[str, dict[str, list[int]]]] = {scope_id: {} for scope_id in state.scopes}
    for arrival in state.arrivals.values():
        track = state.tracks.get(arrival.track)
        if track is None or (track.scope, track.node, track.flow) != (arrival.scope, arrival.node, arrival.flow):
            yield f"arrival {arrival.id} is not where its track {arrival.track} is"
        waiting = expected.setdefault(arrival.scope, {})
        waiting.setdefault(arrival.node, {}).setdefault(arrival.flow, []).append(arrival.id)
    for gate in state.gates.values():
        expected.setdefault(gate.scope, {}).setdefault(gate.node, {})
    for scope in state.scopes.values():
        queues = {
            node_id: {flow: [arrival.id for arrival in queue] for flow, queue in join.queues.items()}
            for node_id, join in scope.joins.items()
        }
        if queues != expected[scope.id]:
            yield f"scope {scope.id} has the queues {queues}, and the arrivals {expected[scope.id]}"
        for node_id, join in scope.joins.items():
            yield from _of_one(state, scope, program.nodes[node_id], join)
    yield from _watched(program, state)


def _of_one(state: State, scope: Scope, node: NodeProgram, join: Join) -> Iterator[str]:
    if join.count != sum(len(queue) for queue in join.queues.values()):
        yield f"the join {node.id!r} in scope {scope.id} counts {join.count} tokens, and holds {join.queues}"
    gates = [gate for gate in state.gates.values() if (gate.scope, gate.node) == (scope.id, node.id)]
    if gates != ([] if join.gate is None else [join.gate]):
        yield f"the gateway {node.id!r} in scope {scope.id} has the gate {join.gate}, and in the table are {gates}"
    if join.taken != frozenset(flow for gate in gates for flow in gate.flows):
        yield f"the gateway {node.id!r} in scope {scope.id} counts {sorted(join.taken)} as filled, its gate is {gates}"
    rule = joins.rule_of(node)
    if rule is joins.PARALLEL and {flow.id for flow in node.incoming} <= join.queues.keys():
        yield f"the join {node.id!r} in scope {scope.id} has a token from every flow and did not fire"
    if rule is joins.QUANTITY and (node.activity is None or join.count >= node.activity.start_quantity):
        yield f"the activity {node.id!r} in scope {scope.id} did not start, and {join.count} tokens wait at it"


def _watched(program: Program, state: State) -> Iterator[str]:
    expected: dict[str, set[tuple[int, str]]] = {}
    for scope in state.scopes.values():
        for node_id in scope.joins:
            for name in joins.rule_of(program.nodes[node_id]).reads:
                expected.setdefault(name, set()).add((scope.id, node_id))
    if {name: set(watching) for name, watching in state.gated.items()} != expected:
        yield f"names are read by the gateways {expected}, and the index has {state.gated}"


# ------------------------------------------------------------------ who counts on whom, who is stuck


def of_holders(program: Program, state: State, scope: Scope) -> Iterator[str]:
    """At a quiescent point: no join is ready, exactly those that nobody can serve are stuck, holders are true."""
    if state.unsettled or scope.vacated or scope.doubted:
        yield f"the joins of scope {scope.id} were not looked at: {scope.vacated}, {list(scope.doubted)}"
    held = {(join, want, node) for node, pairs in scope.held.items() for join, want in pairs}
    kept = {(node, want, holder) for node, join in scope.joins.items() for want, holder in join.holders.items()}
    if held != kept or not all(scope.held.values()):
        yield f"scope {scope.id} holds back {sorted(held)}, and its joins remember {sorted(kept)}"
    served = _served(program, scope)
    for node_id, join in scope.joins.items():
        node = program.nodes[node_id]
        if not _is_failed(join) and (join.incident is not None) is not (bool(join.queues) and node_id not in served):
            able = "can" if node_id in served else "cannot"
            yield f"the join {node_id!r} in scope {scope.id} {able} fire, and has the incident {join.incident}"
        blockers = [each for each in _token_nodes(scope, node_id) if holds_back(program, node, join, each)]
        if _is_inclusive(node, join) and not blockers and not _is_failed(join):
            yield f"the join {node_id!r} in scope {scope.id} is held back by nobody, and did not fire"
        wants = set(joins.rule_of(node).wants(node, join))
        lacks = join.holders.keys() != wants if node_id in served and not _is_failed(join) else False
        if lacks or not join.holders.keys() <= wants:
            yield f"the join {node_id!r} wants {sorted(wants)}, and remembers holders of {sorted(join.holders)}"
        for want, holder in join.holders.items():
            if want != joins.BLOCKER and holder not in scope.occupied and holder not in served:
                yield f"the join {node_id!r} counts for {want!r} on {holder!r}, where no token can move"
            if holder not in (blockers if want == joins.BLOCKER else _bringers(program, scope, node, want)):
                yield f"the join {node_id!r} counts for {want!r} on {holder!r}, from where no way leads there"


def _bringers(program: Program, scope: Scope, node: NodeProgram, want: str) -> list[str]:
    """The nodes from which a token can bring what the join wants: that flow, an empty one, or any."""
    flows = {flow.id for flow in node.incoming}
    wanted = {want} if want in flows else flows
    if want == joins.HOPE:
        wanted = flows - _filled(scope.joins[node.id])
    nodes = [node.id, *_token_nodes(scope, node.id), *scope.joins]
    return [each for each in nodes if wanted & _reached(program, each, node, with_boundary=True)]


def _served(program: Program, scope: Scope) -> set[str]:
    """The joins that can still fire, or that an operator can let go on."""
    served = {node_id for node_id, join in scope.joins.items() if _is_failed(join)}
    while True:
        sources = scope.occupied.keys() | served
        more = {
            node_id
            for node_id, join in scope.joins.items()
            if node_id not in served and _is_served(program, program.nodes[node_id], join, sources)
        }
        if not more:
            return served
        served |= more


def _is_served(program: Program, node: NodeProgram, join: Join, sources: set[str]) -> bool:
    reached: set[str] = set()
    for source in sources:
        reached |= _reached(program, source, node, with_boundary=True)
    flows = {flow.id for flow in node.incoming}
    if joins.rule_of(node) is joins.PARALLEL:
        return flows <= reached | join.queues.keys()
    if _is_inclusive(node, join):
        return bool(reached - _filled(join))
    return bool(reached)


def _is_inclusive(node: NodeProgram, join: Join) -> bool:
    rule = joins.rule_of(node)
    if isinstance(rule, joins.Complex):
        return rule.activation is None or join.gate is not None
    return rule is joins.INCLUSIVE


def _is_failed(join: Join) -> bool:
    return join.incident is not None and join.incident.kind is not IncidentKind.STUCK


def _filled(join: Join) -> set[str]:
    return set(join.queues) | set(join.taken)


def _token_nodes(scope: Scope, join: str) -> set[str]:
    """Where tokens stand that are not at this join."""
    waiting = {node_id for node_id, other in scope.joins.items() if other.queues and node_id != join}
    return set(scope.occupied) | waiting


def holds_back(program: Program, node: NodeProgram, join: Join, start: str) -> bool:
    """Whether a token at ``start`` holds an inclusive join back: Table 13.3, word for word."""
    filled = _filled(join)
    reaches_an_empty_one = bool(_reached(program, start, node, with_boundary=True) - filled)
    reaches_a_filled_one = bool(_reached(program, start, node, with_boundary=False) & filled)
    return reaches_an_empty_one and not reaches_a_filled_one


def _reached(program: Program, start: str, join: NodeProgram, *, with_boundary: bool) -> set[str]:
    """The incoming flows of the join that a token at ``start`` can reach without passing the join."""
    reached: set[str] = set()
    seen = {start}
    front = deque(seen)
    while front:
        current = front.popleft()
        flows = program.nodes[current].outgoing
        reached.update(flow.id for flow in flows if flow.target == join.id)
        following = [flow.target for flow in flows]
        following += [each.id for each in program.nodes.values() if current in each.jumps]
        if with_boundary:
            following += [each.id for each in program.nodes.values() if each.attached_to == current]
        for node in following:
            if node not in seen and node != join.id:
                seen.add(node)
                front.append(node)
    return reached
