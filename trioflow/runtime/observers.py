"""Facts to whoever observes: one bounded channel per subscriber, which never slows an instance."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime

import trio

from trioflow.errors import EngineClosed
from trioflow.facts import Fact, RawFact

__all__ = ["Observation", "Observers"]


class Observation:
    """One subscriber's stream of facts: ``async for fact in observation``.

    ``lost`` counts the facts that were dropped because the subscriber was too slow.
    """

    def __init__(self, channel: trio.MemoryReceiveChannel[Fact]) -> None:
        self._channel = channel
        self.lost = 0

    def __aiter__(self) -> Observation:
        return self

    async def __anext__(self) -> Fact:
        try:
            return await self._channel.receive()
        except trio.EndOfChannel:
            raise StopAsyncIteration from None


class Observers:
    """The subscribers of one engine."""

    def __init__(self) -> None:
        self._subscribers: dict[Observation, trio.MemorySendChannel[Fact]] = {}
        self._is_closed = False

    def __bool__(self) -> bool:
        return bool(self._subscribers)

    @asynccontextmanager
    async def subscribe(self, *, buffer: int) -> AsyncIterator[Observation]:
        """A subscriber that may lag ``buffer`` facts behind; it is subscribed when the block is entered."""
        if self._is_closed:
            raise EngineClosed("the engine is closed: there is nothing to observe any more")
        send, receive = trio.open_memory_channel[Fact](buffer)
        observation = Observation(receive)
        self._subscribers[observation] = send
        try:
            yield observation
        finally:
            self._subscribers.pop(observation, None)
            send.close()
            receive.close()

    def publish(self, instance_id: str, at: datetime, facts: Iterable[RawFact]) -> None:
        """Tell all subscribers; only called where there is one."""
        for kind, node_id, track_id, details in facts:
            fact = Fact(kind=kind, instance_id=instance_id, at=at, node_id=node_id, track_id=track_id, details=details)
            for observation, channel in self._subscribers.items():
                try:
                    channel.send_nowait(fact)
                except trio.WouldBlock:
                    observation.lost += 1

    def close(self) -> None:
        """No more facts: every subscriber's iteration ends after what is buffered."""
        self._is_closed = True
        for channel in self._subscribers.values():
            channel.close()
        self._subscribers.clear()
