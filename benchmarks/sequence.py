"""`sequence`: ten service tasks in a row, each adding to a variable."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

import trio

import trioflow
from benchmarks.floors import sequence as floor
from benchmarks.harness import Benchmark, Case, Limit, Measure, Plan, Readings, Stopwatch, at_once
from trioflow.model import Definitions

__all__ = ["SEQUENCE"]

TASKS: Final = 10


class _Work(Protocol):
    """What both sides' handlers get."""

    @property
    def inputs(self) -> Any: ...


async def _step(work: _Work) -> dict[str, Any]:
    """The shortest async function that keeps Trio's rule: one checkpoint."""
    await trio.lowlevel.checkpoint()
    return {"count": work.inputs["count"] + 1}


def _inline_step(work: _Work) -> dict[str, Any]:
    return {"count": work.inputs["count"] + 1}


def _model(key: str) -> Definitions:
    """A process whose tasks all call the handler that has the name of its key."""
    process = trioflow.ProcessBuilder(key)
    path = process.start("started")
    for number in range(TASKS):
        path = path.service(f"task{number}", handler=key)
    path.end("ended")
    return process.build()


@asynccontextmanager
async def _open(plan: Plan) -> AsyncIterator[Sequence[Case]]:
    handlers = trioflow.Handlers()
    handlers.task("async", _step)
    handlers.task("inline", _inline_step, inline=True)
    models = [_model("async"), _model("inline")]
    async with trioflow.open_engine(handlers=handlers, deploy=models) as engine, trio.open_nursery() as nursery:
        yield [
            _case(engine, nursery, key=key, handler=handler, plan=plan, n=n)
            for key, handler in (("async", _step), ("inline", _inline_step))
            for n in plan.ns
        ]


def _case(
    engine: trioflow.Engine, nursery: trio.Nursery, *, key: str, handler: Callable[[Any], Any], plan: Plan, n: int
) -> Case:
    rounds = plan.rounds(n * TASKS)

    async def ours_in_a_row() -> None:
        for _ in range(rounds):
            instance = await engine.start(key, {"count": 0})
            outcome = await instance.wait()
            assert outcome.variables["count"] == TASKS

    async def floor_in_a_row() -> None:
        for _ in range(rounds):
            variables = await floor.start(nursery, handler, TASKS, {"count": 0}).wait()
            assert variables["count"] == TASKS

    async def ours() -> Readings:
        with Stopwatch() as watch:
            await at_once(n, ours_in_a_row)
        return {"run": watch.reading}

    async def plain() -> Readings:
        with Stopwatch() as watch:
            await at_once(n, floor_in_a_row)
        return {"run": watch.reading}

    limits = (Limit(of="ratio", at_most=2),) if key == "async" else ()
    return Case(
        variant=key,
        n=n,
        items=n * rounds * TASKS,
        ours=ours,
        floor=plain,
        measures=(Measure(name="run", limits=limits),),
    )


SEQUENCE: Final = Benchmark(
    name="sequence",
    title="start an instance of 10 service tasks in a row, wait for its end",
    item="task",
    n_means="instances at once",
    open=_open,
    full=Plan(ns=(1, 100), items=3_000, repeat=9),
    quick=Plan(ns=(1, 100), items=1_000, repeat=3),
)
