"""Verdicts: what is decided and what is not, in which scopes, and at which cost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model.soundness import shapes
from tests.model.support import graph_of
from trioflow.model import (
    BoundaryEvent,
    Definitions,
    EndEvent,
    EscalationEventDefinition,
    Graph,
    Process,
    ProcessBuilder,
    SequenceFlow,
    StartEvent,
    SubProcess,
)
from trioflow.model.builder import cancel, error, message, timer
from trioflow.model.soundness import Kind, Verdict, analyse, findings
from trioflow.model.soundness.analysis import STEPS_PER_ARC

SHAPES = (shapes.chain_of_blocks, shapes.nest_of_blocks, shapes.wide_block, shapes.row_of_guards)


def verdict_of(process: ProcessBuilder) -> Verdict:
    """The verdict about the process itself."""
    return analyse(graph_of(process.build()))[0]


# ------------------------------------------------------------------ cost


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_the_steps_grow_with_the_size(shape: Callable[[int], Graph]) -> None:
    """From 10 to 10,000 nodes a sound model takes at most twelve steps for each of its flows."""
    for size in (10, 100, 1_000, 10_000):
        graph = shape(size)
        (verdict,) = analyse(graph)

        assert not verdict.flaws
        assert not verdict.undecided
        assert verdict.steps <= 12 * len(graph.flows)


def test_flaws_cost_no_more_than_the_budget() -> None:
    """A model of three hundred blocks that are all wrong is looked through within its budget, and has flaws."""
    process = ProcessBuilder("p")
    split = process.start("s").parallel("split")
    for number in range(300):
        choice = split.exclusive(f"x{number}")
        join = choice.when("a").parallel(f"j{number}")
        choice.otherwise().to(join).end(f"e{number}")
    graph = graph_of(process.build())

    (verdict,) = analyse(graph)

    assert len(verdict.flaws) == 300
    assert verdict.steps <= STEPS_PER_ARC * len(graph.flows)


def test_what_the_budget_is_not_enough_for_is_not_decided() -> None:
    """Twenty pairs of far choices that meet in one merge are too many ways: no flaw, and no word of soundness."""
    process = ProcessBuilder("p")
    split = process.start("s").parallel("split")
    pairs = 20
    for side in ("first", "second"):
        for number in range(pairs):
            choice = split.exclusive(f"{side}{number}")
            choice.otherwise().end(f"no_{side}{number}")
    merge = process.exclusive("merge")
    for number in range(pairs):
        both = process.at(f"first{number}").when("x").parallel(f"both{number}")
        process.at(f"second{number}").when("x").to(both)
        both.to(merge)
    merge.end("e")

    verdict = verdict_of(process)

    assert not verdict.flaws
    assert verdict.undecided == ("it has more ways to go than there are steps to look",)


def test_a_broken_model_is_looked_through_all_the_same() -> None:
    """Ids that repeat, so that a sub-process seems to hold itself, and an event at itself bring no endless work."""
    inner = SubProcess(id="p", flow_elements=(EndEvent(id="e", event_definitions=(EscalationEventDefinition(),)),))
    itself = BoundaryEvent(id="b", attached_to_ref="b", cancel_activity=False)
    catcher = BoundaryEvent(id="c", attached_to_ref="p", event_definitions=(EscalationEventDefinition(),))
    nodes = (StartEvent(id="s"), inner, itself, catcher, SequenceFlow(id="f", source_ref="s", target_ref="b"))
    process = Process(id="p", flow_elements=nodes)
    graph = Graph.of(Definitions(root_elements=(process,)), process)

    assert {verdict.scope for verdict in analyse(graph)} == {"p"}
    assert list(findings(graph)) == []


# ------------------------------------------------------------------ decided


def test_a_reminder_beside_the_flow_is_decided() -> None:
    """An event that does not interrupt and has a flow of its own leaves its scope decided; that flow is looked at."""
    process = ProcessBuilder("p")
    work = process.start("s").user("work")
    work.end("e")
    split = work.boundary("reminder", on=timer(duration="P1D"), interrupting=False).parallel("split")
    merge = split.send("mail", message="m").exclusive("merge")
    split.send("text", message="n").to(merge).end("reminded")

    verdict = verdict_of(process)

    assert [(flaw.kind, flaw.node.id) for flaw in verdict.flaws] == [(Kind.UNSYNCHRONISED, "merge")]
    assert not verdict.undecided


def test_a_loop_with_parallel_work_is_decided() -> None:
    """A round that splits and joins is one token in and one out; a branch that gives up leaves the other waiting."""
    process = ProcessBuilder("p")
    head = process.start("s").exclusive("head")
    split = head.parallel("split")
    join = split.task("a").parallel("join")
    work = split.task("b")
    work.to(join)
    tail = join.exclusive("tail")
    tail.when("again").to(head)
    tail.otherwise().end("e")
    assert verdict_of(process) == Verdict(scope="p", steps=verdict_of(process).steps)

    work.boundary("failed", on=error()).end("given_up")
    (flaw,) = verdict_of(process).flaws
    assert (flaw.kind, flaw.node.id, flaw.cause) == (Kind.DEADLOCK, "join", "failed")
    assert flaw.paths == (("split", "a", "join"),)


def test_each_scope_has_a_verdict() -> None:
    """Sub-processes and event sub-processes are looked at by themselves; an ad-hoc one is not decided."""
    process = ProcessBuilder("p")
    with process.start("s").subprocess("sub") as inside:
        split = inside.start("ss").exclusive("split")
        join = split.when("x").parallel("join")
        split.otherwise().to(join).end("se")
    chosen = process.at("sub").ad_hoc("chosen")
    with chosen as free:
        free.task("one")
    chosen.end("e")
    with process.event_subprocess("handler") as handler:
        handler.start("told", on=message("m", key="id")).end("he")

    verdicts = {verdict.scope: verdict for verdict in analyse(graph_of(process.build()))}

    assert list(verdicts) == ["p", "sub", "chosen", "handler"]
    assert [flaw.node.id for flaw in verdicts["sub"].flaws] == ["join"]
    assert verdicts["chosen"].undecided
    assert not verdicts["handler"].undecided


def test_a_sub_process_that_never_completes_lets_no_token_pass() -> None:
    """Behind a transaction that always cancels nothing comes by its normal flow, so that no two tokens meet there."""
    process = ProcessBuilder("p")
    booking = process.start("s").transaction("booking")
    with booking as inside:
        inside.start("bs").end("abort", on=cancel())
    merge = booking.parallel("both").exclusive("merge")
    process.at("both").to(merge).end("e")
    booking.boundary("cancelled", on=cancel()).end("ce")

    verdict = verdict_of(process)

    assert not verdict.flaws
    assert not verdict.undecided


# ------------------------------------------------------------------ not decided


def complex_join(process: ProcessBuilder) -> None:
    """A gateway that joins by a condition over counts."""
    split = process.start("s").parallel("split")
    join = process.complex("join", activation="activationCount >= 1")
    split.task("a").to(join)
    split.task("b").to(join)
    join.exclusive("x").end("e")


def start_quantity(process: ProcessBuilder) -> None:
    """An activity that needs several tokens to start."""
    process.start("s").task("t", start_quantity=2).end("e")


def completion_quantity(process: ProcessBuilder) -> None:
    """An activity that gives several tokens."""
    process.start("s").task("t", completion_quantity=2).exclusive("x").end("e")


def spawning_loop(process: ProcessBuilder) -> None:
    """A loop that leaves work behind in each round."""
    head = process.start("s").exclusive("head")
    fork = head.parallel("fork")
    fork.task("work").end("done")
    again = fork.exclusive("again")
    again.when("more").to(head)
    again.otherwise().end("e")


def tangled_loop(process: ProcessBuilder) -> None:
    """A loop with two ways in that splits and joins."""
    choice = process.start("s").exclusive("choice")
    one, other = process.exclusive("one"), process.exclusive("other")
    choice.when("x").to(one)
    choice.otherwise().to(other)
    fork = one.to(other).parallel("fork")
    join = process.parallel("join")
    fork.task("a").to(join)
    fork.task("b").to(join)
    back = join.exclusive("back")
    back.when("y").to(one)
    back.otherwise().end("e")


def two_decisions(process: ProcessBuilder) -> None:
    """A join that two conditions decide together."""
    split = process.start("s").parallel("split")
    join = process.parallel("join")
    for name in ("a", "b"):
        choice = split.exclusive(name)
        choice.when(name).to(join)
        choice.otherwise().end(f"no_{name}")
    join.end("e")


UNDECIDED = (complex_join, start_quantity, completion_quantity, spawning_loop, tangled_loop, two_decisions)


@pytest.mark.parametrize("shape", UNDECIDED, ids=lambda shape: shape.__name__)
def test_what_is_not_decided_has_no_flaw_and_a_reason(shape: Callable[[ProcessBuilder], None]) -> None:
    """Whatever depends on more than the flows say is left open, with a reason that names a node."""
    process = ProcessBuilder("p")
    shape(process)

    verdict = verdict_of(process)

    assert not verdict.flaws
    assert verdict.undecided
    assert all(reason.startswith("'") for reason in verdict.undecided)
