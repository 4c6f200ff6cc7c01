"""What to tell somebody whose value cannot be stored: the usual kinds, and what to store instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from typing import Any, Final

import attrs

from trioflow.values._kinds import Refusal, exact_scalar

__all__ = ["refusal_of"]

_SCALARS: Final = (int, float, str, bytes)


def refusal_of(value: Any) -> Refusal | None:
    """The refusal of a value that is no scalar of ours, nor a subclass of one; None leaves it to `exact_scalar`."""
    remedy = _remedy(value)
    if remedy is not None:
        return Refusal(f"a {type(value).__module__}.{type(value).__qualname__} cannot be stored: {remedy}")
    try:
        exact_scalar(value)
    except Refusal as refusal:
        return Refusal(f"{refusal.reason}; convert it to a kind of value (null, bool, int, float, Decimal, str, ...)")
    return None


def _remedy(value: Any) -> str | None:
    if isinstance(value, Enum) and not isinstance(value, _SCALARS):
        return "store its value (.value) or its name (.name)"
    if attrs.has(type(value)):
        return "register its class with the engine's value types, or return a record, for example attrs.asdict(value)"
    if dataclasses.is_dataclass(value):
        return "store a record, for example dataclasses.asdict(value)"
    return _remedy_for_container(value)


def _remedy_for_container(value: Any) -> str | None:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return "as a list it would lose its names: store value._asdict(), or list(value)"
    if isinstance(value, AbstractSet):
        return "it has no order that could be kept: store a list, for example sorted(value)"
    if isinstance(value, Mapping):
        return "store a record: dict(value)"
    if isinstance(value, bytearray | memoryview):
        return "store bytes: bytes(value)"
    if isinstance(value, Sequence | Iterator) and not isinstance(value, _SCALARS):
        return "store a list: list(value)"
    if hasattr(value, "tolist") and not isinstance(value, _SCALARS):
        return "store plain numbers or lists: value.tolist()"
    return None
