"""Start and completion quantities: how many tokens an activity needs, and leaves with (clause 13.3.2)."""

from __future__ import annotations

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.model.builder import ProcessBuilder, timer


def collecting(quantity: int, *names: str) -> ProcessBuilder:
    """A fork into service tasks, and an activity behind them that needs so many tokens."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.service("pack", name="Pack", start_quantity=quantity).end("e")
    for name in names:
        fork.service(name).to("pack")
    return built


def test_an_activity_starts_when_enough_tokens_are_there_and_the_last_survives() -> None:
    """Whatever flows they came by; the others end."""
    run = Driver(compiled(collecting(3, "a", "b", "c")))
    run.start()
    survivor = run.at("a").id
    run.complete("b")
    run.complete("c")
    assert run.nodes == ["a", "pack", "pack"]
    assert run.entered("pack") == 0
    assert run.why("pack")[0].endswith("at Pack (pack) waits until 3 tokens are there (2 by now)")
    run.complete("a")
    assert [(track.id, track.node) for track in run.state.tracks.values()] == [(survivor, "pack")]
    assert run.entered("pack") == 1
    assert run.said("token-merged") == ["pack", "pack"]
    run.complete("pack")
    assert run.status is Status.COMPLETED


def test_tokens_of_one_flow_count_as_much_as_tokens_of_several() -> None:
    """Two by one flow start it."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    fork.service("a").to("merge")
    fork.service("b").to("merge")
    merge.service("pack", start_quantity=2).end("e")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.complete("b")
    assert run.nodes == ["pack"]


def test_what_comes_next_counts_anew() -> None:
    """Four tokens and two needed: it runs twice, at the same time if they come so."""
    run = Driver(compiled(collecting(2, "a", "b", "c", "d")))
    run.start()
    for name in "abcd":
        run.complete(name)
    assert run.nodes == ["pack", "pack"]
    assert run.entered("pack") == 2


def test_each_scope_instance_has_a_queue_of_its_own() -> None:
    """One token in each of two instances of a sub-process starts neither."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    sub = fork.subprocess("sub")
    fork.to("sub")
    inner = sub.inside.start("is").parallel("inner")
    sub.inside.service("pack", start_quantity=2)
    inner.service("a").to("pack")
    inner.service("b").to("pack")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.complete("a")
    assert run.entered("pack") == 0
    run.complete("b")
    assert run.entered("pack") == 1


def test_each_flow_gets_as_many_tokens_as_the_completion_quantity_says() -> None:
    """Two flows, three tokens each; six of them start what needs six."""
    built = ProcessBuilder("p")
    make = built.start("s").service("make", completion_quantity=3)
    built.service("use", start_quantity=6).end("e")
    make.task("left").to("use")
    make.task("right").to("use")
    run = Driver(compiled(built))
    run.start()
    run.complete("make")
    assert run.nodes == ["use"]
    assert run.said("token-merged") == ["use"] * 5
    run.complete("use")
    assert run.status is Status.COMPLETED


def test_boundary_events_are_armed_when_the_activity_starts_not_while_tokens_gather() -> None:
    """It is not active before."""
    built = collecting(2, "a", "b")
    built.boundary("pack", "late", on=timer(duration="PT1H")).end("too-late")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    assert not run.state.waits
    run.complete("b")
    assert len(run.state.waits) == 1
    run.due("late")
    assert run.status is Status.COMPLETED


def test_a_token_that_was_stopped_before_it_can_wait_after_a_retry() -> None:
    """Its failure is over when it lines up."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.service("pack", start_quantity=2).end("e")
    fork.task("one").task("two").to("pack")
    fork.service("slow").to("pack")
    run = Driver(compiled(built, hop_limit=4))
    run.start()
    assert run.incidents == [("step-limit", "pack")]
    run.retry("pack")
    assert run.incidents == []
    run.complete("slow")
    assert run.nodes == ["pack"]


# ------------------------------------------------------------------ stuck


def test_a_queue_that_can_never_fill_is_stuck() -> None:
    """Three are needed and two can come: found as soon as the second waits; resolving starts with what is there."""
    run = Driver(compiled(collecting(3, "a", "b")))
    run.start()
    run.complete("a")
    assert run.incidents == []
    run.complete("b")
    assert run.incidents == [("stuck", "pack")]
    assert run.incident("pack").message == (
        "the activity Pack (pack) can never start: it needs 3 tokens and holds 2, from flow_a_pack (1), flow_b_pack "
        "(1), and no live token can reach it any more; resolve the incident to start it with what is there, or drop "
        "its tokens"
    )
    assert run.why("pack")[0].endswith(f"the join is stuck (incident {run.incident('pack').id})")
    run.resolve("pack", note="two will do")
    assert run.nodes == ["pack"]
    assert run.entered("pack") == 1
    run.complete("pack")
    assert run.status is Status.COMPLETED


def test_resolving_along_a_flow_leaves_the_activity_out() -> None:
    """The survivor goes where the operator sends it."""
    run = Driver(compiled(collecting(3, "a", "b")))
    run.start()
    run.complete("a")
    run.complete("b")
    run.resolve("pack", "flow_pack_e")
    assert run.status is Status.COMPLETED
    assert run.entered("pack") == 0


def test_dropping_it_ends_the_tokens_that_wait() -> None:
    """They are a dead letter, and the instance can complete."""
    run = Driver(compiled(collecting(3, "a", "b")))
    run.start()
    run.complete("a")
    run.complete("b")
    run.drop("pack")
    assert run.status is Status.COMPLETED


def test_an_activity_without_a_way_in_that_needs_two_tokens_is_stuck_at_once() -> None:
    """It starts with the scope, with one token."""
    built = ProcessBuilder("p")
    built.service("lonely", start_quantity=2)
    run = Driver(compiled(built))
    run.start()
    assert run.incidents == [("stuck", "lonely")]
    assert "from no flow (1)" in run.incident("lonely").message


def test_a_token_that_works_at_the_activity_can_come_round_to_its_queue() -> None:
    """It has passed the queue already, so the one that waits is not stuck while it works."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    pack = built.service("pack", start_quantity=2, completion_quantity=2)
    for name in "abc":
        fork.service(name).to("pack")
    more = pack.exclusive("more")
    more.when("again").to("pack")
    more.otherwise().end("e")
    run = Driver(compiled(built))
    run.start(again=True)
    for name in "abc":
        run.complete(name)
    assert run.nodes.count("pack") == 2
    assert run.incidents == []
    run.complete("pack")
    assert run.incidents == []
    run.complete("pack", again=False)
    assert run.incidents == [("stuck", "pack")]


def test_a_queue_that_a_stuck_join_would_fill_is_stuck_with_it() -> None:
    """A start quantity counts as a join, and its token holds others back or serves them like one at a join."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.inclusive("join").service("after")
    fork.service("x").to("join")
    built.service("pack", start_quantity=2).to("join")
    fork.service("a").to("pack")
    way = fork.service("b").exclusive("way")
    way.when("comes").to("pack")
    way.otherwise().end("gone")
    for comes in (True, False):
        run = Driver(compiled(built))
        run.start(comes=comes)
        run.complete("x")
        run.complete("a")
        assert run.incidents == []
        assert run.nodes == ["join", "pack", "b"]
        run.complete("b")
        if comes:
            assert run.nodes == ["join", "pack"]
            run.complete("pack")
        else:
            assert run.incidents == [("stuck", "join"), ("stuck", "pack")]
            run.drop("pack")
        assert run.nodes == ["after"]
