"""``python -m benchmarks [NAMES] [--json FILE] [--quick] [--repeat N]``.

The exit status says whether the benchmarks ran, never how fast they were: speed is no test.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from attrs import evolve

from benchmarks.harness import Plan, run
from benchmarks.machine import facts
from benchmarks.report import LEGEND, block
from benchmarks.results import Row, rows
from benchmarks.suite import SUITE

__all__ = ["document", "main"]

FORMAT = 1


def main(arguments: Sequence[str] | None = None, *, plans: Mapping[str, Plan] | None = None) -> int:
    """Run the named benchmarks and print the table; 0, or 1 if one of them failed to run.

    ``plans`` replaces the plan of the benchmark of that name.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.names) - {benchmark.name for benchmark in SUITE}):
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    machine = facts()
    found: list[Row] = []
    failed: list[str] = []
    print(_heading(machine))
    for benchmark in SUITE:
        if options.names and benchmark.name not in options.names:
            continue
        plan = (plans or {}).get(benchmark.name) or (benchmark.quick if options.quick else benchmark.full)
        plan = plan if options.repeat is None else evolve(plan, repeat=options.repeat)
        begun = time.perf_counter()
        try:
            measured = rows(benchmark, run(benchmark, plan))
        except Exception:  # noqa: BLE001 - one that cannot run is reported, and the others are measured
            failed.append(benchmark.name)
            traceback.print_exc()
            continue
        found += measured
        print(f"\n{block(benchmark, measured)}\n  {plan.repeat} turns, {time.perf_counter() - begun:.1f} s", flush=True)
    print(f"\n{LEGEND}")
    if options.json is not None:
        options.json.write_bytes(orjson.dumps(document(machine, found, failed), option=orjson.OPT_INDENT_2) + b"\n")
    if failed:
        print(f"failed to run: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def document(machine: Mapping[str, Any], found: Sequence[Row], failed: Sequence[str]) -> dict[str, Any]:
    """What ``--json`` writes: machine facts, and each row with its unit, figures and verdicts."""
    return {
        "format": FORMAT,
        "machine": machine,
        "floors": {benchmark.name: benchmark.floor for benchmark in SUITE},
        "rows": [row.as_json() for row in found],
        "failed": failed,
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure trioflow beside its floors.")
    names = [benchmark.name for benchmark in SUITE]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(names)} (default: all)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON too")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller samples, for a first look")
    parser.add_argument("--repeat", type=int, metavar="N", help="turns to measure, instead of each benchmark's own")
    return parser


def _heading(machine: Mapping[str, Any]) -> str:
    versions = machine["versions"]
    return (
        f"trioflow {versions['trioflow']}, {machine['implementation']} {machine['python']}, trio {versions['trio']}, "
        f"SQLite {machine['sqlite']}\n"
        f"{machine['cpus']} processors, load {machine['load']}, fsync {machine['fsync_seconds'] * 1e3:.2f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())
