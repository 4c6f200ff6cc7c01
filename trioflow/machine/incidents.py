"""What an operator can do about an incident: retry, resolve, drop (``docs/howto/incidents.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trioflow.errors import UnstorableValue
from trioflow.machine import activities, joins
from trioflow.machine.events import DropIncident, ResolveIncident, RetryIncident
from trioflow.machine.program import FlowProgram, NodeProgram
from trioflow.machine.state import FailedArming, Incident, IncidentState, Resume, ScopeKind, Track, TrackState
from trioflow.machine.triggers import arm_again
from trioflow.machine.turn import Turn

__all__ = ["drop", "resolve", "retry"]


def retry(turn: Turn, event: RetryIncident) -> None:
    """Try again what failed: the same step under the same key, or with changed variables as a new entry."""
    incident = _open(turn, event.incident)
    if incident is None:
        return
    if event.variables is not None and not _commit(turn, incident, event.variables):
        return
    turn.facts.append(("incident-retried", incident.node, incident.track, {"incident": incident.id}))
    if incident.resume is Resume.JOIN:
        joins.look_again(turn, turn.state.scopes[incident.scope], incident.node)
        return
    if incident.resume is Resume.ARM:
        arm_again(turn, _failed_arming(turn, incident))
        return
    track = turn.state.tracks[incident.track]
    turn.close_incident(track)
    node = turn.program.nodes[track.node]
    if incident.resume is Resume.LEAVE:
        activities.leave(turn, track, node)
        return
    turn.lift(track)
    if incident.resume is Resume.RUN and event.variables is None:
        node.behaviour.again(turn, track, node)
        return
    track.state = TrackState.READY
    turn.state.tracks.touch(track)
    turn.state.agenda.append(track)


def resolve(turn: Turn, event: ResolveIncident) -> None:
    """Go on as if the step had worked, with the given outputs, along the given flows or those the node chooses.

    At a stuck join: fire with what is there.
    """
    incident = _open(turn, event.incident)
    if incident is None:
        return
    node = turn.program.nodes[incident.node]
    flows = _flows(turn, incident, node, event.flows)
    if turn.refusal or (event.outputs and not _commit(turn, incident, event.outputs)):
        return
    turn.facts.append(("incident-resolved", incident.node, incident.track, {"incident": incident.id}))
    if incident.resume is Resume.ARM:
        turn.withdraw(_failed_arming(turn, incident))  # its host goes on without the event
        return
    if incident.resume is Resume.JOIN:
        _fire(turn, incident, node, flows)
        return
    track = turn.state.tracks[incident.track]
    turn.close_incident(track)
    turn.withdraw_all(track)
    if flows:
        turn.take(track, flows)
    elif incident.resume is Resume.LEAVE:
        activities.leave(turn, track, node)
    else:
        node.behaviour.resolved(turn, track, node)


def _fire(turn: Turn, incident: Incident, node: NodeProgram, flows: list[FlowProgram]) -> None:
    survivor = joins.fire_with_what_is_there(turn, turn.state.scopes[incident.scope], node, flows)
    if survivor is not None and node.activity is not None:
        activities.begin(turn, survivor, node, node.activity)


def drop(turn: Turn, event: DropIncident) -> None:
    """Give the token up; the record stays as a dead letter.  At a stuck join: all the tokens that wait there."""
    incident = _open(turn, event.incident)
    if incident is None:
        return
    incident.state = IncidentState.DROPPED
    incident.last = turn.now
    turn.state.incidents.put(incident)
    turn.facts.append(("incident-dropped", incident.node, incident.track, {"incident": incident.id}))
    if incident.resume is Resume.ARM:
        wait = _failed_arming(turn, incident)
        wait.incident = None  # the record stays, what it named does not
        incident.wait = 0
        turn.withdraw(wait)
        return
    for track in _pinned(turn, incident):
        turn.end(track)


def _pinned(turn: Turn, incident: Incident) -> list[Track]:
    """The tokens that the incident holds, taken out of what holds them."""
    if incident.resume is Resume.JOIN:
        return joins.surrender(turn, turn.state.scopes[incident.scope], turn.program.nodes[incident.node])
    track = turn.state.tracks[incident.track]
    track.incident = None
    return [track]


def _failed_arming(turn: Turn, incident: Incident) -> FailedArming:
    wait = turn.state.waits[incident.wait]
    assert isinstance(wait, FailedArming)
    return wait


def _open(turn: Turn, incident_id: int) -> Incident | None:
    incident = turn.state.incidents.get(incident_id)
    if incident is not None and incident.state is IncidentState.OPEN:
        return incident
    known = ", ".join(str(each.id) for each in turn.state.open_incidents()) or "none"
    turn.refuse(f"there is no open incident {incident_id} (open ones: {known}); it may have been overtaken")
    return None


def _commit(turn: Turn, incident: Incident, values: Mapping[str, Any]) -> bool:
    """Write an operator's variables into the scope of the incident; False: refused."""
    try:
        canonical = turn.canonical(values, f"incident {incident.id}")
    except UnstorableValue as error:
        turn.refuse(str(error))
        return False
    turn.write_in(incident.scope, incident.node, canonical)
    return True


def _flows(turn: Turn, incident: Incident, node: NodeProgram, wanted: tuple[str, ...]) -> list[FlowProgram]:
    if wanted and incident.resume is Resume.ARM:
        turn.refuse(f"incident {incident.id} is of an event that could not be armed: no token is there to take a flow")
        return []
    if wanted and incident.track and turn.state.scopes[incident.scope].kind is ScopeKind.INSTANCE:
        turn.refuse(f"incident {incident.id} is in one instance of {node.label}, which takes no flow of its own")
        return []
    objection = "" if incident.resume is Resume.ARM else node.behaviour.objection(node, wanted)
    if objection:
        turn.refuse(f"{node.label} {objection}")
        return []
    known = {flow.id for flow in node.outgoing}
    for flow_id in wanted:
        if flow_id not in known:
            choices = ", ".join(flow.id for flow in node.outgoing) or "none"
            turn.refuse(f"{node.label} has no outgoing sequence flow {flow_id!r}: choose among {choices}")
            return []
    return [flow for flow in node.outgoing if flow.id in wanted]
