"""From pairs of samples to rows: medians, ratios, growth, and what the limits say."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from attrs import asdict, frozen

from benchmarks.harness import Benchmark, Case, Limit, Measure, Reading, Turn

__all__ = ["Row", "Verdict", "rows"]


@frozen(kw_only=True)
class Verdict:
    """A limit, and whether it is kept."""

    of: str
    at_most: float
    ok: bool


@frozen(kw_only=True)
class Row:
    """One figure at one N, per item: seconds, or a count of ``unit``.

    ``ratio`` and ``cpu_ratio`` are medians of the pairs' ratios of ours to the floor, ``spread`` the smallest and the
    greatest; ``growth`` and ``cpu_growth`` compare ours per item with that at the benchmark's base.  None: there is
    no such figure.
    """

    benchmark: str
    variant: str
    measure: str
    unit: str
    n: int
    items: int
    samples: int
    ours: float
    floor: float | None
    ratio: float | None
    spread: tuple[float, float] | None
    cpu_ratio: float | None
    growth: float | None
    cpu_growth: float | None
    limits: tuple[Verdict, ...]

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self)


@frozen(kw_only=True)
class _Series:
    """The readings of one measure of one case, turn by turn, per item."""

    case: Case
    measure: Measure
    ours: tuple[Reading, ...]
    floor: tuple[Reading, ...]

    @classmethod
    def of(cls, case: Case, measure: Measure, pairs: Turn) -> _Series:
        name, items = measure.name, case.items
        return cls(
            case=case,
            measure=measure,
            ours=tuple(_per_item(pair.ours[name], items) for pair in pairs),
            floor=tuple(_per_item(pair.floor[name], items) for pair in pairs if name in pair.floor),
        )


def _per_item(reading: Reading, items: int) -> Reading:
    return Reading(reading.amount / items, None if reading.cpu is None else reading.cpu / items)


def rows(benchmark: Benchmark, measured: Sequence[tuple[Case, Turn]]) -> list[Row]:
    """The rows of a benchmark: by variant and measure, N ascending."""
    series = [_Series.of(case, measure, pairs) for case, pairs in measured for measure in case.measures]
    groups: dict[tuple[str, str], list[_Series]] = {}
    for each in series:
        groups.setdefault((each.case.variant, each.measure.name), []).append(each)
    found: list[Row] = []
    for group in groups.values():
        group.sort(key=lambda each: each.case.n)
        base = next((each for each in group if each.case.n == benchmark.base), group[0])
        found += [_row(benchmark, each, base) for each in group]
    return found


def _row(benchmark: Benchmark, series: _Series, base: _Series) -> Row:
    ratios = _ratios(series.ours, series.floor)
    case, measure = series.case, series.measure
    ours = median(reading.amount for reading in series.ours)
    ratio = _median(ratios)
    growth = None if series is base else _median(_ratios(series.ours, base.ours))
    figures = {"value": ours, "ratio": ratio, "growth": growth}
    return Row(
        benchmark=benchmark.name,
        variant=case.variant,
        measure=measure.name,
        unit=measure.unit,
        n=case.n,
        items=case.items,
        samples=len(series.ours),
        ours=ours,
        floor=_median([reading.amount for reading in series.floor]),
        ratio=ratio,
        spread=(min(ratios), max(ratios)) if ratios else None,
        cpu_ratio=_median(_cpu_ratios(series.ours, series.floor)),
        growth=growth,
        cpu_growth=None if series is base else _median(_cpu_ratios(series.ours, base.ours)),
        limits=tuple(_verdict(limit, figures[limit.of]) for limit in measure.limits),
    )


def _verdict(limit: Limit, figure: float | None) -> Verdict:
    return Verdict(of=limit.of, at_most=limit.at_most, ok=figure is not None and figure <= limit.at_most)


def _median(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _ratios(these: Sequence[Reading], those: Sequence[Reading]) -> list[float]:
    """Turn by turn (a case that took part in fewer turns is compared in these); nothing is a multiple of zero."""
    return [this.amount / that.amount for this, that in zip(these, those, strict=False) if that.amount]


def _cpu_ratios(these: Sequence[Reading], those: Sequence[Reading]) -> list[float]:
    return [this.cpu / that.cpu for this, that in zip(these, those, strict=False) if this.cpu is not None and that.cpu]
