"""The store's time: the only clock there is."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock"]

_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""A clock that runs on while the machine sleeps, where there is one."""


class Clock(Protocol):
    """Tells the store's time; replaceable, so that tests have virtual time."""

    def now(self) -> datetime:
        """The present moment, aware, in UTC; never runs back."""

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Entered around work in a thread: virtual time must not jump while one of ours runs."""


class SystemClock:
    """The wall clock as it was when this was made, kept as an offset to a clock that no one sets."""

    def __init__(self) -> None:
        self._origin = datetime.now(UTC).timestamp() - time.clock_gettime(_TICKS)

    def now(self) -> datetime:
        """The present moment; a step of the wall clock is not seen."""
        return datetime.fromtimestamp(self._origin + time.clock_gettime(_TICKS), UTC)

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Real time is not held by anything."""
        return contextlib.nullcontext()
