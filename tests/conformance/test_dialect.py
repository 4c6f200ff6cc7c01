"""The languages of the conformance suite: its conditions, and the words of its scripts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from trio.testing import MockClock

import trioflow
from tests.conformance.dialect import Conditions, Trace, Words, languages
from trioflow import ProcessBuilder, Status
from trioflow.errors import ExpressionError
from trioflow.expressions import ExpressionEngine, ScriptEngine
from trioflow.model.builder import error, timer
from trioflow.testing import VirtualClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = {"test": "ab", "n": 2}

# ------------------------------------------------------------------ conditions


@pytest.mark.parametrize(
    "text, value",
    [
        ('test.contains("a")', True),
        ('test.contains("c")', False),
        ('!test.contains("a")', False),
        ('! test.contains("c")', True),
        ('test.contains("a")>', True),
        (' test.contains("b") ', True),
        ("n<3", True),
        ("n < 2", False),
        ("n <= 2", True),
        ("n >=2", True),
        ("n > 2", False),
        ("n == 2", True),
        ("n > -1", True),
        ("n", 2),
        ("${n}", 2),
        ("3", 3),
        ("-1", -1),
        ("true", True),
        ("false", False),
        ("!true", False),
    ],
)
def test_conditions(text: str, value: Any) -> None:
    """Every form that the suite uses has its value, and of the right type."""
    found = Conditions().compile(text).evaluate(NAMES, NOW)
    assert found == value
    assert type(found) is type(value)


def test_names_of_conditions() -> None:
    """A condition says which name it reads."""
    assert Conditions().compile("n < 3").names == {"n"}
    assert Conditions().compile("true").names == frozenset()


@pytest.mark.parametrize("text", ["", "n +", "n < m", "import os", "test.contains(a)", "n > 1 > 0"])
def test_no_conditions(text: str) -> None:
    """A text of another form is refused when it is compiled, with the text."""
    with pytest.raises(ExpressionError, match="none of the forms"):
        Conditions().compile(text)


@pytest.mark.parametrize("text", ["missing", "missing < 3", "test < 3", 'n.contains("a")'])
def test_conditions_without_value(text: str) -> None:
    """A name that is not there, and a value that does not fit, are errors of the evaluation."""
    with pytest.raises(ExpressionError, match="cannot be evaluated"):
        Conditions().compile(text).evaluate(NAMES, NOW)


# ------------------------------------------------------------------ scripts


def after(*words: str, **variables: Any) -> tuple[Trace, dict[str, Any], float]:
    """Run scripts one after the other: what they left, the variables at the end, and the seconds that passed."""
    trace = Trace()
    built = ProcessBuilder("p")
    path = built.start("s")
    for number, word in enumerate(words):
        path = path.script(f"t{number}", word)
    path.end("e")

    async def main() -> dict[str, Any]:
        async with trioflow.open_engine(
            clock=VirtualClock(), languages=languages(trace), deploy=[built.build()]
        ) as engine:
            began = trio.current_time()
            outcome = await (await engine.start("p", variables)).wait()
            assert outcome.status is Status.COMPLETED
            return {**outcome.variables, "": trio.current_time() - began}

    values = trio.run(main, clock=MockClock(autojump_threshold=0))
    return trace, values, values.pop("")


def test_lines() -> None:
    """Each task writes its own line; the first makes the log, if it was not made before."""
    assert after("CREATE_LOG_FILE")[0] == Trace(exists=True)
    tasks = [f"SCRIPT_task{number}" for number in range(1, 6)]
    assert after(*tasks)[0] == Trace(exists=True, lines=tasks)


def test_marker() -> None:
    """The marker is no log."""
    assert after("CREATE_MARKER_FILE")[0] == Trace(marker=True)


def test_data() -> None:
    """What one task sets is what another finds."""
    trace, variables, _ = after("SET_STRING_DATA", "LOG_DATA")
    assert trace.data == variables["data"] == "String"


def test_data_input() -> None:
    """A task that has a data input finds what that brought, not what lies beside it."""
    trace = Trace()
    Words(trace).compile("LOG_DATA").run({"data": "beside", "Data Input": "brought"}, NOW)
    assert trace.data == "brought"


def test_increments() -> None:
    """Both count the variable up, and one of them says so."""
    trace, variables, _ = after("INCREMENT_INTEGER_VARIABLE", "INCREMENT_INTEGER_VARIABLE_AND_LOG", integerVariable=3)
    assert variables == {"integerVariable": 5}
    assert trace.lines == ["INCREMENT_correct"]


def test_long_ones() -> None:
    """The long ones take ten seconds each; one after the other they are not parallel."""
    trace, _, seconds = after("WAIT_TEN_SECONDS", "CREATE_TIMESTAMP_LOG_1", "CREATE_TIMESTAMP_LOG_2")
    assert seconds == pytest.approx(30, abs=0.5)
    assert not trace.is_parallel()
    assert not trace.exists


@pytest.mark.parametrize(
    "spans, expected",
    [
        ({}, False),
        ({1: (0, 10)}, False),
        ({1: (0, 10), 2: (0, 10)}, True),
        ({1: (0, 10), 2: (9.9, 19.9)}, True),
        ({1: (9.9, 19.9), 2: (0, 10)}, True),
        ({1: (0, 10), 2: (10, 20)}, False),
        ({1: (10, 20), 2: (0, 10)}, False),
    ],
)
def test_parallel(spans: dict[int, tuple[float, float]], expected: object) -> None:
    """Two are parallel if there is a moment at which both run; the end of one is no part of it."""
    assert Trace(spans=spans).is_parallel() is expected


@pytest.mark.parametrize("word, on", [("THROW_ERROR", error("ERR_CODE")), ("WAIT_TEN_SECONDS", timer(duration="PT2S"))])
def test_left_by_the_boundary(word: str, on: Any) -> None:
    """A thrown error leads to the event that catches its code; a long script is cancelled by an interrupting one."""
    trace = Trace()
    built = ProcessBuilder("p")
    task = built.start("s").script("t", word)
    task.boundary("b", on=on).script("caught", "SCRIPT_task2").end("e2")
    task.script("not_reached", "SCRIPT_task1").end("e1")

    async def main() -> float:
        async with trioflow.open_engine(
            clock=VirtualClock(), languages=languages(trace), deploy=[built.build()]
        ) as engine:
            await (await engine.start("p")).wait()
            return trio.current_time()

    assert trio.run(main, clock=MockClock(autojump_threshold=0)) < 3
    assert trace.lines == ["SCRIPT_task2"]


def test_no_words() -> None:
    """A word that is none of the fifteen is refused, with those that there are."""
    with pytest.raises(ExpressionError, match=r"SCRIPT_task6.*WAIT_TEN_SECONDS"):
        Words(Trace()).compile("SCRIPT_task6")


def test_which_take_their_time() -> None:
    """A script says whether it has to be awaited; the type checker proves that both engines fit their ports."""
    scripts: ScriptEngine = Words(Trace())
    expressions: ExpressionEngine = Conditions()
    assert scripts.compile("WAIT_TEN_SECONDS").is_async
    assert scripts.compile("CREATE_TIMESTAMP_LOG_1").is_async
    assert not scripts.compile("SCRIPT_task1").is_async
    assert expressions.compile("true").names == frozenset()
