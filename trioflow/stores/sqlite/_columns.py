"""How values are kept in columns: moments as microseconds, lists as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import orjson

__all__ = ["listed", "listing", "micros", "micros_or_none", "moment", "moment_or_none"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


def micros(value: datetime) -> int:
    """Microseconds since 1970 in UTC; exact."""
    return (value - _EPOCH) // _TICK


def micros_or_none(value: datetime | None) -> int | None:
    """The same for a column that may be empty."""
    return None if value is None else micros(value)


def moment(value: int) -> datetime:
    """The moment, in UTC."""
    return _EPOCH + timedelta(microseconds=value)


def moment_or_none(value: int | None) -> datetime | None:
    """The same for a column that may be empty."""
    return None if value is None else moment(value)


def listing(values: Sequence[str]) -> str:
    """A list of texts as JSON."""
    return orjson.dumps(list(values)).decode() if values else "[]"


def listed(text: str) -> tuple[str, ...]:
    """The list again."""
    return tuple(orjson.loads(text))
