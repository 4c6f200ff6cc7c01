"""What can be stored, what is converted on the way, and what is refused with which words."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from types import MappingProxyType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import orjson
import pytest
from hypothesis import given

from tests.values.support import BERLIN, CODEC, Line, Order, same, values
from trioflow.errors import InvalidRequest, UnstorableValue
from trioflow.values import MAX_DEPTH, Duration, ValueCodec, value_type


class Colour(enum.IntEnum):
    """An enum of ints."""

    RED = 1


class Size(enum.StrEnum):
    """An enum of texts."""

    SMALL = "s"


class Plain(enum.Enum):
    """An enum of neither."""

    ONE = 1


class Nanoseconds(datetime):
    """As data frame libraries have them: a datetime that can be more than one."""

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


class DriverUuid(UUID):
    """As database drivers have them."""


class SameTime(datetime):
    """As tools that freeze time have them."""


class Fixed(tzinfo):
    """A zone class of somebody's own."""

    def utcoffset(self, _moment: datetime | None) -> timedelta:
        """No offset."""
        return timedelta(0)

    def dst(self, _moment: datetime | None) -> None:
        """Nothing known."""

    def tzname(self, _moment: datetime | None) -> str:
        """The name."""
        return "fixed"


class Number(float):
    """As numpy.float64 is one."""


class Names(list[str]):
    """A list of somebody's own."""


class Table(dict[str, int]):
    """A dict of somebody's own."""


Point = namedtuple("Point", "x y")  # noqa: PYI024  # it is the untyped one that users have


@dataclass
class Data:
    """A dataclass."""

    x: int = 1


@attrs.frozen
class Unregistered:
    """An attrs class that no codec knows."""

    x: int = 1


class NumpyLike:
    """As arrays are."""

    def tolist(self) -> list[int]:
        """Its elements."""
        return [1]


@given(values)
def test_canonical_values_are_their_own_canonical_form(value: Any) -> None:
    """Canonical values come out equal, of equal kinds, and a copy of them too."""
    assert same(CODEC.canonical(value, "v"), value)
    assert same(CODEC.copy(value), value)


def _containers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value, *(inner for item in value.values() for inner in _containers(item))]
    if isinstance(value, list):
        return [value, *(inner for item in value for inner in _containers(item))]
    if isinstance(value, Order):
        return [value, *_containers(value.lines)]
    return []


@given(values)
def test_no_mutable_part_is_shared(value: Any) -> None:
    """Neither canonical() nor copy() lets the caller's containers into the state."""
    mine = {id(part) for part in _containers(value)}
    for taken in (CODEC.canonical(value, "v"), CODEC.copy(value)):
        assert mine.isdisjoint(id(part) for part in _containers(taken))


def test_what_is_immutable_is_not_copied() -> None:
    """A frozen instance of immutable fields is returned as it is, by both."""
    line = Line("a", Decimal("1.20"))
    assert CODEC.canonical(line, "v") is line
    assert CODEC.copy(line) is line


@pytest.mark.parametrize(
    "value, expected",
    [
        pytest.param((1, (2, "x")), [1, [2, "x"]], id="tuples"),
        pytest.param(OrderedDict(b=1, a=2), {"b": 1, "a": 2}, id="OrderedDict"),
        pytest.param(defaultdict(list, a=[1]), {"a": [1]}, id="defaultdict"),
        pytest.param(Counter("aab"), {"a": 2, "b": 1}, id="Counter"),
        pytest.param(Colour.RED, 1, id="IntEnum"),
        pytest.param(Size.SMALL, "s", id="StrEnum"),
        pytest.param({Size.SMALL: 1}, {"s": 1}, id="StrEnum key"),
        pytest.param(Number(1.5), 1.5, id="float subclass"),
        pytest.param(DriverUuid(int=5), UUID(int=5), id="UUID subclass"),
        pytest.param(SameTime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC), id="datetime subclass"),
        pytest.param(
            datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1), "CET")),
            datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=1))),
            id="named offset",
        ),
    ],
)
def test_conversions(value: Any, expected: Any) -> None:
    """What is converted keeps its equality (tuples apart, which become lists) and gets an exact kind."""
    assert same(CODEC.canonical(value, "v"), expected)


def test_a_nan_of_a_subclass_is_converted() -> None:
    """A NaN, which equals nothing, is still taken for the plain NaN."""
    assert same(CODEC.canonical(Number("nan"), "v"), float("nan"))


def test_tuples_in_fields_stay() -> None:
    """A field of a registered class keeps its tuple, nested ones too: a list would make it unequal."""
    order = Order(1, [], marks=("a", ("b", (Line("x", Decimal(1)),))))  # type: ignore[arg-type]  # any depth
    assert CODEC.canonical(order, "v") == order


@pytest.mark.parametrize(
    "value, words",
    [
        pytest.param({1, 2}, "sorted", id="set"),
        pytest.param(frozenset(), "sorted", id="frozenset"),
        pytest.param(Point(1, 2), "_asdict", id="namedtuple"),
        pytest.param(MappingProxyType({}), "dict(value)", id="mappingproxy"),
        pytest.param(UserDict(), "dict(value)", id="UserDict"),
        pytest.param(Table(), "dict(value)", id="dict subclass"),
        pytest.param(Names(), "list(value)", id="list subclass"),
        pytest.param(deque(), "list(value)", id="deque"),
        pytest.param(range(3), "list(value)", id="range"),
        pytest.param(iter([]), "list(value)", id="iterator"),
        pytest.param(bytearray(b"x"), "bytes(value)", id="bytearray"),
        pytest.param(memoryview(b"x"), "bytes(value)", id="memoryview"),
        pytest.param(Plain.ONE, ".value", id="Enum"),
        pytest.param(Data(), "dataclasses.asdict", id="dataclass"),
        pytest.param(Unregistered(), "register", id="attrs class"),
        pytest.param(NumpyLike(), "tolist", id="array"),
        pytest.param(1j, "complex", id="complex"),
        pytest.param(object(), "kind of value", id="object"),
        pytest.param(datetime(2026, 1, 1), "zone", id="naive"),  # noqa: DTZ001  # that is the point
        pytest.param(datetime(2026, 1, 1, tzinfo=Fixed()), "ZoneInfo", id="zone class"),
        pytest.param(datetime(2026, 1, 1, tzinfo=timezone(timedelta(microseconds=1))), "round", id="odd offset"),
        pytest.param(time(1, tzinfo=Fixed()), "ZoneInfo", id="zone class of a time"),
        pytest.param(Nanoseconds(2026, 1, 1, tzinfo=UTC), "equal", id="unequal subclass"),
        pytest.param(Decimal("sNaN"), "NaN", id="sNaN"),
        pytest.param("a\ud800", "surrogate at position 1", id="surrogate"),
        pytest.param({"\udfff": 1}, "surrogate", id="surrogate key"),
        pytest.param({1: 2}, "str(key)", id="int key"),
        pytest.param({None: 2}, "str(key)", id="null key"),
    ],
)
def test_refusals(value: Any, words: str) -> None:
    """What has no canonical form is refused, alone and inside, with the path and what to do."""
    with pytest.raises(UnstorableValue) as alone:
        CODEC.canonical(value, "order")
    assert words in str(alone.value)
    with pytest.raises(UnstorableValue) as inside:
        CODEC.canonical({"items": [0, {"the price": value}]}, "order")
    assert inside.value.path.startswith('order.items[1]["the price"]')
    assert str(inside.value).startswith(inside.value.path)
    assert words in str(inside.value)


def test_the_path_leads_through_typed_values() -> None:
    """Fields and places of tuples are steps of the path."""
    order = Order(1, [Line("x", {1})], marks=())  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(UnstorableValue) as lists:
        CODEC.canonical([order], "orders")
    assert lists.value.path == "orders[0].lines[0].price"
    with pytest.raises(UnstorableValue) as tuples:
        CODEC.canonical(Order(1, [], marks=("a", {1})), "order")  # type: ignore[arg-type]  # wrong on purpose
    assert tuples.value.path == "order.marks[1]"


def test_a_field_that_was_never_set_is_refused() -> None:
    """An instance that lacks a field cannot be stored, and the message names the field."""
    order = Order.__new__(Order)
    with pytest.raises(UnstorableValue, match=r"order\.number: this field was never set"):
        CODEC.canonical(order, "order")


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda inner: [inner], id="lists"),
        pytest.param(lambda inner: {"$a": inner}, id="escaped records"),
        pytest.param(lambda inner: Line(inner, Decimal(1)), id="typed values"),
    ],
)
def test_depth(wrap: Callable[[Any], Any]) -> None:
    """The greatest allowed depth goes through orjson in the widest written form; one more is refused."""
    value: Any = None
    for _ in range(MAX_DEPTH):
        value = wrap(value)
    taken = CODEC.canonical(value, "v")
    assert CODEC.decode(orjson.loads(orjson.dumps(CODEC.encode(taken)))) == value
    with pytest.raises(UnstorableValue, match="more than 100 containers deep"):
        CODEC.canonical(wrap(value), "v")


def test_cycles_are_refused_as_such() -> None:
    """A value that contains itself says so, by whatever way it does."""
    record: dict[str, Any] = {}
    record["list"] = [record]
    order = Order(1, [])
    order.lines.append(order)  # type: ignore[arg-type]  # wrong on purpose
    for value in (record, order):
        with pytest.raises(UnstorableValue, match="order contains itself"):
            CODEC.canonical(value, "order")


def test_a_small_value_that_unfolds_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared parts count each time that they are reached, so forty lines cannot fill the memory."""
    monkeypatch.setattr("trioflow.values._canonical.MAX_PARTS", 1_000)
    value: list[Any] = []
    for _ in range(40):
        value = [value, value]
    with pytest.raises(UnstorableValue, match="more than 1,000 parts"):
        CODEC.canonical(value, "bomb")


@pytest.mark.parametrize(
    "types, words",
    [
        pytest.param([Data], "no tag", id="unmarked"),
        pytest.param({"data": Data}, "no attrs class", id="dataclass"),
        pytest.param({"a b": Line}, "no tag of a value type", id="bad tag"),
        pytest.param({"x": attrs.make_class("A", ["x"], eq=False)}, "equality", id="eq=False"),
        pytest.param({"x": attrs.make_class("B", ["x"], frozen=True, cache_hash=True)}, "hash", id="cache_hash"),
        pytest.param([Line, value_type("line")(attrs.make_class("C", ["x"]))], "same tag", id="same tag"),
        pytest.param([attrs.make_class("D", ["x"], bases=(Line,))], "no tag", id="tags are not inherited"),
    ],
)
def test_value_types_that_cannot_be_registered(types: Any, words: str) -> None:
    """A class whose instances would not come back equal, or under one tag, is refused when the codec is made."""
    with pytest.raises(InvalidRequest, match=words):
        ValueCodec(types)


def test_codecs_share_nothing() -> None:
    """A class is a value type only where it is registered."""
    with pytest.raises(UnstorableValue, match="register"):
        ValueCodec().canonical(Line("a", Decimal(1)), "v")


def test_plain_scalars_come_back_as_they_are() -> None:
    """The hot path returns the very object."""
    for value in (None, True, 2**80, 1.5, "text", "käse", b"x", date(2026, 1, 1), timedelta(1), Duration(days=1)):
        assert CODEC.canonical(value, "v") is value


def test_zones_keep_their_key() -> None:
    """A zone that was loaded apart is the cached one of the same key afterwards."""
    apart = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo.no_cache("Europe/Berlin"))
    assert CODEC.canonical(apart, "v").tzinfo is BERLIN
