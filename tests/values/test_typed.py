"""Typed values: what a handler with `inputs=` is given, and what becomes of the objects that it returns."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal, NewType, TypedDict
from uuid import UUID

import attrs
import pytest

from tests.values.support import CODEC, Line, Order
from trioflow.errors import InvalidRequest, UnstorableValue
from trioflow.values import Duration

Sku = NewType("Sku", str)


class Colour(enum.StrEnum):
    """An enum of texts."""

    RED = "red"


class Level(enum.IntEnum):
    """An enum of ints."""

    HIGH = 2


class Kind(enum.Enum):
    """An enum of neither."""

    A = "a"


class Address(TypedDict):
    """A record with known keys."""

    city: str


@attrs.frozen
class Item:
    """A part of a request."""

    price: Decimal
    colour: Colour = Colour.RED


@attrs.define
class Request:
    """What a handler asks for."""

    amount: int
    items: list[Item] = attrs.field(factory=list)
    note: str | None = None


@attrs.define
class Checked:
    """A class with a rule of its own."""

    share: float = attrs.field(validator=attrs.validators.le(1.0))


def test_a_record_becomes_the_class() -> None:
    """Fields are structured by their types, defaults apply, further names of the scope are ignored."""
    record = {"amount": 1, "items": [{"price": Decimal("1.20")}, {"price": "2.50", "colour": "red"}], "other": {}}
    expected = Request(1, [Item(Decimal("1.20")), Item(Decimal("2.50"), Colour.RED)])
    assert CODEC.structure(record, Request) == expected


@pytest.mark.parametrize(
    "value, cls, expected",
    [
        (1, int, 1),
        (1, float, 1.0),
        (1, Decimal, Decimal(1)),
        ("1.20", Decimal, Decimal("1.20")),
        ("2026-01-01T12:00:00Z", datetime, datetime(2026, 1, 1, 12, tzinfo=UTC)),
        (datetime(2026, 1, 1, tzinfo=UTC), datetime, datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01", date, date(2026, 1, 1)),
        ("09:30", time, time(9, 30)),
        ("PT1.5S", timedelta, timedelta(seconds=1.5)),
        (Duration(microseconds=5), timedelta, timedelta(microseconds=5)),
        ("P1D", Duration, Duration(days=1)),
        (timedelta(seconds=1), Duration, Duration(microseconds=1_000_000)),
        ("00000000-0000-0000-0000-000000000001", UUID, UUID(int=1)),
        ("red", Colour, Colour.RED),
        (2, Level, Level.HIGH),
        ("a", Kind, Kind.A),
        ("x", Literal["x", "y"], "x"),
        ("x", Sku, "x"),
        (None, int | None, None),
        ("2026-01-01", date | None, date(2026, 1, 1)),
        ("1", int | str, "1"),
        (1, int | str, 1),
        ([1, 2], list[int], [1, 2]),
        ([1, 2], tuple[int, ...], (1, 2)),
        ([1, "a"], tuple[int, str], (1, "a")),
        ([1, 2], Sequence[int], (1, 2)),
        ([1, 1], set[int], {1}),
        ({"a": 1}, dict[str, float], {"a": 1.0}),
        ({"a": 1}, Mapping[str, int], {"a": 1}),
        ({"city": "Bonn"}, Address, {"city": "Bonn"}),
        ({"a": [1]}, Any, {"a": [1]}),
        ({"a": [1]}, dict, {"a": [1]}),
        (Line("x", Decimal(1)), Line, Line("x", Decimal(1))),
        ({"sku": "x", "price": 1}, Line | None, Line("x", Decimal(1))),
        (None, Line | None, None),
    ],
)
def test_kinds(value: Any, cls: Any, expected: Any) -> None:
    """A value of the kind, a wider number, and the text of a kind that JSON lacks are taken."""
    result = CODEC.structure(value, cls)
    assert (type(result), result) == (type(expected), expected)


@pytest.mark.parametrize(
    "value, cls",
    [
        ("1", int),
        (True, int),
        (1, bool),
        (1.0, int),
        (1, str),
        (2**53 + 1, float),
        (10**400, float),
        ("one", Decimal),
        (1.5, Decimal),
        ("2026-01-01T12:00:00", datetime),
        ("soon", datetime),
        ("P1D", timedelta),
        ("abc", list[str]),
        ("abc", tuple[str, ...]),
        ("ab", tuple[str, str]),
        ("abc", set[str]),
        ({"a": 1}, list[str]),
        (["a"], dict[str, int]),
        ("x", dict[str, int]),
        ([("a", 1)], Address),
        ("blue", Colour),
        ("z", Literal["x"]),
        (True, int | None),
        ([], int | str),
        (None, Request),
        ([1], Request),
        ("x", Request),
        ({}, Request),
        ({"share": 1.5}, Checked),
        (1, object),
    ],
)
def test_what_does_not_fit(value: Any, cls: Any) -> None:
    """Nothing is coerced with a loss, and a text is no list of letters."""
    with pytest.raises(InvalidRequest, match="can be made of inputs"):
        CODEC.structure(value, cls)


def test_all_faults_are_listed_with_their_paths() -> None:
    """One message names every wrong part, its path and what was expected there."""
    record = {"items": [{"price": 1}, {"price": "x", "colour": "blue"}], "note": 5}
    with pytest.raises(InvalidRequest) as caught:
        CODEC.structure(record, Request, "order")
    message = str(caught.value)
    assert message.startswith("no Request can be made of order: ")
    assert "required field missing @ order.amount" in message
    assert "expected a Decimal, not 'x' (str) @ order.items[1].price" in message
    assert "'blue' is not a valid Colour @ order.items[1].colour" in message
    assert "@ order.note" in message


def test_a_structured_value_shares_nothing() -> None:
    """What the handler is given can be changed without touching the state."""
    state = {"a": [1]}
    CODEC.structure(state, dict)["a"].append(2)
    order = Order(1, [Line("x", Decimal(1))])
    CODEC.structure(order, Order).lines.clear()
    assert state == {"a": [1]}
    assert len(order.lines) == 1


def test_unstructure() -> None:
    """Attrs instances become records, enums their values, tuples lists; scalars of ours stay what they are."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    request = Request(1, [Item(Decimal("1.20"))], note="x")
    assert CODEC.unstructure({"request": request, "at": moment, "kind": Kind.A, "pair": (1, Duration(days=1))}) == {
        "request": {"amount": 1, "items": [{"price": Decimal("1.20"), "colour": "red"}], "note": "x"},
        "at": moment,
        "kind": "a",
        "pair": [1, Duration(days=1)],
    }


def test_what_was_unstructured_structures_back() -> None:
    """structure() and unstructure() are inverse."""
    request = Request(1, [Item(Decimal("1.20"))], note=None)
    assert CODEC.structure(CODEC.unstructure(request), Request) == request


def test_unstructure_refuses_what_cannot_be_stored() -> None:
    """A part without canonical form is named by its path in the outputs."""
    with pytest.raises(UnstorableValue, match=r"outputs\.note"):
        CODEC.unstructure(Request(1, note=object()))  # type: ignore[arg-type]  # wrong on purpose
