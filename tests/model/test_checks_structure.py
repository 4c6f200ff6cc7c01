"""Rules about flows and nodes: each with a model that breaks it and one that keeps it."""

from __future__ import annotations

import pytest

from tests.model.support import Case, assert_case, changed, rule_of
from trioflow.model import BoundaryEvent, Definitions, ProcessBuilder, SequenceFlow, TimerEventDefinition, check
from trioflow.model.builder import compensate, message, timer


def id_missing(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A node has an id."""
    process.start("s").task("t").end("e")
    return changed(process.build(), "t", id="" if broken else "t")


def flow_end_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A flow ends at a flow node."""
    process.start("s").task("t").end("e")
    process.data_object("d")
    process.add(SequenceFlow(id="bad", source_ref="t", target_ref="d" if broken else "e"))


def flow_across_scopes(process: ProcessBuilder, *, broken: bool) -> None:
    """A flow stays in its scope."""
    with process.start("s").subprocess("sub") as inside:
        inside.start("s2").end("e2")
    process.at("sub").end("e")
    process.add(SequenceFlow(id="bad", source_ref="sub", target_ref="e2" if broken else "e"))


def flow_in_other_scope(process: ProcessBuilder, *, broken: bool) -> None:
    """A flow is written where its nodes are."""
    with process.start("s").subprocess("sub") as inside:
        inside.start("s2").end("e2")
    process.at("sub").end("e")
    holder = inside if broken else process
    holder.add(SequenceFlow(id="bad", source_ref="sub", target_ref="e"))


def flow_unlisted(process: ProcessBuilder, *, broken: bool) -> Definitions | None:
    """The nodes list their flow."""
    process.start("s")
    process.end("e")
    process.flow("s", "e", flow_id="bad")
    return changed(process.build(), "e", incoming=()) if broken else None


def listed_flow_unknown(process: ProcessBuilder, *, broken: bool) -> Definitions | None:
    """Listed flows exist."""
    process.start("bad").end("e")
    return changed(process.build(), "bad", outgoing=("flow_bad_e", "ghost")) if broken else None


def flow_not_immediate(process: ProcessBuilder, *, broken: bool) -> None:
    """A flow of an executable process is immediate."""
    process.start("s")
    process.end("e")
    process.add(SequenceFlow(id="bad", source_ref="s", target_ref="e", is_immediate=False if broken else None))


def lone_conditional_flow(process: ProcessBuilder, *, broken: bool) -> None:
    """A conditional flow out of an activity is not the only one."""
    process.start("s").task("t")
    process.end("e")
    process.flow("t", "e", flow_id="bad", condition="x > 1")
    if not broken:
        process.at("t").otherwise().to("e")


def condition_on_event_flow(process: ProcessBuilder, *, broken: bool) -> None:
    """A flow out of an event has no condition."""
    process.start("s")
    process.end("e")
    process.flow("s", "e", flow_id="bad", condition="x > 1" if broken else None)


def default_not_outgoing(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """The default is an outgoing flow."""
    process.start("s").task("bad").end("e")
    return changed(process.build(), "bad", default="flow_s_bad" if broken else "flow_bad_e")


def default_with_condition(process: ProcessBuilder, *, broken: bool) -> Definitions | None:
    """The default has no condition."""
    process.start("s").exclusive("g")
    process.end("e")
    process.flow("g", "e", flow_id="bad", condition="x" if broken else None)
    return changed(process.build(), "g", default="bad")


def boundary_host_missing(process: ProcessBuilder, *, broken: bool) -> Definitions | None:
    """A boundary event stands at an activity of its scope."""
    process.start("s").task("t").end("e")
    process.at("t").boundary("bad", on=timer(duration="PT1H")).to("e")
    return changed(process.build(), "bad", attached_to_ref="s") if broken else None


def boundary_at_event_sub_process(process: ProcessBuilder, *, broken: bool) -> None:
    """A boundary event does not stand at an event sub-process."""
    with process.event_subprocess("handler") as handler:
        handler.start("hs", on=message("m")).end("he")
    process.start("s").task("t").end("e")
    process.boundary("handler" if broken else "t", "bad", on=timer(duration="PT1H")).to("e")


def boundary_with_incoming(process: ProcessBuilder, *, broken: bool) -> None:
    """Nothing flows to a boundary event."""
    process.start("s").task("t").end("e")
    process.at("t").boundary("bad", on=timer(duration="PT1H")).to("e")
    process.flow("t", "bad" if broken else "e")


def boundary_without_outgoing(process: ProcessBuilder, *, broken: bool) -> None:
    """A boundary event leads somewhere."""
    process.start("s").task("t").end("e")
    path = process.at("t").boundary("bad", on=timer(duration="PT1H"))
    if not broken:
        path.to("e")


def start_with_incoming(process: ProcessBuilder, *, broken: bool) -> None:
    """Nothing flows to a start event."""
    process.start("bad").task("t").end("e")
    process.flow("t", "bad" if broken else "e")


def end_with_outgoing(process: ProcessBuilder, *, broken: bool) -> None:
    """Nothing flows from an end event."""
    process.start("s").task("t").end("bad")
    process.flow("bad" if broken else "t", "t")


def event_sub_process_with_flows(process: ProcessBuilder, *, broken: bool) -> None:
    """An event sub-process has no flows."""
    process.start("s").task("t").end("e")
    with process.event_subprocess("bad") as handler:
        handler.start("hs", on=message("m")).end("he")
    process.flow("t", "bad" if broken else "e")


def start_without_outgoing(process: ProcessBuilder, *, broken: bool) -> None:
    """A start event leads somewhere."""
    process.start("bad")
    process.end("e")
    if not broken:
        process.flow("bad", "e")


def end_without_incoming(process: ProcessBuilder, *, broken: bool) -> None:
    """An end event is reached."""
    process.start("s").end("e")
    process.end("bad")
    if not broken:
        process.flow("s", "bad")


def end_without_start(process: ProcessBuilder, *, broken: bool) -> None:
    """With an end event there is a start: a start event, or a node that instantiates."""
    if broken:
        process.task("t").end("bad")
    else:
        process.receive("t", message="m", instantiate=True).end("bad")


def start_without_end(process: ProcessBuilder, *, broken: bool) -> None:
    """With a start event there is an end event."""
    path = process.start("bad").task("t")
    if not broken:
        path.end("e")


def node_unreachable(process: ProcessBuilder, *, broken: bool) -> None:
    """Beside a start event every node is reached; a compensation handler by its association."""
    booked = process.start("s").task("book")
    booked.end("e")
    process.task("bad", for_compensation=not broken)
    if broken:
        process.flow("bad", "e")
    else:
        booked.boundary("undo", on=compensate()).undone_by("bad")


def node_without_outgoing(process: ProcessBuilder, *, broken: bool) -> None:
    """Beside an end event every node leads on."""
    process.start("s").end("e")
    path = process.at("s").task("bad")
    if not broken:
        path.to("e")


def intermediate_without_incoming(process: ProcessBuilder, *, broken: bool) -> None:
    """An intermediate event is reached."""
    process.start("s").end("e")
    process.throw("bad").to("e")
    if not broken:
        process.flow("s", "bad")


def intermediate_without_outgoing(process: ProcessBuilder, *, broken: bool) -> None:
    """An intermediate event leads on."""
    process.start("s").end("e")
    path = process.at("s").throw("bad")
    if not broken:
        path.to("e")


CASES: tuple[Case, ...] = (
    id_missing,
    flow_end_missing,
    flow_across_scopes,
    flow_in_other_scope,
    flow_unlisted,
    listed_flow_unknown,
    flow_not_immediate,
    lone_conditional_flow,
    condition_on_event_flow,
    default_not_outgoing,
    default_with_condition,
    boundary_host_missing,
    boundary_at_event_sub_process,
    boundary_with_incoming,
    boundary_without_outgoing,
    start_with_incoming,
    end_with_outgoing,
    event_sub_process_with_flows,
    start_without_outgoing,
    end_without_incoming,
    end_without_start,
    start_without_end,
    node_unreachable,
    node_without_outgoing,
    intermediate_without_incoming,
    intermediate_without_outgoing,
)


@pytest.mark.parametrize("case", CASES, ids=rule_of)
def test_rule(case: Case) -> None:
    """The rule finds the culprit, and is silent about the model that keeps it."""
    assert_case(case)


def test_implicit_start_and_end_are_legal() -> None:
    """A scope without start and end events begins at its nodes without incoming flow: no finding at all."""
    process = ProcessBuilder("p")
    process.task("a").task("b")
    assert check(process.build()) == ()


@pytest.mark.parametrize(
    "node,fields,rule",
    [("s", {"outgoing": ()}, "start-without-outgoing"), ("e", {"incoming": ()}, "end-without-incoming")],
)
def test_events_list_their_flows(node: str, fields: dict[str, tuple[str, ...]], rule: str) -> None:
    """A start event says where it leads, an end event what leads to it, also where the flow itself is drawn."""
    process = ProcessBuilder("p")
    process.start("s").end("e")
    found = check(changed(process.build(), node, **fields))
    assert {finding.rule for finding in found} == {rule, "flow-unlisted"}
    assert [finding.element_id for finding in found if finding.rule == rule] == [node]


def test_boundary_event_in_another_scope() -> None:
    """A boundary event outside its host's scope is refused, naming both scopes."""
    process = ProcessBuilder("p")
    with process.start("s").subprocess("sub") as inside:
        inside.start("s2").task("t").end("e2")
    process.at("sub").end("e")
    process.add(BoundaryEvent(id="late", attached_to_ref="t", event_definitions=(TimerEventDefinition(),)))
    found = [finding for finding in check(process.build()) if finding.rule == "boundary-host-missing"]
    assert [finding.message for finding in found] == ["It stands in 'p', its host in 'sub'."]
