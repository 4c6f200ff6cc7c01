"""Definitions by chance: any element of the vocabulary, anywhere the schema lets it stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from hypothesis import strategies as st

from trioflow.model import BaseElement, Definitions, Expression, Extensions, RawElement, SequenceFlow
from trioflow.xml.schema import Attribute, Shape, Type, bpmn_schema
from trioflow.xml.vocabulary import Child, Kind

Draw = Callable[[st.SearchStrategy[Any]], Any]

TEXT = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cc", "Cs"], include_characters="\t\n\r", exclude_characters="\ufffe\uffff"
    ),
    max_size=8,
)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,5}", fullmatch=True)
NAMESPACES = st.sampled_from(["urn:a", "urn:b", "http://camunda.org/schema/1.0/bpmn"])
FOREIGN_NAMES = st.builds("{{{}}}{}".format, NAMESPACES, NAMES)
REFERENCES = st.one_of(NAMES, st.builds("{{urn:elsewhere}}{}".format, NAMES))
CONTENT = TEXT.filter(lambda text: not text.isspace())
"""Text that is content even between elements."""


def pairs(names: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    """Attributes, each name once."""
    return st.dictionaries(names, TEXT, max_size=2).map(lambda found: tuple(found.items()))


@st.composite
def raws(draw: Draw, *, tag: str | None = None, depth: int = 2, inside: bool = False) -> RawElement:
    """Carried XML, with mixed content; ``inside`` another it can be followed by text."""
    children = tuple(draw(st.lists(raws(depth=depth - 1, inside=True), max_size=2))) if depth else ()
    return RawElement(
        tag=tag or draw(st.one_of(FOREIGN_NAMES, NAMES)),
        attributes=draw(pairs(st.one_of(FOREIGN_NAMES, NAMES))),
        text=draw(CONTENT if children else TEXT),
        tail=draw(CONTENT) if inside else "",
        children=children,
    )


EXTENSIONS = st.builds(Extensions, attributes=pairs(FOREIGN_NAMES), elements=st.lists(raws(), max_size=2).map(tuple))


def attribute_values(attribute: Attribute) -> st.SearchStrategy[Any]:
    """Values of an attribute's type."""
    words = attribute.words.values if attribute.words else ()
    return {
        Type.STRING: TEXT,
        Type.BOOLEAN: st.booleans(),
        Type.INTEGER: st.integers(-(10**9), 10**9),
        Type.REFERENCE: REFERENCES,
        Type.WORD: st.sampled_from(words or ("-",)),
        Type.ID: NAMES,
    }[attribute.type]


def expressions(formal: st.SearchStrategy[bool]) -> st.SearchStrategy[Expression]:
    """Expressions of the kind that a place allows."""
    plain = elements(bpmn_schema().shapes[Expression], depth=0)
    return st.builds(lambda expression, kind: attrs.evolve(expression, formal=kind), plain, formal)


@st.composite
def child_values(draw: Draw, child: Child, depth: int) -> Any:
    """What one child of a field can be."""
    match child.kind:
        case Kind.ELEMENT:
            cls = draw(st.sampled_from([cls for cls in child.names.values() if cls is not None]))
            return draw(elements(bpmn_schema().shapes[cls], depth=depth - 1))
        case Kind.EXPRESSION | Kind.NAMED_EXPRESSION | Kind.WRAPPED_EXPRESSION:
            return draw(expressions(st.booleans()))
        case Kind.FORMAL_EXPRESSION:
            return draw(expressions(st.just(value=True)))
        case Kind.REFERENCE:
            return draw(REFERENCES)
        case Kind.EXTENSIONS:
            return draw(EXTENSIONS)
        case Kind.TEXT | Kind.DOCUMENTATION:
            return draw(TEXT)
        case _:
            return draw(raws(tag=draw(st.sampled_from(sorted(child.names)))))


@st.composite
def elements(draw: Draw, shape: Shape, *, depth: int = 2) -> BaseElement:
    """An element of one class: what it needs, and any of what it can have."""
    values: dict[str, Any] = {}
    for attribute in shape.attributes.values():
        if attribute.field in shape.needed or draw(st.booleans()):
            values[attribute.field] = draw(attribute_values(attribute))
    for child in shape.children:
        can = depth > 0 or child.kind is not Kind.ELEMENT
        if child.field in shape.needed or (can and draw(st.booleans())):
            values |= draw(children(child, values.get(child.field, ()), depth))
    if shape.named_by:
        values[shape.named_by] = draw(
            st.sampled_from(["resourceRole", "performer", "humanPerformer", "potentialOwner"])
        )
    if shape.cls is Expression:
        # Around documentation and extensions, white space alone is no text.
        values["text"] = draw(CONTENT if "documentation" in values or "extensions" in values else TEXT)
    return shape.cls(**values)


@st.composite
def children(draw: Draw, child: Child, before: tuple[Any, ...], depth: int) -> dict[str, Any]:
    """The fields that one child of the table fills; ``before`` is what another place has put there."""
    if child.kind is Kind.FOLDED:
        return {field_name: draw(st.integers(0, 9)) for field_name, _ in child.folded.values()}
    if child.many:
        return {child.field: (*before, *draw(st.lists(child_values(child, depth), min_size=1, max_size=2)))}
    return {child.field: draw(child_values(child, depth))}


# ------------------------------------------------------------------ from an element to a document


def places() -> Mapping[type[BaseElement], tuple[type[BaseElement], Child]]:
    """For each class a class that can hold it, and where; breadth first from the root, so that paths are short."""
    shapes = bpmn_schema().shapes
    found: dict[type[BaseElement], tuple[type[BaseElement], Child]] = {}
    reached: list[type[BaseElement]] = [Definitions]
    for holder in reached:
        for child in shapes[holder].children:
            for cls in child.names.values():
                if cls is not None and cls not in found:
                    found[cls] = (holder, child)
                    reached.append(cls)
    return found


PLACES = places()


def document_around(element: BaseElement) -> Definitions:
    """The smallest document that holds an element."""
    while not isinstance(element, Definitions):
        if isinstance(element, Expression):
            element = SequenceFlow(source_ref="A", target_ref="B", condition_expression=element)
        cls, child = PLACES[type(element)]
        shape = bpmn_schema().shapes[cls]
        names = {attribute.field for attribute in shape.attributes.values()}
        values: dict[str, Any] = {name: "A" if name in names else Expression(text="a") for name in shape.needed}
        values[child.field] = (element,) if child.many else element
        element = cls(**values)
    return element
