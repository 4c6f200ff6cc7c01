"""The guards that stand in for operators: the same results as Python's own, within the limits."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from types import MappingProxyType
from typing import Any, Final

from trioflow.expressions.faults import Fault, explained
from trioflow.expressions.python.kinds import COLLECTIONS, NUMBERS, PLAIN, SCALARS, TEXTS, exact_context, is_object
from trioflow.expressions.python.run import Run
from trioflow.values.display import shown

__all__ = ["BINARY", "COMPARISONS", "UNARY", "add", "chain", "key", "tested"]

_FAILURES: Final = (TypeError, ValueError, ArithmeticError)
_SEQUENCES: Final = frozenset({list, tuple, str, bytes})
_DIGITS: Final = 7
"""A power of two: digits of a decimal that one turn pays for in an operation."""

_WORTH_PAYING: Final = 4_096
"""Characters from which comparing two equal texts is charged."""

# Values are typed Any in this module: each guard decides by exact type, which a type checker cannot follow.
Guard = Callable[[Run, Any, Any], Any]


def _cannot(symbol: str, a: object, b: object, error: Exception | None = None) -> Fault:
    if a is None or b is None:
        return Fault(f"cannot compute {shown(a)} {symbol} {shown(b)}: one side is None")
    reason = f": {explained(error)}" if error and not isinstance(error, TypeError) else ""
    return Fault(
        f"cannot compute {shown(a)} {symbol} {shown(b)} ({type(a).__name__} {symbol} {type(b).__name__}){reason}"
    )


def _admitted(kind: type) -> bool:
    return kind in PLAIN or is_object(kind)


# ------------------------------------------------------------------ arithmetic


def _binary(
    symbol: str,
    native: Callable[[Any, Any], Any],
    *,
    decimal: Callable[[Context, Any, Any], Decimal] | None = None,
    bounds: Callable[[Run, Any, Any], None] | None = None,
) -> Guard:
    """A guard for one operator: ``bounds`` refuses what would be too large before anything is computed."""

    def guard(run: Run, a: Any, b: Any) -> Any:
        kind_a, kind_b = type(a), type(b)
        if not (_admitted(kind_a) and _admitted(kind_b)):
            raise _cannot(symbol, a, b)
        if bounds is not None:
            bounds(run, a, b)
        try:
            if decimal is not None and (kind_a is Decimal or kind_b is Decimal):
                return _decimal_result(run, decimal, a, b)
            result = native(a, b)
        except _FAILURES as error:
            raise _cannot(symbol, a, b, error) from error
        kind = type(result)
        if kind is complex:
            raise Fault(f"{shown(a)} {symbol} {shown(b)} has no real value")
        if is_object(kind):
            run.weigh(result)
        return run.sized(result)

    return guard


def _decimal_result(run: Run, decimal: Callable[[Context, Any, Any], Decimal], a: Any, b: Any) -> Decimal:
    for side in (a, b):
        if type(side) is Decimal:
            # Results are rounded, operands are not: thousands of digits multiply a thousand times slower than a few.
            run.turns(len(str(side)) >> _DIGITS)
        elif type(side) not in (int, bool):
            raise TypeError
    return decimal(exact_context(), a, b)


def _bounds_add(run: Run, a: Any, b: Any) -> None:
    if type(a) in _SEQUENCES and type(a) is type(b):
        run.admit(len(a) + len(b), "the sum")


def _bounds_multiply(run: Run, a: Any, b: Any) -> None:
    if type(a) in _SEQUENCES:
        a, b = b, a
    if type(a) is not int and type(a) is not bool:
        return
    if type(b) in _SEQUENCES:
        run.admit(a * len(b), "the repetition")
    elif type(b) is int:
        run.admit_bits(a.bit_length() + b.bit_length() - 1, "the product")
    elif is_object(type(b)):
        run.admit_bits(a.bit_length(), "the factor")


def _bounds_power(run: Run, a: Any, b: Any) -> None:
    if type(a) in NUMBERS and type(b) in NUMBERS and float not in (type(a), type(b)) and abs(a) > 1 and b > 0:
        # bit_length(a ** b) is more than (bit_length(a) - 1) * b; what that lets through is checked afterwards.
        run.admit_bits((a.bit_length() - 1) * b, "the power")


def _bounds_left_shift(run: Run, a: Any, b: Any) -> None:
    if type(a) in (int, bool) and type(b) in (int, bool):
        run.admit_bits(a.bit_length() + b, "the shifted number")


def _bounds_modulo(_run: Run, a: Any, _b: Any) -> None:
    if type(a) in TEXTS:
        raise Fault('the operator % does not format text here: write an f-string, such as f"{amount:.2f}"')


add: Final = _binary("+", operator.add, decimal=Context.add, bounds=_bounds_add)

BINARY: Final[Mapping[str, Guard]] = MappingProxyType(
    {
        "Add": add,
        "Sub": _binary("-", operator.sub, decimal=Context.subtract),
        "Mult": _binary("*", operator.mul, decimal=Context.multiply, bounds=_bounds_multiply),
        "Div": _binary("/", operator.truediv, decimal=Context.divide),
        "FloorDiv": _binary("//", operator.floordiv, decimal=Context.divide_int),
        "Mod": _binary("%", operator.mod, decimal=Context.remainder, bounds=_bounds_modulo),
        "Pow": _binary("**", operator.pow, decimal=Context.power, bounds=_bounds_power),
        "LShift": _binary("<<", operator.lshift, bounds=_bounds_left_shift),
        "RShift": _binary(">>", operator.rshift),
        "BitAnd": _binary("&", operator.and_),
        "BitOr": _binary("|", operator.or_),
        "BitXor": _binary("^", operator.xor),
    }
)


def _unary(
    symbol: str, native: Callable[[Any], Any], decimal: Callable[[Context, Any], Decimal] | None
) -> Callable[[Run, Any], Any]:
    def guard(run: Run, a: Any) -> Any:
        try:
            if not _admitted(type(a)):
                raise TypeError
            if decimal is not None and type(a) is Decimal:
                return decimal(exact_context(), a)
            return run.sized(native(a))
        except _FAILURES as error:
            raise Fault(f"cannot compute {symbol} of {shown(a)}, which is of the type {type(a).__name__}") from error

    return guard


UNARY: Final[Mapping[str, Callable[[Run, Any], Any]]] = MappingProxyType(
    {
        "USub": _unary("-", operator.neg, Context.minus),
        "UAdd": _unary("+", operator.pos, Context.plus),
        "Invert": _unary("~", operator.invert, None),
        "Abs": _unary("the absolute value", abs, Context.abs),
    }
)


# ------------------------------------------------------------------ comparisons


def _ordering(symbol: str, native: Callable[[Any, Any], Any]) -> Guard:
    def guard(run: Run, a: Any, b: Any) -> Any:
        if type(a) not in NUMBERS or type(b) not in NUMBERS:
            _walked(run, a, b)
        try:
            return native(a, b)
        except _FAILURES as error:
            if a is None or b is None:
                raise Fault(f"cannot compare {shown(a)} {symbol} {shown(b)}: one side is None") from error
            raise Fault(
                f"cannot compare {shown(a)} {symbol} {shown(b)} ({type(a).__name__} with {type(b).__name__}): "
                f"{explained(error)}"
            ) from error

    return guard


def _walked(run: Run, a: Any, b: Any) -> None:
    """Pay for comparing two values: nothing for scalars, the whole trees for collections."""
    kind_a, kind_b = type(a), type(b)
    if kind_a in TEXTS:
        if kind_a is kind_b and len(a) > _WORTH_PAYING:
            run.pay(a)
    elif kind_a not in SCALARS and kind_b not in SCALARS:
        run.weigh(a, b)


def _equal(run: Run, a: Any, b: Any) -> Any:
    if type(a) not in NUMBERS:
        _walked(run, a, b)
    return a == b


def _unequal(run: Run, a: Any, b: Any) -> Any:
    if type(a) not in NUMBERS:
        _walked(run, a, b)
    return a != b


def _contained(run: Run, a: Any, b: Any) -> bool:
    kind = type(b)
    if kind is dict or kind is set:
        return key(run, a) in b
    if kind is list or kind is tuple:
        run.pay(b)
        if type(a) not in SCALARS:
            run.weigh(a, b)
        return a in b
    if kind in TEXTS and type(a) is kind:
        run.pay(b)
        return a in b
    raise Fault(f"cannot look for {shown(a)} in {shown(b)} ({type(a).__name__} in {type(b).__name__})")


def _missing(run: Run, a: Any, b: Any) -> bool:
    return not _contained(run, a, b)


COMPARISONS: Final[Mapping[str, Guard]] = MappingProxyType(
    {
        "Lt": _ordering("<", operator.lt),
        "LtE": _ordering("<=", operator.le),
        "Gt": _ordering(">", operator.gt),
        "GtE": _ordering(">=", operator.ge),
        "Eq": _equal,
        "NotEq": _unequal,
        "In": _contained,
        "NotIn": _missing,
    }
)


def chain(run: Run, left: Any, tests: tuple[Guard, ...], rest: tuple[Callable[[], Any], ...]) -> Any:
    """``a < b < c``: each operand is computed once, and only if the comparisons before it hold."""
    result: Any = True
    for test, operand in zip(tests, rest, strict=True):
        right = operand()
        result = test(run, left, right)
        if not result:
            break
        left = right
    return result


def key(run: Run, value: Any) -> Any:
    """A name in a record or an element of a set: hashing goes through tuples without a bound of its own."""
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is tuple or is_object(kind):
        run.weigh(value)
        return value
    raise Fault(f"{shown(value)} cannot be looked up: a key is a text, number, date or tuple of those")


def tested(run: Run, value: Any) -> Any:
    """A new collection, within the limits."""
    return run.sized(value) if type(value) in COLLECTIONS or type(value) in TEXTS else value
