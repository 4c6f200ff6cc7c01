"""Timer catch events (semantics sections 3 and 8)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.machine.support import NOON, Driver, compiled
from trioflow.errors import InvalidRequest
from trioflow.facts import Status
from trioflow.machine.events import TimerDue
from trioflow.machine.program import Options
from trioflow.machine.state import TimerWait
from trioflow.model.base import TRIOFLOW_NAMESPACE, Expression, Extensions
from trioflow.model.builder import ProcessBuilder, timer
from trioflow.model.events import TimerEventDefinition

HOUR = timedelta(hours=1)


def waiting(on: Any) -> ProcessBuilder:
    """A process that waits for one timer."""
    built = ProcessBuilder("p")
    built.start("s").catch("c", on=on).end("e")
    return built


@pytest.mark.parametrize(
    "on, deadline",
    [
        pytest.param(timer(date="2026-03-02T15:00:00Z"), NOON + 3 * HOUR, id="date-to-come"),
        pytest.param(timer(date="2026-03-02T11:00:00Z"), NOON - HOUR, id="date-past"),
        pytest.param(timer(duration="PT90M"), NOON + 1.5 * HOUR, id="duration"),
        pytest.param(timer(cycle="R3/PT1H"), NOON + HOUR, id="cycle"),
        pytest.param(timer(cycle="0 15 * * *"), NOON + 3 * HOUR, id="cron"),
        pytest.param(timer(duration="pause"), NOON + 2 * HOUR, id="expression"),
    ],
)
def test_the_deadline_is_computed_when_the_token_arrives_and_recorded(on: Any, deadline: Any) -> None:
    """Literals and expressions alike; a date that is past is due at once."""
    run = Driver(compiled(waiting(on)))
    run.start(pause="PT2H")
    assert run.wait("c", TimerWait).deadline == deadline
    run.due("c")
    assert run.status is Status.COMPLETED
    assert run.store.rows == {}


def test_only_the_first_firing_of_a_cycle_counts_in_the_flow() -> None:
    """The token goes on with it; nothing is armed any more."""
    run = Driver(compiled(waiting(timer(cycle="R/PT1H"))))
    run.start()
    assert run.wait("c", TimerWait).interval == "PT1H"
    run.due("c")
    assert run.status is Status.COMPLETED


def test_the_expression_is_evaluated_once_when_it_is_armed() -> None:
    """A later change of what it reads does not move the deadline."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.catch("c", on=timer(duration="pause"))
    fork.service("work").service("more")
    run = Driver(compiled(built))
    run.start(pause="PT2H")
    run.complete("work", pause="PT9H")
    assert run.wait("c", TimerWait).deadline == NOON + 2 * HOUR


@pytest.mark.parametrize(
    "value", ["soon", None, 5, "PT", "-PT1H", [1]], ids=["text", "null", "number", "half", "negative", "list"]
)
def test_a_value_that_is_no_timer_is_an_incident_and_the_retry_computes_it_again(value: Any) -> None:
    """The incident shows what was given; with other variables the retry arms the timer."""
    run = Driver(compiled(waiting(timer(duration="pause"))))
    run.start(pause=value)
    assert run.incidents == [("expression", "c")]
    assert "pause" in run.incident("c").message
    run.retry("c", {"pause": "PT1H"})
    assert run.wait("c", TimerWait).deadline == NOON + HOUR


def test_stale_and_early_deadlines_are_ignored() -> None:
    """Another deadline than the wait's own, one that is not reached, a wait that is gone: nothing happens."""
    run = Driver(compiled(waiting(timer(duration="PT1H"))))
    run.start()
    wait = run.wait("c", TimerWait)
    run.ignored(TimerDue(wait.id, wait.deadline))
    run.now = NOON + 2 * HOUR
    run.apply(TimerDue(wait.id, wait.deadline - HOUR))
    assert run.nodes == ["c"]
    run.due("c")
    run.ignored(TimerDue(wait.id, wait.deadline))


def test_a_late_firing_says_by_how_much() -> None:
    """Overdue: it fires once, at once."""
    run = Driver(compiled(waiting(timer(duration="PT1H"))))
    run.start()
    run.now = NOON + 3 * HOUR
    transition = run.due("c")
    assert ("timer-fired", {"late_seconds": 7200.0}) in [(kind, detail) for kind, _, _, detail in transition.facts]


def test_local_times_are_read_in_the_zone_that_the_definition_names() -> None:
    """`timeZone` is an own attribute of the timer event definition."""
    definition = TimerEventDefinition(
        time_date=Expression(text="2026-07-01T09:00:00"),
        extensions=Extensions(attributes=((f"{{{TRIOFLOW_NAMESPACE}}}timeZone", "Europe/Berlin"),)),
    )
    run = Driver(compiled(waiting(definition)))
    run.start()
    assert run.wait("c", TimerWait).deadline.isoformat() == "2026-07-01T07:00:00+00:00"


def test_now_never_runs_back_for_an_instance() -> None:
    """An event with an earlier time than the last one counts as happening at that one."""
    run = Driver(compiled(waiting(timer(duration="PT1H"))))
    run.start()
    run.apply(TimerDue(999, NOON), after=HOUR)
    run.apply(TimerDue(999, NOON), after=-2 * HOUR)
    assert run.state.header.now == NOON + HOUR


# ------------------------------------------------------------------ what was missed


POLICIES = [("once", 1, 6), ("skip", 0, 6), ("all", 5, 6)]


@pytest.mark.parametrize("overdue, fired, next_hour", POLICIES)
def test_points_of_a_cycle_that_were_missed(overdue: str, fired: int, next_hour: int) -> None:
    """Once for all of them, not at all, or each; then the next point of the grid."""
    p = ProcessBuilder("p")
    t = p.start("s").user("t")
    t.end("e")
    t.boundary("b", on=timer(cycle="R/PT1H"), interrupting=False).user("x").end("f")
    run = Driver(compiled(p, overdue=overdue))
    run.start()
    run.now = NOON + timedelta(hours=5, minutes=30)
    wait = run.armed("b", TimerWait)
    while wait.deadline <= run.now:
        run.apply(TimerDue(wait.id, wait.deadline))
    assert run.nodes.count("x") == fired
    assert wait.deadline == NOON + timedelta(hours=next_hour)


def test_a_policy_that_does_not_exist_is_refused() -> None:
    """By the words that do."""
    with pytest.raises(InvalidRequest, match="once, skip, all"):
        Options(overdue="never")  # type: ignore[arg-type]  # that is what is refused


def test_a_point_that_is_only_a_little_late_is_not_skipped() -> None:
    """Skipped is what the next point has overtaken."""
    p = ProcessBuilder("p")
    t = p.start("s").user("t")
    t.end("e")
    t.boundary("b", on=timer(cycle="R/PT1H"), interrupting=False).user("x").end("f")
    run = Driver(compiled(p, overdue="skip"))
    run.start()
    wait = run.armed("b", TimerWait)
    run.now = wait.deadline + timedelta(minutes=59)
    run.apply(TimerDue(wait.id, wait.deadline))
    assert run.nodes.count("x") == 1
