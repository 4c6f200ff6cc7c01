"""The embedded sub-process and its scope (clause 13.3.4), and terminate (13.5.6)."""

from __future__ import annotations

import pytest

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import Cancel
from trioflow.machine.transition import Stop
from trioflow.model.builder import ProcessBuilder, terminate


def one() -> ProcessBuilder:
    """A sub-process with one task and a property of its own."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    with sub as inner:
        inner.property("local")
        inner.start("is").service("work").end("ie")
    sub.service("after").end("e")
    return built


def test_a_sub_process_has_its_own_data_and_completes_when_no_token_is_left_in_it() -> None:
    """Its declared names are written in it and end with it; other names are written where they live."""
    run = Driver(compiled(one()))
    run.start(shared=1)
    assert run.nodes == ["sub", "work"]
    run.complete("work", local=5, shared=2, new=3)
    assert run.nodes == ["after"]
    assert run.data == {"shared": 2, "new": 3}
    assert list(run.state.scopes) == [next(iter(run.state.scopes))]


def test_inner_names_hide_outer_ones_and_begin_as_null() -> None:
    """A name is read from the innermost scope that has it."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    with sub as inner:
        inner.property("x")
        gate = inner.start("is").exclusive("gate")
        gate.when("x is None").service("own")
        gate.otherwise().service("outer")
    run = Driver(compiled(built))
    run.start(x=1)
    assert run.nodes == ["sub", "own"]
    run.complete("own", x=7)
    assert run.data == {"x": 1}


def concurrent() -> ProcessBuilder:
    """Two tokens into one sub-process with a fork and a join inside."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    sub = fork.subprocess("sub")
    fork.to("sub")
    with sub as inner:
        inner.property("mine")
        split = inner.start("is").parallel("split")
        inner.parallel("join").end("ie")
        split.service("a").to("join")
        split.service("b").to("join")
    sub.end("e")
    return built


def test_each_token_opens_its_own_instance_with_joins_of_its_own() -> None:
    """Tokens of two instances of one sub-process never meet in a join, and data stays apart."""
    run = Driver(compiled(concurrent()))
    run.start()
    assert sorted(run.nodes) == ["a", "a", "b", "b", "sub", "sub"]
    first, second = (track.scope for track in run.all_at("a"))
    run.complete("a", mine=1)
    run.complete("a", mine=2)
    assert [run.state.scopes[scope].data["mine"] for scope in (first, second)] == [1, 2]
    assert run.nodes.count("join") == 2
    run.complete("b")
    assert sorted(run.nodes) == ["b", "join", "sub"]
    run.complete("b")
    assert run.status is Status.COMPLETED


def test_entries_count_per_scope_instance() -> None:
    """The n of the idempotency key starts anew in each instance of the sub-process."""
    run = Driver(compiled(concurrent()))
    run.start()
    assert [track.entry for track in run.all_at("a")] == [1, 1]


@pytest.mark.parametrize("depth", [1, 3])
def test_an_empty_sub_process_completes_at_once(depth: int) -> None:
    """Also where several of them stand inside each other."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub0")
    sub.service("after")
    for level in range(1, depth):
        sub = sub.inside.subprocess(f"sub{level}")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["after"]


def test_nested_sub_processes_complete_from_the_inside_out_in_one_step() -> None:
    """The end of the innermost token carries its hosts along."""
    built = ProcessBuilder("p")
    outer = built.start("s").subprocess("outer")
    middle = outer.inside.subprocess("middle")
    middle.inside.service("work")
    outer.end("e")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["outer", "middle", "work"]
    run.complete("work")
    assert run.status is Status.COMPLETED
    assert run.said("activity-completed") == ["work", "middle", "outer"]


def test_implicit_starts_inside_begin_together() -> None:
    """A sub-process without start event starts at all its nodes without incoming flow."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    sub.inside.service("a")
    sub.inside.service("b")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["sub", "a", "b"]


def test_terminate_inside_ends_that_instance_alone_and_its_host_goes_on_normally() -> None:
    """All tokens of that scope instance are cancelled, running steps stopped; the sibling instance is untouched."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    sub = fork.subprocess("sub")
    fork.to("sub")
    with sub as inner:
        split = inner.parallel("split")
        split.service("work")
        nested = split.subprocess("nested")
        nested.inside.service("deep")
        split.user("quit").end("stop", on=terminate())
    sub.service("after")
    run = Driver(compiled(built))
    run.start()
    first = run.at("quit").scope
    stopped = {
        track.id
        for track in run.state.tracks.values()
        if track.node in {"work", "deep"} and first in {scope.id for scope in run.state.scope_chain(track.scope)}
    }
    transition = run.complete("quit")
    assert {effect.track for effect in transition.effects if isinstance(effect, Stop)} == stopped
    assert sorted(run.nodes) == ["after", "deep", "nested", "quit", "sub", "work"]
    assert run.status is Status.ACTIVE


def test_terminate_clears_joins_waits_and_incidents_of_its_scope() -> None:
    """What waits, joins or stands at an incident is overtaken, stuck joins too."""
    built = ProcessBuilder("p")
    split = built.start("s").parallel("split")
    built.parallel("join")
    split.service("a").to("join")
    maybe = split.exclusive("maybe")
    maybe.when("False").to("join")
    maybe.otherwise().end("gone")
    split.service("broken")
    split.user("quit").end("stop", on=terminate(), name="Stop it")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.fail("broken")
    assert run.incidents == [("stuck", "join"), ("handler-failure", "broken")]
    run.complete("quit")
    assert run.status is Status.TERMINATED
    assert run.state.header.reason == "terminate end event Stop it (stop)"
    assert run.store.rows == {}


def test_cancel_ends_everything_at_every_depth() -> None:
    """Cancel stops running steps in nested scopes and leaves the data readable."""
    run = Driver(compiled(concurrent()))
    run.start(x=1)
    run.complete("a")
    running = {track.id for track in run.state.tracks.values() if track.node in {"a", "b"}}
    transition = run.apply(Cancel(reason="enough"))
    assert {effect.track for effect in transition.effects if isinstance(effect, Stop)} == running
    assert (run.status, run.state.header.reason) == (Status.TERMINATED, "enough")
    assert run.data == {"x": 1}
    assert run.state.entries == {}
