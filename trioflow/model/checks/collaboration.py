"""The document as a whole: ids, participants, message flows (clauses 8.3.1, 9 and 10.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from trioflow.model.activities import Activity
from trioflow.model.base import BaseElement
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import described, walk
from trioflow.model.events import (
    EndEvent,
    Event,
    IntermediateCatchEvent,
    IntermediateThrowEvent,
    MessageEventDefinition,
    StartEvent,
)
from trioflow.model.findings import Level
from trioflow.model.flow import FlowNode
from trioflow.model.process import Collaboration, Definitions, MessageFlow, Participant

__all__ = ["RULES"]

_Carried = TypeVar("_Carried", Participant, MessageFlow)


def duplicate_id(definitions: Definitions) -> Iterator[Problem]:
    """Ids are unique in the document (8.3.1)."""
    seen: dict[str, BaseElement] = {}
    for element in walk(definitions):
        if element.id and seen.setdefault(element.id, element) is not element:
            yield Problem(
                element,
                f"The id {element.id!r} is also that of a {seen[element.id].tag}.",
                "Give each element its own.",
            )


def process_id_missing(definitions: Definitions) -> Iterator[Problem]:
    """A process has an id: it is its key."""
    for process in definitions.processes:
        if not process.id:
            yield Problem(process, "A process has no id.", "Give it an id: processes are started by it.")


def multiplicity(definitions: Definitions) -> Iterator[Problem]:
    """A participant's multiplicity is a range (9.3.1)."""
    for participant in _of(definitions, Participant):
        low, high = participant.minimum, participant.maximum
        if low is not None and low < 0:
            yield Problem(participant, f"Its minimum is {low}.", "Use 0 or more.")
        if high is not None and (high < 1 or high < (low or 0)):
            yield Problem(
                participant, f"Its maximum is {high}, its minimum {low}.", "Use 1 or more, not below the minimum."
            )


# ------------------------------------------------------------------ message flows


def message_flow_end(definitions: Definitions) -> Iterator[Problem]:
    """A message flow connects participants, activities and events (9.4)."""
    by_id = _by_id(definitions)
    for flow in _of(definitions, MessageFlow):
        for end, ref in (("source", flow.source_ref), ("target", flow.target_ref)):
            node = by_id.get(ref)
            if not isinstance(node, (Participant, Activity, Event)):
                what = "does not exist" if node is None else f"is {described(node)}"
                yield Problem(flow, f"Its {end} {ref!r} {what}.", "Connect participants, activities or events.")


def message_flow_in_pool(definitions: Definitions) -> Iterator[Problem]:
    """A message flow leaves its pool (9.4)."""
    pools = _pools(definitions)
    for flow in _of(definitions, MessageFlow):
        source, target = pools.get(flow.source_ref), pools.get(flow.target_ref)
        if source is not None and source == target:
            yield Problem(flow, f"Both its ends are in the pool of {source!r}.", "Use a sequence flow.")


def message_flow_out(definitions: Definitions) -> Iterator[Problem]:
    """Start and catch events send nothing; an end event that sends has a message (10.5.2 to 10.5.4)."""
    by_id = _by_id(definitions)
    for flow in _of(definitions, MessageFlow):
        node = by_id.get(flow.source_ref)
        if isinstance(node, (StartEvent, IntermediateCatchEvent)):
            yield Problem(node, f"The message flow {flow.id!r} leaves it, but it only waits.", "Turn the flow around.")
        elif isinstance(node, EndEvent) and not _has_message(node, by_id):
            yield Problem(
                node, f"The message flow {flow.id!r} leaves it, but it has no message definition.", "Add a message."
            )


def message_flow_in(definitions: Definitions) -> Iterator[Problem]:
    """End and throw events receive nothing; a start event that receives has a message (10.5.2 to 10.5.4)."""
    by_id = _by_id(definitions)
    for flow in _of(definitions, MessageFlow):
        node = by_id.get(flow.target_ref)
        if isinstance(node, (EndEvent, IntermediateThrowEvent)):
            yield Problem(
                node, f"The message flow {flow.id!r} leads to it, but it only sends.", "Turn the flow around."
            )
        elif isinstance(node, StartEvent) and not _has_message(node, by_id):
            yield Problem(
                node, f"The message flow {flow.id!r} leads to it, but it has no message definition.", "Add a message."
            )


def _has_message(event: Event, by_id: dict[str, BaseElement]) -> bool:
    referred = (by_id.get(ref) for ref in event.event_definition_refs)
    return any(isinstance(each, MessageEventDefinition) for each in (*event.event_definitions, *referred))


def _pools(definitions: Definitions) -> dict[str, str]:
    """Participant and node ids to the process of their pool (to the participant where it has none)."""
    pools = {each.id: each.process_ref or each.id for each in _of(definitions, Participant)}
    for process in definitions.processes:
        pools |= {element.id: process.id for element in walk(process) if isinstance(element, FlowNode)}
    return pools


def _of(definitions: Definitions, kind: type[_Carried]) -> Iterator[_Carried]:
    for collaboration in definitions.root_elements:
        if isinstance(collaboration, Collaboration):
            yield from (element for element in walk(collaboration) if isinstance(element, kind))


def _by_id(definitions: Definitions) -> dict[str, BaseElement]:
    return {element.id: element for element in walk(definitions) if element.id}


RULES: Table[Definitions] = (
    Rule("duplicate-id", Level.ERROR, "8.3.1", duplicate_id),
    Rule("process-id-missing", Level.ERROR, "choice", process_id_missing),
    Rule("participant-multiplicity", Level.VIOLATION, "9.3.1", multiplicity),
    Rule("message-flow-end", Level.VIOLATION, "9.4", message_flow_end),
    Rule("message-flow-in-pool", Level.VIOLATION, "9.4", message_flow_in_pool),
    Rule("message-flow-out", Level.VIOLATION, "10.5", message_flow_out),
    Rule("message-flow-in", Level.VIOLATION, "10.5", message_flow_in),
)
"""Rules about ids and collaborations, over the whole document."""
