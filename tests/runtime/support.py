"""Tools of the runtime's tests: small models, handlers that can be held, and a store that misbehaves on demand."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

import trioflow
from tests.conftest import PATIENCE
from trioflow import Engine, ProcessBuilder, Work
from trioflow.checkpoint.records import Item
from trioflow.errors import StoreError
from trioflow.model import Definitions
from trioflow.model.builder import message, timer
from trioflow.runtime.definitions import Source
from trioflow.stores.clock import Clock
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import CommitAnswer, Owner, Store

__all__ = [
    "FaultyStore",
    "Gate",
    "asking",
    "crashed",
    "living_tasks",
    "opened",
    "parked",
    "receiving",
    "registry",
    "returning",
    "serving",
    "sleeping",
    "until",
]

# ------------------------------------------------------------------ models


def serving(*names: str, key: str = "order") -> Definitions:
    """Service tasks in a row, each with the handler of its own name."""
    built = ProcessBuilder(key)
    path = built.start("s")
    for name in names:
        path = path.service(name)
    path.end("e")
    return built.build()


def receiving(
    name: str = "paid", *, key: str | None = None, process: str = "receiver", first: str | None = None
) -> Definitions:
    """Waits for one message, after the service task ``first`` if there is one."""
    built = ProcessBuilder(process)
    path = built.start("s")
    if first is not None:
        path = path.service(first)
    path.catch("wait", on=message(name, key=key)).end("e")
    return built.build()


def sleeping(*, duration: str | None = "PT1H", date: str | None = None, process: str = "sleeper") -> Definitions:
    """Waits for one timer."""
    built = ProcessBuilder(process)
    built.start("s").catch("wait", on=timer(duration=duration, date=date)).end("e")
    return built.build()


def asking(process: str = "asker", **options: Any) -> Definitions:
    """One user task."""
    built = ProcessBuilder(process)
    built.start("s").user("ask", **options).end("e")
    return built.build()


# ------------------------------------------------------------------ handlers


def registry(**functions: Callable[[Work], Any]) -> trioflow.Handlers:
    """Handlers by the names of the arguments, without options."""
    handlers = trioflow.Handlers()
    for name, function in functions.items():
        handlers.task(name, function)
    return handlers


def returning(value: Any) -> Callable[[Work], Any]:
    """A handler that returns just that."""

    async def work(work: Work) -> Any:
        return value

    return work


class Gate:
    """A handler that says when it runs, and goes on when it is let.

    ``keys``: the idempotency keys it was called with; ``entered`` is set at the first call; ``log`` gets its life.
    """

    def __init__(self, outputs: Mapping[str, Any] | None = None) -> None:
        self.outputs = outputs
        self.keys: list[str] = []
        self.attempts: list[int] = []
        self.log: list[str] = []
        self.entered = trio.Event()
        self.let = trio.Event()

    async def __call__(self, work: Work) -> Mapping[str, Any] | None:
        """Run until let."""
        self.keys.append(work.idempotency_key)
        self.attempts.append(work.attempt)
        self.log.append("entered")
        self.entered.set()
        try:
            await self.let.wait()
        except trio.Cancelled:
            self.log.append("cancelled")
            raise
        self.log.append("done")
        return self.outputs


# ------------------------------------------------------------------ engines


@asynccontextmanager
async def opened(
    store: Store | None,
    clock: Clock,
    *deploy: Source,
    handlers: trioflow.Handlers | None = None,
    **options: Any,
) -> AsyncIterator[Engine]:
    """An engine over that store in virtual time."""
    async with trioflow.open_engine(store, clock=clock, deploy=deploy, handlers=handlers, **options) as engine:
        yield engine


@asynccontextmanager
async def crashed(
    store: MemoryStore,
    clock: Clock,
    *deploy: Source,
    handlers: trioflow.Handlers | None = None,
    **options: Any,
) -> AsyncIterator[Engine]:
    """An engine that dies at the end of the block: nothing that it does on its way out reaches the store.

    The engine gets a handle of its own; it is cut off before the engine is left, and its lock is given up.
    """
    handle = FaultyStore(store.another())
    try:
        async with trioflow.open_engine(
            handle, clock=clock, deploy=deploy, handlers=handlers, grace=0, **options
        ) as engine:
            yield engine
            handle.cut()
    finally:
        handle.inner.abandon()


async def until(condition: Callable[[], Any]) -> None:
    """Let others run until the condition holds; no time of theirs passes, and threads have all that they need."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never became true"
        await trio.lowlevel.checkpoint()


async def parked(engine: Engine) -> None:
    """Wait until no instance is resident any more; takes some virtual milliseconds."""
    with trio.fail_after(60):
        while engine.statistics().resident:  # noqa: ASYNC110 - it is polled, or it would be told by what it tests
            await trio.sleep(0.001)


def living_tasks() -> set[trio.lowlevel.Task]:
    """All tasks of this run but Trio's own."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    found: set[trio.lowlevel.Task] = set()
    nurseries = list(root.child_nurseries)
    while nurseries:
        for task in nurseries.pop().child_tasks:
            found.add(task)
            nurseries += task.child_nurseries
    return found


# ------------------------------------------------------------------ a store that misbehaves


class FaultyStore:
    """A recording memory store between the engine and its data: commits fail, lose their answers, or are held.

    ``failures``: so many commits raise before they do anything; ``lost``: so many are stored, and then raise.
    ``gate``: commits wait for it.  ``batches``: what was sent, in order, repetitions included.
    """

    def __init__(self, inner: MemoryStore) -> None:
        self.inner = inner
        self.failures = 0
        self.lost = 0
        self.gate: trio.Event | None = None
        self.batches: list[tuple[Item, ...]] = []
        self.before: Callable[[Sequence[Item]], Awaitable[None]] | None = None
        self._is_cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if self._is_cut and name not in {"now", "close", "volatile"}:
            raise StoreError("the store is out of reach")
        return found

    def cut(self) -> None:
        """From now on nothing is read or written any more: the process is as good as dead."""
        self._is_cut = True

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Commit, or misbehave."""
        self.batches.append(tuple(batch))
        if self.gate is not None:
            with trio.CancelScope(shield=not self._is_cut):
                await self.gate.wait()
        if self.before is not None:
            await self.before(batch)
        if self._is_cut or self.failures:
            self.failures = max(0, self.failures - 1)
            await trio.lowlevel.checkpoint()
            raise StoreError("the disk is full")
        answer = await self.inner.commit(batch, owner)
        if self.lost:
            self.lost -= 1
            raise StoreError("the connection was lost")
        return answer

    def committed_ids(self) -> Iterable[str]:
        """The commit ids that were sent, in order."""
        return [item.commit_id for batch in self.batches for item in batch]
