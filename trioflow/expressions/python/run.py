"""One evaluation: its time, its budget, and the walks over values that the budget pays for."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from datetime import datetime
from types import GeneratorType
from typing import Any, Final, TypeVar

import attrs

from trioflow.expressions.faults import Fault
from trioflow.expressions.limits import Limits
from trioflow.expressions.python.kinds import COLLECTIONS, SCALARS, TEXTS
from trioflow.values.display import in_order, shown

__all__ = ["Run", "private_copy"]

_New = TypeVar("_New")

# What one turn buys of an operation in C, as powers of two: 256 characters copied, 32 entries copied, 16 nodes walked.
_CHARACTERS: Final = 8
_ENTRIES: Final = 5
_NODES: Final = 4


@attrs.define(eq=False)
class Run:
    """The state of one evaluation.

    ``touched`` holds the containers that a script changed in place, by identity (and keeps them alive, so that no id is
    used twice); it is None for an expression, which may change nothing.
    """

    limits: Limits
    now: datetime
    left: int
    touched: dict[int, Any] | None = None

    def turns(self, count: int) -> None:
        """Pay for ``count`` loop turns."""
        self.left -= count
        if self.left < 0:
            raise Fault(
                f"the evaluation takes more loop turns than the limit max_turns = {self.limits.max_turns} allows",
                limit="max_turns",
            )

    def admit(self, size: int, what: str) -> None:
        """Refuse a size before anything of that size is made."""
        if size > self.limits.max_size:
            # The number itself may be too long to print.
            much = f"the size {size}" if size < 10**15 else "a size beyond all bounds"
            raise Fault(
                f"{what} has {much}, more than the limit max_size = {self.limits.max_size} allows",
                limit="max_size",
            )

    def admit_bits(self, bits: int, what: str) -> None:
        """Refuse an integer of so many bits before it is computed."""
        if bits > self.limits.max_int_bits:
            raise Fault(
                f"{what} would be an integer of more bits than the limit max_int_bits = {self.limits.max_int_bits} "
                "allows",
                limit="max_int_bits",
            )

    def admit_digits(self, length: int, what: str) -> None:
        """Refuse to read or write a number with so many characters."""
        if length > self.limits.max_int_bits:
            raise Fault(
                f"{what} has {length} digits or characters, more than the limit max_int_bits = "
                f"{self.limits.max_int_bits} allows",
                limit="max_int_bits",
            )

    def admit_width(self, width: int) -> None:
        """Refuse a format of that width, precision or length."""
        if width > self.limits.max_width:
            raise Fault(
                f"the format is wider than the limit max_width = {self.limits.max_width} allows", limit="max_width"
            )

    def sized(self, value: _New) -> _New:
        """A new value, checked against the limits and paid for."""
        self._check(value)
        return value

    def _check(self, value: Any) -> None:
        kind = type(value)
        if kind is int:
            self.admit_bits(value.bit_length(), "the result")
        elif kind in TEXTS or kind in COLLECTIONS:
            self.admit(len(value), "the result")
            self.pay(value)

    def pay(self, value: Any) -> None:
        """Pay for an operation in C that goes through the value once."""
        kind = type(value)
        if kind in TEXTS:
            self.turns(len(value) >> _CHARACTERS)
        elif kind in COLLECTIONS:
            self.turns(len(value) >> _ENTRIES)

    def touch(self, container: Any) -> None:
        """Note that a container is about to be changed in place."""
        if self.touched is None:
            raise Fault(f"an expression cannot change data: {shown(container)}")
        self.touched[id(container)] = container

    def elements(self, value: Any, weight: int = 1) -> Iterable[Any]:
        """What a comprehension or function goes through; every element is paid for, as ``weight`` turns.

        The order is the same in every process: a set is sorted, because the hashes of texts differ from run to run.
        """
        kind = type(value)
        if kind is list or kind is tuple or kind is dict or kind in TEXTS:
            self.turns(len(value) * weight)
        return self.loop(value, weight)

    def loop(self, value: Any, weight: int = 0) -> Iterable[Any]:
        """Like `elements`, for a loop that pays for its turns itself, because its body may let the collection grow."""
        kind = type(value)
        iterable: Iterable[Any] = value
        if kind is set:
            self.turns(len(value) * max(1, weight))
            iterable = in_order(value)
        elif kind not in COLLECTIONS and kind not in TEXTS and kind is not GeneratorType:
            raise Fault(f"cannot go through {shown(value)}: it is no list, record, set or text")
        return iterable  # a generator pays inside, where its own loops start

    def weigh(self, *values: Any) -> None:
        """Pay for a walk over whole trees of values, before C code makes the same walk without asking us.

        A part that is reachable twice counts twice: ``[x, x]`` thirty times over is a billion nodes in a few bytes.
        """
        nodes = characters = 0
        for part in _parts(values):
            nodes += 1
            if type(part) in TEXTS:
                characters += len(part)
            elif type(part) is int:
                characters += part.bit_length() >> 6
            if nodes + characters > self.limits.max_size:
                self.admit(nodes + characters, "the whole value")
        self.turns((nodes >> _NODES) + (characters >> _CHARACTERS))

    def settled(self, value: Any, depth: int = 0) -> Any:
        """The value as the caller may keep it: lists and records of its own, of bounded size and depth."""
        if depth == 0:
            self.weigh(value)
        if depth > self.limits.max_nesting:
            raise Fault(
                f"the result is nested deeper than the limit max_nesting = {self.limits.max_nesting} allows",
                limit="max_nesting",
            )
        kind = type(value)
        if kind is list or kind is tuple:
            return [self.settled(part, depth + 1) for part in value]
        if kind is dict:
            entries = value.items()
            return {_record_key(key): self.settled(part, depth + 1) for key, part in entries}
        if kind is set:
            raise Fault(f"a set is no process value: write sorted(...) or list(...) around {shown(value)}")
        return value


def private_copy(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """A copy of everything that can change in place; what was one object inside the value stays one object."""
    kind = type(value)
    if kind in SCALARS:
        return value
    memo = {} if memo is None else memo
    known = memo.get(id(value))
    if known is not None:
        return known
    if kind is list:
        memo[id(value)] = items = list[Any]()
        items.extend(private_copy(part, memo) for part in value)
        return items
    if kind is dict:
        memo[id(value)] = record = dict[Any, Any]()
        record.update((key, private_copy(part, memo)) for key, part in value.items())
        return record
    return copy.deepcopy(value, memo)


def _parts(values: tuple[Any, ...]) -> Iterator[Any]:
    """Every node of the trees, without recursion; endless for a list that holds itself, which `weigh` bounds."""
    stack: list[Iterator[Any]] = [iter(values)]
    while stack:
        for part in stack[-1]:
            yield part
            if type(part) not in SCALARS:
                stack.append(_inside(part))
                break
        else:
            stack.pop()


def _inside(value: Any) -> Iterator[Any]:
    kind = type(value)
    if kind is dict:
        return (part for entry in value.items() for part in entry)
    if kind in COLLECTIONS:
        return iter(value)
    if attrs.has(kind):
        return (getattr(value, field.name) for field in attrs.fields(kind))
    return iter(())


def _record_key(key: Any) -> str:
    if type(key) is not str:
        raise Fault(f"the names in a record are texts, not {shown(key)}: write str(...) around it")
    return key
