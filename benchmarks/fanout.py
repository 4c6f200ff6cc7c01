"""`fanout`: a parallel gateway splits to N service tasks, another joins them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

import trioflow
from benchmarks.floors import fanout as floor
from benchmarks.harness import Benchmark, Case, Limit, Measure, Plan, Readings, Stopwatch
from trioflow.model import Definitions

__all__ = ["FANOUT"]

BASE: Final = 100
LARGEST: Final = 10_000


async def _branch(_work: Any) -> dict[str, Any]:
    await trio.lowlevel.checkpoint()
    return {}


def _model(branches: int) -> Definitions:
    process = trioflow.ProcessBuilder(f"fanout{branches}")
    split = process.start("started").parallel("split")
    for number in range(branches):
        branch = split.service(f"branch{number}", handler="branch")
        if number:
            branch.to("join")
        else:
            branch.parallel("join").end("ended")
    return process.build()


@asynccontextmanager
async def _open(plan: Plan) -> AsyncIterator[Sequence[Case]]:
    handlers = trioflow.Handlers()
    handlers.task("branch", _branch)
    models = [_model(n) for n in plan.ns]
    async with trioflow.open_engine(handlers=handlers, deploy=models) as engine, trio.open_nursery() as nursery:
        yield [_case(engine, nursery, plan, n) for n in plan.ns]


def _case(engine: trioflow.Engine, nursery: trio.Nursery, plan: Plan, n: int) -> Case:
    rounds = plan.rounds(n)

    async def ours() -> Readings:
        with Stopwatch() as watch:
            for _ in range(rounds):
                instance = await engine.start(f"fanout{n}")
                outcome = await instance.wait()
                assert outcome.status is trioflow.Status.COMPLETED
        return {"run": watch.reading}

    async def plain() -> Readings:
        with Stopwatch() as watch:
            for _ in range(rounds):
                arrived = await floor.start(nursery, _branch, n).wait()
                assert arrived == n
        return {"run": watch.reading}

    limits: tuple[Limit, ...] = (Limit(of="ratio", at_most=3),)
    if n == LARGEST:
        limits += (Limit(of="growth", at_most=1.3),)
    return Case(
        variant="", n=n, items=n * rounds, ours=ours, floor=plain, measures=(Measure(name="run", limits=limits),)
    )


FANOUT: Final = Benchmark(
    name="fanout",
    title="start an instance that splits to N async tasks, wait for its end",
    item="branch",
    n_means="branches",
    open=_open,
    full=Plan(ns=(10, BASE, 1_000, LARGEST), items=LARGEST, repeat=5),
    quick=Plan(ns=(10, BASE, 1_000), items=1_000, repeat=3),
    base=BASE,
)
