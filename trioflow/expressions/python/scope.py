"""The variables of one script run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from trioflow.expressions.python.kinds import COLLECTIONS, SCALARS
from trioflow.expressions.python.run import Run, private_copy

__all__ = ["Scope"]


class Scope(dict[str, Any]):
    """What the script has read or assigned so far; a name is read from the caller once, when it is first needed.

    Everything that can change in place is copied when it is read, so that the caller's data is never touched.
    """

    __slots__ = ("_assigned", "_names")

    def __init__(self, names: Mapping[str, Any]) -> None:
        super().__init__()
        self._names = names
        # A dict for its order: results come in the order of their first assignment.
        self._assigned: dict[str, None] = {}

    def __missing__(self, name: str) -> Any:
        value = private_copy(self._names[name])
        super().__setitem__(name, value)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self._assigned[name] = None
        super().__setitem__(name, value)

    def results(self, run: Run) -> dict[str, Any]:
        """The names that were assigned or whose values were changed in place, with values of the caller's own."""
        changed = [name for name, value in self.items() if name not in self._assigned and _changed(value, run)]
        return {name: run.settled(self[name]) for name in (*self._assigned, *changed)}


def _changed(value: object, run: Run) -> bool:
    """Whether a container that the script changed in place is part of the value."""
    if not run.touched:
        return False
    seen: set[int] = set()
    pending = [value]
    while pending:
        part: Any = pending.pop()
        if type(part) in SCALARS or id(part) in seen:
            continue
        if id(part) in run.touched:
            return True
        seen.add(id(part))
        if type(part) is dict:
            pending.extend(part.values())
        elif type(part) in COLLECTIONS:
            pending.extend(part)
        elif attrs.has(type(part)):
            pending.extend(getattr(part, field.name) for field in attrs.fields(type(part)))
    return False
