"""The event-based gateway, and send and receive tasks (clauses 10.3.3, 10.6.6, 13.4.4)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.machine.support import Driver, compiled, findings
from trioflow.facts import Status
from trioflow.machine.transition import MessagePost
from trioflow.model.builder import ProcessBuilder, condition, message, signal, timer


def waiting() -> ProcessBuilder:
    """A gateway with five arms, one of each kind, each with a task behind it."""
    p = ProcessBuilder("p")
    gate = p.start("s").event_gateway("g")
    gate.catch("m", on=message("m", key="order")).user("after-m").end("e1")
    gate.catch("si", on=signal("go")).user("after-si").end("e2")
    gate.catch("ti", on=timer(duration="PT1H")).user("after-ti").end("e3")
    gate.catch("co", on=condition("hurry")).user("after-co").end("e4")
    gate.receive("r", message="r").user("after-r").end("e5")
    return p


def started(**data: object) -> Driver:
    """An instance whose token rests at the gateway, unless something is true already."""
    run = Driver(compiled(waiting()))
    run.start(**({"order": 1, "hurry": False} | data))
    return run


ARMS = [("m", "receive"), ("si", "signal"), ("ti", "due"), ("r", "receive")]


@pytest.mark.parametrize("arm, act", ARMS)
def test_the_first_event_wins_and_the_others_are_withdrawn(arm: str, act: str) -> None:
    """In one step; the token goes on behind the arm."""
    run = started()
    assert run.nodes == ["g"]
    assert len(run.state.waits) == 6
    getattr(run, act)(arm)
    assert run.nodes == [f"after-{arm}"]
    assert {wait.track for wait in run.state.waits.values()} == {run.at(f"after-{arm}").id}


def test_a_condition_that_is_true_already_wins_at_once() -> None:
    """The token does not rest."""
    assert started(hurry=True).nodes == ["after-co"]


def test_of_two_conditions_that_are_true_the_first_in_document_order_wins() -> None:
    """Order of the elements, not of the flows."""
    p = ProcessBuilder("p")
    gate = p.start("s").event_gateway("g")
    p.catch("first", on=condition("true_")).user("one").end("e1")
    gate.catch("second", on=condition("true_")).user("two").end("e2")
    gate.to("first")
    run = Driver(compiled(p))
    run.start(true_=True)
    assert run.nodes == ["one"]


def test_it_says_what_it_waits_for() -> None:
    """All arms, with or."""
    (line,) = started().why("g")
    assert "the message 'm' with the key 1 or waits for the signal 'go'" in line


def test_an_arm_that_cannot_be_armed_keeps_the_gateway_from_waiting() -> None:
    """Nothing is armed; the retry arms all."""
    run = started(order=None)
    assert run.incidents == [("expression", "g")]
    assert len(run.state.waits) == 0
    run.retry("g", {"order": 5})
    assert len(run.state.waits) == 6


def test_an_incident_at_the_gateway_is_resolved_along_one_arm() -> None:
    """The operator decides; without a flow he is told which there are."""
    run = started(order=None)
    run.resolve("g", "flow_g_ti")
    assert run.nodes == ["ti"]
    run.due("ti")
    assert run.nodes == ["after-ti"]


def test_an_arm_of_another_kind_is_a_finding() -> None:
    """It names the arm."""
    p = ProcessBuilder("p")
    p.start("s").event_gateway("g").task("t").end("e")
    assert any("'t'" in each.message for each in findings(p))


def test_an_arm_that_is_parallel_multiple_wins_when_all_of_it_has_come() -> None:
    """Until then the other arms can still win."""
    p = ProcessBuilder("p")
    gate = p.start("s").event_gateway("g")
    gate.catch("both", on=[message("a"), message("b")], parallel=True).user("after").end("e1")
    gate.catch("ti", on=timer(duration="PT1H")).user("late").end("e2")
    run = Driver(compiled(p))
    run.start()
    run.receive("both", {"one": 1})
    assert run.nodes == ["g"]
    run.receive("both", {"two": 2})
    assert run.nodes == ["after"]
    assert run.data == {"one": 1, "two": 2}


# ------------------------------------------------------------------ send and receive tasks


def test_a_receive_task_completes_with_its_message() -> None:
    """It is an activity: it can be interrupted, and repeated."""
    p = ProcessBuilder("p")
    t = p.start("s").receive("t", message="m", key="order")
    t.end("e")
    t.boundary("b", on=timer(duration="PT1H")).user("late").end("f")
    run = Driver(compiled(p))
    run.start(order=7)
    run.receive("t", {"answer": 42})
    assert run.status is Status.COMPLETED
    assert run.data["answer"] == 42
    other = Driver(compiled(p))
    other.start(order=7)
    other.now += timedelta(minutes=5)
    other.due("b")
    assert other.nodes == ["late"]


def test_a_send_task_throws_its_message_unless_it_has_a_handler() -> None:
    """With a message only it is a throw; with a handler it is a step."""
    p = ProcessBuilder("p")
    p.start("s").send("t", message="m").end("e")
    run = Driver(compiled(p))
    (post,) = run.start().posts
    assert isinstance(post, MessagePost)
    assert run.status is Status.COMPLETED
    q = ProcessBuilder("q")
    q.start("s").send("t", handler="mail").end("e")
    program = compiled(q)
    assert program.handler_names == {"mail"}
