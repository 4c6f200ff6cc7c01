"""Writing: definitions as a document, children in the order of the standard's schema, references without prefixes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import define, field
from lxml import etree

from trioflow.errors import ModelError
from trioflow.model import BaseElement, Definitions, Expression, RawElement, ResourceRole
from trioflow.xml.diagnostics import local_name
from trioflow.xml.names import XSI_NAMESPACE, Prefixes
from trioflow.xml.raw import Element, append_raw
from trioflow.xml.schema import Attribute, Schema, Shape, Type, bpmn_schema
from trioflow.xml.vocabulary import Child, Kind, clark

__all__ = ["write"]


def write(definitions: Definitions) -> bytes:
    """The document of ``definitions``: UTF-8, indented, the same bytes for the same definitions.

    Reading it gives equal definitions.  Text that XML cannot hold, and an element where the schema has no place for
    it, raise `ModelError`.
    """
    prefixes = Prefixes.of(definitions.namespaces)
    root = _Writer(bpmn_schema(), prefixes).document(definitions)
    if prefixes.new:
        # A namespace that the definitions do not declare came up on the way; now the root can declare it.
        root = _Writer(bpmn_schema(), prefixes).document(definitions)
    body = etree.tostring(root, encoding="UTF-8", xml_declaration=False, pretty_print=True)
    return b'<?xml version="1.0" encoding="UTF-8"?>\n' + body


@define(eq=False)
class _Writer:
    """Writes one document."""

    schema: Schema
    prefixes: Prefixes
    kinds: dict[Kind, Callable[[Element, Child, Any], None]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.kinds = {
            Kind.ELEMENT: self._child,
            Kind.EXPRESSION: self._expression,
            Kind.FORMAL_EXPRESSION: self._formal,
            Kind.NAMED_EXPRESSION: self._named_expression,
            Kind.WRAPPED_EXPRESSION: self._wrapped_expression,
            Kind.REFERENCE: self._reference,
            Kind.TEXT: self._text,
            Kind.DOCUMENTATION: self._text,
            Kind.RAW: self._raw,
            Kind.OUT_OF_SCOPE: self._raw,
            Kind.DIAGRAM: self._raw,
        }

    def document(self, definitions: Definitions) -> Element:
        """The root element with everything in it."""
        # Prefixes that come up below are not declared here: `write` begins again then, and they are.
        self.prefixes.new = False
        try:
            root: Element = etree.Element(clark(definitions.tag), nsmap=self.prefixes.nsmap())
        except ValueError as error:
            raise ModelError(f"cannot declare the namespaces of {definitions.id!r}: {error}; check them") from error
        self._fill(root, definitions)
        return root

    def _fill(self, node: Element, element: BaseElement) -> None:
        shape = self.schema.shapes[type(element)]
        try:
            self._attributes(node, element, shape)
            for child in shape.children:
                self._children(node, element, child)
        except ValueError as error:
            raise ModelError(
                f"cannot write <{element.tag}> {element.id!r} as XML: {error}; "
                "remove control characters from its texts, and check the names of its extensions"
            ) from error

    def _attributes(self, node: Element, element: BaseElement, shape: Shape) -> None:
        for attribute in shape.attributes.values():
            value = getattr(element, attribute.field)
            if (
                value is None
                or (value == attribute.default and not attribute.required)
                or value == "" == attribute.default
            ):
                continue
            node.set(attribute.name, self._attribute_text(value, attribute))
        for name, text in element.extensions.attributes:
            if not name.startswith("{") or name.startswith(clark("")):
                raise ModelError(
                    f"cannot write the extension attribute {name!r} of <{element.tag}> {element.id!r}: "
                    "give it a namespace of its own, as {namespace}name"
                )
            self.prefixes.declare(name)
            node.set(name, text)

    def _attribute_text(self, value: Any, attribute: Attribute) -> str:
        if attribute.type is Type.BOOLEAN:
            return "true" if value else "false"
        return self.prefixes.qname(value) if attribute.type is Type.REFERENCE else str(value)

    def _children(self, node: Element, element: BaseElement, child: Child) -> None:
        if child.kind is Kind.EXTENSIONS:
            self._extensions(node, element)
        elif child.kind is Kind.FOLDED:
            self._folded(node, element, child)
        else:
            put = self.kinds[child.kind]
            for value in _values(element, child):
                put(node, child, value)

    # -------------------------------------------------------------- kinds of children

    def _child(self, parent: Element, child: Child, value: BaseElement) -> None:
        fixed = next(iter(child.names)) if len(child.names) == 1 else clark(value.tag)
        name = clark(value.role) if isinstance(value, ResourceRole) else fixed
        if child.names.get(name) is not type(value):
            raise ModelError(
                f"cannot write {type(value).__name__} {value.id!r} into <{local_name(str(parent.tag))}>: "
                f"its {child.field} takes {', '.join(sorted({c.__name__ for c in child.names.values() if c}))}"
            )
        self._fill(etree.SubElement(parent, name), value)

    def _expression(self, parent: Element, child: Child, value: Expression) -> None:
        node = self._plain_expression(parent, next(iter(child.names)), value)
        if value.formal:
            node.set(f"{{{XSI_NAMESPACE}}}type", self.prefixes.qname(clark("tFormalExpression")))

    def _formal(self, parent: Element, child: Child, value: Expression) -> None:
        self._plain_expression(parent, next(iter(child.names)), value)

    def _named_expression(self, parent: Element, _child: Child, value: Expression) -> None:
        self._plain_expression(parent, clark("formalExpression" if value.formal else "expression"), value)

    def _wrapped_expression(self, parent: Element, child: Child, value: Expression) -> None:
        self._named_expression(etree.SubElement(parent, next(iter(child.names))), child, value)

    def _plain_expression(self, parent: Element, name: str, value: Expression) -> Element:
        node: Element = etree.SubElement(parent, name)
        node.text = value.text
        self._fill(node, value)
        return node

    def _reference(self, parent: Element, child: Child, value: str) -> None:
        if value:
            etree.SubElement(parent, next(iter(child.names))).text = self.prefixes.qname(value)

    def _text(self, parent: Element, child: Child, value: str) -> None:
        etree.SubElement(parent, next(iter(child.names))).text = value

    def _raw(self, parent: Element, child: Child, value: RawElement) -> None:
        # Several places of the schema can fill one field: each writes what belongs there.
        if value.tag in child.names:
            append_raw(parent, value, self.prefixes)

    def _extensions(self, parent: Element, element: BaseElement) -> None:
        if not element.extensions.elements:
            return
        node = etree.SubElement(parent, clark("extensionElements"))
        for raw in element.extensions.elements:
            append_raw(node, raw, self.prefixes)

    def _folded(self, parent: Element, element: BaseElement, child: Child) -> None:
        given = {
            name: str(value)
            for name, (field_name, _) in child.folded.items()
            if (value := getattr(element, field_name)) is not None
        }
        if given:
            etree.SubElement(parent, next(iter(child.names)), given)


def _values(element: BaseElement, child: Child) -> Iterator[Any]:
    value = getattr(element, child.field)
    if child.many:
        yield from value
    elif value is not None:
        yield value
