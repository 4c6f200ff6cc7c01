"""Boundary events of every kind (semantics of events; clauses 10.5.4, 13.5.3)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.machine.support import NOON, Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import ErrorThrown, TimerDue
from trioflow.machine.state import IncidentKind, MessageWait, TimerWait
from trioflow.machine.transition import Stop
from trioflow.model.builder import ProcessBuilder, condition, error, escalation, message, signal, timer
from trioflow.model.builder.vocabulary import On


def guarded(on: On, *, interrupting: bool = True, parallel: bool = False, host: str = "service") -> Driver:
    """A task with one boundary event; ``x`` is a task behind the event, ``y`` the one behind the task."""
    p = ProcessBuilder("p")
    start = p.start("s")
    t = start.service("t") if host == "service" else start.user("t")
    t.user("y").end("done")
    t.boundary("b", on=on, interrupting=interrupting, parallel=parallel).user("x").end("elsewhere")
    return Driver(compiled(p))


EVENTS: list[tuple[str, On, str]] = [
    ("timer", timer(duration="PT1H"), "due"),
    ("message", message("m"), "receive"),
    ("signal", signal("go"), "signal"),
]


@pytest.mark.parametrize("on, act", [pytest.param(*row[1:], id=row[0]) for row in EVENTS])
@pytest.mark.parametrize("host", ["service", "user"])
def test_an_interrupting_event_cancels_its_activity(on: On, act: str, host: str) -> None:
    """One token leaves through the event; what the activity still reports is dropped."""
    run = guarded(on, host=host)
    run.start()
    assert run.nodes == ["t"]
    transition = getattr(run, act)("b")
    assert run.nodes == ["x"]
    assert [type(effect) for effect in transition.effects] == ([Stop] if host == "service" else [])
    assert "t" in run.said("token-cancelled")
    run.complete("x")
    assert run.status is Status.COMPLETED


@pytest.mark.parametrize("on, act", [pytest.param(*row[1:], id=row[0]) for row in EVENTS])
def test_a_non_interrupting_event_starts_a_token_beside_its_activity(on: On, act: str) -> None:
    """The activity goes on; a message or signal can come again, a duration fires once."""
    run = guarded(on, interrupting=False)
    run.start()
    getattr(run, act)("b")
    assert run.nodes == ["t", "x"]
    if act != "due":
        getattr(run, act)("b")
        assert run.nodes == ["t", "x", "x"]
    run.complete("t")
    assert "y" in run.nodes
    with pytest.raises(AssertionError, match="nothing of 'b' waits"):
        getattr(run, act)("b")


@pytest.mark.parametrize("on, act", [pytest.param(*row[1:], id=row[0]) for row in EVENTS])
def test_an_activity_that_completes_disarms_its_events(on: On, act: str) -> None:
    """Completed is completed: nothing waits any more, and the wait index says so."""
    run = guarded(on)
    run.start()
    run.complete("t")
    assert run.nodes == ["y"]
    assert all(wait.node != "b" for wait in run.state.waits.values())


def test_a_cycle_fires_at_each_point_while_its_activity_lives() -> None:
    """Deadlines come from the anchor; the last of ``Rn`` uses the event up."""
    run = guarded(timer(cycle="R3/PT1H"), interrupting=False)
    run.start()
    deadlines = []
    for _ in range(3):
        deadlines.append(run.armed("b", TimerWait).deadline - NOON)
        run.due("b")
    assert deadlines == [timedelta(hours=1), timedelta(hours=2), timedelta(hours=3)]
    assert run.nodes == ["t", "x", "x", "x"]
    assert all(wait.node != "b" for wait in run.state.waits.values())


def test_points_of_a_cycle_that_were_missed_collapse_into_one() -> None:
    """Overdue: fires once, at once, and goes on at the next point of the grid."""
    run = guarded(timer(cycle="R/PT1H"), interrupting=False)
    run.start()
    first = run.armed("b", TimerWait).deadline
    run.now = NOON + timedelta(hours=5, minutes=30)
    run.apply(TimerDue(run.armed("b", TimerWait).id, first))
    assert run.nodes == ["t", "x"]
    assert run.armed("b", TimerWait).deadline == NOON + timedelta(hours=6)


def test_of_a_cycle_an_interrupting_event_takes_the_first_firing_only() -> None:
    """The activity is gone after it."""
    run = guarded(timer(cycle="R3/PT1H"))
    run.start()
    run.due("b")
    assert run.nodes == ["x"]
    assert [wait for wait in run.state.waits.values() if isinstance(wait, TimerWait)] == []


def test_a_payload_is_written_where_the_activity_stands() -> None:
    """A record by its names, in the scope around the activity."""
    run = guarded(message("m"))
    run.start()
    run.receive("b", {"reason": "late"})
    assert run.data == {"reason": "late"}


def test_the_key_of_a_boundary_message_is_taken_when_the_activity_starts() -> None:
    """From the scope that encloses the host; it is stored with the wait."""
    run = guarded(message("m", key="order"))
    run.start(order="A-1")
    assert run.armed("b", MessageWait).key == "A-1"


# ------------------------------------------------------------------ conditions


def test_a_condition_fires_when_it_becomes_true() -> None:
    """After a commit of data that writes what it reads, and only then."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    t = fork.user("t")
    t.end("e1")
    t.boundary("b", on=condition("stock < 3")).user("x").end("e2")
    fork.user("sell").user("sell2").end("e3")
    run = Driver(compiled(p))
    run.start(stock=5)
    run.complete("sell", stock=4)
    assert "t" in run.nodes
    run.complete("sell2", stock=2)
    assert "x" in run.nodes
    assert "t" not in run.nodes


def test_a_condition_that_is_true_already_fires_at_once_and_its_activity_never_starts() -> None:
    """No step of the host is run."""
    run = guarded(condition("urgent"))
    transition = run.start(urgent=True)
    assert transition.effects == []
    assert run.nodes == ["x"]


def test_a_non_interrupting_condition_needs_a_new_edge() -> None:
    """True to true is none; false in between makes one."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    t = fork.user("t")
    t.end("e1")
    t.boundary("b", on=condition("n > 1"), interrupting=False).user("x").end("e2")
    turn = fork.exclusive("again")
    turn.user("set").to("again")
    run = Driver(compiled(p))
    run.start(n=0)
    fired = []
    for n in (2, 3, 0, 5):
        run.complete("set", n=n)
        fired.append(run.nodes.count("x"))
    assert fired == [1, 1, 1, 2]


def test_a_completion_that_makes_its_own_condition_true_does_not_interrupt_itself() -> None:
    """An activity's events are disarmed before its data is written."""
    run = guarded(condition("done"))
    run.start(done=False)
    run.complete("t", done=True)
    assert run.nodes == ["y"]


def test_conditions_of_one_commit_fire_in_the_order_of_arming() -> None:
    """All see one snapshot; one that the first has ended does not fire."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    for name in ("one", "two"):
        t = fork.user(name)
        t.end(f"e{name}")
        t.boundary(f"b{name}", on=condition("go")).user(f"x{name}").end(f"f{name}")
    fork.user("w").end("ew")
    run = Driver(compiled(p))
    run.start(go=False)
    run.complete("w", go=True)
    assert run.said("event-caught") == ["bone", "btwo"]
    assert run.nodes == ["xone", "xtwo"]


# ------------------------------------------------------------------ several definitions


def test_a_multiple_event_fires_at_any_one_of_its_definitions() -> None:
    """The others are withdrawn with it."""
    run = guarded([message("m"), timer(duration="PT1H")])
    run.start()
    assert len(run.state.waits) == 2
    run.due("b")
    assert run.nodes == ["x"]


def test_a_parallel_multiple_event_fires_when_all_have_come() -> None:
    """In any order; what came already is part of the state."""
    run = guarded([message("m"), signal("go")], parallel=True)
    run.start()
    run.signal("b", {"by": "sun"})
    assert run.nodes == ["t"]
    run.receive("b", {"letter": 1})
    assert run.nodes == ["x"]
    assert run.data == {"letter": 1, "by": "sun"}


def test_a_parallel_multiple_event_that_does_not_interrupt_starts_over() -> None:
    """Each round needs all of them anew."""
    run = guarded([message("m"), signal("go")], parallel=True, interrupting=False)
    run.start()
    for round_ in (1, 2):
        run.receive("b")
        run.signal("b")
        assert run.nodes.count("x") == round_


# ------------------------------------------------------------------ errors and escalations


CATCHERS: list[tuple[str, list[tuple[str, str | None]], str, str]] = [
    ("equal code", [("b1", "E1"), ("b2", "E2")], "E2", "b2"),
    ("equal code before catch-all", [("b1", None), ("b2", "E2")], "E2", "b2"),
    ("catch-all for another code", [("b1", None), ("b2", "E2")], "E3", "b1"),
    ("first of equals", [("b1", "E"), ("b2", "E")], "E", "b1"),
]


@pytest.mark.parametrize("events, code, catcher", [pytest.param(*row[1:], id=row[0]) for row in CATCHERS])
def test_an_error_is_caught_by_its_code_else_by_a_catch_all(
    events: list[tuple[str, str | None]], code: str, catcher: str
) -> None:
    """In one place an equal code wins, then who takes any; code, message and variables are bound."""
    p = ProcessBuilder("p")
    t = p.start("s").service("t")
    t.end("e")
    for name, caught in events:
        t.boundary(name, on=error(caught) if caught else error()).user(f"after-{name}").end(f"end-{name}")
    run = Driver(compiled(p))
    run.start()
    run.throw("t", code, "out of stock", item=7)
    assert run.nodes == [f"after-{catcher}"]
    assert run.data == {"errorCode": code, "errorMessage": "out of stock", "item": 7}


def test_an_error_that_nobody_catches_is_an_incident_of_its_activity() -> None:
    """The token stays; a retry runs the step again."""
    p = ProcessBuilder("p")
    t = p.start("s").service("t")
    t.end("e")
    t.boundary("b", on=error("other")).end("f")
    run = Driver(compiled(p))
    run.start()
    run.throw("t", "E")
    assert run.incidents == [("uncaught-error", "t")]
    run.retry("t")
    run.complete("t")
    assert run.status is Status.COMPLETED


def test_an_error_leaves_through_the_sub_processes_around_it() -> None:
    """From the inside out; all inside the one that catches is cancelled."""
    p = ProcessBuilder("p")
    outer = p.start("s").subprocess("outer")
    with outer as o:
        inner = o.start("os").subprocess("inner")
        with inner as i:
            fork = i.start("is").parallel("f")
            fork.service("t").end("e1")
            fork.user("u").end("e2")
        inner.end("oe")
    outer.end("e")
    outer.boundary("b", on=error("E")).user("x").end("f2")
    run = Driver(compiled(p))
    run.start()
    run.throw("t", "E")
    assert run.nodes == ["x"]
    assert len(run.state.scopes) == 1


def test_an_error_end_event_that_nobody_catches_fails_the_instance() -> None:
    """The model said so: status failed, everything else is cancelled."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    fork.user("u").end("e1")
    fork.end("e2", on=error("E"))
    run = Driver(compiled(p))
    run.start()
    assert run.status is Status.FAILED
    assert "'E'" in run.state.header.reason


def test_an_incident_is_overtaken_by_an_interrupting_event() -> None:
    """The events of an activity stay armed while it holds an incident."""
    run = guarded(timer(duration="PT1H"))
    run.start()
    run.fail("t")
    assert run.incidents == [("handler-failure", "t")]
    run.due("b")
    assert run.nodes == ["x"]
    assert run.incidents == []


ESCALATIONS = [("interrupting", True, ["x"]), ("non-interrupting", False, ["u", "after", "x"])]


@pytest.mark.parametrize("interrupting, nodes", [pytest.param(*row[1:], id=row[0]) for row in ESCALATIONS])
def test_an_escalation_is_not_critical(interrupting: bool, nodes: list[str]) -> None:  # noqa: FBT001  # a row
    """The thrower goes on unless its catcher interrupts."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        fork = i.start("is").parallel("f")
        fork.user("u").end("e1")
        fork.throw("th", on=escalation("E")).user("after").end("e2")
    sub.end("e")
    sub.boundary("b", on=escalation("E"), interrupting=interrupting).user("x").end("f2")
    run = Driver(compiled(p))
    run.start()
    assert [node for node in run.nodes if node != "sub"] == nodes
    assert run.data == {"escalationCode": "E"}


def test_an_uncaught_escalation_is_a_fact_and_no_failure() -> None:
    """An end event that escalates just ends."""
    p = ProcessBuilder("p")
    p.start("s").end("e", on=escalation("E"))
    run = Driver(compiled(p))
    run.start()
    assert run.status is Status.COMPLETED
    assert run.said("escalation-uncaught") == ["e"]


# ------------------------------------------------------------------ what cannot be armed


def test_an_event_that_cannot_be_armed_is_an_incident_and_its_host_goes_on() -> None:
    """A retry arms it, once its expression can be evaluated."""
    p = ProcessBuilder("p")
    t = p.start("s").service("t")
    t.end("e1")
    t.boundary("b", on=timer(duration="wait")).user("x").end("e2")
    run = Driver(compiled(p))
    run.start()
    assert run.incidents == [("arming", "b")]
    assert run.nodes == ["t"]
    run.retry("b", {"wait": timedelta(hours=2)})
    assert run.incidents == []
    run.due("b")
    assert "x" in run.nodes


@pytest.mark.parametrize("act", ["resolve", "drop"])
def test_an_arming_that_is_given_up_leaves_the_host_without_the_event(act: str) -> None:
    """Resolved or dropped: nothing waits for it; dropped, the record stays."""
    run = guarded(timer(duration="wait"))
    run.start()
    getattr(run, act)("b")
    assert run.incidents == []
    assert [each.kind for each in run.state.incidents.values()] == ([IncidentKind.ARMING] if act == "drop" else [])
    run.complete("t")
    assert run.nodes == ["y"]


def test_a_late_report_of_a_cancelled_activity_is_ignored() -> None:
    """Its step is not the one that runs."""
    run = guarded(timer(duration="PT1H"))
    run.start()
    old = run.at("t")
    run.due("b")
    run.ignored(ErrorThrown(track=old.id, step=old.step, code="E", message=""))


def test_what_is_armed_beside_a_token_is_told_with_it() -> None:
    """The boundary event, and what it waits for."""
    run = guarded(timer(duration="PT1H"))
    run.start()
    assert "runs it (attempt 1); beside it b waits for the timer that is due at 2026-03-02T13:00" in run.why("t")[0]
