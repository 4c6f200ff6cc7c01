"""The parallel gateway: forks, joins, excess tokens, loops (clause 13.4.1; semantics section 2)."""

from __future__ import annotations

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.model.builder import ProcessBuilder


def forked(*branches: str) -> ProcessBuilder:
    """A fork into service tasks, one per name, and a join behind them."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join").service("after").end("e")
    for branch in branches:
        fork.service(branch).to("join")
    return built


def test_a_fork_takes_all_flows_whatever_conditions_stand_at_them() -> None:
    """A parallel gateway does not look at conditions."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.when("missing").service("a")
    fork.service("b")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["a", "b"]


def test_the_last_to_arrive_survives_and_its_lineage_is_not_rewritten() -> None:
    """The join consumes one token per flow; the survivor keeps its id and its parent."""
    run = Driver(compiled(forked("a", "b", "c")))
    run.start()
    last = run.at("a")
    parents = {track.node: track.parent for track in run.state.tracks.values()}
    assert parents == {"a": 0, "b": last.id, "c": last.id}
    run.complete("b")
    run.complete("c")
    assert run.nodes == ["a", "join", "join"]
    run.complete("a")
    assert [(track.id, track.node, track.parent) for track in run.state.tracks.values()] == [(last.id, "after", 0)]
    assert run.said("token-merged") == ["join", "join"]
    run.complete("after")
    assert run.status is Status.COMPLETED


def test_a_survivor_that_was_forked_keeps_its_parent() -> None:
    """The last to arrive may be one of the forked tracks."""
    run = Driver(compiled(forked("a", "b")))
    run.start()
    forked_from, survivor = run.at("a").id, run.at("b").id
    run.complete("a")
    run.complete("b")
    assert [(track.id, track.parent) for track in run.state.tracks.values()] == [(survivor, forked_from)]


def excess() -> ProcessBuilder:
    """Three tokens come by one flow of the join (through a merge), and as many by the other, as their tasks end."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    left, right = built.exclusive("left"), built.exclusive("right")
    built.parallel("join").service("after").end("e")
    left.to("join")
    right.to("join")
    for number in (1, 2, 3):
        fork.service(f"l{number}").to("left")
        fork.service(f"r{number}").to("right")
    return built


def test_excess_tokens_wait_and_the_join_fires_as_often_as_both_flows_have_one() -> None:
    """Three tokens on one flow and three on the other make three firings, in the order of arrival."""
    run = Driver(compiled(excess()))
    run.start()
    oldest = [run.at(f"l{number}").id for number in (2, 1, 3)]
    for number in (2, 1, 3):
        run.complete(f"l{number}")
    assert run.nodes.count("join") == 3
    for firings, number in enumerate((1, 2, 3), start=1):
        run.complete(f"r{number}")
        assert run.nodes.count("after") == firings
        waiting = [track.id for track in run.all_at("join")]
        assert sorted(waiting) == sorted(oldest[firings:])
    for _ in range(3):
        run.complete("after")
    assert run.status is Status.COMPLETED


def test_excess_that_can_never_be_served_is_stuck_after_the_last_firing() -> None:
    """Two tokens on one flow and one on the other: one firing, then the second is stuck."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    left = built.exclusive("left")
    built.parallel("join").service("after").end("e")
    left.to("join")
    fork.service("l1").to("left")
    fork.service("l2").to("left")
    fork.service("r").to("join")
    run = Driver(compiled(built))
    run.start()
    run.complete("l1")
    run.complete("l2")
    assert run.incidents == []
    run.complete("r")
    assert run.incidents == [("stuck", "join")]
    assert run.nodes.count("after") == 1


def test_a_join_in_a_loop_fires_once_per_round() -> None:
    """Fork and join inside a loop: the same join fires again and again, with new tokens each time."""
    built = ProcessBuilder("p")
    built.start("s").exclusive("again").parallel("fork")
    built.at("fork").service("a").parallel("join").service("count").exclusive("enough")
    built.at("fork").service("b").to("join")
    built.at("enough").when("n < 3").to("again")
    built.at("enough").otherwise().end("e")
    run = Driver(compiled(built))
    run.start(n=0)
    for number in (1, 2, 3):
        run.complete("a" if number % 2 else "b")
        run.complete("b" if number % 2 else "a")
        run.complete("count", n=number)
    assert run.status is Status.COMPLETED
    assert run.said("token-merged") == ["join"] * 3


def fed_by_its_own_loop() -> ProcessBuilder:
    """A join behind which a split feeds both of its flows again, as long as ``again`` is true."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    left, right = built.exclusive("left"), built.exclusive("right")
    join = built.parallel("join")
    left.to("join")
    right.to("join")
    fork.service("a").to("left")
    fork.service("b").to("right")
    more = join.service("work").exclusive("more")
    split = more.when("again").parallel("split")
    split.to("left")
    split.to("right")
    more.otherwise().end("e")
    return built


def test_a_loop_through_a_join_fires_it_again_with_what_its_own_survivor_became() -> None:
    """The survivor goes round and forks into both flows of the join that it came from."""
    run = Driver(compiled(fed_by_its_own_loop()))
    run.start(again=True)
    run.complete("a")
    run.complete("b")
    for _ in range(3):
        run.complete("work")
        assert run.nodes == ["work"]
    run.complete("work", again=False)
    assert run.status is Status.COMPLETED
    assert run.said("token-merged") == ["join"] * 4


def test_two_flows_from_one_node_into_a_join_are_two_flows() -> None:
    """A fork straight into a join: one token on each flow, one firing."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join").service("after")
    fork.to("join")
    fork.to("join")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["after"]


def test_nested_forks_join_from_the_inside_out() -> None:
    """An inner pair inside a branch of an outer one."""
    built = ProcessBuilder("p")
    outer = built.start("s").parallel("outer")
    built.parallel("outer-join").end("e")
    inner = outer.parallel("inner")
    built.parallel("inner-join").service("between").to("outer-join")
    inner.service("a").to("inner-join")
    inner.service("b").to("inner-join")
    outer.service("c").to("outer-join")
    run = Driver(compiled(built))
    run.start()
    run.complete("c")
    run.complete("a")
    assert sorted(run.nodes) == ["b", "inner-join", "outer-join"]
    run.complete("b")
    assert run.nodes.count("between") == 1
    run.complete("between")
    assert run.status is Status.COMPLETED


def test_a_gateway_that_converges_and_diverges_does_both_in_that_order() -> None:
    """Two in, two out: it joins, then forks; the survivor takes the first flow."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    both = built.parallel("both")
    fork.service("a").to("both")
    fork.service("b").to("both")
    both.service("c")
    both.service("d")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    survivor = run.at("b").id
    run.complete("b")
    assert [
        (track.node, track.id == survivor) for track in sorted(run.state.tracks.values(), key=lambda t: t.node)
    ] == [
        ("c", True),
        ("d", False),
    ]


def test_a_join_without_outgoing_flow_consumes_its_survivor() -> None:
    """The join is an implicit end."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join")
    fork.to("join")
    fork.to("join")
    run = Driver(compiled(built))
    run.start()
    assert run.status is Status.COMPLETED


def test_merged_tokens_are_told_in_the_document_order_of_their_flows() -> None:
    """Whatever the order of arrival: so a folded state says the same."""
    run = Driver(compiled(forked("a", "b", "c")))
    run.start()
    flows = {run.at(node).id: node for node in "abc"}
    run.complete("b")
    run.complete("a")
    facts = run.complete("c").facts
    assert [flows[track] for kind, _, track, _ in facts if kind == "token-merged"] == ["a", "b"]
