"""The floor of `timers`: a heap of deadlines, what is parked as bytes of JSON, one task that fires."""

from __future__ import annotations

import heapq
from typing import Any

import orjson
import trio


class Timers:
    """Records by id; those that wait are in the heap, those that have ended say so."""

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.ended = 0
        self._heap: list[tuple[float, str]] = []
        self._earlier = trio.Event()

    async def park(self, record: dict[str, Any], deadline: float) -> None:
        """Keep the record until its deadline, in seconds of Trio's clock."""
        self.records[record["instance_id"]] = _packed(record)
        heapq.heappush(self._heap, (deadline, record["instance_id"]))
        if self._heap[0][0] == deadline:
            self._earlier.set()
        await trio.lowlevel.checkpoint()

    async def run(self) -> None:
        """Fire what is due, for ever."""
        while True:
            self._fire(trio.current_time())
            self._earlier = trio.Event()
            with trio.move_on_at(self._heap[0][0]) if self._heap else trio.CancelScope():
                await self._earlier.wait()

    def _fire(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            _, key = heapq.heappop(self._heap)
            record = orjson.loads(self.records[key])
            record |= {"status": "completed", "updated": now, "token": None}
            self.records[key] = _packed(record)
            self.ended += 1


def _packed(record: dict[str, Any]) -> bytes:
    """The record as bytes of its own: those of orjson keep a buffer of 4 kB."""
    return bytes(memoryview(orjson.dumps(record)))
