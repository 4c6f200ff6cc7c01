"""The cases of the public conformance suite *betsy*: where they are, and what each asks for.

They are no part of this project (their licence is the LGPL).  ``TRIOFLOW_CONFORMANCE`` names their folder; without it,
that is ``conformance/betsy`` in the folder of shared test input.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

__all__ = ["READINGS", "Case", "Start", "absence", "executable_cases", "folder"]

ROOT = Path(__file__).resolve().parents[2]

READINGS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    # A boundary event interrupts unless it says otherwise (clause 10.5.4): the signal of the first of three parallel
    # instances that completes ends the others.  How far they had come by then is not for the standard to say.
    "WCP12_MultipleInstancesWithoutSynchronization#1": tuple(
        (*["SCRIPT_task1"] * instances, "SCRIPT_task3") for instances in (1, 2, 3)
    ),
}
"""The traces that the standard admits in disputed cases for which the file of cases names none."""


@frozen(kw_only=True)
class Start:
    """An instance to start, with these variables."""

    process: str
    variables: Mapping[str, Any]


@frozen(kw_only=True)
class Case:
    """One run of a file, and what has to come out of it.

    ``delay``: seconds after the last start until everything must have happened.  ``admitted``: the traces that are
    right, one as a rule; each is labels in any order, that of an error included.  ``final_state``: of ``process``, in
    the words of the suite.  ``verdict``: what a review found of the case; ``sound`` is one that the standard decides,
    ``fixture-defect`` one whose file contradicts its own expectation.
    """

    id: str
    group: str
    file: Path
    process: str
    starts: tuple[Start, ...]
    delay: float
    admitted: tuple[tuple[str, ...], ...]
    final_state: str
    verdict: str


def folder() -> Path:
    """Where the cases are expected."""
    named = os.environ.get("TRIOFLOW_CONFORMANCE")
    if named:
        return Path(named)
    shared = os.environ.get("TRIOFLOW_SHARED")
    return (Path(shared) if shared else ROOT.parent / "shared") / "conformance" / "betsy"


def absence(where: Path) -> str:
    """Why there is nothing to run; empty if there is."""
    if (where / "cases.json").is_file():
        return ""
    return f"the conformance suite is not at {where}: set TRIOFLOW_CONFORMANCE to the folder of its cases.json"


def executable_cases(where: Path) -> tuple[Case, ...]:
    """The cases that are to be executed: all but those that only have to be refused."""
    entries = json.loads((where / "cases.json").read_bytes())
    return tuple(_case(entry, where) for entry in entries if entry["expect"]["error"] != "ERROR_deployment")


def _case(entry: Mapping[str, Any], where: Path) -> Case:
    given = {variable["name"]: variable["value"] for variable in entry["input"]}
    review = entry["review"]
    return Case(
        id=entry["id"],
        group=entry["group"],
        file=where / entry["file"],
        process=entry["process"],
        starts=tuple(
            Start(process=start["process"], variables={name: given[name] for name in start["variables"]})
            for start in entry["start"]
        ),
        delay=entry["delay_ms"] / 1000,
        admitted=_admitted(entry),
        final_state=review["final_state"],
        verdict=review["verdict"],
    )


def _admitted(entry: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """Our reading of the standard, where a review found that it is not what the suite expects."""
    reading = entry["review"]["spec_trace"]
    if reading is not None:
        return (tuple(reading),)
    error = entry["expect"]["error"]
    expected = (*entry["expect"]["trace"], *([error] if error else []))
    return READINGS.get(entry["id"], (expected,))
