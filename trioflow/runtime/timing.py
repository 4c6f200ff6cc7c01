"""The timer task: one task and one heap for all deadlines of an engine.

The heap is filled from the store a window at a time, so that a million parked timers cost nothing here.  What
an instance arms while it runs comes in directly, if it is due before the window ends.
"""

from __future__ import annotations

import heapq
import math
from datetime import datetime, timedelta

import trio

from trioflow.checkpoint.records import Item, TimerRow
from trioflow.errors import StoreError
from trioflow.machine.events import TimerDue
from trioflow.runtime.acts import Act
from trioflow.runtime.shell import LOGGER, Shell
from trioflow.stores.port import TimerCursor

__all__ = ["Timers"]

WINDOW = 1_000
LONGEST_SLEEP = 30.0
"""Seconds: the store is looked at this often, whatever the heap says."""
MAX_IN_FLIGHT = 1_000
"""Due timers whose instances are on their way; the next ones wait."""


class Timers:
    """Brings ``TimerDue`` to the instances, in the order of their deadlines.

    The heap holds every timer that is due before ``_horizon``; what is due later stays in the store.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._heap: list[tuple[datetime, str, int]] = []
        self._queued: set[tuple[datetime, str, int]] = set()
        self._horizon: datetime | None = None
        self._wake = trio.Event()

    def stored(self, item: Item) -> None:
        """An item is stored: its new timers may be due before the window ends."""
        for row in item.upserts:
            if type(row) is TimerRow and (self._horizon is None or row.due <= self._horizon):
                self._push(row)

    def push(self, row: TimerRow) -> None:
        """A timer that the store has entered by itself (another attempt to load an instance)."""
        if self._horizon is None or row.due <= self._horizon:
            self._push(row)

    async def run(self) -> None:
        """Fire what is due, for ever; a store that does not answer is asked again."""
        looked = -math.inf
        while True:
            now = self._shell.store.now()
            if trio.current_time() - looked >= LONGEST_SLEEP or self._needs_window(now):
                looked = trio.current_time()
                await self._fill(now)
            self._fire(self._shell.store.now())
            await self._sleep(looked + LONGEST_SLEEP)

    def _needs_window(self, now: datetime) -> bool:
        return self._horizon is not None and not self._heap and self._horizon <= now

    async def _fill(self, now: datetime) -> None:
        """Read the next window: all that is due until the longest sleep is over, at most ``WINDOW`` at once."""
        until = now + timedelta(seconds=LONGEST_SLEEP)
        after: TimerCursor | None = None
        try:
            while True:
                rows = await self._shell.store.timers(after=after, until=until, limit=WINDOW)
                for row in rows:
                    self._push(row)
                if len(rows) < WINDOW:
                    self._horizon = until
                    return
                after = TimerCursor(rows[-1].due, rows[-1].instance_id, rows[-1].wait_id)
                self._horizon = rows[-1].due
                self._fire(self._shell.store.now())
                while len(self._shell.residents) > MAX_IN_FLIGHT or len(self._heap) > WINDOW:
                    await trio.sleep(0.01)
                    self._fire(self._shell.store.now())
        except StoreError as error:
            LOGGER.error("the store does not tell its timers (%s); asking again", error)

    def _push(self, row: TimerRow) -> None:
        entry = (row.due, row.instance_id, row.wait_id)
        if entry not in self._queued:
            self._queued.add(entry)
            heapq.heappush(self._heap, entry)
            if self._heap[0] is entry:
                self._wake.set()

    def _fire(self, now: datetime) -> None:
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            self._queued.discard(entry)
            due, instance_id, wait_id = entry
            self._shell.residents.deliver(instance_id, Act(TimerDue(wait_id, due)))

    async def _sleep(self, at_most_until: float) -> None:
        seconds = max(0.0, at_most_until - trio.current_time())
        if self._heap:
            until_first = (self._heap[0][0] - self._shell.store.now()).total_seconds()
            seconds = min(seconds, max(0.0, until_first))
        with trio.move_on_after(seconds):
            await self._wake.wait()
        self._wake = trio.Event()
        await trio.lowlevel.checkpoint()
