"""The stored form: exact, unambiguous, and loud about what it does not know."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import attrs
import orjson
import pytest
from hypothesis import given

from tests.values.support import BERLIN, CODEC, NEW_YORK, Line, Order, same, stored, values
from trioflow.errors import CorruptRecord, UnstorableValue
from trioflow.values import Duration, ValueCodec


@given(values)
def test_round_trip(value: Any) -> None:
    """Every canonical value comes back from its bytes equal and of equal kinds."""
    assert same(stored(value), value)


@pytest.mark.parametrize(
    "value, json",
    [
        (None, None),
        (True, True),
        (1, 1),
        (1.0, 1.0),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, {"$int": "0x8000000000000000"}),
        (-(2**63) - 1, {"$int": "-0x8000000000000001"}),
        (math.inf, {"$float": "inf"}),
        (-math.inf, {"$float": "-inf"}),
        (Decimal("1.20"), {"$decimal": "1.20"}),
        (b"\xff", {"$bytes": "/w=="}),
        (date(2026, 3, 7), {"$date": "2026-03-07"}),
        (time(9, 30), {"$time": "09:30:00"}),
        (time(9, tzinfo=BERLIN), {"$time": "09:00:00[Europe/Berlin]"}),
        (timedelta(microseconds=-1), {"$timedelta": [-1, 86399, 999999]}),
        (Duration(months=1, microseconds=3_500_000), {"$duration": "P1MT3.5S"}),
        (UUID(int=1), {"$uuid": "00000000-0000-0000-0000-000000000001"}),
        (datetime(2026, 3, 7, 9, tzinfo=UTC), {"$datetime": "2026-03-07T09:00:00+00:00"}),
        (datetime(2026, 3, 7, 9, tzinfo=NEW_YORK), {"$datetime": "2026-03-07T09:00:00-05:00[America/New_York]"}),
        (
            datetime(2026, 11, 1, 1, 30, tzinfo=NEW_YORK, fold=1),
            {"$datetime": "2026-11-01T01:30:00-05:00[America/New_York][_fold=1]"},
        ),
        ({"a": [1]}, {"a": [1]}),
        ({"b": 1, "$decimal": "1"}, {"$record": {"b": 1, "$decimal": "1"}}),
        ({"$record": {"$record": 1}}, {"$record": {"$record": {"$record": {"$record": 1}}}}),
        (Line("x", Decimal(1)), {"$type:line": {"sku": "x", "price": {"$decimal": "1"}}}),
        (
            Order(1, [], ("a",)),
            {"$type:order": {"number": 1, "lines": [], "marks": {"$tuple": ["a"]}, "_note": None}},
        ),
    ],
)
def test_written_form(value: Any, json: Any) -> None:
    """The stored form is pinned: stores hold it."""
    assert same(CODEC.encode(value), json)
    assert same(CODEC.decode(json), value)


def test_ints_longer_than_python_converts_to_decimal() -> None:
    """An int of a million bits survives; its decimal text would be refused by the interpreter."""
    assert stored(-(1 << 1_000_000)) == -(1 << 1_000_000)


def test_a_datetime_outlives_a_change_of_its_zone() -> None:
    """The wall time and the zone are the value: an offset that the zone no longer has does not make it unreadable."""
    read = CODEC.decode({"$datetime": "2026-07-01T09:00:00+05:00[Europe/Berlin]"})
    assert same(read, datetime(2026, 7, 1, 9, tzinfo=BERLIN))


def test_a_stored_time_in_a_gap_stays_there() -> None:
    """A datetime in a gap is stored as it is, not moved: it is the user's value."""
    gap = datetime(2026, 3, 8, 2, 30, tzinfo=NEW_YORK)
    assert same(stored(gap), gap)
    assert same(stored(gap.replace(fold=1)), gap.replace(fold=1))


@pytest.mark.parametrize(
    "json",
    [
        {"$unknown": 1},
        {"$type:invoice": {}},
        {"$decimal": "1", "other": 2},
        {"$decimal": "one"},
        {"$decimal": 1},
        {"$int": "12x"},
        {"$int": 12},
        {"$float": "1.5"},
        {"$float": 1.5},
        {"$bytes": "*"},
        {"$date": "2026-13-01"},
        {"$datetime": "2026-01-01T00:00:00"},
        {"$datetime": "2026-01-01T00:00:00+01:00[Nowhere/Town]"},
        {"$time": "25:00"},
        {"$duration": "1 day"},
        {"$timedelta": [1, 2]},
        {"$timedelta": [1, 2, 3, 4, 5, 6, 7, 8]},
        {"$timedelta": [1.5, 0, 0]},
        {"$timedelta": "P1D"},
        {"$uuid": "x"},
        {"$record": []},
        {"$tuple": {}},
        {"$type:line": []},
        {"$type:line": {"sku": "x"}},
        {"$type:line": {"sku": "x", "price": 1, "colour": "red"}},
        {"a": [{"$unknown": 1}]},
        Decimal(1),
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_corrupt(json: Any) -> None:
    """An unknown tag and content that its tag cannot have are refused, never guessed."""
    with pytest.raises(CorruptRecord):
        CODEC.decode(json)


def test_only_canonical_values_are_written() -> None:
    """Writing does not validate again, but never writes a kind that it does not know."""
    with pytest.raises(UnstorableValue, match="canonical"):
        CODEC.encode({"a": {1, 2}})


def _day(text: str) -> date:
    return date.fromisoformat(text)


def test_value_types_are_restored_without_init_and_with_new_defaults() -> None:
    """A converter need not take what it returned; a field added since then takes its default, a derived one too."""

    @attrs.define
    class Booking:
        day: date = attrs.field(converter=_day)
        seats: int = 1
        guests: list[str] = attrs.field(factory=list)
        label: str = attrs.field(init=False, default=attrs.Factory(lambda self: f"{self.seats}", takes_self=True))

    codec = ValueCodec({"booking": Booking})
    booking = Booking("2026-01-31")
    assert stored(booking, codec) == booking
    assert codec.copy(booking) == booking
    assert codec.decode({"$type:booking": {"day": {"$date": "2026-01-31"}}}) == booking


def test_a_renamed_class_reads_what_its_tag_wrote() -> None:
    """The tag, not the name of the class, is what the store holds."""
    renamed = attrs.make_class("Position", ["sku", "price"])
    read = ValueCodec({"line": renamed}).decode(CODEC.encode(Line("x", Decimal(1))))
    assert read == renamed("x", Decimal(1))


def test_fixed_offsets_of_seconds_survive() -> None:
    """Offsets as they were before time zones are kept to the second."""
    old = datetime(1800, 1, 1, tzinfo=timezone(timedelta(hours=-4, minutes=-56, seconds=-2)))
    assert same(stored(old), old)
    assert orjson.dumps(CODEC.encode(old)) == b'{"$datetime":"1800-01-01T00:00:00-04:56:02"}'
