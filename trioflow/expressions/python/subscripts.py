"""Subscripts and slices, and the places that a script assigns to."""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import attrs

from trioflow.expressions.faults import Fault
from trioflow.expressions.python.kinds import is_object
from trioflow.expressions.python.operators import key
from trioflow.expressions.python.run import Run
from trioflow.values.display import shown

__all__ = ["Place", "entries_of", "item", "part"]

_SEQUENCES: Final = frozenset({list, tuple, str, bytes})
_LISTED: Final = 10
"""Names that a message lists."""


def entries_of(record: dict[Any, Any]) -> str:
    """What a message says about the names in a record."""
    if not record:
        return "it is empty"
    more = f" and {len(record) - _LISTED} more" if len(record) > _LISTED else ""
    return f"it has {', '.join(map(shown, islice(record, _LISTED)))}{more}"


def item(run: Run, subject: Any, index: Any) -> Any:
    """Read ``subject[index]``."""
    kind = type(subject)
    if kind is dict:
        try:
            return subject[key(run, index)]
        except KeyError as error:
            raise Fault(f"the record has no entry {shown(index)}; {entries_of(subject)}") from error
    if kind not in _SEQUENCES:
        raise Fault(f"{shown(subject)} ({kind.__name__}) has no entries: cannot read [{shown(index)}]")
    try:
        return subject[index]
    except IndexError as error:
        raise Fault(f"no entry at the index {index}: {shown(subject)} has {len(subject)}") from error
    except TypeError as error:
        raise Fault(f"an index is a whole number, not {shown(index)}: {shown(subject)} is a sequence") from error


def part(run: Run, subject: Any, *bounds: Any) -> Any:
    """Read ``subject[start:stop:step]``."""
    if type(subject) not in _SEQUENCES:
        raise Fault(f"{shown(subject)} ({type(subject).__name__}) cannot be sliced")
    try:
        return run.sized(subject[slice(*bounds)])
    except (TypeError, ValueError) as error:
        raise Fault(f"cannot slice {shown(subject)} with {shown(bounds)}: {error}") from error


@attrs.define(eq=False)
class Place:
    """Where a script assigns to: ``subject[index]``, or ``subject.name`` of a record or an attrs object.

    Generated code reads, sets and deletes ``value``, so one form serves every kind of assignment target.
    """

    run: Run
    subject: Any
    index: Any
    dotted: bool

    @property
    def value(self) -> Any:
        """What is there."""
        if self.dotted and type(self.subject) is not dict:
            self._check_field()
            return getattr(self.subject, self.index)
        return item(self.run, self.subject, self.index)

    @value.setter
    def value(self, value: Any) -> None:
        kind = type(self.subject)
        if kind is dict:
            self.run.touch(self.subject)
            self.subject[key(self.run, self.index)] = value
            self.run.admit(len(self.subject), "the record")
        elif self.dotted:
            self._check_field()
            self._set_field(value)
        else:
            self._check_entry()
            self.run.touch(self.subject)
            self.subject[self.index] = value

    @value.deleter
    def value(self) -> None:
        if type(self.subject) is dict:
            item(self.run, self.subject, self.index)
        elif self.dotted:
            raise Fault(f"only an entry of a record or list can be deleted, not a field of {shown(self.subject)}")
        else:
            self._check_entry()
        self.run.touch(self.subject)
        del self.subject[self.index]

    def _check_entry(self) -> None:
        if type(self.subject) is not list:
            raise Fault(f"{shown(self.subject)} ({type(self.subject).__name__}) has no entries that can be changed")
        item(self.run, self.subject, self.index)

    def _check_field(self) -> None:
        kind = type(self.subject)
        if not is_object(kind) or self.index not in {field.name for field in attrs.fields(kind)}:
            raise Fault(f"{shown(self.subject)} ({kind.__name__}) has no field {self.index!r} that can be assigned")

    def _set_field(self, value: Any) -> None:
        self.run.touch(self.subject)
        try:
            setattr(self.subject, self.index, value)
        except attrs.exceptions.FrozenError as error:
            raise Fault(f"{shown(self.subject)} is frozen: assign a new object instead of its field") from error
