"""The inclusive gateway: what it takes, what it waits for, what holds it back (clause 13.4.3; semantics section 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.machine.support import NOON, Driver, Store, compiled, differences, identity, seen
from trioflow.checkpoint.documents import Documents
from trioflow.checkpoint.recorder import Recorder
from trioflow.facts import Status
from trioflow.machine.apply import apply, new_state
from trioflow.machine.events import (
    ActivityCompleted,
    DropIncident,
    Event,
    ResolveIncident,
    RetryIncident,
    Start,
    TimerDue,
)
from trioflow.machine.invariants import violations
from trioflow.machine.join_invariants import holds_back
from trioflow.machine.joins import Complex, inclusive
from trioflow.machine.joins.inclusive import Inclusive
from trioflow.machine.joins.reach import ways_to
from trioflow.machine.program import NodeProgram, Program
from trioflow.machine.state import Scope, State, TimerWait, Track, TrackState
from trioflow.machine.transition import Run
from trioflow.machine.turn import Turn
from trioflow.model.builder import Path, ProcessBuilder, error, link, signal, timer

# ------------------------------------------------------------------ the split


def split(*, default: bool = True, plain: bool = False) -> ProcessBuilder:
    """Two ways with a condition, and more if asked for."""
    built = ProcessBuilder("p")
    gate = built.start("s").inclusive("gate")
    gate.when("n > 1").service("a")
    if default:
        gate.otherwise().service("d")
    gate.when("n > 2").service("b")
    if plain:
        gate.service("c")
    return built


@pytest.mark.parametrize(
    "built, n, taken",
    [
        pytest.param(split(), 3, ["a", "b"], id="all-true"),
        pytest.param(split(), 2, ["a"], id="some-true"),
        pytest.param(split(), 1, ["d"], id="none-true"),
        pytest.param(split(plain=True), 1, ["c"], id="without-condition-is-taken"),
        pytest.param(split(plain=True), 3, ["a", "b", "c"], id="all"),
    ],
)
def test_a_split_takes_what_is_true_and_what_has_no_condition_else_the_default(
    built: ProcessBuilder, n: int, taken: list[str]
) -> None:
    """In document order; the default only if nothing else is taken."""
    run = Driver(compiled(built))
    run.start(n=n)
    assert run.nodes == taken


def test_a_split_with_nothing_to_take_is_an_incident_whose_retry_chooses_again() -> None:
    """The token has joined already: a retry does not queue it once more."""
    run = Driver(compiled(split(default=False)))
    run.start(n=1)
    assert run.incidents == [("no-outgoing-flow", "gate")]
    run.retry("gate", {"n": 3})
    assert run.nodes == ["a", "b"]


def test_a_condition_of_a_split_that_fails_is_an_incident_never_false() -> None:
    """Null is neither true nor false; resolving goes along given flows."""
    run = Driver(compiled(split()))
    run.start(n=None)
    assert run.incidents == [("expression", "gate")]
    run.resolve("gate", "flow_gate_b")
    assert run.nodes == ["b"]


# ------------------------------------------------------------------ the join


def branches(*conditions: str) -> ProcessBuilder:
    """A split into services ``b0``, ``b1``, ... under conditions, and a join behind them."""
    built = ProcessBuilder("p")
    gate = built.start("s").inclusive("gate")
    built.inclusive("join", name="All").service("after").end("e")
    for number, condition in enumerate(conditions):
        gate.when(condition).service(f"b{number}").to("join")
    return built


def test_a_join_waits_for_what_was_taken_and_for_nothing_else() -> None:
    """The last to arrive goes on; the branch that was not taken is not awaited."""
    run = Driver(compiled(branches("True", "False", "True")))
    run.start()
    survivor = run.at("b2").id
    run.complete("b0")
    assert run.nodes == ["join", "b2"]
    (why,) = run.why("join")
    assert why == (
        f"token {run.all_at('join')[0].id} at All (join) waits at the join, which holds flow_b0_join, "
        "because a token at b2 can still come by flow_b2_join"
    )
    run.complete("b2")
    assert [(track.id, track.node) for track in run.state.tracks.values()] == [(survivor, "after")]
    assert run.said("token-merged") == ["join"]


def test_a_join_lets_a_single_token_pass_at_once() -> None:
    """Nothing else can come."""
    run = Driver(compiled(branches("False", "True")))
    run.start()
    run.complete("b1")
    assert run.nodes == ["after"]


def filled_and_empty() -> ProcessBuilder:
    """A token at ``either`` can come by the flow that holds a token already, or by the empty one."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    built.inclusive("join").service("after")
    merge.to("join")
    fork.service("first").to("merge")
    either = fork.service("either").exclusive("way")
    either.when("other").to("join")
    either.otherwise().to("merge")
    return built


def test_a_token_that_can_reach_a_filled_flow_too_does_not_hold_a_join_back() -> None:
    """The second clause of Table 13.3: the join does not wait for it, and fires again when it comes."""
    run = Driver(compiled(filled_and_empty()))
    run.start(other=True)
    run.complete("first")
    assert run.nodes == ["after", "either"]
    run.complete("either")
    assert run.nodes == ["after", "after"]


def test_a_token_that_can_reach_an_empty_flow_alone_holds_a_join_back() -> None:
    """As above, but who could come both ways came first, by its own flow; the other is empty, and awaited."""
    run = Driver(compiled(filled_and_empty()))
    run.start(other=True)
    run.complete("either")
    assert run.nodes == ["first", "join"]
    run.complete("first")
    assert run.nodes == ["after"]


def wandering() -> ProcessBuilder:
    """A branch that may end before the join."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").service("after")
    fork.service("stays").to("join")
    way = fork.service("goes").exclusive("way")
    way.when("lost").end("gone")
    way.otherwise().to("join")
    return built


def test_a_join_fires_when_the_token_that_held_it_back_ends_elsewhere() -> None:
    """Death is a change of the scope's tokens too."""
    run = Driver(compiled(wandering()))
    run.start(lost=True)
    run.complete("stays")
    assert run.nodes == ["join", "goes"]
    run.complete("goes")
    assert run.nodes == ["after"]


def test_a_join_is_held_back_by_an_incident_and_fires_when_that_is_dropped() -> None:
    """An operator can retry it, so its token can still come; a dead letter cannot."""
    run = Driver(compiled(wandering()))
    run.start(lost=False)
    run.complete("stays")
    run.fail("goes")
    assert run.nodes == ["join", "goes"]
    run.drop("goes")
    assert run.nodes == ["after"]


def test_a_join_without_outgoing_flow_consumes_its_survivor() -> None:
    """An implicit end."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join")
    fork.service("a").to("join")
    fork.service("b").to("join")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.complete("b")
    assert run.status is Status.COMPLETED


def test_a_join_in_a_loop_fires_once_per_round() -> None:
    """What comes out of it can come back by another flow, round after round."""
    built = ProcessBuilder("p")
    built.start("s").exclusive("again").inclusive("split")
    built.at("split").when("n != 1").service("a").inclusive("join").service("count").exclusive("enough")
    built.at("split").when("n != 2").service("b").to("join")
    built.at("enough").when("n < 3").to("again")
    built.at("enough").otherwise().end("e")
    run = Driver(compiled(built))
    run.start(n=0)
    for number, expected in enumerate((["a", "b"], ["b"], ["a"]), start=1):
        assert run.nodes == expected
        for node in expected:
            run.complete(node)
        run.complete("count", n=number)
    assert run.status is Status.COMPLETED


def test_a_flow_from_behind_the_join_is_not_awaited_by_the_token_that_must_pass_it_first() -> None:
    """A way that visits the join is no way."""
    built = ProcessBuilder("p")
    built.start("s").service("before").inclusive("join").service("work").exclusive("more")
    built.at("more").when("again").to("join")
    built.at("more").otherwise().end("e")
    run = Driver(compiled(built))
    run.start(again=True)
    run.complete("before")
    for _ in range(3):
        assert run.nodes == ["work"]
        run.complete("work")
    run.complete("work", again=False)
    assert run.status is Status.COMPLETED


def test_excess_tokens_wait_for_the_next_firing_which_consumes_one_of_each_flow_again() -> None:
    """Two on one flow, one on another: the first firing takes one of each, the second what is left."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    built.inclusive("join").service("after")
    merge.to("join")
    fork.service("a1").to("merge")
    fork.service("a2").to("merge")
    fork.service("b").to("join")
    run = Driver(compiled(built))
    run.start()
    run.complete("a1")
    run.complete("a2")
    assert run.nodes == ["join", "join", "b"]
    run.complete("b")
    assert run.nodes == ["after", "after"]
    assert run.said("token-merged") == ["join"]


def test_joins_that_are_ready_at_the_same_point_fire_together_in_document_order() -> None:
    """One step takes away what held both back."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    way = fork.service("goes").exclusive("way")
    for name in ("one", "two"):
        built.inclusive(name).service(f"after-{name}")
        fork.to(name)
        way.when(name).to(name)
    way.otherwise().end("gone")
    run = Driver(compiled(built))
    run.start(one=False, two=False)
    assert run.nodes == ["goes", "one", "two"]
    run.complete("goes")
    assert run.nodes == ["after-one", "after-two"]


# ------------------------------------------------------------------ links, boundary events, scopes


def test_a_link_is_a_way() -> None:
    """A token before the throwing link event holds the join behind the catching one back."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").service("after")
    fork.service("a").to("join")
    fork.service("b").throw("out", on=link("across"))
    built.catch("in", on=link("across")).to("join")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    assert run.nodes == ["join", "b"]
    run.complete("b")
    assert run.nodes == ["after"]


def guarded(*, interrupting: bool = True) -> ProcessBuilder:
    """A host that leads past the join; only its boundary event leads to it."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").service("after")
    fork.service("a").to("join")
    fork.service("host").end("done")
    built.boundary("host", "late", on=timer(duration="PT1H"), interrupting=interrupting).to("join")
    return built


def test_a_boundary_event_is_a_way_by_which_its_host_holds_a_join_back() -> None:
    """It can fire as long as the host lives, and not any more when that has ended."""
    run = Driver(compiled(guarded()))
    run.start()
    run.complete("a")
    assert run.nodes == ["join", "host"]
    run.complete("host")
    assert run.nodes == ["after"]


@pytest.mark.parametrize("interrupting", [True, False])
def test_a_boundary_event_that_fires_brings_the_token_that_was_awaited(interrupting: bool) -> None:  # noqa: FBT001
    """The host goes with it, or stays; then it has no flow any more that it alone could fill."""
    run = Driver(compiled(guarded(interrupting=interrupting)))
    run.start()
    run.complete("a")
    run.due("late")
    assert run.nodes == (["after"] if interrupting else ["host", "after"])


def test_a_boundary_event_never_releases_a_join() -> None:
    """The host reaches the empty flow by its flow, and the filled one by its boundary event alone: it holds back."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    built.inclusive("join").service("after")
    merge.to("join")
    fork.service("a").to("merge")
    fork.service("host").to("join")
    built.boundary("host", "fails", on=error("E")).to("merge")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    assert run.nodes == ["join", "host"]
    run.complete("host")
    assert run.nodes == ["after"]


def test_a_boundary_event_on_the_way_holds_back_too() -> None:
    """A token that stands before the host can come to the event later."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").service("after")
    fork.service("a").to("join")
    fork.service("before").service("host").end("done")
    built.boundary("host", "told", on=signal("now")).to("join")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    assert run.nodes == ["join", "before"]
    run.complete("before")
    assert run.nodes == ["join", "host"]
    run.signal("told")
    assert run.nodes == ["after"]


def test_tokens_of_a_child_scope_stand_at_its_node() -> None:
    """What happens inside does not matter before the sub-process has ended."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").service("after")
    fork.service("a").to("join")
    sub = fork.subprocess("sub")
    sub.inside.start("is").service("in")
    sub.to("join")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    assert run.nodes == ["join", "sub", "in"]
    run.complete("in")
    assert run.nodes == ["after"]


def test_each_scope_instance_joins_for_itself() -> None:
    """A token in another instance of the same sub-process holds nothing back."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    sub = fork.subprocess("sub")
    fork.to("sub")
    split = sub.inside.start("is").service("go").inclusive("split")
    sub.inside.inclusive("join").service("after")
    split.when("n != 1").service("a").to("join")
    split.when("True").service("b").to("join")
    run = Driver(compiled(built))
    run.start(n=0)
    run.complete("go")
    run.complete("go", n=1)
    assert [node for node in run.nodes if node != "sub"] == ["a", "b", "b"]
    run.complete("b")  # that of the second instance, where "a" was not taken
    assert [node for node in run.nodes if node != "sub"] == ["a", "after", "b"]
    run.complete("b")
    assert [node for node in run.nodes if node != "sub"] == ["a", "after", "join"]


# ------------------------------------------------------------------ joins among each other


def circle() -> ProcessBuilder:
    """Two inclusive joins, each of which leads to the other's second flow: the vicious circle."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    one, two = built.inclusive("one", name="One"), built.inclusive("two")
    fork.service("a").to("one")
    fork.service("b").to("two")
    one.to("two")
    leave = two.exclusive("leave")
    leave.when("round").to("one")
    leave.otherwise().end("e")
    return built


def test_inclusive_joins_that_hold_each_other_back_are_stuck_together() -> None:
    """Neither fires by the rule, nobody else can come: an incident at both, at once, that names who holds it back."""
    run = Driver(compiled(circle()))
    run.start(round=False)
    run.complete("a")
    assert run.incidents == []
    run.complete("b")
    assert run.incidents == [("stuck", "one"), ("stuck", "two")]
    assert run.incident("two").message == (
        "the join two can never fire: it holds a token from flow_b_two (1), and the token at One (one) holds it back, "
        "which could still come by flow_one_two but can never go on; resolve the incident to go on with what is "
        "there, or drop its tokens"
    )
    assert run.why("one")[0].endswith(f"the join is stuck (incident {run.incident('one').id})")


def test_resolving_one_of_a_vicious_circle_lets_the_other_fire() -> None:
    """Its token comes to the flow that was missed; nobody is stuck any more."""
    run = Driver(compiled(circle()))
    run.start(round=False)
    run.complete("a")
    run.complete("b")
    run.resolve("one")
    assert run.status is Status.COMPLETED
    assert run.said("incident-overtaken") == ["two"]


def test_retrying_one_of_a_vicious_circle_finds_it_stuck_again() -> None:
    """Nothing has changed."""
    run = Driver(compiled(circle()))
    run.start(round=False)
    run.complete("a")
    run.complete("b")
    before = run.incident("one")
    run.retry("one")
    assert run.incidents == [("stuck", "two"), ("stuck", "one")]
    assert run.incident("one").id != before.id
    assert run.incident("one").first == before.first


def behind_a_parallel_join() -> ProcessBuilder:
    """An inclusive join that is held back by a token at a parallel one, whose other flow may stay empty."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").service("after")
    both = built.parallel("both")
    both.to("join")
    fork.service("a").to("join")
    fork.service("b").to("both")
    way = fork.service("c").exclusive("way")
    way.when("lost").end("gone")
    way.otherwise().to("both")
    return built


def test_a_token_that_waits_at_another_join_is_one_elsewhere() -> None:
    """As long as that join can fire, the inclusive one waits and is not stuck."""
    run = Driver(compiled(behind_a_parallel_join()))
    run.start(lost=False)
    run.complete("a")
    run.complete("b")
    assert run.nodes == ["join", "both", "c"]
    assert run.incidents == []
    run.complete("c")
    assert run.nodes == ["after"]


def test_who_is_held_back_by_a_stuck_join_is_stuck_with_it_and_fires_when_that_is_dropped() -> None:
    """The parallel join will never fire, so its token never moves: the inclusive one cannot fire either."""
    run = Driver(compiled(behind_a_parallel_join()))
    run.start(lost=True)
    run.complete("a")
    run.complete("b")
    run.complete("c")
    assert run.incidents == [("stuck", "join"), ("stuck", "both")]
    run.drop("both")
    assert run.incidents == []
    assert run.said("incident-overtaken") == ["join"]
    assert run.nodes == ["after"]


def test_resolving_a_stuck_join_takes_the_incident_of_the_one_that_it_held_back_away() -> None:
    """Its token moves on, and comes."""
    run = Driver(compiled(behind_a_parallel_join()))
    run.start(lost=True)
    run.complete("a")
    run.complete("b")
    run.complete("c")
    run.resolve("both")
    assert run.incidents == []
    assert run.nodes == ["after"]


@pytest.mark.parametrize("comes", [True, False])
def test_somebody_else_can_release_a_join_that_only_a_stuck_one_holds_back(comes: bool) -> None:  # noqa: FBT001
    """The token at ``dead`` never moves, and reaches two empty flows; if one of them is filled it does not hold back.

    The token at ``free`` does not hold back, because it reaches the filled flow too.  But as long as it can come by an
    empty one the join is not stuck; it is when that token has come by the filled one.
    """
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    left, right = built.exclusive("left"), built.exclusive("right")
    built.inclusive("join").service("after")
    dead = built.parallel("dead")
    left.to("join")
    right.to("join")
    fork.service("a").to("left")
    fork.service("b").to("dead")
    lost = fork.service("c").exclusive("lost")
    lost.when("False").to("dead")
    lost.otherwise().end("gone")
    way = fork.service("free").exclusive("way")
    way.when("comes").to("right")
    way.otherwise().to("left")
    out = dead.exclusive("out")
    out.when("True").to("right")
    out.otherwise().to("join")
    run = Driver(compiled(built))
    run.start(comes=comes)
    for node in ("b", "c", "a"):
        run.complete(node)
    assert run.incidents == [("stuck", "dead")]
    run.complete("free")
    if comes:
        assert run.nodes == ["dead", "after"]
        assert run.incidents == [("stuck", "dead")]
    else:
        assert run.nodes == ["join", "dead", "join"]
        assert run.incidents == [("stuck", "dead"), ("stuck", "join")]


def test_a_join_that_fires_although_it_was_stuck_gives_hope_to_those_behind_it() -> None:
    """What held it back is dropped; its token is on the way to a join that was stuck with it, and no longer is."""
    built = behind_a_parallel_join()
    built.parallel("last").end("e")
    built.at("after").to("last")
    built.at("fork").service("z").to("last")
    run = Driver(compiled(built))
    run.start(lost=True)
    for node in ("a", "b", "z", "c"):
        run.complete(node)
    assert run.incidents == [("stuck", "join"), ("stuck", "both"), ("stuck", "last")]
    run.drop("both")
    assert run.incidents == []
    assert run.said("incident-overtaken") == ["join", "last"]
    run.complete("after")
    assert run.status is Status.COMPLETED


def test_a_token_that_waited_at_a_join_begins_to_count_its_steps_anew() -> None:
    """Only what happens without anything from outside is a livelock."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").task("four").task("five").task("six").end("e")
    fork.task("two").task("three").to("join")
    way = fork.service("goes").exclusive("way")
    way.when("False").to("join")
    way.otherwise().end("gone")
    run = Driver(compiled(built, hop_limit=6))
    run.start()
    run.complete("goes")
    assert run.status is Status.COMPLETED


def test_a_loop_of_inclusive_joins_alone_is_a_livelock() -> None:
    """The token goes round without ever waiting: the step limit stops it behind the join; a retry goes on."""
    built = ProcessBuilder("p")
    built.start("s").inclusive("join")
    built.at("join").when("again").to("join")
    built.at("join").otherwise().end("e")
    run = Driver(compiled(built, hop_limit=20))
    run.start(again=True)
    assert run.incidents == [("step-limit", "join")]
    run.retry("join", {"again": False})
    assert run.status is Status.COMPLETED


def test_two_tokens_that_chase_each_other_through_a_join_are_a_livelock_too() -> None:
    """Each fires while the other waits in the queue, but nothing from outside ever happens between."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    join = built.inclusive("join")
    merge.to("join")
    fork.to("merge")
    fork.to("merge")
    join.when("again").to("merge")
    join.otherwise().end("e")
    built.task("never").to("join")
    run = Driver(compiled(built, hop_limit=30))
    run.start(again=True)
    assert [kind for kind, _ in run.incidents] == ["step-limit", "step-limit"]


# ------------------------------------------------------------------ what it costs


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes that were asked whether they hold an inclusive join back."""
    asked: list[str] = []

    class Counted(dict[str, Any]):
        def __getitem__(self, node: str) -> Any:
            asked.append(node)
            return super().__getitem__(node)

    monkeypatch.setattr(inclusive, "ways_to", lambda program, node: Counted(ways_to(program, node)))
    return asked


def fan(width: int, *, taken: int, steps: int = 1, parked: int = 0) -> ProcessBuilder:
    """So many branches into one inclusive join, the first of which are not taken; and tokens that stay elsewhere."""
    built = ProcessBuilder("p")
    gate = built.start("s").inclusive("gate")
    built.inclusive("join").end("e")
    for branch in range(width):
        path = gate.when(f"{branch} >= {width - taken}")
        for step in range(steps):
            path = path.service(f"t{branch}_{step}")
        path.to("join")
    for number in range(parked):
        gate.when("True").user(f"u{number}")
    return built


def _run_all(program: Program, *, newest_first: bool) -> State:
    state = new_state(identity(program))
    effects = list(apply(program, state, Start(), NOON, budget=10**6).effects)
    while effects:
        run = effects.pop() if newest_first else effects.pop(0)
        assert isinstance(run, Run) or state.is_terminal
        if isinstance(run, Run):
            effects += apply(program, state, ActivityCompleted(run.track, run.step, {}), NOON).effects
    return state


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("width", [10, 100, 1_000])
def test_a_join_over_many_branches_asks_each_node_a_bounded_number_of_times(
    width: int,
    newest_first: bool,  # noqa: FBT001
    looks: list[str],
) -> None:
    """Whatever the order in which they come; the branches that are not taken cost nothing."""
    state = _run_all(compiled(fan(width, taken=width // 2, steps=2)), newest_first=newest_first)
    assert state.status is Status.COMPLETED
    assert len(looks) <= 12 * width


def test_ten_thousand_branches_join_in_linear_time() -> None:
    """The same at the size for which it is meant: quadratic it would take minutes."""
    state = _run_all(compiled(fan(10_000, taken=10_000)), newest_first=False)
    assert state.status is Status.COMPLETED


def test_tokens_that_stay_elsewhere_are_asked_once() -> None:
    """A thousand open user tasks beside a thousand branches."""
    width = 1_000
    program = compiled(fan(width, taken=width, parked=width))
    state = _run_all(program, newest_first=False)
    assert len(state.tracks) == width


# ------------------------------------------------------------------ against the rule, evaluated from scratch

KINDS = st.sampled_from(
    ["service", "parallel", "inclusive", "inclusive", "exclusive", "host", "link", "complex", "queue"]
)


@st.composite
def _graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[int, int]]]:
    kinds = draw(st.lists(KINDS, min_size=3, max_size=8))
    ends = st.integers(0, len(kinds) - 1)
    return kinds, draw(st.lists(st.tuples(ends, ends), min_size=3, max_size=14))


def _place(built: ProcessBuilder, number: int, kind: str) -> list[str]:
    """Add a node, or a pair; the names of those that flows can leave."""
    name, second = f"n{number}", f"m{number}"
    match kind:
        case "host":
            built.service(name)
            built.boundary(name, second, on=timer(duration="PT1H"), interrupting=number % 2 == 0)
            return [name, second]
        case "complex":
            built.complex(name, activation=f"activationCount >= {1 + number % 2}")
            return [name]
        case "queue":
            built.service(name, start_quantity=2)
            return [name]
        case "link":
            built.throw(name, on=link(name))
            built.catch(second, on=link(name))
            return [second]
        case _:
            add: dict[str, Callable[[str], Path]] = {
                "service": built.service,
                "parallel": built.parallel,
                "inclusive": built.inclusive,
                "exclusive": built.exclusive,
            }
            add[kind](name)
            return [name]


def _wild(kinds: list[str], flows: list[tuple[int, int]]) -> Program:
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    leaves = [_place(built, number, kind) for number, kind in enumerate(kinds)]
    for number in range(len(kinds)):
        fork.to(f"n{number}")
    for count, (source, target) in enumerate(flows):
        chooses = kinds[source] in {"exclusive", "inclusive", "complex"}
        condition = f"choice % 3 != {target % 3}" if chooses else None
        built.flow(leaves[source][count % len(leaves[source])], f"n{target}", condition=condition)
    return compiled(built, hop_limit=30)


@pytest.fixture(scope="module")
def fired() -> Iterator[list[str]]:
    """The joins that fired by the inclusive rule, each checked against that rule, evaluated from scratch."""
    names: list[str] = []
    fires: dict[type, Callable[[Any, Turn, Scope, NodeProgram], None]] = {
        Inclusive: Inclusive.fire,
        Complex: Complex.fire,
    }

    def checked(rule: Inclusive | Complex, turn: Turn, scope: Scope, node: NodeProgram) -> None:
        if not turn.state.agenda:  # of those that fire together the first: all still stand where they were judged
            others = {track.node for track in scope.tracks.values() if track.node != node.id or track.state.at_rest}
            assert not [each for each in others if holds_back(turn.program, node, scope.joins[node.id], each)]
        names.append(node.id)
        fires[type(rule)](rule, turn, scope, node)

    with pytest.MonkeyPatch.context() as patch:
        for kind in fires:
            patch.setattr(kind, "fire", checked)
        yield names


def _acts(state: State, data: st.DataObject) -> Event | None:
    choices: list[Any] = [track for track in state.tracks.values() if track.state is TrackState.EXECUTING]
    choices += [*state.open_incidents(), *(wait for track in state.tracks.values() for wait in track.armed.values())]
    if not choices:
        return None
    chosen = choices[data.draw(st.integers(0, len(choices) - 1))]
    choice = data.draw(st.integers(0, 5))
    if isinstance(chosen, Track):
        return ActivityCompleted(chosen.id, chosen.step, {"choice": choice})
    if isinstance(chosen, TimerWait):
        return TimerDue(chosen.id, chosen.deadline)
    if choice == 3:
        return RetryIncident(incident=chosen.id)
    return DropIncident(incident=chosen.id) if choice > 3 else ResolveIncident(incident=chosen.id)


@settings(max_examples=200)
@given(graph=_graphs(), data=st.data())
def test_on_any_graph_a_join_fires_exactly_when_the_rule_says_so(fired: list[str], graph: Any, data: Any) -> None:
    """Not before: each firing is checked.  Not later: at each quiescent point ``violations`` finds who should have.

    It decides from scratch who is stuck, too; and a folded copy goes on alike.
    """
    program = _wild(*graph)
    documents = Documents(program.codec)
    store = Store(documents, Recorder(documents, program, small_base=0, small_tail=300))
    state = new_state(identity(program))
    twin: State | None = None
    event: Event | None = Start(variables={"choice": 0})
    now = NOON
    for _ in range(12):
        if event is None or state.is_terminal:
            break
        now += timedelta(hours=1)
        transition = apply(program, state, event, now, budget=150)
        assert violations(program, state) == []
        if transition.pending:  # it forks without end: nothing more to learn from it
            return
        if twin is not None:
            assert seen(apply(program, twin, event, now, budget=150)) == seen(transition)
            assert violations(program, twin) == []
        store.take(state)
        twin = store.fold(program, state)
        assert differences(state, twin) == []
        assert violations(program, twin) == []
        event = _acts(state, data)


def test_the_random_graphs_did_fire_joins(fired: list[str]) -> None:
    """Else the test above would have tested nothing."""
    assert len(fired) > 50
