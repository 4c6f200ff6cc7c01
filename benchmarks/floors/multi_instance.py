"""The floor of `multi-instance`: a nursery for the instance, a task and a send for each item, so many at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import trio


@dataclass(slots=True)
class Work:
    """What a handler gets."""

    inputs: dict[str, Any] = field(default_factory=dict)


class Instance:
    """One run: the owner starts the next item whenever one has ended."""

    def __init__(self, handler: Callable[[Any], Awaitable[Any]], items: Sequence[Any], together: int) -> None:
        self.handler = handler
        self.items = items
        self.together = together
        self.done = 0
        self.ended = trio.Event()

    async def own(self) -> None:
        """Keep so many tasks at work until every item is done."""
        send, receive = trio.open_memory_channel[Any](self.together)
        async with trio.open_nursery() as nursery:
            waiting = iter(self.items)
            for item in islice(waiting, self.together):
                nursery.start_soon(self.execute, item, send)
            while self.done < len(self.items):
                await receive.receive()
                self.done += 1
                for item in islice(waiting, 1):
                    nursery.start_soon(self.execute, item, send)
        self.ended.set()

    async def execute(self, item: Any, send: trio.MemorySendChannel[Any]) -> None:
        """Execute one item and report."""
        await send.send(await self.handler(Work({"item": item})))

    async def wait(self) -> int:
        """How many items were done."""
        await self.ended.wait()
        return self.done


def start(nursery: trio.Nursery, handler: Callable[..., Any], items: Sequence[Any], together: int) -> Instance:
    """Start an instance in the program's nursery."""
    instance = Instance(handler, items, together)
    nursery.start_soon(instance.own)
    return instance
