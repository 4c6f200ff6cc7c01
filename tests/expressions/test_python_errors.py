"""What messages say, and where they point."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.expressions.support import failure_of, script_failure_of
from trioflow.errors import ExpressionError


def test_undefined_name_is_named_with_what_is_there() -> None:
    """The message names the variable, the one that was meant, and up to ten that exist."""
    error = failure_of("amout > 1", {"amount": 1, "customer": 2})
    assert "'amout' is not defined (did you mean 'amount'?); there are: amount, customer" in str(error)
    many = str(failure_of("zz", {f"n{number:02}": number for number in range(12)}))
    assert "n09, ..." in many
    assert "n10" not in many
    assert "no variables at all" in str(failure_of("zz"))


def test_undefined_name_of_a_function() -> None:
    """A function is no value: the message says to call it."""
    assert "write today(...)" in str(failure_of("today"))


def test_none_in_a_comparison_shows_the_values() -> None:
    """Null compared by order is a failure that shows both sides."""
    error = failure_of("order.total < 5", {"order": {"total": None}})
    assert "cannot compare None < 5: one side is None" in str(error)
    assert (error.line, error.column) == (1, 1)


@pytest.mark.parametrize(
    "text,names,parts",
    [
        ("order.total", {"order": {"sum": 1}}, ["no entry 'total'", "it has 'sum'"]),
        ("order['total']", {"order": {}}, ["no entry 'total'", "it is empty"]),
        ("order.items", {"order": {"sum": 1}}, ["It is a method", ".items(...)"]),
        ("xs[5]", {"xs": [1]}, ["index 5", "has 1"]),
        ("xs['a']", {"xs": [1]}, ["whole number", "'a'"]),
        ("order.total", {"order": None}, ["cannot read .total of None"]),
        ("name.total", {"name": "x"}, ["'x' (str) has no attribute 'total'"]),
        ("name.total()", {"name": "x"}, ["'x' (str) has no method 'total'"]),
        ("a + b", {"a": 1, "b": "x"}, ["1 + 'x'", "int + str"]),
        ("a + b", {"a": 1, "b": None}, ["1 + None", "one side is None"]),
        ("a / b", {"a": 1, "b": 0}, ["1 / 0", "division by zero"]),
        ("a + 1.5", {"a": Decimal(1)}, ["Decimal + float"]),
        ("a < b", {"a": 1, "b": "x"}, ["1 < 'x'", "int with str"]),
        ("a < b", {"a": datetime(2026, 1, 1), "b": datetime(2026, 1, 1, tzinfo=UTC)}, ["cannot compare"]),  # noqa: DTZ001
        ("(-8) ** 0.5", {}, ["no real value"]),
        ("int('x')", {}, ["invalid literal", "'x'"]),
        ("Decimal(x)", {"x": "y"}, ["Decimal() cannot read 'y'"]),
        ("a ** 10**18", {"a": Decimal("1.1")}, ["Decimal('1.1') **", "gives no result (Overflow)"]),
        ("min([])", {}, ["min() of nothing"]),
        ("sum(['a'])", {}, ["sum()", "'a'"]),
        ("sorted([1, None])", {}, ["cannot sort [1, None]"]),
        ("','.join([1])", {}, ["1 is no text"]),
        ("[x for x in 5]", {}, ["cannot go through 5"]),
        ("len(5)", {}, ["5 (int) has no length"]),
        ("[y for x in [1] for y in z for z in [1]]", {"z": [1]}, ["z", "line 1, column 26"]),
        ("date('2026-02-30')", {}, ["day"]),
        ("duration('P1M')", {}, ["'P1M'", "no fixed length"]),
        ("f'{x:q}'", {"x": 1}, ["format", "'q'"]),
        ("f'{x:>5}'", {"x": None}, ["None takes no format"]),
        ("due.timestamp()", {"due": datetime(2026, 1, 1)}, ["without zone"]),  # noqa: DTZ001
        ("due.astimezone('Mars/Base')", {"due": datetime(2026, 1, 1, tzinfo=UTC)}, ["Mars/Base"]),
    ],
)
def test_message_says_what_and_with_which_value(text: str, names: dict[str, Any], parts: list[str]) -> None:
    """Every failure is an ExpressionError that shows the reason, the value and the text."""
    error = failure_of(text, names)
    assert isinstance(error, ExpressionError)
    for part in (*parts, text):
        assert part in str(error)
    assert error.line == 1
    assert error.column is not None


def test_position_is_the_failing_part() -> None:
    """Line and column are those of the text as given, with a caret line under the part that failed."""
    error = failure_of("\n   a > 1 and\n   b.c < 2", {"a": 2, "b": {}})
    assert (error.line, error.column) == (3, 4)
    assert str(error).endswith("       b.c < 2\n       ^^^")


def test_position_counts_characters() -> None:
    """Columns are characters, not bytes."""
    error = failure_of("'äöü' + x", {})
    assert error.column == 9


def test_position_inside_a_lambda() -> None:
    """A failure in a rule of sorting points into the rule."""
    assert failure_of("sorted(xs, key=lambda x: x.a)", {"xs": [{}]}).column == 26


@pytest.mark.parametrize(
    "text,line,column",
    [("a >", 1, 4), ("  a >", 1, 6), ("\n\n  a b", 3, 5), ("(a", 1, 1), ("a and\n  or b", 2, 3), ("1) + (2", 1, 2)],
)
def test_syntax_error_shows_the_place(text: str, line: int, column: int) -> None:
    """A syntax error has line, column and an excerpt with a caret."""
    error = failure_of(text)
    assert "syntax error" in str(error)
    assert (error.line, error.column) == (line, column)
    assert str(error).splitlines()[-1].strip("^ ") == ""


@pytest.mark.parametrize("text", ["", "  \n ", "# only a note", "1), (2", "a\0b", "'\ud800' + \ud800"])
def test_text_that_is_no_expression(text: str) -> None:
    """Empty, broken and undecodable texts are refused like any other."""
    assert failure_of(text).text == text


def test_script_position_with_indentation() -> None:
    """A script that is indented as a whole, as in a file, keeps its lines and columns."""
    error = script_failure_of("\n    a = 1\n    b = a + missing\n")
    assert (error.line, error.column) == (3, 13)
    syntax = script_failure_of("\n    a = 1\n    b = a +\n")
    assert syntax.line == 3


def test_script_indentation_that_does_not_fit() -> None:
    """A later line that stands further left than the first is refused."""
    assert "indentation" in str(script_failure_of("  a = 1\nb = 2"))
    assert "indentation" in str(script_failure_of("  a = 1\nelse:\n  b = 2"))


def test_long_lines_are_cut_around_the_place() -> None:
    """The excerpt of a long line shows the failing part."""
    error = failure_of(" + ".join(["1"] * 60 + ["missing"]))
    excerpt, caret = str(error).splitlines()[-2:]
    assert len(excerpt) <= 104
    assert excerpt[caret.index("^") :].startswith("missing")


def test_values_in_messages_are_short() -> None:
    """Neither a large nor a deep nor an unprintable value makes a long message."""
    deep: list[Any] = []
    for _ in range(50):
        deep = [deep, deep]
    for value in ("x" * 100_000, deep, 10**5000, list(range(10_000))):
        assert len(str(failure_of("v.name", {"v": value}))) < 1_000
