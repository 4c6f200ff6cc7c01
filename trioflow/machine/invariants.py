"""What must hold in every state: the invariants of ``docs/explanation/how-it-works.md``, each checked from scratch.

For tests, after every apply.  It costs the size of the state and trusts no index: what is derived is computed
again from what is stored, and which joins are stuck is decided anew, by a search of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from trioflow.facts import Status
from trioflow.machine.join_invariants import of_holders, of_queues
from trioflow.machine.program import Program
from trioflow.machine.state import (
    AdHocWait,
    ConditionWait,
    DataWait,
    FailedArming,
    Incident,
    IncidentState,
    Resume,
    RetryWait,
    Scope,
    ScopeKind,
    SignalWait,
    State,
    SweepWait,
    Track,
    TrackState,
)
from trioflow.machine.triggers import TimerTrigger

__all__ = ["violations"]


def violations(program: Program, state: State) -> list[str]:
    """What is wrong with the state, a sentence each; empty: nothing.

    A state whose turn is pending may hold tokens that are ready, and joins that were not looked at yet.
    """
    found = [sentence for check in _OF_THE_STATE for sentence in check(state)]
    found += [sentence for check in _WITH_THE_PROGRAM for sentence in check(program, state)]
    if found or state.is_pending:
        return found
    return [sentence for scope in state.scopes.values() for sentence in of_holders(program, state, scope)]


# ------------------------------------------------------------------ ids and references


def _ids(state: State) -> Iterator[str]:
    tables = state.tables
    given = Counter(key for table in tables for key in table)
    yield from (f"the id {key} is given {times} times" for key, times in given.items() if times > 1)
    yield from (f"the id {key} is beyond the counter" for key in given if key > state.header.counter)
    for table in tables:
        if list(table) != sorted(table):
            yield f"a table is not in the order of ids: {list(table)}"
        yield from (
            f"entity {entity.id} stands under the key {key}" for key, entity in table.items() if entity.id != key
        )


def _references(program: Program, state: State) -> Iterator[str]:
    for track in state.tracks.values():
        node = program.nodes.get(track.node)
        scope = state.scopes.get(track.scope)
        if node is None or scope is None:
            yield f"track {track.id} stands at {track.node!r} in scope {track.scope}, which is not there"
        elif (node.container if scope.kind is ScopeKind.BODY else node.id) != scope.node:
            yield f"track {track.id} stands at {track.node!r}, which is in {node.container!r}, not in {scope.node!r}"
        elif scope.kind is ScopeKind.LOOP:
            yield f"track {track.id} stands in scope {track.scope} of a loop, which holds only instances"
        elif track.flow and track.flow not in {flow.id for flow in node.incoming}:
            yield f"track {track.id} came to {track.node!r} by {track.flow!r}, which does not lead there"
    for scope_id, node_id in state.entries:
        if scope_id not in state.scopes or node_id not in program.nodes:
            yield f"entries are counted for {node_id!r} in scope {scope_id}, which is not there"


# ------------------------------------------------------------------ invariants 1 and 3: one place each


def _places(state: State) -> Iterator[str]:
    ready = Counter(track.id for track in state.agenda if track.state is TrackState.READY)
    arrived = Counter(arrival.track for arrival in state.arrivals.values())
    thrown = Counter(track.id for track in state.throws if track.state is TrackState.THROWING)
    for track in state.tracks.values():
        wanted = (
            track.state is TrackState.READY,
            track.state is TrackState.JOINING,
            track.state is TrackState.WAITING,
            track.state is TrackState.HOSTING or (_may_host(track) and bool(track.hosted)),
            track.state is TrackState.INCIDENT,
            track.state is TrackState.THROWING,
        )
        has = (
            ready[track.id] == 1,
            arrived[track.id] == 1,
            track.wait is not None,
            bool(track.hosted),
            track.incident is not None,
            thrown[track.id] == 1,
        )
        if wanted != has:
            places = "(agenda, arrival, wait, scope, incident, throw)"
            yield f"track {track.id} is {track.state.value}, but {places} are {has}"
        if track.state is TrackState.EXECUTING and not (track.step and track.attempt and track.entry):
            yield f"track {track.id} executes step {track.step}, attempt {track.attempt}, entry {track.entry}"
        if track.state is TrackState.ENDED:
            yield f"track {track.id} has ended and is still in the table"
    yield from (f"track {key} waits at a join and is not there" for key in arrived if key not in state.tracks)


def _may_host(track: Track) -> bool:
    """An incident does not close what a token hosts; nor does who waits for a compensation, or for a choice."""
    by_wait = isinstance(track.wait, SweepWait | AdHocWait | RetryWait)
    return by_wait or track.state in {TrackState.INCIDENT, TrackState.EXECUTING}


def _waits(state: State) -> Iterator[str]:
    for wait in state.waits.values():
        if bool(wait.track) is bool(wait.scope):
            yield f"wait {wait.id} belongs to track {wait.track} and to scope {wait.scope}"
            continue
        owner: Track | Scope | None = state.tracks.get(wait.track) if wait.track else state.scopes.get(wait.scope)
        listed = owner is not None and owner.armed.get(wait.id) is wait
        parked = isinstance(owner, Track) and owner.wait is wait
        if (parked, listed) != (not wait.node, bool(wait.node)):
            yield f"wait {wait.id} of {wait.node!r} belongs to {owner}, which does not know it"
    owners: list[Track | Scope] = [*state.tracks.values(), *state.scopes.values()]
    for owner in owners:
        known = [*owner.armed.values(), *([owner.wait] if isinstance(owner, Track) and owner.wait else [])]
        yield from (
            f"wait {wait.id} is known to {type(owner).__name__} {owner.id}, and not in the table"
            for wait in known
            if state.waits.get(wait.id) is not wait
        )


def _wait_indexes(program: Program, state: State) -> Iterator[str]:
    """Invariant 3, for what is looked up by name: signals and conditions."""
    signals: dict[str, list[int]] = {}
    conditions: dict[str, list[int]] = {}
    for wait in state.waits.values():
        if isinstance(wait, SignalWait):
            signals.setdefault(wait.name, []).append(wait.id)
        elif isinstance(wait, ConditionWait):
            node = program.nodes[wait.node or state.tracks[wait.track].node]
            for name in node.behaviour.condition(wait.label).names:
                conditions.setdefault(name, []).append(wait.id)
        elif isinstance(wait, DataWait):
            activity = program.nodes[state.tracks[wait.track].node].activity
            assert activity is not None
            assert activity.data is not None
            for name in activity.data.awaited:
                conditions.setdefault(name, []).append(wait.id)
    if {name: list(waiting) for name, waiting in state.signals.items()} != signals:
        yield f"signals are waited for by {signals}, and the index has {state.signals}"
    if {name: list(waiting) for name, waiting in state.conditions.items()} != conditions:
        yield f"conditions read {conditions}, and the index has {state.conditions}"


def _ledgers(state: State) -> Iterator[str]:
    """Each entry is in the ledger of a scope, or nested in an entry; each sweep has its queue and what it undoes."""
    known = {scope.inner or scope.id for scope in state.scopes.values()}
    known |= {entry.inner for entry in state.ledger.values()}
    ledgers: dict[int, list[int]] = {}
    for entry in state.ledger.values():
        ledgers.setdefault(entry.ledger, []).append(entry.id)
        if entry.ledger not in known:
            yield f"entry {entry.id} of {entry.node!r} is in ledger {entry.ledger}, which belongs to nothing"
    if {key: list(entries) for key, entries in state.ledgers.items()} != ledgers:
        yield f"the ledgers hold {ledgers}, and the index has {state.ledgers}"
    for sweep in state.sweeps.values():
        own = [entry for entry in state.ledger.values() if entry.sweep == sweep.id]
        queue = sorted((entry for entry in own if not entry.undoing), key=lambda entry: entry.rank)
        if list(sweep.queue) != queue or sweep.running != len(own) - len(queue):
            yield f"sweep {sweep.id} has {own}, and knows {sweep.running} and {list(sweep.queue)}"
        if not state.sweeping and not sweep.running:
            yield f"sweep {sweep.id} stands still"


def _armed(program: Program, state: State) -> Iterator[str]:
    """What must be armed is armed: the boundary events of open activities, the handlers of scopes with tokens."""
    for track in state.tracks.values():
        activity = program.nodes[track.node].activity
        boundaries = set(activity.boundaries) if activity is not None else set()
        armed = {wait.node for wait in track.armed.values()} & boundaries
        if track.opened and state.scopes[track.scope].kind is ScopeKind.INSTANCE:
            continue
        leaving = track.incident is not None and track.incident.resume is Resume.LEAVE
        if track.opened and not leaving and any(not _can_be_spent(program, event) for event in boundaries - armed):
            yield f"track {track.id} at {track.node!r} has not armed {sorted(boundaries - armed)}"
    for scope in state.scopes.values():
        if scope.kind is not ScopeKind.BODY:
            continue
        wanted = set(program.scopes[scope.node].handlers)
        armed = {wait.node for wait in scope.armed.values()}
        is_open = not scope.interrupted and len(scope.tracks) > scope.handlers
        if armed and (not is_open or not armed <= wanted):
            yield f"scope {scope.id} of {scope.node!r} waits for {sorted(armed)}, but it is not open for that"
        if is_open and any(not _can_be_spent(program, event) for event in wanted - armed):
            yield f"scope {scope.id} of {scope.node!r} has not armed {sorted(wanted - armed)}"


def _can_be_spent(program: Program, event: str) -> bool:
    """Whether an event that does not interrupt can be used up: a timer's cycle is, an operator can give it up too."""
    plan = program.nodes[event].behaviour.plan
    return any(isinstance(trigger, TimerTrigger) for trigger in plan.triggers)


def _open(state: State) -> list[Incident]:
    return [each for each in state.incidents.values() if each.state is IncidentState.OPEN]


def _incidents(state: State) -> Iterator[str]:
    if list(state.incidents.open.items()) != [(each.id, each) for each in _open(state)]:
        yield f"open are the incidents {[each.id for each in _open(state)]}, and listed {list(state.incidents.open)}"
    for incident in state.incidents.values():
        if not incident.first <= incident.last <= state.header.now:
            yield f"incident {incident.id} is from {incident.first} to {incident.last}, and now is {state.header.now}"
    for incident in _open(state):
        if incident.resume is Resume.ARM:
            wait = state.waits.get(incident.wait)
            if not isinstance(wait, FailedArming) or wait.incident is not incident:
                yield f"incident {incident.id} is of wait {incident.wait}, which does not know it"
            continue
        if incident.resume is Resume.JOIN:
            scope = state.scopes.get(incident.scope)
            join = None if scope is None else scope.joins.get(incident.node)
            if join is None or join.incident is not incident:
                yield f"incident {incident.id} is of the join {incident.node!r}, which does not know it"
            continue
        yield from _pinned(state, incident)


def _pinned(state: State, incident: Incident) -> Iterator[str]:
    track = state.tracks.get(incident.track)
    if track is None or track.incident is not incident:
        yield f"incident {incident.id} pins track {incident.track}, which does not know it"
    elif (track.node, track.scope) != (incident.node, incident.scope):
        yield f"incident {incident.id} is at {incident.node!r} and pins track {track.id} at {track.node!r}"
    elif track.failing != incident.first:
        yield f"incident {incident.id} is there since {incident.first}, and its track fails since {track.failing}"


def _failing(state: State) -> Iterator[str]:
    for track in state.tracks.values():
        if track.failing is None and _must_be_failing(track):
            yield f"track {track.id} is {track.state.value} after a failure, and does not know since when it fails"
        if track.failing is not None and not _can_be_failing(track):
            yield f"track {track.id} is {track.state.value}, and fails since {track.failing}"


def _must_be_failing(track: Track) -> bool:
    again = track.state is TrackState.EXECUTING and track.attempt > 1
    return again or track.incident is not None or isinstance(track.wait, RetryWait)


def _can_be_failing(track: Track) -> bool:
    """Its failure is not over: it is tried once more (ready, executing), or is going to be."""
    tried = {TrackState.READY, TrackState.EXECUTING, TrackState.INCIDENT}
    return track.state in tried or isinstance(track.wait, RetryWait)


# ------------------------------------------------------------------ invariants 1, 2 and 5: scopes and the end


def _scopes(program: Program, state: State) -> Iterator[str]:
    hosted: Counter[int] = Counter()
    for scope in state.scopes.values():
        is_swept = scope.node in program.ad_hoc or any(sweep.scope == scope.id for sweep in state.sweeps.values())
        if not scope.tracks and not state.is_terminal and scope.kind is not ScopeKind.LOOP and not is_swept:
            yield f"scope {scope.id} of {scope.node!r} holds no token and is still open"
        if scope.host is None:
            if scope.parent is not None or scope.node != program.key:
                yield f"scope {scope.id} of {scope.node!r} has no host"
            continue
        hosted[scope.host] += 1
        host = state.tracks.get(scope.host)
        if host is None or host.hosted.get(scope.id) is not scope:
            yield f"scope {scope.id} is hosted by track {scope.host}, which does not know it"
        elif not _is_parent(state, scope, host):
            yield f"scope {scope.id} of {scope.node!r} is hosted at {host.node!r} in scope {host.scope}"
    for track in state.tracks.values():
        if len(track.hosted) != hosted[track.id]:
            yield f"track {track.id} hosts {sorted(track.hosted)}, of which {hosted[track.id]} are there"


def _is_parent(state: State, scope: Scope, host: Track) -> bool:
    """An instance of a loop is inside the scope of the loop, any other scope where its host is."""
    parent = None if scope.parent is None else state.scopes.get(scope.parent)
    if parent is not None and scope.kind is ScopeKind.INSTANCE and parent.kind is ScopeKind.LOOP:
        return (parent.host, host.node, parent.node) == (host.id, scope.node, scope.node)
    if scope.undoes:
        sweep = state.sweeps[state.ledger[scope.undoes].sweep]
        return (sweep.carrier, sweep.scope) == (host.id, scope.parent)
    return (host.scope, host.node) == (scope.parent, scope.node)


def _ends(state: State) -> Iterator[str]:
    roots = [scope.id for scope in state.scopes.values() if scope.host is None]
    if len(roots) > 1:
        yield f"there are several root scopes: {roots}"
    if state.status is Status.ACTIVE and (not roots or not state.tracks):
        yield "the instance is active and has no live token"
    if state.status is Status.CREATED and (roots or state.tracks):
        yield "the instance was not started and has tokens"
    if not state.is_terminal:
        return
    left = {
        "tracks": list(state.tracks),
        "waits": list(state.waits),
        "arrivals": list(state.arrivals),
        "gates": list(state.gates),
        "ledger": list(state.ledger),
        "sweeps": list(state.sweeps),
        "scopes": [key for key in state.scopes if key not in roots],
        "entries": list(state.entries),
        "open incidents": [incident.id for incident in _open(state)],
        "agenda": list(state.agenda),
        "openings": list(state.openings),
        "sweeping": list(state.sweeping),
        "throws": list(state.throws),
        "changed names": list(state.changed),
        "unsettled": list(state.unsettled),
    }
    yield from (f"the instance has ended and still has {what}: {ids}" for what, ids in left.items() if ids)


# ------------------------------------------------------------------ derived indexes


def _tracks_of_scopes(program: Program, state: State) -> Iterator[str]:
    for scope in state.scopes.values():
        own = [track for track in state.tracks.values() if track.scope == scope.id]
        if list(scope.tracks.values()) != own:
            yield f"scope {scope.id} lists the tracks {list(scope.tracks)}, and holds {[track.id for track in own]}"
        handlers = sum(1 for track in own if program.nodes[track.node].behaviour.handles)
        if scope.handlers != handlers:
            yield f"scope {scope.id} counts {scope.handlers} handlers, and has {handlers}"
        occupied = Counter(track.node for track in own if track.state.at_rest)
        if scope.occupied != occupied:
            yield f"scope {scope.id} counts {scope.occupied}, and holds {dict(occupied)}"


_OF_THE_STATE: tuple[Callable[[State], Iterator[str]], ...] = (
    _ids,
    _places,
    _waits,
    _ends,
    _incidents,
    _failing,
    _ledgers,
)
_WITH_THE_PROGRAM: tuple[Callable[[Program, State], Iterator[str]], ...] = (
    _references,
    _scopes,
    of_queues,
    _tracks_of_scopes,
    _wait_indexes,
    _armed,
)
