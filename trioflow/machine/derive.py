"""Rebuilding the derived indexes of a state that was folded from its pieces (``docs/explanation/how-it-works.md``).

It touches nothing and takes no id: a hydrated state equals the one that was captured.
"""

from __future__ import annotations

from trioflow.machine import joins, ledger, sweeps, waits
from trioflow.machine.program import Program
from trioflow.machine.state import Resume, State

__all__ = ["derive"]


def derive(program: Program, state: State) -> None:
    """Fill every attribute that is marked *derived*, from the stored ones, in the order of ids."""
    for track in state.tracks.values():
        scope = state.scopes[track.scope]
        scope.tracks[track.id] = track
        if program.nodes[track.node].behaviour.handles:
            scope.handlers += 1
        if track.state.at_rest:
            scope.occupied[track.node] = scope.occupied.get(track.node, 0) + 1
    for scope in state.scopes.values():
        if scope.host is not None:
            state.tracks[scope.host].hosted[scope.id] = scope
    for entry in state.ledger.values():
        ledger.attach(state, entry)
    sweeps.index(state)
    for wait in state.waits.values():
        waits.attach(program, state, wait)
    joins.index(program, state)
    _attach_incidents(state)
    joins.derive(program, state)


def _attach_incidents(state: State) -> None:
    for incident in state.open_incidents():
        if incident.resume is Resume.JOIN:
            state.scopes[incident.scope].joins[incident.node].incident = incident
        elif incident.resume is Resume.ARM:
            state.waits[incident.wait].incident = incident
        else:
            state.tracks[incident.track].incident = incident
