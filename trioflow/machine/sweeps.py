"""Compensation at work: which entries are undone, in which order, one after the other (clauses 10.7, 13.5.5).

A sweep undoes entries of one ledger in a live scope.  A *carrier* waits for it: the token that threw, one beside it
where nobody waits, the token of an interrupted activity's catcher, or the host of a cancelled transaction.  The carrier
hosts all that runs for the sweep, so whoever cancels the carrier cancels that too.

What an entry means: its own handler, if it has one; else its contents, recursively, with its scope open again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trioflow.machine import ledger
from trioflow.machine.state import LedgerEntry, Scope, ScopeKind, State, Sweep, SweepWait, Track, TrackState

if TYPE_CHECKING:
    from trioflow.machine.turn import Turn

__all__ = ["abandon", "can_host", "index", "partial", "proceed", "start", "target", "undone", "wanted"]


def target(turn: Turn, track: Track) -> Scope:
    """The scope that a throw compensates: its own, or inside an event sub-process the one around that."""
    chain = turn.state.scope_chain(track.scope)
    return next(scope for scope in chain if not _is_of_handler(turn, scope))


def _is_of_handler(turn: Turn, scope: Scope) -> bool:
    """Whether it is the scope of an event sub-process or compensation handler, or one without tokens of a flow."""
    node = turn.program.nodes.get(scope.node)
    return node is not None and (scope.kind is not ScopeKind.BODY or node.behaviour.handles or node.is_for_compensation)


def wanted(state: State, scope: Scope, activity: str | None) -> list[LedgerEntry]:
    """What a throw undoes there: everything, or what one activity completed; nothing that another sweep undoes."""
    entries = state.ledgers.get(ledger.ledger_of(scope), {}).values()
    free = [entry for entry in entries if not entry.sweep]
    if activity is None:
        return free
    return [entry for entry in free if entry.node == activity and not entry.partial]


def start(turn: Turn, carrier: Track, scope: Scope, entries: Iterable[LedgerEntry], *, label: str = "") -> bool:
    """Undo these entries in that scope while the carrier waits; False: there are none, and it does not wait."""
    ordered = _order(entries)
    if not ordered:
        return False
    sweep = _begin(turn, carrier, scope, ordered, entry=0, together=False)
    turn.park(carrier, SweepWait(turn.state.new_id(), carrier.id, sweep.id, label=label))
    return True


def _begin(
    turn: Turn, carrier: Track, scope: Scope, ordered: list[LedgerEntry], *, entry: int, together: bool
) -> Sweep:
    state = turn.state
    sweep = Sweep(state.new_id(), scope.id, carrier.id, entry, together, deque(ordered))
    state.sweeps.put(sweep)
    for rank, each in enumerate(ordered, start=1):
        each.sweep, each.rank = sweep.id, rank
        state.ledger.touch(each)
    state.sweeping[sweep.id] = sweep
    return sweep


def _order(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    """Last completed first; but what an activity's boundary event set off comes before that activity."""
    latest_first = sorted(entries, key=lambda entry: entry.id, reverse=True)
    set_off: dict[int, list[LedgerEntry]] = {}
    for entry in latest_first:
        if entry.origin:
            set_off.setdefault(entry.origin, []).append(entry)
    if not set_off:
        return latest_first
    ordered: dict[int, LedgerEntry] = {}
    for entry in latest_first:
        _place(entry, set_off, ordered)
    return list(ordered.values())


def _place(entry: LedgerEntry, set_off: dict[int, list[LedgerEntry]], ordered: dict[int, LedgerEntry]) -> None:
    waiting = [(entry, False)]
    while waiting:
        each, is_ready = waiting.pop()
        if each.id in ordered:
            continue
        if is_ready:
            ordered[each.id] = each
            continue
        waiting.append((each, True))
        first = set_off.get(each.activation, ()) if each.activation else ()
        waiting.extend((other, False) for other in reversed(first))


def partial(turn: Turn, left: Track) -> list[LedgerEntry]:
    """What the sub-process that an error leaves has done, to be undone though it did not complete (presumed abort)."""
    if not turn.program.options.presumed_abort:
        return []
    entry = ledger.keep(turn, left)
    return [] if entry is None else [entry]


# ------------------------------------------------------------------ the work


def proceed(turn: Turn, budget: int) -> int:
    """Let the sweep go on that could first; how many entries were begun, ``budget`` at most."""
    state = turn.state
    sweep = next(iter(state.sweeping.values()))
    begun = 0
    while sweep.queue and (sweep.together or not sweep.running) and begun < budget:
        entry = sweep.queue.popleft()
        sweep.running += 1
        begun += 1
        _undo(turn, sweep, entry)
    if sweep.queue and (sweep.together or not sweep.running):
        return begun
    state.sweeping.pop(sweep.id, None)
    if not sweep.queue and not sweep.running:
        _end(turn, sweep)
    return begun


def _undo(turn: Turn, sweep: Sweep, entry: LedgerEntry) -> None:
    state = turn.state
    node = turn.program.nodes[entry.node]
    assert node.activity is not None
    undo = node.activity.undo
    assert undo is not None
    entry.undoing = True
    state.ledger.touch(entry)
    carrier, scope = state.tracks[sweep.carrier], state.scopes[sweep.scope]
    turn.facts.append(("activity-compensating", node.id, carrier.id, {"entry": entry.id}))
    if undo.repeats and not entry.index:
        _contents(turn, carrier, scope, entry, together=undo.together)
    elif undo.handler is not None and not entry.partial:
        own = turn.new_scope(undo.handler, carrier, kind=ScopeKind.UNDO, parent=scope.id, undoes=entry.id)
        turn.declare(own, entry.data)
        turn.start_track(own, undo.handler)
    else:
        again = turn.new_scope(node.id, carrier, parent=scope.id, undoes=entry.id, inner=entry.inner)
        turn.declare(again, entry.data)
        if undo.event_sub_process is not None and not entry.partial:
            start_event = turn.program.nodes[undo.event_sub_process]
            start_event.behaviour.fire(turn, start_event, again, {})
        else:
            _contents(turn, carrier, again, entry, together=False)


def _contents(turn: Turn, carrier: Track, scope: Scope, entry: LedgerEntry, *, together: bool) -> None:
    inside = turn.state.ledgers.get(entry.inner, {}).values()
    _begin(turn, carrier, scope, _order(inside), entry=entry.id, together=together)


def undone(turn: Turn, scope: Scope) -> None:
    """What ran in a scope that was opened to undo an entry has ended."""
    entry = turn.state.ledger[scope.undoes]
    turn.discard_scope(scope)
    _entry_undone(turn, entry)


def _entry_undone(turn: Turn, entry: LedgerEntry) -> None:
    state = turn.state
    sweep = state.sweeps[entry.sweep]
    sweep.running -= 1
    turn.facts.append(("activity-compensated", entry.node, sweep.carrier, {"entry": entry.id}))
    ledger.drop_entry(turn, entry)
    state.sweeping[sweep.id] = sweep


def _end(turn: Turn, sweep: Sweep) -> None:
    state = turn.state
    state.sweeps.drop(sweep.id)
    if sweep.entry:
        entry = state.ledger[sweep.entry]
        scope = state.scopes[sweep.scope]
        if scope.undoes == entry.id:
            turn.discard_scope(scope)
        _entry_undone(turn, entry)
        return
    carrier = state.tracks[sweep.carrier]
    wait = carrier.wait
    assert isinstance(wait, SweepWait)
    turn.lift(carrier)
    turn.disarm(carrier)
    node = turn.program.nodes[carrier.node]
    node.behaviour.swept(turn, carrier, node, wait.label)


def abandon(turn: Turn, carrier: Track) -> None:
    """The carrier is cancelled, and what it hosted is gone: what was not begun can be undone by another throw."""
    state = turn.state
    for sweep in [each for each in state.sweeps.values() if each.carrier == carrier.id]:
        state.sweeping.pop(sweep.id, None)
        state.sweeps.drop(sweep.id)
        for entry in [each for each in state.ledger.values() if each.sweep == sweep.id]:
            if entry.undoing:
                if entry.id in state.ledger:
                    ledger.drop_entry(turn, entry)
            else:
                entry.sweep = entry.rank = 0
                state.ledger.touch(entry)


def index(state: State) -> None:
    """Fill the derived queues of all sweeps."""
    for entry in sorted(state.ledger.values(), key=lambda entry: entry.rank):
        if not entry.sweep:
            continue
        sweep = state.sweeps[entry.sweep]
        if entry.undoing:
            sweep.running += 1
        else:
            sweep.queue.append(entry)


def can_host(track: Track) -> bool:
    """Whether a waiting token may host scopes: those that its sweep opened."""
    return track.state is TrackState.WAITING and isinstance(track.wait, SweepWait)
