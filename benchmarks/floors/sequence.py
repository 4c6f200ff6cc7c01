"""The floor of `sequence`: a nursery for each instance, its owner, a task and a send for each activity."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import trio


@dataclass(slots=True)
class Work:
    """What a handler gets."""

    inputs: dict[str, Any]


class Instance:
    """One run: the owner keeps the variables, the activities send it their outputs."""

    def __init__(self, handler: Callable[[Any], Any], tasks: int, variables: dict[str, Any]) -> None:
        self.handler = handler
        self.is_async = inspect.iscoroutinefunction(handler)
        self.tasks = tasks
        self.variables = variables
        self.ended = trio.Event()

    async def own(self) -> None:
        """Run the activities one after the other."""
        send, receive = trio.open_memory_channel[dict[str, Any]](1)
        async with trio.open_nursery() as nursery:
            for _ in range(self.tasks):
                nursery.start_soon(self.execute, send)
                self.variables.update(await receive.receive())
        self.ended.set()

    async def execute(self, send: trio.MemorySendChannel[dict[str, Any]]) -> None:
        """Execute one activity and report."""
        outputs = self.handler(Work(self.variables))
        await send.send(await outputs if self.is_async else outputs)

    async def wait(self) -> dict[str, Any]:
        """The variables at the end."""
        await self.ended.wait()
        return self.variables


def start(nursery: trio.Nursery, handler: Callable[[Any], Any], tasks: int, variables: dict[str, Any]) -> Instance:
    """Start an instance in the program's nursery."""
    instance = Instance(handler, tasks, variables)
    nursery.start_soon(instance.own)
    return instance
