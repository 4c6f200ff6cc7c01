"""Measuring: ours and the floor in turns, in one process, so that what disturbs one disturbs the other.

A benchmark opens its cases together, and every turn measures each of them once: first ours, then its floor.
Ratios are taken within a pair and growth within a turn, and only then the median; a machine that is
slow for a while makes some pairs slow, but hardly any ratio wrong.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, TypeAlias

import trio
from attrs import field, frozen

__all__ = [
    "Benchmark",
    "Case",
    "Limit",
    "Measure",
    "Pair",
    "Plan",
    "Reading",
    "Readings",
    "Side",
    "Stopwatch",
    "Turn",
    "at_once",
    "run",
]


@frozen
class Reading:
    """One measured amount of one sample: wall seconds with ``cpu`` seconds beside them, or a count with None."""

    amount: float
    cpu: float | None = None


Readings: TypeAlias = Mapping[str, Reading]
Side: TypeAlias = Callable[[], Awaitable[Readings]]
"""Takes one sample: does the work once and returns a reading for each measure of the case."""


@frozen(kw_only=True)
class Limit:
    """What the ``ratio``, the ``growth`` or our own ``value`` per item may be, at most."""

    of: str
    at_most: float


@frozen(kw_only=True)
class Measure:
    """One figure of a case; ``unit`` is ``s`` for a time, else what is counted."""

    name: str
    unit: str = "s"
    limits: tuple[Limit, ...] = ()


@frozen(kw_only=True)
class Plan:
    """How much to measure: a case for each of ``ns``, and samples of about ``items`` items in each of them.

    A sample repeats its work at least ``least`` times, also where that makes more items.
    """

    ns: tuple[int, ...]
    items: int
    repeat: int
    least: int = 1

    def rounds(self, per_round: int) -> int:
        """How often a sample does work of that many items."""
        return max(self.least, self.items // per_round)


@frozen(kw_only=True)
class Case:
    """One workload at one N, and its floor.

    ``items``: what the readings of a sample are divided by.  ``samples``: how many are enough where one takes
    seconds; 0 means as many as there are turns, after one that is not counted.
    """

    variant: str
    n: int
    items: int
    ours: Side
    floor: Side
    measures: tuple[Measure, ...] = field(default=(Measure(name="run"),))
    samples: int = 0

    def takes_part(self, turn: int) -> bool:
        """Whether it is measured in that turn; turn 0 only warms up."""
        return self.samples == 0 or 1 <= turn <= self.samples


@frozen(kw_only=True)
class Benchmark:
    """A named group of cases over several N.

    ``item`` and ``n_means`` say what is counted; growth is against ``base`` (default: the smallest N).
    ``quick`` is the plan of a first look.  ``clock`` makes Trio's clock, for virtual time.
    """

    name: str
    title: str
    item: str
    n_means: str
    open: Callable[[Plan], AbstractAsyncContextManager[Sequence[Case]]]
    full: Plan
    quick: Plan
    base: int | None = None
    clock: Callable[[], trio.abc.Clock] | None = None

    @property
    def floor(self) -> str:
        """The file of its floor."""
        return f"benchmarks/floors/{self.name.replace('-', '_')}.py"


@frozen(kw_only=True)
class Pair:
    """What one turn measured of a case."""

    ours: Readings
    floor: Readings


Turn: TypeAlias = list[Pair]


class Stopwatch:
    """Wall and CPU time of a block.

    The garbage collector runs in it, as it does for users, but only over what the block makes: garbage is collected
    before, and what is alive then (the other cases, their models) is frozen until the block ends.
    """

    def __enter__(self) -> Self:
        gc.collect()
        gc.freeze()
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        wall = time.perf_counter() - self._wall
        self.reading = Reading(wall, time.process_time() - self._cpu)
        gc.unfreeze()


async def at_once(count: int, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work in that many tasks at once; one does it in this task."""
    if count == 1:
        await work()
        return
    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(work)


def run(benchmark: Benchmark, plan: Plan) -> list[tuple[Case, Turn]]:
    """Measure all cases of a benchmark; each with its pairs, one for each turn in which it took part."""
    clock = None if benchmark.clock is None else benchmark.clock()
    return trio.run(_measure, benchmark, plan, clock=clock)


async def _measure(benchmark: Benchmark, plan: Plan) -> list[tuple[Case, Turn]]:
    async with benchmark.open(plan) as cases:
        measured: list[tuple[Case, Turn]] = [(case, []) for case in cases]
        for turn in range(plan.repeat + 1):
            for case, pairs in measured:
                if case.takes_part(turn):
                    pair = Pair(ours=await case.ours(), floor=await case.floor())
                    if turn > 0:
                        pairs.append(pair)
        return measured
