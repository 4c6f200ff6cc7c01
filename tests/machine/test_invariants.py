"""The proofs prove something: a state that is broken by hand is found out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.machine.support import NOON, Driver, compiled, differences
from trioflow.machine.invariants import violations
from trioflow.machine.state import IncidentState
from trioflow.model.builder import ProcessBuilder

SECOND = timedelta(seconds=1)


def troubled() -> Driver:
    """An incident, a scheduled retry, a step that runs for the second time, one that runs for the first."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    for name in ("pinned", "scheduled", "again", "fine"):
        fork.service(name)
    run = Driver(compiled(built))
    run.start()
    run.fail("pinned")
    run.fail("scheduled", retry_in=SECOND)
    run.fail("again")
    run.retry("again")
    return run


def _forget(node: str) -> Callable[[Driver], None]:
    return lambda run: setattr(run.at(node), "failing", None)


def _drop_silently(run: Driver) -> None:
    run.incident("pinned").state = IncidentState.DROPPED


def _unlist(run: Driver) -> None:
    run.state.incidents.open.clear()


def _wait_for_a_message(run: Driver) -> None:
    track = run.at("scheduled")
    track.failing, track.wait = NOON, None


def _end_in_the_future(run: Driver) -> None:
    run.incident("pinned").last = NOON + SECOND


def _begin_earlier(run: Driver) -> None:
    run.incident("pinned").first = NOON - SECOND


BROKEN: list[tuple[str, Callable[[Driver], None], str]] = [
    ("pinned", _forget("pinned"), "is incident after a failure, and does not know since when"),
    ("scheduled", _forget("scheduled"), "is waiting after a failure, and does not know since when"),
    ("again", _forget("again"), "is executing after a failure, and does not know since when"),
    ("waits", _wait_for_a_message, "is waiting, and fails since 2026-03-02 12:00"),
    ("begins-earlier", _begin_earlier, "and its track fails since 2026-03-02 12:00"),
    ("future", _end_in_the_future, "to 2026-03-02 12:00:01"),
    ("not-listed", _unlist, "and listed []"),
    ("listed", _drop_silently, "open are the incidents []"),
]


@pytest.mark.parametrize("break_it, sentence", [pytest.param(*row[1:], id=row[0]) for row in BROKEN])
def test_a_broken_memory_of_failures_violates_an_invariant(break_it: Callable[[Driver], None], sentence: str) -> None:
    """Since when a step fails, and which incidents are open: each lie about it is named."""
    run = troubled()
    assert violations(run.program, run.state) == []
    break_it(run)
    assert any(sentence in found for found in violations(run.program, run.state))


def test_since_when_a_step_fails_is_compared_between_a_state_and_its_fold() -> None:
    """A forgotten mark *touched* of it would show."""
    one, other = troubled(), troubled()
    assert differences(one.state, other.state) == []
    other.at("again").failing = NOON + SECOND
    (found,) = differences(one.state, other.state)
    assert found.startswith(f"tracks {one.at('again').id}: ")
