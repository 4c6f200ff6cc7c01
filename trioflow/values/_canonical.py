"""From whatever a handler returns to a canonical value, copied; and the fast copy of what is canonical already."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from datetime import datetime, time
from decimal import Decimal
from typing import Any, Final

from trioflow.values._kinds import LEAVES, MAX_DEPTH, MAX_PARTS, PLAIN, Refusal, Value, canonical_zone, exact_scalar
from trioflow.values._registry import RegisteredType
from trioflow.values._remedies import refusal_of

__all__ = ["Canonicaliser", "copied"]

# The dicts of the standard library that are equal to a dict with the same entries.
_DICTS: Final = frozenset({dict, OrderedDict, defaultdict, Counter})


class Canonicaliser:
    """One walk over one value: it checks, converts and copies; ``room`` bounds what it may build in all."""

    __slots__ = ("_room", "_types")

    def __init__(self, types: Mapping[type, RegisteredType]) -> None:
        self._types = types
        self._room = MAX_PARTS

    def value(self, value: Any, depth: int) -> Value:
        """The canonical form of a value that has ``depth`` containers around it; raises Refusal."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is str:
            return value if value.isascii() else _text(value)
        if kind in _DICTS:
            return self._record(value, depth)
        if kind is list or kind is tuple:
            return self._items(value, depth)
        if (registered := self._types.get(kind)) is not None:
            return self._instance(registered, value, depth)
        return self._scalar(kind, value, depth)

    def _scalar(self, kind: type, value: Any, depth: int) -> Value:
        if kind is Decimal:
            return _decimal(value)
        if kind is datetime:
            return _moment(value)
        if kind is time:
            return _time(value)
        refusal = refusal_of(value)
        if refusal is not None:
            raise refusal
        return self.value(exact_scalar(value), depth)

    def _record(self, value: dict[Any, Any], depth: int) -> Value:
        self._enter(value, depth)
        result: dict[str, Value] = {}
        key: Any = ""
        try:
            for key, item in value.items():
                if type(key) is not str or not key.isascii():
                    key = _key(key)  # noqa: PLW2901  # the refusal below names the key as it is stored
                kind = type(item)
                plain = kind in PLAIN or (kind is str and item.isascii())
                result[key] = item if plain else self.value(item, depth + 1)
        except Refusal as refusal:
            refusal.passed(key if isinstance(key, str) else repr(key), value)
            raise
        return result

    def _items(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Value]:
        self._enter(value, depth)
        result: list[Value] = []
        try:
            for item in value:
                kind = type(item)
                plain = kind in PLAIN or (kind is str and item.isascii())
                result.append(item if plain else self.value(item, depth + 1))
        except Refusal as refusal:
            refusal.passed(len(result), value)
            raise
        return result

    def _instance(self, registered: RegisteredType, value: Any, depth: int) -> Value:
        """A frozen instance whose fields are immutable is its own copy."""
        self._enter(registered.names, depth)
        fields: dict[str, Value] = {}
        same = registered.is_frozen
        name = ""
        try:
            for name in registered.names:
                item = _field(value, name)
                # A tuple in a field stays one: the class says so, and a list would make its instances unequal.
                part = self._tuple(item, depth + 1) if type(item) is tuple else self.value(item, depth + 1)
                same = same and part is item
                fields[name] = part
        except Refusal as refusal:
            refusal.passed(name, value)
            raise
        return value if same else registered.build(fields)

    def _tuple(self, value: tuple[Any, ...], depth: int) -> tuple[Value, ...]:
        self._enter(value, depth)
        parts: list[Value] = []
        try:
            for item in value:
                part = self._tuple(item, depth + 1) if type(item) is tuple else self.value(item, depth + 1)
                parts.append(part)  # one by one: their number is the place of a refused one
        except Refusal as refusal:
            refusal.passed(len(parts), value)
            raise
        return value if all(map(_is, parts, value)) else tuple(parts)

    def _enter(self, container: Any, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise Refusal(f"it is more than {MAX_DEPTH} containers deep: store it flatter, or as bytes")
        self._room -= len(container)
        if self._room < 0:
            raise Refusal(f"it has more than {MAX_PARTS:,} parts: keep it elsewhere, and store where")


def copied(value: Value, types: Mapping[type, RegisteredType]) -> Value:
    """A deep copy of a canonical value; what is immutable is returned as it is."""
    kind = type(value)
    if kind is dict:
        return {key: item if type(item) in LEAVES else copied(item, types) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in LEAVES else copied(item, types) for item in value]
    if kind is tuple:
        parts = tuple(copied(item, types) for item in value)
        return value if all(map(_is, parts, value)) else parts
    if (registered := types.get(kind)) is not None:
        fields = {name: getattr(value, name) for name in registered.names}
        parts_of = {name: copied(item, types) for name, item in fields.items()}
        same = registered.is_frozen and all(map(_is, parts_of.values(), fields.values()))
        return value if same else registered.build(parts_of)
    return value


def _is(one: object, other: object) -> bool:
    return one is other


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise Refusal(f"its key {key!r} is a {type(key).__name__}, and the keys of a record are str: use str(key)")
    return _text(exact_scalar(key) if type(key) is not str else key)


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise Refusal(
            f"the text has a lone surrogate at position {error.start}, which no UTF-8 store can hold: "
            "store bytes, or text.encode('utf-8', 'replace').decode()"
        ) from error
    return text


def _decimal(value: Decimal) -> Decimal:
    if value.is_snan():
        raise Refusal("a signalling NaN raises whenever it is compared, so it cannot be stored: use Decimal('NaN')")
    return value


def _moment(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise Refusal(
            "a datetime without a zone names no moment: use datetime.now(UTC), or value.replace(tzinfo=ZoneInfo(...))"
        )
    zone = canonical_zone(value.tzinfo)
    return value if zone is value.tzinfo else value.replace(tzinfo=zone)


def _time(value: time) -> time:
    if value.tzinfo is None:
        return value
    zone = canonical_zone(value.tzinfo)
    return value if zone is value.tzinfo else value.replace(tzinfo=zone)


def _field(instance: Any, name: str) -> Any:
    try:
        return getattr(instance, name)
    except AttributeError:
        raise Refusal("this field was never set: give it a value") from None
