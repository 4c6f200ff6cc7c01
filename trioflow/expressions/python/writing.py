"""Values to text: ``str``, f-strings and their formats, all within the limits."""

from __future__ import annotations

import re
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from trioflow.expressions.faults import Fault
from trioflow.expressions.python.kinds import COLLECTIONS, SCALARS
from trioflow.expressions.python.members import formatted_moment
from trioflow.expressions.python.run import Run
from trioflow.values.display import shown

__all__ = ["admit_magnitude", "concat", "formatted", "text"]

_SPEC: Final = re.compile(
    r"(?:.?[<>=^])?[-+ ]?z?#?0?(?P<width>\d*)[,_]?(?:\.(?P<precision>\d+))?[bcdeEfFgGosxX%]?", re.DOTALL | re.ASCII
)
_MOMENTS: Final = frozenset({date, datetime, time})
_FORMATTED: Final = frozenset({str, int, float, bool, Decimal})


def text(run: Run, value: Any) -> str:
    """``str(value)``; sets inside are written in order, so that the text is the same in every process."""
    kind = type(value)
    if kind is str:
        return value  # type: ignore[no-any-return]  # narrowed by exact type
    if kind not in COLLECTIONS:
        return _scalar(run, value)
    run.weigh(value)
    return _written(run, value)


def _scalar(run: Run, value: Any) -> str:
    if type(value) is int:
        run.admit_bits(value.bit_length(), "the number to write")
    result = str(value)
    run.admit(len(result), "the text")
    return result


def _written(run: Run, value: Any) -> str:
    kind = type(value)
    if kind is dict:
        return "{" + ", ".join(f"{_written(run, key)}: {_written(run, entry)}" for key, entry in value.items()) + "}"
    if kind not in COLLECTIONS:
        return repr(value)
    parts = [_written(run, part) for part in run.loop(value)]
    inside = ", ".join(parts)
    if kind is list:
        return f"[{inside}]"
    if kind is set:
        return f"{{{inside}}}" if parts else "set()"
    return f"({inside},)" if len(parts) == 1 else f"({inside})"


def formatted(run: Run, value: Any, conversion: str, spec: str) -> str:
    """One part of an f-string: ``{value!conversion:spec}``."""
    if conversion == "r":
        value = _represented(run, value)
    elif conversion == "s" or not spec:
        value = text(run, value)
    if not spec:
        return value  # type: ignore[no-any-return]  # text by now
    kind = type(value)
    try:
        if kind in _MOMENTS:
            return formatted_moment(run, value, spec)
        _admit_spec(run, value, spec)
        return format(value, spec)
    except (TypeError, ValueError) as error:
        raise Fault(f"cannot format {shown(value)} with {spec!r}: {error}") from error


def _represented(run: Run, value: Any) -> str:
    run.weigh(value)
    if type(value) is int:
        run.admit_bits(value.bit_length(), "the number to write")
    return _written(run, value) if type(value) in COLLECTIONS else repr(value)


def _admit_spec(run: Run, value: Any, spec: str) -> None:
    kind = type(value)
    if kind not in _FORMATTED:
        known = "None" if value is None else kind.__name__
        raise TypeError(f"{known} takes no format" + ("" if kind in SCALARS else "; write str(...) around it"))
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise ValueError("not a format that is offered; one such as '>10', ',.2f' or '05d' is")
    for number in match.group("width", "precision"):
        # The digits first: a number of a million digits takes long to read.
        run.admit_width(10 ** len(number) if number and len(number) > 6 else int(number or 0))
    if kind is int:
        run.admit_bits(value.bit_length(), "the number to write")
    if kind is Decimal:
        admit_magnitude(run, value, "the decimal to write")


def admit_magnitude(run: Run, value: Decimal, what: str) -> None:
    """Refuse to write out a decimal such as 1E+999999999 digit by digit."""
    if value.is_finite():
        run.admit_digits(max(abs(value.adjusted()), len(value.as_tuple().digits)), what)


def concat(run: Run, *parts: str) -> str:
    """The parts of an f-string, put together."""
    run.admit(sum(map(len, parts)), "the text")
    result = "".join(parts)
    run.pay(result)
    return result
