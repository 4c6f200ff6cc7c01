"""Leaving the engine: in order, in haste, with an error; and what of it the next one finds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio

import trioflow
from tests.runtime.support import Gate, asking, opened, parked, receiving, registry, serving, sleeping
from trioflow import EngineClosed, Handlers, Retry, Status, Work
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


async def test_steps_finish_within_grace(durable: Store, clock: VirtualClock) -> None:
    """A step that ends within the grace is stored; the step behind it does not start any more, and runs later."""
    second = Gate()

    async def first(work: Work) -> dict[str, int]:
        await trio.sleep(5)
        return {"n": 1}

    async with opened(durable, clock, serving("a", "b"), handlers=registry(a=first, b=second), grace=10) as engine:
        instance = await engine.start("order")
        await trio.sleep(1)
    assert second.log == []
    second.let.set()
    again = Gate()
    async with opened(durable, clock, handlers=registry(a=again, b=second)) as engine:
        outcome = await engine.instance(instance.id).wait()
        assert (outcome.status, outcome.variables) == (Status.COMPLETED, {"n": 1})
    assert (again.log, second.keys) == ([], [f"{instance.id}/b/1"])


async def test_others_are_cancelled_and_run_again(durable: Store, clock: VirtualClock) -> None:
    """A step that outlasts the grace is cancelled, is no failure, and runs again under its key; nothing is
    terminated.
    """
    gate = Gate()
    async with opened(durable, clock, serving("a"), handlers=registry(a=gate), grace=3) as engine:
        instance = await engine.start("order")
        await gate.entered.wait()
        left = trio.current_time()
    assert trio.current_time() - left == pytest.approx(3, abs=0.5)
    assert gate.log == ["entered", "cancelled"]
    gate.let.set()
    async with opened(durable, clock, handlers=registry(a=gate)) as engine:
        assert await engine.incidents.query() == ()
        assert (await engine.instance(instance.id).wait()).status is Status.COMPLETED
    assert gate.keys == [f"{instance.id}/a/1"] * 2
    assert gate.attempts == [1, 1]


async def test_intake_is_refused(store: Store, clock: VirtualClock) -> None:
    """While the engine closes, and afterwards, whoever acts gets EngineClosed; nobody waits for ever."""
    errors: dict[str, type[BaseException]] = {}
    closing = trio.Event()

    async def hold(work: Work) -> None:
        closing.set()
        await trio.sleep(5)

    async def tries(engine: trioflow.Engine, task: str) -> None:
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "start": lambda: engine.start("sleeper"),
            "send": lambda: engine.send_message("paid"),
            "complete": lambda: engine.tasks.complete(task),
            "cancel": lambda: engine.instance(task.rpartition("/")[0]).cancel(),
            "wait": lambda: engine.instance(task.rpartition("/")[0]).wait(),
        }
        for name, call in calls.items():
            try:
                await call()
            except EngineClosed as error:
                errors[name] = type(error)

    async with trio.open_nursery() as nursery:  # noqa: SIM117 - one line would be too long
        async with opened(store, clock, serving("hold"), sleeping(), asking(), handlers=registry(hold=hold)) as engine:
            await engine.start("asker")
            await parked(engine)
            (row,) = await engine.tasks.query()
            await engine.start("order")
            await closing.wait()

            async def later() -> None:
                await trio.sleep(1)
                await tries(engine, row.id)

            nursery.start_soon(later)
    assert set(errors) == {"start", "send", "complete", "cancel", "wait"}
    errors.clear()
    await tries(engine, row.id)
    assert set(errors) == {"start", "send", "complete", "cancel", "wait"}


async def test_looks_after_the_end(store: Store, clock: VirtualClock) -> None:
    """After the engine was left, every question is answered with EngineClosed."""
    async with opened(store, clock, sleeping()) as engine:
        instance = await engine.start("sleeper")
        await parked(engine)
    calls = [
        instance.status,
        instance.variables,
        instance.tokens,
        instance.explain,
        engine.instances,
        engine.tasks.query,
    ]
    for call in (*calls, engine.incidents.query, engine.definitions):
        with pytest.raises(EngineClosed):
            await call()


async def test_wait_raises(store: Store, clock: VirtualClock) -> None:
    """Whoever waits for an instance that has not ended when the engine closes gets EngineClosed, parked or running."""
    gate = Gate()
    errors: list[str] = []

    async def waits(instance: trioflow.Instance) -> None:
        try:
            await instance.wait()
        except EngineClosed as error:
            errors.append(str(error))

    async with trio.open_nursery() as nursery:  # noqa: SIM117 - one line would be too long
        async with opened(store, clock, serving("a"), sleeping(), handlers=registry(a=gate), grace=1) as engine:
            for key in ("order", "sleeper"):
                instance = await engine.start(key)
                for _ in range(3):
                    nursery.start_soon(waits, instance)
            await trio.sleep(1)
    assert len(errors) == 6


async def test_handler_that_uses_the_closing_engine(durable: Store, clock: VirtualClock) -> None:
    """A handler that is refused because the engine closes has not failed: no incident, no attempt is spent, it runs
    again.
    """
    engines: list[trioflow.Engine] = []
    runs: list[int] = []
    handlers = Handlers()

    @handlers.task("a", retry=Retry(attempts=2))
    async def a(work: Work) -> None:
        runs.append(work.attempt)
        await trio.sleep(2)
        await engines[-1].send_message("paid")

    async with opened(durable, clock, serving("a"), handlers=handlers) as engine:
        engines.append(engine)
        instance = await engine.start("order")
        await trio.sleep(1)
    async with opened(durable, clock, handlers=handlers) as engine:
        engines.append(engine)
        assert await engine.incidents.query() == ()
        assert (await engine.instance(instance.id).wait()).status is Status.COMPLETED
    assert runs == [1, 1]


@pytest.mark.parametrize("shielded", [True, False])
async def test_handler_that_shields(durable: Store, clock: VirtualClock, shielded: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A handler that cleans up under a shield delays the end until it is done, and what it returns then counts."""

    async def a(work: Work) -> dict[str, int]:
        with trio.CancelScope(shield=shielded):
            await trio.sleep(8)
        return {"n": work.attempt}

    async with opened(durable, clock, serving("a"), handlers=registry(a=a), grace=5) as engine:
        instance = await engine.start("order")
        await trio.sleep(1)
        left = trio.current_time()
    assert trio.current_time() - left == pytest.approx(7 if shielded else 5, abs=0.5)
    async with opened(durable, clock, handlers=registry(a=a)) as engine:
        began = trio.current_time()
        assert (await engine.instance(instance.id).wait()).variables == {"n": 1}
        assert trio.current_time() - began == pytest.approx(0 if shielded else 8, abs=0.5)


# ------------------------------------------------------------------ leaving in other ways


class MineError(Exception):
    """The user's own."""


@pytest.mark.parametrize(
    "error", [MineError("x"), ExceptionGroup("mine", [MineError("y")]), KeyboardInterrupt()], ids=repr
)
async def test_error_of_the_block(store: Store, clock: VirtualClock, error: BaseException) -> None:
    """An exception of the user's block leaves as it is, after the engine was closed in order."""
    gate = Gate()
    with pytest.raises(type(error)) as left:  # noqa: PT012 - the block of the engine is what raises
        async with opened(store, clock, serving("a"), handlers=registry(a=gate), grace=1) as engine:
            await engine.start("order")
            await gate.entered.wait()
            raise error
    assert left.value is error
    assert gate.log == ["entered", "cancelled"]
    with pytest.raises(EngineClosed):
        await engine.start("order")


async def test_cancelled_around(durable: Store, clock: VirtualClock) -> None:
    """A cancelled scope around the engine closes it in order too: what ran is stored as running, and runs again."""
    gate = Gate()
    with trio.move_on_after(5) as scope:
        async with opened(durable, clock, serving("a"), handlers=registry(a=gate), grace=1) as engine:
            instance = await engine.start("order")
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert gate.log == ["entered", "cancelled"]
    gate.let.set()
    async with opened(durable, clock, handlers=registry(a=gate)) as engine:
        assert (await engine.instance(instance.id).wait()).status is Status.COMPLETED
    assert set(gate.keys) == {f"{instance.id}/a/1"}


async def test_cancelled_block_with_an_error(clock: VirtualClock) -> None:
    """A nursery in the block that fails leaves as a group, as it would without an engine."""
    with pytest.raises(ExceptionGroup) as left:  # noqa: PT012 - the block of the engine is what raises
        async with opened(None, clock), trio.open_nursery() as nursery:

            async def fails() -> None:
                raise MineError("z")

            nursery.start_soon(fails)
            await trio.sleep_forever()
    assert [type(error) for error in left.value.exceptions] == [MineError]


async def test_open_and_close_at_once(store: Store, clock: VirtualClock) -> None:
    """An engine that is left as soon as it was opened leaves nothing behind, and takes no time."""
    began = trio.current_time()
    async with opened(store, clock, sleeping()):
        pass
    assert trio.current_time() - began < 0.1


async def test_two_hundred_at_work(durable: Store, clock: VirtualClock) -> None:
    """Two hundred running instances are given up at the end of the grace, and all of them run to their end later."""
    finishing = trio.Event()
    keys: dict[str, int] = {}

    async def a(work: Work) -> None:
        keys[work.idempotency_key] = keys.get(work.idempotency_key, 0) + 1
        await finishing.wait()

    async with opened(durable, clock, serving("a"), receiving(), handlers=registry(a=a), grace=1) as engine:
        ids = [(await engine.start("order")).id for _ in range(200)]
        await trio.sleep(1)
    finishing.set()
    async with opened(durable, clock, handlers=registry(a=a)) as engine:
        for instance_id in ids:
            assert (await engine.instance(instance_id).wait()).status is Status.COMPLETED
    assert keys == {f"{instance_id}/a/1": 2 for instance_id in ids}


async def test_volatile_ends_with_its_engine(clock: VirtualClock) -> None:
    """A store object in memory can be opened again: what was parked in it is there."""
    memory = MemoryStore(clock=clock)
    async with opened(memory, clock, receiving()) as engine:
        instance = await engine.start("receiver", {"n": 1})
    async with opened(memory, clock) as engine:
        assert (await engine.send_message("paid")).instance_id == instance.id
        assert (await engine.instance(instance.id).wait()).variables == {"n": 1}
