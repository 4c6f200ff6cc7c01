"""Timers as arithmetic: literals of `timeDate`, `timeDuration` and `timeCycle` (10.5.5), and when they fire.

A `Firing` is all that has to be stored of an armed timer.  Every deadline is computed from its anchor, never from the
moment of the firing before, so that nothing drifts; and the next one is found directly, however many were missed.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, Literal, assert_never

import attrs

from trioflow.errors import InvalidRequest
from trioflow.values._cron import cron_after, is_cron
from trioflow.values._grid import index_after, index_until, point
from trioflow.values._kinds import Value
from trioflow.values.durations import Duration
from trioflow.values.moments import at_local, parse_moment, to_utc

__all__ = [
    "CronCycle",
    "Firing",
    "RepeatingInterval",
    "TimerKind",
    "first_firing",
    "next_firing",
    "parse_time_cycle",
    "parse_time_date",
    "parse_time_duration",
]

TimerKind = Literal["date", "duration", "cycle"]
"""Which of `timeDate`, `timeDuration` and `timeCycle` a timer has."""

# Zones have slashes too: R/2026-03-07T09:00[Europe/Berlin]/P1D.
_SLASH: Final = re.compile(r"/(?![^\[]*\])")
_REPEAT: Final = re.compile(r"R(?P<times>\d{0,18})/(?P<rest>.+)", re.ASCII)


@attrs.frozen(kw_only=True)
class Firing:
    """An armed timer; all of it can be stored.

    ``deadline`` is in UTC.  ``left`` counts the firings still to come, this one included; None is without end.
    ``interval`` is the ISO text of a Duration or a cron expression, None if the timer fires once.  ``anchor`` is the
    moment, in the timer's zone, that the interval is counted from (it may lie before or after the deadline).
    """

    deadline: datetime
    left: int | None
    interval: str | None
    anchor: datetime


@attrs.frozen(kw_only=True)
class RepeatingInterval:
    """``R/P1D``, ``R3/2026-01-31T09:00Z/P1M`` and the other forms of ISO 8601, 5.6; ``times`` None is without end.

    With ``start`` the first firing is at that date, with ``end`` the last one is.
    """

    interval: Duration
    times: int | None = None
    start: datetime | None = None
    end: datetime | None = None


@attrs.frozen(kw_only=True)
class CronCycle:
    """A cron expression: five fields, six with seconds in front, or a macro such as ``@daily``."""

    text: str


# ------------------------------------------------------------------ literals


def parse_time_date(text: str, zone: tzinfo) -> datetime | None:
    """The moment of a `timeDate` literal, or None if the text is none (and so an expression).

    See `moments.parse_moment` for the forms.  Raises InvalidRequest for a literal that names no moment.
    """
    return parse_moment(text, zone)


def parse_time_duration(text: str) -> Duration | None:
    """The Duration of a `timeDuration` literal, or None if the text is none; InvalidRequest if it is negative."""
    try:
        duration = Duration.parse(text)
    except InvalidRequest:
        if _reads_like_duration(text):
            raise
        return None
    if duration.sign < 0:
        raise InvalidRequest(f"the timer's duration {text!r} is negative: nothing can fire before it is armed")
    return duration


def parse_time_cycle(text: str, zone: tzinfo) -> RepeatingInterval | CronCycle | None:
    """The cycle of a `timeCycle` literal, or None if the text is none; dates without offset are read in ``zone``.

    ``start/end`` means the exact time between the two, ``duration/end`` counts back from the end.  Raises
    InvalidRequest for a literal that cannot run: ``R0``, an interval that is zero or negative, a wrong date, a
    cron expression that never fires.
    """
    match = _REPEAT.fullmatch(text.strip())
    if match is None:
        return CronCycle(text=text.strip()) if is_cron(text) else None
    parts = [_cycle_part(part, zone) for part in _SLASH.split(match["rest"])]
    times = int(match["times"]) if match["times"] else None
    match parts:
        case [Duration() as interval]:
            cycle = RepeatingInterval(interval=interval, times=times)
        case [datetime() as start, Duration() as interval]:
            cycle = RepeatingInterval(interval=interval, times=times, start=start)
        case [Duration() as interval, datetime() as end]:
            cycle = RepeatingInterval(interval=interval, times=times, end=end)
        case [datetime() as start, datetime() as end]:
            exact = Duration.of(to_utc(end) - to_utc(start))
            cycle = RepeatingInterval(interval=exact, times=times, start=start)
        case _:
            return None
    return _runnable(cycle, text)


def _cycle_part(text: str, zone: tzinfo) -> Duration | datetime | None:
    if text.lstrip("-").startswith("P"):
        return Duration.parse(text) if _reads_like_duration(text) else None
    return parse_moment(text, zone)


def _reads_like_duration(text: str) -> bool:
    """Whether a text can be nothing but a duration: it has the form, though perhaps not the sense, of one."""
    return re.fullmatch(r"-?P(?=.)([\d.,]+[YMWD])*(T([\d.,]+[HMS])+)?", text.strip(), re.ASCII) is not None


def _runnable(cycle: RepeatingInterval, text: object) -> RepeatingInterval:
    if cycle.times == 0:
        raise InvalidRequest(f"the timer cycle {str(text)!r} fires zero times: use R for ever, or Rn with n from 1")
    if cycle.interval.sign <= 0:
        raise InvalidRequest(f"the timer cycle {str(text)!r} needs an interval longer than zero, not {cycle.interval}")
    return cycle


# ------------------------------------------------------------------ firings


def first_firing(kind: TimerKind, value: Value, *, now: datetime, zone: tzinfo) -> Firing | None:
    """When a timer that is armed at ``now`` fires first; ``zone`` is where its local times and days are.

    ``value`` is a literal's text or what an expression gave: a datetime or date, a Duration or timedelta, a cycle.  A
    deadline may lie before ``now``: it is due at once.  None if all of the cycle is over (its ``end``).  Raises
    InvalidRequest for a value that is no timer of this kind.
    """
    if now.tzinfo is None:
        raise InvalidRequest(f"now has to be a moment, with a zone, not {now}")
    match kind:
        case "date":
            moment = _date(value, zone)
            return Firing(deadline=to_utc(moment), left=1, interval=None, anchor=moment)
        case "duration":
            deadline = _duration(value).add_to(now, zone)
            return Firing(deadline=to_utc(deadline), left=1, interval=None, anchor=_local(now, zone))
        case "cycle":
            return _first_of_cycle(_cycle(value, zone), now, zone)
        case _:
            assert_never(kind)


def next_firing(firing: Firing, *, now: datetime) -> Firing | None:
    """The firing after this one, at the first point of its grid after both its deadline and ``now``; None: no more.

    Points between the two are missed and count against ``left``.  So ``now`` as it is collapses missed repetitions
    into one, and ``now=firing.deadline`` gives them all, one by one.
    """
    if firing.interval is None or firing.left == 1:
        return None
    zone = firing.anchor.tzinfo or UTC
    after = max(firing.deadline, now)
    if not firing.interval.startswith("P"):
        deadline = cron_after(firing.interval, after, zone)
        return None if deadline is None else attrs.evolve(firing, deadline=deadline)
    interval = Duration.parse(firing.interval)
    try:
        index = index_after(firing.anchor, interval, after)
        deadline = point(firing.anchor, interval, index)
    except InvalidRequest:
        # The calendar ends with the year 9999, and so does what repeats for ever.
        return None
    left = firing.left
    if left is not None:
        left -= index - index_until(firing.anchor, interval, firing.deadline)
    return None if left is not None and left <= 0 else attrs.evolve(firing, deadline=deadline, left=left)


def _first_of_cycle(cycle: RepeatingInterval | CronCycle, now: datetime, zone: tzinfo) -> Firing | None:
    if isinstance(cycle, CronCycle):
        deadline = cron_after(cycle.text, now, zone)
        if deadline is None:
            return None
        return Firing(deadline=deadline, left=None, interval=cycle.text, anchor=_local(now, zone))
    text = str(cycle.interval)
    if cycle.start is not None:
        return Firing(deadline=to_utc(cycle.start), left=cycle.times, interval=text, anchor=cycle.start)
    if cycle.end is not None:
        return _first_until(cycle, cycle.end, now)
    anchor = _local(now, zone)
    return Firing(deadline=point(anchor, cycle.interval, 1), left=cycle.times, interval=text, anchor=anchor)


def _first_until(cycle: RepeatingInterval, end: datetime, now: datetime) -> Firing | None:
    """The grid is counted back from the end, so that index 0 is the last firing."""
    if to_utc(end) <= now:
        return None
    index = index_after(end, cycle.interval, now)
    if cycle.times is not None:
        index = max(index, 1 - cycle.times)
    deadline = point(end, cycle.interval, index)
    return Firing(deadline=deadline, left=1 - index, interval=str(cycle.interval), anchor=end)


def _date(value: Value, zone: tzinfo) -> datetime:
    moment = parse_moment(value, zone) if isinstance(value, str) else value
    if isinstance(moment, datetime):
        return at_local(moment, zone) if moment.tzinfo is None else moment
    if isinstance(moment, date):
        return at_local(datetime.combine(moment, time()), zone)
    raise _no_timer("date", value, "an ISO 8601 date such as '2026-03-07T09:00:00+01:00', a datetime or a date")


def _duration(value: Value) -> Duration:
    if isinstance(value, str):
        value = parse_time_duration(value)
    if isinstance(value, timedelta):
        return Duration.of(value)
    if isinstance(value, Duration):
        return value
    raise _no_timer("duration", value, "an ISO 8601 duration such as 'PT15M', a Duration or a timedelta")


def _cycle(value: Value, zone: tzinfo) -> RepeatingInterval | CronCycle:
    if isinstance(value, timedelta | Duration):
        return _runnable(RepeatingInterval(interval=_duration(value)), value)
    cycle = parse_time_cycle(value, zone) if isinstance(value, str) else value
    if isinstance(cycle, RepeatingInterval):
        return _runnable(cycle, value)
    if isinstance(cycle, CronCycle):
        return cycle
    raise _no_timer("cycle", value, "an ISO 8601 repetition such as 'R3/PT10M', a cron expression or a duration")


def _no_timer(kind: str, value: Value, expected: str) -> InvalidRequest:
    return InvalidRequest(f"{value!r} is no timer {kind}: expected is {expected}")


def _local(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(UTC).astimezone(zone)
