"""Durations: what ISO 8601 writes, and calendar arithmetic where days are not 24 hours long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.values.support import BERLIN, NEW_YORK, durations
from trioflow.errors import InvalidRequest
from trioflow.values import Duration, format_moment, parse_moment

SECOND = 1_000_000
HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    "text, expected, canonical",
    [
        ("P1M2DT3.5S", Duration(months=1, days=2, microseconds=3_500_000), "P1M2DT3.5S"),
        ("P1Y2M3W4DT5H6M7S", Duration(years=1, months=2, weeks=3, days=4, microseconds=18_367 * SECOND), None),
        ("P2W", Duration(weeks=2), "P2W"),
        ("PT36H", Duration(microseconds=36 * HOUR), "PT36H"),
        ("PT90M", Duration(microseconds=HOUR * 3 // 2), "PT1H30M"),
        ("PT0.000001S", Duration(microseconds=1), "PT0.000001S"),
        ("PT1,5H", Duration(microseconds=HOUR * 3 // 2), "PT1H30M"),
        ("PT0.1M", Duration(microseconds=6 * SECOND), "PT6S"),
        ("P0.5Y", Duration(months=6), "P6M"),
        ("P1.5W", Duration(weeks=1, days=3, microseconds=12 * HOUR), "P1W3DT12H"),
        ("P1.25D", Duration(days=1, microseconds=6 * HOUR), "P1DT6H"),
        ("PT0.0000005S", Duration(), "PT0S"),
        ("PT0.0000015S", Duration(microseconds=2), "PT0.000002S"),
        ("P0D", Duration(), "PT0S"),
        ("-P1DT1H", Duration(days=-1, microseconds=-HOUR), "-P1DT1H"),
        (" PT1S ", Duration(microseconds=SECOND), "PT1S"),
    ],
)
def test_texts(text: str, expected: Duration, canonical: str | None) -> None:
    """Every form of ISO 8601 is read; the canonical text keeps calendar units apart from exact time."""
    duration = Duration.parse(text)
    assert duration == expected
    assert str(duration) == (canonical or text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "P",
        "PT",
        "P1DT",
        "1D",
        "p1d",
        "P1H",
        "PT1D",
        "P1S",
        "P-1D",
        "+P1D",
        "P+1D",
        "PD",
        "P1D1M",
        "PT1S1M",
        "P1.5DT1H",
        "P1.5M",
        "P0.3Y",
        "P.5D",
        "P5.D",
        "P1D PT1H",
        "P9999999999999999999Y",
        "PT999999999999999999H",
    ],
)
def test_texts_that_are_no_duration(text: str) -> None:
    """What ISO 8601 does not allow is refused: signs inside, empty parts, wrong order, fractions above the smallest."""
    with pytest.raises(InvalidRequest):
        Duration.parse(text)


@given(durations())
def test_canonical_text_reads_back(duration: Duration) -> None:
    """str() and parse() are inverse."""
    assert Duration.parse(str(duration)) == duration


@pytest.mark.parametrize(
    "moment, zone, text, expected",
    [
        # The day before the clocks go forward, and back: a calendar day is 23 and 25 hours long.
        ("2026-03-07T09:00-05:00", NEW_YORK, "P1D", "2026-03-08T09:00:00-04:00[America/New_York]"),
        ("2026-03-07T09:00-05:00", NEW_YORK, "PT24H", "2026-03-08T10:00:00-04:00[America/New_York]"),
        ("2026-10-31T09:00-04:00", NEW_YORK, "P1D", "2026-11-01T09:00:00-05:00[America/New_York]"),
        ("2026-10-31T09:00-04:00", NEW_YORK, "PT24H", "2026-11-01T08:00:00-05:00[America/New_York]"),
        ("2026-03-07T02:30-05:00", NEW_YORK, "P1D", "2026-03-08T03:30:00-04:00[America/New_York]"),
        ("2026-10-31T01:30-04:00", NEW_YORK, "P1D", "2026-11-01T01:30:00-04:00[America/New_York]"),
        ("2026-11-01T01:30-05:00", NEW_YORK, "PT1H", "2026-11-01T02:30:00-05:00[America/New_York]"),
        ("2026-11-01T01:30-04:00", NEW_YORK, "PT1H", "2026-11-01T01:30:00-05:00[America/New_York]"),
        ("2026-03-28T12:00+01:00", BERLIN, "P1D", "2026-03-29T12:00:00+02:00[Europe/Berlin]"),
        ("2026-10-24T12:00+02:00", BERLIN, "P1DT1H", "2026-10-25T13:00:00+01:00[Europe/Berlin]"),
        ("2026-03-28T02:30+01:00", BERLIN, "P1DT30M", "2026-03-29T04:00:00+02:00[Europe/Berlin]"),
        # Ends of months, leap years.
        ("2026-01-31T00:00Z", UTC, "P1M", "2026-02-28T00:00:00+00:00"),
        ("2028-01-31T00:00Z", UTC, "P1M", "2028-02-29T00:00:00+00:00"),
        ("2028-02-29T00:00Z", UTC, "P1Y", "2029-02-28T00:00:00+00:00"),
        ("2028-02-29T00:00Z", UTC, "P4Y", "2032-02-29T00:00:00+00:00"),
        ("2026-01-31T00:00Z", UTC, "P1M1D", "2026-03-01T00:00:00+00:00"),
        ("2026-12-31T00:00Z", UTC, "P2M", "2027-02-28T00:00:00+00:00"),
        ("2026-03-31T00:00Z", UTC, "-P1M", "2026-02-28T00:00:00+00:00"),
        ("2026-01-15T00:00Z", UTC, "-P13M", "2024-12-15T00:00:00+00:00"),
        ("2026-01-01T00:00Z", UTC, "P1W", "2026-01-08T00:00:00+00:00"),
        # The zone decides which month and day it is.
        ("2026-01-31T23:00Z", BERLIN, "P1M", "2026-03-01T00:00:00+01:00[Europe/Berlin]"),
    ],
)
def test_adding(moment: str, zone: tzinfo, text: str, expected: str) -> None:
    """Months are clamped, days are of the zone's calendar, hours are exact."""
    start = parse_moment(moment, None)
    assert start is not None
    assert format_moment(Duration.parse(text).add_to(start, zone)) == expected


@given(st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1)), st.timedeltas(timedelta(-999), timedelta(999)))  # noqa: DTZ001  # Hypothesis wants naive bounds
def test_exact_durations_add_as_timedelta_does(wall: datetime, exact: timedelta) -> None:
    """Without calendar units, adding is the addition of instants, and `of` and `as_timedelta` are inverse."""
    moment = wall.replace(tzinfo=UTC)
    assert Duration.of(exact).add_to(moment, BERLIN) == moment + exact
    assert Duration.of(exact).as_timedelta() == exact


@pytest.mark.parametrize("text", ["P9000Y", "P999999999999Y", "P999999999999D", "PT99999999H", "-P3000Y"])
def test_beyond_the_calendar(text: str) -> None:
    """A result outside of the years 1 to 9999 is refused in words."""
    with pytest.raises(InvalidRequest, match="years 1 to 9999"):
        Duration.parse(text).add_to(datetime(2026, 1, 1, tzinfo=UTC), UTC)


def test_what_has_no_meaning() -> None:
    """Mixed signs, fractional units and naive moments are refused; a calendar duration has no timedelta."""
    with pytest.raises(InvalidRequest, match="one sign"):
        Duration(days=1, months=-1)
    with pytest.raises(InvalidRequest, match="whole numbers"):
        Duration(days=1.5)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(InvalidRequest, match="no zone"):
        Duration(days=1).add_to(datetime(2026, 1, 1), UTC)  # noqa: DTZ001  # wrong on purpose
    with pytest.raises(InvalidRequest, match="calendar units"):
        Duration(days=1).as_timedelta()


def test_arithmetic() -> None:
    """A Duration can be multiplied and negated; a calendar day is not 24 hours, and zero is false."""
    assert 3 * Duration(months=1, microseconds=5) == Duration(months=3, microseconds=15)
    assert -Duration(days=1) == Duration(days=-1)
    assert Duration(days=1) != Duration(microseconds=24 * HOUR)
    assert (Duration(days=1).is_exact, Duration(microseconds=1).is_exact) == (False, True)
    assert (bool(Duration()), bool(Duration(days=-1)), Duration(days=-1).sign) == (False, True, -1)
