"""The functions that an expression or script may call; they are no values, so a variable may bear the same name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, Final

from trioflow.errors import BpmnError
from trioflow.expressions.faults import Fault
from trioflow.expressions.python.kinds import COLLECTIONS, NUMBERS, TEXTS, exact_context
from trioflow.expressions.python.operators import UNARY, add, key
from trioflow.expressions.python.ordering import choose, sort
from trioflow.expressions.python.run import Run
from trioflow.expressions.python.writing import admit_magnitude, text
from trioflow.values.display import shown

__all__ = ["FUNCTIONS", "KEYED", "LAZY", "bpmn_error", "record_entries"]

# Values are typed Any in this module: each function decides by exact type, which a type checker cannot follow.
# A missing argument needs a mark of its own where None is a value.
_NOTHING: Final = ...


# ------------------------------------------------------------------ collections


def _len(_run: Run, value: Any, /) -> int:
    if type(value) not in COLLECTIONS and type(value) not in TEXTS:
        raise Fault(f"{shown(value)} ({type(value).__name__}) has no length")
    return len(value)


def _min(run: Run, first: Any, /, *others: Any, key: Callable[[Any], Any] | None = None, default: Any = ...) -> Any:
    return _chosen(run, first, others, key, default, largest=False, what="min")


def _max(run: Run, first: Any, /, *others: Any, key: Callable[[Any], Any] | None = None, default: Any = ...) -> Any:
    return _chosen(run, first, others, key, default, largest=True, what="max")


def _chosen(
    run: Run,
    first: Any,
    others: tuple[Any, ...],
    by: Callable[[Any], Any] | None,
    default: Any,
    *,
    largest: bool,
    what: str,
) -> Any:
    values = [first, *others] if others else list(run.elements(first))
    if not values and default is not _NOTHING:
        return default
    return choose(run, values, by=by, largest=largest, what=what)


def _sorted(run: Run, values: Any, /, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> list[Any]:
    return sort(run, values, by=key, reverse=bool(reverse))


def _sum(run: Run, values: Any, start: Any = 0, /) -> Any:
    total = start
    for value in run.elements(values):
        if type(value) in TEXTS or type(value) in COLLECTIONS:
            raise Fault(f'sum() adds numbers and durations, not {shown(value)}: for texts write "".join(...)')
        total = add(run, total, value)
    return total


def _any(run: Run, values: Any, /) -> bool:
    return any(run.elements(values))


def _all(run: Run, values: Any, /) -> bool:
    return all(run.elements(values))


def _range(run: Run, *bounds: int) -> list[int]:
    for bound in bounds:
        if type(bound) is not int:
            raise Fault(f"range() takes whole numbers, not {shown(bound)}")
    numbers = range(*bounds)
    # Not len(): it fails beyond 2**63.
    run.admit((numbers.stop - numbers.start) // numbers.step, "the range")
    return run.sized(list(numbers))


def _zip(run: Run, *collections: Any, strict: bool = False) -> list[Any]:
    return list(zip(*(run.elements(one) for one in collections), strict=bool(strict)))


def _enumerate(run: Run, values: Any, /, start: int = 0) -> list[Any]:
    return list(enumerate(run.elements(values), start))


def _reversed(run: Run, values: Any, /) -> list[Any]:
    return list(run.elements(values))[::-1]


def _list(run: Run, values: Any = (), /) -> list[Any]:
    if type(values) in (list, tuple):
        return run.sized(list(values))
    return list(run.elements(values))


def _tuple(run: Run, values: Any = (), /) -> tuple[Any, ...]:
    return tuple(_list(run, values))


def _set(run: Run, values: Any = (), /) -> set[Any]:
    return {key(run, value) for value in run.elements(values)}


def _dict(run: Run, pairs: Any = (), /, **entries: Any) -> dict[Any, Any]:
    if type(pairs) is dict:
        run.pay(pairs)
        return {**pairs, **entries}
    record: dict[Any, Any] = {}
    for pair in run.elements(pairs):
        name, value = run.elements(pair)
        record[key(run, name)] = value
    return {**record, **entries}


def record_entries(run: Run, value: Any) -> dict[Any, Any]:
    """What ``{**value}`` takes over."""
    if type(value) is not dict:
        raise Fault(f"only a record can follow ** in a record, not {shown(value)}")
    run.turns(len(value))
    return value


# ------------------------------------------------------------------ numbers, truth and text


def _abs(run: Run, value: Any, /) -> Any:
    return UNARY["Abs"](run, value)


def _round(run: Run, value: Any, digits: int | None = None, /) -> Any:
    if type(value) not in NUMBERS and type(value) is not Decimal:
        raise Fault(f"round() takes a number, not {shown(value)}")
    if digits is not None and (type(digits) is not int or abs(digits) > run.limits.max_width):
        raise Fault(f"round() takes a whole number of digits up to {run.limits.max_width}, not {shown(digits)}")
    if type(value) is Decimal:
        admit_magnitude(run, value, "the decimal to round")
        if digits is not None:
            return value.quantize(Decimal((0, (1,), -digits)), context=exact_context())
    return run.sized(round(value, digits))


def _int(run: Run, value: Any = 0, base: int = 10, /) -> int:
    kind = type(value)
    if kind is str:
        run.admit_digits(len(value), "the text to read as a number")
        return run.sized(int(value, base))
    if kind is Decimal:
        admit_magnitude(run, value, "the decimal")
    elif kind not in NUMBERS:
        raise Fault(f"int() takes a number or text, not {shown(value)}")
    return run.sized(int(value))


def _float(run: Run, value: Any = 0.0, /) -> float:
    if type(value) is str:
        run.admit_digits(len(value), "the text to read as a number")
    elif type(value) not in NUMBERS and type(value) is not Decimal:
        raise Fault(f"float() takes a number or text, not {shown(value)}")
    return float(value)


def _decimal(run: Run, value: Any = 0, /) -> Decimal:
    kind = type(value)
    if kind is str:
        run.admit_digits(len(value), "the text to read as a number")
    elif kind is int:
        run.admit_bits(value.bit_length(), "the number")
    elif kind not in NUMBERS and kind is not Decimal:
        raise Fault(f"Decimal() takes a number or text, not {shown(value)}")
    try:
        return Decimal(value, exact_context())
    except InvalidOperation as error:
        raise Fault(f"Decimal() cannot read {shown(value)} as a number") from error


def _bool(_run: Run, value: Any = None, /) -> bool:
    return bool(value)


def _str(run: Run, value: Any = "", /) -> str:
    return text(run, value)


# ------------------------------------------------------------------ dates


def _now(run: Run) -> datetime:
    return run.now


def _today(run: Run) -> date:
    return run.now.date()


def _date(_run: Run, first: Any, *rest: int) -> date:
    return date.fromisoformat(first) if type(first) is str and not rest else date(first, *rest)


def _datetime(_run: Run, first: Any, *rest: Any) -> datetime:
    moment = datetime.fromisoformat(first) if type(first) is str and not rest else datetime(first, *rest)  # noqa: DTZ001
    # Instance data holds aware datetimes only; where a text names no offset it means UTC.
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _time(_run: Run, first: Any, *rest: Any) -> time:
    return time.fromisoformat(first) if type(first) is str and not rest else time(first, *rest)


def _timedelta(
    _run: Run, days: float = 0, *, weeks: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
) -> timedelta:
    return timedelta(days=days, weeks=weeks, hours=hours, minutes=minutes, seconds=seconds)


_EXACT: Final = re.compile(
    r"(?P<sign>-?)P(?=.)(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?=.)(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)


def _duration(_run: Run, given: str, /) -> timedelta:
    match = _EXACT.fullmatch(given) if type(given) is str else None
    if match is None:
        raise Fault(
            f"duration() takes an ISO 8601 text of exact length, such as 'P2DT4H' or 'PT30M', not {shown(given)}; "
            "months and years have no fixed length"
        )
    units = {unit: float(match[unit] or 0) for unit in ("weeks", "days", "hours", "minutes", "seconds")}
    length = timedelta(**units)
    return -length if match["sign"] else length


def bpmn_error(run: Run, code: Any, message: Any = "", variables: Any = None, /) -> BpmnError:
    """What ``raise BpmnError(code, message, variables)`` of a script raises."""
    if type(code) is not str or type(message) is not str:
        raise Fault(f"BpmnError() takes a code and a message as texts, not {shown(code)} and {shown(message)}")
    if variables is not None and type(variables) is not dict:
        raise Fault(f"the variables of a BpmnError are a record, not {shown(variables)}")
    return BpmnError(code, message, run.settled(variables or {}))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "Decimal": _decimal,
        "abs": _abs,
        "all": _all,
        "any": _any,
        "bool": _bool,
        "date": _date,
        "datetime": _datetime,
        "dict": _dict,
        "duration": _duration,
        "enumerate": _enumerate,
        "float": _float,
        "int": _int,
        "len": _len,
        "list": _list,
        "max": _max,
        "min": _min,
        "now": _now,
        "range": _range,
        "reversed": _reversed,
        "round": _round,
        "set": _set,
        "sorted": _sorted,
        "str": _str,
        "sum": _sum,
        "time": _time,
        "timedelta": _timedelta,
        "today": _today,
        "tuple": _tuple,
        "zip": _zip,
    }
)

LAZY: Final = frozenset({"all", "any", "dict", "list", "max", "min", "set", "sorted", "sum", "tuple"})
"""The functions that use up a generator expression at once, so that no generator ever becomes a value."""

KEYED: Final = frozenset({"max", "min", "sorted"})
"""The functions that take ``key=lambda ...``."""
