from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio
from attrs import evolve

from benchmarks import __main__ as program
from benchmarks.harness import Benchmark, Case, Limit, Measure, Pair, Plan, Reading, Stopwatch, run
from benchmarks.report import LEGEND, block
from benchmarks.results import Row, rows
from benchmarks.suite import SUITE

ROOT = Path(__file__).resolve().parents[2]

TINY = {
    "sequence": Plan(ns=(1, 2), items=20, repeat=1),
    "fanout": Plan(ns=(2, 100), items=2, repeat=1),
    "timers": Plan(ns=(3, 5), items=0, repeat=1),
    "durable": Plan(ns=(1, 4), items=2, least=2, repeat=1),
    "parse": Plan(ns=(1, 5), items=5, repeat=2),
    "multi-instance": Plan(ns=(1, 3), items=3, repeat=1),
}
KEYS = {
    "benchmark", "variant", "measure", "unit", "n", "items", "samples", "ours", "floor", "ratio", "spread",
    "cpu_ratio", "growth", "cpu_growth", "limits",
}  # fmt: skip


def numbers(row: dict[str, Any]) -> Iterator[float | None]:
    """The figures of a row that may be missing where there is nothing to compare."""
    for key in ("floor", "ratio", "cpu_ratio", "growth", "cpu_growth"):
        yield row[key]


# ------------------------------------------------------------------ the suite


@pytest.mark.parametrize("benchmark", SUITE, ids=lambda benchmark: benchmark.name)
def test_each_benchmark_runs_and_its_figures_have_the_right_form(
    benchmark: Benchmark, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each benchmark runs to its end with tiny sizes, and writes a JSON row for each measure at each N."""
    assert benchmark.name in TINY, "without a tiny plan the full one is measured, which takes minutes"
    target = tmp_path / "figures.json"

    status = program.main([benchmark.name, "--json", str(target)], plans=TINY)

    assert status == 0
    document = orjson.loads(target.read_bytes())
    assert document["failed"] == []
    assert document["format"] == program.FORMAT
    assert {"python", "cpus", "sqlite", "versions", "gc", "fsync_seconds"} <= document["machine"].keys()
    found = document["rows"]
    assert {row["n"] for row in found} == set(TINY[benchmark.name].ns)
    for row in found:
        assert row.keys() == KEYS
        assert row["benchmark"] == benchmark.name
        assert row["samples"] >= 1
        assert row["ours"] >= 0
        assert all(value is None or value >= 0 for value in numbers(row))
    times = [row for row in found if row["unit"] == "s"]
    assert times
    assert all(row["ours"] > 0 and row["ratio"] > 0 and row["cpu_ratio"] > 0 for row in times)
    printed = capsys.readouterr().out
    assert f"\n{benchmark.name}: " in printed


def test_the_table_has_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """No line of the table is longer than 80 columns, whatever the figures are."""
    row = Row(
        benchmark="x", variant="deploy", measure="parked", unit="B", n=100_000, items=1, samples=1,
        ours=123_456.0, floor=123_456.0, ratio=12.345, spread=(1.0, 2.0), cpu_ratio=1234.0, growth=12.3,
        cpu_growth=None, limits=(),
    )  # fmt: skip
    for benchmark in SUITE:
        limits = rows_of(limits=(Limit(of="growth", at_most=1.3), Limit(of="value", at_most=2_000)))[-1].limits
        lines = block(benchmark, [row, evolve(row, limits=limits)]).splitlines()
        assert [line for line in lines if len(line) > 80] == []
    assert [line for line in LEGEND.splitlines() if len(line) > 80] == []


def test_floors_are_short_and_named_in_the_docs() -> None:
    """Each benchmark's floor is one file under 60 lines, and the page on benchmarks names it."""
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for benchmark in SUITE:
        lines = (ROOT / benchmark.floor).read_text().splitlines()
        assert len(lines) < 60, benchmark.floor
        assert benchmark.floor in page


def test_floors_do_not_use_trioflow() -> None:
    """A floor imports nothing of ours."""
    for benchmark in SUITE:
        assert not re.search(
            r"^\s*(from|import) (trioflow|benchmarks)", (ROOT / benchmark.floor).read_text(), re.MULTILINE
        )


# ------------------------------------------------------------------ the program


def test_a_benchmark_that_cannot_run_is_status_1_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status says whether all ran; what did run is reported."""

    def broken(_: Plan) -> Any:
        raise RuntimeError("the disk is on fire")

    parse = next(benchmark for benchmark in SUITE if benchmark.name == "parse")
    monkeypatch.setattr(program, "SUITE", (evolve(parse, name="broken", open=broken), parse))
    target = tmp_path / "figures.json"

    assert program.main(["--json", str(target)], plans=TINY) == 1

    document = orjson.loads(target.read_bytes())
    assert document["failed"] == ["broken"]
    assert {row["benchmark"] for row in document["rows"]} == {"parse"}
    assert "the disk is on fire" in capsys.readouterr().err


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A name that no benchmark has is a mistake on the command line, and is named."""
    with pytest.raises(SystemExit):
        program.main(["sequense"])
    assert "sequense" in capsys.readouterr().err


# ------------------------------------------------------------------ the arithmetic


def rows_of(*, limits: tuple[Limit, ...] = ()) -> list[Row]:
    """The rows of a made-up benchmark at 10 and 100: ours takes 2 and 3 s an item, the floor 1 s; one pair is slow."""

    async def side() -> dict[str, Reading]:
        await trio.lowlevel.checkpoint()
        return {}

    def case(n: int, per_item: float) -> tuple[Case, list[Pair]]:
        measures = (Measure(name="run", limits=limits),)
        found = Case(variant="made up", n=n, items=n, ours=side, floor=side, measures=measures)
        pairs = [
            Pair(
                ours={"run": Reading(per_item * n * slow, per_item * n)},
                floor={"run": Reading(1.0 * n * slow, 1.0 * n)},
            )
            for slow in (1.0, 50.0, 1.0)
        ]
        return found, pairs

    return rows(SUITE[0], [case(100, 3.0), case(10, 2.0)])


def test_ratios_are_taken_within_pairs_and_growth_within_turns() -> None:
    """A turn in which the machine was slow changes neither ratio nor growth; rows come by N."""
    small, large = rows_of()

    assert (small.n, large.n) == (10, 100)
    assert (small.ours, small.floor) == (2.0, 1.0)
    assert (small.ratio, small.cpu_ratio, small.growth) == (2.0, 2.0, None)
    assert (large.ratio, large.growth, large.cpu_growth) == (3.0, 1.5, 1.5)
    assert large.spread == (3.0, 3.0)


@pytest.mark.parametrize(
    "limit,ok",
    [
        (Limit(of="ratio", at_most=3.0), True),
        (Limit(of="ratio", at_most=2.9), False),
        (Limit(of="growth", at_most=1.5), True),
        (Limit(of="growth", at_most=1.4), False),
        (Limit(of="value", at_most=2.9), False),
    ],
)
def test_a_limit_is_kept_up_to_its_value(limit: Limit, ok: bool) -> None:  # noqa: FBT001 - a table's column
    """A limit says ok up to its value, and OVER beyond it."""
    assert [verdict.ok for verdict in rows_of(limits=(limit,))[-1].limits] == [ok]


def test_the_first_turn_warms_up_and_is_not_counted() -> None:
    """A case has a pair for each turn after the first; one with ``samples`` is not warmed up."""
    calls: list[str] = []

    def case(variant: str, samples: int) -> Case:
        async def side() -> dict[str, Reading]:
            calls.append(variant)
            with Stopwatch() as watch:
                await trio.lowlevel.checkpoint()
            return {"run": watch.reading}

        return Case(variant=variant, n=1, items=1, ours=side, floor=side, samples=samples)

    @asynccontextmanager
    async def opened(_: Plan) -> AsyncIterator[list[Case]]:
        await trio.lowlevel.checkpoint()
        yield [case("often", 0), case("once", 1)]

    made_up = evolve(SUITE[0], open=opened, clock=None)

    measured = run(made_up, Plan(ns=(1,), items=1, repeat=3))

    assert [len(pairs) for _, pairs in measured] == [3, 1]
    assert (calls.count("often"), calls.count("once")) == (8, 2)
