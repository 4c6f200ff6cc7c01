"""Each construct of Python expressions, with the value that it gives."""

from __future__ import annotations

import decimal
import subprocess
import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import attrs
import pytest

from tests.expressions.support import NOW, failure_of, value_of
from trioflow.errors import UnstorableValue
from trioflow.expressions import PythonExpressions


@attrs.frozen(kw_only=True)
class Money:
    """A value class as an application registers it."""

    amount: int
    currency: str = "EUR"

    def __add__(self, other: Money) -> Money:
        return Money(amount=self.amount + other.amount, currency=self.currency)


NAMES: Final[dict[str, Any]] = {
    "amount": 120,
    "price": Decimal("9.99"),
    "nothing": None,
    "yes": True,
    "name": "Ada Lovelace",
    "xs": [3, 1, 2],
    "order": {
        "total": 250,
        "items": [{"sku": "a", "price": 2}, {"sku": "b", "price": 5}],
        "get": "an entry named like a method",
        "_id": "o-17",
        "to": {"city": "Paris"},
    },
    "date": date(2026, 3, 1),
    "due": datetime(2026, 3, 1, 9, 5, tzinfo=UTC),
    "span": timedelta(hours=36),
    "at": time(8, 30),
    "raw": b"\x01\xff",
    "ident": UUID(int=5),
    "money": Money(amount=3),
    "_private": 7,
}

TABLE: Final[list[tuple[str, Any]]] = [
    # constants and names
    ("None", None),
    ("True", True),
    ("12", 12),
    ("-1.5", -1.5),
    ("'a' 'b'", "ab"),
    ("b'x'", b"x"),
    ("amount", 120),
    ("_private", 7),
    ("date", date(2026, 3, 1)),
    # comparisons
    ("amount > 100", True),
    ("amount <= 100", False),
    ("0 < amount < 200", True),
    ("0 < amount < 100 < 1 / 0", False),
    ("1 < 2 < 3 != 4 >= 4 == 4", True),
    ("price < 10", True),
    ("nothing is None", True),
    ("yes is not True", False),
    ("1 is None", False),
    ("nothing == 0", False),
    ("xs == [3, 1, 2]", True),
    ("order != {}", True),
    ("[1, 2] < [1, 3]", True),
    ("2 in xs", True),
    ("[1] in [[1], [2]]", True),
    ("'total' in order", True),
    ("'x' not in order", True),
    ("'Ada' in name", True),
    ("2 in {1, 2}", True),
    ("due < now()", True),
    # boolean operators and conditions
    ("amount > 100 and order.total > 200", True),
    ("nothing or 'other'", "other"),
    ("not nothing", True),
    ("yes or undefined_name", True),
    ("'big' if amount > 100 else undefined_name", "big"),
    # arithmetic
    ("amount + 1", 121),
    ("7 // 2 + 7 % 2 - 3", 1),
    ("7 / 2", 3.5),
    ("2 ** 10", 1024),
    ("2 ** -1", 0.5),
    ("1 << 4 | 1", 17),
    ("6 & 3 ^ 1", 3),
    ("255 >> 4", 15),
    ("~amount", -121),
    ("-amount", -120),
    ("+amount", 120),
    ("price * 2", Decimal("19.98")),
    ("1 / Decimal(3)", Decimal("0.3333333333333333333333333333")),
    ("-price", Decimal("-9.99")),
    ("'ab' + 'c'", "abc"),
    ("3 * 'ab'", "ababab"),
    ("[0] * 2 + [1]", [0, 0, 1]),
    ("{'a': 1} | {'b': 2}", {"a": 1, "b": 2}),
    ("due + span", datetime(2026, 3, 2, 21, 5, tzinfo=UTC)),
    ("span * 2", timedelta(hours=72)),
    ("money + money", Money(amount=6)),
    # parts
    ("order.total", 250),
    ("order['_id']", "o-17"),
    ("order.to.city", "Paris"),
    ("order.items[1].price", 5),
    ("order.get", "an entry named like a method"),
    ("order.get('missing', 1)", 1),
    ("xs[-1]", 2),
    ("xs[0:2]", [3, 1]),
    ("name[::-1][:3]", "eca"),
    ("money.amount", 3),
    ("due.year", 2026),
    ("span.days", 1),
    ("at.hour", 8),
    ("ident.hex", "0" * 31 + "5"),
    # displays and comprehensions
    ("[1, *xs]", [1, 3, 1, 2]),
    ("(1, 2)", [1, 2]),
    ("{'a': 1, **{'b': 2}}", {"a": 1, "b": 2}),
    ("{1, 2} == {2, 1}", True),
    ("[x * 2 for x in xs if x > 1]", [6, 4]),
    ("[x + y for x in xs for y in [10, 20] if x < y]", [13, 23, 11, 21, 12, 22]),
    ("{i.sku: i.price for i in order.items}", {"a": 2, "b": 5}),
    ("sorted({x % 2 for x in xs})", [0, 1]),
    ("[[y for y in [x]] for x in xs]", [[3], [1], [2]]),
    ("[amount for amount in xs]", [3, 1, 2]),
    ("[k for k, v in order.items()][0]", "total"),
    ("[a for a, *rest in [[1, 2], [3]]]", [1, 3]),
    ("sum(i.price for i in order.items)", 7),
    ("any(i.price > 4 for i in order.items)", True),
    ("all(0 < x < 4 for x in xs)", True),
    # f-strings
    ("f'{name}: {amount:>5}|{price:.1f}|{xs!r}'", "Ada Lovelace:   120|10.0|[3, 1, 2]"),
    ("f'{amount:{amount // 20}d}'", "   120"),
    ("f'{due:%d.%m.%Y %H:%M}'", "01.03.2026 09:05"),
    ("f'{name!r}'", "'Ada Lovelace'"),
    ("f'{name!s:.3}'", "Ada"),
    ("f'{amount=}'", "amount=120"),
    ("f''", ""),
    ("f'{1234567:,}'", "1,234,567"),
    # functions
    ("len(xs) + len(name)", 15),
    ("[min(xs), max(xs), max(1, 5, 2)]", [1, 3, 5]),
    ("min([], default=0)", 0),
    ("max(order.items, key=lambda i: i.price).sku", "b"),
    ("sorted(xs, reverse=True)", [3, 2, 1]),
    ("sorted(order.items, key=lambda i: -i.price)[0].sku", "b"),
    ("sum([1.5, 2])", 3.5),
    ("sum([price, price], Decimal(0))", Decimal("19.98")),
    ("[abs(-3), abs(Decimal('-1.5'))]", [3, Decimal("1.5")]),
    ("[round(2.567, 1), round(2.5), round(1234, -2)]", [2.6, 2, 1200]),
    ("round(Decimal('2.345'), 2)", Decimal("2.34")),
    ("[int('12'), int(3.9), int('ff', 16), int(Decimal('7.9'))]", [12, 3, 255, 7]),
    ("[float('1.5'), float(2)]", [1.5, 2.0]),
    (
        "[str(12), str(None), str([1, 'a']), str((1,)), str({'a': {2}})]",
        ["12", "None", "[1, 'a']", "(1,)", "{'a': {2}}"],
    ),
    ("[bool(0), bool('x'), bool()]", [False, True, False]),
    ("range(2, 8, 3)", [2, 5]),
    ("range(3, 0, -1)", [3, 2, 1]),
    ("zip(xs, 'abc')", [[3, "a"], [1, "b"], [2, "c"]]),
    ("enumerate(xs, 1)", [[1, 3], [2, 1], [3, 2]]),
    ("reversed(xs)", [2, 1, 3]),
    ("list('ab')", ["a", "b"]),
    ("tuple(xs)", [3, 1, 2]),
    ("list(set([2, 1, 2]))", [1, 2]),
    ("list({'b', 'a', 1})", [1, "a", "b"]),
    ("dict(a=1)", {"a": 1}),
    ("dict([('a', 1)], b=2)", {"a": 1, "b": 2}),
    ("Decimal('1.10')", Decimal("1.10")),
    ("date('2026-01-31')", date(2026, 1, 31)),
    ("date(2026, 1, 31)", date(2026, 1, 31)),
    ("datetime('2026-01-31T10:00:00+02:00')", datetime(2026, 1, 31, 8, tzinfo=UTC)),
    ("datetime(2026, 1, 31, 8)", datetime(2026, 1, 31, 8, tzinfo=UTC)),
    ("time('08:30')", time(8, 30)),
    ("timedelta(days=1, hours=2)", timedelta(hours=26)),
    ("duration('P1DT2H30M')", timedelta(hours=26, minutes=30)),
    ("duration('-PT0.5S')", timedelta(milliseconds=-500)),
    ("now()", NOW),
    ("today()", NOW.date()),
    # methods
    ("name.upper().split()", ["ADA", "LOVELACE"]),
    ("','.join(str(x) for x in xs)", "3,1,2"),
    ("name.replace('a', 'o', 1)", "Ado Lovelace"),
    ("'7'.zfill(3) + 'a'.center(3, '-')", "007-a-"),
    ("name.startswith('Ada')", True),
    ("xs.index(2) + xs.count(3)", 3),
    ("order.keys()[0]", "total"),
    ("{1}.union([2]) == {1, 2}", True),
    ("due.date()", date(2026, 3, 1)),
    ("due.replace(day=2, hour=0)", datetime(2026, 3, 2, 0, 5, tzinfo=UTC)),
    ("due.astimezone('Europe/Berlin').hour", 10),
    ("due.timestamp()", datetime(2026, 3, 1, 9, 5, tzinfo=UTC).timestamp()),
    ("due.isocalendar()", [2026, 9, 7]),
    ("date.weekday()", 6),
    ("span.total_seconds()", 129600.0),
    ("price.quantize(Decimal('0.1'))", Decimal("10.0")),
    ("price.quantize(Decimal('0.1'), rounding='ROUND_DOWN')", Decimal("9.9")),
    ("raw.hex()", "01ff"),
    # layout
    ("\n    amount > 100\n      and amount < 200  # a note\n", True),
    ("  amount  ", 120),
    ("(1,\n 2)", [1, 2]),
    ("1, 2", [1, 2]),
]


@pytest.mark.parametrize("text,expected", TABLE, ids=[text for text, _ in TABLE])
def test_construct(text: str, expected: Any) -> None:
    """The construct gives the expected value, of exactly the expected type."""
    value = value_of(text, NAMES)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    "text,names",
    [
        ("a + b.c + d['e']", {"a", "b", "d"}),
        ("[x for x in xs if x > limit]", {"xs", "limit"}),
        ("[x for x in x]", {"x"}),
        ("[y for x in xs for y in x]", {"xs"}),
        ("sorted(xs, key=lambda a: a.b + c)", {"xs", "c"}),
        ("len(len)", {"len"}),
        ("f'{a:{b}}'", {"a", "b"}),
        ("now()", set()),
        ("a if b else c", {"a", "b", "c"}),
        ("{a: b for c in d}", {"a", "b", "d"}),
    ],
)
def test_names_are_the_free_root_names(text: str, names: set[str]) -> None:
    """Variables of comprehensions and lambdas, functions, entries and methods are not among the names."""
    assert PythonExpressions().compile(text).names == names


def test_only_what_is_reached_is_read() -> None:
    """A lazy view of the data is asked for single names, and only for those that the evaluation needs."""
    asked: list[str] = []

    class View(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            asked.append(name)
            return super().__getitem__(name)

        def __iter__(self) -> Any:
            raise AssertionError("the view was copied")

    assert value_of("a if flag else b", View(a=1, b=2, flag=True)) == 1
    assert asked == ["flag", "a"]


def test_result_shares_nothing_that_the_expression_built() -> None:
    """A part of the data comes back as it is; a newly made collection holds copies of the parts."""
    names = {"order": {"lines": [1]}}
    assert value_of("order.lines", names) is names["order"]["lines"]
    built = value_of("[order.lines]", names)
    assert built == [[1]]
    assert built[0] is not names["order"]["lines"]


def test_decimals_do_not_depend_on_the_host_program() -> None:
    """The decimal context of the calling thread has no influence."""
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_UP)):
        assert value_of("Decimal('1.23456') + 1") == Decimal("2.23456")
        assert value_of("round(Decimal('1.23456'), 4)") == Decimal("1.2346")
        assert value_of("-Decimal('1.23456')") == Decimal("-1.23456")


def test_sets_have_one_order_in_every_process() -> None:
    """Hash seeds differ from process to process; lists made from sets do not."""
    text = "[list(s) + [x for x in s] + [f'{s}'] for s in [{w for w in words}]]"
    program = f"from tests.expressions.support import value_of\nprint(value_of({text!r}, {{'words': 'qwertz'}}))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "['e', 'q', 'r', 't', 'w', 'z'" in outputs.pop()


def test_errors_of_the_view_pass() -> None:
    """What the data's own view raises as ours is not disguised as a failure of the expression."""

    class Broken(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise UnstorableValue("broken", path=name)

    with pytest.raises(UnstorableValue, match="broken"):
        value_of("a + 1", Broken())


def test_set_is_no_result() -> None:
    """A set may be used on the way, but is no process value; the message says what to write."""
    assert "sorted(...)" in str(failure_of("{1, 2}"))


def test_record_names_are_texts() -> None:
    """A record with another kind of name is refused as a result."""
    assert "texts" in str(failure_of("{1: 2}"))
    assert value_of("{1: 2}[1]") == 2
