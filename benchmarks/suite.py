"""The benchmarks, in the order in which they run."""

from __future__ import annotations

from typing import Final

from benchmarks.durable import DURABLE
from benchmarks.fanout import FANOUT
from benchmarks.harness import Benchmark
from benchmarks.multi_instance import MULTI_INSTANCE
from benchmarks.parse import PARSE
from benchmarks.sequence import SEQUENCE
from benchmarks.timers import TIMERS

__all__ = ["SUITE"]

SUITE: Final[tuple[Benchmark, ...]] = (SEQUENCE, FANOUT, MULTI_INSTANCE, TIMERS, DURABLE, PARSE)
