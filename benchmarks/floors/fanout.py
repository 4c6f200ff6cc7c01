"""The floor of `fanout`: a nursery for the instance, a task and a send for each branch, an owner that counts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import trio


@dataclass(slots=True)
class Work:
    """What a handler gets."""

    inputs: dict[str, Any] = field(default_factory=dict)


class Instance:
    """One run: the owner waits for every branch."""

    def __init__(self, handler: Callable[[Any], Awaitable[Any]], branches: int) -> None:
        self.handler = handler
        self.branches = branches
        self.arrived = 0
        self.ended = trio.Event()

    async def own(self) -> None:
        """Start all branches and count those that arrive."""
        send, receive = trio.open_memory_channel[Any](self.branches)
        async with trio.open_nursery() as nursery:
            for _ in range(self.branches):
                nursery.start_soon(self.execute, send)
            while self.arrived < self.branches:
                await receive.receive()
                self.arrived += 1
        self.ended.set()

    async def execute(self, send: trio.MemorySendChannel[Any]) -> None:
        """Execute one branch and report."""
        await send.send(await self.handler(Work()))

    async def wait(self) -> int:
        """How many branches arrived."""
        await self.ended.wait()
        return self.arrived


def start(nursery: trio.Nursery, handler: Callable[[Any], Awaitable[Any]], branches: int) -> Instance:
    """Start an instance in the program's nursery."""
    instance = Instance(handler, branches)
    nursery.start_soon(instance.own)
    return instance
