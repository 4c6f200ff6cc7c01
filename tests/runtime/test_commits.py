"""What is stored before what, and what the runtime does about a store that fails, answers late, or says no."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

import trioflow
from tests.runtime.support import FaultyStore, Gate, asking, opened, parked, receiving, registry, serving, sleeping
from trioflow import Engine, OwnershipLost, ProcessBuilder, Status, Work
from trioflow.checkpoint.records import Item
from trioflow.errors import EngineClosed
from trioflow.stores.memory import MemoryStore
from trioflow.testing import VirtualClock


@pytest.fixture
def faulty(clock: VirtualClock) -> FaultyStore:
    """A recording store that misbehaves on demand."""
    return FaultyStore(MemoryStore(clock=clock, recording=True))


async def nothing(work: Work) -> None:
    """A handler that does nothing."""


# ------------------------------------------------------------------ write-ahead


async def test_no_handler_before_its_commit(faulty: FaultyStore, clock: VirtualClock) -> None:
    """A handler starts when what led to it is stored, the start's caller is answered then too, and no earlier."""
    gate = Gate()
    started: list[trioflow.Instance] = []
    faulty.gate = trio.Event()
    async with opened(faulty, clock, serving("work"), handlers=registry(work=gate)) as engine:
        async with trio.open_nursery() as nursery:

            async def starts() -> None:
                started.append(await engine.start("order"))

            nursery.start_soon(starts)
            await trio.sleep(20)
            assert (started, gate.log, len(faulty.batches)) == ([], [], 1)
            faulty.gate.set()
        await gate.entered.wait()
        gate.let.set()
        assert (await started[0].wait()).status is Status.COMPLETED


async def test_second_step_waits_too(faulty: FaultyStore, clock: VirtualClock) -> None:
    """The report of a step is stored before the next handler starts; a script in between waits for nothing."""
    first, second = Gate(), Gate()
    built = ProcessBuilder("order")
    built.start("s").service("a").script("between", "n = 1").service("b").end("e")
    async with opened(faulty, clock, built.build(), handlers=registry(a=first, b=second)) as engine:
        instance = await engine.start("order")
        await first.entered.wait()
        faulty.gate = trio.Event()
        first.let.set()
        await trio.sleep(20)
        assert second.log == []
        faulty.gate.set()
        await second.entered.wait()
        second.let.set()
        assert (await instance.wait()).variables == {"n": 1}


async def test_callers_are_answered_after_their_commit(faulty: FaultyStore, clock: VirtualClock) -> None:
    """Complete, send, cancel, retry and looks are answered when what they did, or show, is stored."""
    answered: list[str] = []

    async def asks(name: str, call: object) -> None:
        await call  # type: ignore[misc]  # a coroutine
        answered.append(name)

    async with opened(faulty, clock, asking(), receiving(), sleeping()) as engine:
        user, receiver, sleeper = [await engine.start(key) for key in ("asker", "receiver", "sleeper")]
        await parked(engine)
        (row,) = await engine.tasks.query()
        faulty.gate = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asks, "complete", engine.tasks.complete(row.id))
            nursery.start_soon(asks, "send", engine.send_message("paid"))
            nursery.start_soon(asks, "cancel", sleeper.cancel())
            nursery.start_soon(asks, "wait", user.wait())
            await trio.sleep(20)
            assert answered == []
            faulty.gate.set()
        assert sorted(answered) == ["cancel", "complete", "send", "wait"]
        assert (await receiver.wait()).status is Status.COMPLETED


async def test_facts_after_their_commit(faulty: FaultyStore, clock: VirtualClock) -> None:
    """Observers hear of nothing that is not stored."""
    async with opened(faulty, clock, sleeping()) as engine, engine.observe() as facts:
        faulty.gate = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.start, "sleeper")
            with trio.move_on_after(20) as waited:
                await anext(facts)
            assert waited.cancelled_caught
            faulty.gate.set()
        assert (await anext(facts)).kind == "instance-active"


# ------------------------------------------------------------------ group commit


async def test_group_commit(faulty: FaultyStore, clock: VirtualClock) -> None:
    """256 instances of three steps, over a store that takes 10 ms, need some commits per round, not one per step."""

    async def slow(batch: Sequence[Item]) -> None:
        await trio.sleep(0.01)

    faulty.before = slow
    handlers = registry(a=nothing, b=nothing, c=nothing)
    async with opened(faulty, clock, serving("a", "b", "c"), handlers=handlers) as engine:

        async def runs() -> None:
            assert (await (await engine.start("order")).wait()).status is Status.COMPLETED

        async with trio.open_nursery() as nursery:
            for _ in range(256):
                nursery.start_soon(runs)
        statistics = engine.statistics()
        assert statistics.items >= 256 * 4
        assert statistics.commits <= 12
        assert max(len(batch) for batch in faulty.batches) >= 250


async def test_one_commit_of_an_instance_in_flight(faulty: FaultyStore, clock: VirtualClock) -> None:
    """No batch holds an instance twice, its commits follow one another by version, and every commit id is new."""
    handlers = registry(a=nothing, b=nothing)
    async with opened(faulty, clock, serving("a", "b"), handlers=handlers) as engine:
        for _ in range(20):
            await engine.start("order")
        await parked(engine)
    versions: dict[str, int] = {}
    for batch in faulty.batches:
        assert len({item.instance_id for item in batch}) == len(batch)
        for item in batch:
            assert item.expected == versions.get(item.instance_id, 0)
            versions[item.instance_id] = item.expected + 1
    ids = list(faulty.committed_ids())
    assert len(set(ids)) == len(ids)


# ------------------------------------------------------------------ a store that fails


async def test_failing_commit_is_sent_again(
    faulty: FaultyStore, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A commit that fails is sent again as it was captured, whatever happened since: same ids, same bytes."""
    handlers = registry(a=nothing)
    async with opened(faulty, clock, serving("a"), sleeping(), handlers=handlers) as engine:
        faulty.failures = 3
        instance = await engine.start("order", {"n": 1})
        await instance.wait()
        assert faulty.batches[0] == faulty.batches[1] == faulty.batches[2] == faulty.batches[3]
        assert faulty.batches[4] != faulty.batches[3]
    assert caplog.text.count("the disk is full") == 3


@pytest.mark.parametrize("at", range(1, 5))
async def test_lost_answer(faulty: FaultyStore, clock: VirtualClock, at: int) -> None:
    """A commit that was stored while its answer was lost is known by its id: no conflict, no step twice."""
    gate = Gate({"done": True})
    gate.let.set()
    numbers = iter(range(1, 100))

    async def loses(batch: Sequence[Item]) -> None:
        if next(numbers) == at:
            faulty.lost = 1

    faulty.before = loses
    async with opened(faulty, clock, serving("a", "b"), handlers=registry(a=gate, b=nothing)) as engine:
        instance = await engine.start("order")
        assert (await instance.wait()).variables == {"done": True}
        await parked(engine)
        assert len(gate.keys) == 1
        assert faulty.batches[at - 1] == faulty.batches[at] if len(faulty.batches) > at else at > 3


async def test_store_is_away_for_a_while(faulty: FaultyStore, clock: VirtualClock) -> None:
    """While the store is away running steps go on, nothing new starts, and all ends well when it is back."""
    first, second = Gate(), Gate()
    second.let.set()
    async with opened(faulty, clock, serving("a", "b"), handlers=registry(a=first, b=second)) as engine:
        instance = await engine.start("order")
        await first.entered.wait()
        faulty.failures = 10_000
        first.let.set()
        await trio.sleep(600)
        assert (first.log, second.log) == (["entered", "done"], [])
        faulty.failures = 0
        assert (await instance.wait()).status is Status.COMPLETED


# ------------------------------------------------------------------ a store that says no


async def _stolen(faulty: FaultyStore, instance_id: str) -> None:
    """Another incarnation takes the instance's row, as after an expired lease."""
    group = faulty.inner._data
    row = group._rows[instance_id]
    row.record_version += 1
    row.commit_id = "of somebody else"


async def test_conflict_drops_one_instance(faulty: FaultyStore, clock: VirtualClock) -> None:
    """A conflict drops that instance alone: its steps are cancelled, its callers get OwnershipLost, its neighbour
    goes on.
    """
    gates = {"i-1": Gate(), "i-2": Gate()}

    async def work(work: Work) -> None:
        await gates[work.instance_id](work)

    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("work").end("e1")
    fork.user("ask").end("e2")
    async with opened(faulty, clock, built.build(), handlers=registry(work=work)) as engine:
        instances = [await engine.start("p", instance_id=instance_id) for instance_id in gates]
        for gate in gates.values():
            await gate.entered.wait()
        await trio.sleep(1)
        (row,) = await engine.tasks.query(instance_id="i-1")
        await _stolen(faulty, "i-1")
        with pytest.raises(OwnershipLost, match="'i-1'"):
            await engine.tasks.complete(row.id)
        await trio.sleep(1)
        assert "cancelled" in gates["i-1"].log
        assert gates["i-2"].log == ["entered"]
        (other,) = await engine.tasks.query(instance_id="i-2")
        await engine.tasks.complete(other.id)
        gates["i-2"].let.set()
        assert (await instances[1].wait()).status is Status.COMPLETED


async def test_fenced_engine(clock: VirtualClock) -> None:
    """When another incarnation of its id has taken over, whoever acts is told that it was not stored."""
    shared = MemoryStore(clock=clock, recording=True)
    faulty = FaultyStore(shared.another())
    async with opened(faulty, clock, asking()) as engine:
        instance = await engine.start("asker")
        await parked(engine)
        (row,) = await engine.tasks.query()
        faulty.gate = trio.Event()
        errors: list[BaseException] = []

        async def completes() -> None:
            try:
                await engine.tasks.complete(row.id)
            except trioflow.TrioflowError as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(completes)
            await trio.sleep(1)
            faulty.inner.abandon()
            zombie_survivor = shared.another()
            await zombie_survivor.open(group="main", engine_id="main")
            faulty.gate.set()
        assert [type(error) for error in errors] == [OwnershipLost]
        assert (await zombie_survivor.head(instance.id)).status is Status.ACTIVE  # type: ignore[union-attr]
        await zombie_survivor.close()


# ------------------------------------------------------------------ shutting down


async def test_shutdown_while_a_commit_is_in_flight(faulty: FaultyStore, clock: VirtualClock) -> None:
    """An engine that is left while a commit is under way waits for its answer, and its callers are answered."""
    started: list[bool] = []
    faulty.gate = trio.Event()

    async def starts(engine: Engine) -> None:
        started.append((await engine.start("sleeper")).created)

    async def answers(gate: trio.Event) -> None:
        await trio.sleep(2)
        gate.set()

    async with trio.open_nursery() as nursery, opened(faulty, clock, sleeping()) as engine:
        nursery.start_soon(starts, engine)
        nursery.start_soon(answers, faulty.gate)
        await trio.sleep(1)
    assert started == [True]


async def test_shutdown_over_a_dead_store(faulty: FaultyStore, clock: VirtualClock) -> None:
    """An engine whose store never answers again closes all the same, and nobody who waits for it hangs."""
    errors: list[BaseException] = []

    async def asks(call: object) -> None:
        try:
            await call  # type: ignore[misc]  # a coroutine
        except trioflow.TrioflowError as error:
            errors.append(error)

    with trio.fail_after(120):
        async with trio.open_nursery() as nursery, opened(faulty, clock, sleeping(), asking()) as engine:
            await engine.start("asker")
            await parked(engine)
            (row,) = await engine.tasks.query()
            faulty.failures = 10_000
            nursery.start_soon(asks, engine.start("sleeper"))
            nursery.start_soon(asks, engine.tasks.complete(row.id))
            nursery.start_soon(asks, engine.instance(row.instance_id).wait())
            await trio.sleep(1)
    assert len(errors) == 3
    assert {type(error) for error in errors} <= {EngineClosed, OwnershipLost}
