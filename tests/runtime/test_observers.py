"""Facts as observers get them, and what a busy instance does to its callers."""

from __future__ import annotations

import pytest
import trio

import trioflow
from tests.runtime.support import Gate, asking, opened, parked, registry, serving, sleeping
from trioflow import ProcessBuilder, Status, Work
from trioflow.errors import EngineClosed
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


async def nothing(work: Work) -> dict[str, str]:
    """A handler with outputs."""
    return {"secret": "4711"}


async def test_facts_of_a_life(store: Store, clock: VirtualClock) -> None:
    """An observer hears the life of an instance in order, with node and token, and never a variable's value."""
    async with opened(store, clock, serving("a"), handlers=registry(a=nothing)) as engine:
        async with engine.observe() as facts:
            instance = await engine.start("order", {"pin": "0815"})
            seen = []
            async for fact in facts:
                seen.append(fact)
                if fact.kind == "instance-completed":
                    break
        assert [(fact.kind, fact.node_id) for fact in seen if not fact.kind.startswith("token")] == [
            ("instance-active", ""),
            ("node-entered", "s"),
            ("node-entered", "a"),
            ("activity-ready", "a"),
            ("activity-started", "a"),
            ("activity-completing", "a"),
            ("data-written", "a"),
            ("activity-completed", "a"),
            ("node-entered", "e"),
            ("instance-completed", ""),
        ]
        assert {fact.instance_id for fact in seen} == {instance.id}
        assert all(fact.at.tzinfo is not None for fact in seen)
        assert "4711" not in repr(seen)
        assert "0815" not in repr(seen)


async def test_slow_subscriber_loses(store: Store, clock: VirtualClock) -> None:
    """A subscriber that lags more than its buffer loses the newest facts and is told how many; others lose none."""
    async with opened(store, clock, serving("a"), handlers=registry(a=nothing)) as engine:  # noqa: SIM117 - one line would be too long
        async with engine.observe(buffer=3) as slow, engine.observe() as quick:
            await (await engine.start("order")).wait()
            count = 0
            async for fact in quick:
                count += 1
                if fact.kind == "instance-completed":
                    break
            assert quick.lost == 0
            assert slow.lost == count - 3
            assert [(await anext(slow)).kind for _ in range(3)] == ["instance-active", "node-entered", "node-entered"]


async def test_engine_end_closes(store: Store, clock: VirtualClock) -> None:
    """When the engine is left, every subscriber gets what is buffered, and then its iteration ends."""
    seen: list[str] = []

    async def listens(engine: trioflow.Engine, *, task_status: trio.TaskStatus[None]) -> None:
        async with engine.observe() as facts:
            task_status.started()
            async for fact in facts:
                seen.append(fact.kind)  # noqa: PERF401 - what came before the end must be kept

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, opened(store, clock, sleeping()) as engine:
            await nursery.start(listens, engine)
            await engine.start("sleeper")
    assert seen[0] == "instance-active"


async def test_observe_after_the_end(store: Store, clock: VirtualClock) -> None:
    """Who wants to observe an engine that was left is told so, and does not wait for ever."""
    async with opened(store, clock) as engine:
        pass
    with trio.fail_after(1), pytest.raises(EngineClosed):  # noqa: PT012 - the block of the engine is what raises
        async with engine.observe() as facts:
            async for _ in facts:
                pytest.fail("a fact of a closed engine")


async def test_subscriber_that_leaves(store: Store, clock: VirtualClock) -> None:
    """A subscriber that leaves in the middle disturbs nobody."""
    async with opened(store, clock, serving("a"), handlers=registry(a=nothing)) as engine:
        async with engine.observe() as facts:
            instance = await engine.start("order")
            await anext(facts)
        assert (await instance.wait()).status is Status.COMPLETED


# ------------------------------------------------------------------ back-pressure


async def test_callers_of_a_busy_instance_wait(store: Store, clock: VirtualClock) -> None:
    """A thousand callers of one instance are all answered, and no more than the limit stand in its inbox at once."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("a").end("e1")
    for number in range(20):
        fork.user(f"u{number}").end(f"e_u{number}")
    gate = Gate()
    answers: list[Status] = []
    longest = 0
    async with opened(store, clock, built.build(), handlers=registry(a=gate)) as engine:
        instance = await engine.start("p")
        await gate.entered.wait()
        rows = await engine.tasks.query(instance_id=instance.id)

        async def asks() -> None:
            answers.append(await instance.status())

        async with trio.open_nursery() as nursery:
            for _ in range(1_000):
                nursery.start_soon(asks)
            for row in rows:
                nursery.start_soon(engine.tasks.complete, row.id)
            while len(answers) < 1_000:
                host = engine._shell.residents.host(instance.id)
                assert host is not None
                longest = max(longest, len(host._inbox))
                await trio.lowlevel.checkpoint()
        assert answers == [Status.ACTIVE] * 1_000
        assert 0 < longest <= engine._shell.call_limit + 2
        gate.let.set()
        assert (await instance.wait()).status is Status.COMPLETED


async def test_callers_who_give_up(store: Store, clock: VirtualClock) -> None:
    """Callers that are cancelled while they wait for room or for their answer leave no trace; the others are
    answered.
    """
    async with opened(store, clock, asking()) as engine:
        instance = await engine.start("asker")
        await parked(engine)
        answers: list[Status] = []

        async def asks(number: int) -> None:
            with trio.CancelScope() as scope:
                if number % 2:
                    nursery.start_soon(_cancel_after, scope, number % 7)
                answers.append(await instance.status())

        async with trio.open_nursery() as nursery:
            for number in range(300):
                nursery.start_soon(asks, number)
        assert len(answers) >= 150
        (row,) = await engine.tasks.query()
        await engine.tasks.complete(row.id)
        assert (await instance.wait()).status is Status.COMPLETED


async def _cancel_after(scope: trio.CancelScope, points: int) -> None:
    for _ in range(points):
        await trio.lowlevel.checkpoint()
    scope.cancel()
