"""After a crash: every state is taken up again; one bad record harms nobody else; bugs of the engine lose one act."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
import pytest
import trio

import trioflow
from tests.runtime.support import Gate, crashed, opened, parked, receiving, registry, serving
from trioflow import InstanceStalled, ProcessBuilder, Status, Work
from trioflow.errors import InstanceNotLoadable, TrioflowError
from trioflow.model.builder import message, timer
from trioflow.stores.memory import MemoryStore
from trioflow.testing import VirtualClock


async def nothing(work: Work) -> None:
    """A handler that does nothing."""


# ------------------------------------------------------------------ crashes


async def test_running_step_is_entered_again(memory: MemoryStore, clock: VirtualClock) -> None:
    """A step that ran when the engine died runs again under its key, as the same attempt; a step before it does not."""
    first, second = Gate({"n": 1}), Gate()
    first.let.set()
    handlers = registry(a=first, b=second)
    async with crashed(memory, clock, serving("a", "b"), handlers=handlers) as engine:
        await engine.start("order", instance_id="i")
        await second.entered.wait()
    second.let.set()
    async with opened(memory.another(), clock, handlers=handlers) as engine, engine.observe() as facts:
        outcome = await engine.instance("i").wait()
        assert (outcome.status, outcome.variables) == (Status.COMPLETED, {"n": 1})
        assert engine.recovery.counts["resumed"] == 1
        kinds = [(await anext(facts)).kind for _ in range(2)]
        assert kinds == ["instance-hydrated", "activity-reentered"]
    assert (first.keys, second.keys) == (["i/a/1"], ["i/b/1", "i/b/1"])
    assert second.attempts == [1, 1]


async def test_every_kind_of_wait(memory: MemoryStore, clock: VirtualClock) -> None:
    """One instance that runs, waits for a timer, a message, a person, a retry and a join goes on in all its
    branches.
    """
    gate = Gate()
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    join = fork.service("runs").parallel("join")
    fork.catch("t", on=timer(duration="PT10M")).to("join")
    fork.catch("m", on=message("paid")).to("join")
    fork.user("u").to("join")
    fork.service("flaky").to("join")
    fork.script("x", "x = 1").to("join")
    host = fork.subprocess("sub")
    with host as inside:
        inside.start("s2").service("inner", handler="runs").end("e2")
    host.to("join")
    join.end("e")
    tries: list[int] = []
    handlers = trioflow.Handlers()
    handlers.task("runs", gate)

    @handlers.task("flaky", retry=trioflow.Retry(attempts=2, delay=120))
    async def flaky(work: Work) -> None:
        tries.append(work.attempt)
        if work.attempt == 1:
            raise ValueError("again")

    began = trio.current_time()
    async with crashed(memory, clock, built.build(), handlers=handlers) as engine:
        await engine.start("p", instance_id="i")
        await trio.sleep(60)
    gate.let.set()
    async with opened(memory.another(), clock, handlers=handlers) as engine:
        await trio.sleep(1)
        instance = engine.instance("i")
        assert sorted({token.node for token in await instance.tokens()}) == ["flaky", "join", "m", "t", "u"]
        await engine.send_message("paid")
        (row,) = await engine.tasks.query()
        await engine.tasks.complete(row.id)
        assert (await instance.wait()).variables == {"x": 1}
    assert tries == [1, 2]
    assert sorted(gate.keys) == ["i/runs/1", "i/runs/1", "i/sub.1/inner/1", "i/sub.1/inner/1"]
    assert trio.current_time() - began == pytest.approx(600, abs=2)


async def test_parked_ones_are_not_touched(memory: MemoryStore, clock: VirtualClock) -> None:
    """What was parked at the crash is left alone until something wakes it."""
    async with crashed(memory, clock, receiving()) as engine:
        instance = await engine.start("receiver")
        await parked(engine)
    async with opened(memory.another(), clock) as engine:
        await trio.sleep(1)
        assert (engine.recovery.counts.total(), engine.statistics().resident) == (0, 0)
        assert (await engine.send_message("paid")).instance_id == instance.id


async def test_crash_before_the_start_is_stored(memory: MemoryStore, clock: VirtualClock) -> None:
    """A start whose commit never got there left nothing, and can be repeated under its id."""
    ran: list[str] = []

    async def a(work: Work) -> None:
        ran.append(work.instance_id)

    handlers = registry(a=a)
    async with trio.open_nursery() as nursery:

        async def starts(engine: trioflow.Engine) -> None:
            with pytest.raises(TrioflowError):
                await engine.start("order", instance_id="i")

        async with crashed(memory, clock, serving("a"), handlers=handlers) as engine:
            engine._shell.store.gate = trio.Event()  # type: ignore[attr-defined]  # the faulty store
            nursery.start_soon(starts, engine)
            await trio.sleep(1)
            engine._shell.store.gate.set()  # type: ignore[attr-defined]
            engine._shell.store.cut()  # type: ignore[attr-defined]
    assert ran == []
    async with opened(memory.another(), clock, handlers=handlers) as engine:
        assert await engine.instances() == ()
        again = await engine.start("order", instance_id="i")
        assert again.created
        assert (await again.wait()).status is Status.COMPLETED
    assert ran == ["i"]


async def test_step_that_kills_the_process(memory: MemoryStore, clock: VirtualClock) -> None:
    """A step that is entered again five times without ever reporting is an incident at the sixth; a retry runs it
    again.
    """
    gate = Gate()
    handlers = registry(a=gate)
    async with crashed(memory, clock, serving("a"), handlers=handlers) as engine:
        await engine.start("order", instance_id="i")
        await gate.entered.wait()
    for _ in range(5):
        gate.entered = trio.Event()
        async with crashed(memory, clock, handlers=handlers):
            await gate.entered.wait()
    assert gate.keys == ["i/a/1"] * 6
    async with opened(memory.another(), clock, handlers=handlers) as engine:
        with pytest.raises(InstanceStalled) as stalled:
            await engine.instance("i").wait()
        (incident,) = stalled.value.incidents
        assert (incident.kind.value, incident.node) == ("crashed", "a")
        gate.let.set()
        await engine.incidents.retry("i", incident.id)
        assert (await engine.instance("i").wait()).status is Status.COMPLETED


async def test_graceful_ends_do_not_count(memory: MemoryStore, clock: VirtualClock) -> None:
    """Ten shutdowns in the middle of one step are no crashes: it is never an incident."""
    gate = Gate()
    async with opened(memory.another(), clock, serving("a"), handlers=registry(a=gate), grace=0) as engine:
        await engine.start("order", instance_id="i")
        await gate.entered.wait()
    for _ in range(10):
        gate.entered = trio.Event()
        async with opened(memory.another(), clock, handlers=registry(a=gate), grace=0):
            await gate.entered.wait()
    gate.let.set()
    async with opened(memory.another(), clock, handlers=registry(a=gate)) as engine:
        assert (await engine.instance("i").wait()).status is Status.COMPLETED
    assert set(gate.keys) == {"i/a/1"}


async def test_many_orphans(memory: MemoryStore, clock: VirtualClock) -> None:
    """Five hundred instances whose steps run long are all taken up, none waits for another to end."""
    started: set[str] = set()
    everybody = trio.Event()

    async def a(work: Work) -> None:
        started.add(work.instance_id)
        if len(started) == 500:
            everybody.set()
        await everybody.wait()

    async def blocks(work: Work) -> None:
        await trio.sleep_forever()

    async with crashed(memory, clock, serving("a"), handlers=registry(a=blocks)) as engine:
        for number in range(500):
            await engine.start("order", instance_id=f"i{number}")
    async with opened(memory.another(), clock, handlers=registry(a=a)) as engine:
        with trio.fail_after(10):
            await everybody.wait()
        for instance_id in started:
            assert (await engine.instance(instance_id).wait()).status is Status.COMPLETED
        assert engine.recovery.counts["resumed"] == 500
        assert len(engine.recovery.first["resumed"]) == 100


async def test_message_between_crash_and_recovery(memory: MemoryStore, clock: VirtualClock) -> None:
    """A message that was assigned when the engine died is delivered by the next one, once."""
    built = ProcessBuilder("p")
    built.start("s").catch("one", on=message("paid")).catch("two", on=message("paid")).end("e")
    async with trio.open_nursery() as nursery, crashed(memory, clock, built.build()) as engine:
        await engine.start("p", instance_id="i")
        await parked(engine)

        async def sends() -> None:
            with pytest.raises(TrioflowError):  # its store is gone: safe to repeat with the id
                await engine.send_message("paid", message_id="m", payload={"n": 1})

        engine._shell.store.gate = trio.Event()  # type: ignore[attr-defined]  # the faulty store
        nursery.start_soon(sends)
        await trio.sleep(1)
        engine._shell.store.cut()  # type: ignore[attr-defined]
        engine._shell.store.gate.set()  # type: ignore[attr-defined]
    async with opened(memory.another(), clock) as engine:
        await trio.sleep(31)
        assert [token.node for token in await engine.instance("i").tokens()] == ["two"]
        assert (await engine.send_message("paid", message_id="m")).duplicate
        assert [token.node for token in await engine.instance("i").tokens()] == ["two"]
        assert (await engine.send_message("paid")).instance_id == "i"


async def test_clock_that_ran_on(memory: MemoryStore, clock: VirtualClock) -> None:
    """Times in the records are the store's: an instance's *created* and *updated* follow its clock over a restart."""
    before = clock.now()
    async with opened(memory.another(), clock, receiving()) as engine:
        instance = await engine.start("receiver")
    clock.jump(86_400)
    async with opened(memory.another(), clock) as engine:
        await engine.send_message("paid")
        await engine.instance(instance.id).wait()
        (head,) = await engine.instances()
        assert (head.created, head.updated) == (before, before + timedelta(days=1))


# ------------------------------------------------------------------ bad records


def _row(memory: MemoryStore, instance_id: str) -> Any:
    (group,) = memory._shared.groups.values()
    return group._rows[instance_id]


def _corrupt(memory: MemoryStore, instance_id: str) -> None:
    _row(memory, instance_id).pieces = b'{"nonsense"'


def _drift(memory: MemoryStore, instance_id: str) -> None:
    row = _row(memory, instance_id)
    row.new = attrs.evolve(row.new, digest="000000000000")


def _unknown(memory: MemoryStore, instance_id: str) -> None:
    row = _row(memory, instance_id)
    row.new = attrs.evolve(row.new, version=99)


@pytest.mark.parametrize("harm, kind", [(_corrupt, "failed"), (_drift, "drifted"), (_unknown, "unknown definition")])
async def test_one_bad_record(
    memory: MemoryStore, clock: VirtualClock, harm: Callable[[MemoryStore, str], None], kind: str
) -> None:
    """One record among ten that cannot be loaded: nine go on, it is listed with its reason, its pieces are
    untouched.
    """
    gate = Gate()
    async with crashed(memory, clock, serving("a"), handlers=registry(a=gate)) as engine:
        for number in range(10):
            await engine.start("order", instance_id=f"i{number}")
        await trio.sleep(1)
    harm(memory, "i4")
    pieces = _row(memory, "i4").pieces
    gate.let.set()
    async with opened(memory.another(), clock, handlers=registry(a=gate)) as engine:
        for number in range(10):
            if number != 4:
                assert (await engine.instance(f"i{number}").wait()).status is Status.COMPLETED
        await trio.sleep(0.5)
        assert engine.recovery.counts[kind] == 1
        assert engine.recovery.counts["resumed"] == 9
        assert list(engine.recovery.first[kind]) == ["i4"]
        assert engine.recovery.first[kind]["i4"]
        if kind != "unknown definition":
            (head,) = await engine.instances(not_resumed=True)
            assert head.instance_id == "i4"
        with pytest.raises(TrioflowError, match="i4"):
            await engine.instance("i4").cancel()
        assert _row(memory, "i4").pieces == pieces


async def test_corrupt_record_is_quarantined(memory: MemoryStore, clock: VirtualClock) -> None:
    """A record that cannot be read is tried five times with growing delays, then no more, until an operator asks."""
    gate = Gate()
    async with crashed(memory, clock, serving("a"), handlers=registry(a=gate)) as engine:
        await engine.start("order", instance_id="i")
        await gate.entered.wait()
    good = _row(memory, "i").pieces
    _corrupt(memory, "i")
    gate.let.set()
    async with opened(memory.another(), clock, handlers=registry(a=gate)) as engine:
        await trio.sleep(3_600)
        (head,) = await engine.instances(not_resumed=True)
        assert (head.failures, head.retry_at) == (5, None)
        assert (engine.recovery.counts["failed"], engine.recovery.counts["quarantined"]) == (4, 1)
        with pytest.raises(InstanceNotLoadable, match="'i'"):
            await engine.instance("i").cancel()
        with pytest.raises(TrioflowError):
            await engine.incidents.load_again("i")
    async with opened(memory.another(), clock, handlers=registry(a=gate)) as engine:
        await trio.sleep(100)
        assert len(gate.keys) == 1, "a restart does not try what is quarantined"
        _row(memory, "i").pieces = good
        await engine.incidents.load_again("i")
        assert (await engine.instance("i").wait()).status is Status.COMPLETED
