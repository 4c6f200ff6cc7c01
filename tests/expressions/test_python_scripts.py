"""Python scripts: statements, what they assign, and that the caller's data is never touched."""

from __future__ import annotations

import copy
from typing import Any, Final

import attrs
import pytest

from tests.expressions.support import results_of, script_failure_of
from trioflow.errors import BpmnError
from trioflow.expressions import LocatedError, PythonScripts

ORDER: Final[dict[str, Any]] = {"total": 1, "lines": [{"price": 2}, {"price": 3}]}


@attrs.define(kw_only=True)
class Basket:
    """A mutable value class of an application."""

    goods: list[str]


@attrs.frozen(kw_only=True)
class Ticket:
    """A frozen value class of an application."""

    number: int


NAMES: Final[dict[str, Any]] = {
    "order": ORDER,
    "items": [1, 2],
    "n": 5,
    "basket": Basket(goods=["tea"]),
    "ticket": Ticket(number=1),
    "same": {"left": ORDER, "right": ORDER},
}

TABLE: Final[list[tuple[str, dict[str, Any]]]] = [
    ("a = 1", {"a": 1}),
    ("a = b = n", {"a": 5, "b": 5}),
    ("a, b = items", {"a": 1, "b": 2}),
    ("a, *b = [1, 2, 3]", {"a": 1, "b": [2, 3]}),
    ("(a, [b, c]) = (1, (2, 3))", {"a": 1, "b": 2, "c": 3}),
    ("n += 1", {"n": 6}),
    ("n = n", {"n": 5}),
    ("items += [3]", {"items": [1, 2, 3]}),
    ("b = items\nb += [3]", {"b": [1, 2, 3]}),
    ("order.total = 3", {"order": {**ORDER, "total": 3}}),
    ("order['total'] = 3", {"order": {**ORDER, "total": 3}}),
    ("order.total += 3", {"order": {**ORDER, "total": 4}}),
    ("order.lines[0].price *= 10", {"order": {"total": 1, "lines": [{"price": 20}, {"price": 3}]}}),
    ("order.note = 'x'", {"order": {**ORDER, "note": "x"}}),
    ("items[-1] = 9", {"items": [1, 9]}),
    ("a, order.total = 1, 2", {"a": 1, "order": {**ORDER, "total": 2}}),
    ("for order.total in items:\n  pass", {"order": {**ORDER, "total": 2}}),
    ("del order.total", {"order": {"lines": ORDER["lines"]}}),
    ("del items[0], items[0]", {"items": []}),
    ("items.append(3)", {"items": [1, 2, 3]}),
    ("items.extend(x for x in [3])", {"items": [1, 2, 3]}),
    ("items.insert(0, 0); items.remove(2); items.reverse()", {"items": [1, 0]}),
    ("a = items.pop()", {"a": 2, "items": [1]}),
    ("items.sort(key=lambda x: -x)", {"items": [2, 1]}),
    ("items.clear()", {"items": []}),
    ("order.update({'a': 1}, b=2)", {"order": {**ORDER, "a": 1, "b": 2}}),
    ("a = order.pop('total')", {"a": 1, "order": {"lines": ORDER["lines"]}}),
    ("a = order.pop('none', 7)", {"a": 7, "order": ORDER}),
    ("order.setdefault('tags', []).append('x')", {"order": {**ORDER, "tags": ["x"]}}),
    ("s = {1}\ns.add(2); s.discard(1); s.update([5])\ns = sorted(s)", {"s": [2, 5]}),
    ("basket.goods = ['milk']", {"basket": Basket(goods=["milk"])}),
    ("basket.goods.append('milk')", {"basket": Basket(goods=["tea", "milk"])}),
    ("if n > 3:\n  a = 'big'\nelif n > 1:\n  a = 'small'\nelse:\n  b = 1", {"a": "big"}),
    ("a = 0\nfor x in range(5):\n  if x == 1: continue\n  if x == 4: break\n  a += x", {"a": 5, "x": 4}),
    ("a = 0\nwhile a < 3:\n  a += 1\nelse:\n  b = True", {"a": 3, "b": True}),
    ("for x in []:\n  pass\nelse:\n  a = 1", {"a": 1}),
    ("assert n == 5, 'no'\na = 1", {"a": 1}),
    ("len = 3\na = len + len([1])", {"len": 3, "a": 4}),
    ("'a text alone'", {}),
    ("pass", {}),
    ("if False:\n  a = 1", {}),
    ("a = {x: x * 2 for x in 'ab'}", {"a": {"a": "aa", "b": "bb"}}),
    ("a = 1, 2", {"a": [1, 2]}),
    ("\n    a = 1\n    if a:\n        b = 2\n", {"a": 1, "b": 2}),
    # changes through an alias
    ("lines = order.lines\nlines.append({})", {"lines": [{"price": 2}, {"price": 3}, {}],
                                               "order": {"total": 1, "lines": [{"price": 2}, {"price": 3}, {}]}}),
    ("for line in order.lines:\n  line.price = 0", {"line": {"price": 0},
                                                    "order": {"total": 1, "lines": [{"price": 0}, {"price": 0}]}}),
    ("box = [order]\nbox[0].total = 9\nbox = 1", {"box": 1, "order": {**ORDER, "total": 9}}),
    ("same.left.total = 2\na = same.right.total", {"same": {"left": {**ORDER, "total": 2},
                                                            "right": {**ORDER, "total": 2}}, "a": 2}),
]  # fmt: skip


@pytest.mark.parametrize("text,expected", TABLE, ids=[text for text, _ in TABLE])
def test_statement(text: str, expected: dict[str, Any]) -> None:
    """The script assigns exactly the expected names, and the caller's data stays as it was."""
    before = copy.deepcopy(NAMES)
    assert results_of(text, NAMES) == expected
    assert before == NAMES


def test_results_share_nothing_with_the_caller() -> None:
    """What comes back is the caller's own, also where it is a part of what was given."""
    results = results_of("a = order\nb = a", NAMES)
    assert results["a"] == ORDER
    assert results["a"] is not ORDER
    assert results["a"] is not results["b"]


@pytest.mark.parametrize(
    "text,names,assigns",
    [
        ("a = b + c.d", {"b", "c"}, {"a"}),
        ("a = 1\nb = a", set(), {"a", "b"}),
        ("if c:\n  a = 1\nb = a", {"a", "c"}, {"a", "b"}),
        ("if c:\n  a = 1\nelse:\n  a = 2\nb = a", {"c"}, {"a", "b"}),
        ("if c:\n  a = 1\nelse:\n  raise BpmnError('x')\nb = a", {"c"}, {"a", "b"}),
        ("for x in xs:\n  t = x\nu = t", {"xs", "t"}, {"x", "t", "u"}),
        ("for x in xs:\n  t = t + x", {"xs", "t"}, {"x", "t"}),
        ("while c:\n  a = 1\nb = a", {"c", "a"}, {"a", "b"}),
        ("n += 1", {"n"}, {"n"}),
        ("order.total = n", {"order", "n"}, {"order"}),
        ("items.append(n)", {"items", "n"}, {"items"}),
        ("out = []\nfor i in items:\n  out.append(i.x)", {"items"}, {"out", "i"}),
        ("for line in order.lines:\n  line.x = 1", {"order"}, {"line", "order"}),
        ("for k, v in order.items():\n  v.x = 1", {"order"}, {"k", "v", "order"}),
        ("a = order.lines if c else other\na.append(1)", {"order", "c", "other"}, {"a", "order", "other"}),
        ("a = [x for x in xs]", {"xs"}, {"a"}),
        ("del order.x", {"order"}, {"order"}),
        ("x = order.get('a')\nx.b = 1", {"order"}, {"x", "order"}),
    ],
)
def test_names_and_assigns(text: str, names: set[str], assigns: set[str]) -> None:
    """A name is read if it may be needed before it is assigned; assigned are names bound or changed in place."""
    script = PythonScripts().compile(text)
    assert script.names == names
    assert script.assigns == assigns


def test_bpmn_error_passes() -> None:
    """A script throws into the model by raising BpmnError with code, message and variables."""
    with pytest.raises(BpmnError, match="too much") as caught:
        results_of("if n > 3:\n  raise BpmnError('E1', 'too much', {'left': (n, 1)})", NAMES)
    assert caught.value.code == "E1"
    assert caught.value.variables == {"left": [5, 1]}


def test_assertion_fails_with_its_message() -> None:
    """A failed assertion is a failure of the script, also in an optimising interpreter."""
    error = script_failure_of("assert n < 3, f'n is {n}'", NAMES)
    assert "an assertion failed: n is 5" in str(error)
    assert "assertion failed" in str(script_failure_of("assert n < 3", NAMES))


@pytest.mark.parametrize(
    "text,part",
    [
        ("import os", "import"),
        ("from os import path", "import"),
        ("def f(): pass", "functions"),
        ("async def f(): pass", "functions"),
        ("class A: pass", "classes"),
        ("with a: pass", "with"),
        ("global a", "Global"),
        ("try:\n  a = 1\nexcept BpmnError:\n  pass", "error boundary event"),
        ("return 1", "assigns variables"),
        ("a: int = 1", "annotation"),
        ("match a:\n  case 1: pass", "if and elif"),
        ("del a", "set a variable to None"),
        ("raise ValueError('x')", "BpmnError"),
        ("raise BpmnError('x') from a", "BpmnError"),
        ("raise", "BpmnError"),
        ("raise BpmnError()", "BpmnError"),
        ("a = (b := 1)", "assignment"),
        ("a[1:2] = [3]", "cannot be assigned"),
        ("f().x, a = 1, 2", "function 'f'"),
        ("async for x in y: pass", "AsyncFor"),
        ("[0 for a.b in c]", "comprehension"),
        ("type X = int", "X"),
        ("order.__class__ = 1", "underscore"),
        ("__names = 1", "reserved"),
        ("for __run in a: pass", "reserved"),
        ("order.__dict__['a'] = 1", "underscore"),
        ("nonlocal a", "a"),
        ("yield 1", "generators"),
        ("await a", "await"),
        ("# nothing", "empty"),
    ],
)
def test_refused_statements(text: str, part: str) -> None:
    """What is not part of the language is refused when it is compiled, with the reason or the way to do it."""
    with pytest.raises(LocatedError, match=f"(?i){part}"):
        PythonScripts().compile(text)


@pytest.mark.parametrize(
    "text,part",
    [
        ("ticket.number = 2", "frozen"),
        ("basket.other = 2", "no field 'other'"),
        ("n.x = 1", "no field 'x'"),
        ("n[0] = 1", "no entries that can be changed"),
        ("items[9] = 1", "index 9"),
        ("order[[1]] = 1", "cannot be looked up"),
        ("del order.missing", "no entry 'missing'"),
        ("order.pop('missing')", "no entry 'missing'"),
        ("del basket.goods", "only an entry"),
        ("a, b = 1", "cannot go through 1"),
        ("a, b = [1]", "unpack"),
        ("a = missing", "'missing' is not defined"),
        ("if n > 9:\n  a = 1\nb = a", "'a' is not defined"),
        ("raise BpmnError(1)", "as texts"),
        ("raise BpmnError('a', 'b', [1])", "record"),
        ("a = {1}", "sorted"),
        ("for x in order:\n  order.update({x + 'x': 1})", "changed"),
    ],
)
def test_failures(text: str, part: str) -> None:
    """A statement that fails says why, and the caller's data stays as it was."""
    before = copy.deepcopy(NAMES)
    assert part in str(script_failure_of(text, NAMES))
    assert before == NAMES
