"""What may follow a dot: entries of records, and the methods and attributes of the known types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs

from trioflow.expressions.faults import Fault, explained
from trioflow.expressions.python.kinds import COLLECTIONS, TEXTS, exact_context, is_object
from trioflow.expressions.python.mutators import LIST_MUTATORS, RECORD_MUTATORS, SET_MUTATORS
from trioflow.expressions.python.operators import key
from trioflow.expressions.python.run import Run
from trioflow.expressions.python.subscripts import entries_of
from trioflow.values.display import shown

__all__ = ["METHODS", "attribute", "field_names", "method"]

# Values are typed Any in this module: what is called with what is decided by the tables, by exact type.
Method = Callable[..., Any]

_FAILURES: Final = (TypeError, ValueError, ArithmeticError, IndexError)


def attribute(_run: Run, subject: Any, name: str) -> Any:
    """``subject.name``: an entry of a record, a field of an attrs object, or an attribute of a date or number."""
    kind = type(subject)
    if kind is dict:
        if name in subject:
            return subject[name]
        raise Fault(f"the record has no entry {name!r}; {entries_of(subject)}{_callable_hint(kind, name)}")
    if name in _ATTRIBUTES.get(kind, ()) or name in field_names(kind):
        return getattr(subject, name)
    if subject is None:
        raise Fault(f"cannot read .{name} of None")
    raise Fault(f"{shown(subject)} ({kind.__name__}) has no attribute {name!r}{_callable_hint(kind, name)}")


def field_names(kind: type) -> Iterable[str]:
    """The fields of an attrs class; empty for every other type."""
    if not is_object(kind):
        return ()
    return [field.name for field in attrs.fields(kind)]


def _callable_hint(kind: type, name: str) -> str:
    return f". It is a method: write .{name}(...)" if name in METHODS.get(kind, ()) else ""


def method(run: Run, subject: Any, name: str, *arguments: Any, **options: Any) -> Any:
    """``subject.name(...)``: one of the methods listed for exactly that type."""
    kind = type(subject)
    implementation = METHODS.get(kind, {}).get(name)
    if implementation is None:
        what = "None" if subject is None else f"{shown(subject)} ({kind.__name__})"
        raise Fault(f"{what} has no method {name!r} that may be called here")
    run.turns(1)
    run.pay(subject)
    try:
        result = implementation(run, subject, *arguments, **options)
    except _FAILURES as error:
        raise Fault(f"{shown(subject)}.{name}(...) failed: {explained(error)}") from error
    return run.sized(result) if type(result) in TEXTS or type(result) in COLLECTIONS else result


# ------------------------------------------------------------------ texts


def _native(name: str) -> Method:
    """A method of the type itself, which cannot make anything larger than a few times its subject."""

    def call(_run: Run, subject: Any, *arguments: Any, **options: Any) -> Any:
        return getattr(subject, name)(*arguments, **options)

    return call


def _join(run: Run, subject: str, parts: Any, /) -> str:
    texts = list(run.elements(parts))
    for text in texts:
        if type(text) is not str:
            raise TypeError(f"{shown(text)} is no text: write str(...) around it")
    run.admit(sum(map(len, texts)) + len(subject) * len(texts), "the joined text")
    return subject.join(texts)


def _replace(run: Run, subject: str, old: str, new: str, count: int = -1, /) -> str:
    found = subject.count(old)
    found = found if count < 0 else min(found, count)
    run.admit(len(subject) + found * (len(new) - len(old)), "the replaced text")
    return subject.replace(old, new, count)


def _padded(name: str) -> Method:
    def call(run: Run, subject: str, width: int, *fill: str) -> Any:
        run.admit(width, "the padded text")
        return getattr(subject, name)(width, *fill)

    return call


def _named(names: str) -> dict[str, Method]:
    return {name: _native(name) for name in names.split()}


_TEXT: Final[dict[str, Method]] = {
    **_named(
        "capitalize casefold count endswith find index isalnum isalpha isdecimal isdigit islower isnumeric isspace "
        "isupper lower lstrip partition removeprefix removesuffix rfind rindex rpartition rsplit rstrip split "
        "splitlines startswith strip swapcase title upper"
    ),
    **{name: _padded(name) for name in ("center", "ljust", "rjust", "zfill")},
    "join": _join,
    "replace": _replace,
}


def _decode(_run: Run, subject: bytes) -> str:
    return subject.decode()


_BYTES: Final[dict[str, Method]] = {**_named("hex count find startswith endswith"), "decode": _decode}


# ------------------------------------------------------------------ collections


def _list_index(run: Run, subject: list[Any], value: Any, /, *bounds: int) -> int:
    run.weigh(subject, value)
    return subject.index(value, *bounds)


def _list_count(run: Run, subject: list[Any], value: Any, /) -> int:
    run.weigh(subject, value)
    return subject.count(value)


def _record_get(run: Run, subject: dict[Any, Any], name: Any, default: Any = None, /) -> Any:
    return subject.get(key(run, name), default)


def _listed(name: str) -> Method:
    """A view of a record as a list, so that no live view of data becomes a value."""

    def call(_run: Run, subject: dict[Any, Any], /) -> list[Any]:
        return list(getattr(subject, name)())

    return call


def _with_sets(name: str) -> Method:
    def call(run: Run, subject: set[Any], /, *others: Any) -> Any:
        return getattr(subject, name)(*({key(run, part) for part in run.elements(other)} for other in others))

    return call


_LIST: Final[dict[str, Method]] = {"copy": _native("copy"), "index": _list_index, "count": _list_count, **LIST_MUTATORS}
_TUPLE: Final[dict[str, Method]] = {"index": _list_index, "count": _list_count}
_RECORD: Final[dict[str, Method]] = {
    "copy": _native("copy"),
    "get": _record_get,
    **{name: _listed(name) for name in ("keys", "values", "items")},
    **RECORD_MUTATORS,
}
_SET: Final[dict[str, Method]] = {
    "copy": _native("copy"),
    **{
        name: _with_sets(name)
        for name in ("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset",
                     "isdisjoint")
    },
    **SET_MUTATORS,
}  # fmt: skip


# ------------------------------------------------------------------ dates and numbers

_DIRECTIVES: Final = re.compile(r"(?:[^%]|%[aAbBdfGHIjmMpSuUVwWyYzZ%])*", re.DOTALL)
"""No widths (``%9999d``), and none of the forms that depend on the locale alone."""


def formatted_moment(run: Run, subject: date | time, pattern: str) -> str:
    """``strftime`` within the limits."""
    run.admit_width(len(pattern))
    if not _DIRECTIVES.fullmatch(pattern):
        raise Fault(f"the date format {pattern!r} has a directive that is not offered; use such as '%Y-%m-%d %H:%M'")
    return subject.strftime(pattern)


def _strftime(run: Run, subject: date | time, pattern: str, /) -> str:
    return formatted_moment(run, subject, pattern)


def _replaced_fields(*allowed: str) -> Method:
    def call(_run: Run, subject: Any, /, **fields: int) -> Any:
        for name in fields:
            if name not in allowed:
                raise TypeError(f"no field {name!r}; there are {', '.join(allowed)}")
        return subject.replace(**fields)

    return call


def _aware(subject: datetime) -> datetime:
    if subject.tzinfo is None:
        raise ValueError("a datetime without zone depends on the machine's zone")
    return subject


def _timestamp(_run: Run, subject: datetime, /) -> float:
    return _aware(subject).timestamp()


def _astimezone(_run: Run, subject: datetime, zone: str, /) -> datetime:
    try:
        return _aware(subject).astimezone(ZoneInfo(zone))
    except (KeyError, OSError) as error:
        raise ValueError(f"there is no time zone {zone!r}; use an IANA name such as 'Europe/Berlin'") from error


def _isocalendar(_run: Run, subject: date, /) -> tuple[int, int, int]:
    year, week, weekday = subject.isocalendar()
    return (year, week, weekday)


_DAY: Final = ("year", "month", "day")
_CLOCK: Final = ("hour", "minute", "second", "microsecond")
_DATE: Final[dict[str, Method]] = {
    **_named("isoformat weekday isoweekday toordinal"),
    "isocalendar": _isocalendar,
    "strftime": _strftime,
    "replace": _replaced_fields(*_DAY),
}
_TIME: Final[dict[str, Method]] = {
    "isoformat": _native("isoformat"),
    "strftime": _strftime,
    "replace": _replaced_fields(*_CLOCK),
}
_MOMENT: Final[dict[str, Method]] = {
    **_DATE,
    **_named("date time"),
    "replace": _replaced_fields(*_DAY, *_CLOCK),
    "timestamp": _timestamp,
    "astimezone": _astimezone,
}


def _quantize(_run: Run, subject: Decimal, exponent: Decimal, rounding: str | None = None) -> Decimal:
    return subject.quantize(exponent, rounding=rounding, context=exact_context())


def _normalize(_run: Run, subject: Decimal, /) -> Decimal:
    return subject.normalize(exact_context())


_DECIMAL: Final[dict[str, Method]] = {
    **_named("is_finite is_infinite is_nan is_signed is_zero"),
    "quantize": _quantize,
    "normalize": _normalize,
}

_ATTRIBUTES: Final[Mapping[type, frozenset[str]]] = MappingProxyType(
    {
        date: frozenset(_DAY),
        datetime: frozenset(_DAY + _CLOCK),
        time: frozenset(_CLOCK),
        timedelta: frozenset({"days", "seconds", "microseconds"}),
        UUID: frozenset({"hex", "version"}),
    }
)

METHODS: Final[Mapping[type, Mapping[str, Method]]] = MappingProxyType(
    {
        str: MappingProxyType(_TEXT),
        bytes: MappingProxyType(_BYTES),
        list: MappingProxyType(_LIST),
        tuple: MappingProxyType(_TUPLE),
        dict: MappingProxyType(_RECORD),
        set: MappingProxyType(_SET),
        date: MappingProxyType(_DATE),
        datetime: MappingProxyType(_MOMENT),
        time: MappingProxyType(_TIME),
        timedelta: MappingProxyType(_named("total_seconds")),
        Decimal: MappingProxyType(_DECIMAL),
        float: MappingProxyType(_named("is_integer")),
    }
)
