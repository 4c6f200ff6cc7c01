"""Parking and coming back: what waits costs nothing, and no trigger is lost while an instance leaves."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import cast

import pytest
import trio
import trio.testing

from tests.runtime.support import (
    FaultyStore,
    Gate,
    asking,
    opened,
    parked,
    receiving,
    registry,
    serving,
    sleeping,
    until,
)
from trioflow import Engine, Handlers, InstanceStalled, ProcessBuilder, Status, Work
from trioflow.machine.events import TimerDue
from trioflow.model import Definitions
from trioflow.model.builder import message, timer
from trioflow.runtime.acts import Act
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock

# ------------------------------------------------------------------ what parking costs


async def test_no_task_lives_while_parked(store: Store, clock: VirtualClock) -> None:
    """An engine with one parked instance has as many tasks as one without any."""
    async with opened(store, clock, receiving()) as engine:
        await trio.sleep(0.001)
        before = trio.lowlevel.current_statistics().tasks_living
        instance = await engine.start("receiver")
        await parked(engine)
        await trio.lowlevel.checkpoint()
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert await instance.status() is Status.ACTIVE
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_a_thousand_parked_cost_no_task(store: Store, clock: VirtualClock) -> None:
    """A thousand parked instances with timers, messages and user tasks cost no task; any of them comes back alone."""
    deploy = (receiving(key="n"), sleeping(duration="P1D"), asking())
    async with opened(store, clock, *deploy) as engine:
        await trio.sleep(0.001)
        before = trio.lowlevel.current_statistics().tasks_living
        async with trio.open_nursery() as nursery:
            for number in range(334):
                for key in ("receiver", "sleeper", "asker"):
                    nursery.start_soon(_start, engine, key, number)
        await parked(engine)
        await trio.lowlevel.checkpoint()
        assert trio.lowlevel.current_statistics().tasks_living == before
        outcome = await engine.send_message("paid", key=211)
        assert (outcome.state, outcome.instance_id) == ("consumed", "receiver-211")
        assert (await engine.instance("receiver-211").wait()).status is Status.COMPLETED


async def _start(engine: Engine, key: str, number: int) -> None:
    await engine.start(key, {"n": number}, instance_id=f"{key}-{number}")


async def test_step_of_a_running_branch_keeps_it_resident(store: Store, clock: VirtualClock) -> None:
    """An instance parks when all of its tokens do: while one branch runs a handler, a message moves the other."""
    gate = Gate()
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("work").catch("first", on=message("first")).end("e1")
    fork.catch("second", on=message("second")).end("e2")
    async with opened(store, clock, built.build(), handlers=registry(work=gate)) as engine:
        instance = await engine.start("p")
        await gate.entered.wait()
        await trio.sleep(1)
        assert engine.statistics().resident == 1
        assert (await engine.send_message("second")).state == "consumed"
        assert [token.node for token in await instance.tokens()] == ["work"]
        gate.let.set()
        await parked(engine)
        assert (await engine.send_message("first")).state == "consumed"
        assert (await instance.wait()).status is Status.COMPLETED


# ------------------------------------------------------------------ what brings it back


async def _by_message(engine: Engine, instance_id: str) -> None:
    assert (await engine.send_message("paid")).instance_id == instance_id


async def _by_task(engine: Engine, instance_id: str) -> None:
    (row,) = await engine.tasks.query(instance_id=instance_id)
    await engine.tasks.complete(row.id)


async def _by_timer(engine: Engine, instance_id: str) -> None:
    await trio.sleep(3600)


async def _by_cancel(engine: Engine, instance_id: str) -> None:
    assert (await engine.instance(instance_id).cancel()).status is Status.TERMINATED


@pytest.mark.parametrize(
    "definitions, trigger, ends",
    [
        (receiving(), _by_message, Status.COMPLETED),
        (asking(), _by_task, Status.COMPLETED),
        (sleeping(), _by_timer, Status.COMPLETED),
        (sleeping(), _by_cancel, Status.TERMINATED),
    ],
    ids=["message", "task", "timer", "cancel"],
)
async def test_hydration(
    store: Store,
    clock: VirtualClock,
    definitions: Definitions,
    trigger: Callable[[Engine, str], Awaitable[None]],
    ends: Status,
) -> None:
    """A parked instance is brought back by what it waits for, with its variables, and says so in a fact."""
    key = next(iter(definitions.processes)).id
    async with opened(store, clock, definitions) as engine:
        values = {"n": 1, "list": [1, {"deep": None}], "when": datetime(2026, 5, 1, tzinfo=UTC)}
        instance = await engine.start(key, values, business_key="b")
        await parked(engine)
        async with engine.observe() as facts:
            await trigger(engine, instance.id)
            outcome = await instance.wait()
            async for fact in facts:
                if fact.kind == "instance-hydrated":
                    break
        assert (outcome.status, outcome.variables) == (ends, values)


# ------------------------------------------------------------------ races

RACES = {"volatile": 2_500, "recording": 2_500}
"""For each of two models: 10,000 in all."""
AT_ONCE = 25
LONGEST = 5.0
"""Virtual seconds for all of a test's races, which take none: the poll, every thirty, must not be what helps."""
SPREAD = 40
"""Scheduling points over which a trigger is spread: more than a start, its step and its parking take together."""


def _store(kind: str, clock: VirtualClock) -> MemoryStore:
    return MemoryStore(clock=clock, recording=kind == "recording")


def _racing(seed: int) -> tuple[random.Random, Handlers]:
    source = random.Random(seed)
    handlers = Handlers()

    @handlers.task("work")
    async def work(work: Work) -> None:
        for _ in range(source.randrange(3)):
            await trio.lowlevel.checkpoint()

    return source, handlers


async def _points(count: int) -> None:
    for _ in range(count):
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("kind", RACES)
async def test_message_against_parking(clock: VirtualClock, kind: str) -> None:
    """10,000 races of a trigger against parking lose no wake-up, first half: a message sent at every point around a
    start, its step and its first parking, before (it is buffered) and after.
    """
    source, handlers = _racing(1)
    states: set[str] = set()

    async def waits(engine: Engine, key: int) -> None:
        await (await engine.start("receiver", {"id": key})).wait()

    async def sends(engine: Engine, key: int, points: int) -> None:
        await _points(points)
        states.add((await engine.send_message("paid", key=key)).state)

    async with opened(_store(kind, clock), clock, receiving(first="work", key="id"), handlers=handlers) as engine:
        with trio.fail_after(LONGEST):
            for first in range(0, RACES[kind], AT_ONCE):
                async with trio.open_nursery() as nursery:
                    for key in range(first, first + AT_ONCE):
                        nursery.start_soon(waits, engine, key)
                        nursery.start_soon(sends, engine, key, (key + source.randrange(3)) % SPREAD)
        assert states >= {"buffered", "consumed"}


@pytest.mark.parametrize("kind", RACES)
async def test_second_message_against_parking(clock: VirtualClock, kind: str) -> None:
    """10,000 races of a trigger against parking lose no wake-up, second half: a parked instance is woken by one
    message, and the next one comes at every point of its way in, its step, and its way out again.
    """
    source, handlers = _racing(2)
    built = ProcessBuilder("twice")
    built.start("s").catch("one", on=message("one", key="id")).service("work").catch(
        "two", on=message("two", key="id")
    ).end("e")

    async def races(engine: Engine, key: int, points: int) -> None:
        instance = await engine.start("twice", {"id": key})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sends, engine, "one", key, 0)
            nursery.start_soon(sends, engine, "two", key, points)
        await instance.wait()

    async def sends(engine: Engine, name: str, key: int, points: int) -> None:
        await _points(points)
        await engine.send_message(name, key=key)

    async with opened(_store(kind, clock), clock, built.build(), handlers=handlers) as engine:
        with trio.fail_after(LONGEST):
            for first in range(0, RACES[kind], AT_ONCE):
                async with trio.open_nursery() as nursery:
                    for key in range(first, first + AT_ONCE):
                        nursery.start_soon(races, engine, key, (key + source.randrange(3)) % SPREAD)


@pytest.mark.parametrize("kind", RACES)
async def test_callers_against_parking(clock: VirtualClock, kind: str) -> None:
    """500 times, questions and a task's completion race with each other and with parking: everybody is answered."""
    source, handlers = _racing(3)
    built = ProcessBuilder("asks")
    built.start("s").service("work").user("ask").service("work_2", handler="work").end("e")
    answers: list[str] = []

    async def looks(engine: Engine, instance_id: str, points: int) -> None:
        await _points(points)
        answers.append((await engine.instance(instance_id).status()).value)

    async def completes(engine: Engine, instance_id: str, points: int) -> None:
        await _points(points)
        for row in await engine.tasks.query(instance_id=instance_id):
            await engine.tasks.complete(row.id)

    async with opened(_store(kind, clock), clock, built.build(), handlers=handlers) as engine:
        with trio.fail_after(LONGEST):
            for number in range(500):
                instance = await engine.start("asks")
                async with trio.open_nursery() as nursery:
                    for _ in range(3):
                        nursery.start_soon(looks, engine, instance.id, source.randrange(SPREAD))
                    nursery.start_soon(completes, engine, instance.id, source.randrange(SPREAD))
                while not (await instance.status()).is_terminal:
                    await completes(engine, instance.id, 0)
                    await trio.sleep(0.0001)
                assert len(answers) == 3 * (number + 1)
        assert set(answers) <= {"active", "completed"}


@pytest.mark.parametrize("kind", RACES)
async def test_timer_against_parking(clock: VirtualClock, kind: str) -> None:
    """A timer that is due at once, or while its instance parks, fires: none of 500 waits for the next look at the
    store.
    """
    source, handlers = _racing(4)
    built = ProcessBuilder("ticks")
    path = built.start("s").service("work")
    path.catch("tick", on=timer(date="at")).service("work_2", handler="work").catch(
        "tock", on=timer(duration="PT0S")
    ).end("e")
    async with opened(_store(kind, clock), clock, built.build(), handlers=handlers) as engine:
        with trio.fail_after(LONGEST):
            for _ in range(0, 500, AT_ONCE):
                async with trio.open_nursery() as nursery:
                    for _ in range(AT_ONCE):
                        at = clock.now() + timedelta(milliseconds=source.randrange(-2, 3))
                        instance = await engine.start("ticks", {"at": at})
                        nursery.start_soon(instance.wait)


async def test_act_that_comes_while_the_end_is_being_stored(clock: VirtualClock) -> None:
    """Whoever waits for an instance is told of its end, also when something else reaches it while that is stored."""
    faulty = FaultyStore(MemoryStore(clock=clock, recording=True))
    async with opened(cast("Store", faulty), clock, receiving()) as engine:
        instance = await engine.start("receiver")
        await parked(engine)
        statuses: list[Status] = []

        async def waits() -> None:
            statuses.append((await instance.wait()).status)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits)
            nursery.start_soon(partial(engine.send_message, "paid", message_id="m"))
            await until(lambda: engine.statistics().resident == 1)
            faulty.gate = trio.Event()
            await until(lambda: any(item.status is Status.COMPLETED for item in faulty.batches[-1]))
            engine._shell.residents.deliver(instance.id, Act(TimerDue(1, clock.now())))
            faulty.gate.set()
            with trio.fail_after(5):
                await until(lambda: bool(statuses))
        assert statuses == [Status.COMPLETED]


async def test_question_that_comes_while_a_stall_is_being_stored(clock: VirtualClock) -> None:
    """Whoever waits is told that nothing can move the instance, also when somebody asks it something meanwhile."""
    faulty = FaultyStore(MemoryStore(clock=clock, recording=True))

    async def broken(_: Work) -> None:
        raise RuntimeError("out of paper")

    async with opened(cast("Store", faulty), clock, serving("print"), handlers=registry(print=broken)) as engine:
        told: list[Exception] = []

        async def waits() -> None:
            try:
                await instance.wait()
            except InstanceStalled as error:
                told.append(error)

        instance = await engine.start("order", {"n": 1})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits)
            faulty.gate = trio.Event()
            await until(lambda: any(item.has_incidents for item in faulty.batches[-1]))
            nursery.start_soon(instance.status)
            await trio.testing.wait_all_tasks_blocked()
            faulty.gate.set()
            with trio.fail_after(5):
                await until(lambda: bool(told))
