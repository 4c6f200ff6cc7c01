"""Virtual time: a store clock that follows Trio's own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import trio
from trio.testing import MockClock

__all__ = ["VirtualClock"]


class VirtualClock:
    """The store's time as Trio's time since ``start``; with a ``MockClock``, days pass in no time.

    While a thread of ours runs, an autojumping clock is held: Trio does not see that somebody still works, and
    would let the time of a commit be thirty virtual seconds.
    """

    def __init__(self, mock_clock: MockClock | None = None, *, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._mock = mock_clock
        self._start = start
        self._origin: float | None = None
        self._holders = 0
        self._threshold = math.inf

    def now(self) -> datetime:
        """``start`` plus what has passed in Trio's time since this was first asked."""
        ticks = trio.current_time()
        if self._origin is None:
            self._origin = ticks
        return self._start + timedelta(seconds=ticks - self._origin)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No virtual time passes by itself inside this block."""
        if self._mock is None:
            yield
            return
        if self._holders == 0:
            self._threshold = self._mock.autojump_threshold
            self._mock.autojump_threshold = math.inf
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if self._holders == 0:
                self._mock.autojump_threshold = self._threshold
