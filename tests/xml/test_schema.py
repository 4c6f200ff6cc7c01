"""The table and the model agree: every field has its place in a document, every class a name."""

from __future__ import annotations

import attrs
import pytest

from trioflow import model
from trioflow.model import BaseElement, Definitions, Expression, ResourceRole, SequenceFlow, UserTask
from trioflow.xml.schema import bpmn_schema, xml_name

SHAPES = bpmn_schema().shapes
ELSEWHERE = {
    Definitions: {"namespaces"},
    Expression: {"text", "formal"},
    ResourceRole: {"role"},
}
"""Fields that are neither attribute nor child: prefixes, an expression's content, an element's own name."""


@pytest.mark.parametrize("cls", SHAPES, ids=lambda cls: cls.__name__)
def test_every_field_has_a_place(cls: type[BaseElement]) -> None:
    """Each field of each class is an attribute or a child, and neither names a field that is not there."""
    shape = SHAPES[cls]
    placed = {attribute.field for attribute in shape.attributes.values()}
    for child in shape.children:
        placed |= {field for field, _ in child.folded.values()} or {child.field}

    assert placed == {field.name for field in attrs.fields(cls)} - {"position"} - ELSEWHERE.get(cls, set())


def test_every_class_can_be_read() -> None:
    """Each class of the model that is an element of its own is known by its tag."""
    classes = {
        cls
        for cls in vars(model).values()
        if isinstance(cls, type) and issubclass(cls, BaseElement) and "tag" in vars(cls)
    }

    assert classes - {BaseElement} == set(SHAPES)


def test_inherited_children_come_first() -> None:
    """A class has the children of its bases before its own, as the schema's types extend each other."""
    fields = [child.field for child in SHAPES[UserTask].children]

    assert fields == [
        *("documentation", "extensions", "auditing", "monitoring", "category_value_refs", "incoming", "outgoing"),
        *("io_specification", "properties", "data_input_associations", "data_output_associations", "resources"),
        *("loop_characteristics", "renderings"),
    ]


def test_attributes_are_named_as_in_the_standard() -> None:
    """A field's words become one XML name."""
    assert xml_name("is_for_compensation") == "isForCompensation"
    assert list(SHAPES[SequenceFlow].attributes) == ["id", "name", "sourceRef", "targetRef", "isImmediate"]


def test_the_schema_is_made_once() -> None:
    """Reader and writer share one schema, which nobody can change."""
    assert bpmn_schema() is bpmn_schema()
    with pytest.raises(TypeError):
        bpmn_schema().shapes[UserTask] = None  # type: ignore[index] # that it cannot is the claim
