"""Values in messages: short, however large they are, and the same in every process.

A message can become an incident, and so part of a checkpoint.  But a set has another order in each process, since the
hashes of texts differ, and the repr of an object that has none of its own holds its address.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from typing import Any, Final

__all__ = ["in_order", "shown"]

_LENGTH: Final = 60
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN: Final = frozenset({int, str})


def shown(value: object) -> str:
    """The repr of a value, cut where it is long: sets are in order, and addresses are left out."""
    brief = _Brief()
    try:
        return brief.repr(value)
    except Exception:  # noqa: BLE001  # see below
        # An integer of more than 4,300 digits, or a repr of the application's own class that fails: a message about a
        # failure must not fail itself.
        return f"<{type(value).__name__}>"


class _Brief(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = _LENGTH

    # The methods of `Repr` sort what they are given, and keep its order where it cannot be sorted.

    def repr_set(self, x: set[Any], level: int) -> str:
        return super().repr_set(in_order(x), level)  # type: ignore[arg-type]  # any sized iterable will do

    def repr_frozenset(self, x: frozenset[Any], level: int) -> str:
        return super().repr_frozenset(in_order(x), level)  # type: ignore[arg-type]  # as above

    def repr_instance(self, x: Any, level: int) -> str:  # noqa: ARG002  # the base class's signature
        text = _ADDRESS.sub("", repr(x))
        half = (_LENGTH - 3) // 2
        return text if len(text) <= _LENGTH else f"{text[:half]}...{text[-half:]}"


def in_order(values: Iterable[Any]) -> list[Any]:
    """The elements of a set in an order that is the same in every process: sorted, or by kind where they do not mix."""
    # What compares with itself may still have no order of all (``nan``): then the result of sorting depends on the
    # order before it, and that must not be the set's.
    ranked = sorted(values, key=_rank)
    try:
        return sorted(ranked)
    except (TypeError, ArithmeticError):
        return ranked


def _rank(value: Any) -> tuple[str, Any]:
    kind = type(value)
    if kind is tuple:
        return "tuple", tuple(map(_rank, value))
    return kind.__name__, value if kind in _PLAIN else repr(value)
