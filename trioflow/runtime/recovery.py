"""Recovery: what an engine takes up again when it opens, and what it reports about it."""

from __future__ import annotations

from collections import Counter

import trio

from trioflow.errors import StoreError
from trioflow.runtime.acts import Act
from trioflow.runtime.shell import LOGGER, Shell

__all__ = ["Recovery", "RecoveryReport"]

KEPT = 100
"""How many instances of each outcome are named; the others are counted."""
PAGE = 100
POLL_SECONDS = 30.0


class RecoveryReport:
    """What became of the instances that were to be loaded: counts, and the first hundred of each kind with reasons."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, dict[str, str]] = {}

    def add(self, kind: str, instance_id: str, reason: str = "") -> None:
        """Note one outcome: ``resumed``, ``drifted``, ``unknown definition``, ``failed`` or ``quarantined``."""
        self.counts[kind] += 1
        named = self.first.setdefault(kind, {})
        if len(named) < KEPT:
            named[instance_id] = reason

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()))
        return f"<RecoveryReport {counts or 'nothing to resume'}>"


class Recovery:
    """Takes up what an earlier incarnation of this engine left, and repeats looks that a notification missed."""

    def __init__(self, shell: Shell, report: RecoveryReport) -> None:
        self._shell = shell
        self._report = report
        self._wanted = trio.Event()
        self._everywhere = False

    def look(self) -> None:
        """Something may have been assigned to an instance that nobody holds: look now, not at the next poll."""
        self._wanted.set()

    def look_everywhere(self) -> None:
        """What was sent to whom is not known (an answer was lost): look for the instances that are here too."""
        self._everywhere = True
        self._wanted.set()

    async def run(self) -> None:
        """Take up the orphans and poll, for ever: a store that did not answer is asked again."""
        while True:
            await self._take_up_orphans()
            await self._poll()
            with trio.move_on_after(POLL_SECONDS):
                await self._wanted.wait()
            self._wanted = trio.Event()
            await trio.lowlevel.checkpoint()

    async def _take_up_orphans(self) -> None:
        after = ""
        try:
            while page := await self._shell.store.orphans(self._shell.owner, after=after, limit=PAGE):
                for instance_id in page:
                    await self._shell.residents.wait_for_room()
                    self._shell.residents.deliver(instance_id, Act())
                after = page[-1]
        except StoreError as error:
            LOGGER.error("recovery could not list what was left: %s", error)
        if after:
            LOGGER.info("recovery: %r", self._report)

    async def _poll(self) -> None:
        """Deliveries whose instance nobody holds, and messages whose time is over."""
        try:
            after = 0
            while page := await self._shell.store.undelivered(after=after, limit=PAGE):
                self._shell.residents.deliver_all(page)
                after = page[-1].id
            if self._everywhere:
                self._everywhere = False
                for host in self._shell.residents.hosts():
                    self._shell.residents.deliver_all(await self._shell.store.deliveries(host.instance_id))
            await self._shell.store.expire()
        except StoreError as error:
            LOGGER.error("the store does not tell its deliveries: %s", error)
        for host in self._shell.residents.hosts():
            for node in host.tasks.shielding():
                LOGGER.warning(
                    "instance %s: the step at %s was cancelled and has not ended yet", host.instance_id, node
                )
