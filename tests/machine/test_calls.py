"""The call activity, seen from the caller and from the called instance (clauses 10.3.6, 13.3.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import Cancel, ChildEnded, ChildEscalated, ChildRefused
from trioflow.machine.state import CallWait
from trioflow.machine.transition import ChildCancelPost, ChildEndPost, ChildPost, EscalationPost, Transition
from trioflow.model.builder import ProcessBuilder, error, escalation, message, times


def calling(**options: Any) -> Driver:
    """A call of the process q, with boundary events for the error E, the escalation X and a message."""
    p = ProcessBuilder("p")
    call = p.start("s").call("c", process="q", **options)
    call.user("after").end("e")
    call.boundary("be", on=error("E")).user("caught").end("f1")
    call.boundary("bx", on=escalation("X"), interrupting=False).user("told").end("f2")
    call.boundary("bm", on=message("stop")).user("stopped").end("f3")
    return Driver(compiled(p))


def child_of(transition: Transition) -> ChildPost:
    """The one child that the transition starts."""
    (post,) = [post for post in transition.posts if isinstance(post, ChildPost)]
    return post


def ended(run: Driver, *, status: Status = Status.COMPLETED, wait: int | None = None, **fields: Any) -> Transition:
    """The called instance ends."""
    given = next(each.id for each in run.state.waits.values() if isinstance(each, CallWait)) if wait is None else wait
    return run.apply(ChildEnded(wait=given, delivery=7, status=status, **fields))


def test_a_call_starts_a_child_and_waits_for_it() -> None:
    """Everything that can be seen goes in, and everything that it ended with comes back (*choice*)."""
    run = calling()
    post = child_of(run.start(a=1, b=[2]))
    assert (post.process_key, post.version, post.tag) == ("q", None, None)
    assert post.variables == {"a": 1, "b": [2]}
    assert post.child.startswith("i-1.")
    assert post.child in run.why("c")[0]
    transition = ended(run, outputs={"a": 5, "c": 6})
    assert transition.consumed == [7]
    assert run.nodes == ["after"]
    assert run.data == {"a": 5, "b": [2], "c": 6}


def test_inputs_and_outputs_say_what_crosses() -> None:
    """Only what is mapped."""
    run = calling(inputs={"x": "a + 1"}, outputs={"result": "y"})
    assert child_of(run.start(a=1)).variables == {"x": 2}
    ended(run, outputs={"y": 9, "other": 1})
    assert run.data == {"a": 1, "result": 9}


def test_a_child_is_told_which_errors_are_caught_around_it() -> None:
    """By the boundary of the call and all around it, its callers' included."""
    run = calling()
    post = child_of(run.start())
    assert post.catches == ("E",)
    assert not post.catches_any
    nested = Driver(compiled(_plain()), parent_id="i-0", catches=("OUTER",), catches_any=True)
    post = child_of(nested.start())
    assert post.catches == ("OUTER",)
    assert post.catches_any


def _plain() -> ProcessBuilder:
    p = ProcessBuilder("p")
    p.start("s").call("c", process="q").end("e")
    return p


def test_an_error_of_the_child_is_caught_at_the_call() -> None:
    """With its code, message and variables."""
    run = calling()
    run.start()
    ended(run, status=Status.FAILED, code="E", message="no stock", outputs={"item": 3}, is_expected=True)
    assert run.nodes == ["caught"]
    assert run.data == {"errorCode": "E", "errorMessage": "no stock", "item": 3}


def test_an_error_that_nobody_in_the_tree_catches_fails_the_caller_too() -> None:
    """The model said so, from an error end event."""
    run = calling()
    run.start()
    ended(run, status=Status.FAILED, code="F", message="broken")
    assert run.status is Status.FAILED
    assert "broken" in run.state.header.reason


def test_an_error_that_the_caller_no_longer_catches_is_an_incident_at_the_call() -> None:
    """It was expected when the child began."""
    run = calling()
    run.start()
    ended(run, status=Status.FAILED, code="GONE", message="broken", is_expected=True)
    assert run.incidents == [("uncaught-error", "c")]


def test_an_escalation_of_the_child_does_not_end_it() -> None:
    """A non-interrupting catcher starts a token beside the call."""
    run = calling()
    run.start()
    (wait,) = [each.id for each in run.state.waits.values() if isinstance(each, CallWait)]
    run.apply(ChildEscalated(wait=wait, delivery=3, code="X", values={"escalationCode": "X"}))
    assert run.nodes == ["c", "told"]
    ended(run)
    assert run.nodes == ["told", "after"] or sorted(run.nodes) == ["after", "told"]


def test_a_cancelled_call_cancels_its_child() -> None:
    """By a boundary event, or with the instance; what the child still reports is used up."""
    run = calling()
    child = child_of(run.start()).child
    (wait,) = [each.id for each in run.state.waits.values() if isinstance(each, CallWait)]
    transition = run.receive("bm")
    assert [post.child for post in transition.posts if isinstance(post, ChildCancelPost)] == [child]
    assert run.nodes == ["stopped"]
    assert ended(run, wait=wait).consumed == [7]
    assert run.nodes == ["stopped"]
    other = calling()
    child = child_of(other.start()).child
    transition = other.apply(Cancel())
    assert [post.child for post in transition.posts if isinstance(post, ChildCancelPost)] == [child]


def test_an_unknown_process_is_an_incident_and_its_retry_calls_again() -> None:
    """Under a new id."""
    run = calling()
    first = child_of(run.start())
    run.apply(ChildRefused(wait=first.wait, reason="no process 'q' is deployed"))
    assert run.incidents == [("unknown-process", "c")]
    second = child_of(run.retry("c"))
    assert second.child != first.child
    ended(run)
    assert run.nodes == ["after"]


def test_calls_inside_one_another_have_a_limit() -> None:
    """A ring of processes that call each other becomes an incident."""
    run = Driver(compiled(_plain()), depth=100)
    run.start()
    assert run.incidents == [("step-limit", "c")]


def test_each_instance_of_a_multi_instance_calls_its_own_child() -> None:
    """Late binding, a version, a computed name: each when it starts."""
    p = ProcessBuilder("p")
    p.start("s").call("c", process="=name", loop=times(2)).user("after").end("e")
    run = Driver(compiled(p))
    transition = run.start(name="q7")
    posts = [post for post in transition.posts if isinstance(post, ChildPost)]
    assert [post.process_key for post in posts] == ["q7", "q7"]
    assert len({post.child for post in posts}) == 2
    for post in posts:
        ended(run, wait=post.wait)
    assert run.nodes == ["after"]


# ------------------------------------------------------------------ the called instance


def called(**fields: Any) -> Driver:
    """A called instance with a service task, an escalation and a choice of ends."""
    p = ProcessBuilder("q")
    gate = p.start("s").service("t").throw("x", on=escalation("X")).exclusive("g")
    gate.when("bad").end("ee", on=error("E"))
    gate.otherwise().end("e")
    return Driver(compiled(p), parent_id="i-0", parent_wait=3, **fields)


def end_post(transition: Transition) -> ChildEndPost:
    """What the caller is told."""
    (post,) = [post for post in transition.posts if isinstance(post, ChildEndPost)]
    return post


def test_its_end_tells_the_caller_its_variables() -> None:
    """And an escalation that it does not catch goes there before."""
    run = called()
    run.start(bad=False)
    transition = run.complete("t", n=1)
    assert [post.code for post in transition.posts if isinstance(post, EscalationPost)] == ["X"]
    assert end_post(transition).outputs == {"bad": False, "n": 1}


@pytest.mark.parametrize("catches, expected", [(("E",), True), ((), False)])
def test_an_error_end_event_fails_it_and_says_whether_it_is_expected(catches: tuple[str, ...], expected: bool) -> None:  # noqa: FBT001  # a row
    """The caller searches on, or fails with it."""
    run = called(catches=catches)
    run.start(bad=True)
    post = end_post(run.complete("t"))
    assert run.status is Status.FAILED
    assert (post.status, post.code, post.is_expected) == (Status.FAILED, "E", expected)


def test_an_error_of_an_activity_ends_it_only_if_a_caller_catches_it() -> None:
    """Else it is an incident in the child, where it can be retried without losing its work."""
    expected = called(catches=("B",))
    expected.start(bad=False)
    post = end_post(expected.throw("t", "B", "bad luck", n=1))
    assert (post.code, post.message, post.outputs, post.is_expected) == ("B", "bad luck", {"n": 1}, True)
    alone = called()
    alone.start(bad=False)
    alone.throw("t", "B")
    assert alone.incidents == [("uncaught-error", "t")]


def test_cancelled_it_tells_its_caller() -> None:
    """Terminated, with the reason."""
    run = called()
    run.start(bad=False)
    post = end_post(run.apply(Cancel(reason="no more")))
    assert (post.status, post.message) == (Status.TERMINATED, "no more")
