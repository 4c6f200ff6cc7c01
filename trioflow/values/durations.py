"""Durations of ISO 8601: calendar units and exact time are kept apart, because a day is not always 24 hours.

``datetime.timedelta`` stays what it is: an exact duration.  `Duration` is for texts such as ``P1M2DT3.5S``, whose
length depends on where in the calendar they are added.
"""

from __future__ import annotations

import calendar
import re
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta, tzinfo
from fractions import Fraction
from typing import Final, Self

import attrs

from trioflow.errors import InvalidRequest
from trioflow.values.moments import at_local

__all__ = ["Duration"]

# So much that the microseconds (31,000 years) fit into a timedelta, and each number into the text.
_BOUND: Final = 10**18
_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR

# Bounded, so that a text cannot ask for numbers that take long to compute with.
_NUMBER: Final = r"\d{1,18}(?:[.,]\d{1,18})?"
_TEXT: Final = re.compile(
    rf"(?P<sign>-?)P(?=.)(?:(?P<years>{_NUMBER})Y)?(?:(?P<months>{_NUMBER})M)?(?:(?P<weeks>{_NUMBER})W)?"
    rf"(?:(?P<days>{_NUMBER})D)?"
    rf"(?:T(?=.)(?:(?P<hours>{_NUMBER})H)?(?:(?P<minutes>{_NUMBER})M)?(?:(?P<seconds>{_NUMBER})S)?)?",
    re.ASCII,
)
_UNITS: Final = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")


def _one_sign(instance: Duration, _attribute: attrs.Attribute[int], _value: int) -> None:
    parts = instance.parts
    if any(type(part) is not int for part in parts):
        raise InvalidRequest(f"a duration has whole numbers of its units, not {parts!r}")
    if max(map(abs, parts)) >= _BOUND:
        raise InvalidRequest(f"a duration counts less than {_BOUND:.0e} of each of its units, not {parts!r}")
    if min(parts) < 0 < max(parts):
        raise InvalidRequest(f"a duration has one sign for all of its units, not {parts!r}")


@attrs.frozen(kw_only=True)
class Duration:
    """An ISO 8601 duration: years, months, weeks and days of the calendar, then ``microseconds`` of exact time.

    ``P1D`` is a calendar day, ``PT24H`` is exact; the two are not equal, nor are ``P1Y`` and ``P12M``.  All units have
    the same sign.
    """

    years: int = 0
    months: int = 0
    weeks: int = 0
    days: int = 0
    microseconds: int = attrs.field(default=0, validator=_one_sign)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ISO 8601, weeks beside other units and a leading minus for the whole (ISO 8601-2) included.

        The smallest unit given may have a fraction: of a year in whole months, of a week or day carried down to exact
        time, of hours, minutes and seconds rounded to the microsecond (half to even); of a month none, for it has no
        length.  Raises InvalidRequest.
        """
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise InvalidRequest(f"{text!r} is no ISO 8601 duration: these are: 'P1Y2M3DT4H5M6.7S', 'P2W', 'PT30S'")
        amounts = {unit: _amount(match[unit]) for unit in _UNITS if match[unit]}
        fractional = [unit for unit, amount in amounts.items() if isinstance(amount, Fraction)]
        if fractional and fractional != list(amounts)[-1:]:
            raise InvalidRequest(f"{text!r}: only the smallest unit of a duration may have a fraction")
        whole = _carried_down(amounts, text)
        return -cls(**whole) if match["sign"] else cls(**whole)

    @classmethod
    def of(cls, exact: timedelta) -> Self:
        """The Duration of exactly that time; it has no calendar units."""
        return cls(microseconds=exact // timedelta(microseconds=1))

    @property
    def parts(self) -> tuple[int, int, int, int, int]:
        """Years, months, weeks, days, microseconds."""
        return (self.years, self.months, self.weeks, self.days, self.microseconds)

    @property
    def is_exact(self) -> bool:
        """Whether its length is the same everywhere: no calendar units."""
        return not (self.years or self.months or self.weeks or self.days)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (max(self.parts) > 0) - (min(self.parts) < 0)

    def as_timedelta(self) -> timedelta:
        """The exact time; InvalidRequest if there are calendar units."""
        if not self.is_exact:
            raise InvalidRequest(f"{self} has calendar units, whose length depends on the date: add it to a moment")
        return timedelta(microseconds=self.microseconds)

    def add_to(self, moment: datetime, zone: tzinfo) -> datetime:
        """The moment this much later, in ``zone``: months first, then weeks and days, then the exact time.

        The calendar part moves the local time of ``zone``: a day that the month does not have is its last, a local
        time that does not exist moves forward by the gap, one that exists twice is the first.  Raises InvalidRequest
        where the result leaves the years 1 to 9999, or if ``moment`` is naive.
        """
        if moment.tzinfo is None:
            raise InvalidRequest(f"{moment} has no zone: nothing can be added to it")
        try:
            local = moment.astimezone(UTC).astimezone(zone)
            if not self.is_exact:
                local = at_local(self._moved(local), zone)
            if not self.microseconds:
                return local
            return (local.astimezone(UTC) + timedelta(microseconds=self.microseconds)).astimezone(zone)
        except (OverflowError, InvalidRequest) as error:
            raise InvalidRequest(f"{moment.isoformat()} plus {self} leaves the years 1 to 9999") from error

    def __mul__(self, times: int) -> Duration:
        return Duration(
            years=self.years * times,
            months=self.months * times,
            weeks=self.weeks * times,
            days=self.days * times,
            microseconds=self.microseconds * times,
        )

    __rmul__ = __mul__

    def __neg__(self) -> Self:
        return attrs.evolve(
            self,
            years=-self.years,
            months=-self.months,
            weeks=-self.weeks,
            days=-self.days,
            microseconds=-self.microseconds,
        )

    def __bool__(self) -> bool:
        return self.sign != 0

    def __str__(self) -> str:
        """The canonical ISO text, which `parse` reads back to an equal Duration."""
        years, months, weeks, days, exact = map(abs, self.parts)
        date = "".join(f"{n}{unit}" for n, unit in ((years, "Y"), (months, "M"), (weeks, "W"), (days, "D")) if n)
        time = _time_text(exact)
        return ("-" if self.sign < 0 else "") + (f"P{date}{time}" if date or time else "PT0S")

    def _moved(self, local: datetime) -> datetime:
        """The wall time after the calendar part, without zone, the day clamped to the month's end."""
        year, month = divmod(local.year * 12 + local.month - 1 + self.years * 12 + self.months, 12)
        if not MINYEAR <= year <= MAXYEAR:
            raise OverflowError
        day = min(local.day, calendar.monthrange(year, month + 1)[1])
        wall = local.replace(tzinfo=None, fold=0, year=year, month=month + 1, day=day)
        return wall + timedelta(days=self.weeks * 7 + self.days)


def _amount(digits: str) -> int | Fraction:
    return int(digits) if digits.isdecimal() else Fraction(digits.replace(",", "."))


def _carried_down(amounts: dict[str, int | Fraction], text: str) -> dict[str, int]:
    """The fields of a Duration; the fraction of the smallest unit goes down to units in which it is whole."""
    years, months, weeks, days, hours, minutes, seconds = (amounts.get(unit, 0) for unit in _UNITS)
    months += years % 1 * 12
    if months % 1:
        raise InvalidRequest(f"{text!r}: a fraction of a month has no length; say it in days or in whole months")
    days += weeks % 1 * 7
    exact = days % 1 * _DAY + hours * _HOUR + minutes * _MINUTE + seconds * _SECOND
    return {
        "years": int(years),
        "months": int(months),
        "weeks": int(weeks),
        "days": int(days),
        "microseconds": round(exact),
    }


def _time_text(exact: int) -> str:
    hours, rest = divmod(exact, _HOUR)
    minutes, rest = divmod(rest, _MINUTE)
    seconds, micros = divmod(rest, _SECOND)
    fraction = f".{micros:06}".rstrip("0") if micros else ""
    text = f"{hours}H" if hours else ""
    text += f"{minutes}M" if minutes else ""
    text += f"{seconds}{fraction}S" if seconds or micros else ""
    return f"T{text}" if text else ""
