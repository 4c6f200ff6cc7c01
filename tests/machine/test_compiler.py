"""What the compiler refuses, with element, reason and remedy; how names and languages are resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import pytest
from attrs import evolve, frozen

from tests.machine.support import Driver, compiled, findings
from trioflow.errors import ExpressionError
from trioflow.expressions import Languages, PythonExpressions, PythonScripts
from trioflow.machine.compiler import compile_program
from trioflow.model import Interface, Message, MessageEventDefinition, Operation, SequenceFlow
from trioflow.model.base import TRIOFLOW_NAMESPACE, Expression, Extensions
from trioflow.model.builder import (
    DefinitionsBuilder,
    ProcessBuilder,
    message,
)
from trioflow.model.common import CorrelationSubscription, ResourceRole
from trioflow.model.data import InputOutputSpecification
from trioflow.model.events import SignalEventDefinition, TimerEventDefinition
from trioflow.model.findings import Level
from trioflow.model.graph import Graph
from trioflow.values import ValueCodec

Build = Callable[[ProcessBuilder], Any]


def own(**values: str) -> Extensions:
    """Trioflow's own attributes."""
    return Extensions(attributes=tuple((f"{{{TRIOFLOW_NAMESPACE}}}{name}", value) for name, value in values.items()))


def _timer(**fields: str) -> Build:
    zone = fields.pop("zone", None)
    definition = TimerEventDefinition(
        extensions=own(timeZone=zone) if zone else Extensions(),
        **{name: Expression(text=text) for name, text in fields.items()},  # type: ignore[arg-type]  # only expressions
    )
    return lambda p: p.start("s").catch("x", on=definition)


NOT_EXECUTED: list[tuple[str, Build, str, str]] = [
    (
        "event-gateway",
        lambda p: p.event_gateway("x", instantiate=True),
        "An instantiating event-based gateway",
        "Start with start events",
    ),
    (
        "receive",
        lambda p: p.receive("x", message="m", instantiate=True),
        "An instantiating receive task",
        "Start with a message start event",
    ),
]


@pytest.mark.parametrize("build, what, remedy", [pytest.param(*row[1:], id=row[0]) for row in NOT_EXECUTED])
def test_what_is_not_executed_is_refused_with_what_to_do(build: Build, what: str, remedy: str) -> None:
    """Legal BPMN that this version does not execute: an error about the element, never silence."""
    built = ProcessBuilder("p")
    build(built)
    found = [each for each in findings(built) if each.element_id == "x" and what in each.message]
    assert found, [str(each) for each in findings(built)]
    for each in found:
        assert (each.level, each.rule) == (Level.ERROR, "not-executed")
        assert each.message.endswith(" is not executed by this version of trioflow.")
        assert remedy in each.remedy


FAULTS: list[tuple[str, Build, str, str, str]] = [
    ("condition", lambda p: _conditional(p, "1 +"), "expression", "cannot be used", "Correct the expression"),
    ("script", lambda p: p.start("s").script("x", "import os"), "script", "cannot be used", "Correct the script"),
    (
        "script-format",
        lambda p: p.start("s").script("x", "1", script_format="groovy"),
        "script",
        "no script engine claims the language 'groovy'",
        "scriptFormat",
    ),
    (
        "two-timers",
        _timer(time_date="2026-01-01T00:00:00Z", time_cycle="R/PT1H"),
        "timer",
        "date and cycle",
        "exactly one",
    ),
    ("no-timer", _timer(), "timer", "none of them", "exactly one"),
    ("R0", _timer(time_cycle="R0/PT1H"), "timer", "cannot be used", "Correct the timer"),
    ("negative", _timer(time_duration="-PT1H"), "timer", "negative", "Correct the timer"),
    ("zone", _timer(time_duration="PT1H", zone="Mars/Base"), "timer", "time zone cannot be used", "IANA"),
    (
        "message-missing",
        lambda p: p.start("s").catch("x", on=MessageEventDefinition(message_ref="nowhere")),
        "message-missing",
        "names no message",
        "messageRef",
    ),
    (
        "priority",
        lambda p: p.start("s").user("x", priority="high"),
        "bad-value",
        "'high', no integer",
        "Write a number",
    ),
    (
        "due-date",
        lambda p: p.start("s").user("x", due_date="1 +"),
        "expression",
        "cannot be used",
        "Correct the expression",
    ),
]


def _conditional(p: ProcessBuilder, text: str) -> None:
    p.start("s").exclusive("g")
    p.task("t")
    p.flow("g", "t", condition=text, flow_id="x")


@pytest.mark.parametrize("build, rule, message_part, remedy", [pytest.param(*row[1:], id=row[0]) for row in FAULTS])
def test_what_cannot_be_executed_as_drawn_is_a_fault(build: Build, rule: str, message_part: str, remedy: str) -> None:
    """The finding names the rule, the element, the reason and the remedy."""
    built = ProcessBuilder("p")
    build(built)
    (found,) = findings(built)
    assert (found.level, found.rule, found.element_id) == (Level.ERROR, rule, "x")
    assert message_part in found.message
    assert remedy in found.remedy
    assert all(text[0].isupper() and text.endswith(".") for text in (found.message, found.remedy))


# ------------------------------------------------------------------ our own attributes


def _message_catch(p: ProcessBuilder, extensions: Extensions) -> None:
    p.document.add(Message(id="m", name="paid"))
    p.start("s").catch("c", on=MessageEventDefinition(id="x", message_ref="m", extensions=extensions))


def _message(p: ProcessBuilder, extensions: Extensions) -> None:
    p.document.add(Message(id="x", name="paid", extensions=extensions))
    fork = p.start("s").parallel("fork")
    fork.catch("c", on=MessageEventDefinition(message_ref="x"))
    fork.catch("d", on=MessageEventDefinition(message_ref="x"))


def _timer_catch(p: ProcessBuilder, extensions: Extensions) -> None:
    hour = TimerEventDefinition(id="x", time_duration=Expression(text="PT1H"), extensions=extensions)
    p.start("s").catch("c", on=hour)


def _flow(p: ProcessBuilder, extensions: Extensions) -> None:
    p.start("s")
    p.task("t")
    p.add(SequenceFlow(id="x", source_ref="s", target_ref="t", extensions=extensions))


CARRIERS: Mapping[str, Callable[[ProcessBuilder, Extensions], Any]] = {
    "userTask": lambda p, extensions: p.start("s").user("x", extensions=extensions),
    "receiveTask": lambda p, extensions: p.start("s").receive("x", message="m", extensions=extensions),
    "serviceTask": lambda p, extensions: p.start("s").service("x", extensions=extensions),
    "endEvent": lambda p, extensions: p.start("s").end("x", extensions=extensions),
    "messageEventDefinition": _message_catch,
    "timerEventDefinition": _timer_catch,
    "sequenceFlow": _flow,
    "message": _message,
}
"""For each tag: a process in which an element of that tag, x, has the extensions."""

KNOWN: list[tuple[str, str, str]] = [
    ("userTask", "assignee", "ann"),
    ("userTask", "candidateGroups", "clerks, sales"),
    ("userTask", "candidateUsers", "ann"),
    ("userTask", "dueDate", "now()"),
    ("userTask", "priority", "70"),
    ("messageEventDefinition", "correlationKey", "order"),
    ("timerEventDefinition", "timeZone", "Europe/Berlin"),
]


@pytest.mark.parametrize("tag, name, value", KNOWN)
def test_an_attribute_of_ours_is_accepted_on_its_element(tag: str, name: str, value: str) -> None:
    """Each of them, where it is executed."""
    built = ProcessBuilder("p")
    CARRIERS[tag](built, own(**{name: value}))
    assert compiled(built).nodes


UNKNOWN: list[tuple[str, str, str, str]] = [
    ("userTask", "asignee", "a userTask", "assignee, candidateGroups, candidateUsers, dueDate, priority"),
    ("userTask", "correlationKey", "a userTask", "assignee, candidateGroups, candidateUsers, dueDate, priority"),
    ("messageEventDefinition", "key", "a messageEventDefinition", "correlationKey"),
    ("timerEventDefinition", "timezone", "a timerEventDefinition", "timeZone"),
    ("serviceTask", "assignee", "a serviceTask", "none"),
    ("endEvent", "priority", "an endEvent", "none"),
    ("sequenceFlow", "priority", "a sequenceFlow", "none"),
    ("message", "correlationKey", "a message", "none"),
]


@pytest.mark.parametrize("tag, name, where, known", UNKNOWN)
def test_an_attribute_of_ours_that_means_nothing_there_is_refused(tag: str, name: str, where: str, known: str) -> None:
    """A misspelling, or the wrong place: never silence, and once, however many events share the element."""
    built = ProcessBuilder("p")
    CARRIERS[tag](built, own(**{name: "1"}))
    (found,) = findings(built)
    assert (found.level, found.rule, found.element_id) == (Level.ERROR, "unknown-attribute", "x")
    assert found.message == f"It has trioflow:{name}, which means nothing on {where}."
    assert found.remedy == f"Known there: {known}."


def test_an_attribute_of_ours_on_the_process_is_refused() -> None:
    """No attribute of ours is for a whole process."""
    built = ProcessBuilder("x")
    built.start("s")
    definitions = built.build()
    (only,) = definitions.processes
    process = evolve(only, extensions=own(timeZone="Europe/Berlin"))
    _, (found,) = compile_program(Graph.of(definitions, process), Languages.default(), ValueCodec())
    assert (found.rule, found.element_id) == ("unknown-attribute", "x")


def test_attributes_of_others_are_theirs() -> None:
    """Whatever a vendor writes on an element is carried, not judged."""
    built = ProcessBuilder("p")
    built.start("s").task("x", extensions=Extensions(attributes=(("{urn:vendor}assignee", "ann"),)))
    assert compiled(built).nodes


# ------------------------------------------------------------------ more findings


def test_a_broken_key_expression_is_about_the_message_event() -> None:
    """The event definition has no id of its own here, so the finding says what it is about by its text."""
    built = ProcessBuilder("p")
    built.start("s").catch("x", on=message("m", key="1 +"))
    (found,) = findings(built)
    assert found.rule == "expression"
    assert "1 +" in found.message


def test_a_sub_process_has_one_start_event() -> None:
    """Several none start events in an embedded sub-process: which one would it be?"""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("x")
    sub.inside.start("one")
    sub.inside.start("two")
    (found,) = findings(built)
    assert (found.rule, found.element_id) == ("several-starts", "x")
    assert "one, two" in found.message


def test_all_findings_come_out_of_one_pass() -> None:
    """Whoever corrects a model sees everything at once."""
    built = ProcessBuilder("p")
    path = built.start("s").script("script", "import os").receive("rule", message="m", instantiate=True)
    path.when("1 +").catch("signal", on=SignalEventDefinition()).end("e")
    found = findings(built)
    about = {each.element_id for each in found}
    assert about == {"script", "rule", "flow_rule_signal", "signal"}
    assert len(found) == 4


def test_process_features_that_are_not_executed_are_refused() -> None:
    """An ioSpecification of the process itself."""
    built = ProcessBuilder(
        "x",
        io_specification=InputOutputSpecification(),
        correlation_subscriptions=[CorrelationSubscription(correlation_key_ref="k")],
    )
    assert sorted(each.message.split(" is not")[0] for each in findings(built)) == [
        "A correlation subscription",
        "An ioSpecification of a process",
    ]


@pytest.mark.parametrize(
    "options, name",
    [
        pytest.param({}, "x", id="its-id"),
        pytest.param({"handler": "charge"}, "charge", id="its-implementation"),
        pytest.param({"handler": "##WebService"}, "x", id="a-standard-word"),
        pytest.param({"handler": "http://www.w3.org/ws"}, "x", id="a-uri"),
        pytest.param({"operation": "op"}, "book", id="its-operation"),
        pytest.param({"operation": "op", "handler": "charge"}, "book", id="operation-before-implementation"),
        pytest.param({"operation": "unknown", "handler": "charge"}, "charge", id="an-operation-that-is-not-there"),
    ],
)
def test_which_handler_a_service_task_calls(options: Mapping[str, str], name: str) -> None:
    """The operation's name; else its implementation, if that names one; else its id."""
    document = DefinitionsBuilder()
    document.add(Interface(id="i", name="I", operations=(Operation(id="op", name="book", in_message_ref="m"),)))
    built = document.process("p")
    built.start("s").service("x", **options)  # type: ignore[arg-type]  # only texts
    assert compiled(built).handler_names == {name}


# ------------------------------------------------------------------ languages


@frozen
class Shouted:
    """An expression of a made-up language: its value is its text in capitals."""

    text: str
    language: str = "shout"
    names: frozenset[str] = frozenset()

    def evaluate(self, names: Mapping[str, Any], now: datetime) -> Any:  # noqa: ARG002  # the port's signature
        """Shout."""
        return self.text.upper()


@frozen
class Shouting:
    """The engine of that language."""

    languages: frozenset[str] = frozenset({"shout", "http://shout"})

    def compile(self, text: str) -> Shouted:
        """Refuse what cannot be shouted."""
        if text.isdigit():
            raise ExpressionError(f"{text!r} cannot be shouted")
        return Shouted(text)


def languages() -> Languages:
    """Python, and that one."""
    return Languages(expressions=(PythonExpressions(), Shouting()), scripts=(PythonScripts(),))


@pytest.mark.parametrize(
    "expression_language, own_language, problem",
    [
        pytest.param(None, None, None, id="engine's-default"),
        pytest.param("shout", None, "'5' cannot be shouted", id="the-file's"),
        pytest.param("shout", "python", None, id="its-own-before-the-file's"),
        pytest.param(None, "http://SHOUT", "'5' cannot be shouted", id="its-own"),
        pytest.param(None, "feel", "claimed are: ", id="nobody's"),
        pytest.param("xpath", None, "no expression engine claims the language 'xpath'", id="the-file's-is-nobody's"),
    ],
)
def test_an_expressions_language_is_its_own_else_the_files_else_the_engines(
    expression_language: str | None, own_language: str | None, problem: str | None
) -> None:
    """A language that nobody claims is a finding that lists the claimed ones."""
    document = DefinitionsBuilder(expression_language=expression_language)
    built = document.process("p")
    gate = built.start("s").exclusive("g")
    gate.when(Expression(text="5", language=own_language)).end("e")
    built.event_subprocess("refused")  # so that it never compiles, and findings are what is compared
    found = [each.message for each in findings(built, languages=languages()) if each.rule == "expression"]
    assert len(found) == (0 if problem is None else 1)
    assert all(problem is not None and problem in message for message in found)


def test_own_attributes_are_in_the_engines_default_language() -> None:
    """Whatever language the file has for the standard's expressions: the attribute is ours."""
    document = DefinitionsBuilder(expression_language="feel")
    built = document.process("p")
    built.start("s").user("u", assignee="=boss").end("e")
    run = Driver(compiled(built))
    run.start(boss="zoe")
    assert run.why("u")[0].startswith(f"token {run.at('u').id} at u waits for 'zoe'")


def test_a_potential_owner_of_the_standard_gives_the_candidates() -> None:
    """10.3.4: the assignment expression of `potentialOwner`, and of `humanPerformer` for the assignee."""
    built = ProcessBuilder("p")
    roles = [
        ResourceRole(role="potentialOwner", assignment_expression=Expression(text="team")),
        ResourceRole(role="humanPerformer", assignment_expression=Expression(text="boss")),
    ]
    built.start("s").user("u", resources=roles).end("e")
    run = Driver(compiled(built))
    run.start(boss="zoe", team=["ann"])
    wait = run.at("u").wait
    assert wait is not None
    assert (getattr(wait, "assignee", None), getattr(wait, "candidate_users", None)) == ("zoe", ("ann",))
