"""What is written reads back as it was: by chance over the whole vocabulary, and in the details that matter."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.xml.strategies import document_around, elements
from tests.xml.support import CAMUNDA, definitions, document, process, round_trip
from trioflow.errors import ModelError
from trioflow.model import (
    BPMN_NAMESPACE,
    BaseElement,
    Collaboration,
    Definitions,
    Expression,
    Extensions,
    Message,
    MultiInstanceLoopCharacteristics,
    Process,
    Property,
    RawElement,
    SequenceFlow,
    Signal,
    StartEvent,
    Task,
    UserTask,
)
from trioflow.xml import read, write
from trioflow.xml.schema import bpmn_schema

SHAPES = bpmn_schema().shapes
EMPTY = Definitions(target_namespace="urn:test")


def holding(*elements: BaseElement, **more: Any) -> Definitions:
    """A document with these root elements."""
    return attrs.evolve(EMPTY, root_elements=elements, **more)


@pytest.mark.parametrize("cls", SHAPES, ids=lambda cls: cls.__name__)
@given(data=st.data())
@settings(max_examples=5)
def test_what_is_written_reads_back(cls: type[BaseElement], data: st.DataObject) -> None:
    """An element of any class, with anything in it, is equal to what is read from its document (5 examples each)."""
    model = document_around(data.draw(elements(SHAPES[cls])))

    written = write(model)
    found = read(written)

    assert found.definitions == model
    assert write(found.definitions) == written


@pytest.mark.parametrize(
    "text", ["a < b && c > d", "]]>", "\u00e4\U0001f600", " \n\t ", "a\r\nb", "\r", "\"'", "", "<![CDATA[x]]>"]
)
def test_text_survives(text: str) -> None:
    """Every text survives as text, as attribute and as expression, line ends and white space included."""
    model = holding(
        Message(id="M", name=text, documentation=(text,)),
        Process(
            id="P",
            flow_elements=(
                Task(id="T"),
                SequenceFlow(id="F", source_ref="T", target_ref="T", condition_expression=Expression(text=text)),
            ),
        ),
    )

    assert round_trip(model) == model


def test_a_document_is_the_same_for_equal_definitions() -> None:
    """Writing is stable: what was written, read and written again has the same bytes."""
    source = process('<task id="T" camunda:x="1"><documentation>d</documentation></task>')

    data = write(definitions(source))

    assert data == write(definitions(data))


def test_a_document_as_it_looks() -> None:
    """A document is declared as UTF-8, indented, with the prefixes it had, and leaves defaults out."""
    source = process('<startEvent id="S" name="go" isInterrupting="true"/>')

    assert write(definitions(source)).decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<bpmn:definitions xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xmlns:camunda="{CAMUNDA}" xmlns:bpmn="{BPMN_NAMESPACE}" targetNamespace="urn:test">\n'
        '  <bpmn:process id="P">\n'
        '    <bpmn:startEvent id="S" name="go"/>\n'
        "  </bpmn:process>\n"
        "</bpmn:definitions>\n"
    )


def test_prefixes_are_kept() -> None:
    """Declared prefixes stay declared, also those that only an expression uses; BPMN keeps its own."""
    source = document(
        '<b:process id="P"><b:extensionElements><z:late xmlns:z="urn:z"/></b:extensionElements></b:process>',
        prefix="b",
        attributes='xmlns:fn="urn:functions"',
    )

    root = etree.fromstring(write(definitions(source)))

    assert root.nsmap["b"] == BPMN_NAMESPACE
    assert root.nsmap["fn"] == "urn:functions"
    assert root.nsmap["z"] == "urn:z"


def test_a_prefix_that_is_taken_is_not_taken_twice() -> None:
    """Where a document uses BPMN's usual prefix for something else, BPMN gets another one."""
    source = (
        document('<bpmn:x xmlns:bpmn="urn:mine"/>')
        .replace("<bpmn:x", "<extensionElements><bpmn:x")
        .replace('mine"/>', 'mine"/></extensionElements>')
    )
    model = definitions(source)

    root = etree.fromstring(write(model))

    assert root.nsmap["bpmn"] == "urn:mine"
    assert root.tag == f"{{{BPMN_NAMESPACE}}}definitions"
    assert round_trip(model) == model


def test_references_into_imports_survive() -> None:
    """A name of another namespace is written with a prefix for it, and reads back as the same name."""
    model = holding(Process(id="P", supports=("{urn:other}Q",)), Message(id="M", item_ref="{urn:more}I"))

    data = write(model)

    assert b'xmlns:ns1="urn:' in data
    assert round_trip(model) == model


def test_types_in_extensions_survive() -> None:
    """A qualified type in an extension means the same after writing, under whatever prefix."""
    source = document('<extensionElements><camunda:x xsi:type="s:string" xmlns:s="urn:types"/></extensionElements>')
    model = definitions(source)

    (raw,) = model.extensions.elements
    assert raw.get("{http://www.w3.org/2001/XMLSchema-instance}type") == "{urn:types}string"
    assert round_trip(model) == model


def test_mixed_content_is_not_indented() -> None:
    """Elements inside text are written without white space around them."""
    raw = RawElement(tag="{urn:a}p", text="see ", children=(RawElement(tag="{urn:a}b", text="this", tail=" one"),))
    model = attrs.evolve(EMPTY, extensions=Extensions(elements=(raw,)))

    assert b">see <ns1:b>this</ns1:b> one</ns1:p>" in write(model)
    assert round_trip(model) == model


def test_diagrams_are_kept() -> None:
    """The diagram of a document is written as it was."""
    source = document(
        '<process id="P"/><d:BPMNDiagram xmlns:d="http://www.omg.org/spec/BPMN/20100524/DI" id="D">'
        '<d:BPMNPlane bpmnElement="P"><c:Bounds xmlns:c="http://www.omg.org/spec/DD/20100524/DC" x="1.5"/>'
        "</d:BPMNPlane></d:BPMNDiagram>"
    )
    model = definitions(source)

    assert round_trip(model) == model
    assert b'<d:BPMNDiagram id="D">' in write(model)
    assert b'<c:Bounds x="1.5"/>' in write(model)


def test_children_stand_in_the_order_of_the_schema() -> None:
    """However the fields are given, the document has them in the order that the standard's schema asks for."""
    task = UserTask(
        id="T",
        loop_characteristics=MultiInstanceLoopCharacteristics(),
        properties=(Property(id="Q"),),
        outgoing=("F",),
        incoming=("E",),
        documentation=("d",),
        extensions=Extensions(elements=(RawElement(tag="{urn:a}x"),)),
    )

    root = etree.fromstring(write(holding(Process(id="P", flow_elements=(task,)))))

    assert [etree.QName(child).localname for child in root[0][0]] == [
        *("documentation", "extensionElements", "incoming", "outgoing", "property", "multiInstanceLoopCharacteristics")
    ]


def test_what_is_carried_is_kept_in_the_order_of_the_schema() -> None:
    """Carried elements that a document has in another order are sorted when read, so that writing changes nothing."""
    found = read(
        document(
            '<relationship type="t"><source>A</source><target>A</target></relationship><extension/>'
            '<collaboration id="K"><conversationLink id="L" sourceRef="A" targetRef="V"/><participant id="A"/>'
            '<conversation id="V"/></collaboration>'
        )
    )

    assert found.definitions is not None
    (collaboration,) = found.definitions.root_elements
    assert isinstance(collaboration, Collaboration)
    assert [etree.QName(raw.tag).localname for raw in found.definitions.carried] == ["extension", "relationship"]
    assert [etree.QName(raw.tag).localname for raw in collaboration.carried] == ["conversation", "conversationLink"]
    assert read(write(found.definitions)).definitions == found.definitions


@pytest.mark.parametrize(
    "model, message",
    [
        (
            holding(Message(id="M", name="a\x00b")),
            (
                "cannot write <message> 'M' as XML: All strings must be XML compatible: Unicode or ASCII, no "
                "NULL bytes or "
                "control characters; remove control characters from its texts, and check the names of its extensions"
            ),
        ),
        (
            holding(Signal(id="S", extensions=Extensions(attributes=(("name", "x"),)))),
            (
                "cannot write the extension attribute 'name' of <signal> 'S': "
                "give it a namespace of its own, as {namespace}name"
            ),
        ),
        (
            holding(StartEvent(id="S")),
            "cannot write StartEvent 'S' into <definitions>: its root_elements takes ",
        ),
    ],
    ids=["control characters", "an extension without namespace", "an element in the wrong place"],
)
def test_what_cannot_be_written_is_refused(model: Definitions, message: str) -> None:
    """A model that has no document raises, naming the element and what to do."""
    with pytest.raises(ModelError) as caught:
        write(model)

    assert str(caught.value).startswith(message)
