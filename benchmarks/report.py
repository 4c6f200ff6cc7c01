"""The table: 80 columns, one block for each benchmark, one line for each figure at each N."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.harness import Benchmark
from benchmarks.results import Row, Verdict

__all__ = ["LEGEND", "block"]

LEGEND = """\
ours, floor: medians, per item.  ratio: ours to the floor, the median of the
pairs; cpu: the same in CPU time, which other programs disturb less.  growth:
ours per item against ours at the N that has none.  limit: what is promised,
and whether this run kept it; no run fails for it.  See docs/benchmarks.md."""

LAYOUT = "  {:<14}{:>7} {:>9} {:>9} {:>5} {:>5} {:>6}  {}"
HEAD = LAYOUT.format("", "N", "ours", "floor", "ratio", "cpu", "growth", "limit")


def block(benchmark: Benchmark, rows: Sequence[Row]) -> str:
    """One benchmark's part of the table."""
    lines = [f"{benchmark.name}: {benchmark.title}", f"  per {benchmark.item}; N: {benchmark.n_means}", HEAD]
    label = ""
    for row in rows:
        previous, label = label, _label(row)
        lines += _lines(row, label if label != previous else "")
    return "\n".join(lines)


def _label(row: Row) -> str:
    return " ".join(part for part in (row.variant, "" if row.measure == "run" else row.measure) if part)


def _lines(row: Row, label: str) -> Iterable[str]:
    first, *more = [_limit(verdict) for verdict in row.limits] or [""]
    yield LAYOUT.format(
        label,
        f"{row.n:,}",
        _amount(row.ours, row.unit),
        _amount(row.floor, row.unit),
        _factor(row.ratio),
        _factor(row.cpu_ratio),
        _factor(row.growth),
        first,
    ).rstrip()
    for text in more:
        yield LAYOUT.format("", "", "", "", "", "", "", text)


def _limit(verdict: Verdict) -> str:
    kind = "" if verdict.of == "value" else f"{verdict.of} "
    return f"{kind}{verdict.at_most:,g} {'ok' if verdict.ok else 'OVER'}"


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if value < 99.995 else f"{value:,.0f}"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit != "s":
        return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    if value >= 1e-3:
        return f"{value * 1e3:.2f} ms"
    return f"{value * 1e6:.3g} us" if value < 1e-4 else f"{value * 1e6:.0f} us"
