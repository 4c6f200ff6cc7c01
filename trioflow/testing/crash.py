"""Crashes at chosen moments, within one process: does a program find everything again?

A ``CrashingStore`` stands between an engine and its store and lets the program die at its k-th commit: from then on
nothing reaches the store any more, and ``run_until_crash`` ends the engine.  What the store holds then is what a dead
process would have left, and the next engine over it has to go on from there::

    for number in itertools.count(1):
        store = CrashingStore(SQLiteStore(path), at=number, point=CrashPoint.AFTER_COMMIT)
        try:
            await run_until_crash(store, lambda: life(store))
        except SimulatedCrash:
            await life(SQLiteStore(path))  # the same engine id, the same handlers: it must come to the same end
        else:
            break  # it has fewer commits than that: every one of them was tried
"""

from __future__ import annotations

import enum
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import trio
from attrs import evolve

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
from trioflow.errors import InvalidRequest, StoreError
from trioflow.facts import Status
from trioflow.runtime.handlers import Handler
from trioflow.runtime.work import Work
from trioflow.stores.port import CommitAnswer, InstanceFilter, Loaded, Owner, Sent, Store, TaskFilter, TimerCursor

__all__ = ["CrashPoint", "CrashingStore", "SimulatedCrash", "run_until_crash"]

T = TypeVar("T")


class CrashPoint(enum.Enum):
    """Where in a commit something goes wrong (``docs/explanation/how-it-works.md``)."""

    BEFORE_COMMIT = "before commit"
    """The process dies, and nothing of the commit is stored."""
    AFTER_COMMIT = "after commit"
    """The commit is stored; the process dies before it hears that."""
    ACKNOWLEDGEMENT_LOST = "acknowledgement lost"
    """The commit is stored, its answer is lost (``StoreError``), and the process lives on."""
    BEFORE_EFFECTS = "before effects"
    """The commit is stored and answered; the process dies before anything that waited for it has begun."""


class SimulatedCrash(Exception):
    """The program died where its ``CrashingStore`` said."""


class _Forwarding:
    """The store port, passed on to another store while the process lives; afterwards every call waits for ever."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner

    async def _living(self) -> None:
        raise NotImplementedError

    @property
    def volatile(self) -> bool:
        return False

    def now(self) -> datetime:
        return self._inner.now()

    def commit_now(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        return self._inner.commit_now(batch, owner)

    # ---------------------------------------------------------------- engines

    async def open(
        self, *, group: str, engine_id: str, create_group: bool = True, handler_names: Sequence[str] = ()
    ) -> Owner:
        await self._living()
        return await self._inner.open(
            group=group, engine_id=engine_id, create_group=create_group, handler_names=handler_names
        )

    async def open_reader(self, *, group: str) -> None:
        await self._living()
        await self._inner.open_reader(group=group)

    async def close(self) -> None:
        """Threads and the liveness lock end here, as with the process; no port's ``close`` gives instances up."""
        await self._inner.close()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()  # noqa: ASYNC102 - it shields itself

    # ---------------------------------------------------------------- instances

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        await self._living()
        return await self._inner.commit(batch, owner)

    async def claim(self, instance_id: str, owner: Owner) -> Loaded | None:
        await self._living()
        return await self._inner.claim(instance_id, owner)

    async def release(
        self, instance_id: str, owner: Owner, *, failure: str = "", retry_at: datetime | None = None
    ) -> None:
        await self._living()
        await self._inner.release(instance_id, owner, failure=failure, retry_at=retry_at)

    async def mark_drift(self, instance_id: str, owner: Owner, reason: str) -> None:
        await self._living()
        await self._inner.mark_drift(instance_id, owner, reason)

    async def load(self, instance_id: str) -> Loaded | None:
        await self._living()
        return await self._inner.load(instance_id)

    async def head(self, instance_id: str) -> InstanceHead | None:
        await self._living()
        return await self._inner.head(instance_id)

    async def instances(self, where: InstanceFilter, *, after: str = "", limit: int = 100) -> tuple[InstanceHead, ...]:
        await self._living()
        return await self._inner.instances(where, after=after, limit=limit)

    async def orphans(self, owner: Owner, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        await self._living()
        return await self._inner.orphans(owner, after=after, limit=limit)

    async def counts(self) -> dict[Status, int]:
        await self._living()
        return await self._inner.counts()

    # ---------------------------------------------------------------- definitions

    async def deploy(self, definition: Definition) -> Definition:
        await self._living()
        return await self._inner.deploy(definition)

    async def definition(self, key: str, version: int | None = None) -> Definition | None:
        await self._living()
        return await self._inner.definition(key, version)

    async def definitions(self) -> tuple[Definition, ...]:
        await self._living()
        return await self._inner.definitions()

    async def pins(self) -> dict[tuple[str, int], int]:
        await self._living()
        return await self._inner.pins()

    # ---------------------------------------------------------------- waits

    async def timers(self, *, after: TimerCursor | None, until: datetime, limit: int) -> tuple[TimerRow, ...]:
        await self._living()
        return await self._inner.timers(after=after, until=until, limit=limit)

    async def next_timer(self, *, after: TimerCursor | None) -> TimerCursor | None:
        await self._living()
        return await self._inner.next_timer(after=after)

    async def tasks(
        self, where: TaskFilter, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> tuple[TaskRow, ...]:
        await self._living()
        return await self._inner.tasks(where, after=after, limit=limit)

    async def task(self, instance_id: str, wait_id: int) -> TaskRow | None:
        await self._living()
        return await self._inner.task(instance_id, wait_id)

    async def incidents(
        self,
        *,
        instance_id: str | None = None,
        state: str | None = "open",
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> tuple[IncidentRow, ...]:
        await self._living()
        return await self._inner.incidents(instance_id=instance_id, state=state, after=after, limit=limit)

    # ---------------------------------------------------------------- messages

    async def send(self, message: Message) -> Sent:
        await self._living()
        return await self._inner.send(message)

    async def broadcast(self, signal: Message) -> tuple[Delivery, ...]:
        await self._living()
        return await self._inner.broadcast(signal)

    async def deliveries(self, instance_id: str) -> tuple[Delivery, ...]:
        await self._living()
        return await self._inner.deliveries(instance_id)

    async def undelivered(self, *, after: int = 0, limit: int = 100) -> tuple[Delivery, ...]:
        await self._living()
        return await self._inner.undelivered(after=after, limit=limit)

    async def expire(self) -> int:
        await self._living()
        return await self._inner.expire()


class CrashingStore(_Forwarding):
    """A store that lets the program die at its ``at``-th commit (from 1; None: never), as ``point`` says.

    ``inner`` is a durable store that nobody has opened, and is used by this alone.  ``operation``: ``claim`` (an
    instance is taken up) and ``send`` (a message comes) are written by themselves, and may be where it dies instead.
    ``InvalidRequest`` for a volatile store: it has nothing to die at.
    """

    def __init__(
        self,
        inner: Store,
        *,
        at: int | None = None,
        point: CrashPoint = CrashPoint.BEFORE_COMMIT,
        operation: Literal["commit", "claim", "send"] = "commit",
    ) -> None:
        if inner.volatile:
            raise InvalidRequest(
                "a volatile store is gone with its process: crash a MemoryStore(recording=True) or a store on disk"
            )
        super().__init__(inner)
        self.at = at
        self.point = point
        self.operation = operation
        self._calls: Counter[str] = Counter()
        self._has_crashed = False
        self._dying = trio.CancelScope()

    @property
    def commits(self) -> int:
        """How many commits were begun, a repetition included."""
        return self._calls["commit"]

    @property
    def reached(self) -> bool:
        """Whether the program came to where something was to happen."""
        return self.at is not None and self._calls[self.operation] >= self.at

    @property
    def has_crashed(self) -> bool:
        """Whether the process counts as dead."""
        return self._has_crashed

    def crash(self) -> None:
        """Die here and now."""
        self._has_crashed = True
        self._dying.cancel()

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Commit, or crash on the way."""
        return await self._at_risk("commit", lambda: self._inner.commit(batch, owner))

    async def claim(self, instance_id: str, owner: Owner) -> Loaded | None:
        """Take and load, or crash on the way."""
        return await self._at_risk("claim", lambda: self._inner.claim(instance_id, owner))

    async def send(self, message: Message) -> Sent:
        """Store a message, or crash on the way."""
        return await self._at_risk("send", lambda: self._inner.send(message))

    async def broadcast(self, signal: Message) -> tuple[Delivery, ...]:
        """Store a signal, or crash on the way."""
        return await self._at_risk("broadcast", lambda: self._inner.broadcast(signal))

    async def _at_risk(self, operation: str, call: Callable[[], Awaitable[T]]) -> T:
        await self._living()
        self._calls[operation] += 1
        if operation != self.operation or self._calls[operation] != self.at:
            return await call()
        if self.point is CrashPoint.BEFORE_COMMIT:
            self.crash()
            await self._living()
        answer = await call()
        if self.point is CrashPoint.ACKNOWLEDGEMENT_LOST:
            raise StoreError(f"{operation} {self.at} was stored, and its acknowledgement was lost: send it again")
        self.crash()
        if self.point is CrashPoint.AFTER_COMMIT:
            await self._living()
        return answer

    async def _living(self) -> None:
        """A dead process asks for nothing, and hears nothing."""
        if self._has_crashed:
            await trio.sleep_forever()

    def guarded(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """The same handlers, none of which begins after the crash: for ``open_engine(store, handlers=...)``."""
        return {name: evolve(handler, function=self._guarded(handler)) for name, handler in handlers.items()}

    def _guarded(self, handler: Handler) -> Callable[[Work], Any]:
        function = handler.function

        async def begin(work: Work) -> Any:
            await self._living()
            outputs = function(work)
            return await outputs if inspect.isawaitable(outputs) else outputs

        def begin_at_once(work: Work) -> Any:
            if self._has_crashed:
                raise SimulatedCrash("the process is dead; what its steps do is not stored any more")
            return function(work)

        return begin if handler.is_async else begin_at_once


async def run_until_crash(store: CrashingStore, life: Callable[[], Awaitable[T]]) -> T:
    """What ``life`` returns, an async function that opens an engine over ``store`` and drives it.

    Raises ``SimulatedCrash`` if the store crashed: then ``life`` was cancelled, without anything of its engine's
    shutdown (one second of Trio's time) reaching the store.  Cancelling cancels ``life``.
    """
    with store._dying:  # noqa: SLF001  # the other half of this module
        result = await life()
        if not store.has_crashed:
            return result
    raise SimulatedCrash(f"the program died; it had begun {store.commits} commits")
