"""``trioflow.testing.crash`` as its users see it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import trio

import trioflow
from tests.crash.support import Chronicled
from trioflow import ProcessBuilder, Status, Work
from trioflow.errors import InvalidRequest
from trioflow.model import Definitions
from trioflow.stores.memory import MemoryStore
from trioflow.testing import VirtualClock
from trioflow.testing.crash import CrashingStore, CrashPoint, SimulatedCrash, run_until_crash

NewStore = Callable[[], Chronicled]


def two_steps() -> Definitions:
    """Two service tasks."""
    built = ProcessBuilder("order")
    built.start("s").service("one").service("two").end("e")
    return built.build()


def noting(ran: list[str]) -> trioflow.Handlers:
    """Handlers that note their names; ``two`` runs in a thread."""
    handlers = trioflow.Handlers()

    async def one(work: Work) -> None:
        ran.append("one")

    def two(work: Work) -> None:
        assert threading.current_thread() is not threading.main_thread()
        ran.append("two")

    handlers.task("one", one)
    handlers.task("two", two)
    return handlers


async def live(store: CrashingStore, ran: list[str]) -> Status:
    """Run one instance to its end."""
    handlers = store.guarded(noting(ran))
    async with trioflow.open_engine(store, handlers=handlers, deploy=[two_steps()]) as engine:
        instance = await engine.start("order", instance_id="o")
        return (await instance.wait()).status


async def test_counts_commits_and_passes_results(new_store: NewStore, clock: VirtualClock) -> None:
    """Without a crash point the store only counts, and ``run_until_crash`` gives what the life returned."""
    store, ran = CrashingStore(new_store()), list[str]()
    assert await run_until_crash(store, lambda: live(store, ran)) is Status.COMPLETED
    assert (ran, store.commits, store.has_crashed) == (["one", "two"], 3, False)


@pytest.mark.parametrize(
    "point, ran_before, version",
    [
        (CrashPoint.BEFORE_COMMIT, ["one"], 1),
        (CrashPoint.AFTER_COMMIT, ["one"], 2),
        (CrashPoint.BEFORE_EFFECTS, ["one"], 2),
    ],
)
async def test_what_a_crash_leaves(
    point: CrashPoint, ran_before: list[str], version: int, new_store: NewStore, clock: VirtualClock
) -> None:
    """At the second commit, of the first step's end, the point decides what is stored; the second step never begins."""
    inner, ran = new_store(), list[str]()
    store = CrashingStore(inner, at=2, point=point)
    with pytest.raises(SimulatedCrash, match="it had begun 2 commits"):
        await run_until_crash(store, lambda: live(store, ran))
    assert (ran, store.has_crashed) == (ran_before, True)
    async with inner.reader() as reader:
        await reader.open_reader(group="main")
        head = await reader.head("o")
    assert head is not None
    assert (head.record_version, head.status, head.owner) == (version, Status.ACTIVE, "main")


async def test_lost_acknowledgement_is_no_crash(new_store: NewStore, clock: VirtualClock) -> None:
    """The commit is sent again, and the run goes on to its end with one call more."""
    store, ran = CrashingStore(new_store(), at=2, point=CrashPoint.ACKNOWLEDGEMENT_LOST), list[str]()
    assert await run_until_crash(store, lambda: live(store, ran)) is Status.COMPLETED
    assert (ran, store.commits, store.has_crashed) == (["one", "two"], 4, False)


async def test_crash_by_hand(new_store: NewStore, clock: VirtualClock) -> None:
    """A test may crash it at any moment; from then on every call waits for ever, and the inner store hears nothing."""
    inner = new_store()
    store = CrashingStore(inner)

    async def life() -> None:
        await store.open(group="main", engine_id="main")
        store.crash()
        await store.counts()

    with pytest.raises(SimulatedCrash):
        await run_until_crash(store, life)
    with trio.move_on_after(1e6) as waiting:
        await store.counts()
    assert waiting.cancelled_caught
    await store.close()
    async with inner:
        assert (await inner.open(group="main", engine_id="main")).incarnation == 2


async def test_volatile_store_is_refused(clock: VirtualClock) -> None:
    """A store that is gone with its process leaves nothing to recover."""
    with pytest.raises(InvalidRequest, match="recording=True"):
        CrashingStore(MemoryStore(clock=clock))
