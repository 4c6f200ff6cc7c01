"""Timers: literals and expressions told apart, first and next firings on a grid that never drifts."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.values.support import BERLIN, CODEC, NEW_YORK, stored
from trioflow.errors import InvalidRequest
from trioflow.values import (
    CronCycle,
    Duration,
    Firing,
    RepeatingInterval,
    first_firing,
    format_moment,
    next_firing,
    parse_time_cycle,
    parse_time_date,
    parse_time_duration,
    parse_zone,
)

DAY = Duration(days=1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(text: str) -> datetime:
    """The moment of an ISO text with offset."""
    return datetime.fromisoformat(text)


def cycle(value: Any, now: str = "2026-01-01T12:00Z", zone: tzinfo = UTC) -> Firing:
    """The first firing of a cycle that has one, after a round trip through the store."""
    firing = first_firing("cycle", value, now=at(now), zone=zone)
    assert firing is not None
    return restored(firing)


def restored(firing: Firing) -> Firing:
    """A firing as a checkpoint gives it back; it has to be made of canonical values."""
    parts = attrs.asdict(firing, recurse=False)
    assert CODEC.canonical(parts, "timer") == parts
    return Firing(**stored(parts))


def all_of(firing: Firing | None, *, limit: int = 10, zone: tzinfo = UTC) -> list[str]:
    """The deadlines of a cycle, each taken at its time."""
    found: list[str] = []
    while firing is not None and len(found) < limit:
        found.append(format_moment(firing.deadline.astimezone(zone)).partition("[")[0])
        firing = next_firing(restored(firing), now=firing.deadline)
    return found


# ------------------------------------------------------------------ literals


@pytest.mark.parametrize(
    "text",
    [
        "",
        "due",
        "now() + duration",
        "=cycle",
        "${x}",
        "P",
        "R",
        "R/",
        "R/x",
        "R3/P1D/",
        "R3/P1D/P1D",
        "P1X",
        "1D",
        "R/2026-01-01T00:00Z",
        "R/P1D/2026-01-01T00:00Z/P1D",
        "-1",
        "a b c d e",
        "1 - 2 - 3",
        "* * *",
        "@reboot",
    ],
)
def test_anything_else_is_an_expression(text: str) -> None:
    """A text that is no literal of its kind is none, whatever it may be."""
    assert parse_time_date(text, UTC) is None
    assert parse_time_duration(text) is None
    assert parse_time_cycle(text, UTC) is None


def test_literals() -> None:
    """A literal is one of its own kind only."""
    assert parse_time_date("2026-01-01T12:00:00Z", UTC) == NOON
    assert parse_time_duration("P1D") == DAY
    assert parse_time_cycle("P1D", UTC) is None
    assert parse_time_duration("R/P1D") is None
    assert parse_time_date("PT1S", UTC) is None


@pytest.mark.parametrize(
    "text, expected",
    [
        ("R/P1D", RepeatingInterval(interval=DAY)),
        ("R3/P1D", RepeatingInterval(interval=DAY, times=3)),
        ("R3/2026-01-01T12:00Z/P1D", RepeatingInterval(interval=DAY, times=3, start=NOON)),
        ("R/P1D/2026-01-01T12:00Z", RepeatingInterval(interval=DAY, end=NOON)),
        (
            "R2/2026-01-01T12:00Z/2026-01-01T13:30Z",
            RepeatingInterval(interval=Duration.parse("PT1H30M"), times=2, start=NOON),
        ),
        ("0 9 * * MON-FRI", CronCycle(text="0 9 * * MON-FRI")),
        ("0 0/5 * * * ?", CronCycle(text="0 0/5 * * * ?")),
        ("@daily", CronCycle(text="@daily")),
    ],
)
def test_cycles(text: str, expected: object) -> None:
    """All forms of ISO 8601 repetitions, and cron with five or six fields, are literals of a cycle."""
    assert parse_time_cycle(text, UTC) == expected


@pytest.mark.parametrize(
    "text, words",
    [
        ("R0/P1D", "zero times"),
        ("R/PT0S", "longer than zero"),
        ("R/P0D", "longer than zero"),
        ("R/-P1D", "longer than zero"),
        ("R/2026-01-02T00:00Z/2026-01-01T00:00Z", "longer than zero"),
        ("R/2026-01-01T00:00Z/2026-01-01T00:00Z", "longer than zero"),
        ("R/2026-13-01T00:00Z/P1D", "month"),
        ("R/2026-03-07T09:00:00-04:00[America/New_York]/P1D", "contradicts"),
        ("R/P1.5M", "fraction of a month"),
        ("0 0 31 2 *", "Bad day-of-month"),
        ("0 0 */30 2 MON#5", "never fires"),
        ("0 0 12 * * ? 2026", "Wrong number"),
        ("0 0 15W * *", "not understood"),
        ("60 * * * *", "Bad minute"),
        ("0 0 * * MON#1/2", "not understood"),
        ("0 0 30 FEB ?", "Bad day-of-month"),
    ],
)
def test_cycles_that_cannot_run(text: str, words: str) -> None:
    """A literal that cannot run is refused, not taken for an expression."""
    with pytest.raises(InvalidRequest, match=words):
        parse_time_cycle(text, UTC)


def test_durations_that_cannot_run() -> None:
    """A negative literal, or a fraction without length, is refused where the model is read."""
    with pytest.raises(InvalidRequest, match="negative"):
        parse_time_duration("-PT1S")
    with pytest.raises(InvalidRequest, match="fraction of a month"):
        parse_time_duration("P1.5M")


# ------------------------------------------------------------------ dates and durations


@pytest.mark.parametrize(
    "value, zone, deadline",
    [
        ("2026-07-01T09:00", BERLIN, "2026-07-01T07:00Z"),
        ("2026-03-08T02:30", NEW_YORK, "2026-03-08T07:30Z"),
        ("2026-11-01T01:30", NEW_YORK, "2026-11-01T05:30Z"),
        ("2026-11-01T01:30:00-05:00[America/New_York]", UTC, "2026-11-01T06:30Z"),
        ("2020-01-01T00:00Z", UTC, "2020-01-01T00:00Z"),
        (datetime(2026, 7, 1, 9, tzinfo=BERLIN), UTC, "2026-07-01T07:00Z"),
        (datetime(2026, 7, 1, 9), BERLIN, "2026-07-01T07:00Z"),  # noqa: DTZ001  # a script may make one
        (date(2026, 7, 1), BERLIN, "2026-06-30T22:00Z"),
    ],
)
def test_dates(value: Any, zone: tzinfo, deadline: str) -> None:
    """A date fires once, at that moment, past or not; local times are of the timer's zone."""
    firing = first_firing("date", value, now=NOON, zone=zone)
    assert firing is not None
    assert (firing.deadline, firing.deadline.tzinfo) == (at(deadline), UTC)
    assert (firing.left, firing.interval) == (1, None)
    assert next_firing(restored(firing), now=firing.deadline) is None


@pytest.mark.parametrize(
    "value, now, zone, deadline",
    [
        ("PT15M", "2026-01-01T12:00Z", UTC, "2026-01-01T12:15Z"),
        ("P1D", "2026-03-07T14:00Z", NEW_YORK, "2026-03-08T13:00Z"),
        ("P1D", "2026-03-07T14:00Z", UTC, "2026-03-08T14:00Z"),
        ("PT24H", "2026-03-07T14:00Z", NEW_YORK, "2026-03-08T14:00Z"),
        ("PT0S", "2026-01-01T12:00Z", UTC, "2026-01-01T12:00Z"),
        (Duration(months=1), "2026-01-31T12:00Z", UTC, "2026-02-28T12:00Z"),
        (timedelta(seconds=5), "2026-01-01T12:00Z", UTC, "2026-01-01T12:00:05Z"),
        (timedelta(seconds=-5), "2026-01-01T12:00Z", UTC, "2026-01-01T11:59:55Z"),
    ],
)
def test_durations(value: Any, now: str, zone: tzinfo, deadline: str) -> None:
    """A duration fires once, that long after it was armed; a computed negative one is due at once."""
    firing = first_firing("duration", value, now=at(now), zone=zone)
    assert firing is not None
    assert (firing.deadline, firing.deadline.tzinfo) == (at(deadline), UTC)
    assert next_firing(restored(firing), now=firing.deadline) is None


@pytest.mark.parametrize("kind", ["date", "duration", "cycle"])
@pytest.mark.parametrize("value", [None, 5, True, "soon", [], {"a": 1}])
def test_values_that_are_no_timer(kind: Literal["date", "duration", "cycle"], value: Any) -> None:
    """What an expression gave and is no timer of the kind is refused, showing the value."""
    with pytest.raises(InvalidRequest, match="expected is"):
        first_firing(kind, value, now=NOON, zone=UTC)


@pytest.mark.parametrize(
    "value", ["R0/P1D", timedelta(0), timedelta(-1), Duration(), RepeatingInterval(interval=DAY, times=0)]
)
def test_computed_cycles_that_cannot_run(value: Any) -> None:
    """The rules for literals hold for computed cycles too."""
    with pytest.raises(InvalidRequest):
        first_firing("cycle", value, now=NOON, zone=UTC)


# ------------------------------------------------------------------ cycles


@pytest.mark.parametrize(
    "text, expected",
    [
        ("R3/PT10M", ["2026-01-01T12:10", "2026-01-01T12:20", "2026-01-01T12:30"]),
        ("R1/PT10M", ["2026-01-01T12:10"]),
        ("R2/2026-02-01T00:00Z/P1D", ["2026-02-01T00:00", "2026-02-02T00:00"]),
        ("R2/2026-01-01T12:00Z/2026-01-01T13:30Z", ["2026-01-01T12:00", "2026-01-01T13:30"]),
        ("R3/P1D/2026-02-01T00:00Z", ["2026-01-30T00:00", "2026-01-31T00:00", "2026-02-01T00:00"]),
        ("R/P1D/2026-01-03T00:00Z", ["2026-01-02T00:00", "2026-01-03T00:00"]),
        ("R9/P1D/2026-01-03T00:00Z", ["2026-01-02T00:00", "2026-01-03T00:00"]),
        (
            "R4/2026-01-31T00:00Z/P1M",
            ["2026-01-31T00:00", "2026-02-28T00:00", "2026-03-31T00:00", "2026-04-30T00:00"],
        ),
        ("R3/2028-02-29T00:00Z/P1Y", ["2028-02-29T00:00", "2029-02-28T00:00", "2030-02-28T00:00"]),
        ("R3/P1M/2026-05-31T00:00Z", ["2026-03-31T00:00", "2026-04-30T00:00", "2026-05-31T00:00"]),
    ],
)
def test_rn_fires_n_times_in_all(text: str, expected: list[str]) -> None:
    """Rn fires n times; with a start first at it, with an end last at it; months are counted from the anchor."""
    assert all_of(cycle(text)) == [f"{moment}:00+00:00" for moment in expected]


def test_a_cycle_whose_end_is_past_never_fires() -> None:
    """Nothing is left of a cycle after its end."""
    assert first_firing("cycle", "R/P1D/2025-12-31T00:00Z", now=NOON, zone=UTC) is None


@pytest.mark.parametrize(
    "text, now, zone, expected",
    [
        (
            "R3/2026-03-07T02:30:00-05:00[America/New_York]/P1D",
            "2026-03-01T00:00Z",
            NEW_YORK,
            ["2026-03-07T02:30:00-05:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        (
            "R3/2026-10-31T01:30:00[America/New_York]/P1D",
            "2026-10-01T00:00Z",
            NEW_YORK,
            ["2026-10-31T01:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"],
        ),
        (
            "R3/2026-10-31T01:30:00[America/New_York]/PT24H",
            "2026-10-01T00:00Z",
            NEW_YORK,
            ["2026-10-31T01:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-02T00:30:00-05:00"],
        ),
        (
            "R3/2026-03-28T12:00/P1D",
            "2026-03-01T00:00Z",
            BERLIN,
            ["2026-03-28T12:00:00+01:00", "2026-03-29T12:00:00+02:00", "2026-03-30T12:00:00+02:00"],
        ),
        (
            "R3/2026-10-25T01:30/PT30M",
            "2026-10-01T00:00Z",
            BERLIN,
            ["2026-10-25T01:30:00+02:00", "2026-10-25T02:00:00+02:00", "2026-10-25T02:30:00+02:00"],
        ),
        (
            "R5/2026-10-25T02:00/PT30M",
            "2026-10-01T00:00Z",
            BERLIN,
            [
                "2026-10-25T02:00:00+02:00",
                "2026-10-25T02:30:00+02:00",
                "2026-10-25T02:00:00+01:00",
                "2026-10-25T02:30:00+01:00",
                "2026-10-25T03:00:00+01:00",
            ],
        ),
    ],
)
def test_cycles_across_changes_of_the_clocks(text: str, now: str, zone: tzinfo, expected: list[str]) -> None:
    """A daily cycle keeps its time of day and comes back to it after a gap; an exact one keeps its length."""
    assert all_of(cycle(text, now, zone), zone=zone) == expected


def test_no_drift() -> None:
    """Each deadline is counted from the anchor, however late the one before was fired."""
    firing = cycle("R/PT10M")
    late = next_firing(firing, now=firing.deadline + timedelta(minutes=3, seconds=7))
    assert late is not None
    assert late.deadline == at("2026-01-01T12:20Z")


@pytest.mark.parametrize(
    "text, now, deadline, left",
    [
        ("R10/PT10M", "2026-01-01T12:10Z", "2026-01-01T12:20Z", 9),
        ("R10/PT10M", "2026-01-01T12:19:59Z", "2026-01-01T12:20Z", 9),
        ("R10/PT10M", "2026-01-01T12:20Z", "2026-01-01T12:30Z", 8),
        ("R10/PT10M", "2026-01-01T12:55Z", "2026-01-01T13:00Z", 5),
        ("R/PT10M", "2026-01-01T12:55Z", "2026-01-01T13:00Z", None),
        ("R/PT0.001S", "2036-01-01T12:00Z", "2036-01-01T12:00:00.001Z", None),
        ("R9/P1M/2026-09-30T00:00Z", "2026-04-15T00:00Z", "2026-04-30T00:00Z", 6),
    ],
)
def test_missed_repetitions_collapse_and_count(text: str, now: str, deadline: str, left: int | None) -> None:
    """The next deadline is the next point of the grid after now, found at once; what lies between is used up."""
    following = next_firing(cycle(text), now=at(now))
    assert following is not None
    assert (following.deadline, following.left) == (at(deadline), left)


def test_missed_repetitions_can_use_a_cycle_up() -> None:
    """R3 whose three points are all past fires once more, for all of them, and then never."""
    firing = cycle("R3/2020-01-01T00:00Z/P1D")
    assert firing.deadline == at("2020-01-01T00:00Z")
    assert next_firing(firing, now=NOON) is None


def test_missed_repetitions_can_be_taken_one_by_one() -> None:
    """With the deadline for now, none is missed: the policy `all`."""
    assert all_of(cycle("R3/2020-01-01T00:00Z/P1D")) == [f"2020-01-0{day}T00:00:00+00:00" for day in (1, 2, 3)]


def test_the_calendar_ends() -> None:
    """A cycle without end is over where the calendar is."""
    firing = cycle("R/2026-01-01T00:00Z/P3000Y")
    assert all_of(firing) == ["2026-01-01T00:00:00+00:00", "5026-01-01T00:00:00+00:00", "8026-01-01T00:00:00+00:00"]


intervals = st.builds(
    Duration,
    years=st.integers(0, 3),
    months=st.integers(0, 14),
    weeks=st.integers(0, 3),
    days=st.integers(0, 40),
    microseconds=st.integers(0, 10**11),
).filter(bool)
years = st.datetimes(datetime(1995, 1, 1), datetime(2035, 1, 1)).map(lambda wall: wall.replace(tzinfo=UTC))  # noqa: DTZ001  # Hypothesis wants naive bounds


@given(intervals, years, years, st.sampled_from([UTC, NEW_YORK, BERLIN]))
def test_the_jump_lands_where_stepping_would(interval: Duration, start: datetime, now: datetime, zone: tzinfo) -> None:
    """The point that is found directly is on the grid, after now, and the one before it is not."""
    firing = first_firing(
        "cycle", RepeatingInterval(interval=interval, start=start.astimezone(zone)), now=now, zone=zone
    )
    assert firing is not None
    following = next_firing(firing, now=now)
    assert following is not None
    assert following.deadline > max(now, start)
    counted = attrs.evolve(firing, left=10**15)
    steps = next_firing(counted, now=now)
    assert steps is not None
    assert steps.left is not None
    index = 10**15 - steps.left
    assert following.deadline == (interval * index).add_to(firing.anchor, zone).astimezone(UTC)
    assert (interval * (index - 1)).add_to(firing.anchor, zone) <= max(now, start)


# ------------------------------------------------------------------ cron


@pytest.mark.parametrize(
    "text, now, zone, expected",
    [
        ("0 9 * * *", "2026-01-01T12:00Z", UTC, ["2026-01-02T09:00:00+00:00", "2026-01-03T09:00:00+00:00"]),
        ("0 9 * * *", "2026-01-01T09:00Z", UTC, ["2026-01-02T09:00:00+00:00"]),
        ("30 0 9 * * *", "2026-01-01T08:00Z", UTC, ["2026-01-01T09:00:30+00:00"]),
        ("0 9 L * *", "2026-02-01T00:00Z", UTC, ["2026-02-28T09:00:00+00:00", "2026-03-31T09:00:00+00:00"]),
        ("0 0 29 2 *", "2026-01-01T00:00Z", UTC, ["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"]),
        ("@hourly", "2026-01-01T12:30Z", UTC, ["2026-01-01T13:00:00+00:00"]),
        # A fixed time of day: moved out of the gap by its length, and once only where it exists twice.
        (
            "30 2 * * *",
            "2026-03-07T12:00Z",
            NEW_YORK,
            ["2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"],
        ),
        ("0 30 2 * * ?", "2026-03-07T12:00Z", NEW_YORK, ["2026-03-08T03:30:00-04:00", "2026-03-09T02:30:00-04:00"]),
        ("30 2 * * *", "2026-03-08T07:10Z", NEW_YORK, ["2026-03-08T03:30:00-04:00"]),
        ("30 2 * * *", "2026-03-28T12:00Z", BERLIN, ["2026-03-29T03:30:00+02:00", "2026-03-30T02:30:00+02:00"]),
        ("30 1 * * *", "2026-10-31T12:00Z", NEW_YORK, ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"]),
        ("0 30 1 * * ?", "2026-10-31T12:00Z", NEW_YORK, ["2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"]),
        ("30 1 * * *", "2026-11-01T05:45Z", NEW_YORK, ["2026-11-02T01:30:00-05:00"]),
        (
            "0,30 2,3 * * *",
            "2026-03-08T06:00Z",
            NEW_YORK,
            ["2026-03-08T03:00:00-04:00", "2026-03-08T03:30:00-04:00", "2026-03-09T02:00:00-04:00"],
        ),
        # The gap of half an hour on Lord Howe Island puts 02:15 behind 02:40.
        (
            "15,40 2 * * *",
            "2026-10-03T12:00Z",
            "Australia/Lord_Howe",
            ["2026-10-04T02:40:00+11:00", "2026-10-04T02:45:00+11:00", "2026-10-05T02:15:00+11:00"],
        ),
        # Every so often: real time goes on, through gaps and both runs of a repeated hour.
        (
            "*/30 * * * *",
            "2026-11-01T05:00Z",
            NEW_YORK,
            [
                "2026-11-01T01:30:00-04:00",
                "2026-11-01T01:00:00-05:00",
                "2026-11-01T01:30:00-05:00",
                "2026-11-01T02:00:00-05:00",
            ],
        ),
        (
            "0 * * * *",
            "2026-03-08T06:30Z",
            NEW_YORK,
            ["2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"],
        ),
    ],
)
def test_cron(text: str, now: str, zone: tzinfo | str, expected: list[str]) -> None:
    """Cron points come strictly after now, in the timer's zone, by our rules for local times."""
    place = zone if isinstance(zone, tzinfo) else parse_zone(zone)
    firing = first_firing("cycle", text, now=at(now), zone=place)
    assert firing is not None
    assert (firing.left, firing.interval) == (None, text)
    assert all_of(firing, limit=len(expected), zone=place) == expected


@given(
    st.sampled_from(
        ["*/7 * * * *", "15,40 2 * * *", "0-59 1-3 * * *", "30 2 * * SUN", "0 0 1 * *", "*/20 30 1,2 * * *"]
    ),
    st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)),  # noqa: DTZ001  # Hypothesis wants naive bounds
    st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo"]),
)
def test_cron_goes_forward(text: str, now: datetime, zone: str) -> None:
    """Deadlines grow strictly, and missed ones are skipped to the first point after now."""
    firing = first_firing("cycle", text, now=now.replace(tzinfo=UTC), zone=parse_zone(zone))
    deadlines = [now.replace(tzinfo=UTC)]
    while firing is not None and len(deadlines) < 6:
        deadlines.append(firing.deadline)
        firing = next_firing(firing, now=firing.deadline)
    assert len(deadlines) == 6
    assert all(one < other for one, other in pairwise(deadlines))


def test_now_has_to_be_a_moment() -> None:
    """A naive now is refused: it would be read in the zone of the machine."""
    with pytest.raises(InvalidRequest, match="with a zone"):
        first_firing("cycle", "R/P1D", now=datetime(2026, 1, 1), zone=UTC)  # noqa: DTZ001  # wrong on purpose
