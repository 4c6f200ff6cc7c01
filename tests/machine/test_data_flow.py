"""Data in and out of activities and events: associations, sets, properties (clauses 10.4.1, 10.4.2, 13.3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled, findings, thrown
from trioflow.facts import Status
from trioflow.machine.data import visible
from trioflow.machine.state import DataWait, ScopeKind, TrackState
from trioflow.machine.transition import MessagePost, SignalPost
from trioflow.model.activities import ServiceTask
from trioflow.model.base import Expression
from trioflow.model.builder import ProcessBuilder, error, for_each, message, signal, timer
from trioflow.model.data import (
    Assignment,
    DataInput,
    DataInputAssociation,
    DataOutput,
    DataOutputAssociation,
    DataStoreReference,
    InputOutputSpecification,
    InputSet,
    OutputSet,
)
from trioflow.model.events import IntermediateCatchEvent, TimerEventDefinition


def seen(run: Driver, node: str) -> dict[str, Any]:
    """What the running step at the node can read, its own data first."""
    return visible(run.state, run.running(node).scope)


def test_inputs_build_the_activitys_own_data_when_it_starts() -> None:
    """Recorded: what changes around it later does not reach it; a retry uses the same."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("f")
    fork.service("t", inputs={"amount": "price * 2"}).end("e1")
    fork.user("u").end("e2")
    run = Driver(compiled(p))
    run.start(price=3)
    run.complete("u", price=100)
    assert seen(run, "t")["amount"] == 6
    run.fail_running("t")
    run.retry("t")
    assert seen(run, "t")["amount"] == 6


def test_outputs_write_what_they_are_told_and_nothing_else() -> None:
    """To a path, or a whole name; the returned names are read, not written."""
    p = ProcessBuilder("p")
    p.start("s").service("t", outputs={"order.state": "result", "total": "net + 1"}).user("u").end("e")
    run = Driver(compiled(p))
    run.start(order={"id": 7})
    run.complete_running("t", result="paid", net=4)
    assert run.data == {"order": {"id": 7, "state": "paid"}, "total": 5}


def test_outputs_that_cannot_be_evaluated_leave_everything_as_it_was() -> None:
    """All or none: an incident of the step, whose boundary event stays armed."""
    p = ProcessBuilder("p")
    t = p.start("s").service("t", outputs={"a": "good", "b": "missing + 1"})
    t.end("e")
    t.boundary("late", on=timer(duration="PT1H")).user("x").end("f")
    run = Driver(compiled(p))
    run.start(a=0)
    run.complete_running("t", good=1)
    assert run.data["a"] == 0
    assert run.incidents == [("expression", "t")]
    run.due("late")
    assert run.nodes == ["x"]


def test_without_outputs_returned_names_go_where_they_live_around_the_activity() -> None:
    """An input of the same name is the activity's own, and is not what is written."""
    p = ProcessBuilder("p")
    p.start("s").service("t", inputs={"n": "n + 1"}).user("u").end("e")
    run = Driver(compiled(p))
    run.start(n=1)
    run.complete_running("t", n=10)
    assert run.data == {"n": 10}


def test_a_sub_process_has_its_inputs_as_data_of_its_own() -> None:
    """Its properties are filled; its outputs read what it ended with."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub", inputs={"n": "start + 1"}, outputs={"result": "n * 10"})
    with sub as i:
        i.start("is").service("t").end("ie")
    sub.user("u").end("e")
    run = Driver(compiled(p))
    run.start(start=1)
    assert seen(run, "t")["n"] == 2
    run.complete_running("t", n=5)
    assert run.data == {"start": 1, "result": 50}


def test_each_instance_of_a_multi_instance_has_inputs_of_its_own() -> None:
    """They see the item; its outputs are written at its own completion."""
    p = ProcessBuilder("p")
    how = for_each("orders", item="order", output_item="receipt", output_collection="receipts")
    p.start("s").service("t", loop=how, inputs={"price": "order * 2"}).user("u").end("e")
    run = Driver(compiled(p))
    run.start(orders=[1, 2])
    bodies = [track for track in run.all_at("t") if track.state is TrackState.EXECUTING]
    assert [visible(run.state, body.scope)["price"] for body in bodies] == [2, 4]
    for number in (1, 2):
        run.complete_running("t", receipt=f"r{number}")
    assert run.data["receipts"] == ["r1", "r2"]


# ------------------------------------------------------------------ sets


def fed(*, output: bool = False, optional: bool = False) -> Driver:
    """A service task whose data input ``in`` comes from ``source``; its data output ``out`` goes to ``target``."""
    p = ProcessBuilder("p")
    p.property("source")
    p.property("target")
    sets = InputSet(data_input_refs=("d1",), optional_input_refs=("d1",) if optional else ())
    specification = InputOutputSpecification(
        data_inputs=(DataInput(id="d1", name="in"),),
        data_outputs=(DataOutput(id="d2", name="out"),) if output else (),
        input_sets=(sets,),
        output_sets=(OutputSet(data_output_refs=("d2",) if output else ()),),
    )
    fork = p.start("s").parallel("f")
    task = ServiceTask(
        id="t",
        io_specification=specification,
        data_input_associations=(DataInputAssociation(source_refs=("source",), target_ref="d1"),),
        data_output_associations=(DataOutputAssociation(source_refs=("d2",), target_ref="target"),) if output else (),
    )
    p.add(task)
    t = fork.to("t")
    t.user("after").end("e1")
    t.boundary("stop", on=message("m")).user("stopped").end("e2")
    fork.user("u").end("e3")
    return Driver(compiled(p))


def test_an_activity_waits_until_an_input_set_is_available() -> None:
    """Its boundary events are armed meanwhile; the commit that brings the data starts it."""
    run = fed()
    run.start()
    (wait,) = [each for each in run.state.waits.values() if isinstance(each, DataWait)]
    assert any("data" in line for line in run.why("t"))
    run.complete("u", source=5)
    assert wait.id not in run.state.waits
    assert seen(run, "t")["in"] == 5
    run.complete_running("t")
    assert "after" in run.nodes


def test_a_boundary_event_ends_the_wait_for_data() -> None:
    """It is interrupted as at any other time of its life."""
    run = fed()
    run.start()
    run.receive("stop")
    assert "stopped" in run.nodes
    assert not any(isinstance(each, DataWait) for each in run.state.waits.values())


def test_an_optional_input_is_not_waited_for() -> None:
    """The set is available without it; the name is there, and null."""
    run = fed(optional=True)
    run.start()
    assert seen(run, "t")["in"] is None


def test_an_activity_that_brings_no_output_set_is_an_incident() -> None:
    """It names what is missing; a retry runs the step again."""
    run = fed(output=True)
    run.start(source=1)
    run.complete_running("t", other=1)
    assert run.incidents == [("missing-output", "t")]
    run.retry("t")
    run.complete_running("t", out="done")
    assert run.data["target"] == "done"


def test_a_data_store_in_an_association_is_refused() -> None:
    """By the id of the store."""
    p = ProcessBuilder("p")
    p.add(DataStoreReference(id="ds", name="stock"))
    association = DataInputAssociation(source_refs=("ds",), target_ref="x")
    p.add(ServiceTask(id="t", data_input_associations=(association,)))
    p.start("s").to("t").end("e")
    assert any("'ds'" in each.message for each in findings(p))


# ------------------------------------------------------------------ events


def test_what_an_event_catches_goes_where_its_associations_say() -> None:
    """The payload's entries are names for their expressions."""
    p = ProcessBuilder("p")
    p.start("s").catch("c", on=message("m"), outputs={"order.paid": "amount > 0"}).user("u").end("e")
    run = Driver(compiled(p))
    run.start(order={"id": 1})
    run.receive("c", {"amount": 3})
    assert run.data == {"order": {"id": 1, "paid": True}}


def test_an_assignment_whose_place_does_not_begin_at_its_target_is_one_inside_it() -> None:
    """Read as a way into the target (*choice*); an event without payload can assign too."""
    p = ProcessBuilder("p")
    p.property("answer")
    p.add(
        IntermediateCatchEvent(
            id="c",
            event_definitions=(TimerEventDefinition(time_duration=Expression(text="PT1H")),),
            data_outputs=(DataOutput(id="o1", name="fired"),),
            data_output_associations=(
                DataOutputAssociation(
                    target_ref="answer",
                    assignments=(
                        Assignment(from_expression=Expression(text="40 + 2"), to_expression=Expression(text="deep.x")),
                    ),
                ),
            ),
        )
    )
    p.start("s").to("c").user("u").end("e")
    run = Driver(compiled(p))
    run.start()
    run.due("c")
    assert run.data["answer"] == {"deep": {"x": 42}}


def test_associations_of_a_caught_event_that_fail_are_an_incident_behind_it() -> None:
    """The message is consumed; resolved, the token goes on."""
    p = ProcessBuilder("p")
    p.start("s").catch("c", on=message("m"), outputs={"x": "nowhere + 1"}).user("u").end("e")
    run = Driver(compiled(p))
    run.start()
    assert run.receive("c", {"amount": 3}).consumed == [1]
    assert run.incidents == [("expression", "c")]
    run.resolve("c", x=1)
    assert run.nodes == ["u"]


def test_what_an_event_throws_is_built_by_its_associations() -> None:
    """A record of its assignments; messages and signals alike."""
    p = ProcessBuilder("p")
    path = p.start("s").throw("m", on=message("m", key="order"), inputs={"id": "order", "twice": "order * 2"})
    path.throw("si", on=signal("go"), inputs={"id": "order"}).end("e")
    run = Driver(compiled(p))
    posts = thrown(run.start(order=4))
    assert [type(post) for post in posts] == [MessagePost, SignalPost]
    assert [post.payload for post in posts] == [{"id": 4, "twice": 8}, {"id": 4}]


def test_an_error_carries_variables_to_its_catcher() -> None:
    """With its code and its message."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        i.start("is").end("ie", on=error("E"), inputs={"item": "n"})
    sub.end("e")
    sub.boundary("b", on=error("E"), outputs={"failed": "item"}).user("u").end("f")
    run = Driver(compiled(p))
    run.start(n=9)
    assert run.data == {"n": 9, "failed": 9}


def test_own_properties_of_a_task_live_in_its_instance() -> None:
    """What is returned under their names stays inside."""
    p = ProcessBuilder("p")
    p.start("s").service("t", inputs={"a": "1"}).end("e")
    run = Driver(compiled(p))
    run.start()
    kinds = [scope.kind for scope in run.state.scopes.values()]
    assert kinds == [ScopeKind.BODY, ScopeKind.INSTANCE]
    run.complete_running("t")
    assert run.status is Status.COMPLETED


@pytest.mark.parametrize("act", ["resolve", "drop"])
def test_inputs_that_fail_are_an_incident_inside(act: str) -> None:
    """Retried they are evaluated anew; given up, the token ends."""
    p = ProcessBuilder("p")
    p.start("s").service("t", inputs={"a": "missing"}).user("u").end("e")
    run = Driver(compiled(p))
    run.start()
    assert run.incidents == [("expression", "t")]
    getattr(run, act)("t")
    assert run.nodes == (["u"] if act == "resolve" else [])
