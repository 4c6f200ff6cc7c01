"""Reading: one walk over the XML tree, led by the schema, that collects every finding on its way.

The walk never fails.  What cannot be read leaves a finding and an empty value, so that the rest of the document is
still looked at, by the reader and by the checks after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import Factory, define, frozen

from trioflow.model import (
    BPMN_NAMESPACE,
    BaseElement,
    Definitions,
    Expression,
    Extensions,
    Position,
    RawElement,
)
from trioflow.xml.diagnostics import Diagnostics, local_name
from trioflow.xml.identity import Identity
from trioflow.xml.names import XSI_NAMESPACE
from trioflow.xml.raw import RawReader, content, markup
from trioflow.xml.schema import Attribute, Schema, Shape, Slot, Type
from trioflow.xml.tree import Node
from trioflow.xml.vocabulary import ABSTRACT, OUT_OF_SCOPE_IN_FLOW, Kind, clark

__all__ = ["Reader"]

_XSI_TYPE = f"{{{XSI_NAMESPACE}}}type"
_BPMN = f"{{{BPMN_NAMESPACE}}}"
_DOCUMENTATION_ATTRIBUTES = frozenset({"id", "textFormat"})

AttributeReader = Callable[[str, Attribute, Node], Any]
ChildReader = Callable[[Node, Slot, Node], Any]


@frozen(kw_only=True)
class _Plan:
    """A shape with the methods that read its parts: by XML name for attributes (None for text as it stands)."""

    shape: Shape
    attributes: Mapping[str, tuple[Attribute, AttributeReader | None]]
    children: Mapping[str, tuple[Slot, ChildReader]]


@define(eq=False)
class Reader:
    """Reads one document: `Reader.of(...).document(root)`."""

    schema: Schema
    report: Diagnostics
    raw: RawReader
    identity: Identity
    plans: dict[type[BaseElement], _Plan] = Factory(dict)

    @classmethod
    def of(cls, root: Node, schema: Schema, report: Diagnostics) -> Reader:
        """A reader for the document with that root element."""
        target = root.get("targetNamespace") or ""
        imported = frozenset(node.get("namespace") or "" for node in root if node.tag == clark("import"))
        return cls(
            schema,
            report,
            RawReader(report.source, target),
            Identity.of(report, target=target, imported=imported, default=root.nsmap.get(None) or ""),
        )

    def document(self, root: Node) -> Definitions:
        """The definitions, with every reference looked up."""
        self.raw.learn(root.nsmap)
        definitions: Definitions = self.element(root, Definitions)
        self.identity.check()
        return attrs.evolve(definitions, namespaces=tuple(self.raw.namespaces.items()))

    def _plan(self, cls: type[BaseElement]) -> _Plan:
        shape = self.schema.shapes[cls]
        types: Mapping[Type, AttributeReader | None] = {
            Type.STRING: None,
            Type.BOOLEAN: self._boolean,
            Type.INTEGER: self._integer,
            Type.WORD: self._word,
            Type.ID: self._id,
            Type.REFERENCE: self._reference_attribute,
        }
        kinds: Mapping[Kind, ChildReader] = {
            Kind.ELEMENT: self._child,
            Kind.EXPRESSION: self._expression,
            Kind.FORMAL_EXPRESSION: self._formal,
            Kind.NAMED_EXPRESSION: self._named_expression,
            Kind.WRAPPED_EXPRESSION: self._wrapped_expression,
            Kind.REFERENCE: self._reference,
            Kind.TEXT: self._text,
            Kind.FOLDED: self._folded,
            Kind.RAW: self._raw,
            Kind.OUT_OF_SCOPE: self._out_of_scope,
            Kind.DIAGRAM: self._diagram,
            Kind.DOCUMENTATION: self._documentation,
            Kind.EXTENSIONS: self._extensions,
        }
        plan = self.plans[cls] = _Plan(
            shape=shape,
            attributes={name: (attribute, types[attribute.type]) for name, attribute in shape.attributes.items()},
            children={name: (slot, kinds[slot.child.kind]) for name, slot in shape.slots.items()},
        )
        return plan

    # -------------------------------------------------------------- elements

    def element(self, node: Node, cls: type[BaseElement], **preset: Any) -> Any:
        """The model's object for one element and everything in it."""
        plan = self.plans.get(cls) or self._plan(cls)
        values: dict[str, Any] = {"position": Position(node.sourceline, self.report.source), **preset}
        foreign = self._attributes(node, plan, values)
        if len(node):
            self._children(node, plan, values)
        text = node.text
        if text and not text.isspace() and "text" not in preset:
            self.report.unexpected_text(node, text)
        extensions = values.pop("extensions", ())
        if foreign or extensions:
            values["extensions"] = Extensions(attributes=tuple(foreign), elements=tuple(extensions))
        self._complete(node, plan.shape, values)
        return cls(**values)

    def _attributes(self, node: Node, plan: _Plan, values: dict[str, Any]) -> list[tuple[str, str]]:
        foreign: list[tuple[str, str]] = []
        known = plan.attributes
        for name, text in node.items():
            if name in known:
                attribute, read_text = known[name]
                value = text if read_text is None else read_text(text, attribute, node)
                if value is not None:
                    values[attribute.field] = value
            elif name[0] != "{" or name.startswith(_BPMN):
                self.report.unknown_attribute(node, name, known)
            elif name != _XSI_TYPE:
                foreign.append((name, text))
        return foreign

    def _children(self, node: Node, plan: _Plan, values: dict[str, Any]) -> None:
        known = plan.children
        elements_only = "text" not in values
        for child in node:
            tail = child.tail
            if tail and elements_only and not tail.isspace():
                self.report.unexpected_text(node, tail)
            tag = child.tag
            if tag not in known:
                tag = self._substitute(child)
            if tag not in known:
                self._stranger(child, node, plan, values)
                continue
            slot, read_child = known[tag]
            value = read_child(child, slot, node)
            if value is not None:
                self._keep(value, child, slot, node, values)

    def _keep(self, value: Any, child: Node, slot: Slot, node: Node, values: dict[str, Any]) -> None:
        field_name = slot.child.field
        if slot.child.folded:
            values.update(value)
        elif slot.child.kind is Kind.EXTENSIONS:
            values.setdefault(field_name, []).extend(value)
        elif slot.child.many:
            if field_name in values:
                values[field_name].append(value)
            else:
                values[field_name] = [value]
        elif field_name in values:
            self.report.duplicate_element(child, node)
        else:
            values[field_name] = value

    def _complete(self, node: Node, shape: Shape, values: dict[str, Any]) -> None:
        for field_name, value in values.items():
            if value.__class__ is list:
                values[field_name] = tuple(value)
        for field_name, ranks in shape.ranks.items():
            if field_name in values:
                values[field_name] = tuple(sorted(values[field_name], key=lambda raw: ranks[raw.tag]))
        for field_name, name in shape.required.items():
            if field_name not in values:
                needed = field_name in shape.needed
                self.report.missing(node, name, needed=needed)
                if needed:
                    values[field_name] = self._nothing(shape, field_name)
        if shape.named_by:
            values[shape.named_by] = local_name(node.tag)
        if shape.identified and "id" not in values:
            self.report.missing_id(node)

    def _nothing(self, shape: Shape, field_name: str) -> object:
        """What stands in for something needed that is missing, so that the rest can be looked at."""
        attribute_fields = {attribute.field for attribute in shape.attributes.values()}
        child = next((child for child in shape.children if child.field == field_name), None)
        is_text = field_name in attribute_fields or (child is not None and child.kind is Kind.REFERENCE)
        return "" if is_text else Expression(text="")

    def _substitute(self, child: Node) -> str:
        """The name of an element that stands under an abstract name and says by ``xsi:type`` what it is."""
        if local_name(child.tag) not in ABSTRACT:
            return child.tag
        written = (child.get(_XSI_TYPE) or "").rpartition(":")[2]
        return clark(written[1:2].lower() + written[2:])

    def _stranger(self, child: Node, node: Node, plan: _Plan, values: dict[str, Any]) -> None:
        tag = child.tag
        if tag.startswith("{") and not tag.startswith(_BPMN):
            self.report.misplaced_extension(child, node)
            values.setdefault("extensions", []).append(self.raw.read(child))
        elif local_name(tag) in OUT_OF_SCOPE_IN_FLOW and clark("sequenceFlow") in plan.children:
            self.report.choreography_in_flow(child, node)
            self.identity.register_all(child)
        else:
            self.report.unknown_element(child, node, map(local_name, plan.children), self.schema.names)

    # -------------------------------------------------------------- attribute types

    def _id(self, text: str, _attribute: Attribute, node: Node) -> str | None:
        return self.identity.register(text, node)

    def _reference_attribute(self, text: str, attribute: Attribute, node: Node) -> str | None:
        return self.identity.refer(text, node, attribute.name, attribute.reference)

    def _boolean(self, text: str, attribute: Attribute, node: Node) -> bool | None:
        match text.strip():
            case "true" | "1":
                return True
            case "false" | "0":
                return False
        self.report.bad_value(node, attribute.name, text, "true or false")
        return None

    def _integer(self, text: str, attribute: Attribute, node: Node) -> int | None:
        return self._number(text, attribute.name, node)

    def _number(self, text: str, name: str, node: Node) -> int | None:
        digits = text.strip()
        # Python reads more as a number than XML Schema does: 1_000, digits of other scripts.
        if digits.isascii() and digits.removeprefix("-").removeprefix("+").isdigit() and len(digits) < 20:
            return int(digits)
        self.report.bad_value(node, name, text, "a whole number")
        return None

    def _word(self, text: str, attribute: Attribute, node: Node) -> str:
        word = text.strip()
        if attribute.words is not None and word not in attribute.words.values:
            self.report.bad_word(node, attribute.name, word, attribute.words)
        return word

    # -------------------------------------------------------------- kinds of children

    def _child(self, node: Node, slot: Slot, _parent: Node) -> Any:
        assert slot.cls is not None
        return self.element(node, slot.cls)

    def _expression(self, node: Node, _slot: Slot, _parent: Node) -> Expression:
        written = node.get(_XSI_TYPE)
        kind = (written or "tExpression").rpartition(":")[2].strip()
        if kind not in {"tExpression", "tFormalExpression"}:
            self.report.bad_type(node, written or "")
        return self._expression_of(node, formal=kind != "tExpression")

    def _formal(self, node: Node, _slot: Slot, _parent: Node) -> Expression:
        return self._expression_of(node, formal=True)

    def _named_expression(self, node: Node, slot: Slot, parent: Node) -> Expression:
        if local_name(node.tag) == "formalExpression":
            return self._expression_of(node, formal=True)
        return self._expression(node, slot, parent)

    def _expression_of(self, node: Node, *, formal: bool) -> Expression:
        text = node.text or ""
        if len(node):
            text = content(text + "".join(child.tail or "" for child in node))
        expression: Expression = self.element(node, Expression, text=text, formal=formal)
        return expression

    def _wrapped_expression(self, node: Node, slot: Slot, _parent: Node) -> Expression | None:
        found: list[Expression] = []
        for child in node:
            if local_name(child.tag) in {"expression", "formalExpression"} and child.tag.startswith(_BPMN):
                found.append(self._named_expression(child, slot, node))
            elif child.tag in {clark("documentation"), clark("extensionElements")}:
                self.report.not_kept(node, f"The {local_name(child.tag)}")
            else:
                self.report.unknown_element(child, node, ("expression", "formalExpression"), self.schema.names)
        if not found:
            self.report.missing(node, "expression", needed=False)
        return found[0] if found else None

    def _reference(self, node: Node, slot: Slot, parent: Node) -> str | None:
        name = local_name(node.tag)
        if len(node):
            self.report.unknown_element(node[0], node, (), self.schema.names)
        return self.identity.refer(node.text or "", parent, name, slot.reference, element=node)

    def _raw(self, node: Node, _slot: Slot, _parent: Node) -> RawElement:
        if node.tag == clark("extension") and (node.get("mustUnderstand") or "").strip() in {"true", "1"}:
            self.report.must_be_understood(node)
        if node.tag.startswith(_BPMN):
            self.identity.register_all(node)
        return self.raw.read(node)

    def _out_of_scope(self, node: Node, slot: Slot, parent: Node) -> RawElement:
        self.report.out_of_scope(node)
        return self._raw(node, slot, parent)

    def _diagram(self, node: Node, _slot: Slot, _parent: Node) -> RawElement:
        return self.raw.read(node, lines=False)

    def _extensions(self, node: Node, _slot: Slot, _parent: Node) -> list[RawElement]:
        for name in dict(node.items()):
            self.report.unknown_attribute(node, name, ())
        for text in (node.text, *(child.tail for child in node)):
            if text and not text.isspace():
                self.report.unexpected_text(node, text)
        return [self.raw.read(child) for child in node]

    def _folded(self, node: Node, slot: Slot, _parent: Node) -> dict[str, int]:
        values: dict[str, int] = {}
        folded = slot.child.folded
        for name in dict(node.items()):
            if name not in folded and name != "id":
                self.report.unknown_attribute(node, name, folded)
        for child in node:
            self.report.not_kept(node, f"The {local_name(child.tag)}")
        for name, (field_name, default) in folded.items():
            text = node.get(name)
            number = default if text is None else self._number(text, name, node)
            if number is not None:
                values[field_name] = number
        return values

    # -------------------------------------------------------------- text

    def _documentation(self, node: Node, slot: Slot, parent: Node) -> str:
        for name in dict(node.items()):
            if name not in _DOCUMENTATION_ATTRIBUTES:
                self.report.not_kept(node, f"The attribute {local_name(name)!r}")
        if (node.get("textFormat") or "text/plain") != "text/plain":
            self.report.not_kept(node, f"The textFormat {node.get('textFormat')!r}")
        return self._text(node, slot, parent)

    def _text(self, node: Node, _slot: Slot, _parent: Node) -> str:
        if not len(node):
            return node.text or ""
        self.report.markup_in_text(node)
        return (node.text or "") + "".join(markup(child) for child in node)
