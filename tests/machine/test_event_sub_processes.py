"""Event sub-processes, links, signals and throwing events (clauses 10.5.4, 13.5.4, 13.5.6)."""

from __future__ import annotations

import pytest

from tests.machine.support import Driver, compiled, thrown
from trioflow.facts import Status
from trioflow.machine.transition import MessagePost, SignalPost, Stop
from trioflow.model.builder import (
    ProcessBuilder,
    condition,
    error,
    escalation,
    link,
    message,
    signal,
    terminate,
    timer,
)
from trioflow.model.builder.vocabulary import On


def handled(on: On, *, interrupting: bool = True) -> Driver:
    """A sub-process with a task ``t`` and an event sub-process with a task ``h``; ``after`` comes behind."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        i.start("is").service("t").end("ie")
        handler = i.event_subprocess("esp")
        with handler as h:
            h.start("hs", on=on, interrupting=interrupting).user("h").end("he")
    sub.user("after").end("e")
    return Driver(compiled(p))


EVENTS: list[tuple[str, On, str]] = [
    ("timer", timer(duration="PT1H"), "due"),
    ("message", message("m"), "receive"),
    ("signal", signal("go"), "signal"),
]


@pytest.mark.parametrize("on, act", [pytest.param(*row[1:], id=row[0]) for row in EVENTS])
def test_an_interrupting_handler_takes_its_scope_over(on: On, act: str) -> None:
    """All other tokens of the scope are cancelled; when it ends the host goes on along its normal flow."""
    run = handled(on)
    run.start()
    assert run.nodes == ["sub", "t"]
    transition = getattr(run, act)("hs")
    assert run.nodes == ["sub", "esp", "h"]
    assert [type(each) for each in transition.effects] == [Stop]
    run.complete("h")
    assert run.nodes == ["after"]


@pytest.mark.parametrize("on, act", [pytest.param(*row[1:], id=row[0]) for row in EVENTS[1:]])
def test_a_non_interrupting_handler_runs_beside_any_number_of_times(on: On, act: str) -> None:
    """Each firing has its own data; the scope ends when its own tokens and all handlers have."""
    run = handled(on, interrupting=False)
    run.start()
    getattr(run, act)("hs", {"n": 1})
    getattr(run, act)("hs", {"n": 2})
    own = [scope.data for scope in run.state.scopes.values() if scope.node == "esp"]
    assert own == [{"n": 1}, {"n": 2}]
    run.complete("t")
    assert run.nodes == ["sub", "esp", "h", "esp", "h"]
    assert not any(wait.node == "hs" for wait in run.state.waits.values())  # completing: nothing is caught any more
    run.complete("h")
    run.complete("h")
    assert run.nodes == ["after"]


def test_a_handler_is_disarmed_when_its_scope_completes() -> None:
    """Nothing is left of it in the wait index."""
    run = handled(timer(duration="PT1H"))
    run.start()
    run.complete("t")
    assert run.nodes == ["after"]


def test_the_root_has_handlers_too() -> None:
    """An interrupting one of the process: when it ends the instance is completed."""
    p = ProcessBuilder("p")
    p.start("s").user("t").end("e")
    handler = p.event_subprocess("esp")
    with handler as h:
        h.start("hs", on=message("stop")).user("h").end("he")
    run = Driver(compiled(p))
    run.start()
    run.receive("hs")
    assert run.nodes == ["esp", "h"]
    run.complete("h")
    assert run.status is Status.COMPLETED


def test_an_error_is_caught_by_the_handler_of_its_scope_before_the_boundary_of_the_host() -> None:
    """From the inside out; inside the handler the same error goes on to the boundary."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        i.start("is").service("t").end("ie")
        handler = i.event_subprocess("esp")
        with handler as h:
            h.start("hs", on=error("E")).service("h").end("he")
    sub.end("e")
    sub.boundary("b", on=error("E")).user("x").end("f")
    run = Driver(compiled(p))
    run.start()
    run.throw("t", "E", "first")
    assert run.nodes == ["sub", "esp", "h"]
    assert run.data == {}
    run.throw("h", "E", "second")
    assert run.nodes == ["x"]
    assert run.data == {"errorCode": "E", "errorMessage": "second"}


@pytest.mark.parametrize(
    "interrupting, nodes", [(True, ["sub", "esp", "h"]), (False, ["sub", "t", "after", "esp", "h"])]
)
def test_an_escalation_is_caught_inside(interrupting: bool, nodes: list[str]) -> None:  # noqa: FBT001  # a row
    """By the handler of the thrower's scope; non-interrupting, the thrower goes on."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        fork = i.start("is").parallel("f")
        fork.user("t").end("e1")
        fork.throw("th", on=escalation("E")).user("after").end("e2")
        handler = i.event_subprocess("esp")
        with handler as h:
            h.start("hs", on=escalation(), interrupting=interrupting).user("h").end("he")
    sub.end("e")
    run = Driver(compiled(p))
    run.start()
    assert sorted(run.nodes) == sorted(nodes)


def test_a_condition_that_is_true_when_the_scope_opens_takes_it_over_before_a_token_starts() -> None:
    """No token of the scope is ever made."""
    run = handled(condition("off"))
    run.start(off=True)
    assert run.nodes == ["sub", "esp", "h"]
    assert run.entered("t") == 0


def test_terminate_in_a_handler_ends_only_that_handler() -> None:
    """The scope around it goes on."""
    p = ProcessBuilder("p")
    p.start("s").user("t").end("e")
    handler = p.event_subprocess("esp")
    with handler as h:
        fork = h.start("hs", on=message("m"), interrupting=False).parallel("f")
        fork.user("u").end("he")
        fork.user("v").end("ht", on=terminate())
    run = Driver(compiled(p))
    run.start()
    run.receive("hs")
    run.complete("v")
    assert run.nodes == ["t"]
    run.complete("t")
    assert run.status is Status.COMPLETED


def test_a_boundary_event_of_the_host_cancels_a_handler_too() -> None:
    """The scope is gone with all that runs in it."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        i.start("is").user("t").end("ie")
        handler = i.event_subprocess("esp")
        with handler as h:
            h.start("hs", on=message("m")).user("h").end("he")
    sub.end("e")
    sub.boundary("b", on=timer(duration="PT1H")).user("x").end("f")
    run = Driver(compiled(p))
    run.start()
    run.receive("hs")
    run.due("b")
    assert run.nodes == ["x"]


# ------------------------------------------------------------------ throwing


def test_a_signal_reaches_all_catchers_of_its_own_instance_and_leaves_for_the_others() -> None:
    """In the order of arming; the thrower goes on."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    fork.catch("c1", on=signal("go")).user("u1").end("e1")
    t = fork.user("t")
    t.end("e2")
    t.boundary("b", on=signal("go"), interrupting=False).user("u2").end("e3")
    fork.user("w").throw("th", on=signal("go")).user("u3").end("e4")
    run = Driver(compiled(p))
    run.start()
    transition = run.complete("w")
    assert sorted(run.nodes) == ["t", "u1", "u2", "u3"]
    assert [type(post) for post in transition.posts] == [SignalPost]


def test_a_signal_that_interrupts_its_thrower() -> None:
    """The thrower does not go on."""
    p = ProcessBuilder("p")
    p.start("s").throw("th", on=signal("go")).user("never").end("e")
    handler = p.event_subprocess("esp")
    with handler as h:
        h.start("hs", on=signal("go")).user("h").end("he")
    run = Driver(compiled(p))
    run.start()
    assert run.nodes == ["esp", "h"]


def test_throws_wait_until_all_tokens_have_come_to_rest() -> None:
    """A catcher on a longer way is armed before the signal is carried out."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    fork.throw("th", on=signal("go")).end("e1")
    fork.task("a").task("b").task("c").catch("c1", on=signal("go")).user("u").end("e2")
    run = Driver(compiled(p))
    run.start()
    assert run.nodes == ["u"]


def test_a_message_that_is_thrown_leaves_with_its_key() -> None:
    """Null would match nobody: an incident, and nothing is sent."""
    p = ProcessBuilder("p")
    p.start("s").throw("th", on=message("m", key="order")).end("e")
    run = Driver(compiled(p))
    transition = run.start(order="A-1")
    (post,) = transition.posts
    assert isinstance(post, MessagePost)
    assert (post.name, post.key) == ("m", "A-1")
    other = Driver(compiled(p))
    assert other.start(order=None).posts == []
    assert other.incidents == [("expression", "th")]
    other.retry("th", {"order": "B"})
    assert other.status is Status.COMPLETED


def test_an_event_with_several_definitions_throws_them_in_order() -> None:
    """*Multiple*: all of them, one after the other."""
    p = ProcessBuilder("p")
    p.start("s").end("e", on=[signal("one"), message("two")])
    run = Driver(compiled(p))
    transition = run.start()
    assert [post.name for post in thrown(transition)] == ["one", "two"]
    assert run.status is Status.COMPLETED


def test_a_link_is_a_jump_inside_its_scope() -> None:
    """Several sources may share one target."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    fork.user("a").throw("l1", on=link("over"))
    fork.user("b").throw("l2", on=link("over"))
    p.catch("target", on=link("over")).user("c").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    run.complete("b")
    assert run.nodes == ["c", "c"]


# ------------------------------------------------------------------ catching in the flow


def test_a_condition_in_the_flow_waits_for_its_edge() -> None:
    """True on arrival: it goes on at once."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    fork.catch("c", on=condition("ok")).user("u").end("e1")
    fork.user("w").end("e2")
    waiting = Driver(compiled(p))
    waiting.start(ok=False)
    assert "c" in waiting.nodes
    waiting.complete("w", ok=True)
    assert waiting.nodes == ["u"]
    at_once = Driver(compiled(p))
    at_once.start(ok=True)
    assert at_once.nodes == ["u", "w"]


def test_a_condition_that_fails_later_is_an_incident_of_its_token() -> None:
    """Its retry arms it anew."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    fork.catch("c", on=condition("n > 1")).user("u").end("e1")
    fork.user("w").end("e2")
    run = Driver(compiled(p))
    run.start(n=0)
    run.complete("w", n="many")
    assert run.incidents == [("expression", "c")]
    run.retry("c", {"n": 3})
    assert run.nodes == ["u"]


@pytest.mark.parametrize("parallel", [False, True])
def test_a_catch_with_several_definitions(parallel: bool) -> None:  # noqa: FBT001  # a row
    """Any one of them, or all; what it waits for can be read."""
    p = ProcessBuilder("p")
    p.start("s").catch("c", on=[message("m"), timer(duration="PT1H")], parallel=parallel).user("u").end("e")
    run = Driver(compiled(p))
    run.start()
    assert "waits for the message 'm'" in run.why("c")[0]
    run.receive("c", {"x": 1})
    assert run.nodes == (["c"] if parallel else ["u"])
    if parallel:
        assert "1 of them" in run.why("c")[0]
        run.due("c")
        assert run.nodes == ["u"]
    assert run.data == {"x": 1}
