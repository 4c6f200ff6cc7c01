"""What is read: prefixes, encodings, text, types, references, and the parts of the vocabulary."""

from __future__ import annotations

import pytest

from tests.xml.support import CAMUNDA, definitions, document, only, process, said, the_process
from trioflow.model import (
    AdHocSubProcess,
    Association,
    BoundaryEvent,
    CallActivity,
    Category,
    Collaboration,
    CorrelationProperty,
    DataObject,
    DataObjectReference,
    Error,
    ExclusiveGateway,
    Expression,
    GlobalScriptTask,
    Group,
    Interface,
    ItemDefinition,
    LinkEventDefinition,
    Message,
    MultiInstanceLoopCharacteristics,
    Position,
    RawElement,
    ReceiveTask,
    ScriptTask,
    SequenceFlow,
    ServiceTask,
    SignalEventDefinition,
    StandardLoopCharacteristics,
    StartEvent,
    SubProcess,
    Task,
    TextAnnotation,
    TimerEventDefinition,
    Transaction,
    UserTask,
)
from trioflow.xml import read

UMLAUT = document('<process id="P" name="Auftr\u00e4ge"/>')

# ------------------------------------------------------------------ forms of a document


@pytest.mark.parametrize("prefix", ["", "bpmn", "bpmn2", "semantic", "x.y-1"])
def test_any_prefix_or_none(prefix: str) -> None:
    """The namespace decides what an element is, never its prefix."""
    p = f"{prefix}:" if prefix else ""
    body = (
        f'<{p}process id="P"><{p}task id="T"/><{p}sequenceFlow id="F" sourceRef="T" targetRef="T">'
        f'<{p}conditionExpression xsi:type="{p}tFormalExpression">x</{p}conditionExpression>'
        f"</{p}sequenceFlow></{p}process>"
    )

    task, flow = the_process(document(body, prefix=prefix)).flow_elements

    assert task == Task(id="T")
    assert flow == SequenceFlow(
        id="F", source_ref="T", target_ref="T", condition_expression=Expression(text="x", formal=True)
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_unicode_encodings_need_no_declaration(encoding: str) -> None:
    """UTF-8 with and without mark, and UTF-16 and 32, are known by their first bytes."""
    assert the_process(UMLAUT.encode(encoding)).name == "Auftr\u00e4ge"


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "UTF-16", "utf-8"])
def test_declared_encodings_are_followed(encoding: str) -> None:
    """Any other encoding is the one that the first line declares."""
    source = UMLAUT.replace('"1.0"', f'"1.0" encoding="{encoding}"')

    assert the_process(source.encode(encoding)).name == "Auftr\u00e4ge"


@pytest.mark.parametrize("encoding", ["UTF-16", "ISO-8859-1"])
def test_text_is_decoded_already(encoding: str) -> None:
    """In a string the declaration speaks of bytes that are gone: it is not followed, and a mark is no content."""
    source = "\ufeff" + UMLAUT.replace('"1.0"', f'"1.0" encoding="{encoding}"')

    assert the_process(source).name == "Auftr\u00e4ge"


def test_line_ends_are_normal() -> None:
    """A file with the line ends of Windows reads like any other, lines included."""
    source = process('<scriptTask id="T"><script>a\nb</script></scriptTask>').replace("\n", "\r\n")

    (task,) = the_process(source).flow_elements

    assert isinstance(task, ScriptTask)
    assert task.script == "a\nb"
    assert task.position == Position(4)


# ------------------------------------------------------------------ text


@pytest.mark.parametrize(
    "written, text",
    [
        ("a &lt; b", "a < b"),
        ("<![CDATA[a < b && c]]>", "a < b && c"),
        ("a <![CDATA[<]]> b", "a < b"),
        ("a <!-- no -->&lt; b", "a < b"),
        ("a <?tool no?>&#60; b", "a < b"),
        ("\n  a\n", "\n  a\n"),
        ("  ", "  "),
        ("", ""),
    ],
)
def test_text_is_taken_whole(written: str, text: str) -> None:
    """CDATA, character references and text around comments are one text, white space included."""
    (task,) = the_process(process(f'<scriptTask id="T"><script>{written}</script></scriptTask>')).flow_elements

    assert isinstance(task, ScriptTask)
    assert task.script == text


def test_comments_and_instructions_are_no_content() -> None:
    """Comments and processing instructions between elements leave nothing behind."""
    source = process('<!-- a --><?tool b?><task id="T"><!-- c --><documentation>d</documentation></task>')

    assert the_process(source).flow_elements == (Task(id="T", documentation=("d",)),)


def test_an_expression_has_text_and_extensions() -> None:
    """The text of an expression is what stands around its documentation and its extensions."""
    source = process(
        '<task id="T"/><sequenceFlow id="F" sourceRef="T" targetRef="T"><conditionExpression id="C" language="urn:l">\n'
        "<documentation>why</documentation><extensionElements><camunda:x/></extensionElements>${a}"
        "</conditionExpression></sequenceFlow>"
    )

    condition = only(the_process(source).flow_elements, SequenceFlow).condition_expression

    assert condition is not None
    assert (condition.id, condition.language, condition.text) == ("C", "urn:l", "\n${a}")
    assert condition.documentation == ("why",)
    assert condition.extensions.elements == (RawElement(tag=f"{{{CAMUNDA}}}x"),)
    assert not condition.formal


def test_markup_in_documentation_is_kept_as_it_was_written() -> None:
    """Documentation that holds elements keeps them as text, and a warning says so."""
    found = read(document('<documentation>see <b xmlns="urn:h">this</b>!</documentation>'))

    assert found.definitions is not None
    (text,) = found.definitions.documentation
    assert text.startswith('see <b xmlns="urn:h"')
    assert text.endswith(">this</b>!")
    assert [finding.rule for finding in found.findings] == ["markup-in-text"]


# ------------------------------------------------------------------ types and references


@pytest.mark.parametrize(
    "written, value", [("true", True), ("1", True), (" true ", True), ("false", False), ("0", False)]
)
def test_booleans(written: str, value: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """XML Schema's four booleans are read, with white space around."""
    (start,) = the_process(process(f'<startEvent id="S" isInterrupting="{written}"/>')).flow_elements

    assert isinstance(start, StartEvent)
    assert start.is_interrupting is value


@pytest.mark.parametrize("written, value", [("3", 3), ("+3", 3), ("-1", -1), (" 007 ", 7)])
def test_integers(written: str, value: int) -> None:
    """XML Schema's integers are read, with sign and leading zeros."""
    (task,) = the_process(process(f'<task id="T" startQuantity="{written}"/>')).flow_elements

    assert isinstance(task, Task)
    assert task.start_quantity == value


def test_references_lose_the_prefix_of_the_document() -> None:
    """A name in the target namespace is an id of this document; one of another namespace stays what it is."""
    model = definitions(
        document(
            '<import importType="t" location="l" namespace="urn:other"/>'
            '<message id="M" itemRef="t:I"/><itemDefinition id="I" structureRef="o:order"/>'
            '<process id="P"><receiveTask id="T" messageRef="t:M"/><receiveTask id="U" messageRef="o:M"/>'
            '<callActivity id="C" calledElement="o:P"/><callActivity id="E" calledElement="${a:b}"/></process>',
            attributes='xmlns:t="urn:test" xmlns:o="urn:other"',
        )
    )

    (holder,) = model.processes
    first, second, call, computed = holder.flow_elements
    assert only(model.root_elements, Message).item_ref == "I"
    assert only(model.root_elements, ItemDefinition).structure_ref == "{urn:other}order"
    assert isinstance(first, ReceiveTask)
    assert isinstance(second, ReceiveTask)
    assert isinstance(call, CallActivity)
    assert isinstance(computed, CallActivity)
    assert (first.message_ref, second.message_ref) == ("M", "{urn:other}M")
    assert (call.called_element, computed.called_element) == ("{urn:other}P", "${a:b}")


def test_names_without_prefix_can_lead_into_an_import() -> None:
    """With an imported namespace as the default one, a bare QName leads there, and a bare id does not."""
    source = document(
        '<b:import importType="t" location="l" namespace="urn:other"/>'
        '<b:process id="P"><b:supports>Q</b:supports><b:task id="T"/>'
        '<b:sequenceFlow id="F" sourceRef="T" targetRef="T"/></b:process>',
        prefix="b",
        attributes='xmlns="urn:other"',
    )

    holder = the_process(source)

    assert holder.supports == ("{urn:other}Q",)
    assert only(holder.flow_elements, SequenceFlow).source_ref == "T"


def test_carried_elements_can_be_referred_to() -> None:
    """The ids of conversations count, although conversations are only carried."""
    found = read(
        document(
            '<collaboration id="C"><association id="A" sourceRef="K" targetRef="N"/><textAnnotation id="N"/>'
            '<conversation id="K"/></collaboration>'
        )
    )

    assert [finding.rule for finding in found.findings] == ["not-executed"]


def test_an_abstract_element_says_by_its_type_what_it_is() -> None:
    """``flowElement`` with ``xsi:type`` is the element that the type names."""
    assert the_process(process('<flowElement xsi:type="tUserTask" id="T"/>')).flow_elements == (UserTask(id="T"),)


def test_every_element_knows_its_line() -> None:
    """Elements and extensions carry the line of their start tag; diagrams do not."""
    model = definitions(
        document(
            '<process id="P">\n<task id="T">\n<extensionElements>\n<camunda:x/></extensionElements></task></process>\n'
            '<d:BPMNDiagram xmlns:d="http://www.omg.org/spec/BPMN/20100524/DI"/>'
        )
    )

    (holder,) = model.processes
    (task,) = holder.flow_elements
    positions = [model.position, holder.position, task.position, *(raw.position for raw in task.extensions.elements)]
    assert positions == [Position(2), Position(3), Position(4), Position(6)]
    assert [diagram.position for diagram in model.diagrams] == [None]


# ------------------------------------------------------------------ extensions


def test_extensions_are_kept() -> None:
    """Attributes of other namespaces and extension elements are kept, nested and mixed as they are."""
    (task,) = the_process(
        process(
            '<serviceTask id="T" camunda:topic="pay" xml:lang="de"><extensionElements>\n'
            '  <camunda:in>a <b xmlns="urn:h" c="d">e</b> f</camunda:in>\n  <plain xmlns=""> </plain>\n'
            "</extensionElements></serviceTask>"
        )
    ).flow_elements

    assert isinstance(task, ServiceTask)
    assert task.extensions.attributes == (
        (f"{{{CAMUNDA}}}topic", "pay"),
        ("{http://www.w3.org/XML/1998/namespace}lang", "de"),
    )
    assert task.extensions.elements == (
        RawElement(
            tag=f"{{{CAMUNDA}}}in",
            text="a ",
            children=(RawElement(tag="{urn:h}b", attributes=(("c", "d"),), text="e", tail=" f"),),
        ),
        RawElement(tag="plain", text=" "),
    )


def test_names_in_diagrams_lose_the_prefix_of_the_document() -> None:
    """A shape names its element by id, whatever prefix it was written with."""
    model = definitions(
        document(
            '<process id="P"/><d:BPMNDiagram xmlns:d="http://www.omg.org/spec/BPMN/20100524/DI">'
            '<d:BPMNPlane bpmnElement="t:P"/></d:BPMNDiagram>',
            attributes='xmlns:t="urn:test"',
        )
    )

    (diagram,) = model.diagrams
    assert diagram.children[0].get("bpmnElement") == "P"


# ------------------------------------------------------------------ the vocabulary

TASKS = """
<ioSpecification id="IO"><dataInput id="In"><dataState name="fresh"/></dataInput><dataOutput id="Out"/>
  <inputSet><dataInputRefs>In</dataInputRefs></inputSet><outputSet><dataOutputRefs>Out</dataOutputRefs></outputSet>
</ioSpecification>
<property id="Count" name="count"/>
<dataInputAssociation><sourceRef>Count</sourceRef><targetRef>In</targetRef>
  <transformation>upper(count)</transformation>
  <assignment><from>1</from><to xsi:type="tFormalExpression">count</to></assignment></dataInputAssociation>
<humanPerformer name="who"><resourceRef>R</resourceRef>
  <resourceParameterBinding parameterRef="Region"><formalExpression>north</formalExpression></resourceParameterBinding>
</humanPerformer>
<potentialOwner><resourceAssignmentExpression id="X"><expression>boss()</expression></resourceAssignmentExpression>
</potentialOwner>
<multiInstanceLoopCharacteristics isSequential="true" behavior="None" noneBehaviorEventRef="Sig">
  <loopCardinality>3</loopCardinality><loopDataInputRef>In</loopDataInputRef><inputDataItem id="Item"/>
  <complexBehaviorDefinition><condition>x</condition><event><signalEventDefinition/></event>
  </complexBehaviorDefinition><completionCondition>done</completionCondition></multiInstanceLoopCharacteristics>
"""


def test_an_activity_with_everything() -> None:
    """Data contract, associations, roles and loop of an activity are read, each with its parts."""
    model = definitions(
        document(
            f'<signalEventDefinition id="Sig"/><resource id="R" name="r"><resourceParameter id="Region"/></resource>'
            f'<process id="P"><userTask id="T">{TASKS}</userTask></process>'
        )
    )

    (holder,) = model.processes
    task = only(holder.flow_elements, UserTask)
    assert task.io_specification is not None
    (data_input,) = task.io_specification.data_inputs
    assert data_input.data_state is not None
    assert data_input.data_state.name == "fresh"
    assert task.io_specification.input_sets[0].data_input_refs == ("In",)
    (association,) = task.data_input_associations
    assert (association.source_refs, association.target_ref) == (("Count",), "In")
    assert association.transformation == Expression(text="upper(count)", formal=True)
    assert [a.from_expression.formal for a in association.assignments] == [False]
    assert [a.to_expression.formal for a in association.assignments] == [True]
    human, owner = task.resources
    assert (human.role, human.name, human.resource_ref) == ("humanPerformer", "who", "R")
    assert human.parameter_bindings[0].expression == Expression(text="north", formal=True)
    assert (owner.role, owner.assignment_expression) == ("potentialOwner", Expression(text="boss()", formal=False))
    loop = task.loop_characteristics
    assert isinstance(loop, MultiInstanceLoopCharacteristics)
    assert (loop.is_sequential, loop.behavior, loop.none_behavior_event_ref) == (True, "None", "Sig")
    assert loop.loop_cardinality == Expression(text="3", formal=False)
    assert loop.input_data_item is not None
    assert loop.input_data_item.id == "Item"
    (behavior,) = loop.complex_behavior_definitions
    assert behavior.condition.text == "x"
    assert behavior.event is not None
    assert behavior.event.event_definitions == (SignalEventDefinition(),)


def test_scopes_and_their_members() -> None:
    """Sub-processes of every kind hold their elements, lanes and artifacts."""
    holder = the_process(
        process(
            '<laneSet id="LS"><lane id="L1"><flowNodeRef>S</flowNodeRef><childLaneSet id="CL"><lane id="L2"/>'
            "</childLaneSet></lane></laneSet>"
            '<subProcess id="S" triggeredByEvent="true"><startEvent id="A"><timerEventDefinition>'
            '<timeDuration xsi:type="tFormalExpression">PT1S</timeDuration></timerEventDefinition></startEvent>'
            '<boundaryEvent id="B" attachedToRef="T" cancelActivity="false"/><task id="T"/></subProcess>'
            '<transaction id="X" method="##Store"/><adHocSubProcess id="H" ordering="Sequential">'
            "<completionCondition>x</completionCondition></adHocSubProcess>"
            '<task id="K"><standardLoopCharacteristics loopMaximum="3" testBefore="1"/></task>'
            '<dataObject id="D" isCollection="true"/><dataObjectReference id="DR" dataObjectRef="D"/>'
            '<textAnnotation id="N"><text>note</text></textAnnotation><group id="G"/>'
            '<association id="AS" sourceRef="N" targetRef="S" associationDirection="One"/>'
        )
    )

    lane = holder.lane_sets[0].lanes[0]
    assert lane.flow_node_refs == ("S",)
    assert lane.child_lane_set is not None
    assert [child.id for child in lane.child_lane_set.lanes] == ["L2"]
    inner = only([e for e in holder.flow_elements if type(e) is SubProcess], SubProcess)
    assert inner.triggered_by_event
    start = only(inner.flow_elements, StartEvent)
    (timer,) = start.event_definitions
    assert isinstance(timer, TimerEventDefinition)
    assert timer.time_duration == Expression(text="PT1S")
    assert not only(inner.flow_elements, BoundaryEvent).cancel_activity
    assert only(holder.flow_elements, Transaction).method == "##Store"
    assert only(holder.flow_elements, AdHocSubProcess).ordering == "Sequential"
    assert only(holder.flow_elements, Task).loop_characteristics == StandardLoopCharacteristics(
        loop_maximum=3, test_before=True
    )
    assert only(holder.flow_elements, DataObject).is_collection
    assert only(holder.flow_elements, DataObjectReference).data_object_ref == "D"
    assert only(holder.artifacts, TextAnnotation).text == "note"
    assert only(holder.artifacts, Association).association_direction == "One"
    assert only(holder.artifacts, Group).id == "G"


def test_what_processes_refer_to() -> None:
    """Interfaces, errors, correlation, categories and global tasks are root elements in document order."""
    model = definitions(
        document(
            '<interface id="I" name="i"><operation id="O" name="o"><inMessageRef>M</inMessageRef>'
            "<errorRef>E</errorRef></operation></interface>"
            '<message id="M"/><error id="E" errorCode="4"/>'
            '<correlationProperty id="CP"><correlationPropertyRetrievalExpression messageRef="M">'
            "<messagePath>a.b</messagePath></correlationPropertyRetrievalExpression></correlationProperty>"
            '<category id="C"><categoryValue id="V" value="v"/></category>'
            '<globalScriptTask id="G" scriptLanguage="urn:py"><script>x</script></globalScriptTask>'
        )
    )

    assert [type(element) for element in model.root_elements] == [
        *(Interface, Message, Error, CorrelationProperty, Category, GlobalScriptTask)
    ]
    (operation,) = only(model.root_elements, Interface).operations
    assert (operation.in_message_ref, operation.error_refs) == ("M", ("E",))
    (retrieval,) = only(model.root_elements, CorrelationProperty).retrieval_expressions
    assert retrieval.message_path == Expression(text="a.b", formal=True)
    assert only(model.root_elements, GlobalScriptTask).script == "x"


def test_collaborations() -> None:
    """Participants, message flows and keys are read; an empty multiplicity has the schema's defaults."""
    model = definitions(
        document(
            '<collaboration id="C"><participant id="A" processRef="P"><participantMultiplicity/></participant>'
            '<participant id="B"/><messageFlow id="F" sourceRef="A" targetRef="B"/>'
            '<correlationKey id="K"/></collaboration><process id="P" definitionalCollaborationRef="C"/>'
        )
    )

    collaboration = only(model.root_elements, Collaboration)
    first, second = collaboration.participants
    assert (first.process_ref, first.minimum, first.maximum) == ("P", 0, 1)
    assert (second.process_ref, second.minimum, second.maximum) == (None, None, None)
    assert [(flow.source_ref, flow.target_ref) for flow in collaboration.message_flows] == [("A", "B")]
    assert [key.id for key in collaboration.correlation_keys] == ["K"]


def test_events_and_gateways() -> None:
    """Links name their targets, gateways their default, events the definitions they refer to."""
    holder = the_process(
        document(
            '<signalEventDefinition id="D"/><process id="P">'
            '<intermediateThrowEvent id="L"><linkEventDefinition name="on"/></intermediateThrowEvent>'
            '<intermediateCatchEvent id="R"><eventDefinitionRef>D</eventDefinitionRef></intermediateCatchEvent>'
            '<exclusiveGateway id="G" default="F"/><sequenceFlow id="F" sourceRef="G" targetRef="L"/></process>'
        )
    )

    throw, catch, gateway, _ = holder.flow_elements
    assert getattr(throw, "event_definitions", None) == (LinkEventDefinition(name="on"),)
    assert getattr(catch, "event_definition_refs", None) == ("D",)
    assert isinstance(gateway, ExclusiveGateway)
    assert gateway.default == "F"


def test_what_is_out_of_scope_is_carried() -> None:
    """Choreographies and conversations are kept with a warning, relationships and extensions without one."""
    found = read(
        document(
            '<extension definition="camunda:x"/><choreography id="C"><participant id="A"/></choreography>'
            '<collaboration id="K"><conversation id="V"/></collaboration>'
            '<relationship type="t"><source>A</source><target>A</target></relationship>'
        )
    )

    assert found.definitions is not None
    assert [raw.tag.rpartition("}")[2] for raw in found.definitions.carried] == [
        *("extension", "choreography", "relationship")
    ]
    assert [raw.get("id") for raw in only(found.definitions.root_elements, Collaboration).carried] == ["V"]
    assert [(f.rule, f.element_id) for f in found.findings] == [("not-executed", "C"), ("not-executed", "V")]


def test_nothing_to_say_about_a_plain_document() -> None:
    """A correct document has no findings, and the standard dialect unless it declares a vendor's namespace."""
    found = read(document("").replace(CAMUNDA, "urn:nobody"))

    assert said(found) == []
    assert found.dialect == "standard"
