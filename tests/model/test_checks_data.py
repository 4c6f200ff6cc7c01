"""Rules about data, contracts, references and the document: each with a model that breaks it and one that keeps it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from tests.model.support import Case, assert_case, changed, rule_of
from trioflow.model import (
    Collaboration,
    DataAssociation,
    DataInput,
    DataInputAssociation,
    DataOutput,
    DataOutputAssociation,
    Definitions,
    Expression,
    GlobalTask,
    Import,
    InputOutputBinding,
    InputOutputSpecification,
    InputSet,
    Interface,
    MessageFlow,
    Operation,
    OutputSet,
    Participant,
    ProcessBuilder,
    TextAnnotation,
    check,
)
from trioflow.model.builder import for_each, message, signal


def specification(
    *, inputs: tuple[DataInput, ...] = (), outputs: tuple[DataOutput, ...] = ()
) -> InputOutputSpecification:
    """A sound specification with these data."""
    return InputOutputSpecification(
        data_inputs=inputs,
        data_outputs=outputs,
        input_sets=(InputSet(id="bad", data_input_refs=tuple(each.id for each in inputs)),),
        output_sets=(OutputSet(data_output_refs=tuple(each.id for each in outputs)),),
    )


def _task_with(process: ProcessBuilder, io: InputOutputSpecification) -> None:
    process.start("s").task("t", io_specification=io).end("e")


def _items(process: ProcessBuilder) -> None:
    """Two items of different structure, and a collection of the first."""
    process.document.item("text", structure="String")
    process.document.item("number", structure="int")
    process.document.item("texts", structure="String", collection=True)


# ------------------------------------------------------------------ data


def expression_empty(process: ProcessBuilder, *, broken: bool) -> None:
    """An expression has a text."""
    process.start("s").task("t").when(Expression(id="bad", text=" " if broken else "x")).end("e")


def expression_informal(process: ProcessBuilder, *, broken: bool) -> None:
    """An expression is marked as formal."""
    process.start("s").task("t").when(Expression(id="bad", text="x", formal=not broken)).end("e")


def data_unlisted(process: ProcessBuilder, *, broken: bool) -> None:
    """A data input is in a set."""
    io = specification(inputs=(DataInput(id="bad"),))
    _task_with(process, evolve(io, input_sets=(InputSet(),)) if broken else io)


def io_set_unresolved(process: ProcessBuilder, *, broken: bool) -> None:
    """A set lists what is declared."""
    io = specification(inputs=(DataInput(id="i"),))
    _task_with(process, evolve(io, input_sets=(InputSet(id="bad", data_input_refs=("i", "ghost")),)) if broken else io)


def io_set_optional_unlisted(process: ProcessBuilder, *, broken: bool) -> None:
    """What is optional in a set is in the set."""
    io = specification(inputs=(DataInput(id="i"), DataInput(id="j")))
    listed = ("i",) if broken else ("i", "j")
    _task_with(
        process, evolve(io, input_sets=(InputSet(id="bad", data_input_refs=listed, optional_input_refs=("j",)),))
    )


def io_set_pairing(process: ProcessBuilder, *, broken: bool) -> None:
    """Sets that belong together name each other."""
    io = specification()
    outputs = OutputSet(id="out", input_set_refs=() if broken else ("bad",))
    _task_with(process, evolve(io, input_sets=(InputSet(id="bad", output_set_refs=("out",)),), output_sets=(outputs,)))


def sub_process_io(process: ProcessBuilder, *, broken: bool) -> None:
    """A sub-process has no specification."""
    options: Any = {"io_specification": specification()} if broken else {}
    with process.start("s").subprocess("bad", **options) as inside:
        inside.start("s1").end("e1")
    process.at("bad").end("e")


def _association(process: ProcessBuilder, association: DataAssociation) -> Definitions:
    process.data_object("from1")
    process.data_object("from2")
    _task_with(process, specification(inputs=(DataInput(id="in"),), outputs=(DataOutput(id="out"),)))
    side = "data_input_associations" if isinstance(association, DataInputAssociation) else "data_output_associations"
    return changed(process.build(), "t", **{side: (association,)})


def data_association_sources(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """Several sources need a transformation."""
    transformation = None if broken else Expression(text="from1 + from2")
    return _association(
        process,
        DataInputAssociation(id="bad", source_refs=("from1", "from2"), target_ref="in", transformation=transformation),
    )


def data_association_target_missing(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """An association goes somewhere."""
    target = None if broken else "in"
    return _association(process, DataInputAssociation(id="bad", source_refs=("from1",), target_ref=target))


def data_association_direction(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """An output does not go into an input."""
    target = "in" if broken else "from1"
    return _association(process, DataOutputAssociation(id="bad", source_refs=("out",), target_ref=target))


def data_association_items(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A copy keeps the item definition."""
    _items(process)
    process.data_object("source", item="number" if broken else "text")
    process.data_object_reference("again", "source")
    _task_with(process, specification(inputs=(DataInput(id="in", item_subject_ref="text"),)))
    copy = DataInputAssociation(id="bad", source_refs=("again",), target_ref="in")
    return changed(process.build(), "t", data_input_associations=(copy,))


def collection_contradicted(process: ProcessBuilder, *, broken: bool) -> None:
    """A collection is one in its item definition too."""
    _items(process)
    process.data_object("bad", item="texts", collection=not broken)
    process.start("s").end("e")


def data_reference_name(process: ProcessBuilder, *, broken: bool) -> None:
    """A reference with a state is named after object and state."""
    process.data_object("o", name="Order")
    process.data_object_reference("bad", "o", name="Order" if broken else "Order [paid]", state="paid")
    process.start("s").end("e")


# ------------------------------------------------------------------ contracts


def _operation(process: ProcessBuilder, message_item: str = "text") -> None:
    _items(process)
    asked = process.document.message("ask", root_id="ask", item=message_item)
    operation = Operation(id="op", name="op", in_message_ref=asked.id)
    process.document.add(Interface(id="interface", name="interface", operations=(operation,)))


def operation_sets(process: ProcessBuilder, *, broken: bool) -> None:
    """A service task with an operation has one input set."""
    _operation(process)
    options: Any = {} if broken else {"io_specification": specification()}
    process.start("s").service("bad", operation="op", **options).end("e")


def message_sets(process: ProcessBuilder, *, broken: bool) -> None:
    """A send task sends one piece of data."""
    inputs = (DataInput(id="i"), DataInput(id="j")) if broken else (DataInput(id="i"),)
    process.start("s").send("bad", message="m", io_specification=specification(inputs=inputs)).end("e")


def operation_items(process: ProcessBuilder, *, broken: bool) -> None:
    """A service task sends what its operation takes."""
    _operation(process)
    inputs = (DataInput(id="i", item_subject_ref="number" if broken else "text"),)
    process.start("s").service("bad", operation="op", io_specification=specification(inputs=inputs)).end("e")


def message_items(process: ProcessBuilder, *, broken: bool) -> None:
    """A send task sends what its message holds."""
    _operation(process)
    inputs = (DataInput(id="i", item_subject_ref=None if broken else "text"),)
    process.start("s").send("bad", message="ask", io_specification=specification(inputs=inputs)).end("e")


def multi_instance_collection_unresolved(process: ProcessBuilder, *, broken: bool) -> None:
    """A collection is a data element."""
    process.data_object("list")
    process.start("s").task("bad", loop=for_each("ghost" if broken else "list")).end("e")


def multi_instance_collection_items(process: ProcessBuilder, *, broken: bool) -> None:
    """The item of a collection is its scalar."""
    _items(process)
    process.data_object("list", item="texts", collection=True)
    several = evolve(
        for_each("list"), input_data_item=DataInput(id="item", item_subject_ref="number" if broken else "text")
    )
    process.start("s").task("bad", loop=several).end("e")


def event_data_count(process: ProcessBuilder, *, broken: bool) -> None:
    """An event has one data element for each definition."""
    triggers = [signal("x"), signal("y")] if broken else [signal("x")]
    process.start("s").throw("bad", on=triggers, inputs={"amount": "total"}).end("e")


def event_data_items(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """An event's data is what it throws."""
    _operation(process)
    process.start("s").throw("bad", on=message("ask", operation="op")).end("e")
    data = DataInput(id="i", item_subject_ref="number" if broken else "text")
    return changed(process.build(), "bad", data_inputs=(data,))


def call_data(process: ProcessBuilder, *, broken: bool) -> None:
    """A call gives what the callee takes."""
    process.document.add(GlobalTask(id="g", io_specification=specification(inputs=(DataInput(id="taken"),))))
    inputs = () if broken else (DataInput(id="given"),)
    process.start("s").call("bad", process="g", io_specification=specification(inputs=inputs)).end("e")


# ------------------------------------------------------------------ references and the document


def reference_unresolved(process: ProcessBuilder, *, broken: bool) -> None:
    """What execution needs is there."""
    _operation(process)
    process.start("s").service("bad", operation="ghost" if broken else "op", io_specification=specification()).end("e")


def carried_reference_unresolved(process: ProcessBuilder, *, broken: bool) -> None:
    """What is carried is consistent."""
    _items(process)
    process.data_object("bad", item="ghost" if broken else "text")
    process.start("s").end("e")


def interface_binding_missing(process: ProcessBuilder, *, broken: bool) -> None:
    """What supports an interface has a binding."""
    _operation(process)
    bindings = () if broken else (InputOutputBinding(operation_ref="op"),)
    process.document.add(GlobalTask(id="bad", supported_interface_refs=("interface",), io_bindings=bindings))


def interface_binding_items(process: ProcessBuilder, *, broken: bool) -> None:
    """A binding joins data of one item."""
    _operation(process)
    io = specification(inputs=(DataInput(id="i", item_subject_ref="number" if broken else "text"),))
    binding = InputOutputBinding(id="bad", operation_ref="op", input_data_ref="i")
    process.document.add(
        GlobalTask(id="g", supported_interface_refs=("interface",), io_bindings=(binding,), io_specification=io)
    )


def duplicate_id(process: ProcessBuilder, *, broken: bool) -> Definitions | None:
    """An id is used once."""
    process.start("s").task("bad").end("e")
    return changed(process.build(), "e", id="bad") if broken else None


def process_id_missing(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A process has an id."""
    process.start("s").end("e")
    return changed(process.build(), "p", id="" if broken else "bad")


def _pools(process: ProcessBuilder, flow: MessageFlow) -> None:
    """Two processes in two pools, and a message flow."""
    other = process.document.process("other")
    other.start("s2", on=message("m", operation="op")).end("e2")
    process.start("s").send("t", message="m").end("e", on=message("m", operation="op"))
    pools = (Participant(id="pool1", process_ref="p"), Participant(id="pool2", process_ref="other"))
    process.document.add(Collaboration(id="c", participants=pools, message_flows=(flow,)))


def participant_multiplicity(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """The maximum is not below the minimum."""
    _pools(process, MessageFlow(source_ref="t", target_ref="s2"))
    pool = Participant(id="bad", minimum=2, maximum=1 if broken else 2)
    return changed(process.build(), "c", participants=(pool,))


def message_flow_end(process: ProcessBuilder, *, broken: bool) -> None:
    """A message flow ends at something that can take a message."""
    process.add(TextAnnotation(id="note"))
    _pools(process, MessageFlow(id="bad", source_ref="t", target_ref="note" if broken else "s2"))


def message_flow_in_pool(process: ProcessBuilder, *, broken: bool) -> None:
    """A message flow leaves its pool."""
    _pools(process, MessageFlow(id="bad", source_ref="t", target_ref="pool1" if broken else "pool2"))


def message_flow_out(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """An end event that sends a message has a message definition."""
    _pools(process, MessageFlow(id="flow", source_ref="bad", target_ref="pool2"))
    definitions = changed(process.build(), "e", id="bad")
    return changed(definitions, "bad", event_definitions=()) if broken else definitions


def message_flow_in(process: ProcessBuilder, *, broken: bool) -> Definitions:
    """A start event that gets a message has a message definition."""
    _pools(process, MessageFlow(id="flow", source_ref="t", target_ref="bad"))
    definitions = changed(process.build(), "s2", id="bad")
    return changed(definitions, "bad", event_definitions=()) if broken else definitions


def not_a_uri(process: ProcessBuilder, *, broken: bool) -> None:
    """The language of an expression is a URI."""
    language = "no uri%" if broken else "http://www.w3.org/1999/XPath"
    process.start("s").task("t").when(Expression(id="bad", text="x", language=language)).end("e")


def not_a_media_type(process: ProcessBuilder, *, broken: bool) -> None:
    """The format of a script is a media type."""
    process.start("s").script("bad", "x = 1", script_format="python" if broken else "text/x-python").end("e")


CASES: tuple[Case, ...] = (
    expression_empty,
    expression_informal,
    data_unlisted,
    io_set_unresolved,
    io_set_optional_unlisted,
    io_set_pairing,
    sub_process_io,
    data_association_sources,
    data_association_target_missing,
    data_association_direction,
    data_association_items,
    collection_contradicted,
    data_reference_name,
    operation_sets,
    message_sets,
    operation_items,
    message_items,
    multi_instance_collection_unresolved,
    multi_instance_collection_items,
    event_data_count,
    event_data_items,
    call_data,
    reference_unresolved,
    carried_reference_unresolved,
    interface_binding_missing,
    interface_binding_items,
    duplicate_id,
    process_id_missing,
    participant_multiplicity,
    message_flow_end,
    message_flow_in_pool,
    message_flow_out,
    message_flow_in,
    not_a_uri,
    not_a_media_type,
)


@pytest.mark.parametrize("case", CASES, ids=rule_of)
def test_rule(case: Case) -> None:
    """The rule finds the culprit, and is silent about the model that keeps it."""
    assert_case(case)


@pytest.mark.parametrize("source,target,rule", [("s2", "pool1", "message-flow-out"), ("t", "e2", "message-flow-in")])
def test_message_flows_against_the_arrow(source: str, target: str, rule: str) -> None:
    """A start event sends no message, an end event gets none."""
    process = ProcessBuilder("p")
    _pools(process, MessageFlow(id="flow", source_ref=source, target_ref=target))
    assert rule in {finding.rule for finding in check(process.build())}


def test_references_to_the_wrong_kind() -> None:
    """A reference that exists but leads to another kind of element is refused, naming what it found."""
    process = ProcessBuilder("p")
    wrong = process.document.signal("x").id
    process.start("s").send("t", message="m").end("e")
    found = check(changed(process.build(), "t", message_ref=wrong))
    assert [(finding.rule, finding.element_id) for finding in found] == [("reference-unresolved", "t")]
    assert "signal 'signal_x'" in found[0].message


def test_references_into_imported_documents() -> None:
    """A prefixed reference may lead into an imported document: it is not judged; without imports it is."""
    process = ProcessBuilder("p")
    process.start("s").send("t", message="m").end("e")
    prefixed = changed(process.build(), "t", message_ref="other:m")
    importing = evolve(prefixed, imports=(Import(import_type="x", location="other.bpmn", namespace="urn:other"),))
    assert [finding.rule for finding in check(prefixed)] == ["reference-unresolved"]
    assert check(importing) == ()
