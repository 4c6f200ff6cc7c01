"""Ordered containers: what an index of a database is, in memory.

A list of short sorted lists: finding a place is two bisections, inserting moves one short list, and an item costs
one pointer.  There is no node object, so a million parked timers stay small.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["Lines", "Ordered"]

_SPLIT = 512
"""A list that grows to twice this is split in two."""

T = TypeVar("T", bound=Any)
"""Items: hashable values with an order of their own, no two of them equal (`Any`: typing has no such bound)."""


class Ordered(Generic[T]):
    """A sorted set.  ``add`` and ``discard`` are O(log n), ``first`` is O(1), reading starts anywhere.

    Whoever reads it may not change it meanwhile.
    """

    __slots__ = ("_chunks", "_last")

    def __init__(self) -> None:
        self._chunks: list[list[T]] = []
        self._last: list[T] = []  # of each chunk, so that the chunk of an item is one bisection

    def add(self, item: T) -> None:
        """Put an item in; it must not be there yet."""
        chunks, last = self._chunks, self._last
        if not chunks:
            chunks.append([item])
            last.append(item)
            return
        place = bisect_left(last, item)
        if place == len(last):
            place -= 1
            chunks[place].append(item)
            last[place] = item
        else:
            insort(chunks[place], item)
        if len(chunks[place]) >= 2 * _SPLIT:
            self._split(place)

    def _split(self, place: int) -> None:
        chunk = self._chunks[place]
        self._chunks.insert(place + 1, chunk[_SPLIT:])
        del chunk[_SPLIT:]
        self._last.insert(place, chunk[-1])

    def discard(self, item: T) -> None:
        """Take an item out, if it is there."""
        place = bisect_left(self._last, item)
        if place == len(self._last):
            return
        chunk = self._chunks[place]
        index = bisect_left(chunk, item)
        if chunk[index] != item:
            return
        del chunk[index]
        if not chunk:
            del self._chunks[place], self._last[place]
        elif index == len(chunk):
            self._last[place] = chunk[-1]

    def first(self) -> T:
        """The smallest item; there must be one."""
        return self._chunks[0][0]

    def after(self, item: T | None) -> Iterator[T]:
        """Those behind ``item``, in order; None: all."""
        if item is None:
            for chunk in self._chunks:
                yield from chunk
            return
        place = bisect_right(self._last, item)
        if place == len(self._last):
            return
        chunk = self._chunks[place]
        yield from chunk[bisect_right(chunk, item) :]
        for chunk in self._chunks[place + 1 :]:
            yield from chunk

    def __bool__(self) -> bool:
        return bool(self._chunks)


class Lines(Generic[T]):
    """Sorted sets by key, as an index over columns that are not unique; a set of one is the item itself."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[Hashable, T | Ordered[T]] = {}

    def add(self, key: Hashable, item: T) -> None:
        """Put an item into the line of ``key``."""
        line = self._lines.setdefault(key, item)
        if line is item:
            return
        if not isinstance(line, Ordered):
            first = line
            line = self._lines[key] = Ordered()
            line.add(first)
        line.add(item)

    def discard(self, key: Hashable, item: T) -> None:
        """Take an item out of the line of ``key``, if it is there."""
        line = self._lines.get(key)
        if isinstance(line, Ordered):
            line.discard(item)
            if not line:
                del self._lines[key]
        elif line is not None and line == item:
            del self._lines[key]

    def after(self, key: Hashable, item: T | None = None) -> Iterator[T]:
        """Those in the line of ``key`` behind ``item``, in order; None: all."""
        line = self._lines.get(key)
        if isinstance(line, Ordered):
            yield from line.after(item)
        elif line is not None and (item is None or line > item):
            yield line
