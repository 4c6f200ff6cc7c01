"""What was completed and can be undone: the ledger of a scope, and how it folds (clauses 10.7, 13.5.5).

Each scope instance has a ledger, in the order of completion.  The ledger of a scope that completes lives on, unchanged,
as the contents of one entry in the ledger around it, so that folding costs the same however much was done inside.  A
scope that is cancelled takes its ledger with it, unless what it completed is to be undone: then the entry is *partial*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trioflow.machine.state import LedgerEntry, Scope, ScopeKind, State, Track

if TYPE_CHECKING:
    from trioflow.machine.program import NodeProgram, Program
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = ["activity_completed", "attach", "drop_all", "drop_entry", "instance_completed", "keep", "ledger_of"]


def ledger_of(scope: Scope) -> int:
    """The id under which the scope's entries are kept: that of the closed scope, if it is open again to be undone."""
    return scope.inner or scope.id


def attach(state: State, entry: LedgerEntry) -> None:
    """Enter an entry into the derived index."""
    state.ledgers.setdefault(entry.ledger, {})[entry.id] = entry


# ------------------------------------------------------------------ what completes


def activity_completed(turn: Turn, track: Track, node: NodeProgram) -> None:
    """An activity has completed, and what it hosted is about to close: note it, if it can be undone."""
    assert node.activity is not None
    undo = node.activity.undo
    if undo is None:
        return
    body = _body_of(track)
    if body is None and node.activity.frame is not None:
        return  # its one instance was noted with its own data
    if body is not None and body.kind is ScopeKind.LOOP:
        if body.id in turn.state.ledgers:
            _add(turn, track, node, inner=body, data={})
    elif body is not None:
        _add_closed(turn, track, node, body, own={})
    elif undo.handler is not None and not undo.is_scope:
        _add(turn, track, node, inner=None, data={})


def instance_completed(turn: Turn, body: Track, node: NodeProgram, scope: Scope, ledger: int) -> None:
    """One instance has completed: note it in the ledger of all of them, or of the scope around the only one."""
    assert node.activity is not None
    undo = node.activity.undo
    if undo is None:
        return
    inner = _body_of(body)
    if inner is not None:
        _add_closed(turn, body, node, inner, own=scope.data, ledger=ledger, index=scope.index)
    elif undo.handler is not None and not undo.is_scope:
        _add(turn, body, node, inner=None, data=scope.data, ledger=ledger, index=scope.index)


def _add_closed(
    turn: Turn,
    track: Track,
    node: NodeProgram,
    body: Scope,
    *,
    own: Mapping[str, Value],
    ledger: int | None = None,
    index: int = 0,
) -> None:
    """A sub-process has something to undo if it has a handler, or anything in its own ledger."""
    assert node.activity is not None
    undo = node.activity.undo
    assert undo is not None
    if undo.handler is not None or undo.event_sub_process is not None or ledger_of(body) in turn.state.ledgers:
        _add(turn, track, node, inner=body, data={**own, **body.data}, ledger=ledger, index=index)


def _add(
    turn: Turn,
    track: Track,
    node: NodeProgram,
    *,
    inner: Scope | None,
    data: Mapping[str, Value],
    ledger: int | None = None,
    index: int = 0,
    partial: bool = False,
) -> LedgerEntry:
    entry = LedgerEntry(
        id=turn.state.new_id(),
        ledger=ledger_of(turn.state.scopes[track.scope]) if ledger is None else ledger,
        node=node.id,
        index=index,
        data=dict(data),
        partial=partial,
        activation=track.opened,
        origin=track.origin,
    )
    if inner is not None:
        entry.inner = ledger_of(inner)
        inner.folded = True
    turn.state.ledger.put(entry)
    attach(turn.state, entry)
    return entry


def _body_of(track: Track) -> Scope | None:
    """The scope of the activity's work, or of its loop."""
    return next((scope for scope in track.hosted.values() if scope.kind is not ScopeKind.INSTANCE), None)


# ------------------------------------------------------------------ what is cancelled


def keep(turn: Turn, track: Track) -> LedgerEntry | None:
    """An activity is about to be cancelled: what it completed so far stays, as a partial entry.  None: nothing.

    Not what a transaction did: an error that leaves it is a hazard, without compensation.
    """
    node = turn.program.nodes[track.node]
    if not _keeps(turn.program, node):
        return None
    body = _body_of(track)
    if body is None:
        return None
    if body.kind is ScopeKind.LOOP:
        _keep_instances(turn, track, node, body)
    else:
        keep_inside(turn, body)
    if ledger_of(body) not in turn.state.ledgers:
        return None
    return _add(turn, track, node, inner=body, data=body.data if body.kind is ScopeKind.BODY else {}, partial=True)


def keep_inside(turn: Turn, scope: Scope) -> None:
    """All that runs in a scope is about to be cancelled: what it completed stays in the scope's ledger."""
    for track in scope.tracks.values():
        if track.hosted:
            keep(turn, track)


def _keep_instances(turn: Turn, host: Track, node: NodeProgram, loop: Scope) -> None:
    for scope in list(host.hosted.values()):
        if scope.kind is not ScopeKind.INSTANCE:
            continue
        for body in scope.tracks.values():
            inner = _body_of(body)
            if inner is None:
                continue
            keep_inside(turn, inner)
            if ledger_of(inner) in turn.state.ledgers:
                data = {**scope.data, **inner.data}
                _add(turn, body, node, inner=inner, data=data, ledger=loop.id, index=scope.index, partial=True)


def _keeps(program: Program, node: NodeProgram) -> bool:
    """Whether it is a sub-process with something in it that can be undone, and no transaction."""
    if node.id not in program.scopes or node.activity is None or node.activity.undo is None:
        return False
    return not node.activity.undo.is_transaction


# ------------------------------------------------------------------ what ends


def drop_all(turn: Turn, ledger: int) -> None:
    """A ledger ends with its scope, and all that is nested in it."""
    for entry in list(turn.state.ledgers.get(ledger, {}).values()):
        drop_entry(turn, entry)


def drop_entry(turn: Turn, entry: LedgerEntry) -> None:
    """It is undone, or cannot be undone any more; with what is nested in it."""
    entries = turn.state.ledgers[entry.ledger]
    del entries[entry.id]
    if not entries:
        del turn.state.ledgers[entry.ledger]
    turn.state.ledger.drop(entry.id)
    if entry.inner:
        drop_all(turn, entry.inner)
