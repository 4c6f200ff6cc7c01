"""The types that an evaluation knows; everything is decided by exact type, so that no subclass can bring code along."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Final
from uuid import UUID

import attrs

__all__ = ["COLLECTIONS", "NUMBERS", "PLAIN", "SCALARS", "TEXTS", "exact_context", "is_object"]

NUMBERS: Final = frozenset({int, float, bool})
TEXTS: Final = frozenset({str, bytes})
SCALARS: Final = NUMBERS | TEXTS | {type(None), Decimal, datetime, date, time, timedelta, UUID}
COLLECTIONS: Final = frozenset({list, tuple, dict, set})
PLAIN: Final = SCALARS | COLLECTIONS


def exact_context() -> Context:
    """The decimal context of every operation: 28 digits, half to even, whatever the host program's own context says.

    A new one for each operation, because a context is mutable and evaluations run in several threads.
    """
    return Context(prec=28, rounding="ROUND_HALF_EVEN", Emin=-999_999, Emax=999_999)


def is_object(kind: type) -> bool:
    """Whether values of that type are the application's own (attrs classes): its operators are trusted."""
    return kind not in PLAIN and attrs.has(kind)
