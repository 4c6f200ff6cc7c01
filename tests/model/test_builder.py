"""The builder: code that reads like the diagram, and gives the definitions that the XML would give."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model.models import MODELS
from tests.model.support import graph_of, process_of
from trioflow.errors import ModelError
from trioflow.model import (
    Assignment,
    BoundaryEvent,
    DataInput,
    DataInputAssociation,
    DataOutputAssociation,
    Definitions,
    DefinitionsBuilder,
    EndEvent,
    Expression,
    Extensions,
    InputOutputSpecification,
    InputSet,
    IntermediateCatchEvent,
    Lane,
    LaneSet,
    Message,
    MessageEventDefinition,
    OutputSet,
    Process,
    ProcessBuilder,
    Property,
    SequenceFlow,
    ServiceTask,
    StartEvent,
    SubProcess,
    TextAnnotation,
    UserTask,
)
from trioflow.model.base import TRIOFLOW_NAMESPACE
from trioflow.model.builder import compensate, error, loop, message, signal, timer
from trioflow.xml import read, write


def own(name: str, value: str) -> tuple[str, str]:
    """One of our own attributes."""
    return f"{{{TRIOFLOW_NAMESPACE}}}{name}", value


# ------------------------------------------------------------------ the result


def test_a_built_process_is_what_one_writes_by_hand() -> None:
    """Nodes and flows in order of creation, lists of flows filled, what is referred to before the process."""
    process = ProcessBuilder("order", name="Order")
    process.start("received").service("charge", handler="charge-card").catch("paid", on=message("paid")).end("e")
    assert process.build() == Definitions(
        id="definitions_order",
        target_namespace="https://trioflow.dev/models",
        root_elements=(
            Message(id="message_paid", name="paid"),
            Process(
                id="order",
                name="Order",
                is_executable=True,
                flow_elements=(
                    StartEvent(id="received", outgoing=("flow_received_charge",)),
                    ServiceTask(
                        id="charge",
                        implementation="charge-card",
                        incoming=("flow_received_charge",),
                        outgoing=("flow_charge_paid",),
                    ),
                    SequenceFlow(id="flow_received_charge", source_ref="received", target_ref="charge"),
                    IntermediateCatchEvent(
                        id="paid",
                        event_definitions=(MessageEventDefinition(message_ref="message_paid"),),
                        incoming=("flow_charge_paid",),
                        outgoing=("flow_paid_e",),
                    ),
                    SequenceFlow(id="flow_charge_paid", source_ref="charge", target_ref="paid"),
                    EndEvent(id="e", incoming=("flow_paid_e",)),
                    SequenceFlow(id="flow_paid_e", source_ref="paid", target_ref="e"),
                ),
            ),
        ),
    )


def test_a_message_event_carries_its_key() -> None:
    """The correlation key of an event is our own attribute on its message event definition."""
    process = ProcessBuilder("p")
    process.catch("c", on=message("order paid", key="order.id"))
    (definition,) = graph_of(process.build()).nodes["c"].event_definitions  # type: ignore[attr-defined]  # a catch event
    assert definition == MessageEventDefinition(
        message_ref="message_order_paid", extensions=Extensions(attributes=(own("correlationKey", "order.id"),))
    )


def test_a_user_task_carries_who_and_when() -> None:
    """Options of user tasks are our own attributes; lists are joined by commas."""
    process = ProcessBuilder("p")
    process.user(
        "u", assignee="ann", candidate_users=("bob", "eve"), candidate_groups="sales", priority=7, due_date="P1D"
    )
    node = graph_of(process.build()).nodes["u"]
    assert isinstance(node, UserTask)
    assert node.extensions.attributes == (
        own("assignee", "ann"),
        own("candidateUsers", "bob,eve"),
        own("candidateGroups", "sales"),
        own("priority", "7"),
        own("dueDate", "P1D"),
    )


def test_given_extensions_are_kept_beside_our_own() -> None:
    """An option does not replace the extensions that the caller gives."""
    process = ProcessBuilder("p")
    given = Extensions(attributes=(("{urn:vendor}form", "f"),))
    process.user("u", assignee="ann", extensions=given)
    assert graph_of(process.build()).nodes["u"].extensions.attributes == (
        ("{urn:vendor}form", "f"),
        own("assignee", "ann"),
    )


def test_inputs_and_outputs_of_a_task() -> None:
    """Inputs are data inputs with a transformation each, outputs are assignments to declared data."""
    process = ProcessBuilder("p")
    process.service("t", inputs={"amount": "order.total"}, outputs={"order.receipt": "receipt"})
    definitions = process.build()
    node = graph_of(definitions).nodes["t"]
    assert isinstance(node, ServiceTask)
    assert node.io_specification == InputOutputSpecification(
        data_inputs=(DataInput(id="t_amount", name="amount"),),
        input_sets=(InputSet(data_input_refs=("t_amount",)),),
        output_sets=(OutputSet(),),
    )
    assert node.data_input_associations == (
        DataInputAssociation(target_ref="t_amount", transformation=Expression(text="order.total")),
    )
    assert node.data_output_associations == (
        DataOutputAssociation(
            target_ref="p_order",
            assignments=(
                Assignment(from_expression=Expression(text="receipt"), to_expression=Expression(text="order.receipt")),
            ),
        ),
    )
    assert process_of(definitions).properties == (Property(id="p_order", name="order"),)


def test_outputs_go_to_the_nearest_declared_data() -> None:
    """An output inside a sub-process goes to the data object of that name there, else further out."""
    process = ProcessBuilder("p")
    process.data_object("far", name="x")
    process.property("outer")
    with process.subprocess("sub") as inside:
        inside.data_object("near", name="x")
        inside.task("t", outputs={"x": "1", "outer": "2"})
    node = graph_of(process.build()).nodes["t"]
    assert [each.target_ref for each in node.data_output_associations] == ["near", "outer"]  # type: ignore[attr-defined]  # a task


def test_inputs_of_a_sub_process_are_its_properties() -> None:
    """A sub-process has no ioSpecification, so its inputs are properties of its own scope."""
    process = ProcessBuilder("p")
    with process.subprocess("sub", inputs={"box": "limit"}) as inside:
        inside.property("own")
    node = graph_of(process.build()).nodes["sub"]
    assert isinstance(node, SubProcess)
    assert node.io_specification is None
    assert node.properties == (Property(id="sub_box", name="box"), Property(id="own"))


def test_flows_leave_in_the_order_in_which_they_are_made() -> None:
    """Document order of flows in a built model is the order of creation, the default's place included."""
    process = ProcessBuilder("p")
    gate = process.start("s").exclusive("g")
    gate.when("a").end("e1")
    gate.otherwise(name="else").end("e2")
    gate.when("b").to("e1")
    graph = graph_of(process.build())
    assert [flow.id for flow in graph.outgoing["g"]] == ["flow_g_e1", "flow_g_e2", "flow_g_e1_2"]
    assert graph.nodes["g"].default == "flow_g_e2"  # type: ignore[attr-defined]  # an exclusive gateway
    assert graph.flows["flow_g_e2"].name == "else"


def test_a_path_does_not_move() -> None:
    """Two calls on one path make two branches; a condition belongs to the path that `when` returns."""
    process = ProcessBuilder("p")
    fork = process.start("s").parallel("fork")
    first, second = fork.task("a"), fork.task("b")
    first.to(second)
    graph = graph_of(process.build())
    assert [flow.target_ref for flow in graph.outgoing["fork"]] == ["a", "b"]
    assert [flow.target_ref for flow in graph.outgoing["a"]] == ["b"]
    assert all(flow.condition_expression is None for flow in graph.flows.values())


def test_one_name_is_one_message() -> None:
    """Events and tasks that speak of the same name share its root element, also a declared one."""
    document = DefinitionsBuilder("d")
    declared = document.message("paid", root_id="m1")
    process = document.process("p")
    process.receive("r", message="paid").catch("c", on=message("paid"))
    process.catch("x", on=message("a b")).catch("y", on=message("a?b")).catch("z", on=error("E"))
    definitions = document.build()
    assert [(each.id, each.tag) for each in definitions.root_elements] == [
        (declared.id, "message"),
        ("message_a_b", "message"),
        ("message_a_b_2", "message"),
        ("error_E", "error"),
        ("p", "process"),
    ]


def test_building_twice_gives_the_same_and_more_can_be_added() -> None:
    """`build` takes a picture: equal without changes, and without effect on what it returned before."""
    process = ProcessBuilder("p")
    process.start("s").end("e")
    first = process.build()
    assert process.build() == first
    process.at("s").task("t").to("e")
    assert process.build() != first
    assert len(process_of(first).flow_elements) == 3


def test_ready_elements_find_their_place() -> None:
    """Lane sets, artifacts, nodes and data made elsewhere are taken in where they belong."""
    process = ProcessBuilder("p")
    process.start("s").end("e")
    lanes = LaneSet(id="lanes", lanes=(Lane(id="lane", flow_node_refs=("s",)),))
    note = TextAnnotation(id="note", text="look")
    for element in (lanes, note, UserTask(id="u")):
        process.add(element)
    process.flow("s", "u")
    built = process_of(process.build())
    assert built.lane_sets == (lanes,)
    assert built.artifacts == (note,)
    assert graph_of(process.build()).nodes["u"].incoming == ("flow_s_u",)


def test_a_boundary_event_stands_at_its_activity() -> None:
    """A path's boundary event is attached to the path's node, and the path goes on from the event."""
    process = ProcessBuilder("p")
    task = process.start("s").task("t")
    task.boundary("b", on=timer(duration="PT1H"), interrupting=False).end("late")
    node = graph_of(process.build()).nodes["b"]
    assert isinstance(node, BoundaryEvent)
    assert (node.attached_to_ref, node.cancel_activity, node.outgoing) == ("t", False, ("flow_b_late",))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_written_and_read_back(name: str) -> None:
    """A built model and the XML it is written as give equal definitions, and the reader has nothing to say."""
    built = MODELS[name]()
    document = read(write(built))
    assert document.findings == ()
    assert document.definitions == built


# ------------------------------------------------------------------ mistakes


def _duplicate(process: ProcessBuilder) -> None:
    process.task("a")


def _duplicate_flow(process: ProcessBuilder) -> None:
    process.flow("a", "b", flow_id="s")


def _unknown(process: ProcessBuilder) -> None:
    process.at("a").to("nowhere")


def _out_of_scope(process: ProcessBuilder) -> None:
    process.at("a").to("inner")


def _into_outer_scope(process: ProcessBuilder) -> None:
    process.subprocess("other").inside.task("deep").to("a")


def _bad_id(process: ProcessBuilder) -> None:
    process.task("is it paid?")


def _boundary_at_gateway(process: ProcessBuilder) -> None:
    process.parallel("g").boundary("x", on=timer(duration="PT1H"))


def _second_default(process: ProcessBuilder) -> None:
    process.at("a").otherwise().to("b")
    process.at("a").otherwise().to("b")


def _default_of_event(process: ProcessBuilder) -> None:
    process.at("s").otherwise().to("b")


def _default_with_condition(process: ProcessBuilder) -> None:
    process.flow("a", "b", condition="x", default=True)


def _two_timers(process: ProcessBuilder) -> None:
    process.catch("c", on=timer(date="d", cycle="R/PT1H"))


def _no_timer(process: ProcessBuilder) -> None:
    process.catch("c", on=timer())


def _unknown_option(process: ProcessBuilder) -> None:
    process.task("c", retries=3)  # type: ignore[call-arg]  # that is the mistake


def _activity_option_at_event(process: ProcessBuilder) -> None:
    process.throw("c", loop=loop("x"))  # type: ignore[call-arg]  # that is the mistake


def _inputs_of_gateway(process: ProcessBuilder) -> None:
    process.parallel("g", inputs={"x": "1"})


def _outputs_of_throw(process: ProcessBuilder) -> None:
    process.throw("c", outputs={"x": "1"})


def _inputs_twice(process: ProcessBuilder) -> None:
    process.task("c", inputs={"x": "1"}, io_specification=InputOutputSpecification())


def _declared_late(process: ProcessBuilder) -> None:
    process.catch("c", on=signal("ring"))
    process.document.signal("ring", root_id="r")


@pytest.mark.parametrize(
    "mistake,says",
    [
        (_duplicate, r"'a'.*already taken \(task\).*choose another"),
        (_duplicate_flow, r"'s'.*already taken \(startEvent\)"),
        (_unknown, r"no node 'nowhere' in 'p' yet; add it before"),
        (_out_of_scope, r"'inner' is in 'sub', not in 'p'.*do not leave their scope"),
        (_into_outer_scope, r"'a' is in 'p', not in 'other'"),
        (_bad_id, r"'is it paid\?' cannot be an id.*name="),
        (_boundary_at_gateway, r"'x' cannot stand at 'g' \(parallelGateway\)"),
        (_second_default, r"'a' already has the default flow 'flow_a_b'"),
        (_default_of_event, r"'s' \(startEvent\) has no default flow"),
        (_default_with_condition, r"default flow 'flow_a_b' has a condition"),
        (_two_timers, r"exactly one of date, duration and cycle.*cycle='R/PT1H'"),
        (_no_timer, r"exactly one of date, duration and cycle"),
        (_unknown_option, r"'c' does not take the option retries; it takes .*loop"),
        (_activity_option_at_event, r"'c' does not take the option loop"),
        (_inputs_of_gateway, r"'g' \(parallelGateway\) has no inputs"),
        (_outputs_of_throw, r"'c' \(intermediateThrowEvent\) has no outputs"),
        (_inputs_twice, r"'c' has both inputs= and io_specification="),
        (_declared_late, r"'ring' is already declared as 'signal_ring'.*before its first use"),
    ],
)
def test_mistakes_are_named(mistake: Callable[[ProcessBuilder], None], says: str) -> None:
    """A mistake raises ModelError at once, with the id and what to do."""
    process = ProcessBuilder("p")
    process.start("s").task("a")
    process.task("b")
    process.subprocess("sub").inside.task("inner")
    with pytest.raises(ModelError, match=says):
        mistake(process)


def test_compensation_reads_like_the_diagram() -> None:
    """The handler is linked to the boundary event by an association in the direction of the arrow."""
    process = ProcessBuilder("p")
    booked = process.start("s").service("book")
    booked.boundary("undo", on=compensate()).undone_by(process.service("unbook", for_compensation=True))
    (association,) = process_of(process.build()).artifacts
    assert (association.id, association.source_ref, association.target_ref) == (  # type: ignore[attr-defined]  # the association
        "association_undo_unbook",
        "undo",
        "unbook",
    )
