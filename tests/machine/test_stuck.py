"""Joins that can never fire: found at once, and what an operator can do (semantics section 6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.machine.support import NOON, Driver, compiled, identity
from trioflow.facts import Status
from trioflow.machine import joins
from trioflow.machine.apply import apply, new_state
from trioflow.machine.events import ActivityCompleted, AdHocActivated, ResolveIncident, RetryIncident, Start
from trioflow.machine.state import AdHocWait
from trioflow.machine.transition import Run
from trioflow.model.builder import ProcessBuilder, Scope


def split_by_choice() -> ProcessBuilder:
    """The classic deadlock: an exclusive split into a parallel join."""
    built = ProcessBuilder("p")
    choice = built.start("s").exclusive("choice")
    built.parallel("join", name="Both").service("after").end("e")
    choice.when("left").service("a").to("join")
    choice.otherwise().service("b").to("join")
    return built


def test_an_exclusive_split_into_a_parallel_join_is_stuck_when_its_token_arrives() -> None:
    """No token can reach the other flow: an incident at once, naming the join, what it holds and what it misses."""
    run = Driver(compiled(split_by_choice()))
    run.start(left=True)
    assert run.incidents == []
    run.complete("a")
    assert run.incidents == [("stuck", "join")]
    assert run.state.is_stalled
    message = run.incident("join").message
    assert "Both (join)" in message
    assert "holds a token from flow_a_join (1), and misses flow_b_join" in message


def test_retry_of_a_stuck_join_looks_again_and_finds_it_stuck() -> None:
    """Nothing has changed: a new incident."""
    run = Driver(compiled(split_by_choice()))
    run.start(left=True)
    run.complete("a")
    before = run.incident("join").id
    run.retry("join")
    assert run.incidents == [("stuck", "join")]
    assert run.incident("join").id != before


def test_a_join_that_is_still_stuck_when_it_is_looked_at_again_is_stuck_since_the_first_time() -> None:
    """A retry is no new start; an incident that was overtaken is over, and the next one is a new one."""
    hour = timedelta(hours=1)
    run = Driver(compiled(resolvable_pair()))
    run.start(straight=True)
    run.complete("a")
    run.complete("b")
    run.apply(RetryIncident(incident=run.incident("one").id), after=hour)
    again = run.incident("one")
    assert (again.first, again.last) == (NOON, NOON + hour)
    run.apply(ResolveIncident(incident=run.incident("two").id), after=hour)
    assert run.incidents == []
    run.complete("c")
    assert run.incident("two").first == NOON + 2 * hour


def test_resolving_a_stuck_join_fires_it_with_what_is_there() -> None:
    """One token per queue is consumed, its survivor goes on along the outgoing flows, the outputs are written."""
    run = Driver(compiled(split_by_choice()))
    run.start(left=True)
    survivor = run.at("a").id
    run.complete("a")
    run.resolve("join", note="let it pass")
    assert [(track.id, track.node) for track in run.state.tracks.values()] == [(survivor, "after")]
    assert run.data["note"] == "let it pass"
    run.complete("after")
    assert run.status is Status.COMPLETED


def test_resolving_a_stuck_gateway_with_several_ways_out_takes_all_or_the_given_ones() -> None:
    """A parallel gateway forks, whatever conditions its flows have; given flows narrow that down."""
    for flows, expected in (((), ["c", "d"]), (("flow_join_d",), ["d"])):
        built = split_by_choice()
        built.at("join").when("missing").service("c")
        built.at("join").service("d")
        run = Driver(compiled(built))
        run.start(left=True)
        run.complete("a")
        run.resolve("join", *flows)
        assert [node for node in run.nodes if node != "after"] == expected


def test_dropping_a_stuck_join_ends_all_its_tokens_and_keeps_the_record() -> None:
    """The tokens are consumed, the incident stays as a dead letter, and the instance can complete."""
    run = Driver(compiled(split_by_choice()))
    run.start(left=True)
    run.complete("a")
    run.drop("join")
    assert run.status is Status.COMPLETED
    assert [(each.kind.value, each.state.value) for each in run.state.incidents.values()] == [("stuck", "dropped")]


def test_two_joins_that_wait_for_each_other_are_stuck_together() -> None:
    """Each misses what only the other could bring: neither counts as a holder of the other."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    one, two = built.parallel("one"), built.parallel("two")
    fork.service("a").to("one")
    fork.service("b").to("two")
    one.to("two")
    two.to("one")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    assert run.incidents == []
    run.complete("b")
    assert run.incidents == [("stuck", "one"), ("stuck", "two")]
    # "one" goes on with what is there: its token is what "two" missed, and what comes out of that one ends up alone.
    run.resolve("one")
    assert run.incidents == [("stuck", "one")]


def resolvable_pair() -> ProcessBuilder:
    """Two joins that wait for each other, with a task on the way from the first to the second."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    one, two = built.parallel("one"), built.parallel("two")
    fork.service("a").to("one")
    fork.service("b").to("two")
    between = one.exclusive("way")
    between.when("straight").service("c").to("two")
    between.otherwise().end("astray")
    two.exclusive("out").to("one")
    built.at("out").when("done").end("e")
    return built


def test_a_token_let_out_of_a_stuck_join_takes_the_incident_of_another_one_away() -> None:
    """The other join can be served again, so it is stuck no longer; when the hope is gone, it is stuck anew."""
    run = Driver(compiled(resolvable_pair()))
    run.start(straight=True)
    run.complete("a")
    run.complete("b")
    assert run.incidents == [("stuck", "one"), ("stuck", "two")]
    run.resolve("one")
    assert run.incidents == []
    assert run.said("incident-overtaken") == ["two"]
    run.complete("c")
    assert run.incidents == [("stuck", "one")]


def test_a_token_let_out_that_goes_astray_leaves_the_other_join_stuck() -> None:
    """It took the way that leads past the other join: nothing changed for that one."""
    run = Driver(compiled(resolvable_pair()))
    run.start(straight=False)
    run.complete("a")
    run.complete("b")
    before = run.incident("two").id
    run.resolve("one")
    assert run.incident("two").id == before


def test_a_stuck_join_that_can_be_served_again_serves_the_next_one_in_the_same_look() -> None:
    """Two count on the free token, the first one, which it has to pass, on one of those: all incidents go together."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    first, second, third, door = (built.parallel(name) for name in ("first", "second", "third", "door"))
    for join in (first, second, third, door):
        fork.to(join)
    fork.service("work").to("first")
    first.to("second")
    first.to("door")
    second.to("first")
    second.to("third")
    door.to("work")
    run = Driver(compiled(built))
    run.start()
    run.complete("work")
    assert run.incidents == [("stuck", "first"), ("stuck", "second"), ("stuck", "third"), ("stuck", "door")]
    run.resolve("door")
    assert run.incidents == []
    assert run.said("incident-overtaken") == ["first", "second", "third"]
    joins_of_root = next(iter(run.state.scopes.values())).joins
    assert {name: join.holders for name, join in joins_of_root.items()} == {
        "first": {"flow_second_first": "second"},
        "second": {"flow_first_second": "work"},
        "third": {"flow_second_third": "work"},
    }
    run.complete("work")
    assert run.incidents == [("stuck", "first"), ("stuck", "second"), ("stuck", "third")]


def test_a_join_held_through_another_join_is_stuck_with_it() -> None:
    """The chain: the second counts on the first; when the first is stuck, both are, in document order."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    first, last = built.parallel("first"), built.parallel("last")
    fork.service("a").to("first")
    maybe = fork.service("b").exclusive("maybe")
    maybe.when("yes").to("first")
    maybe.otherwise().end("gone")
    first.to("last")
    fork.service("c").to("last")
    last.end("e")
    run = Driver(compiled(built))
    run.start(yes=False)
    run.complete("a")
    run.complete("c")
    assert run.incidents == []
    run.complete("b")
    assert run.incidents == [("stuck", "first"), ("stuck", "last")]


def test_joins_that_count_on_each_other_are_in_doubt_together() -> None:
    """While a token can still pass both, neither is stuck; when it waits at one, they only wait for each other."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    one, two = built.parallel("one"), built.parallel("two")
    fork.service("z").to("one")
    fork.service("v").to("two")
    fork.service("x").to("two")
    two.to("one")
    one.to("two")
    run = Driver(compiled(built))
    run.start()
    run.complete("z")
    run.complete("v")
    assert run.incidents == []
    joins_of_root = next(iter(run.state.scopes.values())).joins
    assert joins_of_root["two"].holders == {"flow_x_two": "x", "flow_one_two": "one"}
    run.complete("x")
    assert run.incidents == [("stuck", "one"), ("stuck", "two")]


def test_a_join_becomes_stuck_at_once_when_the_last_token_that_could_serve_it_is_dropped() -> None:
    """The drop of an incident elsewhere is what takes the hope away."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join").end("e")
    fork.service("a").to("join")
    fork.service("b").to("join")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.fail("b")
    assert run.incidents == [("handler-failure", "b")]
    run.drop("b")
    assert run.incidents == [("stuck", "join")]


def test_a_join_is_not_stuck_while_a_token_can_come_round_a_loop() -> None:
    """What waits in a loop that leads to the missing flow can still serve it, however long it takes."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join").end("e")
    fork.service("a").to("join")
    fork.exclusive("again").service("b").exclusive("enough")
    built.at("enough").when("n < 4").to("again")
    built.at("enough").otherwise().to("join")
    run = Driver(compiled(built))
    run.start(n=0)
    run.complete("a")
    for number in range(1, 5):
        assert run.incidents == []
        run.complete("b", n=number)
    assert run.status is Status.COMPLETED


def test_a_flow_from_a_join_into_itself_can_never_be_served() -> None:
    """It could come only by passing the join."""
    built = ProcessBuilder("p")
    built.start("s").parallel("join").service("after")
    built.at("join").to("join")
    run = Driver(compiled(built))
    run.start()
    assert run.incidents == [("stuck", "join")]


def test_a_token_that_could_come_only_through_the_join_is_no_help() -> None:
    """The missing flow comes from behind the join; a second token before it would have to pass the join first."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    fork.service("a").to("merge")
    fork.service("b").to("merge")
    behind = merge.parallel("join").service("behind").exclusive("round")
    behind.when("again").to("join")
    behind.otherwise().end("e")
    run = Driver(compiled(built))
    run.start(again=True)
    run.complete("a")
    assert run.incidents == [("stuck", "join")]


def _choice_inside(inner: Scope) -> None:
    choice = inner.start("is").service("go").exclusive("choice")
    inner.parallel("join").end("ie")
    choice.when("left == n").service("a").to("join")
    choice.otherwise().service("b").to("join")


def test_a_join_inside_a_sub_process_is_stuck_for_its_own_instance_alone() -> None:
    """A token in another instance of the same sub-process, at the missing flow's source, is no help."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    sub = fork.subprocess("sub")
    fork.to("sub")
    _choice_inside(sub.inside)
    sub.end("e")
    run = Driver(compiled(built))
    run.start(left=1, n=1)
    run.complete("go")
    run.complete("go", n=2)
    assert sorted(node for node in run.nodes if node in "ab") == ["a", "b"]
    run.complete("a")
    assert run.incidents == [("stuck", "join")]
    run.complete("b")
    assert run.incidents == [("stuck", "join")] * 2
    first, second = list(run.state.open_incidents())
    assert first.scope != second.scope


def fan_out(branches: int, *, steps: int = 1, wandering: bool = False) -> ProcessBuilder:
    """So many branches of service tasks into one join; ``wandering`` ones may end before it."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join").end("e")
    for branch in range(branches):
        path = fork
        for step in range(steps):
            path = path.service(f"t{branch}_{step}")
        if wandering:
            path = path.exclusive(f"x{branch}")
            path.when("lost").end(f"lost{branch}")
            path = path.otherwise()
        path.to("join")
    return built


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flows that holders were searched for, one per search."""
    calls: list[str] = []
    search = type(joins.PARALLEL).find

    def counted(rule: Any, look: Any, want: str) -> str | None:
        calls.append(want)
        return search(rule, look, want)

    monkeypatch.setattr(type(joins.PARALLEL), "find", counted)
    return calls


@pytest.mark.parametrize("branches", [100, 1_000, 10_000])
def test_joining_many_branches_searches_once_per_branch_and_step(branches: int, searches: list[str]) -> None:
    """A fan-out stays linear: the first arrival searches for each other flow once, each later step for its own."""
    program = compiled(fan_out(branches, steps=2 if branches < 10_000 else 1))
    state = new_state(identity(program))
    effects = list(apply(program, state, Start(), NOON, budget=10**6).effects)
    while not state.is_terminal:
        run = effects.pop(0) if len(effects) < 100 else effects.pop()
        assert isinstance(run, Run)
        effects += apply(program, state, ActivityCompleted(run.track, run.step, {}), NOON).effects
    assert state.status is Status.COMPLETED
    assert len(searches) <= 3 * branches


def test_branches_that_end_one_by_one_before_a_stuck_join_stay_linear(searches: list[str]) -> None:
    """The join is stuck with the first branch that is lost; every later loss is one search, not one for each flow."""
    branches = 1_000
    program = compiled(fan_out(branches, wandering=True))
    state = new_state(identity(program))
    effects = list(apply(program, state, Start(variables={"lost": False}), NOON, budget=10**6).effects)
    for number, run in enumerate(effects):
        assert isinstance(run, Run)
        apply(program, state, ActivityCompleted(run.track, run.step, {"lost": number > 0}), NOON)
    assert [each.kind.value for each in state.open_incidents()] == ["stuck"]
    assert len(searches) <= 4 * branches


def test_resolving_many_stuck_joins_looks_only_at_those_behind_each(searches: list[str]) -> None:
    """In bulk it stays linear: a token that is let out can help no join to which no way leads from its own."""
    pairs = 300
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    for number in range(pairs):
        choice = fork.exclusive(f"choice{number}")
        built.parallel(f"join{number}").service(f"after{number}")
        choice.when("left").to(f"join{number}")
        choice.otherwise().to(f"join{number}")
    program = compiled(built)
    state = new_state(identity(program))
    apply(program, state, Start(variables={"left": True}), NOON, budget=10**6)
    stuck = list(state.open_incidents())
    assert len(stuck) == pairs
    for incident in stuck:
        apply(program, state, ResolveIncident(incident=incident.id), NOON)
    assert not state.has_incidents
    assert len(searches) <= 3 * pairs


def test_an_activity_that_is_chosen_later_takes_the_incident_of_a_join_away() -> None:
    """In an ad-hoc sub-process a token starts by no way in the model: what nobody could serve can be served then."""
    built = ProcessBuilder("p")
    sub = built.start("s").ad_hoc("x", until="False")
    with sub as inner:
        inner.parallel("join").service("after")
        inner.service("a").to("join")
        inner.service("b").to("join")
    run = Driver(compiled(built))
    run.start()
    wait = run.armed("x", AdHocWait)
    run.apply(AdHocActivated(wait=wait.id, activity="a"))
    run.complete("a")
    assert run.incidents == [("stuck", "join")]
    run.apply(AdHocActivated(wait=wait.id, activity="b"))
    assert run.incidents == []
    assert run.said("incident-overtaken") == ["join"]
    run.complete("b")
    assert "after" in run.nodes
