"""The report of a run: a table of groups and verdicts, and what went wrong, 80 columns wide."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from tests.conformance.betsy import Outcome, Result

__all__ = ["DEFECTIVE", "WIDTH", "report"]

WIDTH = 80
DEFECTIVE = "fixture-defect"
"""The verdict on a case whose file contradicts its own expectation: it counts apart."""

_COLUMNS = (Outcome.PASSED, Outcome.FAILED, Outcome.NOT_YET)


def report(results: Sequence[Result]) -> str:
    """The whole report."""
    parts = [_table(results), *_failures(results)]
    return "\n\n".join(parts) + "\n"


# ------------------------------------------------------------------ the table


def _table(results: Sequence[Result]) -> str:
    sound = [result for result in results if result.case.verdict != DEFECTIVE]
    defective = [result for result in results if result.case.verdict == DEFECTIVE]
    rule = "-" * WIDTH
    lines = [_row("group", "verdict", "cases", [outcome.value for outcome in _COLUMNS]), rule]
    lines += _rows(sound)
    lines += [rule, _counted("all", "", sound)]
    if defective:
        lines += ["", "apart: the files of these cases contradict what they expect", *_rows(defective)]
    return "\n".join(lines)


def _rows(results: Iterable[Result]) -> Iterator[str]:
    """One for each verdict of each group, in the order in which they come first."""
    groups: dict[str, dict[str, list[Result]]] = {}
    for result in results:
        groups.setdefault(result.case.group, {}).setdefault(result.case.verdict, []).append(result)
    for group, verdicts in groups.items():
        for verdict, those in verdicts.items():
            yield _counted(group, verdict, those)


def _counted(group: str, verdict: str, results: Sequence[Result]) -> str:
    counts = Counter(result.outcome for result in results)
    return _row(group, verdict, str(len(results)), [str(counts[outcome] or ".") for outcome in _COLUMNS])


def _row(group: str, verdict: str, cases: str, outcomes: Sequence[str]) -> str:
    passed, failed, not_yet = outcomes
    return f"{group:<14}{verdict:<16}{cases:>8}{passed:>10}{failed:>10}{not_yet:>22}"


# ------------------------------------------------------------------ what went wrong


def _failures(results: Iterable[Result]) -> Iterator[str]:
    """A paragraph for each failed case, and one line for each reason why others cannot be executed."""
    reasons: Counter[str] = Counter()
    for result in results:
        if result.outcome is Outcome.FAILED:
            yield _paragraph(f"FAILED {result.case.id} ({result.case.verdict}): {result.why}")
        elif result.outcome is Outcome.NOT_YET:
            reasons[result.why] += 1
    if reasons:
        yield "not executable yet:\n" + "\n".join(
            _paragraph(f"{number:>4}  {why}") for why, number in reasons.most_common()
        )


def _paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, subsequent_indent="      ")
