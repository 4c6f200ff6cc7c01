"""The schema that reader and writer work with: for each class its attributes and children, found by name."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from types import MappingProxyType

import attrs
from attrs import frozen

import trioflow.model as bpmn
from trioflow.xml.facets import REQUIRED, WORDS, Reference, Words, reference_of
from trioflow.xml.vocabulary import CHILDREN, CLASSES, NOT_ATTRIBUTES, Child, Kind

__all__ = ["Attribute", "Schema", "Shape", "Slot", "Type", "bpmn_schema"]


class Type(enum.Enum):
    """What the text of an attribute means."""

    STRING = enum.auto()
    BOOLEAN = enum.auto()
    INTEGER = enum.auto()
    REFERENCE = enum.auto()
    WORD = enum.auto()
    ID = enum.auto()


@frozen(kw_only=True)
class Attribute:
    """An attribute: the field that holds it, its XML name and its type."""

    field: str
    name: str
    type: Type
    default: object
    required: bool = False
    reference: Reference | None = None
    words: Words | None = None


@frozen(kw_only=True)
class Slot:
    """One name that a child may come under: what the table says about the child, and its class."""

    child: Child
    cls: type[bpmn.BaseElement] | None
    reference: Reference | None = None


@frozen(kw_only=True)
class Shape:
    """All that is known about the elements of one class.

    ``attributes`` by XML name, ``slots`` by Clark name, ``children`` in the schema's order.  ``required`` maps the
    fields that must be given to their XML names; ``needed`` are those that the model cannot be without.
    ``ranks`` gives, for a field that is filled from several places of the schema, the place of each name.
    ``named_by`` is the field that keeps the element's own name, ``identified`` says whether it needs an id to be run.
    """

    cls: type[bpmn.BaseElement]
    attributes: Mapping[str, Attribute]
    slots: Mapping[str, Slot]
    children: tuple[Child, ...]
    required: Mapping[str, str]
    needed: frozenset[str]
    ranks: Mapping[str, Mapping[str, int]]
    named_by: str | None
    identified: bool


@frozen(kw_only=True)
class Schema:
    """The shapes of all classes, and every local name of the vocabulary."""

    shapes: Mapping[type[bpmn.BaseElement], Shape]
    names: frozenset[str]


@functools.cache
def bpmn_schema() -> Schema:
    """The schema of BPMN 2.0: a constant, made when somebody first reads or writes and not at import."""
    shapes = {cls: _shape(cls) for cls in CLASSES}
    names = {name for shape in shapes.values() for name in shape.slots}
    return Schema(shapes=MappingProxyType(shapes), names=frozenset(name.rpartition("}")[2] for name in names))


def _shape(cls: type[bpmn.BaseElement]) -> Shape:
    # The schema extends a type by putting new children after the inherited ones, as the classes are derived.
    children = tuple(child for base in reversed(cls.__mro__) for child in CHILDREN.get(base, ()))
    attributes = tuple(_attributes(cls, children))
    fields = [child.field for child in children]
    xml_names = {child.field: next(iter(child.names)).rpartition("}")[2] for child in children}
    xml_names |= {attribute.field: attribute.name for attribute in attributes}
    needed = frozenset(f.name for f in attrs.fields(cls) if f.default is attrs.NOTHING and f.name in xml_names)
    required = needed.union(*(REQUIRED.get(base, frozenset()) for base in cls.__mro__))
    return Shape(
        cls=cls,
        attributes=MappingProxyType({attribute.name: attribute for attribute in attributes}),
        slots=MappingProxyType(
            {
                name: Slot(child=child, cls=child_cls, reference=_child_reference(cls, child))
                for child in children
                for name, child_cls in child.names.items()
            }
        ),
        children=children,
        required=MappingProxyType({name: xml_names[name] for name in sorted(required)}),
        needed=needed,
        ranks={
            name: {tag: rank for rank, child in enumerate(children) for tag in child.names if child.field == name}
            for name in fields
            if fields.count(name) > 1
        },
        named_by="role" if issubclass(cls, bpmn.ResourceRole) else None,
        identified=issubclass(cls, bpmn.FlowNode | bpmn.Process) and cls is not bpmn.ImplicitThrowEvent,
    )


def _child_reference(cls: type[bpmn.BaseElement], child: Child) -> Reference | None:
    return reference_of(cls, child.field) if child.kind is Kind.REFERENCE else None


SIMPLE_TYPES: Mapping[str, Type] = MappingProxyType(
    {
        "str": Type.STRING,
        "str | None": Type.STRING,
        "bool": Type.BOOLEAN,
        "bool | None": Type.BOOLEAN,
        "int": Type.INTEGER,
        "int | None": Type.INTEGER,
    }
)
"""The annotations that make a field an attribute; they are strings, since the model's modules postpone them."""


def _attributes(cls: type[bpmn.BaseElement], children: tuple[Child, ...]) -> list[Attribute]:
    elsewhere = {child.field for child in children}.union(
        *(NOT_ATTRIBUTES.get(base, frozenset()) for base in cls.__mro__),
        *({target for target, _ in child.folded.values()} for child in children),
    )
    return [_attribute(cls, f) for f in attrs.fields(cls) if str(f.type) in SIMPLE_TYPES and f.name not in elsewhere]


def _attribute(cls: type[bpmn.BaseElement], f: attrs.Attribute[object]) -> Attribute:
    reference = reference_of(cls, f.name)
    words = next((WORDS[base, f.name] for base in cls.__mro__ if (base, f.name) in WORDS), None)
    kind = SIMPLE_TYPES[str(f.type)]
    if f.name == "id":
        kind = Type.ID
    elif reference is not None:
        kind = Type.REFERENCE
    elif words is not None:
        kind = Type.WORD
    return Attribute(
        field=f.name,
        name=xml_name(f.name),
        type=kind,
        default=f.default,
        required=f.default is attrs.NOTHING or any(f.name in REQUIRED.get(base, ()) for base in cls.__mro__),
        reference=reference,
        words=words,
    )


def xml_name(field_name: str) -> str:
    """The XML name of a field: ``is_for_compensation`` is written ``isForCompensation``."""
    first, *rest = field_name.split("_")
    return first + "".join(word.capitalize() for word in rest)
