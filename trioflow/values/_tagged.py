"""Canonical values as JSON: plain where JSON is faithful, else a record with one key, which starts with ``$``.

``{"$decimal": "1.20"}``, ``{"$type:order": {...}}``.  A record of the user's that has a key starting with ``$`` is
written as ``{"$record": {...}}``, so that nothing can be taken for a tag that is none.  All values
survive exactly, but for the sign and payload of a float NaN.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from trioflow.errors import CorruptRecord, TrioflowError, UnstorableValue
from trioflow.values._kinds import Value
from trioflow.values._registry import RegisteredType
from trioflow.values.display import shown
from trioflow.values.durations import Duration
from trioflow.values.moments import format_moment, parse_zone

__all__ = ["Reader", "Writer"]

_INT64: Final = 1 << 63
_SECOND_OCCURRENCE: Final = "[_fold=1]"
_TYPE: Final = "$type:"


class Writer:
    """Canonical values to JSON-able ones."""

    __slots__ = ("_types",)

    def __init__(self, types: Iterable[RegisteredType]) -> None:
        self._types = {registered.cls: registered for registered in types}

    def write(self, value: Value) -> Any:
        """The JSON form; UnstorableValue for what is not canonical."""
        kind = type(value)
        if kind is str or kind is bool or value is None:
            return value
        if kind is int:
            return value if -_INT64 <= value < _INT64 else {"$int": hex(value)}
        if kind is dict:
            return self._record(value)
        if kind is list:
            return [self.write(item) for item in value]
        if kind is float:
            return value if math.isfinite(value) else {"$float": repr(value)}
        return self._tagged(kind, value)

    def _record(self, value: dict[str, Value]) -> dict[str, Any]:
        written = {key: self.write(item) for key, item in value.items()}
        for key in written:
            if key[:1] == "$":
                return {"$record": written}
        return written

    def _tagged(self, kind: type, value: Any) -> dict[str, Any]:
        if (scalar := _SCALARS.get(kind)) is not None:
            tag, text = scalar
            return {tag: text(value)}
        if kind is tuple:
            return {"$tuple": [self.write(item) for item in value]}
        if (registered := self._types.get(kind)) is not None:
            fields = {name: self.write(getattr(value, name)) for name in registered.names}
            return {_TYPE + registered.tag: fields}
        raise UnstorableValue(f"a {kind.__qualname__} is not canonical: pass it through canonical() first")


class Reader:
    """JSON as `Writer` wrote it back to canonical values; whatever else it finds is a CorruptRecord."""

    __slots__ = ("_readers", "_types")

    def __init__(self, types: Iterable[RegisteredType]) -> None:
        self._types = {_TYPE + registered.tag: registered for registered in types}
        self._readers: Mapping[str, Callable[[Any], Value]] = {
            **_SCALAR_READERS,
            "$tuple": lambda items: tuple(map(self.read, _listed(items))),
            "$record": self._escaped,
        }

    def read(self, value: Any) -> Value:
        """The canonical value; raises CorruptRecord for an unknown tag and for content that its tag cannot have."""
        kind = type(value)
        if kind is dict:
            for key in value:
                if key[:1] == "$":
                    return self._tagged(value)
            return {key: self.read(item) for key, item in value.items()}
        if kind is list:
            return [self.read(item) for item in value]
        if kind is str or kind is int or value is None or kind is bool or kind is float:
            return value
        raise CorruptRecord(f"a stored value holds a {kind.__qualname__}, which is no JSON")

    def _tagged(self, value: dict[str, Any]) -> Value:
        if len(value) != 1:
            raise CorruptRecord(f"a stored value has a tag among other keys: {shown(value)}")
        ((tag, content),) = value.items()
        if tag in self._types:
            return self._instance(self._types[tag], content)
        reader = self._readers.get(tag)
        if reader is None:
            raise CorruptRecord(
                f"a stored value has the unknown tag {tag!r}: register the class that it stands for, "
                "or use the version of trioflow that wrote it"
            )
        try:
            return reader(content)
        except (ValueError, TypeError, LookupError, ArithmeticError) as error:
            raise CorruptRecord(f"a stored value is broken: {shown(value)}: {error!r}") from error
        except TrioflowError as error:
            raise error if isinstance(error, CorruptRecord) else CorruptRecord(f"a stored value: {error}") from error

    def _escaped(self, content: Any) -> Value:
        return {key: self.read(item) for key, item in _mapped(content).items()}

    def _instance(self, registered: RegisteredType, content: Any) -> Value:
        if type(content) is not dict:
            raise CorruptRecord(f"a stored {registered.tag!r} has no fields: {shown(content)}")
        unknown = sorted(content.keys() - set(registered.names))
        if unknown:
            raise CorruptRecord(f"a stored {registered.tag!r} has fields that {registered.cls!r} lacks: {unknown}")
        try:
            return registered.build({name: self.read(item) for name, item in content.items()})
        except KeyError as error:
            raise CorruptRecord(
                f"a stored {registered.tag!r} lacks the field {error}: give it a default in {registered.cls!r}"
            ) from error


# ------------------------------------------------------------------ the texts of scalars


def _moment_text(value: datetime) -> str:
    return format_moment(value) + (_SECOND_OCCURRENCE if value.fold else "")


def _time_text(value: time) -> str:
    zone = value.tzinfo
    text = f"{value.replace(tzinfo=None).isoformat()}[{zone.key}]" if isinstance(zone, ZoneInfo) else value.isoformat()
    return text + (_SECOND_OCCURRENCE if value.fold else "")


def _read_moment(content: Any) -> datetime:
    """Wall time, zone and fold are the value; the offset beside a zone is for people.

    So a value stays what it was when the rules of its zone have changed since it was written.
    """
    text, fold = _without_fold(_texted(content))
    head, _, zone = text.partition("[")
    moment = datetime.fromisoformat(head)
    if moment.tzinfo is None:
        raise ValueError("no offset")
    return moment.replace(tzinfo=parse_zone(zone[:-1]), fold=fold) if zone else moment.replace(fold=fold)


def _read_time(content: Any) -> time:
    text, fold = _without_fold(_texted(content))
    head, _, zone = text.partition("[")
    read = time.fromisoformat(head)
    return read.replace(tzinfo=parse_zone(zone[:-1]), fold=fold) if zone else read.replace(fold=fold)


def _without_fold(text: str) -> tuple[str, int]:
    bare = text.removesuffix(_SECOND_OCCURRENCE)
    return bare, int(bare != text)


def _read_timedelta(content: Any) -> timedelta:
    days, seconds, microseconds = map(_whole, _listed(content))
    return timedelta(days, seconds, microseconds)


def _read_float(content: Any) -> float:
    value = float(_texted(content))
    if math.isfinite(value):
        raise ValueError("finite floats have no tag")
    return value


def _texted(content: Any) -> str:
    if type(content) is not str:
        raise TypeError(f"a text is expected, not {content!r}")
    return content


def _whole(content: Any) -> int:
    if type(content) is not int:
        raise TypeError(f"a whole number is expected, not {content!r}")
    return content


def _listed(content: Any) -> list[Any]:
    if type(content) is not list:
        raise TypeError(f"a list is expected, not {content!r}")
    return content


def _mapped(content: Any) -> dict[str, Any]:
    if type(content) is not dict:
        raise TypeError(f"a record is expected, not {content!r}")
    return content


_SCALARS: Final[Mapping[type, tuple[str, Callable[[Any], Any]]]] = {
    Decimal: ("$decimal", str),
    bytes: ("$bytes", lambda v: base64.b64encode(v).decode()),
    datetime: ("$datetime", _moment_text),
    date: ("$date", date.isoformat),
    time: ("$time", _time_text),
    Duration: ("$duration", str),
    timedelta: ("$timedelta", lambda v: [v.days, v.seconds, v.microseconds]),
    UUID: ("$uuid", str),
}

_SCALAR_READERS: Final[Mapping[str, Callable[[Any], Value]]] = {
    # Hexadecimal, because Python bounds how long a decimal text it converts; this form is linear.
    "$int": lambda content: int(_texted(content), 16),
    "$float": _read_float,
    "$decimal": lambda content: Decimal(_texted(content)),
    "$bytes": lambda content: base64.b64decode(_texted(content), validate=True),
    "$datetime": _read_moment,
    "$date": lambda content: date.fromisoformat(_texted(content)),
    "$time": _read_time,
    "$duration": lambda content: Duration.parse(_texted(content)),
    "$timedelta": _read_timedelta,
    "$uuid": lambda content: UUID(_texted(content)),
}
