"""The instance as a whole: start, cancel, the end, the budget, determinism (semantics sections 1 and 10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.machine.support import NOON, Driver, compiled, failure, identity, seen
from trioflow.errors import EngineBug
from trioflow.facts import Status
from trioflow.machine.apply import advance, apply, new_state
from trioflow.machine.events import (
    ActivityCompleted,
    ActivityFailed,
    AdHocActivated,
    AdHocCompleted,
    Cancel,
    ChildEnded,
    ChildEscalated,
    ChildRefused,
    DropIncident,
    ErrorThrown,
    Event,
    MessageArrived,
    Reentered,
    ResolveIncident,
    RetryIncident,
    SignalArrived,
    Start,
    TaskAssigned,
    TaskClaimed,
    TaskCompleted,
    TaskUnclaimed,
    TimerDue,
)
from trioflow.machine.transition import Ended
from trioflow.model.builder import ProcessBuilder, terminate


def with_starts(*names: str) -> Driver:
    """An instance, not started, of a process with these none start events."""
    built = ProcessBuilder("p")
    for name in names:
        built.start(name).service(f"{name}-work")
    if not names:
        built.service("work")
    return Driver(compiled(built))


def test_a_named_start_begins_there_alone() -> None:
    """The instance does not wait for its other start events."""
    run = with_starts("one", "two")
    run.start("two")
    assert run.nodes == ["two-work"]
    run.complete("two-work")
    assert run.status is Status.COMPLETED


@pytest.mark.parametrize(
    "starts, wanted, reason",
    [
        pytest.param(("one", "two"), None, "has several start events (one, two): say which one", id="several"),
        pytest.param(("one", "two"), "three", "no none start event 'three': choose among one, two", id="unknown"),
        pytest.param((), "work", "no none start event 'work': choose among none", id="implicit"),
    ],
)
def test_a_start_that_does_not_say_where_is_refused(starts: tuple[str, ...], wanted: str | None, reason: str) -> None:
    """With several start events one must be named; an implicit start has none to name."""
    run = with_starts(*starts)
    assert reason in run.refused(Start(node=wanted))
    assert run.status is Status.CREATED


def test_a_single_start_may_be_named() -> None:
    """And an instance starts once."""
    run = with_starts("one")
    run.start("one")
    assert "was started already" in run.refused(Start())


def test_variables_that_cannot_be_stored_refuse_the_start() -> None:
    """The instance stays created and can be started with better ones."""
    run = with_starts("one")
    assert "x" in run.refused(Start(variables={"x": object()}))
    run.start(x=1)
    assert run.data == {"x": 1}


def test_an_instance_that_was_not_started_can_be_cancelled() -> None:
    """It ends, and says so, like any other."""
    run = with_starts("one")
    transition = run.apply(Cancel(reason="not needed"))
    assert run.status is Status.TERMINATED
    assert [effect.status for effect in transition.effects if isinstance(effect, Ended)] == [Status.TERMINATED]


def completed() -> Driver:
    """An instance that completed."""
    run = with_starts("one")
    run.start()
    run.complete("one-work")
    return run


def terminated() -> Driver:
    """An instance that a terminate end event ended."""
    built = ProcessBuilder("p")
    built.start("s").end("e", on=terminate())
    run = Driver(compiled(built))
    run.start()
    return run


def cancelled() -> Driver:
    """An instance that was cancelled."""
    run = with_starts("one")
    run.start()
    run.apply(Cancel())
    return run


EVENTS: tuple[Event, ...] = (
    Start(),
    Cancel(),
    ActivityCompleted(2, 3, {"x": 1}),
    ActivityFailed(track=2, step=3, failure=failure()),
    ErrorThrown(track=2, step=3, code="E", message=""),
    TimerDue(3, NOON),
    MessageArrived(wait=3, delivery=5, name="m"),
    SignalArrived(wait=3, delivery=5, name="s"),
    TaskClaimed(wait=3, actor="ann"),
    TaskUnclaimed(wait=3),
    TaskAssigned(wait=3, assignee="ann"),
    TaskCompleted(wait=3),
    ChildEnded(wait=3, delivery=5, status=Status.COMPLETED),
    ChildEscalated(wait=3, delivery=5, code="E"),
    ChildRefused(wait=3, reason="there is none"),
    AdHocActivated(wait=3, activity="a"),
    AdHocCompleted(wait=3),
    RetryIncident(incident=3),
    ResolveIncident(incident=3),
    DropIncident(incident=3),
    Reentered(),
)

CONSUMED = (SignalArrived, ChildEnded, ChildEscalated)
SILENT = (
    ActivityCompleted,
    ActivityFailed,
    ErrorThrown,
    TimerDue,
    MessageArrived,
    ChildRefused,
    Reentered,
    *CONSUMED,
)


@pytest.mark.parametrize("ended", [completed, terminated, cancelled])
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_terminal_is_terminal_for_every_event(ended: Callable[[], Driver], event: Event) -> None:
    """Nothing changes; a caller is refused, a message given back, a report ignored."""
    run = ended()
    before = run.store.documents.base(run.state)
    transition = run.apply(event, after=timedelta(hours=1))
    assert run.store.documents.base(run.state) == before
    assert (transition.facts, transition.effects) == ([], [])
    assert transition.declined == ([5] if isinstance(event, MessageArrived) else [])
    assert transition.consumed == ([5] if isinstance(event, CONSUMED) else [])
    silent = isinstance(event, SILENT)
    assert bool(transition.refusal) is not silent


def test_every_kind_of_event_is_among_those_that_were_tried() -> None:
    """The list above is all of `Event`."""
    assert {type(event) for event in EVENTS} == set(Event.__args__)


# ------------------------------------------------------------------ budget and determinism


def busy() -> ProcessBuilder:
    """A process whose start makes many steps: forks, joins, sub-processes, a stuck join."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join").service("after").end("e")
    for number in range(6):
        sub = fork.task(f"t{number}").subprocess(f"sub{number}")
        split = sub.inside.start(f"is{number}").parallel(f"split{number}")
        sub.inside.parallel(f"ijoin{number}").end(f"ie{number}")
        split.task(f"a{number}").to(f"ijoin{number}")
        split.task(f"b{number}").to(f"ijoin{number}")
        sub.to("join")
    alone = fork.exclusive("choice")
    built.parallel("lonely")
    alone.when("x").to("lonely")
    alone.otherwise().to("lonely")
    return built


@pytest.mark.parametrize("budget", [1, 2, 7, 10_000])
def test_a_budget_changes_nothing_but_the_pauses(budget: int) -> None:
    """Pending and advanced, the facts and effects together are those of one uninterrupted apply."""
    whole, parts = Driver(compiled(busy())), Driver(compiled(busy()))
    expected = whole.apply(Start(variables={"x": True}), budget=10**6)
    outcome = parts.apply(Start(variables={"x": True}), budget=budget)
    assert seen(outcome) == seen(expected)
    assert whole.store.slots == parts.store.slots
    assert whole.incidents == [("stuck", "lonely")]


def test_no_event_comes_between_while_a_turn_is_pending() -> None:
    """It would see a state that is not at rest: a bug of the shell, refused loudly."""
    program = compiled(busy())
    state = new_state(identity(program))
    assert apply(program, state, Start(variables={"x": True}), NOON, budget=3).pending
    with pytest.raises(EngineBug, match="while a turn was pending"):
        apply(program, state, Cancel(), NOON)
    while advance(program, state, NOON, budget=3).pending:
        pass
    assert not apply(program, state, Cancel(), NOON).pending


def test_the_same_events_give_the_same_transitions_and_the_same_bytes() -> None:
    """Twice the same history: equal facts, effects, ids and pieces."""

    def history() -> tuple[list[Any], bytes]:
        run = Driver(compiled(busy()))
        run.start(x=False)
        run.fail("after", retry_in=timedelta(minutes=1))
        run.due("after")
        run.complete("after", y=[1, {"z": 2}])
        run.drop("lonely")
        assert run.status is Status.COMPLETED
        return [seen(transition) for transition in run.transitions], run.store.documents.base(run.state)

    assert history() == history()
