"""`durable`: one service task for each instance, on SQLite."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import trio
from attrs import astuple, define, frozen

import trioflow
from benchmarks.floors import durable as floor
from benchmarks.harness import Benchmark, Case, Limit, Measure, Plan, Reading, Readings, Stopwatch, at_once
from trioflow.model import Definitions
from trioflow.stores.port import Store
from trioflow.stores.sqlite import SQLiteStore

__all__ = ["DURABLE"]

KEY: Final = "durable"
MANY: Final = 256


async def _step(_work: trioflow.Work) -> dict[str, Any]:
    await trio.lowlevel.checkpoint()
    return {"receipt": "r-17"}


def _model() -> Definitions:
    process = trioflow.ProcessBuilder(KEY)
    process.start("started").service("charge", handler="charge").end("ended")
    return process.build()


@frozen(kw_only=True)
class _Written:
    """What ours wrote in a sample, for the floor to write as well."""

    commits: int
    items: int
    head: bytes
    piece: bytes

    @classmethod
    async def between(cls, before: trioflow.Statistics, engine: trioflow.Engine, store: Store, any_id: str) -> _Written:
        """All that was committed since ``before``; every instance wrote as much as this one."""
        after = engine.statistics()
        loaded = await store.load(any_id)
        assert loaded is not None
        return cls(
            commits=after.commits - before.commits,
            items=after.items - before.items,
            head="|".join(map(str, astuple(loaded.head))).encode(),
            piece=b"".join(loaded.pieces),
        )

    def batches(self, instances: int) -> list[list[str]]:
        """Ids for each commit: as many items as ours, spread evenly; ids are new and in no order, as ours are."""
        ids = [secrets.token_hex(13) for _ in range(instances)]
        edges = [self.items * number // self.commits for number in range(self.commits + 1)]
        return [[ids[item % instances] for item in range(low, high)] for low, high in pairwise(edges)]


@asynccontextmanager
async def _open(plan: Plan) -> AsyncIterator[Sequence[Case]]:
    handlers = trioflow.Handlers()
    handlers.task("charge", _step)
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "ours.db")
        with floor.Table(Path(folder) / "floor.db") as table:
            async with trioflow.open_engine(store, handlers=handlers, deploy=[_model()]) as engine:
                yield [
                    _case(_Workload(engine=engine, store=store, table=table, n=n, rounds=plan.rounds(n)))
                    for n in plan.ns
                ]


@define(eq=False, kw_only=True)
class _Workload:
    """N instances at once, each of N tasks running some in a row; and the writing of the same by the floor."""

    engine: trioflow.Engine
    store: Store
    table: floor.Table
    n: int
    rounds: int
    written: _Written | None = None
    any_id: str = ""

    @property
    def instances(self) -> int:
        """How many a sample runs."""
        return self.n * self.rounds

    async def _in_a_row(self) -> None:
        for _ in range(self.rounds):
            instance = await self.engine.start(KEY, {"amount": 12})
            outcome = await instance.wait()
            assert outcome.variables["receipt"] == "r-17"
            self.any_id = instance.id

    async def ours(self) -> Readings:
        before = self.engine.statistics()
        with Stopwatch() as watch:
            await at_once(self.n, self._in_a_row)
        self.written = await _Written.between(before, self.engine, self.store, self.any_id)
        return {"run": watch.reading, "commits": Reading(self.written.commits)}

    async def floor(self) -> Readings:
        assert self.written is not None
        head, piece = self.written.head, self.written.piece
        batches = self.written.batches(self.instances)
        with Stopwatch() as watch:
            for batch in batches:
                await self.table.commit(batch, head, piece)
        return {"run": watch.reading}


def _case(workload: _Workload) -> Case:
    few = (Limit(of="value", at_most=0.1),) if workload.n == MANY else ()
    return Case(
        variant="",
        n=workload.n,
        items=workload.instances,
        ours=workload.ours,
        floor=workload.floor,
        measures=(Measure(name="run"), Measure(name="commits", unit="", limits=few)),
    )


DURABLE: Final = Benchmark(
    name="durable",
    title="start an instance of one service task, wait for its end (SQLite)",
    item="instance",
    n_means="instances at once",
    open=_open,
    full=Plan(ns=(1, MANY), items=50, least=8, repeat=5),
    quick=Plan(ns=(1, MANY), items=20, least=4, repeat=2),
)
