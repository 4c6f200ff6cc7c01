"""Timers: the order of deadlines, the window over the store, and long waits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
import trio

from tests.runtime.support import Gate, opened, parked, registry, sleeping
from trioflow import Engine, Fact, Handlers, InstanceStalled, ProcessBuilder, Retry, Status, Work
from trioflow.model import Definitions
from trioflow.model.builder import timer
from trioflow.runtime.observers import Observation
from trioflow.runtime.timing import WINDOW
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


def _at() -> Definitions:
    """Waits for the moment in the variable ``at``, then says so."""
    built = ProcessBuilder("p")
    built.start("s").catch("t", on=timer(date="at")).service("say").end("e")
    return built.build()


class Sayer:
    """A handler that notes who came when, in seconds since it was made."""

    def __init__(self) -> None:
        self.began = trio.current_time()
        self.heard: list[tuple[str, float]] = []

    async def __call__(self, work: Work) -> None:
        """Note it."""
        self.heard.append((work.instance_id, trio.current_time() - self.began))


async def _all_end(engine: Engine, ids: list[str]) -> None:
    for instance_id in ids:
        assert (await engine.instance(instance_id).wait()).status is Status.COMPLETED


async def test_fires_at_its_deadline(store: Store, clock: VirtualClock) -> None:
    """A duration ends when it is over: neither before, nor at the next look at the store."""
    async with opened(store, clock, sleeping(duration="PT100S")) as engine:
        began = trio.current_time()
        await (await engine.start("sleeper")).wait()
        assert trio.current_time() - began == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize("text", ["2020-02-29T12:00:00Z", "PT0S"])
async def test_past(store: Store, clock: VirtualClock, text: str) -> None:
    """A date that is past, and a duration of nothing, fire at once."""
    definitions = sleeping(duration=text) if text.startswith("P") else sleeping(duration=None, date=text)
    async with opened(store, clock, definitions) as engine:
        began = trio.current_time()
        await (await engine.start("sleeper")).wait()
        assert trio.current_time() - began < 0.1


async def test_order(store: Store, clock: VirtualClock) -> None:
    """Timers fire in the order of their deadlines, whatever the order of arming; an earlier one is not held up by
    the heap.
    """
    sayer = Sayer()
    delays = [50, 10, 70, 5, 29, 31, 30, 120, 1, 60]
    async with opened(store, clock, _at(), handlers=registry(say=sayer)) as engine:
        now = clock.now()
        for delay in delays:
            at = now + timedelta(seconds=delay)
            await engine.start("p", {"at": at}, instance_id=f"d{delay}")
        await _all_end(engine, [f"d{delay}" for delay in delays])
    assert [who for who, _ in sayer.heard] == [f"d{delay}" for delay in sorted(delays)]
    assert [when for _, when in sayer.heard] == pytest.approx(sorted(delays), abs=0.2)


async def test_armed_earlier_than_the_first(store: Store, clock: VirtualClock) -> None:
    """While the timer task sleeps till a deadline, one is armed that is due before: it fires in time."""
    sayer = Sayer()
    async with opened(store, clock, _at(), handlers=registry(say=sayer)) as engine:
        now = clock.now()
        await engine.start("p", {"at": now + timedelta(seconds=20)}, instance_id="late")
        await parked(engine)
        await trio.sleep(3)
        await engine.start("p", {"at": now + timedelta(seconds=8)}, instance_id="early")
        await _all_end(engine, ["late", "early"])
    assert [who for who, _ in sayer.heard] == ["early", "late"]
    assert [when for _, when in sayer.heard] == pytest.approx([8, 20], abs=0.1)


@pytest.mark.parametrize("delay", [29.9, 30, 30.1, 59.9, 60, 60.1, 89, 90, 91])
async def test_around_the_window(store: Store, clock: VirtualClock, delay: float) -> None:
    """Deadlines just inside, at and behind the thirty seconds that are read ahead are met, also when armed in
    mid-window.
    """
    sayer = Sayer()
    async with opened(store, clock, _at(), handlers=registry(say=sayer)) as engine:
        await trio.sleep(13)
        at = clock.now() + timedelta(seconds=delay)
        await engine.start("p", {"at": at}, instance_id="i")
        await _all_end(engine, ["i"])
    ((who, when),) = sayer.heard
    assert who == "i"
    assert when == pytest.approx(13 + delay, abs=0.2)


async def test_many_at_one_deadline(store: Store, clock: VirtualClock) -> None:
    """More timers than a window holds, all due at one moment, all fire then, none twice."""
    sayer = Sayer()
    count = WINDOW + 200
    ids = [f"i{number:04}" for number in range(count)]
    async with opened(store, clock, _at(), handlers=registry(say=sayer)) as engine:
        at = clock.now() + timedelta(seconds=100)
        async with trio.open_nursery() as nursery:
            for instance_id in ids:
                nursery.start_soon(_start, engine, instance_id, at)
        await _all_end(engine, ids)
    assert sorted(who for who, _ in sayer.heard) == ids
    assert max(when for _, when in sayer.heard) - min(when for _, when in sayer.heard) < 2


async def _start(engine: Engine, instance_id: str, at: datetime) -> None:
    await engine.start("p", {"at": at}, instance_id=instance_id)


async def test_many_while_many_run(clock: VirtualClock) -> None:
    """More instances at work than a window holds do not keep the timers of others from firing."""
    sayer, gate = Sayer(), Gate()
    built = ProcessBuilder("busy")
    built.start("s").service("work").end("e")
    count = WINDOW + 100
    memory = MemoryStore(clock=clock)
    async with opened(memory, clock, _at(), built.build(), handlers=registry(say=sayer, work=gate)) as engine:
        at = clock.now() + timedelta(seconds=100)
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(_start, engine, f"i{number:04}", at)
        for _ in range(count):
            await engine.start("busy")
        with trio.move_on_after(300):
            await _all_end(engine, [f"i{number:04}" for number in range(count)])
        assert len(sayer.heard) == count
        assert max(when for _, when in sayer.heard) < 110
        gate.let.set()


async def test_forty_days(store: Store, clock: VirtualClock) -> None:
    """A sleep of forty days, passed in one jump (the machine slept): the timer fires once, at once, late."""
    async with opened(store, clock, sleeping(duration="P40D")) as engine:
        instance = await engine.start("sleeper")
        await parked(engine)
        async with engine.observe() as facts:
            clock.jump(40 * 86_400 + 5)
            outcome = await instance.wait()
            assert outcome.status is Status.COMPLETED
            fired = [fact async for fact in _until_end(facts) if fact.kind == "timer-fired"]
        assert [fact.details["late_seconds"] for fact in fired] == [pytest.approx(5, abs=1)]


async def _until_end(facts: Observation) -> AsyncIterator[Fact]:
    async for fact in facts:
        yield fact
        if fact.kind == "instance-completed":
            return


async def test_over_a_restart(durable: Store, clock: VirtualClock) -> None:
    """A deadline is absolute: what is due while no engine runs fires when one opens, what is not due yet at its
    time.
    """
    began = trio.current_time()
    async with opened(durable, clock, _at(), handlers=registry(say=Sayer())) as engine:
        for delay in (50, 200):
            at = clock.now() + timedelta(seconds=delay)
            await engine.start("p", {"at": at}, instance_id=f"d{delay}")
    await trio.sleep(100)
    sayer = Sayer()
    async with opened(durable, clock, handlers=registry(say=sayer)) as engine:
        await _all_end(engine, ["d50", "d200"])
    assert [who for who, _ in sayer.heard] == ["d50", "d200"]
    assert sayer.heard[0][1] == pytest.approx(0, abs=0.5)
    assert trio.current_time() - began == pytest.approx(200, abs=1)


async def test_retry_waits_and_timers_share_the_heap(store: Store, clock: VirtualClock) -> None:
    """A retry that waits is a deadline among the others, and fires in its order."""
    heard: list[tuple[str, int]] = []
    handlers = Handlers()

    @handlers.task("say", retry=Retry(attempts=3, delay=20, backoff=1))
    async def say(work: Work) -> None:
        heard.append((work.instance_id, round(trio.current_time() - began)))
        if work.instance_id == "fails":
            raise ValueError("again")

    began = trio.current_time()
    async with opened(store, clock, _at(), handlers=handlers) as engine:
        now = clock.now()
        await engine.start("p", {"at": now}, instance_id="fails")
        for delay in (10, 30):
            await engine.start("p", {"at": now + timedelta(seconds=delay)}, instance_id=f"d{delay}")
        with pytest.raises(InstanceStalled):
            await engine.instance("fails").wait()
    assert heard == [("fails", 0), ("d10", 10), ("fails", 20), ("d30", 30), ("fails", 40)]


async def test_timer_that_cannot_be_armed(store: Store, clock: VirtualClock) -> None:
    """A deadline that is no moment is an incident that shows it; with another value a retry arms it."""
    async with opened(store, clock, _at(), handlers=registry(say=Sayer())) as engine:
        instance = await engine.start("p", {"at": "tomorrow"})
        with pytest.raises(InstanceStalled, match=r"timer .at. cannot be armed") as stalled:
            await instance.wait()
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        await engine.incidents.retry(instance.id, stalled.value.incidents[0].id, variables={"at": moment})
        assert (await instance.wait()).status is Status.COMPLETED
