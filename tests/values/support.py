"""What the value tests share: strategies for canonical values, and equality that tells kinds apart."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import attrs
import orjson
from hypothesis import strategies as st

from trioflow.values import Duration, ValueCodec, value_type

NEW_YORK = ZoneInfo("America/New_York")
BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [UTC, NEW_YORK, BERLIN, ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Pacific/Apia"), ZoneInfo("UTC")]


@value_type("line")
@attrs.frozen
class Line:
    """A frozen value type of scalars."""

    sku: str
    price: Decimal


@value_type("order")
@attrs.define
class Order:
    """A mutable value type with containers, a tuple and a private name."""

    number: int
    lines: list[Line]
    marks: tuple[str, ...] = ()
    _note: str | None = None


CODEC = ValueCodec([Line, Order])


def stored(value: Any, codec: ValueCodec = CODEC) -> Any:
    """The value after it went through the bytes of a checkpoint."""
    return codec.decode(orjson.loads(orjson.dumps(codec.encode(value))))


def same(one: Any, other: Any) -> bool:
    """Equal, of equal kinds all the way down, with signs of zeros, zones and folds; a float NaN is a NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, Line | Order):
        names = [field.name for field in attrs.fields(type(one))]
        return all(same(getattr(one, name), getattr(other, name)) for name in names)
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, Decimal):
        return bool(one.as_tuple() == other.as_tuple())
    if isinstance(one, datetime):
        return (repr(one), one.fold) == (repr(other), other.fold)
    return bool(one == other) and repr(one) == repr(other)


zones = st.sampled_from(ZONES) | st.builds(
    lambda seconds: timezone(timedelta(seconds=seconds)), st.integers(-86_399, 86_399)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = texts | st.text(string.ascii_lowercase + "$", min_size=1, max_size=4)


@st.composite
def moments(draw: st.DrawFn) -> datetime:
    """Aware datetimes of all years, in gaps and repeated hours too."""
    wall = draw(st.datetimes())
    return wall.replace(tzinfo=draw(zones), fold=draw(st.sampled_from([0, 1])))


@st.composite
def durations(draw: st.DrawFn) -> Duration:
    """Durations of one sign."""
    counts = st.integers(0, 10**18 - 1) | st.integers(0, 40)
    years, months, weeks, days, exact = (draw(counts) for _ in range(5))
    duration = Duration(years=years, months=months, weeks=weeks, days=days, microseconds=exact)
    return -duration if draw(st.booleans()) else duration


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.decimals().filter(lambda value: not value.is_snan()),
    texts,
    st.binary(max_size=12),
    moments(),
    st.dates(),
    st.times(timezones=st.none() | zones),
    st.timedeltas(),
    durations(),
    st.uuids(),
)
lines = st.builds(Line, texts, st.decimals(allow_nan=False))
values = st.recursive(
    scalars | lines,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(keys, inner, max_size=4),
        st.builds(Order, st.integers(), st.lists(lines, max_size=2), st.tuples(texts, texts), st.none() | texts),
    ),
    max_leaves=12,
)
