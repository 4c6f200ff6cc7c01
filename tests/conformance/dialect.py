"""The two little languages of the conformance suite: the words of its scripts, and its conditions.

A script is one word.  What it does leaves its mark in a `Trace`, one for each run.
"""

from __future__ import annotations

import inspect
import json
import operator
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field, frozen

from trioflow import BpmnError
from trioflow.errors import ExpressionError
from trioflow.expressions import Languages

__all__ = ["Conditions", "Trace", "Words", "languages"]

Names = Mapping[str, Any]
Assigned = dict[str, Any]
Act = Callable[["Trace", Names], Assigned | Awaitable[Assigned]]

LANGUAGE: Final = "betsy"
XPATH: Final = "http://www.w3.org/1999/XPath"
"""What one file says (it is the schema's default too); its conditions are of the same form as all others."""
LONG: Final = 10.0
"""Seconds that the long scripts take."""


def languages(trace: Trace) -> Languages:
    """Both languages, as those of files that name none; the scripts write into ``trace``."""
    return Languages(
        expressions=(Conditions(),),
        scripts=(Words(trace),),
        default_expression=LANGUAGE,
        default_script=LANGUAGE,
    )


# ------------------------------------------------------------------ conditions

_FORM: Final = re.compile(
    r"""(?P<negation>!\s*)?
    (?: (?P<constant>true|false|-?\d+)
      | (?P<name>[A-Za-z_]\w*)
        (?: \.contains\("(?P<part>[^"]*)"\) | \s*(?P<sign><=|>=|==|<|>)\s*(?P<bound>-?\d+) )?
    )""",
    re.VERBOSE,
)
_SIGNS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


@frozen
class Conditions:
    """Compiles ``name``, ``name < 3``, ``name.contains("a")``, constants, and any of them after ``!``.

    An expression may stand in ``${...}``; a ``>`` behind the last bracket is a slip of one file, and is overlooked.
    """

    languages: frozenset[str] = frozenset({LANGUAGE, XPATH})

    def compile(self, text: str) -> Condition:
        """The compiled expression; anything of another form is an `ExpressionError`."""
        form = _FORM.fullmatch(_bare(text))
        if form is None:
            raise ExpressionError(f"{text!r} is none of the forms that the conformance suite uses")
        return Condition(text, form)


@frozen
class Condition:
    """One compiled expression."""

    text: str
    _form: re.Match[str]
    language: str = LANGUAGE

    @property
    def names(self) -> frozenset[str]:
        """The one name that it reads, if any."""
        name = self._form["name"]
        return frozenset() if name is None else frozenset({name})

    def evaluate(self, names: Mapping[str, Any], now: datetime) -> Any:  # noqa: ARG002  # the port's signature
        """The value; what the names do not allow is an `ExpressionError`."""
        try:
            value = self._value(names)
        except (KeyError, TypeError) as error:
            raise ExpressionError(f"{self.text!r} cannot be evaluated: {error!r}") from error
        return not value if self._form["negation"] else value

    def _value(self, names: Mapping[str, Any]) -> Any:
        form = self._form
        if form["constant"] is not None:
            return json.loads(form["constant"])  # true, false and whole numbers are written as there
        value = names[form["name"]]
        if form["part"] is not None:
            return form["part"] in value
        return _SIGNS[form["sign"]](value, int(form["bound"])) if form["sign"] else value


def _bare(text: str) -> str:
    bare = text.strip()
    if bare.startswith("${") and bare.endswith("}"):
        bare = bare[2:-1].strip()
    return bare[:-1] if bare.endswith(")>") else bare


# ------------------------------------------------------------------ scripts


@define
class Trace:
    """What the scripts of one run left behind.

    ``exists``: the log was made, as it is by whatever first writes a line into it.  ``spans`` are the seconds from and
    to which the two timed scripts ran.
    """

    lines: list[str] = field(factory=list)
    exists: bool = False
    marker: bool = False
    data: Any = None
    spans: dict[int, tuple[float, float]] = field(factory=dict)

    def write(self, line: str) -> None:
        """One more line of the log."""
        self.exists = True
        self.lines.append(line)

    def is_parallel(self) -> bool:
        """Whether both timed scripts ran, and at some moment at the same time."""
        if len(self.spans) < 2:
            return False
        (begin_1, end_1), (begin_2, end_2) = self.spans.values()
        return begin_1 < end_2 and begin_2 < end_1


@frozen
class Words:
    """Compiles the fifteen words."""

    trace: Trace
    languages: frozenset[str] = frozenset({LANGUAGE})

    def compile(self, text: str) -> Word:
        """The compiled script; an unknown word is an `ExpressionError`."""
        act = _ACTS.get(text.strip())
        if act is None:
            raise ExpressionError(f"{text!r} is no script of the conformance suite; there are: {', '.join(_ACTS)}")
        return Word(text, self.trace, act)


@frozen
class Word:
    """One compiled script; the long ones are awaited, and can be cancelled."""

    text: str
    _trace: Trace
    _act: Act
    language: str = LANGUAGE
    names: frozenset[str] = frozenset({"integerVariable", "data"})
    assigns: frozenset[str] = frozenset({"integerVariable", "data"})

    @property
    def is_async(self) -> bool:
        """Whether it takes its time."""
        return inspect.iscoroutinefunction(self._act)

    def run(self, names: Names, now: datetime) -> Assigned | Awaitable[Assigned]:  # noqa: ARG002  # the port's signature
        """Leave its mark, and tell what it assigned."""
        return self._act(self._trace, names)


def _create_log(trace: Trace, names: Names) -> Assigned:
    trace.exists = True
    return {}


def _create_marker(trace: Trace, names: Names) -> Assigned:
    trace.marker = True
    return {}


def _write(line: str, trace: Trace, names: Names) -> Assigned:
    trace.write(line)
    return {}


def _set_data(trace: Trace, names: Names) -> Assigned:
    """In one file the data is a property of the process, in the other the task has an output for it."""
    return {"data": "String", "Data Output": "String"}


def _log_data(trace: Trace, names: Names) -> Assigned:
    """What its data input brought, where the task has one."""
    trace.data = names["Data Input"] if "Data Input" in names else names["data"]
    return {}


def _increment(trace: Trace, names: Names) -> Assigned:
    return {"integerVariable": names["integerVariable"] + 1}


def _increment_and_log(trace: Trace, names: Names) -> Assigned:
    trace.write("INCREMENT_correct")
    return _increment(trace, names)


def _throw(trace: Trace, names: Names) -> Assigned:
    raise BpmnError("ERR_CODE")


async def _wait(trace: Trace, names: Names) -> Assigned:
    await trio.sleep(LONG)
    return {}


async def _span(number: int, trace: Trace, names: Names) -> Assigned:
    begin = trio.current_time()
    await trio.sleep(LONG)
    trace.spans[number] = (begin, trio.current_time())
    return {}


_ACTS: Final[Mapping[str, Act]] = {
    "CREATE_LOG_FILE": _create_log,
    "CREATE_MARKER_FILE": _create_marker,
    **{line: partial(_write, line) for line in (f"SCRIPT_task{number}" for number in range(1, 6))},
    "SET_STRING_DATA": _set_data,
    "LOG_DATA": _log_data,
    "INCREMENT_INTEGER_VARIABLE": _increment,
    "INCREMENT_INTEGER_VARIABLE_AND_LOG": _increment_and_log,
    "THROW_ERROR": _throw,
    "WAIT_TEN_SECONDS": _wait,
    "CREATE_TIMESTAMP_LOG_1": partial(_span, 1),
    "CREATE_TIMESTAMP_LOG_2": partial(_span, 2),
}
