"""Zones, RFC 9557 texts, and local times that do not exist or exist twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given

from tests.values.support import BERLIN, NEW_YORK, moments
from trioflow.errors import InvalidRequest
from trioflow.values import at_local, format_moment, parse_moment, parse_zone


@pytest.mark.parametrize(
    "text, zone",
    [
        ("Europe/Berlin", BERLIN),
        ("Z", UTC),
        ("+00:00", UTC),
        ("+05:30", timezone(timedelta(hours=5, minutes=30))),
        ("-0330", timezone(-timedelta(hours=3, minutes=30))),
        ("+02", timezone(timedelta(hours=2))),
    ],
)
def test_zones(text: str, zone: tzinfo) -> None:
    """A zone is an IANA name, a fixed offset or Z."""
    assert parse_zone(text) == zone


@pytest.mark.parametrize("text", ["", "Nowhere/Town", "America", "../etc/passwd", "+25:00", "+01:75", "a\0b", "\ud800"])
def test_zones_that_are_none(text: str) -> None:
    """Anything else is refused, folders of the database and paths out of it too."""
    with pytest.raises(InvalidRequest):
        parse_zone(text)


@pytest.mark.parametrize(
    "wall, zone, expected",
    [
        ("2026-03-08T02:30", NEW_YORK, "2026-03-08T03:30:00-04:00[America/New_York]"),
        ("2026-03-08T01:59", NEW_YORK, "2026-03-08T01:59:00-05:00[America/New_York]"),
        ("2026-03-08T03:00", NEW_YORK, "2026-03-08T03:00:00-04:00[America/New_York]"),
        ("2026-11-01T01:30", NEW_YORK, "2026-11-01T01:30:00-04:00[America/New_York]"),
        ("2026-11-01T02:00", NEW_YORK, "2026-11-01T02:00:00-05:00[America/New_York]"),
        ("2026-03-29T02:00", BERLIN, "2026-03-29T03:00:00+02:00[Europe/Berlin]"),
        ("2026-10-25T02:59", BERLIN, "2026-10-25T02:59:00+02:00[Europe/Berlin]"),
        ("2011-12-30T12:00", parse_zone("Pacific/Apia"), "2011-12-31T12:00:00+14:00[Pacific/Apia]"),
    ],
)
def test_local_times(wall: str, zone: tzinfo, expected: str) -> None:
    """A time in a gap moves forward by the gap, whole days too; one that exists twice is the first."""
    assert format_moment(at_local(datetime.fromisoformat(wall), zone)) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2026-03-07T09:00:00-05:00[America/New_York]", "2026-03-07T09:00:00-05:00[America/New_York]"),
        ("2026-03-07T09:00[America/New_York]", "2026-03-07T09:00:00-05:00[America/New_York]"),
        ("2026-03-07T09:00:00-05:00[!America/New_York]", "2026-03-07T09:00:00-05:00[America/New_York]"),
        ("2026-03-07T14:00:00Z[America/New_York]", "2026-03-07T09:00:00-05:00[America/New_York]"),
        ("2026-03-07T09:00:00-05:00[America/New_York][u-ca=gregory]", "2026-03-07T09:00:00-05:00[America/New_York]"),
        ("2026-03-07T09:00:00+05:30[+05:30]", "2026-03-07T09:00:00+05:30"),
        ("2026-11-01T01:30:00-05:00[America/New_York]", "2026-11-01T01:30:00-05:00[America/New_York]"),
        ("2026-11-01T01:30:00-04:00[America/New_York]", "2026-11-01T01:30:00-04:00[America/New_York]"),
        ("2026-03-07T09:00:00-05:00", "2026-03-07T15:00:00+01:00[Europe/Berlin]"),
        ("2026-03-07T09:00:00Z", "2026-03-07T10:00:00+01:00[Europe/Berlin]"),
        ("2026-03-07T09:00:00", "2026-03-07T09:00:00+01:00[Europe/Berlin]"),
        (" 2026-03-07t09:00:00z ", "2026-03-07T10:00:00+01:00[Europe/Berlin]"),
        ("20260307T090000Z", "2026-03-07T10:00:00+01:00[Europe/Berlin]"),
        ("2026-03-07T09:00:00,5Z", "2026-03-07T10:00:00.500000+01:00[Europe/Berlin]"),
        ("2026-03-07T09:00:00.123456789Z", "2026-03-07T10:00:00.123456+01:00[Europe/Berlin]"),
        ("2026-03-07", "2026-03-07T00:00:00+01:00[Europe/Berlin]"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    """A text is read in its own zone, else in the given one, here Berlin."""
    moment = parse_moment(text, BERLIN)
    assert moment is not None
    assert format_moment(moment) == expected


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "now()", "due", "20260307", "2026-03", "2026-03-07 09:00", "=2026-03-07", "2026-W10-6"]
)
def test_texts_that_are_no_date(text: str) -> None:
    """Whatever has not the form of a date is none, and so an expression to its caller."""
    assert parse_moment(text, UTC) is None


@pytest.mark.parametrize(
    "text, words",
    [
        ("2026-13-01T00:00:00Z", "month"),
        ("2026-02-29", "day"),
        ("2026-03-07T24:01Z", "hour"),
        ("2026-06-30T23:59:60Z", "second"),
        ("2026-03-07T09:00:00-04:00[America/New_York]", "offset in America/New_York is -0500"),
        ("2026-03-08T02:30:00-05:00[America/New_York]", "contradicts"),
        ("2026-03-07T09:00:00+00:00[America/New_York]", "contradicts"),
        ("2026-03-07T09:00[Nowhere/Town]", "no time zone"),
        ("2026-03-07T09:00+25:00", "less than a day"),
        ("2026-03-07T09:00Z[u-ca=gregory][Europe/Berlin]", "zone comes first"),
        ("2026-03-07T09:00Z[Europe/Berlin][!u-ca=hebrew]", "critical"),
        ("0001-01-01T00:00+10:00", "years 1 to 9999"),
    ],
)
def test_dates_that_name_no_moment(text: str, words: str) -> None:
    """A text with the form of a date that names no moment is refused, and the message says why."""
    with pytest.raises(InvalidRequest, match=words):
        parse_moment(text, UTC)


def test_without_a_zone_to_read_in() -> None:
    """With no zone given, a text keeps its own offset, and one that has none is refused."""
    moment = parse_moment("2026-03-07T09:00:00-05:00", None)
    assert moment is not None
    assert moment.utcoffset() == timedelta(hours=-5)
    with pytest.raises(InvalidRequest, match="offset"):
        parse_moment("2026-03-07T09:00:00", None)


@given(moments().filter(lambda moment: 2 < moment.year < 9999))
def test_formatted_moments_read_back(moment: datetime) -> None:
    """Every moment that exists is read back from its text, in its zone, to the same moment."""
    existing = moment.astimezone(UTC).astimezone(moment.tzinfo)
    if existing.utcoffset() and existing.utcoffset().seconds % 60:  # type: ignore[union-attr]  # aware
        return
    read = parse_moment(format_moment(existing), UTC)
    assert read is not None
    assert read.astimezone(UTC) == existing.astimezone(UTC)
