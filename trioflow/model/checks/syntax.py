"""The form of texts that the standard gives a form: URIs, media types, times and conditions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trioflow.model.activities import (
    AdHocSubProcess,
    ComplexBehaviorDefinition,
    GlobalScriptTask,
    MultiInstanceLoopCharacteristics,
    ScriptTask,
    StandardLoopCharacteristics,
    Transaction,
)
from trioflow.model.base import BaseElement, Expression
from trioflow.model.checks.items import ITEM_AWARE
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import described, walk
from trioflow.model.events import ConditionalEventDefinition, Event, TimerEventDefinition
from trioflow.model.findings import Level
from trioflow.model.flow import SequenceFlow, TextAnnotation
from trioflow.model.gateways import ComplexGateway
from trioflow.model.process import Definitions

__all__ = ["RULES", "is_media_type"]

_URI = re.compile(r"(?:[\w\-.~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})*")
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+\-]+/[\w!#$&^.+\-]+(?:\s*;.*)?")


def is_media_type(text: str) -> bool:
    """Whether a text has the form of a media type, such as ``text/plain`` (RFC 2046)."""
    return _MEDIA_TYPE.fullmatch(text) is not None


def not_uri(definitions: Definitions) -> Iterator[Problem]:
    """Languages and transaction methods are URIs (8.4.6, 10.3.5)."""
    for element in walk(definitions):
        match element:
            case Expression(language=text) if text:
                what = "language"
            case Transaction(method=text):
                what = "method"
            case _:
                continue
        if not _URI.fullmatch(text):
            yield Problem(element, f"The {what} {text!r} of {described(element)} is no URI.", "Write a valid URI.")


def not_media_type(definitions: Definitions) -> Iterator[Problem]:
    """The format of a text annotation or script is a media type (8.4.1, 10.3.3)."""
    for element in walk(definitions):
        match element:
            case TextAnnotation(text_format=text):
                pass
            case ScriptTask(script_format=text) | GlobalScriptTask(script_language=text):
                pass
            case _:
                continue
        if text and not is_media_type(text):
            yield Problem(element, f"Its format {text!r} is no media type.", "Write one, such as text/x-python.")


# ------------------------------------------------------------------ conditions

_CONDITIONS: Mapping[type[BaseElement], str] = {
    AdHocSubProcess: "completion_condition",
    ComplexBehaviorDefinition: "condition",
    ComplexGateway: "activation_condition",
    ConditionalEventDefinition: "condition",
    MultiInstanceLoopCharacteristics: "completion_condition",
    SequenceFlow: "condition_expression",
    StandardLoopCharacteristics: "loop_condition",
}
"""Where the standard wants a truth value."""

# A number or a quoted text is the same in every expression language; FEEL in attributes begins with an equals sign.
_NOT_BOOLEAN = re.compile(r"""=?\s*(?:[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|"[^"]*"|'[^']*')""", re.ASCII)


def condition_not_boolean(definitions: Definitions) -> Iterator[Problem]:
    """A condition is true or false, so it is no number and no quoted text (8.4.6, 8.4.13, 10.3.8)."""
    for owner in walk(definitions):
        field = _CONDITIONS.get(type(owner))
        condition: Expression | None = getattr(owner, field) if field else None
        if condition is not None and _NOT_BOOLEAN.fullmatch(condition.text.strip()):
            yield Problem(
                condition if condition.id else owner,
                f"The condition {condition.text.strip()!r} of {described(owner)} is neither true nor false.",
                "Write a comparison, or another expression that gives true or false.",
            )


# ------------------------------------------------------------------ timers

_FORMS: Mapping[str, tuple[str, re.Pattern[str] | None]] = {
    "time_date": ("timeDate", re.compile(r"\d{8}T\d{4}(?:\d\d)?Z?", re.ASCII)),
    "time_duration": (
        "timeDuration",
        re.compile(r"P(?=\w)(?:\d+Y)?(?:\d+M)?(?:\d+W)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?", re.ASCII),
    ),
    "time_cycle": ("timeCycle", None),
}
"""What a single word can be in each field of a timer by ISO 8601; a cycle is never one."""

# Names of data begin with a small letter as a rule; what begins with a capital or a digit was meant as a time.
_MEANT_AS_TIME = re.compile(r"[A-Z0-9]\w*", re.ASCII)


def timer_not_a_time(definitions: Definitions) -> Iterator[Problem]:
    """A time is written as ISO 8601 wants it: a word like ``PT5`` is none, unless data has that name (10.5.5)."""
    elements = tuple(walk(definitions))
    data = (element for element in elements if isinstance(element, ITEM_AWARE))
    declared = {name for element in data for name in (element.id, element.name) if name}
    for owner, definition in _timers(elements):
        for field, (name, form) in _FORMS.items():
            expression: Expression | None = getattr(definition, field)
            word = "" if expression is None else expression.text.strip()
            if _MEANT_AS_TIME.fullmatch(word) and word not in declared and not (form and form.fullmatch(word)):
                yield Problem(
                    owner,
                    f"Its {name} {word!r} is nothing that ISO 8601 knows, so it is read as an expression.",
                    "Correct the time, or declare data of that name.",
                )


def _timers(elements: tuple[BaseElement, ...]) -> Iterator[tuple[BaseElement, TimerEventDefinition]]:
    """Every timer with its event, or with itself where it is a root element."""
    for element in elements:
        if isinstance(element, Event):
            yield from ((element, each) for each in element.event_definitions if isinstance(each, TimerEventDefinition))
        elif isinstance(element, Definitions):
            yield from ((each, each) for each in element.root_elements if isinstance(each, TimerEventDefinition))


RULES: Table[Definitions] = (
    Rule("not-a-uri", Level.VIOLATION, "8.4.6, 10.3.5", not_uri),
    Rule("not-a-media-type", Level.VIOLATION, "8.4.1, 10.3.3", not_media_type),
    Rule("condition-not-boolean", Level.VIOLATION, "8.4.6, 8.4.13, 10.3.8", condition_not_boolean),
    Rule("timer-not-a-time", Level.VIOLATION, "10.5.5", timer_not_a_time),
)
"""Rules about the form of texts, over the whole document."""
