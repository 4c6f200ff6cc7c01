"""``SQLiteStore``: the port over one file, a writer thread and a reader thread."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import trio
from attrs import define

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
from trioflow.errors import InvalidRequest, StoreError, StoreTooNew, TrioflowError
from trioflow.facts import Status
from trioflow.stores.clock import Clock, SystemClock
from trioflow.stores.port import CommitAnswer, InstanceFilter, Loaded, Owner, Sent, TaskFilter, TimerCursor
from trioflow.stores.sqlite import _instances, _messages, _registry, _waits
from trioflow.stores.sqlite._columns import micros
from trioflow.stores.sqlite._commit import UNFIT, Commit
from trioflow.stores.sqlite._lock import LivenessLock
from trioflow.stores.sqlite._schema import SYNCHRONOUS, admit, connect, migrate
from trioflow.stores.sqlite._worker import Job, Reader, Work, Writer

__all__ = ["SQLiteStore"]

T = TypeVar("T")


@define(eq=False)
class _Handle:
    """What is there while the store is open; ``group`` is the group's number, a reader has no writer and no lock."""

    reader: Reader
    group: int
    writer: Writer | None = None
    lock: LivenessLock | None = None


class SQLiteStore:
    """A store in one file.

    ``path``: the database; its folder must exist.  Beside it lie SQLite's own ``-wal`` and ``-shm`` and a lock file for
    each engine.  ``clock`` None: the system's.  ``synchronous``: ``"full"`` (each commit waits for the disk),
    ``"extra"``, or ``"normal"``, whose price is that a power cut can take the last commits back although they
    were answered: work that was done is then done again, and callers were told what is not so.

    Writes are gathered: all that waits goes into one transaction.  Reads see what was committed when they begin.

    Cancelling: a write that was handed over is waited for, so its caller always hears what became of it; it takes as
    long as a commit, at most ten seconds while another process holds the database.  A read can be cancelled, and its
    result is dropped.
    """

    def __init__(self, path: str | os.PathLike[str], *, clock: Clock | None = None, synchronous: str = "full") -> None:
        if synchronous not in SYNCHRONOUS:
            raise InvalidRequest(
                f"synchronous is {synchronous!r}; it can be one of {', '.join(map(repr, SYNCHRONOUS))}"
            )
        if os.fspath(path) == ":memory:":
            raise InvalidRequest("a store in memory is a MemoryStore (its URL is 'memory:'), not an SQLiteStore")
        self.path = Path(path).absolute()
        self._clock: Clock = SystemClock() if clock is None else clock
        self._synchronous = synchronous
        self._handle: _Handle | None = None

    @property
    def volatile(self) -> bool:
        """False: what was committed survives."""
        return False

    def now(self) -> datetime:
        """The store's time."""
        return self._clock.now()

    # ---------------------------------------------------------------- opening and closing

    async def open(
        self, *, group: str, engine_id: str, create_group: bool = True, handler_names: Sequence[str] = ()
    ) -> Owner:
        """Create or migrate the schema, take the liveness lock, begin a new incarnation.

        Whatever is refused, nothing stays open.  It cannot be cancelled: it lasts as long as the migrations do.
        """
        self._check_closed()
        if not create_group and not self.path.exists():
            raise StoreError(f"{self.path}: there is no such file, and so no group {group!r}")
        now = self._ticks()
        work = partial(
            _registry.enrol,
            group=group,
            engine_id=engine_id,
            handler_names=handler_names,
            now=now,
            create_group=create_group,
        )
        with trio.CancelScope(shield=True), self._clock.held(), self._told():
            lock = LivenessLock(self.path, group, engine_id)
            writer = Writer("trioflow SQLite writer", partial(self._connect_writer, now))
            reader = Reader("trioflow SQLite reader", partial(connect, self.path, read_only=True))
            try:
                await writer.start()
                await reader.start()
                enrolled = writer.submit(Job[tuple[int, Owner]](work))
                await enrolled.done.wait()
                number, owner = enrolled.answer()
            except BaseException:
                await _close(_Handle(reader, 0, writer, lock))  # noqa: ASYNC102 - shielded above
                raise
            self._handle = _Handle(reader, number, writer, lock)
        return owner

    def _connect_writer(self, now: int) -> sqlite3.Connection:
        db = connect(self.path, synchronous=self._synchronous)
        try:
            migrate(db, now)
        except BaseException:
            db.close()
            raise
        return db

    async def open_reader(self, *, group: str) -> None:
        """Open for reading; StoreError if there is no such file, schema or group.  Cannot be cancelled."""
        self._check_closed()
        if not self.path.exists():
            raise StoreError(f"{self.path}: there is no such file")
        with trio.CancelScope(shield=True), self._clock.held(), self._told():
            reader = Reader("trioflow SQLite reader", self._connect_reader)
            try:
                await reader.start()
                found = reader.submit(Job[int](partial(_registry.find_group, group=group)))
                await found.done.wait()
                number = found.answer()
            except BaseException:
                await _close(_Handle(reader, 0))  # noqa: ASYNC102 - shielded above
                raise
            self._handle = _Handle(reader, number)

    def _connect_reader(self) -> sqlite3.Connection:
        db = connect(self.path, read_only=True)
        try:
            admit(db)
        except BaseException:
            db.close()
            raise
        return db

    def _check_closed(self) -> None:
        if self._handle is not None:
            raise InvalidRequest(
                f"{self.path}: this handle is open already; take another SQLiteStore for another engine"
            )

    async def close(self) -> None:
        """End the threads after what they have been given, and give the lock up.  Cannot be cancelled."""
        handle, self._handle = self._handle, None
        if handle is not None:
            with self._clock.held():
                await _close(handle)
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()  # noqa: ASYNC102 - it shields itself

    # ---------------------------------------------------------------- the way to the threads

    def _told(self) -> _Told:
        return _Told(self.path)

    def _ticks(self) -> int:
        """The present, for work in a thread: a clock may be Trio's, and is not to be asked from there."""
        return micros(self._clock.now())

    @property
    def _open(self) -> _Handle:
        if self._handle is None:
            raise StoreError(f"{self.path}: the store is not open: open it with a group and an engine id first")
        return self._handle

    async def _read(self, work: Callable[..., T], /, *arguments: object, **options: object) -> T:
        handle = self._open
        job = handle.reader.submit(Job[T](_bound(work, handle.group, *arguments, **options)))
        with self._clock.held():
            await job.done.wait()
        with self._told():
            return job.answer()

    async def _write(self, work: Callable[..., T], /, *arguments: object, **options: object) -> T:
        return await self._submit(Job[T](_bound(work, self._open.group, *arguments, **options)))

    async def _submit(self, job: Job[T]) -> T:
        """Hand a write over and wait for it; cancelling is looked at before, and then no more."""
        writer = self._open.writer
        if writer is None:
            raise StoreError(f"{self.path}: the store is open for reading only")
        await trio.lowlevel.checkpoint_if_cancelled()
        writer.submit(job)
        with self._clock.held(), trio.CancelScope(shield=True):
            await job.done.wait()
        with self._told():
            return job.answer()

    def commit_now(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:  # noqa: ARG002  # the port's
        """Not here: a commit waits for the disk."""
        raise InvalidRequest(f"{self.path}: commit_now is for a volatile store; use commit")

    # ---------------------------------------------------------------- instances

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Store a batch, with whatever else waits to be written, in one transaction."""
        work = Commit(self._open.group, owner, self._ticks(), tuple(batch))
        return await self._submit(Job[CommitAnswer](work.run, careful=work.run_carefully))

    async def claim(self, instance_id: str, owner: Owner) -> Loaded | None:
        """Take and load."""
        return await self._write(_instances.claim, instance_id, owner)

    async def release(
        self, instance_id: str, owner: Owner, *, failure: str = "", retry_at: datetime | None = None
    ) -> None:
        """Give up what could not be loaded; nothing happens unless ``owner`` holds it."""
        await self._write(_instances.release, instance_id, owner, failure=failure, retry_at=retry_at)

    async def mark_drift(self, instance_id: str, owner: Owner, reason: str) -> None:
        """Mark as drifted; nothing happens unless ``owner`` holds it."""
        await self._write(_instances.mark_drift, instance_id, owner, reason)

    async def load(self, instance_id: str) -> Loaded | None:
        """Read head and pieces."""
        return await self._read(_instances.load, instance_id)

    async def head(self, instance_id: str) -> InstanceHead | None:
        """Read the head."""
        return await self._read(_instances.head, instance_id)

    async def instances(self, where: InstanceFilter, *, after: str = "", limit: int = 100) -> tuple[InstanceHead, ...]:
        """Heads in order of id."""
        return await self._read(_instances.instances, where, after, limit)

    async def orphans(self, owner: Owner, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """What earlier incarnations left."""
        return await self._read(_instances.orphans, owner, after, limit)

    async def counts(self) -> dict[Status, int]:
        """How many of each status."""
        return await self._read(_instances.counts)

    # ---------------------------------------------------------------- definitions

    async def deploy(self, definition: Definition) -> Definition:
        """Store a definition and mint its version."""
        return await self._write(_registry.deploy, definition)

    async def definition(self, key: str, version: int | None = None) -> Definition | None:
        """That version, or the latest."""
        return await self._read(_registry.definition, key, version)

    async def definitions(self) -> tuple[Definition, ...]:
        """The latest of each key."""
        return await self._read(_registry.definitions)

    async def pins(self) -> dict[tuple[str, int], int]:
        """How many live instances of each version."""
        return await self._read(_instances.pins)

    # ---------------------------------------------------------------- waits

    async def timers(self, *, after: TimerCursor | None, until: datetime, limit: int) -> tuple[TimerRow, ...]:
        """Timers behind the cursor; their deadlines are in UTC."""
        return await self._read(_waits.timers, after, until, limit)

    async def next_timer(self, *, after: TimerCursor | None) -> TimerCursor | None:
        """The first timer behind the cursor."""
        return await self._read(_waits.next_timer, after)

    async def tasks(
        self, where: TaskFilter, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> tuple[TaskRow, ...]:
        """User tasks."""
        return await self._read(_waits.tasks, where, after, limit)

    async def task(self, instance_id: str, wait_id: int) -> TaskRow | None:
        """One user task."""
        return await self._read(_waits.task, instance_id, wait_id)

    async def incidents(
        self,
        *,
        instance_id: str | None = None,
        state: str | None = "open",
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> tuple[IncidentRow, ...]:
        """Incidents."""
        return await self._read(_waits.incidents, instance_id=instance_id, state=state, after=after, limit=limit)

    # ---------------------------------------------------------------- messages

    async def send(self, message: Message) -> Sent:
        """Store a message and look who waits for it, in one transaction."""
        return await self._write(_messages.send, message, self._ticks())

    async def broadcast(self, signal: Message) -> tuple[Delivery, ...]:
        """Store a signal for all who wait for it, in one transaction."""
        return await self._write(_messages.broadcast, signal, self._ticks())

    async def deliveries(self, instance_id: str) -> tuple[Delivery, ...]:
        """What is assigned to the instance."""
        return await self._read(_messages.deliveries_of, instance_id)

    async def undelivered(self, *, after: int = 0, limit: int = 100) -> tuple[Delivery, ...]:
        """What is assigned to instances that nobody owns."""
        return await self._read(_messages.undelivered, after, limit)

    async def expire(self) -> int:
        """Mark and forget what is past its time."""
        return await self._write(_messages.expire, self._ticks())


def _bound(work: Callable[..., T], group: int, /, *arguments: object, **options: object) -> Work:
    return lambda db: work(db, group, *arguments, **options)


async def _close(handle: _Handle) -> None:
    await handle.reader.stop()
    if handle.writer is not None:
        await handle.writer.stop()
    if handle.lock is not None:
        handle.lock.release()


class _Told:
    """Around work on the database: what SQLite or the system raises becomes a StoreError that names the file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        match error:
            case StoreTooNew():
                raise StoreTooNew(f"{self._path}: {error}") from error
            case StoreError():
                raise StoreError(f"{self._path}: {error}") from error
            case TrioflowError():
                return
            case sqlite3.Error() | OSError() if not isinstance(error, UNFIT):
                raise StoreError(f"{self._path}: {_reason(error)}") from error
            case _ if isinstance(error, UNFIT):
                raise StoreError(f"{self._path}: it cannot hold what was given: {error}") from error


_ADVICE = {
    "SQLITE_CANTOPEN": "does its folder exist, and may this user write there?",
    "SQLITE_READONLY": "the file or its folder is read-only for this user",
    "SQLITE_NOTADB": "another kind of file has that name; give another path",
    "SQLITE_FULL": "make room on the disk; what was not answered was not stored",
    "SQLITE_BUSY": "another program has held the database for ten seconds; what was not answered was not stored",
    "SQLITE_CORRUPT": "restore it from a copy",
}


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    name = getattr(error, "sqlite_errorname", "")
    advice = next((text for prefix, text in _ADVICE.items() if name.startswith(prefix)), "")
    return f"{error} ({name}): {advice}" if advice else f"{error} ({name or type(error).__name__})"
