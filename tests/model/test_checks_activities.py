"""Rules about gateways, activities and compensation: each with a model that breaks it and one that keeps it."""

from __future__ import annotations

import pytest

from tests.model.support import Case, assert_case, changed, findings, rule_of
from trioflow.model import (
    Definitions,
    Extensions,
    MultiInstanceLoopCharacteristics,
    ProcessBuilder,
    ResourceRole,
    Signal,
    SignalEventDefinition,
    check,
)
from trioflow.model.base import TRIOFLOW_NAMESPACE, Expression
from trioflow.model.builder import Path, compensate, for_each, loop, message, signal, timer, times

# ------------------------------------------------------------------ gateways


def gateway_direction(process: ProcessBuilder, *, broken: bool) -> None:
    """A gateway's direction is that of its flows."""
    gate = process.start("s").parallel("bad", direction="Converging" if broken else "Diverging")
    gate.end("a")
    gate.end("b")


def gateway_pointless(process: ProcessBuilder, *, broken: bool) -> None:
    """A gateway splits or joins."""
    gate = process.start("s").parallel("bad")
    gate.end("a")
    if not broken:
        gate.end("b")


def condition_after_parallel_gateway(process: ProcessBuilder, *, broken: bool) -> None:
    """A parallel gateway asks no condition."""
    process.start("s").parallel("g").end("a")
    process.end("b")
    process.flow("g", "b", flow_id="bad", condition="x" if broken else None)


def _event_gateway(process: ProcessBuilder, gateway_id: str = "g", *, instantiate: bool = False) -> Path:
    """An event-based gateway with one arm, ``first``."""
    gate = process.event_gateway(gateway_id, instantiate=instantiate)
    gate.catch("first", on=signal("x")).end("e1")
    return gate


def condition_after_event_gateway(process: ProcessBuilder, *, broken: bool) -> None:
    """An event-based gateway asks no condition."""
    gate = _event_gateway(process)
    process.start("s").to(gate)
    process.catch("c", on=signal("y")).end("e2")
    process.flow("g", "c", flow_id="bad", condition="x" if broken else None)


def exclusive_flow_without_condition(process: ProcessBuilder, *, broken: bool) -> None:
    """Where an exclusive gateway chooses, each flow but the default says when."""
    gate = process.start("s").exclusive("g")
    gate.when("x").end("a")
    process.end("b")
    process.flow("g", "b", flow_id="bad", default=not broken)


def no_default_flow(process: ProcessBuilder, *, broken: bool) -> None:
    """A gateway with conditions only can stop its token."""
    gate = process.start("s").inclusive("bad")
    gate.when("x").end("a")
    gate.when("y").end("b")
    if not broken:
        gate.otherwise().end("c")


def event_gateway_too_few(process: ProcessBuilder, *, broken: bool) -> None:
    """An event-based gateway has something to choose."""
    gate = _event_gateway(process, "bad")
    process.start("s").to(gate)
    if not broken:
        gate.catch("second", on=timer(duration="PT1H")).end("e2")


def event_gateway_target(process: ProcessBuilder, *, broken: bool) -> None:
    """An arm is a catch event or a receive task."""
    gate = _event_gateway(process)
    process.start("s").to(gate)
    arm = gate.task("bad") if broken else gate.receive("bad", message="m")
    arm.end("e2")


def event_gateway_mixed(process: ProcessBuilder, *, broken: bool) -> None:
    """Message events and receive tasks are not mixed."""
    gate = process.start("s").event_gateway("bad")
    gate.receive("r", message="m").end("e1")
    gate.catch("c", on=message("n") if broken else signal("n")).end("e2")


def event_gateway_boundary(process: ProcessBuilder, *, broken: bool) -> None:
    """A receive task that is an arm has no boundary events."""
    gate = _event_gateway(process)
    process.start("s").to(gate)
    gate.receive("r", message="m").task("t").end("e2")
    process.at("r" if broken else "t").boundary("bad", on=timer(duration="PT1H")).to("e2")


def event_gateway_other_way_in(process: ProcessBuilder, *, broken: bool) -> None:
    """An arm is reached from its gateway only."""
    gate = _event_gateway(process)
    process.start("s").to(gate)
    gate.catch("bad", on=signal("y")).end("e2")
    process.flow("s", "bad" if broken else "e2")


def event_gateway_start_with_incoming(process: ProcessBuilder, *, broken: bool) -> None:
    """A gateway that starts instances has no way in."""
    gate = _event_gateway(process, "bad", instantiate=True)
    gate.catch("second", on=signal("y")).end("e2")
    if broken:
        process.task("t").to(gate)


def event_gateway_parallel(process: ProcessBuilder, *, broken: bool) -> None:
    """The parallel kind is for starting instances."""
    gate = process.event_gateway("bad", event_gateway_type="Parallel", instantiate=not broken)
    gate.catch("c", on=signal("x")).end("e1")
    gate.catch("d", on=signal("y")).end("e2")


# ------------------------------------------------------------------ activities


def start_quantity(process: ProcessBuilder, *, broken: bool) -> None:
    """An activity starts with a token."""
    process.start("s").task("bad", start_quantity=0 if broken else 2).end("e")


def completion_quantity(process: ProcessBuilder, *, broken: bool) -> None:
    """An activity gives a token."""
    process.start("s").task("bad", completion_quantity=0 if broken else 2).end("e")


def loop_unbounded(process: ProcessBuilder, *, broken: bool) -> None:
    """A loop ends somehow."""
    process.start("s").task("bad", loop=loop() if broken else loop("x < 3")).end("e")


def loop_maximum(process: ProcessBuilder, *, broken: bool) -> None:
    """A loop's maximum is one or more."""
    process.start("s").task("bad", loop=loop(maximum=0 if broken else 1)).end("e")


def multi_instance_unbounded(process: ProcessBuilder, *, broken: bool) -> None:
    """A multi-instance knows how many."""
    process.start("s").task("bad", loop=MultiInstanceLoopCharacteristics() if broken else times(3)).end("e")


def multi_instance_both(process: ProcessBuilder, *, broken: bool) -> None:
    """A multi-instance is told once how many."""
    process.data_object("list")
    both = MultiInstanceLoopCharacteristics(loop_cardinality=Expression(text="3"), loop_data_input_ref="list")
    process.start("s").task("bad", loop=both if broken else for_each("list")).end("e")


def multi_instance_concurrency(process: ProcessBuilder, *, broken: bool) -> None:
    """A bound of concurrency is a positive number."""
    process.start("s").task("bad", loop=times(3, max_concurrent=0 if broken else 1)).end("e")


def multi_instance_event_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A multi-instance that throws says what."""
    process.document.add(SignalEventDefinition(id="done", signal_ref=process.document.signal("x").id))
    loop_kind = MultiInstanceLoopCharacteristics(
        loop_cardinality=Expression(text="3"), behavior="One", one_behavior_event_ref=None if broken else "done"
    )
    process.start("s").task("bad", loop=loop_kind).end("e")


def receive_without_message(process: ProcessBuilder, *, broken: bool) -> Definitions | None:
    """A receive task names its message."""
    process.start("s").receive("bad", message="m").end("e")
    return changed(process.build(), "bad", message_ref=None) if broken else None


def receive_start_with_incoming(process: ProcessBuilder, *, broken: bool) -> None:
    """A receive task that starts instances has no way in."""
    process.receive("bad", message="m", instantiate=True).end("e")
    if broken:
        process.task("t").to("bad")


def script_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A script task has a script."""
    process.start("s").script("bad", " " if broken else "x = 1", script_format="text/x-python").end("e")


def script_format_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A script names its language."""
    process.start("s").script("bad", "x = 1", script_format=None if broken else "text/x-python").end("e")


def resource_role(process: ProcessBuilder, *, broken: bool) -> None:
    """A role has a resource or an assignment expression."""
    role = ResourceRole(id="bad", resource_ref="r" if broken else None, assignment_expression=Expression(text="boss"))
    process.start("s").user("u", resources=[role]).end("e")


def call_without_target(process: ProcessBuilder, *, broken: bool) -> None:
    """A call activity names what it calls."""
    process.start("s").call("bad", process="" if broken else "other").end("e")


def call_target_wrong(process: ProcessBuilder, *, broken: bool) -> None:
    """What is called is callable."""
    process.document.add(Signal(id="x", name="x"))
    process.start("s").call("bad", process="x" if broken else "p").end("e")


def call_without_none_start(process: ProcessBuilder, *, broken: bool) -> None:
    """A called process starts without a trigger."""
    other = process.document.process("other")
    other.start("s2", on=signal("x") if broken else None).end("e2")
    process.start("s").call("bad", process="other").end("e")


def ad_hoc_empty(process: ProcessBuilder, *, broken: bool) -> None:
    """An ad-hoc sub-process has an activity."""
    with process.start("s").ad_hoc("bad") as inside:
        if not broken:
            inside.task("t")
    process.at("bad").end("e")


def ad_hoc_start_or_end(process: ProcessBuilder, *, broken: bool) -> None:
    """An ad-hoc sub-process has no start event."""
    with process.start("s").ad_hoc("a") as inside:
        inside.task("t")
        if broken:
            inside.start("bad")
    process.at("a").end("e")


def public_executable(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A public process is not executable."""
    bad = process.document.process("bad", process_type="Public" if broken else "Private")
    bad.start("s").end("e")
    return process.build()


def process_not_executable(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A process that says it is not executable is pointed out."""
    bad = process.document.process("bad", executable=not broken)
    bad.start("s").end("e")
    return process.build()


# ------------------------------------------------------------------ compensation


def compensation_boundary_with_flow(process: ProcessBuilder, *, broken: bool) -> None:
    """A compensation boundary event has no flow."""
    path = process.start("s").task("t")
    path.end("e")
    boundary = path.boundary("bad", on=compensate()).undone_by(process.task("u", for_compensation=True))
    if broken:
        boundary.to("e")


def compensation_boundary_without_handler(process: ProcessBuilder, *, broken: bool) -> None:
    """A compensation boundary event has a handler."""
    path = process.start("s").task("t")
    path.end("e")
    boundary = path.boundary("bad", on=compensate())
    if not broken:
        boundary.undone_by(process.task("u", for_compensation=True))


def compensation_several_handlers(process: ProcessBuilder, *, broken: bool) -> None:
    """A compensation boundary event has one handler."""
    path = process.start("s").task("t")
    path.end("e")
    boundary = path.boundary("bad", on=compensate()).undone_by(process.task("u", for_compensation=True))
    if broken:
        boundary.undone_by(process.task("v", for_compensation=True))


def compensation_handler_unmarked(process: ProcessBuilder, *, broken: bool) -> None:
    """A handler is marked for compensation."""
    path = process.start("s").task("t")
    path.end("e")
    path.boundary("b", on=compensate()).undone_by(process.task("bad", for_compensation=not broken))


def compensation_handler_in_flow(process: ProcessBuilder, *, broken: bool) -> None:
    """A handler stands outside the flow."""
    path = process.start("s").task("t")
    path.end("e")
    path.boundary("b", on=compensate()).undone_by(process.task("bad", for_compensation=True))
    if broken:
        process.flow("t", "bad")


def compensation_handler_unlinked(process: ProcessBuilder, *, broken: bool) -> None:
    """A handler is linked to what it undoes."""
    path = process.start("s").task("t")
    path.end("e")
    boundary = path.boundary("b", on=compensate())
    process.task("bad", for_compensation=True)
    if not broken:
        boundary.undone_by("bad")


def compensation_handler_doubled(process: ProcessBuilder, *, broken: bool) -> None:
    """An activity is undone in one way."""
    with process.start("s").subprocess("sub") as inside:
        inside.start("s1").end("e1")
        with inside.event_subprocess("own") as own:
            own.start("s2", on=compensate() if broken else signal("x")).end("e2")
    process.at("sub").end("e")
    undo = process.task("u", for_compensation=True)
    process.at("sub").boundary("bad", on=compensate()).undone_by(undo)


def compensation_target_invisible(process: ProcessBuilder, *, broken: bool) -> None:
    """A throw in a handler sees the scope around the handler, not the inside of a sub-process."""
    with process.start("s").subprocess("sub") as inside:
        inside.start("s1").task("deep").end("e1")
    process.at("sub").end("e")
    with process.event_subprocess("handler") as handler:
        handler.start("s2", on=signal("x")).end("bad", on=compensate("deep" if broken else "sub"))


CASES: tuple[Case, ...] = (
    gateway_direction,
    gateway_pointless,
    condition_after_parallel_gateway,
    condition_after_event_gateway,
    exclusive_flow_without_condition,
    no_default_flow,
    event_gateway_too_few,
    event_gateway_target,
    event_gateway_mixed,
    event_gateway_boundary,
    event_gateway_other_way_in,
    event_gateway_start_with_incoming,
    event_gateway_parallel,
    start_quantity,
    completion_quantity,
    loop_unbounded,
    loop_maximum,
    multi_instance_unbounded,
    multi_instance_both,
    multi_instance_concurrency,
    multi_instance_event_missing,
    receive_without_message,
    receive_start_with_incoming,
    script_missing,
    script_format_missing,
    resource_role,
    call_without_target,
    call_target_wrong,
    call_without_none_start,
    ad_hoc_empty,
    ad_hoc_start_or_end,
    public_executable,
    process_not_executable,
    compensation_boundary_with_flow,
    compensation_boundary_without_handler,
    compensation_several_handlers,
    compensation_handler_unmarked,
    compensation_handler_in_flow,
    compensation_handler_unlinked,
    compensation_handler_doubled,
    compensation_target_invisible,
)


@pytest.mark.parametrize("case", CASES, ids=rule_of)
def test_rule(case: Case) -> None:
    """The rule finds the culprit, and is silent about the model that keeps it."""
    assert_case(case)


@pytest.mark.parametrize(
    "direction,incoming,outgoing,fits",
    [
        ("Converging", 2, 1, True),
        ("Converging", 2, 2, False),
        ("Converging", 1, 1, True),
        ("Diverging", 1, 2, True),
        ("Diverging", 2, 2, False),
        ("Diverging", 1, 1, True),
        ("Mixed", 2, 2, True),
        ("Mixed", 2, 1, False),
        ("Mixed", 1, 2, False),
        ("Unspecified", 2, 1, True),
        ("Unspecified", 1, 2, True),
    ],
)
def test_directions(direction: str, incoming: int, outgoing: int, fits: bool) -> None:  # noqa: FBT001 - a column
    """Converging allows one flow out, diverging one flow in, mixed wants many of both; nothing else is said (8.4.9)."""
    process = ProcessBuilder("p")
    gate = process.parallel("g", direction=direction)
    for number in range(incoming):
        process.task(f"in{number}").to(gate)
    for number in range(outgoing):
        gate.task(f"out{number}")
    found = [finding.rule for finding in check(process.build()) if finding.rule == "gateway-direction"]
    assert found == ([] if fits else ["gateway-direction"])


def test_max_concurrent_must_be_a_number() -> None:
    """A text that is no number is refused as a bound of concurrency, not ignored."""
    process = ProcessBuilder("p")
    own = Extensions(attributes=((f"{{{TRIOFLOW_NAMESPACE}}}maxConcurrent", "many"),))
    several = MultiInstanceLoopCharacteristics(loop_cardinality=Expression(text="3"), extensions=own)
    process.start("s").task("t", loop=several).end("e")
    assert [finding.rule for finding in check(process.build())] == ["multi-instance-concurrency"]


def test_findings_name_values() -> None:
    """A message carries the offending value, so that nobody has to look it up."""
    (found,) = findings(start_quantity, broken=True)
    assert "startQuantity is 0" in found.message
