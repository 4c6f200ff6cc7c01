"""`trioflow demo`: a real SIGKILL, and what the demo says about a run that did not come out right."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.cli.support import EXAMPLES, widest, words
from tests.conftest import PATIENCE
from trioflow.cli.demo.coordinator import Ending, nodes
from trioflow.cli.demo.ledger import Entry, append, read_ledger
from trioflow.cli.demo.order import INSTANCE, KILLED_IN, SECONDS, VARIABLES, model, receipt
from trioflow.cli.demo.report import REACHED, problems, steps_of
from trioflow.model import ServiceTask

RUNS = tuple(
    Entry(step=step, key=f"{INSTANCE}/{step}/1", pid=pid)
    for step in SECONDS
    for pid in ((1, 2) if step == KILLED_IN else (1,))
)
ENDING = Ending(
    status="completed",
    variables={**VARIABLES, "receipt": receipt(f"{INSTANCE}/{KILLED_IN}/1"), "checked_by": "ada", "parcel": "p-77"},
    facts=REACHED,
)


@pytest.mark.sigkill
def test_the_demo_kills_its_worker_and_comes_to_its_end(tmp_path: Path) -> None:
    """Status 0 without a terminal; the killed step ran twice under one key, the others once; no folder is left."""
    command = [sys.executable, "-m", "trioflow.cli", "demo"]
    environment = {"TMPDIR": str(tmp_path), "COLUMNS": "80"}

    result = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""
    assert widest(result.stdout) <= 80
    said = words(result.stdout)
    assert 'is killed with SIGKILL, while "Charge card" runs' in said
    assert "Charge card was cut off by the crash: runs again" in said
    assert "Charge card 2 o-1001/charge-card/1 repeated, same key" in said
    for step, key in (
        ("Reserve stock", "reserve-stock/1"),
        ("Pack", "pack/1"),
        ("Print label", "hand-over.1/print-label/1"),
        ("Close order", "close-order/1"),
    ):
        assert f"{step} 1 o-1001/{key} once" in said
    assert list(tmp_path.iterdir()) == []


def test_the_demo_runs_the_example_of_the_same_name() -> None:
    """The model that the package brings along is examples/order.bpmn, and each of its service tasks has a step."""
    assert model() == (EXAMPLES / "order.bpmn").read_bytes()
    assert {node.id for node in nodes().values() if isinstance(node.element, ServiceTask)} == set(SECONDS)


def test_a_run_as_it_must_be_has_no_problems() -> None:
    """One run of each step, two of the killed one, everything reached."""
    assert list(problems(steps_of(RUNS), ENDING)) == []


Change = Callable[[], tuple[tuple[Entry, ...], Ending]]
WRONG: dict[str, tuple[Change, str]] = {
    "it ended otherwise": (lambda: (RUNS, attrs.evolve(ENDING, status="failed")), "the order ended failed"),
    "a step ran again": (lambda: ((*RUNS, RUNS[0]), ENDING), "the step reserve-stock ran 2 times, and not 1"),
    "nothing was killed": (lambda: (RUNS[:1] + RUNS[2:], ENDING), "the step charge-card ran 1 times, and not 2"),
    "the key changed": (
        lambda: ((RUNS[0], RUNS[1], attrs.evolve(RUNS[2], key="other"), *RUNS[3:]), ENDING),
        "the step charge-card had several keys",
    ),
    "no timer fired": (lambda: (RUNS, attrs.evolve(ENDING, facts=REACHED[:2])), "0 facts timer-fired"),
    "a variable is lost": (lambda: (RUNS, attrs.evolve(ENDING, variables=VARIABLES)), "the variables are"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_run_that_came_out_wrong_is_not_a_success(name: str) -> None:
    """Each way in which durability could fail is a problem with a sentence of its own."""
    change, said = WRONG[name]
    entries, ending = change()

    (problem,) = problems(steps_of(entries), ending)

    assert said in problem


def test_the_ledger_keeps_entries_in_order(tmp_path: Path) -> None:
    """What was appended is read back, oldest first; a ledger that is not there yet is empty."""
    path = tmp_path / "ledger.jsonl"
    assert read_ledger(path) == ()

    for entry in RUNS:
        append(path, entry)

    assert read_ledger(path) == RUNS
