"""Sorting and choosing: the only functions that take a rule of their own (``key=lambda ...``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trioflow.expressions.faults import Fault
from trioflow.expressions.python.run import Run
from trioflow.values.display import shown

__all__ = ["choose", "sort"]


def sort(run: Run, values: Any, *, by: Callable[[Any], Any] | None, reverse: bool) -> list[Any]:
    """A sorted list.  The keys are computed and weighed first, because comparing them asks nobody."""
    items = list(run.elements(values))
    keys = items if by is None else [by(value) for value in items]
    run.weigh(keys)
    try:
        order = sorted(range(len(items)), key=lambda position: keys[position], reverse=reverse)
    except TypeError as error:
        raise Fault(f"cannot sort {shown(keys)}: {error}") from error
    return [items[position] for position in order]


def choose(run: Run, values: Any, *, by: Callable[[Any], Any] | None, largest: bool, what: str) -> Any:
    """The first of the largest or smallest; a Fault for an empty collection."""
    items = list(run.elements(values))
    if not items:
        raise Fault(f"{what}() of nothing: the collection is empty; give default=...")
    keys = items if by is None else [by(value) for value in items]
    run.weigh(keys)
    select = max if largest else min
    try:
        return items[select(range(len(items)), key=lambda position: keys[position])]
    except TypeError as error:
        raise Fault(f"cannot compare for {what}() {shown(keys)}: {error}") from error
