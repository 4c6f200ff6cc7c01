"""Service tasks and scripts: runs, retries, thrown errors, late reports (semantics sections 4 and 6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.machine.support import NOON, Driver, compiled, failure
from trioflow.facts import Status
from trioflow.machine.events import ActivityCompleted, ActivityFailed, ErrorThrown, Reentered, TimerDue
from trioflow.machine.state import MAX_REENTRIES, RetryWait
from trioflow.machine.transition import Run
from trioflow.model.builder import ProcessBuilder

MINUTE = timedelta(minutes=1)


def at_work(*, script: bool = False) -> Driver:
    """An instance whose step `work` runs."""
    built = ProcessBuilder("p")
    start = built.start("s")
    work = start.script("work", "y = x + 1") if script else start.service("work", handler="do-it")
    work.service("after").end("e")
    run = Driver(compiled(built))
    run.start(x=1)
    return run


@pytest.mark.parametrize("script", [False, True], ids=["service", "script"])
def test_a_step_is_an_effect_with_a_track_and_a_step_id_of_its_own(*, script: bool) -> None:
    """A handler acts outside, so what led to it must be stored first; a script does not."""
    run = at_work(script=script)
    (effect,) = run.transitions[-1].effects
    track = run.at("work")
    assert isinstance(effect, Run)
    assert (effect.track, effect.step, effect.outside) == (track.id, track.step, not script)


@pytest.mark.parametrize("script", [False, True], ids=["service", "script"])
def test_what_it_returns_is_written_by_name_and_the_token_goes_on(*, script: bool) -> None:
    """In one transition."""
    run = at_work(script=script)
    transition = run.complete("work", y=2)
    assert run.data == {"x": 1, "y": 2}
    assert run.nodes == ["after"]
    kinds = [kind for kind, where, _, _ in transition.facts if where == "work"]
    assert kinds == ["activity-completing", "data-written", "activity-completed"]


def test_a_failure_with_a_delay_is_a_timer_wait_and_runs_again_under_the_same_key() -> None:
    """The retry is the same entry, another step, the next attempt."""
    run = at_work()
    first = run.at("work").step
    run.fail("work", retry_in=5 * MINUTE)
    wait = run.wait("work", RetryWait)
    assert (wait.deadline, wait.message) == (NOON + 5 * MINUTE, "it broke")
    assert run.store.rows[("timer", wait.id)].due == wait.deadline
    run.due("work")
    track = run.at("work")
    assert (track.entry, track.attempt) == (1, 2)
    assert track.step not in {0, first}
    run.complete("work")
    assert run.nodes == ["after"]


@pytest.mark.parametrize(
    "failures, kind", [(1, "handler-failure"), (3, "retries-exhausted")], ids=["first", "after-retries"]
)
def test_a_failure_without_retry_is_an_incident_that_knows_its_history(failures: int, kind: str) -> None:
    """The kind says whether retries were made; attempts and causes are kept; siblings go on."""
    run = at_work()
    for _ in range(failures - 1):
        run.fail("work", retry_in=MINUTE)
        run.due("work")
    track = run.at("work")
    run.apply(ActivityFailed(track=track.id, step=track.step, failure=failure(message="no", causes=["a", "b"])))
    incident = run.incident("work")
    assert (incident.kind.value, incident.attempts, incident.causes, incident.message) == (
        kind,
        failures,
        ("a", "b"),
        "no",
    )
    assert run.state.is_stalled


@pytest.mark.parametrize("kind", ["script", "missing-handler", "unstorable-value", "expression"])
def test_other_kinds_of_failure_keep_their_kind(kind: str) -> None:
    """Only a handler's failure becomes `retries-exhausted`."""
    run = at_work()
    run.fail("work", retry_in=MINUTE)
    run.due("work")
    run.fail("work", kind=kind)
    assert run.incidents == [(kind, "work")]


def test_retrying_the_incident_is_the_same_step_under_the_same_key() -> None:
    """Entry stays, the attempts go on."""
    run = at_work()
    run.fail("work")
    run.retry("work")
    track = run.at("work")
    assert (track.entry, track.attempt) == (1, 2)
    assert run.incidents == []
    run.complete("work")
    assert run.nodes == ["after"]


def test_retrying_with_variables_is_a_new_entry() -> None:
    """Inputs built again, attempt 1, another key."""
    run = at_work()
    run.fail("work")
    run.retry("work", {"x": 7})
    track = run.at("work")
    assert (track.entry, track.attempt, run.data["x"]) == (2, 1, 7)


def test_resolving_goes_on_with_the_given_outputs() -> None:
    """As if the step had worked."""
    run = at_work()
    run.fail("work")
    run.resolve("work", y=9)
    assert (run.nodes, run.data["y"]) == (["after"], 9)


def test_dropping_ends_the_token_and_keeps_a_dead_letter() -> None:
    """The record stays in the state and in the index."""
    run = at_work()
    run.fail("work")
    incident = run.incident("work").id
    run.drop("work")
    assert run.status is Status.COMPLETED
    assert run.store.rows[("incident", incident)].state == "dropped"


def test_an_error_that_nobody_catches_is_an_incident_with_its_code() -> None:
    """A BPMN error of an activity is no technical failure: no retry policy, an incident there."""
    run = at_work()
    track = run.at("work")
    run.apply(ErrorThrown(track=track.id, step=track.step, code="E7", message="sold out"))
    incident = run.incident("work")
    assert (incident.kind.value, incident.code) == ("uncaught-error", "E7")
    assert "sold out" in incident.message
    run.retry("work")
    assert run.at("work").attempt == 2


def test_a_value_that_cannot_be_stored_is_an_incident_and_nothing_is_written() -> None:
    """All outputs or none; the incident names scope, name and path."""
    run = at_work()
    run.complete("work", good=1, bad=[1, {"deep": object()}])
    assert run.incidents == [("unstorable-value", "work")]
    assert "bad[1].deep" in run.incident("work").message
    assert run.data == {"x": 1}
    run.retry("work")
    run.complete("work", good=1)
    assert run.nodes == ["after"]


def test_reports_of_other_runs_are_ignored() -> None:
    """An earlier attempt, a step that waits for its retry, one that never was, one whose token went on."""
    run = at_work()
    track = run.at("work")
    late = (
        ActivityCompleted(track.id, track.step, {"x": 5}),
        ActivityFailed(track=track.id, step=track.step, failure=failure()),
        ErrorThrown(track=track.id, step=track.step, code="E", message=""),
    )
    run.ignored(ActivityCompleted(track.id, track.step + 1, {}))
    run.ignored(ActivityCompleted(999, track.step, {}))
    run.fail("work", retry_in=MINUTE)
    wait = run.wait("work", RetryWait)
    for report in late:
        run.ignored(report)
    run.due("work")
    for report in late:
        run.ignored(report)
    run.ignored(TimerDue(wait.id, wait.deadline))
    run.complete("work")
    for report in late:
        run.ignored(report)


def test_what_is_returned_is_copied() -> None:
    """The handler keeps its own list: a later change of it does not reach the state."""
    run = at_work()
    mine: list[Any] = [1]
    run.complete("work", got=mine)
    mine.append(2)
    assert run.data["got"] == [1]


def test_entries_of_a_node_are_counted_over_loops() -> None:
    """The n of the idempotency key: each arrival in the same scope instance is another one."""
    built = ProcessBuilder("p")
    work = built.start("s").exclusive("again").service("work").exclusive("gate")
    work.when("n < 3").to("again")
    work.otherwise().end("e")
    run = Driver(compiled(built))
    run.start(n=0)
    for number in (1, 2, 3):
        assert run.at("work").entry == number
        run.complete("work", n=number)
    assert run.status is Status.COMPLETED


def test_a_step_found_running_after_a_crash_is_counted_and_becomes_an_incident() -> None:
    """Five times the same step is entered again; the sixth is an incident `crashed`, whose retry starts anew."""
    run = at_work()
    track = run.at("work")
    for times in range(1, MAX_REENTRIES + 1):
        transition = run.apply(Reentered())
        assert track.reentries == times
        assert [(effect.track, effect.step) for effect in transition.effects if isinstance(effect, Run)] == [
            (track.id, track.step)
        ]
    run.apply(Reentered())
    assert run.incidents == [("crashed", "work")]
    run.apply(Reentered())
    assert run.incidents == [("crashed", "work")]
    run.retry("work")
    assert (track.reentries, track.attempt) == (0, 2)


def test_a_report_ends_the_count_of_crashes() -> None:
    """A step that reported is not blamed: its next run counts from nothing."""
    run = at_work()
    run.apply(Reentered())
    run.fail("work", retry_in=MINUTE)
    run.due("work")
    assert run.at("work").reentries == 0
