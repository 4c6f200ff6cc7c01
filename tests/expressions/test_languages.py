"""Routing by language, and what is kept compiled."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import Any

import attrs
import pytest

from tests.expressions.support import NOW
from trioflow.errors import ExpressionError, InvalidRequest
from trioflow.expressions import (
    Expression,
    ExpressionEngine,
    Languages,
    Limits,
    PythonExpressions,
    PythonScripts,
    Script,
    ScriptEngine,
)


@attrs.frozen
class Upper:
    """An expression and script of a made-up language."""

    text: str
    language: str = "upper"
    names: frozenset[str] = frozenset()
    assigns: frozenset[str] = frozenset({"result"})
    is_async: bool = True

    def evaluate(self, names: Mapping[str, Any], now: datetime) -> Any:  # noqa: ARG002  # the port's signature
        """The text, louder."""
        return self.text.upper()

    def run(self, names: Mapping[str, Any], now: datetime) -> Awaitable[dict[str, Any]]:  # noqa: ARG002  # as above
        """The text, louder and later."""

        async def result() -> dict[str, Any]:
            return {"result": self.text.upper()}

        return result()


@attrs.frozen
class UpperEngine:
    """The engine of a made-up language."""

    languages: frozenset[str] = frozenset({"Upper", "http://example.org/Upper"})

    def compile(self, text: str) -> Upper:
        """Nothing to check."""
        return Upper(text)


def test_python_is_the_default_for_both() -> None:
    """Without a language, expressions and scripts are Python."""
    languages = Languages.default()
    assert languages.expression("1 + 1").evaluate({}, NOW) == 2
    assert languages.script("a = 1").run({}, NOW) == {"a": 1}
    assert languages.expression("1").language == "python"


@pytest.mark.parametrize("language", ["upper", "UPPER", " Upper ", "HTTP://example.org/upper"])
def test_language_is_matched_without_case(language: str) -> None:
    """Short names and URIs are compared without case and surrounding space."""
    languages = Languages(expressions=(UpperEngine(), PythonExpressions()))
    assert languages.expression("a", language).evaluate({}, NOW) == "A"


@pytest.mark.parametrize("language", ["Python", "text/x-python", "application/x-python", "https://www.python.org/"])
def test_python_goes_by_many_names(language: str) -> None:
    """The names that models use for Python all lead to it."""
    assert Languages.default().script("a = 2", language).run({}, NOW) == {"a": 2}


def test_unknown_language_lists_the_claimed_ones() -> None:
    """The error names the language and those that somebody claims."""
    languages = Languages(expressions=(UpperEngine(),))
    with pytest.raises(ExpressionError, match=r"'feel'.*http://example.org/upper, upper"):
        languages.expression("1", "FEEL")
    with pytest.raises(ExpressionError, match=r"script engine.*'python'; claimed are: none"):
        languages.script("a = 1")


def test_default_languages_can_be_chosen() -> None:
    """The engine's default is whatever it was given."""
    languages = Languages(expressions=(UpperEngine(),), default_expression="upper")
    assert languages.expression("b").evaluate({}, NOW) == "B"
    assert languages.expression_languages == {"upper", "http://example.org/upper"}
    assert languages.script_languages == set()


def test_two_claims_are_refused() -> None:
    """Two engines for one language are a mistake of the caller."""
    with pytest.raises(InvalidRequest, match="python"):
        Languages(expressions=(PythonExpressions(), PythonExpressions(limits=Limits(max_turns=1))))


def test_compiled_texts_are_kept() -> None:
    """The same language and text give the same object, in whatever case the language is written."""
    languages = Languages.default()
    assert languages.expression("1 + 1") is languages.expression("1 + 1", "PYTHON")
    assert languages.script("a = 1") is languages.script("a = 1")


def test_cache_is_bounded() -> None:
    """The text that was not used for longest is compiled again."""
    languages = Languages(expressions=(UpperEngine(),), default_expression="upper")
    first = languages.expression("0")
    for number in range(1, 4_097):
        languages.expression(str(number))
    assert languages.expression("0") is not first
    assert languages.expression("4096") is languages.expression("4096")


def test_failures_are_not_kept() -> None:
    """A text that does not compile fails each time."""
    languages = Languages.default()
    for _ in range(2):
        with pytest.raises(ExpressionError):
            languages.expression("1 +")


async def test_async_scripts_return_an_awaitable() -> None:
    """A script says whether it is asynchronous, and then gives its results to whoever awaits them."""
    script = Languages(scripts=(UpperEngine(),)).script("a", "upper")
    assert script.is_async
    outcome = script.run({}, NOW)
    assert isinstance(outcome, Awaitable)
    assert await outcome == {"result": "A"}


def test_limits_reach_the_engines() -> None:
    """The limits given to the default languages bound both kinds."""
    languages = Languages.default(limits=Limits(max_source=3))
    with pytest.raises(ExpressionError, match="max_source = 3"):
        languages.expression("1 + 1")
    with pytest.raises(ExpressionError, match="max_source = 3"):
        languages.script("a = 1")


@pytest.mark.parametrize("value", [0, -1, 1.5, "9"])
def test_limits_are_positive_whole_numbers(value: Any) -> None:
    """A limit of nothing would refuse everything, and is refused itself."""
    with pytest.raises((ValueError, TypeError)):
        Limits(max_turns=value)


def test_engines_fit_the_ports() -> None:
    """The engines are what the ports describe; the type checker proves it, the assertions show it."""
    expressions: ExpressionEngine = PythonExpressions()
    scripts: ScriptEngine = PythonScripts()
    expression: Expression = expressions.compile("a.b")
    script: Script = scripts.compile("c = a.b")
    assert (expression.text, sorted(expression.names)) == ("a.b", ["a"])
    assert (script.text, sorted(script.names), sorted(script.assigns)) == ("c = a.b", ["a"], ["c"])
    assert not script.is_async
