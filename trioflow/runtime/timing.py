"""The timer task: one task and one heap for all deadlines of an engine.

The heap is filled from the store a window at a time, so that a million parked timers cost nothing here.  What
an instance arms while it runs comes in directly, if it is due before the window ends.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
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
AFTER_AN_ERROR = 1.0
"""Seconds until a store that did not answer is asked again."""


class Timers:
    """Brings ``TimerDue`` to the instances, in the order of their deadlines.

    The heap holds every timer that is due before ``_horizon``; what is due later stays in the store.  ``_unread``:
    the store is to be read on when the horizon is reached, behind ``_cursor``.
    """

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._heap: list[tuple[datetime, str, int]] = []
        self._queued: set[tuple[datetime, str, int]] = set()
        self._horizon: datetime | None = None
        self._cursor: TimerCursor | None = None
        self._unread = False
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
        look_at = -math.inf
        while True:
            if trio.current_time() >= look_at:
                look_at = trio.current_time() + LONGEST_SLEEP
                self._cursor = None
                await self._fill()
            elif self._unread and self._until(self._horizon) <= 0:
                await self._fill()
            await self._fire()
            await self._sleep(look_at)

    async def _fill(self) -> None:
        """Read on: all that is due before the longest sleep is over, but not more than a window ahead of its time."""
        until = self._shell.store.now() + timedelta(seconds=LONGEST_SLEEP)
        # Before the read: what is stored while the store is being read may not be in the answer, and comes in directly.
        self._horizon, self._unread = until, False
        try:
            while len(rows := await self._shell.store.timers(after=self._cursor, until=until, limit=WINDOW)) == WINDOW:
                self._push_all(rows)
                if self._until(rows[-1].due) > 0:
                    self._horizon, self._unread = rows[-1].due, True
                    return
                await self._fire()
            self._push_all(rows)
        except StoreError as error:
            LOGGER.error("the store does not tell its timers (%s); asking again", error)
            self._horizon, self._unread = self._shell.store.now() + timedelta(seconds=AFTER_AN_ERROR), True

    def _push_all(self, rows: Sequence[TimerRow]) -> None:
        for row in rows:
            self._push(row)
        if rows:
            self._cursor = TimerCursor(rows[-1].due, rows[-1].instance_id, rows[-1].wait_id)

    def _push(self, row: TimerRow) -> None:
        entry = (row.due, row.instance_id, row.wait_id)
        if entry not in self._queued:
            self._queued.add(entry)
            heapq.heappush(self._heap, entry)
            if self._heap[0] is entry:
                self._wake.set()

    async def _fire(self) -> None:
        """Bring what is due, in the order of its time; not more at once than can be on their way in."""
        residents = self._shell.residents
        while self._heap and self._until(self._heap[0][0]) <= 0:
            if residents.is_crowded:
                await residents.wait_for_room()
                continue
            entry = heapq.heappop(self._heap)
            self._queued.discard(entry)
            due, instance_id, wait_id = entry
            residents.deliver(instance_id, Act(TimerDue(wait_id, due)))

    async def _sleep(self, at_most_until: float) -> None:
        seconds = at_most_until - trio.current_time()
        if self._heap:
            seconds = min(seconds, self._until(self._heap[0][0]))
        if self._unread:
            seconds = min(seconds, self._until(self._horizon))
        with trio.move_on_after(max(0.0, seconds)):
            await self._wake.wait()
        self._wake = trio.Event()
        await trio.lowlevel.checkpoint()

    def _until(self, moment: datetime | None) -> float:
        """Seconds of the store's time that are left until then."""
        return 0.0 if moment is None else (moment - self._shell.store.now()).total_seconds()
