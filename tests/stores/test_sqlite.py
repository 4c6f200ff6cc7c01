"""The SQLite store: the whole contract, and what is its own."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from tests.conftest import PATIENCE
from tests.stores.exercise import everything
from trioflow.errors import EngineInUse, InvalidRequest, StoreError, StoreTooNew
from trioflow.facts import Status
from trioflow.stores.port import Answer, CommitAnswer
from trioflow.stores.sqlite import SQLiteStore, _schema, _worker
from trioflow.stores.sqlite._worker import Job
from trioflow.testing.store_kit import Engine, MakeStore, ManualClock, StoreContract, after_item, message, new_item

pytestmark = pytest.mark.usefixtures("no_leaked_threads")


class TestContract(StoreContract):
    """The contract."""

    @pytest.fixture
    def make_store(self, store_clock: ManualClock, tmp_path: Path) -> MakeStore:
        """Handles over one file.  Not waiting for the disk: what survives a power cut is not this kit's question."""
        return lambda: SQLiteStore(tmp_path / "störe.db", clock=store_clock, synchronous="normal")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database of a test is."""
    return tmp_path / "orders.db"


@contextmanager
def held_by_another(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program in the middle of a write."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
        if other.in_transaction:
            other.execute("ROLLBACK")


def names_beside(path: Path) -> list[str]:
    """What is in the folder of a database."""
    return sorted(found.name for found in path.parent.iterdir())


async def opened(store: SQLiteStore) -> Engine:
    """The engine ``one`` of the group ``main``."""
    return Engine(store, await store.open(group="main", engine_id="one"))


async def in_writer(store: SQLiteStore, work: Callable[[sqlite3.Connection], Any]) -> None:
    """Do something to the writer's connection."""
    assert store._handle is not None
    assert store._handle.writer is not None
    await store._handle.writer.submit(Job[None](work)).done.wait()


# ------------------------------------------------------------------ what cannot be opened


@pytest.mark.parametrize("name", ["absent/orders.db", "file/orders.db"])
async def test_folder_that_is_none(tmp_path: Path, name: str) -> None:
    """A path into a folder that does not exist, or is a file, is refused by its name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=f"{tmp_path / name}: No"):
        await SQLiteStore(tmp_path / name).open(group="main", engine_id="one")


async def test_database_that_is_a_folder(tmp_path: Path) -> None:
    """What cannot be opened as a file is refused with SQLite's reason and what to look at."""
    with pytest.raises(StoreError, match=r": unable to open database file .*does its folder exist"):
        await SQLiteStore(tmp_path).open(group="main", engine_id="one")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for the superuser")
async def test_read_only_folder(path: Path) -> None:
    """A folder without the right to write is refused by its name."""
    path.parent.chmod(0o500)
    with pytest.raises(StoreError, match=r"orders\.db: Permission denied"):
        await SQLiteStore(path).open(group="main", engine_id="one")


def test_folder_that_is_a_file(path: Path) -> None:
    """Where nobody can write, the superuser included, the path is refused by its name and nothing is made."""
    path.write_text("a file")

    async def main() -> None:
        with pytest.raises(StoreError, match=r"below\.db: Not a directory"):
            await SQLiteStore(path / "below.db").open(group="main", engine_id="one")

    trio.run(main)
    assert path.read_text() == "a file"


def test_file_that_is_no_database(path: Path) -> None:
    """Another kind of file is refused and left as it is, for engines and readers."""
    text = "not a database at all, but long enough to be looked at\n" * 100
    path.write_text(text)

    async def main() -> None:
        with pytest.raises(StoreError, match=r"orders\.db: file is not a database"):
            await SQLiteStore(path).open(group="main", engine_id="one")
        with pytest.raises(StoreError, match=r"orders\.db: file is not a database"):
            await SQLiteStore(path).open_reader(group="main")

    trio.run(main)
    assert path.read_text() == text


async def test_reader_needs_a_store(path: Path) -> None:
    """A reader creates nothing: no file and no tables."""
    with pytest.raises(StoreError, match=r"orders\.db: there is no such file"):
        await SQLiteStore(path).open_reader(group="main")
    assert names_beside(path) == []
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match="without trioflow's tables"):
        await SQLiteStore(path).open_reader(group="main")


async def test_reader_cannot_write(path: Path) -> None:
    """A handle that is open for reading refuses to write, and says so."""
    async with SQLiteStore(path) as store, SQLiteStore(path) as reader:
        engine = await opened(store)
        await reader.open_reader(group="main")
        with pytest.raises(StoreError, match="reading only"):
            await reader.commit([new_item()], engine.owner)


async def test_missing_file_is_not_created_for_a_missing_group(path: Path) -> None:
    """With ``create_group=False`` a mistyped path leaves nothing behind."""
    with pytest.raises(StoreError, match="no such file"):
        await SQLiteStore(path).open(group="main", engine_id="one", create_group=False)
    assert names_beside(path) == []


def test_options_that_make_no_sense(path: Path) -> None:
    """A synchronous mode that could corrupt the file is not offered, nor a database in memory."""
    with pytest.raises(InvalidRequest, match="'off'"):
        SQLiteStore(path, synchronous="off")
    with pytest.raises(InvalidRequest, match="MemoryStore"):
        SQLiteStore(":memory:")


async def test_open_handle_is_not_opened_again(path: Path) -> None:
    """A second engine needs a handle of its own."""
    async with SQLiteStore(path) as store:
        engine = await opened(store)
        with pytest.raises(InvalidRequest, match="open already"):
            await store.open(group="main", engine_id="two")
        with pytest.raises(InvalidRequest, match="commit_now"):
            store.commit_now([new_item()], engine.owner)


# ------------------------------------------------------------------ migrations


def _applied_later(path: Path, *, oldest_code: int) -> None:
    """Enter a migration that a newer trioflow would have applied."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO trioflow_migrations VALUES (99, 'later', ?, 0)", (oldest_code,))


async def test_store_of_a_newer_code(path: Path) -> None:
    """A migration that needs newer code keeps this one out, as engine and as reader."""
    async with SQLiteStore(path) as store:
        await opened(store)
    _applied_later(path, oldest_code=_schema.SCHEMA + 1)
    with pytest.raises(StoreTooNew, match=r"orders\.db: .*migration 99 \(later\)"):
        await SQLiteStore(path).open(group="main", engine_id="one")
    with pytest.raises(StoreTooNew, match="upgrade trioflow"):
        await SQLiteStore(path).open_reader(group="main")


async def test_store_of_a_newer_code_that_admits_this_one(path: Path) -> None:
    """A migration that still works with this code does not keep it out."""
    async with SQLiteStore(path) as store:
        await (await opened(store)).stored(new_item("a"))
    _applied_later(path, oldest_code=_schema.SCHEMA)
    async with SQLiteStore(path) as store:
        assert await (await opened(store)).store.head("a") is not None


async def test_first_opening_by_two_engines_at_once(path: Path) -> None:
    """Migrations are applied once, however many engines open a new file at the same time."""
    async with SQLiteStore(path) as one, SQLiteStore(path) as two:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(one.open, group="main", engine_id="one"))
            nursery.start_soon(partial(two.open, group="main", engine_id="two"))
        assert await one.counts() == await two.counts()


def test_migrations_are_numbered_without_gaps() -> None:
    """The files are 1, 2, 3, ... and the last is this code's schema."""
    numbers = [migration.number for migration in _schema.migrations()]
    assert numbers == list(range(1, _schema.SCHEMA + 1))


async def test_exactly_one_default_tenant(path: Path) -> None:
    """A group has a default tenant from its birth, and the database refuses to lose it."""
    async with SQLiteStore(path) as store:
        await opened(store)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        assert db.execute("SELECT default_tenant FROM trioflow_groups").fetchall() == [("",)]
        db.execute("DELETE FROM trioflow_tenants")
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            db.commit()


# ------------------------------------------------------------------ death

_ENGINE = """
import sys, trio
from trioflow.stores.sqlite import SQLiteStore
from trioflow.testing.store_kit import new_item

async def main():
    store = SQLiteStore(sys.argv[1])
    owner = await store.open(group="main", engine_id="one")
    await store.commit([new_item("a", piece=b"kept")], owner)
    print("stored", flush=True)
    await trio.sleep_forever()

trio.run(main)
"""


async def said(process: trio.Process, line: bytes) -> None:
    """Wait until the process has written exactly this."""
    assert process.stdout is not None
    text = b""
    while len(text) < len(line):
        part = await process.stdout.receive_some()
        assert part, f"it ended after {text!r}"
        text += part
    assert text == line


@pytest.mark.sigkill
async def test_killed_engine_gives_its_lock_up(path: Path) -> None:
    """While a process lives it is named; killed, its lock is free, and what it had stored and owned is found."""
    command = [sys.executable, "-c", _ENGINE, str(path)]
    async with trio.open_nursery() as nursery:
        start = partial(trio.run_process, command, stdout=subprocess.PIPE, check=False)
        process: trio.Process = await nursery.start(start)
        await said(process, b"stored\n")
        with pytest.raises(EngineInUse, match=f"'one' of group 'main'.*pid {process.pid}"):
            await SQLiteStore(path).open(group="main", engine_id="one")
        process.kill()
    assert process.returncode == -signal.SIGKILL
    async with SQLiteStore(path) as store:
        engine = await opened(store)
        assert await store.orphans(engine.owner) == ("a",)
        loaded = await store.claim("a", engine.owner)
        assert loaded is not None
        assert (loaded.pieces, loaded.abandoned) == ((b"kept",), True)


async def test_copy_of_a_moment_is_a_store(path: Path) -> None:
    """Database and log as they are on the disk after an answer hold what was answered, without any closing."""
    copy = path.with_name("copy.db")
    async with SQLiteStore(path) as store:
        await (await opened(store)).stored(new_item("a", piece=b"kept"))
        shutil.copy(path, copy)
        shutil.copy(f"{path}-wal", f"{copy}-wal")
    async with SQLiteStore(copy) as store:
        engine = await opened(store)
        assert await store.orphans(engine.owner) == ("a",)


# ------------------------------------------------------------------ transactions


async def test_writes_that_wait_share_a_transaction(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is queued while a transaction runs goes into one: two sends and a commit wait for the disk once."""
    sizes: list[int] = []
    transaction = _worker._transaction

    def counted(db: sqlite3.Connection, jobs: list[Job[Any]], work: Any) -> list[Any]:
        sizes.append(len(jobs))
        return transaction(db, jobs, work)

    async with SQLiteStore(path) as store:
        engine = await opened(store)
        monkeypatch.setattr(_worker, "_transaction", counted)
        async with trio.open_nursery() as nursery:
            with held_by_another(path):
                nursery.start_soon(engine.send)
                await wait_all_tasks_blocked()
                nursery.start_soon(engine.send)
                nursery.start_soon(engine.send)
                nursery.start_soon(engine.commit, new_item("a"))
                await wait_all_tasks_blocked()
        assert sorted(sizes) in ([1, 3], [4])


async def test_unfit_item_leaves_the_others(path: Path) -> None:
    """An item that the database cannot hold is refused with the reason; the rest of its batch is stored, once."""
    async with SQLiteStore(path) as store:
        engine = await opened(store)
        batch = [new_item("a"), new_item("b", reason="\ud800"), new_item("c"), new_item("d", version=2**70)]
        outcomes = await engine.commit(*batch)
        assert [found.answer for found in outcomes] == [Answer.STORED, Answer.REFUSED, Answer.STORED, Answer.REFUSED]
        assert "surrogates" in outcomes[1].reason
        assert await store.head("b") is None
        assert (await store.counts())[Status.ACTIVE] == 2
        assert await store.pins() == {("order", 1): 2}


async def test_unfit_write_leaves_its_neighbours(path: Path) -> None:
    """In a shared transaction the one that cannot be held is told so, and the others are stored."""
    failures: list[str] = []
    async with SQLiteStore(path) as store:
        engine = await opened(store)

        async def send_unfit() -> None:
            with pytest.raises(StoreError, match=r"orders\.db: it cannot hold") as caught:
                await store.send(message("\ud800"))
            failures.append(str(caught.value))

        async with trio.open_nursery() as nursery:
            with held_by_another(path):
                nursery.start_soon(engine.send, "first")
                nursery.start_soon(send_unfit)
                nursery.start_soon(engine.commit, new_item("a"))
                await wait_all_tasks_blocked()
        assert len(failures) == 1
        assert await store.head("a") is not None
        assert await store.send(message("first", message_id="m")) is not None


async def test_full_disk(path: Path) -> None:
    """A full disk is an error that says so; nothing of the batch is there, and with room it goes on."""
    async with SQLiteStore(path) as store:
        engine = await opened(store)
        first = new_item("a")
        await engine.stored(first)
        await in_writer(store, lambda db: db.execute("PRAGMA max_page_count = 100").fetchone())
        with pytest.raises(StoreError, match=r"orders\.db: database or disk is full .*make room"):
            await engine.commit(after_item(first, piece=bytes(10_000_000)), new_item("b"))
        head = await store.head("a")
        assert head is not None
        assert head.record_version == 1
        assert await store.head("b") is None
        await in_writer(store, lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
        assert await engine.answers(after_item(first)) == (Answer.STORED,)


async def test_database_held_for_too_long(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When another program does not let go in time, the writer hears that it is locked and nothing was stored."""
    monkeypatch.setattr(_schema, "_BUSY_SECONDS", 0.01)
    async with SQLiteStore(path) as store:
        engine = await opened(store)
        with (
            held_by_another(path),
            pytest.raises(StoreError, match=r"orders\.db: database is locked .*another program"),
        ):
            await engine.commit(new_item("a"))
        assert await store.head("a") is None
        assert await engine.answers(new_item("a")) == (Answer.STORED,)


async def test_cancelled_write_is_waited_for(path: Path) -> None:
    """Cancelling who waits for a write that was handed over does not hide what became of it."""
    answers: list[CommitAnswer] = []
    async with SQLiteStore(path) as store:
        engine = await opened(store)

        async def commit(scope: trio.CancelScope) -> None:
            with scope:
                answers.append(await store.commit([new_item("a")], engine.owner))

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            with held_by_another(path):
                nursery.start_soon(commit, scope)
                await wait_all_tasks_blocked()
                scope.cancel()
                await wait_all_tasks_blocked()
                assert answers == []
        assert [outcome.answer for outcome in answers[0].outcomes] == [Answer.STORED]
        assert await store.head("a") is not None


async def test_cancelled_read_is_dropped(path: Path) -> None:
    """Who waits for a read can be cancelled at once; the thread goes on and serves the next."""
    go_on = threading.Event()
    async with SQLiteStore(path) as store:
        await opened(store)
        assert store._handle is not None
        store._handle.reader.submit(Job[bool](lambda _: go_on.wait(PATIENCE)))
        with trio.CancelScope() as scope:
            scope.cancel()
            await store.head("a")
        assert scope.cancelled_caught
        go_on.set()
        assert await store.head("a") is None


async def test_clock_is_held_while_a_thread_works(path: Path) -> None:
    """Virtual time stands still from handing over to the answer, for reads and writes, opening and closing."""
    clock = ManualClock()
    async with SQLiteStore(path, clock=clock) as store:
        engine = await opened(store)
        assert clock.holds == 1
        async with trio.open_nursery() as nursery:
            with held_by_another(path):
                nursery.start_soon(engine.commit, new_item("a"))
                await wait_all_tasks_blocked()
                assert clock.held_now == 1
        await store.head("a")
        assert (clock.holds, clock.held_now) == (3, 0)
    assert clock.holds == 4


# ------------------------------------------------------------------ what it costs when many are parked

_BIG = ("instances", "pieces", "timers", "tasks", "task_lines", "incidents", "messages", "subscriptions", "deliveries")


async def test_no_statement_reads_the_population(path: Path) -> None:
    """Every statement finds its rows by an index, and by more of it than the group, and sorts none."""
    seen: set[str] = set()
    async with SQLiteStore(path) as store:
        engine = await opened(store)
        assert store._handle is not None
        assert store._handle.writer is not None
        for worker in (store._handle.writer, store._handle.reader):
            await worker.submit(Job[None](lambda db: db.set_trace_callback(seen.add))).done.wait()
        await everything(engine)
    statements = sorted(text for text in seen if text.lstrip().startswith(("SELECT", "UPDATE", "DELETE")))
    assert len(statements) > 40
    with closing(sqlite3.connect(path)) as db:
        offences = [(text, line) for text in statements for line in _plan(db, text) if _reads_too_much(line, text)]
    assert offences == []


def _plan(db: sqlite3.Connection, statement: str) -> list[str]:
    return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}")]


def _reads_too_much(line: str, statement: str) -> bool:
    if "TEMP B-TREE" in line:
        return "RIGHT PART" not in line  # that sorts the rows of one instance
    if line.startswith("SCAN"):
        return "json_each" not in line
    return line.endswith("(group_id=?)") and any(f"trioflow_{name} " in f"{statement} " for name in _BIG)
