"""The canonical kinds of values, and the exact builtin behind a subclass of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID
from zoneinfo import ZoneInfo

from trioflow.values.durations import Duration

__all__ = [
    "LEAVES",
    "MAX_DEPTH",
    "MAX_PARTS",
    "PLAIN",
    "Record",
    "Refusal",
    "Value",
    "canonical_zone",
    "exact_scalar",
]

# A union would be exact, but invariance (`list[int]` is no `list[Value]`) would make every user of it cast.
Value: TypeAlias = Any
"""A canonical value: None, bool, int, float, Decimal, str, bytes, datetime (aware), date, time, Duration, timedelta,
UUID, list, dict with str keys (a record), or an instance of a registered attrs class."""

Record: TypeAlias = dict[str, Value]
"""A canonical record."""

MAX_DEPTH: Final = 100
"""How many containers may be inside each other."""

MAX_PARTS: Final = 5_000_000
"""How many values one value may hold in all; a shared part counts each time that it is reached."""


# Canonical whatever their content is; str, Decimal and the kinds with a zone have to be looked at.
PLAIN: Final = frozenset({type(None), bool, int, float, bytes, date, timedelta, UUID, Duration})

# What is immutable through and through once it is canonical.
LEAVES: Final = PLAIN | {str, Decimal, datetime, time}


class Refusal(Exception):
    """Internal: why a part cannot be stored; the containers it passes on its way out add their steps."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []
        self.containers: list[int] = []

    def passed(self, step: str | int, container: object) -> None:
        """Note that the refused part was at ``step`` of ``container``."""
        self.steps.append(step)
        self.containers.append(id(container))


def canonical_zone(zone: tzinfo) -> tzinfo:
    """The zone in the form in which it can be written down; raises Refusal for zone classes without one."""
    if zone is UTC:
        return zone
    if type(zone) is timezone:
        # A display name is no part of a fixed offset's equality and is not kept.
        bare = timezone(zone.utcoffset(None))
        if zone.utcoffset(None).microseconds:
            raise Refusal(f"its offset {bare} has a fraction of a second, which no ISO 8601 text has: round it")
        return zone if zone.tzname(None) == bare.tzname(None) else bare
    if type(zone) is ZoneInfo and zone.key:
        return _known_zone(zone.key)
    raise Refusal(
        f"its time zone is a {_name(type(zone))}, which cannot be stored: use ZoneInfo(key) or datetime.timezone"
    )


def _known_zone(key: str) -> ZoneInfo:
    """Give the zone that the key stands for here (cached), which need not be where the caller's came from."""
    try:
        return ZoneInfo(key)
    except (LookupError, ValueError, OSError) as error:
        raise Refusal(f"its time zone {key!r} is not in the time zone database: use a zone that is") from error


def exact_scalar(value: object) -> Value:
    """The builtin scalar that an instance of a subclass equals (an IntEnum member, a str enum, a driver's UUID).

    Raises Refusal where there is none, or where it is not equal (the subclass holds more than its base can).
    """
    for base, convert in _EXACT:
        if isinstance(value, base):
            return _converted(value, base, convert)
    raise Refusal(f"a {_name(type(value))} cannot be stored")


def _converted(value: object, base: type, convert: Callable[[Any], Any]) -> Value:
    try:
        plain = convert(value)
        same = bool(plain == value) or _is_nan(plain)
    except Exception as error:
        raise Refusal(f"a {_name(type(value))} cannot be stored: it does not convert to {base.__name__}") from error
    if not same:
        raise Refusal(f"a {_name(type(value))} cannot be stored: it does not equal {plain!r}, which it would become")
    return plain


def _is_nan(plain: Value) -> bool:
    return isinstance(plain, float | Decimal) and math.isnan(plain)


def _name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _exact_datetime(v: datetime) -> datetime:
    return datetime(v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond, tzinfo=v.tzinfo, fold=v.fold)


def _exact_time(v: time) -> time:
    return time(v.hour, v.minute, v.second, v.microsecond, tzinfo=v.tzinfo, fold=v.fold)


# The unbound methods of the base, so that an override in the subclass has no say.  datetime stands before date.
_EXACT: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (int, int.__index__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, lambda v: bytes(memoryview(v))),
    (Decimal, Decimal),
    (datetime, _exact_datetime),
    (date, lambda v: date(v.year, v.month, v.day)),
    (time, _exact_time),
    (timedelta, lambda v: timedelta(v.days, v.seconds, v.microseconds)),
    (UUID, lambda v: UUID(int=v.int)),
)
