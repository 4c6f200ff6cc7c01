"""Expressions agree with Python, and no text makes anything but a value or an ExpressionError."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.expressions.support import results_of, value_of
from trioflow.errors import BpmnError, ExpressionError
from trioflow.expressions import LocatedError


def outcome_of(text: str, names: dict[str, Any]) -> tuple[Any, LocatedError | None]:
    """The value, or the error; whatever else is raised fails the test."""
    try:
        return value_of(text, names), None
    except LocatedError as error:
        return None, error


_atoms = st.one_of(
    st.integers(-20, 20).map(lambda number: f"({number})"),
    st.sampled_from(["a", "b", "c", "True", "False", "xs[0]", "len(xs)", "r['k']"]),
)
_OPERATORS = ["+", "-", "*", "//", "%", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "and", "or"]


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(_OPERATORS), inner),
        st.builds("({} < {} <= {})".format, inner, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("(not {})".format, inner),
        st.builds("(-{})".format, inner),
        st.builds("abs({})".format, inner),
        st.builds("max({}, {})".format, inner, inner),
        st.builds("sum([{} for a in xs if a != {}])".format, inner, inner),
        st.builds("len(f'{{{}}}')".format, inner.filter(lambda text: "'" not in text)),
        st.builds("[{}, {}][{} > 0]".format, inner, inner, inner),
        st.builds("({} in xs)".format, inner),
    )


_NAMES: dict[str, Any] = {"a": 3, "b": -7, "c": 12, "xs": [4, 0, -2], "r": {"k": 9}}


@given(text=st.recursive(_atoms, _larger, max_leaves=12))
def test_agrees_with_python(text: str) -> None:
    """An expression over integers gives what Python gives, and fails where Python fails."""
    try:
        expected = eval(text, {}, dict(_NAMES)) if "for a" not in text else eval(text, dict(_NAMES))
    except ZeroDivisionError:
        expected = ZeroDivisionError
    value, error = outcome_of(text, _NAMES)
    if error is None:
        assert value == expected
        assert type(value) is type(expected)
    else:
        assert expected is ZeroDivisionError or error.limit == "max_int_bits"


_words = st.lists(
    st.sampled_from([
        *"abxyr.,:()[]{}*+-/%<\n", "xs", "**", "==", ":=", "=", "for", "in", "if", "else", "lambda", "and", "not", "is",
        "None", "1", "0.5", "'x'", "f'{a}'", "f'{xs!r:>9}'", ".k", ".items()", ".get(", ".append(", ".format(",
        ".__class__", "len(", "str(", "sorted(", "range(", "key=", "now()", "while", "break", "del", "raise BpmnError(",
        "assert",
    ]),
    max_size=25,
).map(" ".join)  # fmt: skip


@given(text=st.one_of(_words, st.text(max_size=60)))
def test_no_text_does_anything_else(text: str) -> None:
    """Any text is a value or an ExpressionError, as an expression and as a script, and the data stays as it was."""
    names: dict[str, Any] = {"a": 1, "b": "t", "xs": [1, [2]], "r": {"k": {"x": 1}}}
    outcome_of(text, names)
    with contextlib.suppress(ExpressionError, BpmnError):
        results_of(text, names)
    assert names == {"a": 1, "b": "t", "xs": [1, [2]], "r": {"k": {"x": 1}}}


_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.decimals(), st.datetimes()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)
_TEXTS = [
    "x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "x ** y", "x < y", "x == y", "x in y", "x[y]", "x.k", "-x",
    "x << y", "x | y", "len(x)", "sum(x)", "sorted(x)", "min(x, y)", "int(x)", "float(x)", "Decimal(x)", "round(x, y)",
    "str(x)", "f'{x:>{y}}'", "f'{x}'", "x.upper()", "x.join(y)", "x.get(y)", "{x: y}", "[*x]", "range(x, y)", "set(x)",
    "x.replace(y, x)", "x.index(y)", "x.quantize(y)", "date(x)", "datetime(x)", "duration(x)", "zip(x, y)", "dict(x)",
]  # fmt: skip


@given(text=st.sampled_from(_TEXTS), x=_values, y=_values)
def test_no_value_does_anything_else(text: str, x: Any, y: Any) -> None:
    """Whatever values meet, the outcome is a value or an ExpressionError that shows the text."""
    _, error = outcome_of(text, {"x": x, "y": y})
    assert error is None or text in str(error)
