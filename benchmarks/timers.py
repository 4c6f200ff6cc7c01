"""`timers`: N instances parked at a timer, then all of them due at once, in virtual time and without a store."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Final

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

import trioflow
from benchmarks.floors import timers as floor
from benchmarks.harness import Benchmark, Case, Limit, Measure, Plan, Reading, Readings, Stopwatch
from trioflow.model import Definitions
from trioflow.model.builder import timer
from trioflow.stores.memory import MemoryStore
from trioflow.testing import VirtualClock

__all__ = ["TIMERS"]

KEY: Final = "parking"
HOUR: Final = 3600.0
SLOW: Final = 50_000
"""From this N on a sample takes seconds: one is enough."""

Parking = Callable[[int], Awaitable[None]]
"""Parks that many instances; returns when all of them are parked."""


def _model() -> Definitions:
    process = trioflow.ProcessBuilder(KEY)
    process.start("started").catch("hour", on=timer(duration="PT1H")).end("ended")
    return process.build()


def _variables(number: int) -> dict[str, Any]:
    return {"order": number, "customer": f"customer {number}", "amount": 12.5}


# ------------------------------------------------------------------ ours


class _Ours:
    """An engine with the memory store, on virtual time."""

    def __init__(self, engine: trioflow.Engine, store: MemoryStore) -> None:
        self._engine = engine
        self._store = store

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[_Ours]:
        clock = VirtualClock(_mock_clock())
        store = MemoryStore(clock=clock)
        async with trioflow.open_engine(store, deploy=[_model()], clock=clock) as engine:
            yield cls(engine, store)

    async def park(self, count: int) -> None:
        for number in range(count):
            await self._engine.start(KEY, _variables(number))
        await wait_all_tasks_blocked()
        assert self._engine.statistics().resident == 0

    async def ended(self) -> int:
        return (await self._store.counts()).get(trioflow.Status.COMPLETED, 0)


# ------------------------------------------------------------------ the floor


class _Floor:
    """The floor's timers; a record holds what the engine knows of a parked instance."""

    def __init__(self, timers: floor.Timers) -> None:
        self._timers = timers

    @classmethod
    @asynccontextmanager
    async def opened(cls) -> AsyncIterator[_Floor]:
        timers = floor.Timers()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(timers.run)
            yield cls(timers)
            nursery.cancel_scope.cancel()

    async def park(self, count: int) -> None:
        for number in range(count):
            now = trio.current_time()
            await self._timers.park(_record(number, now), now + HOUR)

    async def ended(self) -> int:
        await trio.lowlevel.checkpoint()
        return self._timers.ended


def _record(number: int, now: float) -> dict[str, Any]:
    return {
        "instance_id": f"{number:026}",
        "process_key": KEY,
        "version": 1,
        "status": "active",
        "created": now,
        "updated": now,
        "token": {"id": 1, "node": "hour", "state": "waiting"},
        "wait": {"id": 2, "deadline": now + HOUR},
        "variables": _variables(number),
    }


# ------------------------------------------------------------------ samples


def _mock_clock() -> MockClock:
    clock = trio.lowlevel.current_clock()
    assert isinstance(clock, MockClock)
    return clock


async def _time(side: type[_Ours | _Floor], n: int) -> Readings:
    """Park them all, let the hour pass, wait until all have ended."""
    clock = _mock_clock()
    async with side.opened() as parking:
        with Stopwatch() as created:
            await parking.park(n)
        clock.jump(timedelta(hours=1).total_seconds())
        with Stopwatch() as fired:
            clock.autojump_threshold = 0  # whoever pauses in between costs no real time
            while await parking.ended() < n:  # noqa: ASYNC110 - asking costs nobody anything, being told would
                await trio.sleep(1)
        clock.autojump_threshold = float("inf")
    return {"create": created.reading, "fire": fired.reading}


async def _weigh(side: type[_Ours | _Floor], n: int) -> Readings:
    """Park them all, and count the bytes and the tasks that are there for them."""
    async with side.opened() as parking:
        await parking.park(1)  # what the first one builds, the others find
        tasks = trio.lowlevel.current_statistics().tasks_living
        gc.collect()
        tracemalloc.start()
        try:
            await parking.park(n)
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        more = trio.lowlevel.current_statistics().tasks_living - tasks
    return {"parked": Reading(size), "more tasks": Reading(more)}


def _cases(n: int) -> list[Case]:
    async def ours_time() -> Readings:
        return await _time(_Ours, n)

    async def floor_time() -> Readings:
        return await _time(_Floor, n)

    async def ours_weigh() -> Readings:
        return await _weigh(_Ours, n)

    async def floor_weigh() -> Readings:
        return await _weigh(_Floor, n)

    timed = (Measure(name="create"), Measure(name="fire"))
    weighed = (
        Measure(name="parked", unit="B", limits=(Limit(of="value", at_most=2_000),)),
        Measure(name="more tasks", unit="", limits=(Limit(of="value", at_most=0),)),
    )
    return [
        Case(variant="", n=n, items=n, ours=ours_time, floor=floor_time, measures=timed, samples=1 if n >= SLOW else 0),
        Case(variant="", n=n, items=n, ours=ours_weigh, floor=floor_weigh, measures=weighed, samples=1),
    ]


@asynccontextmanager
async def _open(plan: Plan) -> AsyncIterator[Sequence[Case]]:
    await trio.lowlevel.checkpoint()
    yield [case for n in plan.ns for case in _cases(n)]


TIMERS: Final = Benchmark(
    name="timers",
    title="park N instances at a timer, then all are due at once (no store)",
    item="instance",
    n_means="instances",
    open=_open,
    full=Plan(ns=(10_000, 100_000), items=0, repeat=2),
    quick=Plan(ns=(1_000, 10_000), items=0, repeat=1),
    clock=MockClock,
)
