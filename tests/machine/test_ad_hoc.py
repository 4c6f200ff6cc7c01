"""The ad-hoc sub-process: chosen by nobody, by a list, by a router, by people (clauses 10.3.5, 13.3.5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import AdHocActivated, AdHocCompleted
from trioflow.machine.state import AdHocWait
from trioflow.model.builder import ProcessBuilder, message, times


def ad_hoc(**options: Any) -> Driver:
    """An ad-hoc sub-process with the activities a, b and c, where d follows c; ``after`` comes behind it."""
    p = ProcessBuilder("p")
    sub = p.start("s").ad_hoc("x", **options)
    with sub as i:
        i.service("a")
        i.service("b")
        i.service("c").service("d")
    sub.user("after").end("e")
    sub.boundary("stop", on=message("stop")).user("stopped").end("f")
    return Driver(compiled(p))


def inside(run: Driver) -> list[str]:
    """The activities that have a token."""
    return [node for node in run.nodes if node in {"a", "b", "c", "d"}]


def test_without_condition_each_enabled_activity_runs_once() -> None:
    """In parallel; inner flows are followed; it is complete when no token is left (*choice*)."""
    run = ad_hoc()
    run.start()
    assert inside(run) == ["a", "b", "c"]
    for node in ("b", "c", "a", "d"):
        run.complete(node)
    assert run.nodes == ["after"]


def test_in_sequence_one_follows_the_other() -> None:
    """The next starts when all that the last one led to has ended."""
    run = ad_hoc(ordering="Sequential")
    run.start()
    seen = []
    while inside(run):
        (node,) = inside(run)
        seen.append(node)
        run.complete(node)
    assert seen == ["a", "b", "c", "d"]
    assert run.nodes == ["after"]


def test_a_list_says_which_start() -> None:
    """In its order; twice is twice."""
    run = ad_hoc(activities="chosen", ordering="Sequential")
    run.start(chosen=["b", "a", "b"])
    seen = []
    while inside(run):
        seen += inside(run)
        run.complete(seen[-1])
    assert seen == ["b", "a", "b"]
    assert run.nodes == ["after"]


@pytest.mark.parametrize("chosen", [["nobody"], "a", 7])
def test_a_list_that_names_no_enabled_activity_is_an_incident(chosen: Any) -> None:
    """It says which there are; its retry asks again."""
    run = ad_hoc(activities="chosen")
    run.start(chosen=chosen)
    assert run.incidents == [("expression", "x")]
    run.retry("x", {"chosen": ["a"]})
    assert inside(run) == ["a"]


def test_an_empty_list_completes_it() -> None:
    """Nothing to do is done."""
    run = ad_hoc(activities="[]")
    run.start()
    assert run.nodes == ["after"]


# ------------------------------------------------------------------ the condition


def test_the_condition_completes_it_and_cancels_the_rest() -> None:
    """Looked at after each inner completion."""
    run = ad_hoc(until="done", activities="['a', 'b', 'c']")
    run.start(done=False)
    run.complete("a", done=False)
    assert inside(run) == ["b", "c"]
    run.complete("b", done=True)
    assert run.nodes == ["after"]


def test_with_cancel_remaining_false_what_runs_may_end() -> None:
    """Nothing new is activated."""
    run = ad_hoc(until="done", activities="['a', 'b', 'c']", cancel_remaining=False)
    run.start(done=False)
    run.complete("a", done=True)
    assert inside(run) == ["b", "c"]
    run.complete("b")
    run.complete("c")
    run.complete("d")
    assert run.nodes == ["after"]


def test_a_condition_that_fails_is_an_incident_of_the_activity_that_completed() -> None:
    """Its retry looks again."""
    run = ad_hoc(until="done", activities="['a']")
    run.start()
    run.complete("a")
    assert run.incidents == [("expression", "a")]
    run.retry("a", {"done": True})
    assert run.nodes == ["after"]


# ------------------------------------------------------------------ people


def choice(run: Driver) -> int:
    """The id of the open choice."""
    return next(wait.id for wait in run.state.waits.values() if isinstance(wait, AdHocWait))


def test_with_a_condition_alone_people_choose() -> None:
    """Any enabled activity, any number of times, until the condition is true."""
    run = ad_hoc(until="done")
    run.start(done=False)
    assert inside(run) == []
    assert "activate a, b, c or to complete it" in run.why("x")[0]
    assert not run.state.is_stalled
    for _ in range(2):
        run.apply(AdHocActivated(wait=choice(run), activity="a"))
        run.complete("a")
    assert run.status is Status.ACTIVE
    run.apply(AdHocActivated(wait=choice(run), activity="b"))
    run.complete("b", done=True)
    assert run.nodes == ["after"]


def test_people_can_complete_it() -> None:
    """What still runs is cancelled."""
    run = ad_hoc(until="done")
    run.start(done=False)
    run.apply(AdHocActivated(wait=choice(run), activity="a"))
    run.apply(AdHocCompleted(wait=choice(run)))
    assert run.nodes == ["after"]


REFUSED = [("d", "choose among a, b, c"), ("nobody", "choose among a, b, c")]


@pytest.mark.parametrize("activity, reason", REFUSED)
def test_what_is_not_enabled_cannot_be_activated(activity: str, reason: str) -> None:
    """He is told what is."""
    run = ad_hoc(until="done")
    run.start(done=False)
    assert reason in run.refused(AdHocActivated(wait=choice(run), activity=activity))


def test_in_sequence_people_activate_one_at_a_time() -> None:
    """Refused while one runs."""
    run = ad_hoc(until="done", ordering="Sequential")
    run.start(done=False)
    run.apply(AdHocActivated(wait=choice(run), activity="a"))
    assert "one is running" in run.refused(AdHocActivated(wait=choice(run), activity="b"))


def test_a_choice_that_is_over_is_refused() -> None:
    """Complete is complete."""
    run = ad_hoc(until="done")
    run.start(done=False)
    wait = choice(run)
    run.apply(AdHocCompleted(wait=wait))
    assert "no open ad-hoc sub-process" in run.refused(AdHocActivated(wait=wait, activity="a"))
    assert "no open ad-hoc sub-process" in run.refused(AdHocCompleted(wait=wait))


# ------------------------------------------------------------------ the router


def test_a_router_is_asked_at_opening_and_after_each_completion() -> None:
    """A handler of the program; nothing chosen and nothing running is the end."""
    run = ad_hoc(router="next")
    assert run.program.handler_names >= {"next"}
    run.start()
    run.complete("x", activities=["a", "b"])
    assert inside(run) == ["a", "b"]
    run.complete("a")
    run.complete("x", activities=["c"])
    assert inside(run) == ["b", "c"]
    run.complete("b")
    run.complete("c")  # the router is at work: it is asked once more when it has answered
    run.complete("x", activities=[])
    run.complete("x", activities=[])
    run.complete("d")
    run.complete("x", activities=[])
    assert run.nodes == ["after"]


def test_a_router_that_fails_is_an_incident_and_what_runs_goes_on() -> None:
    """Its retry asks again."""
    run = ad_hoc(router="next")
    run.start()
    run.complete("x", activities=["a", "b"])
    run.complete("a")
    run.fail("x")
    run.complete("b")
    assert run.incidents == [("handler-failure", "x")]
    run.retry("x")
    run.complete("x", activities=[])
    assert run.nodes == ["after"]


@pytest.mark.parametrize("options", [{}, {"until": "done"}, {"router": "next"}], ids=["all", "people", "router"])
def test_a_boundary_event_cancels_all_of_it(options: dict[str, Any]) -> None:
    """In whichever state it is."""
    run = ad_hoc(**options)
    run.start(done=False)
    if "router" in options:
        run.complete("x", activities=["a", "b"])
        run.complete("a")
    run.receive("stop")
    assert run.nodes == ["stopped"]
    assert len(run.state.scopes) == 1


def test_several_instances_of_it_choose_for_themselves() -> None:
    """Each has its own scope."""
    run = ad_hoc(loop=times(2))
    run.start()
    assert inside(run) == ["a", "b", "c"] * 2
    for _ in range(2):
        for node in ("a", "b", "c", "d"):
            run.complete(node)
    assert run.nodes == ["after"]
