"""Hearing what the engine does: facts come to the screen, and whoever waits for a change is woken."""

from __future__ import annotations

import trio

from trioflow.cli.narration import Narrator
from trioflow.runtime.observers import Observation

__all__ = ["Listener"]


class Listener:
    """Hears the facts of one instance; ``narrator`` None: nothing is shown."""

    def __init__(self, narrator: Narrator | None) -> None:
        self.narrator = narrator
        self.lost = 0
        """Facts that were not shown, because the screen was too slow."""
        self._heard = 0
        self._change = trio.Event()

    async def listen(self, facts: Observation, instance_id: str) -> None:
        """Show the facts of the instance, as long as they come."""
        async for fact in facts:
            self._heard += 1
            self.lost = facts.lost
            if fact.instance_id != instance_id:
                continue
            self._change.set()
            if self.narrator is not None:
                self.narrator.tell(fact)

    def next_change(self) -> trio.Event:
        """An event that is set at the next fact of the instance."""
        self._change = trio.Event()
        return self._change

    async def caught_up(self) -> None:
        """Wait until what has happened so far has been shown, so that no question stands above what led to it.

        A listener that has facts waiting takes one in every round of Trio's scheduler, but who comes first in a round
        is chance: between two looks that are two rounds apart it has had its turn, and this ends if it took none.
        """
        heard = -1
        while heard != self._heard:
            heard = self._heard
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
