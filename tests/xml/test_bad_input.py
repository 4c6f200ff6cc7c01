"""What a person is told about a bad file: every message, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.xml.support import CAMUNDA, document, process, said
from trioflow.errors import ModelError
from trioflow.model import BPMN_NAMESPACE, BoundaryEvent, Level, Process, SequenceFlow
from trioflow.xml import read

FILES = {
    "empty": (
        "",
        (
            "line 1: error [xml-malformed]: This is no XML document: it is empty. "
            "Give the content of a BPMN 2.0 file; a file's name is given as a pathlib.Path."
        ),
    ),
    "a name instead of a file": (
        "order.bpmn",
        (
            "line 1: error [xml-malformed]: This is no XML document: it begins with 'order.bpmn'. "
            "Give the content of a BPMN 2.0 file; a file's name is given as a pathlib.Path."
        ),
    ),
    "not well-formed": (
        f'<definitions xmlns="{BPMN_NAMESPACE}">\n<process>\n</definitions>',
        (
            "line 3: error [xml-malformed]: The XML is not well-formed: Opening and ending tag mismatch: process "
            "line 2 "
            "and definitions. Repair the markup there, or export the model again; nothing after this line was read."
        ),
    ),
    "an undeclared entity": (
        process('<task id="T" name="&euro;"/>'),
        (
            "line 4: error [xml-malformed]: The XML is not well-formed: Entity 'euro' not defined. "
            "Repair the markup there, or export the model again; nothing after this line was read."
        ),
    ),
    "a decision model": (
        '<definitions xmlns="https://www.omg.org/spec/DMN/20191111/MODEL/"/>',
        (
            "line 1: error [not-bpmn]: The root element is <definitions> of the namespace "
            "https://www.omg.org/spec/DMN/20191111/MODEL/: this is a DMN decision model. "
            "Give decisions to a business rule task's handler; only BPMN is read here."
        ),
    ),
    "a draft of BPMN": (
        '<definitions xmlns="http://schema.omg.org/spec/BPMN/2.0/bpmn"/>',
        (
            "line 1: error [not-bpmn]: The root element is <definitions> of the namespace "
            "http://schema.omg.org/spec/BPMN/2.0/bpmn: this is a draft or another version of BPMN. "
            "Export it as BPMN 2.0 (namespace http://www.omg.org/spec/BPMN/20100524/MODEL)."
        ),
    ),
    "a web page": (
        '<html xmlns="http://www.w3.org/1999/xhtml"/>',
        (
            "line 1: error [not-bpmn]: The root element is <html> of the namespace http://www.w3.org/1999/xhtml: "
            "this is a web page. Download the file itself, not the page that shows it."
        ),
    ),
    "any other file": (
        '<feed xmlns="http://www.w3.org/2005/Atom"/>',
        (
            "line 1: error [not-bpmn]: The root element is <feed> of the namespace http://www.w3.org/2005/Atom: "
            "this is another kind of file. Give a BPMN 2.0 file."
        ),
    ),
    "no namespace": (
        '<definitions id="D"/>',
        (
            "line 1: error [not-bpmn] 'D': The root element <definitions> has no namespace, so this is not known to be "
            'BPMN 2.0. Declare the namespace of BPMN 2.0 on it: xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL".'
        ),
    ),
    "a part of a document": (
        f'<process xmlns="{BPMN_NAMESPACE}" id="P"/>',
        (
            "line 1: error [not-bpmn] 'P': The root element is <process>; a BPMN document starts with <definitions>. "
            "Put it into a <definitions> element with a targetNamespace."
        ),
    ),
}

CONTENT = {
    "a misspelt element": (
        process('<userTaks id="T"/>'),
        (
            "line 4: error [unknown-element] 'T': <userTaks> in <process> 'P' is no element of BPMN 2.0. Did you mean "
            "'userTask'? Content of your own belongs into <extensionElements>, in a namespace of its own."
        ),
    ),
    "an element without namespace": (
        process('<task xmlns="" id="T"/>'),
        (
            "line 4: error [unknown-element] 'T': <task> in <process> 'P' has no namespace, so it is no element "
            "of BPMN. "
            "Write it with the prefix of the BPMN namespace, or put it into <extensionElements>."
        ),
    ),
    "an element in the wrong place": (
        process('<participant id="A"/>'),
        (
            "line 4: error [misplaced-element] 'A': <participant> cannot stand in <process> 'P'. "
            "Move it to where BPMN 2.0 allows it, or remove it."
        ),
    ),
    "a choreography's task in a process": (
        process('<choreographyTask id="C" initiatingParticipantRef="A"/>'),
        (
            "line 4: error [not-executable] 'C': <choreographyTask> in <process> 'P' belongs to choreographies, which "
            "have no execution in a process. Replace it by tasks and message events, or move it to a <choreography>."
        ),
    ),
    "a vendor's element in the wrong place": (
        process('<task id="T"><camunda:in/></task>'),
        (
            f"line 4: violation [misplaced-extension]: <in> of the namespace {CAMUNDA} stands in <task> 'T' outside of "
            "<extensionElements>; it is kept as if it stood there. Put it into <extensionElements>."
        ),
    ),
    "two where one may be": (
        process('<task id="T"><standardLoopCharacteristics/>\n<multiInstanceLoopCharacteristics/></task>'),
        (
            "line 5: error [duplicate-element]: <task> 'T' has more than one <multiInstanceLoopCharacteristics>; "
            "only the first was read. Keep one of them."
        ),
    ),
    "text between elements": (
        process('<task id="T"/> oops'),
        (
            "line 3: violation [unexpected-text] 'P': <process> holds the text 'oops', where BPMN allows "
            "elements only; "
            "it is left out. Remove it, or make it a <documentation>."
        ),
    ),
    "a misspelt attribute": (
        process('<task id="T" nam="A"/>'),
        (
            "line 4: error [unknown-attribute] 'T': <task> has the attribute 'nam', which BPMN 2.0 does not give it "
            "(value 'A'). Did you mean 'name'? Remove it, or put an attribute of your own into a namespace of its own."
        ),
    ),
    "an attribute with the prefix of BPMN": (
        document('<b:process id="P" b:name="A"/>', prefix="b"),
        (
            "line 3: error [unknown-attribute] 'P': <process> has the attribute 'name' with the prefix of BPMN, which "
            "BPMN 2.0 does not give it (value 'A'). Write it without a prefix. Remove it, or put an attribute of "
            "your own "
            "into a namespace of its own."
        ),
    ),
    "a value that is no boolean": (
        process('<startEvent id="S" isInterrupting="yes"/>'),
        (
            "line 4: error [bad-value] 'S': <startEvent> has isInterrupting='yes', which is not true or false. "
            "Write true or false, or leave isInterrupting out for its default."
        ),
    ),
    "a value that is no number": (
        process('<task id="T" startQuantity="1_000"/>'),
        (
            "line 4: error [bad-value] 'T': <task> has startQuantity='1_000', which is not a whole number. "
            "Write a whole number, or leave startQuantity out for its default."
        ),
    ),
    "a word that is not in the list": (
        process('<eventBasedGateway id="G" eventGatewayType="parallel"/>'),
        (
            "line 4: error [bad-value] 'G': <eventBasedGateway> has eventGatewayType='parallel', which is none of "
            "Exclusive, Parallel. Did you mean 'Parallel'? Write one of Exclusive, Parallel."
        ),
    ),
    "a direction that is not in the list": (
        process('<parallelGateway id="G" gatewayDirection="Sideways"/>'),
        (
            "line 4: violation [bad-value] 'G': <parallelGateway> has gatewayDirection='Sideways', which is none of "
            "Unspecified, Converging, Diverging, Mixed. Write one of Unspecified, Converging, Diverging, Mixed."
        ),
    ),
    "an expression of a strange type": (
        process(
            '<task id="T"/><sequenceFlow id="F" sourceRef="T" targetRef="T">\n'
            '<conditionExpression xsi:type="tScript">x</conditionExpression></sequenceFlow>'
        ),
        (
            "line 5: violation [bad-value]: <conditionExpression> has xsi:type='tScript', which is no "
            "expression; it is "
            "read as a formal expression. Write xsi:type with the BPMN prefix and tFormalExpression."
        ),
    ),
    "no target namespace": (
        f'<definitions xmlns="{BPMN_NAMESPACE}"/>',
        (
            "line 1: violation [missing-attribute]: <definitions> has no targetNamespace, which BPMN 2.0 requires. "
            "Add targetNamespace."
        ),
    ),
    "a flow from nowhere": (
        process('<task id="T"/><sequenceFlow id="F" targetRef="T"/>'),
        (
            "line 4: error [missing-attribute] 'F': <sequenceFlow> has no sourceRef, which BPMN 2.0 requires. "
            "Add sourceRef."
        ),
    ),
    "a flow to nowhere": (
        process('<task id="T"/>\n<sequenceFlow id="F" sourceRef="T" targetRef="Nowhere"/>'),
        (
            "line 5: error [unresolved-reference] 'F': <sequenceFlow> refers by targetRef to 'Nowhere', and the "
            "document "
            "has no element with that id. Correct the reference, or add the element."
        ),
    ),
    "a list that names nothing": (
        process('<task id="T">\n<incoming>F</incoming></task>'),
        (
            "line 4: violation [unresolved-reference] 'T': <task> refers by incoming to 'F', and the document "
            "has no element with that id. Correct the reference, or add the element."
        ),
    ),
    "an empty reference": (
        process('<receiveTask id="T" messageRef=" "/>'),
        (
            "line 4: violation [empty-reference] 'T': <receiveTask> has an empty messageRef; it is read as if it "
            "were not "
            "there. Remove messageRef, or name an element."
        ),
    ),
    "a duplicate id": (
        process('<task id="T"/>\n<userTask id="T"/>'),
        (
            "line 5: error [duplicate-id] 'T': <userTask> (line 5) has the id of the <task> in line 4. "
            "Give one of them another id, and change the references that mean it."
        ),
    ),
    "an id that is no name": (
        process('<task id="1 2"/>'),
        (
            "line 4: violation [bad-id] '1 2': <task> has the id '1 2', which is no name by the rules of XML. "
            "Begin it with a letter or _, and use only letters, digits, '.', '-' and '_'."
        ),
    ),
    "a node without id": (
        process("<task/>"),
        (
            "line 4: error [missing-id]: <task> has no id, so that no flow, token or caller can refer to it. "
            "Give it an id that is unique in the document."
        ),
    ),
    "an extension that must be understood": (
        document('<extension definition="x:risk" mustUnderstand="true"/>'),
        (
            "line 3: error [extension-not-understood]: The document requires the extension 'x:risk' to be understood "
            "(mustUnderstand), and trioflow does not know it. "
            "Set mustUnderstand to false if the model can be executed without it."
        ),
    ),
    "a choreography": (
        document('<choreography id="C"/>'),
        (
            "line 3: warning [not-executed] 'C': <choreography> belongs to conversations and choreographies: it "
            "is kept, "
            "and not executed. Nothing needs to be done if only the processes shall run."
        ),
    ),
    "markup in a script": (
        process('<scriptTask id="T">\n<script>a = <b/></script></scriptTask>'),
        (
            "line 5: warning [markup-in-text]: <script> holds XML elements; they are kept as text, as they were "
            "written. "
            "If markup was not meant, write < as &lt; or use a CDATA section."
        ),
    ),
    "a documentation in another format": (
        document('<documentation textFormat="text/html">x</documentation>'),
        (
            "line 3: warning [not-kept]: The textFormat 'text/html' of <documentation> is not kept. Nothing "
            "needs to be "
            "done to execute the model; move it to the element around if it must survive writing."
        ),
    ),
}


@pytest.mark.parametrize("source, message", FILES.values(), ids=list(FILES))
def test_a_file_that_is_no_bpmn_is_refused_by_name(source: str, message: str) -> None:
    """A file of another kind has no definitions, and one finding says what it is and what to do."""
    found = read(source)

    assert said(found) == [message]
    assert found.definitions is None


@pytest.mark.parametrize("source, message", CONTENT.values(), ids=list(CONTENT))
def test_a_mistake_is_named_with_its_line(source: str, message: str) -> None:
    """One mistake gives one finding, with element, line, reason and remedy, and the rest is read."""
    found = read(source)

    assert said(found) == [message]
    assert found.definitions is not None


def test_all_mistakes_are_found_in_one_pass() -> None:
    """A document with many mistakes has all its findings at once, in the order of the lines."""
    found = read(
        process('<task/>\n<task id="T" nam="x" startQuantity="two"/>\n<taks/>\n<sequenceFlow id="F" targetRef="T"/>')
    )

    assert [(f.rule, f.position and f.position.line) for f in found.findings] == [
        ("missing-id", 4),
        ("unknown-attribute", 5),
        ("bad-value", 5),
        ("unknown-element", 6),
        ("missing-attribute", 7),
    ]


def test_positions_name_the_source() -> None:
    """The name that is given stands before the line, so that a report over many files can be read."""
    (finding,) = read(process("<taks/>"), name="order.bpmn").findings

    assert str(finding.position) == "order.bpmn:4"


def test_what_is_missing_leaves_a_gap_and_not_an_exception() -> None:
    """An element whose required parts are missing is kept with empty ones, for the checks that follow."""
    found = read(process('<boundaryEvent id="B"/><sequenceFlow id="F"/>'))

    assert [f.rule for f in found.findings] == ["missing-attribute"] * 3
    assert found.definitions is not None
    (holder,) = found.definitions.processes
    boundary, flow = holder.flow_elements
    assert isinstance(boundary, BoundaryEvent)
    assert boundary.attached_to_ref == ""
    assert isinstance(flow, SequenceFlow)
    assert (flow.source_ref, flow.target_ref) == ("", "")


@pytest.mark.parametrize(
    "executable, level",
    [("", Level.ERROR), ('isExecutable="true"', Level.ERROR), ('isExecutable="false"', Level.VIOLATION)],
)
def test_a_drawing_may_refer_to_nothing(executable: str, level: Level) -> None:
    """A reference that leads nowhere is an error where it would be executed, not in a process that is only drawn."""
    found = read(document(f'<process id="P" {executable}><receiveTask id="T" messageRef="M"/></process>'))

    assert [(f.rule, f.level) for f in found.findings] == [("unresolved-reference", level)]


def test_a_file_that_cannot_be_read_raises(tmp_path: Path) -> None:
    """A missing file is no content: the error names the path and the reason."""
    path = tmp_path / "none.bpmn"

    with pytest.raises(ModelError) as caught:
        read(path)

    assert str(caught.value) == (
        f"cannot read the BPMN file {str(path)!r}: No such file or directory; check the path and its access"
    )


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    """A file's findings carry its path."""
    path = tmp_path / "order.bpmn"
    path.write_text(process("<taks/>"), "utf-8")

    (finding,) = read(path).findings

    assert finding.position is not None
    assert finding.position.source == str(path)


def test_a_process_needs_an_id() -> None:
    """A process is known by its id: without one it cannot be started, so it is an error."""
    found = read(document("<process/>"))

    assert [(f.rule, f.level) for f in found.findings] == [("missing-id", Level.ERROR)]
    assert found.definitions is not None
    assert [type(element) for element in found.definitions.root_elements] == [Process]
