"""Sequence flows, implicit starts and ends (clauses 13.2, 13.3.1; semantics section 1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.model.builder import ProcessBuilder
from trioflow.model.builder.vocabulary import Vocabulary


def choosing() -> ProcessBuilder:
    """An activity with a plain flow, two conditional ones and a default."""
    built = ProcessBuilder("p")
    task = built.start("s").service("work")
    task.service("always")
    task.when("x > 1").service("big")
    task.when("x > 2").service("bigger")
    task.otherwise().service("small")
    return built


@pytest.mark.parametrize(
    "x, taken",
    [
        pytest.param(0, ["always", "small"], id="default-beside-the-unconditional"),
        pytest.param(2, ["always", "big"], id="one-condition"),
        pytest.param(3, ["always", "big", "bigger"], id="several-conditions"),
    ],
)
def test_an_activity_takes_plain_and_true_flows_and_the_default_only_without_a_true_condition(
    x: int, taken: list[str]
) -> None:
    """Unconditional flows and every true conditional one are taken; the default only if no condition is true."""
    run = Driver(compiled(choosing()))
    run.start(x=0)
    run.complete("work", x=x)
    assert run.nodes == taken
    for node in taken:
        run.complete(node)
    assert run.status is Status.COMPLETED


def test_a_fork_goes_on_along_the_first_flow_and_starts_tracks_with_the_arriving_one_as_parent() -> None:
    """The arriving track takes the first flow in document order; the others are new tracks that name it as parent."""
    run = Driver(compiled(choosing()))
    run.start(x=9)
    arriving = run.at("work").id
    run.complete("work")
    assert [(track.id == arriving, track.parent) for track in run.state.tracks.values()] == [
        (True, 0),
        (False, arriving),
        (False, arriving),
    ]
    assert [track.flow for track in run.state.tracks.values()] == [
        "flow_work_always",
        "flow_work_big",
        "flow_work_bigger",
    ]


def test_a_condition_that_raises_is_an_incident_of_the_leaving_track() -> None:
    """Its retry chooses the flows again and never runs the activity again."""
    built = ProcessBuilder("p")
    task = built.start("s").service("work")
    task.when("missing > 1").service("big")
    task.otherwise().service("small")
    run = Driver(compiled(built))
    run.start()
    run.complete("work")
    assert run.incidents == [("expression", "work")]
    assert run.state.tracks[run.incident("work").track].entry == 1
    run.retry("work", {"missing": 5})
    assert run.nodes == ["big"]
    assert (run.entered("work"), run.said("activity-started")) == (1, ["work", "big"])


def test_no_flow_to_take_is_an_incident_and_can_be_retried_with_other_variables() -> None:
    """None to take although flows exist: incident `no-outgoing-flow`; variables changed, the retry finds one."""
    built = ProcessBuilder("p")
    task = built.start("s").service("work")
    task.when("x > 1").service("big")
    run = Driver(compiled(built))
    run.start(x=0)
    run.complete("work")
    assert run.incidents == [("no-outgoing-flow", "work")]
    run.retry("work")
    assert run.incidents == [("no-outgoing-flow", "work")]
    run.retry("work", {"x": 2})
    assert run.nodes == ["big"]


def test_conditions_are_evaluated_after_the_outputs_are_written() -> None:
    """A completion's data commit comes before the conditions of its outgoing flows."""
    run = Driver(compiled(choosing()))
    run.start(x=0)
    run.complete("work", x=2)
    assert run.nodes == ["always", "big"]


@pytest.mark.parametrize("kind", ["task", "manual", "service", "throw", "exclusive"])
def test_without_a_parallel_gateway_each_token_passes_by_itself(kind: str) -> None:
    """Two flows into an activity, an event or an exclusive gateway: every token goes through alone."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    nodes: dict[str, Any] = {
        "task": Vocabulary.task,
        "manual": Vocabulary.manual,
        "service": Vocabulary.service,
        "throw": Vocabulary.throw,
        "exclusive": Vocabulary.exclusive,
    }
    nodes[kind](fork, "merge").service("after").end("e")
    fork.to("merge")
    run = Driver(compiled(built))
    run.start()
    if kind == "service":
        run.complete("merge")
        run.complete("merge")
    assert run.nodes == ["after", "after"]
    assert run.entered("merge") == 2
    run.complete("after")
    assert run.nodes == ["after"]
    run.complete("after")
    assert run.status is Status.COMPLETED
    assert run.entered("e") == 2


def test_a_process_without_start_and_end_events_starts_at_all_nodes_without_incoming_flow() -> None:
    """Implicit starts begin together; a token that finds no outgoing flow is consumed (implicit end)."""
    built = ProcessBuilder("p")
    built.service("a").service("b")
    built.service("c")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["a", "c"]
    run.complete("c")
    run.complete("a")
    run.complete("b")
    assert run.status is Status.COMPLETED


def test_a_process_with_a_start_event_starts_there_alone() -> None:
    """Beside a start event, a node without incoming flow never runs."""
    built = ProcessBuilder("p")
    built.start("s").service("a")
    built.service("never")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["a"]
    run.complete("a")
    assert run.status is Status.COMPLETED
    assert run.entered("never") == 0


def test_a_process_of_nothing_completes_at_once() -> None:
    """No node at all: started, completed."""
    run = Driver(compiled(ProcessBuilder("p")))
    run.start(x=1)
    assert run.status is Status.COMPLETED
    assert run.data == {"x": 1}


@pytest.mark.parametrize(
    "x, taken", [(5, "first"), (3, "second"), (1, "other")], ids=["first-of-two-true", "second", "default"]
)
def test_an_exclusive_gateway_takes_the_first_true_flow_in_document_order(x: int, taken: str) -> None:
    """Conditions in document order, the first true one wins, then the default, wherever that was drawn."""
    built = ProcessBuilder("p")
    gate = built.start("s").exclusive("gate")
    gate.otherwise().service("other")
    gate.when("x > 4").service("first")
    gate.when("x > 2").service("second")
    run = Driver(compiled(built))
    run.start(x=x)
    assert run.nodes == [taken]


def test_a_later_condition_is_not_evaluated_once_one_is_true() -> None:
    """What stands behind the winner may be anything, it is not looked at."""
    built = ProcessBuilder("p")
    gate = built.start("s").exclusive("gate")
    gate.when("x").service("first")
    gate.when("nowhere.to.be.found").service("second")
    run = Driver(compiled(built))
    run.start(x=True)
    assert run.nodes == ["first"]


def test_an_exclusive_gateway_without_a_true_flow_is_an_incident() -> None:
    """None true and no default: incident at the gateway, which names the conditions; the retry looks again."""
    built = ProcessBuilder("p")
    gate = built.start("s").exclusive("gate", name="Paid?")
    gate.when("x > 4").service("first")
    run = Driver(compiled(built))
    run.start(x=1)
    assert run.incidents == [("no-outgoing-flow", "gate")]
    message = run.incident("gate").message
    assert "Paid? (gate)" in message
    assert "flow_gate_first: x > 4" in message
    run.retry("gate", {"x": 7})
    assert run.nodes == ["first"]


@pytest.mark.parametrize(
    "condition, shown",
    [
        pytest.param("missing", "missing", id="raises"),
        pytest.param("None", "None", id="null"),
        pytest.param("5", "5", id="number"),
        pytest.param("'yes'", "'yes'", id="text"),
        pytest.param("[]", "[]", id="list"),
    ],
)
def test_a_condition_that_fails_or_is_no_truth_value_is_an_incident_never_false(condition: str, shown: str) -> None:
    """Not even null or zero counts as false; the incident shows the value, and the default is not taken."""
    built = ProcessBuilder("p")
    gate = built.start("s").exclusive("gate")
    gate.when(condition).service("first")
    gate.otherwise().service("other")
    run = Driver(compiled(built))
    run.start()
    assert run.incidents == [("expression", "gate")]
    assert shown in run.incident("gate").message


def test_an_exclusive_gateway_at_the_end_consumes_the_token() -> None:
    """A gateway without outgoing flow is an implicit end."""
    built = ProcessBuilder("p")
    built.start("s").exclusive("gate")
    run = Driver(compiled(built))
    run.start()
    assert run.status is Status.COMPLETED


def test_the_message_about_an_unknown_name_is_the_same_after_a_fold() -> None:
    """The names that it lists stand in the order in which they were first written, in the state and in its fold."""
    built = ProcessBuilder("p")
    gate = built.start("s").service("b").service("c").exclusive("gate")
    gate.when("missing").end("e")
    run = Driver(compiled(built))
    run.start(zebra=1, ape=2)
    run.complete("b", lion=3, ape=4)
    run.complete("c", bear=5, zebra=6)
    assert "zebra, ape, lion, bear" in run.incident("gate").message
