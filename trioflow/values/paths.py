"""Paths into instance data: ``order.items[0].price``."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from typing import Any, Final, Self

import attrs

from trioflow.errors import ExpressionError
from trioflow.values._kinds import MAX_DEPTH, Value
from trioflow.values.display import shown

__all__ = ["Path", "extended"]

_NAME: Final = r"[\w$@-]+"
_PLAIN: Final = re.compile(_NAME)
_STEP: Final = re.compile(
    rf"(?P<dot>\.)?(?P<name>{_NAME})"
    r"|\[\s*(?P<index>-?\d{1,18})\s*\]"
    r'|\[\s*(?P<double>"(?:[^"\\]|\\.)*")\s*\]'
    r"|\[\s*'(?P<single>[^'\\]*)'\s*\]"
)

Step = str | int


@attrs.frozen
class Path:
    """A name of instance data and the way into its value: keys of records, indexes of lists, fields of typed values."""

    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``name.key[0]["any key"]``; a plain name has letters, digits, ``_``, ``-``, ``$`` and ``@``.

        Indexes count from 0; negative ones are refused, because what they mean changes as a list grows.  Raises
        ExpressionError that shows the position.
        """
        stripped = text.strip()
        steps: list[Step] = []
        position = 0
        while position < len(stripped):
            match = _STEP.match(stripped, position)
            if match is None or not _fits(match, first=not steps):
                raise ExpressionError(
                    f"{text!r} is no path: at {stripped[position:]!r} a name, '.name', '[0]' or '[\"key\"]' is expected"
                )
            steps.append(_step(match, text))
            position = match.end()
        if len(steps) > MAX_DEPTH + 1:
            raise ExpressionError(f"the path {shown(text)} has {len(steps)} steps, more than a value can be deep")
        if not steps or not isinstance(steps[0], str):
            raise ExpressionError(f"{text!r} is no path: it has to begin with the name of a variable")
        return cls(tuple(steps))

    @property
    def name(self) -> str:
        """The variable that the path begins at."""
        return str(self.steps[0])

    def get(self, root: Value) -> Value:
        """What is at the path in ``root``, the value of the variable; not a copy.

        Raises ExpressionError that names the first step that is not there.
        """
        value = root
        for position in range(1, len(self.steps)):
            value = self._child(value, position)
        return value

    def set(self, root: Value, new: Value) -> Value:
        """The variable's value with ``new`` at the path; ``root`` stays as it is, what is unchanged is shared.

        Where a key leads to nothing or to null, a record is made, for an index a list.  An index must exist, or be
        the end of its list, which appends.  Raises ExpressionError, as for a step into a number.
        """
        return self._placed(root, new, 1)

    def __str__(self) -> str:
        return extended(self.name if _PLAIN.fullmatch(self.name) else f"[{_quoted(self.name)}]", self.steps[1:])

    def _child(self, value: Value, position: int) -> Value:
        step = self.steps[position]
        if isinstance(step, int):
            if not isinstance(value, list | tuple):
                raise self._wrong(position, f"a list is expected, but it is {_kind(value)}")
            if step >= len(value):
                raise self._wrong(position, f"there is no [{step}] in a list of {len(value)}")
            return value[step]
        if isinstance(value, dict):
            if step not in value:
                raise self._wrong(position, f"there is no {step!r}, only {_listed(value)}")
            return value[step]
        if _has_field(value, step):
            return getattr(value, step)
        raise self._wrong(position, f"a record with {step!r} is expected, but it is {_kind(value)}")

    def _placed(self, value: Value, new: Value, position: int) -> Value:
        if position == len(self.steps):
            return new
        step = self.steps[position]
        if isinstance(step, int):
            return self._placed_in_list([] if value is None else value, new, position, step)
        if value is None or isinstance(value, dict):
            record = {} if value is None else dict(value)
            record[step] = self._placed(record.get(step), new, position + 1)
            return record
        if _has_field(value, step):
            clone = copy.copy(value)
            object.__setattr__(clone, step, self._placed(getattr(value, step), new, position + 1))
            return clone
        raise self._wrong(position, f"a record is expected, but it is {_kind(value)}")

    def _placed_in_list(self, value: Value, new: Value, position: int, index: int) -> Value:
        if not isinstance(value, list | tuple):
            raise self._wrong(position, f"a list is expected, but it is {_kind(value)}")
        if index > len(value):
            raise self._wrong(position, f"[{index}] is past the end of a list of {len(value)}; [{len(value)}] appends")
        old = value[index] if index < len(value) else None
        parts = [*value[:index], self._placed(old, new, position + 1), *value[index + 1 :]]
        return parts if isinstance(value, list) else tuple(parts)

    def _wrong(self, position: int, reason: str) -> ExpressionError:
        return ExpressionError(f"{self}: at {Path(self.steps[:position])} {reason}")


def extended(text: str, steps: Iterable[Step]) -> str:
    """The text of a path that goes on from ``text`` by ``steps``."""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}"
        else:
            text += f"[{_quoted(step)}]"
    return text


def _fits(match: re.Match[str], *, first: bool) -> bool:
    """A name stands bare at the beginning, and after a dot everywhere else."""
    return match["name"] is None or first == (match["dot"] is None)


def _step(match: re.Match[str], text: str) -> Step:
    if match["index"] is not None:
        index = int(match["index"])
        if match["index"].startswith("-"):
            raise ExpressionError(f"{text!r}: the index [{match['index']}] is negative; count from the front, from 0")
        return index
    if match["double"] is not None:
        return _unquoted(match["double"], text)
    return str(match["single"] if match["single"] is not None else match["name"])


def _quoted(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _unquoted(literal: str, text: str) -> str:
    try:
        return str(json.loads(literal))
    except ValueError as error:
        raise ExpressionError(f"{text!r}: the key {literal} is no string as JSON writes it") from error


def _has_field(value: Any, name: str) -> bool:
    return attrs.has(type(value)) and any(field.name == name for field in attrs.fields(type(value)))


def _kind(value: Value) -> str:
    return "null" if value is None else f"a {type(value).__name__}"


def _listed(record: dict[str, Value]) -> str:
    return shown(list(record)) if record else "an empty record"
