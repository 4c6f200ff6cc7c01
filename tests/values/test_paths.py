"""Paths: what they look like, where they lead, and that writing never touches what was there."""

from __future__ import annotations

import copy
from decimal import Decimal
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.values.support import Line, Order, texts
from trioflow.errors import ExpressionError
from trioflow.values import Path


@pytest.mark.parametrize(
    "text, steps",
    [
        ("order", ("order",)),
        ("order.items[0].price", ("order", "items", 0, "price")),
        ('order["key with spaces"][3]', ("order", "key with spaces", 3)),
        ("order['single']", ("order", "single")),
        ('["order total"].net', ("order total", "net")),
        ('a["say \\"x\\""]', ("a", 'say "x"')),
        ("a [0]".replace(" ", ""), ("a", 0)),
        ("a[ 0 ]", ("a", 0)),
        ("größe.länge", ("größe", "länge")),
        ("a-b.c_d.$ref.@id.0", ("a-b", "c_d", "$ref", "@id", "0")),
        (" a.b ", ("a", "b")),
    ],
)
def test_parse(text: str, steps: tuple[str | int, ...]) -> None:
    """Names, dots, indexes and quoted keys; the root may be quoted too."""
    path = Path.parse(text)
    assert path.steps == steps
    assert path.name == steps[0]
    assert Path.parse(str(path)) == path


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "begin with the name"),
        (".a", "'.a'"),
        ("a.", r"'\.'"),
        ("a..b", r"'\.\.b'"),
        ("a b", "' b'"),
        ("a[", r"'\['"),
        ("a[]", r"'\[\]'"),
        ("a[x]", r"'\[x\]'"),
        ("a[1.5]", r"1\.5"),
        ("a[0]b", "'b'"),
        ("a[-1]", "negative"),
        ("[0].a", "begin with the name"),
        ('a["x\\q"]', "as JSON"),
        ("a" + ".b" * 101, "102 steps"),
        ("a()", r"'\(\)'"),
    ],
)
def test_what_is_no_path(text: str, words: str) -> None:
    """Anything else is refused, and the message shows from where on."""
    with pytest.raises(ExpressionError, match=words):
        Path.parse(text)


@given(st.lists(texts | st.integers(0, 10**12), max_size=5), texts)
def test_every_path_has_a_text(steps: list[str | int], name: str) -> None:
    """str() and parse() are inverse, whatever the keys are."""
    path = Path((name, *steps))
    assert Path.parse(str(path)) == path


ORDER = {"items": [{"price": 1}, Line("x", Decimal(2))], "note": None, "pair": Order(1, [], ("a", "b"))}


@pytest.mark.parametrize(
    "text, expected",
    [
        ("order", ORDER),
        ("order.items[0].price", 1),
        ("order.items[1].price", Decimal(2)),
        ("order.note", None),
        ("order.pair.marks[1]", "b"),
    ],
)
def test_get(text: str, expected: Any) -> None:
    """A path leads through records, lists, typed values and their tuples."""
    assert Path.parse(text).get(ORDER) == expected


@pytest.mark.parametrize(
    "text, words",
    [
        ("order.itmes[0]", "order.itmes\\[0\\]: at order there is no 'itmes', only \\['items', 'note', 'pair'\\]"),
        ("order.items[2]", "at order.items there is no \\[2\\] in a list of 2"),
        ("order.items.price", "at order.items a record with 'price' is expected, but it is a list"),
        ("order.items[0][0]", "at order.items\\[0\\] a list is expected, but it is a dict"),
        ("order.items[0].price.x", "it is a int"),
        ("order.note.x", "at order.note a record with 'x' is expected, but it is null"),
        ("order.items[1].colour", "it is a Line"),
        ("order.items[1].__class__", "it is a Line"),
    ],
)
def test_get_what_is_not_there(text: str, words: str) -> None:
    """The message names the path and the first step that is not there; only fields of typed values are seen."""
    with pytest.raises(ExpressionError, match=words):
        Path.parse(text).get(ORDER)


@pytest.mark.parametrize(
    "root, text, expected",
    [
        (1, "v", 9),
        (None, "v.a.b", {"a": {"b": 9}}),
        ({"a": 1, "c": 2}, "v.a", {"a": 9, "c": 2}),
        ({"a": None}, "v.a.b", {"a": {"b": 9}}),
        ({}, "v.a[0].b", {"a": [{"b": 9}]}),
        ([1, 2], "v[0]", [9, 2]),
        ([1, 2], "v[2]", [1, 2, 9]),
        ([[1]], "v[0][1]", [[1, 9]]),
        (Line("x", Decimal(1)), "v.sku", Line(9, Decimal(1))),  # type: ignore[arg-type]  # any value will do
        (Order(1, [], ("a", "b")), "v.marks[0]", Order(1, [], (9, "b"))),  # type: ignore[arg-type]  # any value will do
    ],
)
def test_set(root: Any, text: str, expected: Any) -> None:
    """Writing makes the records and lists on its way, appends at the end of a list, and leaves the old value alone."""
    before = copy.deepcopy(root)
    assert Path.parse(text).set(root, 9) == expected
    assert root == before


def test_set_shares_what_is_unchanged() -> None:
    """Only the containers on the way are new: the cost is theirs, not the whole value's."""
    root = {"a": {"x": 1}, "b": [1, 2, 3]}
    changed = Path.parse("v.a.x").set(root, 2)
    assert changed["b"] is root["b"]
    assert changed["a"] is not root["a"]


@pytest.mark.parametrize(
    "root, text, words",
    [
        ([1], "v[3]", r"\[3\] is past the end of a list of 1; \[1\] appends"),
        ({}, "v.a[1]", "past the end of a list of 0"),
        (1, "v.a", "at v a record is expected, but it is a int"),
        ({"a": 1}, "v.a[0]", "at v.a a list is expected, but it is a int"),
        (Line("x", Decimal(1)), "v.colour", "a record is expected, but it is a Line"),
    ],
)
def test_set_where_nothing_can_be(root: Any, text: str, words: str) -> None:
    """A hole in a list, or a step into a scalar, is refused."""
    with pytest.raises(ExpressionError, match=words):
        Path.parse(text).set(root, 9)


def test_paths_are_values() -> None:
    """Equal paths are equal, hash alike, and cannot be changed."""
    path = Path.parse("a.b")
    assert {path, Path.parse('a["b"]')} == {path}
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        path.steps = ()  # type: ignore[misc]  # that is the point
