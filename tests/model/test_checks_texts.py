"""Rules about times, conditions and what is carried of choreographies, each with a model that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from tests.model.support import Case, assert_case, rule_of
from trioflow.model import (
    BPMN_NAMESPACE,
    Collaboration,
    ComplexBehaviorDefinition,
    Definitions,
    Expression,
    MultiInstanceLoopCharacteristics,
    ProcessBuilder,
    RawElement,
    TimerEventDefinition,
    check,
)
from trioflow.model.builder import condition, loop, timer, times
from trioflow.xml import read

# ------------------------------------------------------------------ times and conditions


def condition_not_boolean(process: ProcessBuilder, *, broken: bool) -> None:
    """A condition is a comparison, no number."""
    process.start("s").catch("c", on=condition(Expression(id="bad", text="23" if broken else "n > 23"))).end("e")


def timer_not_a_time(process: ProcessBuilder, *, broken: bool) -> None:
    """A duration has units."""
    process.start("s").catch("bad", on=timer(duration="PT5" if broken else "PT5M")).end("e")


# ------------------------------------------------------------------ choreographies


def bpmn(name: str, *children: RawElement, text: str = "", **attributes: str) -> RawElement:
    """An element of BPMN that is carried as it was written."""
    return RawElement(
        tag=f"{{{BPMN_NAMESPACE}}}{name}", attributes=tuple(attributes.items()), text=text, children=children
    )


def carrying(process: ProcessBuilder, *elements: RawElement) -> Definitions:
    """A sound process, and beside it these root elements."""
    process.start("s").end("e")
    return evolve(process.build(), carried=elements)


def choreography_referred(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A choreography names no other."""
    named = bpmn("choreographyRef" if broken else "documentation", text="other")
    return carrying(process, bpmn("choreography", named, id="bad"), bpmn("choreography", id="other"))


def global_conversation_content(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A global conversation holds no conversation."""
    content = bpmn("conversation" if broken else "participant", id="c")
    return carrying(process, bpmn("globalConversation", content, id="bad"))


def choreography_closed_otherwise(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A collaboration is closed if its choreography is."""
    reference = bpmn("choreographyRef", text=" tns:dance ")
    process.document.add(Collaboration(id="bad", is_closed=not broken, carried=(reference,)))
    return carrying(process, bpmn("choreography", id="dance", isClosed="true"))


CASES: tuple[Case, ...] = (
    condition_not_boolean,
    timer_not_a_time,
    choreography_referred,
    global_conversation_content,
    choreography_closed_otherwise,
)


@pytest.mark.parametrize("case", CASES, ids=rule_of)
def test_rule(case: Case) -> None:
    """The rule finds the culprit, and is silent about the model that keeps it."""
    assert_case(case)


# ------------------------------------------------------------------ what counts as a condition


def rules_of(process: ProcessBuilder, rule: str) -> list[str]:
    """The elements that a rule finds in the process."""
    return [finding.element_id for finding in check(process.build()) if finding.rule == rule]


@pytest.mark.parametrize(
    "text,is_condition",
    [
        *((text, False) for text in ("23", "-1.5", ".5", "2.", "1e3", "=23", "= 0", "'yes'", '"no"', "''", " 7 ")),
        *((text, True) for text in ("true", "False", "n", "=n", "1 < 2", "'a' == 'b'", '"a" = "b"', "${23}", "x1")),
    ],
)
def test_conditions(text: str, is_condition: bool) -> None:  # noqa: FBT001 - a column
    """Numbers and quoted texts are no conditions in any language; names, comparisons and truth values are."""
    process = ProcessBuilder("p")
    gate = process.start("s").exclusive("g")
    gate.when(Expression(id="c", text=text)).end("a")
    gate.otherwise().end("b")
    assert rules_of(process, "condition-not-boolean") == ([] if is_condition else ["c"])


def _flow(process: ProcessBuilder, text: Expression) -> None:
    process.start("s").task("t").when(text).end("e")


def _loop(process: ProcessBuilder, text: Expression) -> None:
    process.start("s").task("t", loop=loop(text)).end("e")


def _completion(process: ProcessBuilder, text: Expression) -> None:
    process.start("s").task("t", loop=times(3, until=text)).end("e")


def _behavior(process: ProcessBuilder, text: Expression) -> None:
    complex_behavior = MultiInstanceLoopCharacteristics(
        loop_cardinality=Expression(text="3"),
        behavior="Complex",
        complex_behavior_definitions=(ComplexBehaviorDefinition(condition=text),),
    )
    process.start("s").task("t", loop=complex_behavior).end("e")


def _ad_hoc(process: ProcessBuilder, text: Expression) -> None:
    with process.start("s").ad_hoc("a", until=text) as inside:
        inside.task("t")
    process.at("a").end("e")


def _activation(process: ProcessBuilder, text: Expression) -> None:
    gate = process.complex("g", activation=text)
    process.start("s").task("t").to(gate)
    gate.end("e")


@pytest.mark.parametrize("put", [_flow, _loop, _completion, _behavior, _ad_hoc, _activation])
def test_places_of_conditions(put: Callable[[ProcessBuilder, Expression], None]) -> None:
    """The rule looks wherever the standard wants a truth value."""
    for text, culprits in (("23", ["c"]), ("n > 2", [])):
        process = ProcessBuilder("p")
        put(process, Expression(id="c", text=text))
        assert rules_of(process, "condition-not-boolean") == culprits


# ------------------------------------------------------------------ what counts as a time


@pytest.mark.parametrize(
    "kind,text,is_time",
    [
        *(("date", text, True) for text in ("20260307T0900", "20260307T090000Z", "2026-03-07", "due", "=NOW()")),
        *(("date", text, False) for text in ("INVALID", "TODAY", "20260307", "P1D", "20260307T09")),
        *(("duration", text, True) for text in ("P1Y2M3DT4H5M6S", "P2W", "PT1H", "P1D", "pause", "P1D + x")),
        *(("duration", text, False) for text in ("INVALID", "P", "PT", "P1DT", "PT5", "PD4h", "P5", "1w", "5")),
        *(("cycle", text, True) for text in ("R3/PT1H", "R/P1D", "0 0 * * *", "@daily", "rhythm", "${R}")),
        *(("cycle", text, False) for text in ("INVALID", "R3", "PT1H")),
    ],
)
def test_times(kind: str, text: str, is_time: bool) -> None:  # noqa: FBT001 - a column
    """A word with a capital or digit in front is a time of ISO 8601; anything else may be an expression."""
    process = ProcessBuilder("p")
    process.start("s").catch("c", on=timer(**{kind: text})).end("e")
    assert rules_of(process, "timer-not-a-time") == ([] if is_time else ["c"])


def test_the_name_of_data_is_an_expression() -> None:
    """A word that a data object has for its name or its id is what the timer reads."""
    process = ProcessBuilder("p")
    process.data_object("PAUSE")
    process.start("s").catch("c", on=timer(duration="PAUSE")).end("e")
    assert rules_of(process, "timer-not-a-time") == []


def test_a_shared_timer() -> None:
    """A timer at the root of the document is looked at once, however many events refer to it."""
    process = ProcessBuilder("p")
    process.document.add(TimerEventDefinition(id="pause", time_duration=Expression(text="PT5")))
    process.start("s").end("e")
    assert rules_of(process, "timer-not-a-time") == ["pause"]


# ------------------------------------------------------------------ choreographies


@pytest.mark.parametrize("name", ["globalConversation", "globalChoreographyTask", "choreography"])
def test_who_refers_to_no_choreography(name: str) -> None:
    """What is a choreography or a global conversation itself has no choreography of its own."""
    definitions = carrying(ProcessBuilder("p"), bpmn(name, bpmn("choreographyRef", text="c"), id="x"))
    found = [finding for finding in check(definitions) if finding.rule == "choreography-referred"]
    assert [finding.element_id for finding in found] == ["x"]
    assert found[0].message == f"A {name} has the choreographyRef 'c', which only a collaboration may have."


def test_all_that_a_global_conversation_may_not_hold() -> None:
    """One finding names each kind of element that has no place in a global conversation."""
    content = (bpmn(name) for name in ("group", "association", "callConversation", "messageFlow", "group"))
    foreign = RawElement(tag="{urn:other}conversation")
    definitions = carrying(ProcessBuilder("p"), bpmn("globalConversation", *content, foreign, id="x"))
    found = [finding.message for finding in check(definitions) if finding.rule == "global-conversation-content"]
    assert [message.partition(": ")[2] for message in found] == ["association, callConversation, group."]


@pytest.mark.parametrize("closed,word,agree", [(True, "1", True), (False, "", True), (False, "true", False)])
def test_closed_like_its_choreography(closed: bool, word: str, agree: bool) -> None:  # noqa: FBT001 - columns
    """Both are closed or both are open, however the document writes it; open is the default."""
    process = ProcessBuilder("p")
    references = tuple(bpmn("choreographyRef", text=text) for text in ("dance", "elsewhere"))
    process.document.add(Collaboration(id="c", is_closed=closed, carried=references))
    definitions = carrying(process, bpmn("choreography", id="dance", **({"isClosed": word} if word else {})))
    found = [finding.rule for finding in check(definitions)]
    assert found == ([] if agree else ["choreography-closed-otherwise"])


# ------------------------------------------------------------------ what only the reader sees


@pytest.mark.parametrize("written,fits", [("text/html", True), ("text/x-rst; charset=utf-8", True), ("INVALID", False)])
def test_format_of_a_documentation(written: str, fits: bool) -> None:  # noqa: FBT001 - a column
    """The format of a documentation is not kept in the model, so the reader says that it is no media type."""
    document = read(
        f'<definitions xmlns="{BPMN_NAMESPACE}" targetNamespace="urn:t">'
        f'<process id="p"><documentation textFormat="{written}">why</documentation></process></definitions>'
    )
    assert ("not-a-media-type" in {finding.rule for finding in document.findings}) is not fits
