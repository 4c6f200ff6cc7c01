"""The grid of a repeating interval: point k is the anchor plus k intervals, each counted from the anchor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from trioflow.values.durations import Duration
from trioflow.values.moments import to_utc

__all__ = ["index_after", "index_until", "point"]

_DAY: Final = 86_400_000_000
# The Gregorian cycle: 146,097 days in 400 years.
_MONTH: Final = 146_097 * _DAY // 4_800


def point(anchor: datetime, interval: Duration, index: int) -> datetime:
    """Point ``index`` of the grid, in UTC; InvalidRequest where it leaves the years 1 to 9999.

    All months are counted from the anchor, so 31 January and P1M give 28 February, then 31 March.
    """
    return to_utc((interval * index).add_to(anchor, anchor.tzinfo or UTC))


def index_after(anchor: datetime, interval: Duration, moment: datetime) -> int:
    """The least index whose point is after ``moment``."""
    return index_until(anchor, interval, moment) + 1


def index_until(anchor: datetime, interval: Duration, moment: datetime) -> int:
    """The greatest index whose point is not after ``moment``: guessed by the mean length, then put right.

    The guess is off by the unevenness of months and by changes of the clocks, so by a step or two.
    """
    elapsed = Duration.of(moment - anchor.astimezone(UTC)).microseconds
    index = elapsed // _mean(interval)
    while point(anchor, interval, index) > moment:
        index -= 1
    while point(anchor, interval, index + 1) <= moment:
        index += 1
    return index


def _mean(interval: Duration) -> int:
    months = interval.years * 12 + interval.months
    days = interval.weeks * 7 + interval.days
    return months * _MONTH + days * _DAY + interval.microseconds
