"""``MemoryStore``: the port over groups in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

import trio
from attrs import define, field

from trioflow.checkpoint.records import (
    Definition,
    Delivery,
    IncidentRow,
    InstanceHead,
    Item,
    Message,
    TaskRow,
    TimerRow,
)
from trioflow.errors import EngineInUse, InvalidRequest, StoreError
from trioflow.facts import Status
from trioflow.stores.clock import Clock, SystemClock
from trioflow.stores.memory._group import Group
from trioflow.stores.port import CommitAnswer, InstanceFilter, Loaded, Owner, Sent, TaskFilter, TimerCursor

__all__ = ["MemoryStore"]


@define(eq=False)
class _Shared:
    """What all handles over the same data share; ``locks`` holds (group, engine id)."""

    groups: dict[str, Group] = field(factory=dict)
    locks: set[tuple[str, str]] = field(factory=set)


class MemoryStore:
    """A store in memory: the port's reference.

    ``recording=False``: volatile, every item counts as stored at once (``commit_now``).  ``recording=True``: the
    runtime treats it as a durable store and goes through ``commit``; what one engine left, the next finds when it
    opens the same object.  The data lives as long as the object and those that ``another`` made of it.  Every
    method but ``commit`` does its work in one step after a checkpoint: cancelled, it has done nothing.
    """

    def __init__(self, *, clock: Clock | None = None, recording: bool = False) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._recording = recording
        self._shared = _Shared()
        self._lock: tuple[str, str] | None = None
        self._group: Group | None = None

    def another(self) -> MemoryStore:
        """A second handle over the same data, as another process would have: for a second engine, or a reader."""
        other = MemoryStore(clock=self._clock, recording=self._recording)
        other._shared = self._shared
        return other

    @property
    def volatile(self) -> bool:
        """Whether nothing survives: without ``recording``."""
        return not self._recording

    def now(self) -> datetime:
        """The store's time."""
        return self._clock.now()

    @property
    def _data(self) -> Group:
        if self._group is None:
            raise StoreError("the memory store is not open: open it with a group and an engine id first")
        return self._group

    # ---------------------------------------------------------------- engines

    async def open(
        self, *, group: str, engine_id: str, create_group: bool = True, handler_names: Sequence[str] = ()
    ) -> Owner:
        """Take the lock of (group, engine id) and begin a new incarnation."""
        await trio.lowlevel.checkpoint()
        lock = (group, engine_id)
        if lock in self._shared.locks:
            raise EngineInUse(
                f"engine {engine_id!r} of group {group!r} is running over this memory store, in this process"
                f" (pid {os.getpid()}): close it, or take another engine id"
            )
        if self._lock is not None:
            raise InvalidRequest(
                f"this memory store is open for engine {self._lock[1]!r} of group {self._lock[0]!r}:"
                " take a handle of its own for each engine, with another()"
            )
        if group not in self._shared.groups and not create_group:
            raise StoreError(f"the memory store has no group {group!r}; with create_group=True it is created")
        self._group = self._shared.groups.setdefault(group, Group())
        self._shared.locks.add(lock)
        self._lock = lock
        return self._group.registry.enrol(engine_id, handler_names)

    async def open_reader(self, *, group: str) -> None:
        """Look into a group without being an engine."""
        await trio.lowlevel.checkpoint()
        if group not in self._shared.groups:
            raise StoreError(f"the memory store has no group {group!r}")
        self._group = self._shared.groups[group]

    async def close(self) -> None:
        """Give the lock up; the data stays, and the store can be opened again."""
        self.abandon()
        self._group = None
        await trio.lowlevel.checkpoint()

    def abandon(self) -> None:
        """Drop the lock as the death of the process would: for tests that crash an engine and open another."""
        if self._lock is not None:
            self._shared.locks.discard(self._lock)
            self._lock = None

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()  # noqa: ASYNC102 - it shields itself

    # ---------------------------------------------------------------- instances

    def commit_now(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Store a batch at once; refused where ``recording`` asks for commits."""
        if self._recording:
            raise InvalidRequest("commit_now is for a volatile store; this one is recording: use commit")
        return self._data.commit(batch, owner, self._clock)

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Store a batch, then let others run.  Cancelling comes too late: the batch is stored, and answered."""
        answer = self._data.commit(batch, owner, self._clock)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return answer

    async def claim(self, instance_id: str, owner: Owner) -> Loaded | None:
        """Take and load."""
        await trio.lowlevel.checkpoint()
        return self._data.claim(instance_id, owner)

    async def release(
        self, instance_id: str, owner: Owner, *, failure: str = "", retry_at: datetime | None = None
    ) -> None:
        """Give up what could not be loaded; nothing happens unless ``owner`` holds it."""
        await trio.lowlevel.checkpoint()
        self._data.release(instance_id, owner, failure, retry_at)

    async def mark_drift(self, instance_id: str, owner: Owner, reason: str) -> None:
        """Mark as drifted; nothing happens unless ``owner`` holds it."""
        await trio.lowlevel.checkpoint()
        self._data.mark_drift(instance_id, owner, reason)

    async def load(self, instance_id: str) -> Loaded | None:
        """Read head and pieces."""
        await trio.lowlevel.checkpoint()
        return self._data.load(instance_id)

    async def head(self, instance_id: str) -> InstanceHead | None:
        """Read the head."""
        await trio.lowlevel.checkpoint()
        return self._data.head(instance_id)

    async def instances(self, where: InstanceFilter, *, after: str = "", limit: int = 100) -> tuple[InstanceHead, ...]:
        """Heads in order of id.  A filter by process or status alone reads on until the page is full."""
        await trio.lowlevel.checkpoint()
        return self._data.instances(where, after, limit)

    async def orphans(self, owner: Owner, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """What earlier incarnations left."""
        await trio.lowlevel.checkpoint()
        return self._data.orphans(owner, after, limit)

    async def counts(self) -> dict[Status, int]:
        """How many of each status."""
        await trio.lowlevel.checkpoint()
        return self._data.counts()

    # ---------------------------------------------------------------- definitions

    async def deploy(self, definition: Definition) -> Definition:
        """Store a definition and mint its version."""
        await trio.lowlevel.checkpoint()
        return self._data.registry.deploy(definition)

    async def definition(self, key: str, version: int | None = None) -> Definition | None:
        """That version, or the latest."""
        await trio.lowlevel.checkpoint()
        return self._data.registry.definition(key, version)

    async def definitions(self) -> tuple[Definition, ...]:
        """The latest of each key."""
        await trio.lowlevel.checkpoint()
        return self._data.registry.definitions()

    async def pins(self) -> dict[tuple[str, int], int]:
        """How many live instances of each version."""
        await trio.lowlevel.checkpoint()
        return self._data.pins()

    # ---------------------------------------------------------------- waits

    async def timers(self, *, after: TimerCursor | None, until: datetime, limit: int) -> tuple[TimerRow, ...]:
        """Timers behind the cursor; their deadlines are in UTC."""
        await trio.lowlevel.checkpoint()
        return self._data.waits.timers(after, until, limit)

    async def next_timer(self, *, after: TimerCursor | None) -> TimerCursor | None:
        """The first timer behind the cursor."""
        await trio.lowlevel.checkpoint()
        return self._data.waits.next_timer(after)

    async def tasks(
        self, where: TaskFilter, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> tuple[TaskRow, ...]:
        """User tasks."""
        await trio.lowlevel.checkpoint()
        return self._data.tasks(where, after, limit)

    async def task(self, instance_id: str, wait_id: int) -> TaskRow | None:
        """One user task."""
        await trio.lowlevel.checkpoint()
        return self._data.task(instance_id, wait_id)

    async def incidents(
        self,
        *,
        instance_id: str | None = None,
        state: str | None = "open",
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> tuple[IncidentRow, ...]:
        """Incidents."""
        await trio.lowlevel.checkpoint()
        return self._data.incidents(instance_id, state, after, limit)

    # ---------------------------------------------------------------- messages

    async def send(self, message: Message) -> Sent:
        """Store a message and look who waits for it."""
        await trio.lowlevel.checkpoint()
        return self._data.send(message, self._clock.now())

    async def broadcast(self, signal: Message) -> tuple[Delivery, ...]:
        """Store a signal for all who wait for it."""
        await trio.lowlevel.checkpoint()
        return self._data.broadcast(signal, self._clock.now())

    async def deliveries(self, instance_id: str) -> tuple[Delivery, ...]:
        """What is assigned to the instance."""
        await trio.lowlevel.checkpoint()
        return self._data.deliveries(instance_id)

    async def undelivered(self, *, after: int = 0, limit: int = 100) -> tuple[Delivery, ...]:
        """What is assigned to instances that nobody owns."""
        await trio.lowlevel.checkpoint()
        return self._data.undelivered(after, limit)

    async def expire(self) -> int:
        """Mark and forget what is past its time."""
        await trio.lowlevel.checkpoint()
        return self._data.post.expire(self._clock.now())
