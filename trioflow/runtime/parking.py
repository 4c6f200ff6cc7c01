"""A place where one task sleeps until another wakes it: what an event costs, without its lot and its queue."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import trio

__all__ = ["Berth"]


class Berth:
    """For one sleeper at a time.  A wake that comes while nobody sleeps is kept for the next ``sleep``."""

    __slots__ = ("_called", "_task")

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = None
        self._called = False

    def wake(self) -> None:
        """Wake the sleeper, or the next one at once."""
        task = self._task
        if task is None:
            self._called = True
            return
        self._task = None
        trio.lowlevel.reschedule(task)

    def sleep(self) -> Awaitable[Any]:
        """``await berth.sleep()`` sleeps until woken; a checkpoint."""
        if self._called:
            self._called = False
            return trio.lowlevel.checkpoint()  # noqa: ASYNC105 - the caller awaits it
        self._task = trio.lowlevel.current_task()
        return trio.lowlevel.wait_task_rescheduled(self._abort)  # noqa: ASYNC105 - the caller awaits it

    def _abort(self, _: Any) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED
