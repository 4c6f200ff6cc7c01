"""Rules about events and links, and the whole table of which kind is legal where."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.model.support import Case, assert_case, changed, rule_of
from trioflow.model import (
    Collaboration,
    ConditionalEventDefinition,
    CorrelationKey,
    Definitions,
    ErrorEventDefinition,
    EscalationEventDefinition,
    EventDefinition,
    Expression,
    Extensions,
    LinkEventDefinition,
    MessageEventDefinition,
    ProcessBuilder,
    SignalEventDefinition,
    TimerEventDefinition,
    check,
)
from trioflow.model.builder import (
    Trigger,
    cancel,
    compensate,
    condition,
    error,
    escalation,
    link,
    message,
    signal,
    terminate,
    timer,
)


def event_kind_misplaced(process: ProcessBuilder, *, broken: bool) -> None:
    """A timer cannot be thrown."""
    process.start("s").throw("bad", on=timer(duration="PT1H") if broken else signal("x")).end("e")


def compensation_boundary_non_interrupting(process: ProcessBuilder, *, broken: bool) -> None:
    """A compensation boundary event says nothing of cancelling."""
    path = process.start("s").task("t")
    path.end("e")
    undo = process.task("undo", for_compensation=True)
    path.boundary("bad", on=compensate(), interrupting=not broken).undone_by(undo)


def event_definition_unresolved(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A definition by reference exists."""
    process.document.add(SignalEventDefinition(id="known", signal_ref=process.document.signal("x").id))
    process.start("s").catch("bad", on=None).end("e")
    return changed(process.build(), "bad", event_definition_refs=("ghost" if broken else "known",))


def event_definition_shared(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A throw event's own definition is not referred to elsewhere."""
    signal_id = process.document.signal("x").id
    owned = SignalEventDefinition(id="owned", signal_ref=signal_id)
    process.document.add(SignalEventDefinition(id="free", signal_ref=signal_id))
    process.start("s").throw("t", on=owned).catch("bad", on=None).end("e")
    return changed(process.build(), "bad", event_definition_refs=("owned" if broken else "free",))


def catch_without_message(process: ProcessBuilder, *, broken: bool) -> None:
    """A catching message event names its message."""
    process.start("s").catch("bad", on=MessageEventDefinition() if broken else message("m")).end("e")


def throw_without_message(process: ProcessBuilder, *, broken: bool) -> None:
    """A throwing message event names its message, unless an extension carries it out."""
    extended = MessageEventDefinition(extensions=Extensions(attributes=(("{urn:vendor}topic", "mail"),)))
    process.start("s").throw("bad", on=MessageEventDefinition() if broken else extended).end("e")


def message_ref_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """An operation alone is not enough for the standard."""
    bare = MessageEventDefinition(operation_ref="o")
    process.start("s").catch("bad", on=bare if broken else message("m", operation="o")).end("e")


def operation_ref_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """The standard wants an operation at each message event."""
    process.start("s").catch("bad", on=message("m", operation=None if broken else "o")).end("e")


def signal_ref_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A signal event names its signal."""
    process.start("s").catch("bad", on=SignalEventDefinition() if broken else signal("x")).end("e")


def error_code_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A thrown error has a code."""
    process.start("s").end("bad", on=ErrorEventDefinition() if broken else error("E"))


def escalation_code_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A thrown escalation has a code."""
    process.start("s").throw("bad", on=EscalationEventDefinition() if broken else escalation("E")).end("e")


def timer_not_one(process: ProcessBuilder, *, broken: bool) -> None:
    """A timer has exactly one text."""
    both = TimerEventDefinition(time_date=Expression(text="d"), time_cycle=Expression(text="R/PT1H"))
    process.start("s").catch("bad", on=both if broken else timer(date="d")).end("e")


def condition_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """A conditional event has a condition."""
    process.start("s").catch("bad", on=ConditionalEventDefinition() if broken else condition("x")).end("e")


def parallel_multiple_alone(process: ProcessBuilder, *, broken: bool) -> None:
    """Parallel multiple takes two definitions."""
    triggers = [signal("x")] if broken else [signal("x"), signal("y")]
    process.start("s").catch("bad", on=triggers, parallel=True).end("e")


def parallel_start_without_keys(process: ProcessBuilder, *, broken: bool) -> None:
    """Messages that start one instance together have keys to be found by."""
    triggers = [message("a", key=None if broken else "id"), message("b", key=None if broken else "id")]
    process.start("bad", on=triggers, parallel=True).end("e")


def cancel_outside_transaction(process: ProcessBuilder, *, broken: bool) -> None:
    """A cancel end event lies in a transaction, at any depth."""
    path = process.start("s")
    outer = path.subprocess("outer") if broken else path.transaction("outer")
    outer.end("e")
    with outer as inside, inside.start("s1").subprocess("inner") as innermost:
        innermost.start("s2").end("bad", on=cancel())
    inside.at("inner").end("e1")


def cancel_uncaught(process: ProcessBuilder, *, broken: bool) -> None:
    """A transaction that can be cancelled has a cancel boundary event."""
    with process.start("s").transaction("t") as inside:
        inside.start("s1").end("bad", on=cancel())
    process.at("t").end("e")
    if not broken:
        process.at("t").boundary("b", on=cancel()).to("e")


def event_sub_process_starts(process: ProcessBuilder, *, broken: bool) -> None:
    """An event sub-process has one start event."""
    process.start("s").end("e")
    with process.event_subprocess("bad") as handler:
        handler.start("s1", on=signal("x")).end("e1")
        if broken:
            handler.start("s2", on=signal("y")).to("e1")


def link_unnamed(process: ProcessBuilder, *, broken: bool) -> None:
    """A link has a name."""
    process.catch("bad", on=LinkEventDefinition() if broken else link("x")).task("t")


def link_without_target(process: ProcessBuilder, *, broken: bool) -> None:
    """A throwing link has a target in its scope."""
    process.start("s").throw("bad", on=link("x"))
    process.catch("c", on=link("y" if broken else "x")).end("e")


def link_target_ambiguous(process: ProcessBuilder, *, broken: bool) -> None:
    """A link name has one target."""
    process.start("s").throw("t", on=link("x"))
    process.catch("c", on=link("x")).end("e")
    process.catch("bad", on=link("x" if broken else "y")).to("e")


def link_without_source(process: ProcessBuilder, *, broken: bool) -> None:
    """A catching link has a source in its scope."""
    process.start("s").throw("t", on=link("y" if broken else "x"))
    process.catch("bad", on=link("x")).end("e")


def link_with_flow(process: ProcessBuilder, *, broken: bool) -> None:
    """No flow leaves a link's source."""
    process.start("s").throw("bad", on=link("x"))
    process.catch("c", on=link("x")).end("e")
    if broken:
        process.flow("bad", "e")


def link_mixed(process: ProcessBuilder, *, broken: bool) -> None:
    """A link stands alone in its event."""
    process.start("s").throw("bad", on=[link("x"), signal("y")] if broken else link("x"))
    process.catch("c", on=link("x")).end("e")


def link_reference_wrong(process: ProcessBuilder, *, broken: bool) -> None:
    """A partner named by id is a link of that name."""
    process.start("s").throw("bad", on=LinkEventDefinition(name="x", target="ghost" if broken else "there"))
    process.catch("c", on=LinkEventDefinition(id="there", name="x")).end("e")


CASES: tuple[Case, ...] = (
    event_kind_misplaced,
    compensation_boundary_non_interrupting,
    event_definition_unresolved,
    event_definition_shared,
    catch_without_message,
    throw_without_message,
    message_ref_missing,
    operation_ref_missing,
    signal_ref_missing,
    error_code_missing,
    escalation_code_missing,
    timer_not_one,
    condition_missing,
    parallel_multiple_alone,
    parallel_start_without_keys,
    cancel_outside_transaction,
    cancel_uncaught,
    event_sub_process_starts,
    link_unnamed,
    link_without_target,
    link_target_ambiguous,
    link_without_source,
    link_with_flow,
    link_mixed,
    link_reference_wrong,
)


@pytest.mark.parametrize("case", CASES, ids=rule_of)
def test_rule(case: Case) -> None:
    """The rule finds the culprit, and is silent about the model that keeps it."""
    assert_case(case)


# ------------------------------------------------------------------ the table of section 3

TRIGGERS: dict[str, Trigger | EventDefinition | None] = {
    "none": None,
    "message": message("m"),
    "timer": timer(duration="PT1H"),
    "signal": signal("s"),
    "conditional": condition("x"),
    "error": error("E"),
    "escalation": escalation("E"),
    "compensation": compensate(),
    "cancel": cancel(),
    "terminate": terminate(),
    "link": link("l"),
}

PLACES = (
    "start",
    "sub-process start",
    "handler",
    "handler non-int",
    "catch",
    "throw",
    "boundary",
    "boundary non-int",
    "end",
)

# Columns as in PLACES; the rows are those of the table in the design, written anew from it.
TABLE = """
none          y y - - - y - - y
message       y - y y y y y y y
timer         y - y y y - y y -
signal        y - y y y y y y y
conditional   y - y y y - y y -
error         - - y - - - y - y
escalation    - - y y - y y y y
compensation  - - y - - y y y y
cancel        - - - - - - y - y
terminate     - - - - - - - - y
link          - - - - y y - - -
"""


def _rows() -> Iterator[tuple[str, str, bool]]:
    for row in TABLE.split("\n")[1:-1]:
        kind, *marks = row.split()
        yield from ((kind, where, mark == "y") for where, mark in zip(PLACES, marks, strict=True))


def _place(process: ProcessBuilder, where: str, on: Trigger | EventDefinition | None) -> None:
    path = process.start("s").transaction("t")
    path.end("e")
    inside = path.inside
    match where:
        case "start":
            process.start("x", on=on).to("e")
        case "sub-process start":
            inside.start("x", on=on).end("ie")
        case "handler" | "handler non-int":
            with inside.event_subprocess("handler") as handler:
                handler.start("x", on=on, interrupting=where == "handler").end("he")
        case "catch":
            inside.start("is").catch("x", on=on).end("ie")
        case "throw":
            inside.start("is").throw("x", on=on).end("ie")
        case "boundary" | "boundary non-int":
            path.boundary("x", on=on, interrupting=where == "boundary").to("e")
        case _:
            inside.start("is").end("x", on=on)


@pytest.mark.parametrize("kind,where,legal", list(_rows()))
def test_kind_and_place(kind: str, where: str, legal: bool) -> None:  # noqa: FBT001 - a column of the table
    """Each kind of event is accepted at exactly the places where the table says yes."""
    process = ProcessBuilder("p")
    _place(process, where, TRIGGERS[kind])
    refused = {finding.element_id for finding in check(process.build()) if finding.rule == "event-kind-misplaced"}
    assert ("x" in refused) is not legal


def test_references_count_as_definitions() -> None:
    """An event definition by reference is judged like one inside the event."""
    process = ProcessBuilder("p")
    process.document.add(TimerEventDefinition(id="shared", time_duration=Expression(text="PT1H")))
    process.start("s").end("e")
    definitions = changed(process.build(), "e", event_definition_refs=("shared",))
    assert [finding.element_id for finding in check(definitions) if finding.rule == "event-kind-misplaced"] == ["e"]


def test_cancel_boundary_outside_a_transaction() -> None:
    """A cancel boundary event at a plain sub-process is refused."""
    process = ProcessBuilder("p")
    with process.start("s").subprocess("sub") as inside:
        inside.start("s1").end("e1")
    process.at("sub").end("e")
    process.at("sub").boundary("b", on=cancel()).to("e")
    assert [(finding.rule, finding.element_id) for finding in check(process.build())] == [
        ("cancel-outside-transaction", "b")
    ]


def test_nested_transaction_is_no_target_for_the_outer_cancel() -> None:
    """A cancel end event belongs to the nearest transaction: the outer one gets no warning."""
    process = ProcessBuilder("p")
    with process.start("s").transaction("outer") as outer, outer.start("s1").transaction("inner") as inner:
        inner.start("s2").end("e2", on=cancel())
    outer.at("inner").end("e1")
    outer.at("inner").boundary("b", on=cancel()).to("e1")
    process.at("outer").end("e")
    assert check(process.build()) == ()


def test_parallel_event_gateway_without_keys() -> None:
    """Messages that an instantiating parallel gateway awaits together need keys too; one message alone does not."""
    process = ProcessBuilder("p")
    gate = process.event_gateway("g", instantiate=True, event_gateway_type="Parallel")
    gate.catch("a", on=message("a")).end("e1")
    gate.catch("s", on=signal("x")).end("e2")
    rules = {finding.rule for finding in check(process.build())}
    gate.receive("b", message="b").end("e3")
    more = {finding.rule for finding in check(process.build())}
    assert "parallel-start-without-keys" not in rules
    assert "parallel-start-without-keys" in more


def test_conversation_keys_are_keys() -> None:
    """Where the document declares correlation keys, messages that start together may go without our own attribute."""
    process = ProcessBuilder("p")
    process.start("s", on=[message("a"), message("b")], parallel=True).end("e")
    assert "parallel-start-without-keys" in {finding.rule for finding in check(process.build())}
    process.document.add(Collaboration(id="c", correlation_keys=(CorrelationKey(id="k"),)))
    assert "parallel-start-without-keys" not in {finding.rule for finding in check(process.build())}
