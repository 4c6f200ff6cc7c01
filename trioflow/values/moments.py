"""Moments and zones: IANA names, RFC 9557 texts, and local times that do not exist or exist twice."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from trioflow.errors import InvalidRequest

__all__ = ["at_local", "format_moment", "parse_moment", "parse_zone", "to_utc"]

_OFFSET: Final = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d)(?::?(?P<minutes>[0-5]\d))?", re.ASCII)

# A date alone is read in the extended form only: `20260307` is a number to every expression language.
_MOMENT: Final = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\d"
    r"|\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(?::\d\d(?:[.,]\d{1,32})?)?"
    r"|\d{8}[Tt]\d{4}(?:\d\d(?:[.,]\d{1,32})?)?)"
    r"(?P<offset>[Zz]|[+-]\d\d(?::?\d\d)?)?"
    r"(?P<suffixes>(?:\[[^\[\]]*\])*)",
    re.ASCII,
)
_SUFFIX: Final = re.compile(r"\[(?P<critical>!?)(?P<body>[^\[\]]*)\]")


def parse_zone(text: str) -> tzinfo:
    """The zone of an IANA name (``Europe/Berlin``), of a fixed offset (``+02:00``) or of ``Z``.

    Raises InvalidRequest for anything else, also for a name that the time zone database of this machine lacks.
    """
    if text in ("Z", "z"):
        return UTC
    if offset := _OFFSET.fullmatch(text):
        return _fixed(offset, text)
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise InvalidRequest(
            f"no time zone {text!r} is known here: use an IANA name such as 'Europe/Berlin' or an offset such as "
            "'+02:00', and install the package 'tzdata' where the system has no time zone database"
        ) from error


def at_local(wall: datetime, zone: tzinfo) -> datetime:
    """The moment at which the clocks of ``zone`` show ``wall`` (a datetime whose own zone is ignored).

    A local time that does not exist moves forward by the gap, one that exists twice is the first.  Raises
    InvalidRequest where the moment leaves the years 1 to 9999.
    """
    # The way over UTC is what moves a time out of a gap: with fold=0 the offset before the gap applies (PEP 495).
    return _in_zone(wall.replace(tzinfo=zone, fold=0), zone)


def to_utc(moment: datetime) -> datetime:
    """The same moment in UTC; InvalidRequest where that leaves the years 1 to 9999."""
    return _in_zone(moment, UTC)


def parse_moment(text: str, zone: tzinfo | None) -> datetime | None:
    """The moment that an ISO 8601 or RFC 9557 text names, or None if the text is not of that form.

    ``2026-03-07T09:00:00-05:00[America/New_York]`` is in its own zone; without brackets the result is in ``zone``,
    in which a text without offset is read (None: it keeps its offset, and has to have one).  A date alone is its
    midnight.  ``Z`` before brackets gives the moment and leaves the offset to the zone (RFC 9557, 2.2).  Digits
    beyond the microsecond are cut.  Raises InvalidRequest for a text of that form that names no moment: a field out
    of range, an offset that contradicts its zone, an unknown zone, a critical suffix that nobody here knows.
    """
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    try:
        wall = datetime.fromisoformat(match["stamp"].upper().replace(",", "."))
    except ValueError as error:
        raise InvalidRequest(f"{text!r} reads like a date, but names none: {error}") from error
    named = _zone_of_suffixes(match["suffixes"], text)
    offset = match["offset"]
    home = named or zone or (parse_zone(offset) if offset else None)
    if home is None:
        raise InvalidRequest(f"{text!r} names no moment: give it an offset such as 'Z' or '+02:00', or a zone")
    if offset is None:
        return at_local(wall, home)
    moment = _in_zone(wall.replace(tzinfo=parse_zone(offset)), home)
    if named is not None and offset not in ("Z", "z") and moment.replace(tzinfo=None) != wall:
        raise InvalidRequest(
            f"{text!r} contradicts itself: at that moment the offset in {home} is {moment:%z}, "
            f"not {offset}; correct the offset, or leave it out"
        )
    return moment


def format_moment(moment: datetime) -> str:
    """The RFC 9557 text of an aware datetime: its offset always, its IANA zone where it has one."""
    zone = moment.tzinfo
    return f"{moment.isoformat()}[{zone.key}]" if isinstance(zone, ZoneInfo) else moment.isoformat()


def _fixed(offset: re.Match[str], text: str) -> timezone:
    size = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"] or 0))
    try:
        return timezone(-size if offset["sign"] == "-" else size)
    except ValueError as error:
        raise InvalidRequest(f"{text!r} is no offset: it has to be less than a day") from error


def _in_zone(moment: datetime, zone: tzinfo) -> datetime:
    try:
        return moment.astimezone(UTC).astimezone(zone)
    except OverflowError as error:
        raise InvalidRequest(f"{moment.isoformat()} in {zone} leaves the years 1 to 9999: use a nearer date") from error


def _zone_of_suffixes(suffixes: str, text: str) -> tzinfo | None:
    """RFC 9557: the first suffix may be a zone, those with `=` are annotations: only critical ones oblige us."""
    found: tzinfo | None = None
    for position, suffix in enumerate(_SUFFIX.finditer(suffixes)):
        if "=" not in suffix["body"]:
            if position > 0:
                raise InvalidRequest(f"{text!r}: the zone comes first and once, then annotations")
            found = parse_zone(suffix["body"])
        elif suffix["critical"]:
            raise InvalidRequest(f"{text!r}: the annotation {suffix[0]} is marked critical, and is not known here")
    return found
