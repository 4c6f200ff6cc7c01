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
    """The store's time as Trio's time since ``start``; under a ``MockClock``, days pass in no time.

    Give it to ``open_engine(clock=...)``, and to a store that you make yourself.  ``mock_clock`` None: the clock of
    the run that it is used in.  While a thread of ours runs, an autojumping clock is held: Trio does not see that
    somebody still works, and would let the time of a commit be thirty virtual seconds.
    """

    def __init__(
        self, mock_clock: MockClock | None = None, *, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    ) -> None:
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

    def jump(self, seconds: float) -> None:
        """Let that much time pass at once; what is due meanwhile happens after it, late.

        Raises ``RuntimeError`` where the run has no ``MockClock``.
        """
        mock = self._mock_clock()
        if mock is None:
            raise RuntimeError("only virtual time can jump: run under trio.testing.MockClock")
        mock.jump(seconds)

    @contextmanager
    def held(self) -> Iterator[None]:
        """No virtual time passes by itself inside this block."""
        mock = self._mock_clock()
        if mock is None:
            yield
            return
        if self._holders == 0:
            self._threshold = mock.autojump_threshold
            mock.autojump_threshold = math.inf
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if self._holders == 0:
                mock.autojump_threshold = self._threshold

    def _mock_clock(self) -> MockClock | None:
        if self._mock is None:
            running = trio.lowlevel.current_clock()
            self._mock = running if isinstance(running, MockClock) else None
        return self._mock
