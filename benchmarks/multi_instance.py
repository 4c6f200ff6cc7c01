"""`multi-instance`: one service task for each of N items; all at once, a hundred at a time, one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

import trioflow
from benchmarks.floors import multi_instance as floor
from benchmarks.harness import Benchmark, Case, Limit, Measure, Plan, Readings, Stopwatch
from trioflow.model import Definitions
from trioflow.model.builder import for_each

__all__ = ["MULTI_INSTANCE"]

BASE: Final = 100
LARGEST: Final = 100_000
TOGETHER: Final = 100

_VARIANTS: Final[dict[str, dict[str, Any]]] = {
    "parallel": {},
    "maxConcurrent=100": {"max_concurrent": TOGETHER},
    "sequential": {"sequential": True},
}


async def _item(_work: Any) -> dict[str, Any]:
    await trio.lowlevel.checkpoint()
    return {}


def _model(variant: str, number: int) -> Definitions:
    process = trioflow.ProcessBuilder(f"each{number}")
    how = for_each("items", item="item", **_VARIANTS[variant])
    process.start("started").service("work", handler="item", loop=how).end("ended")
    return process.build()


@asynccontextmanager
async def _open(plan: Plan) -> AsyncIterator[Sequence[Case]]:
    handlers = trioflow.Handlers()
    handlers.task("item", _item)
    models = [_model(variant, number) for number, variant in enumerate(_VARIANTS)]
    async with trioflow.open_engine(handlers=handlers, deploy=models) as engine, trio.open_nursery() as nursery:
        yield [
            _case(engine, nursery, plan, n, variant, number)
            for number, variant in enumerate(_VARIANTS)
            for n in plan.ns
        ]


def _case(  # noqa: PLR0917 - what one case is made of
    engine: trioflow.Engine, nursery: trio.Nursery, plan: Plan, n: int, variant: str, number: int
) -> Case:
    rounds = plan.rounds(n)
    items = list(range(n))
    together = {"parallel": n, "sequential": 1}.get(variant, TOGETHER)

    async def ours() -> Readings:
        with Stopwatch() as watch:
            for _ in range(rounds):
                instance = await engine.start(f"each{number}", {"items": items})
                outcome = await instance.wait()
                assert outcome.status is trioflow.Status.COMPLETED
        return {"run": watch.reading}

    async def plain() -> Readings:
        with Stopwatch() as watch:
            for _ in range(rounds):
                done = await floor.start(nursery, _item, items, together).wait()
                assert done == n
        return {"run": watch.reading}

    limits: tuple[Limit, ...] = (Limit(of="growth", at_most=1.3),) if n == LARGEST else ()
    return Case(
        variant=variant, n=n, items=n * rounds, ours=ours, floor=plain, measures=(Measure(name="run", limits=limits),)
    )


MULTI_INSTANCE: Final = Benchmark(
    name="multi-instance",
    title="one async task for each of N items of a collection",
    item="instance",
    n_means="items",
    open=_open,
    full=Plan(ns=(10, BASE, 1_000, 10_000, LARGEST), items=10_000, repeat=3),
    quick=Plan(ns=(10, BASE, 1_000), items=1_000, repeat=2),
    base=BASE,
)
