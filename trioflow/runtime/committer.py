"""The committer: pulls all dirty instances into one transaction, and answers each.

While a commit is on its way, instances go on and mark themselves dirty; when it is answered, all of them are captured
together.  So the number of commits follows the store's speed, not the number of steps.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

from trioflow.checkpoint.records import Item
from trioflow.errors import StoreError
from trioflow.runtime.shell import LOGGER, Shell
from trioflow.stores.port import CommitAnswer

if TYPE_CHECKING:
    from trioflow.runtime.host import Host

__all__ = ["Committer"]

MAX_ITEMS = 1_000
MAX_BYTES = 8_000_000
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0


class Committer:
    """One task; at most one commit is in flight.  ``commits`` and ``items`` count what was stored."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._dirty: deque[Host] = deque()
        self._wanted = trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        self.commits = 0
        self.items = 0

    def enlist(self, host: Host) -> None:
        """The host has something to store; it is captured with the next commit."""
        self._dirty.append(host)
        self._idle = trio.Event() if self._idle.is_set() else self._idle
        self._wanted.set()

    async def run(self) -> None:
        """Commit for ever."""
        while True:
            await self._wanted.wait()
            batch = self._capture()
            if not batch:
                self._wait_for_more()
                await trio.lowlevel.checkpoint()
                continue
            answer = await self._commit([item for _, item in batch])
            self.commits += 1
            self.items += len(batch)
            for (host, item), outcome in zip(batch, answer.outcomes, strict=True):
                host.committed(item, outcome)
            self._wait_for_more()

    async def drained(self) -> None:
        """Wait until nothing is dirty and no commit is in flight."""
        await self._idle.wait()

    def _wait_for_more(self) -> None:
        if not self._dirty:
            self._wanted = trio.Event()
            self._idle.set()

    def _capture(self) -> list[tuple[Host, Item]]:
        batch: list[tuple[Host, Item]] = []
        size = 0
        passed_over: list[Host] = []
        while self._dirty and len(batch) < MAX_ITEMS and size < MAX_BYTES:
            host = self._dirty.popleft()
            item = host.capture()
            if item is not None:
                batch.append((host, item))
                size += len(item.piece or b"")
            elif host.state.is_pending:
                passed_over.append(host)
        self._dirty.extend(passed_over)
        return batch

    async def _commit(self, items: list[Item]) -> CommitAnswer:
        """Send until it is answered: the same bytes under the same commit ids, so that nothing is done twice."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._shell.store.commit(items, self._shell.owner)
            except StoreError as error:
                LOGGER.error("the store does not commit (%s); trying again in %.2f s", error, pause)
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
