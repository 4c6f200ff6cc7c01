"""Cron expressions: `cronsim` finds the points, our rule for local times places them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from cronsim import CronSim, CronSimError

from trioflow.errors import InvalidRequest
from trioflow.values.moments import at_local, to_utc

__all__ = ["cron_after", "is_cron"]

_FIELDS: Final = 5
# What only cron looks like: in every field a number, a name, a wildcard or one of the letters for last and weekday.
_NAMES: Final = "SUN|MON|TUE|WED|THU|FRI|SAT|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_FIELD: Final = re.compile(rf"(?![-/,#]+$)(?:[\d*?/,#LW-]|{_NAMES})+", re.ASCII | re.IGNORECASE)
_MACROS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def is_cron(text: str) -> bool:
    """Whether the text is a cron expression: five fields, six with seconds in front, or a macro such as @daily.

    Raises InvalidRequest for one that has the look of cron, but does not parse or never fires.
    """
    fields = _fields(text)
    if len(fields) < _FIELDS or not all(_FIELD.fullmatch(field) for field in fields):
        return False
    try:
        walk = CronSim(" ".join(fields), datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, AssertionError, TypeError, ValueError) as error:
        # Odd mixtures such as 'MON#1/2' leave cronsim by other doors than its own error.
        reason = str(error) or "its fields cannot be combined so"
        raise InvalidRequest(
            f"the cron expression {text!r} is not understood ({reason}): it has minute, hour, day, month and weekday, "
            "and may have the second in front"
        ) from error
    if next(walk, None) is None:
        raise InvalidRequest(f"the cron expression {text!r} never fires: no such day exists")
    return True


def cron_after(text: str, moment: datetime, zone: tzinfo) -> datetime | None:
    """The first point of a cron expression after ``moment``, in UTC; None if fifty years hold none.

    Where hour or minute is a wildcard, it counts real time, through both runs of a repeated hour.  A fixed time of
    day is a wall time of ``zone``: one that does not exist moves forward by the gap, one that exists twice is the
    first, and the same moment comes once.
    """
    fields = _fields(text)
    expression = " ".join(fields)
    try:
        if _runs_through_the_day(fields):
            return to_utc(next(CronSim(expression, moment.astimezone(UTC).astimezone(zone))))
        return _wall_point(expression, moment, zone)
    except (StopIteration, OverflowError, InvalidRequest):
        return None


def _wall_point(expression: str, moment: datetime, zone: tzinfo) -> datetime:
    """Walk over wall times (cronsim takes UTC for a clock without changes) to the first that is placed after us."""
    local = moment.astimezone(UTC).astimezone(zone)
    walk = CronSim(expression, (local - _recent_gap(moment, zone)).replace(tzinfo=UTC, fold=0))
    first: datetime | None = None
    while True:
        wall = next(walk).replace(tzinfo=None)
        placed = at_local(wall, zone)
        point = to_utc(placed)
        if point > moment:
            first = point if first is None else min(first, point)
            # What a gap pushed forward can land behind a later wall time (gaps shorter than an hour exist).
            if placed.replace(tzinfo=None, fold=0) == wall:
                return first


def _recent_gap(moment: datetime, zone: tzinfo) -> timedelta:
    """By how much the clocks went forward just now: the times that they left out may still lie ahead of us."""
    utc = moment.astimezone(UTC)
    before = (utc - timedelta(hours=25)).astimezone(zone).utcoffset()
    now = utc.astimezone(zone).utcoffset()
    return max(timedelta(0), (now or timedelta(0)) - (before or timedelta(0)))


def _fields(text: str) -> list[str]:
    """Six fields, so that cronsim's own rule for local times stays out; ``?`` means any (Quartz, Spring)."""
    fields = _MACROS.get(text.strip().lower(), text).split()
    if len(fields) == _FIELDS:
        fields.insert(0, "0")
    return ["*" if field == "?" else field for field in fields]


def _runs_through_the_day(fields: list[str]) -> bool:
    return fields[1].startswith("*") or fields[2].startswith("*")
