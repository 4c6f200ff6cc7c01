"""Threads that own a connection and work off a queue."""

from __future__ import annotations

import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar, cast

import trio
from attrs import define, field, frozen

__all__ = ["Job", "Reader", "Work", "Worker", "Writer"]

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]


@frozen
class _Failed:
    error: BaseException


def _stop(_: sqlite3.Connection) -> None:
    """A job like any other, known by its identity: it ends the thread."""


@define(eq=False)
class Job(Generic[T]):
    """One request.  ``work`` is done within a transaction that the thread begins and ends.

    ``careful``: what to do instead where something in the transaction failed before and each job is tried by
    itself; None: ``work`` again.
    """

    work: Work
    careful: Work | None = None
    done: trio.Event = field(factory=trio.Event)
    token: trio.lowlevel.TrioToken = field(factory=trio.lowlevel.current_trio_token)
    result: Any = None

    def answer(self) -> T:
        """Its result, or what it raised; it must be done."""
        if isinstance(self.result, _Failed):
            raise self.result.error
        return cast(T, self.result)


class Worker:
    """A thread with a connection of its own, made in it and closed in it."""

    def __init__(self, name: str, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._jobs: queue.SimpleQueue[Job[Any]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._started: Job[None] = Job(_stop)
        self._serves = False

    async def start(self) -> None:
        """Start the thread and wait until it is connected; raises what connecting raised, and then it has ended."""
        self._thread.start()
        with trio.CancelScope(shield=True):
            await self._started.done.wait()
        self._serves = self._started.result is None
        if not self._serves:
            self._thread.join()
        self._started.answer()

    async def stop(self) -> None:
        """End the thread after the jobs that are queued; not to be cancelled, for it must not outlive its store."""
        if not self._serves:
            return
        self._serves = False
        job = self.submit(Job[None](_stop))
        with trio.CancelScope(shield=True):
            await job.done.wait()
        self._thread.join()  # it has said its last word: this takes microseconds

    def submit(self, job: Job[T]) -> Job[T]:
        """Queue a job."""
        self._jobs.put(job)
        return job

    # ---------------------------------------------------------------- in the thread

    def _run(self) -> None:
        try:
            db = self._connect()
        except Exception as error:  # noqa: BLE001  # it is raised where somebody waits
            _answer([(self._started, _Failed(error))])
            return
        _answer([(self._started, None)])
        stopped: Sequence[Job[Any]] = ()
        try:
            stopped = self._serve(db)
            db.close()
        finally:
            _answer([(job, None) for job in stopped])

    def _serve(self, db: sqlite3.Connection) -> Sequence[Job[Any]]:
        while True:
            jobs = self._next()
            stops = [job for job in jobs if job.work is _stop]
            wanted = [job for job in jobs if job.work is not _stop]
            if wanted:
                results = self._work(db, wanted)
                _answer(list(zip(wanted, results, strict=True)))
            if stops:
                return stops

    def _next(self) -> list[Job[Any]]:
        """Wait for a job, and take along whatever else is queued."""
        jobs = [self._jobs.get()]
        with contextlib.suppress(queue.Empty):
            while True:
                jobs.append(self._jobs.get_nowait())
        return jobs

    def _work(self, db: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
        raise NotImplementedError


class Reader(Worker):
    """Each job in a transaction of its own, so that it sees one state of the database."""

    def _work(self, db: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
        return [_read(db, job) for job in jobs]


class Writer(Worker):
    """All that is queued in one transaction: one wait for the disk, however many wait for it.

    It is tried whole first.  If anything raises, all is rolled back and tried again with a savepoint for each job, so
    that a failing one leaves the others.
    """

    def _work(self, db: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
        try:
            return _transaction(db, jobs, _together)
        except Exception:  # noqa: BLE001  # whoever it was will raise again below, by itself
            _roll_back(db)
        try:
            return _transaction(db, jobs, _one_by_one)
        except Exception as error:  # noqa: BLE001  # it is raised where somebody waits
            _roll_back(db)
            return [_Failed(error)] * len(jobs)


def _transaction(
    db: sqlite3.Connection,
    jobs: Sequence[Job[Any]],
    work: Callable[[sqlite3.Connection, Sequence[Job[Any]]], list[Any]],
) -> list[Any]:
    db.execute("BEGIN IMMEDIATE")
    results = work(db, jobs)
    db.execute("COMMIT")
    return results


def _together(db: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
    return [job.work(db) for job in jobs]


def _one_by_one(db: sqlite3.Connection, jobs: Sequence[Job[Any]]) -> list[Any]:
    return [_by_itself(db, job) for job in jobs]


def _by_itself(db: sqlite3.Connection, job: Job[Any]) -> Any:
    db.execute("SAVEPOINT job")
    try:
        result = (job.careful or job.work)(db)
    except Exception as error:
        if not db.in_transaction:  # a full disk rolls back everything, not only to the savepoint
            raise
        db.execute("ROLLBACK TO job")
        result = _Failed(error)
    db.execute("RELEASE job")
    return result


def _read(db: sqlite3.Connection, job: Job[Any]) -> Any:
    try:
        return _transaction_of_reads(db, job)
    except Exception as error:  # noqa: BLE001  # it is raised where somebody waits
        _roll_back(db)
        return _Failed(error)


def _transaction_of_reads(db: sqlite3.Connection, job: Job[Any]) -> Any:
    db.execute("BEGIN")
    result = job.work(db)
    db.execute("COMMIT")
    return result


def _roll_back(db: sqlite3.Connection) -> None:
    if db.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")


def _answer(answers: Sequence[tuple[Job[Any], Any]]) -> None:
    """Hand results over to Trio: one crossing for all that wait in one run."""
    by_token: dict[trio.lowlevel.TrioToken, list[tuple[Job[Any], Any]]] = {}
    for job, result in answers:
        by_token.setdefault(job.token, []).append((job, result))
    for token, those in by_token.items():
        with contextlib.suppress(trio.RunFinishedError):  # nobody is left to hear it
            token.run_sync_soon(_deliver, those)


def _deliver(answers: Sequence[tuple[Job[Any], Any]]) -> None:
    for job, result in answers:
        job.result = result
        job.done.set()
