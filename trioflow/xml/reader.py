"""Reading: one walk over the XML tree, led by the schema, that collects every finding on its way.

The walk never fails.  What cannot be read leaves a finding and an empty value, so that the rest of the document is
still looked at, by the reader and by the checks after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import define, field, frozen

from trioflow.errors import ModelError
from trioflow.model import (
    BPMN_NAMESPACE,
    Definitions,
    Expression,
    Extensions,
    Finding,
    FlowNode,
    Level,
    Position,
    Process,
    RawElement,
)
from trioflow.xml.diagnostics import Diagnostics, local_name
from trioflow.xml.dialects import dialect_of
from trioflow.xml.identity import Identity
from trioflow.xml.names import XSI_NAMESPACE
from trioflow.xml.raw import RawReader, content, markup
from trioflow.xml.safety import Limits, parse
from trioflow.xml.tree import Node
from trioflow.xml.schema import Attribute, Schema, Shape, Slot, Type, bpmn_schema
from trioflow.xml.vocabulary import ABSTRACT, OUT_OF_SCOPE_IN_FLOW, Kind, clark

__all__ = ["Document", "read"]

_XSI_TYPE = f"{{{XSI_NAMESPACE}}}type"
_BPMN = f"{{{BPMN_NAMESPACE}}}"
_DOCUMENTATION_ATTRIBUTES = frozenset({"id", "textFormat"})


@frozen(kw_only=True)
class Document:
    """What was read: the definitions, everything there is to say about them, and the dialect they are written in.

    ``definitions`` is None where no BPMN was found.  With findings that are errors it holds what could be read,
    for the checks; it is not to be executed.
    """

    definitions: Definitions | None
    findings: tuple[Finding, ...]
    dialect: str = "standard"


def read(source: bytes | str | Path, *, name: str = "", limits: Limits = Limits()) -> Document:  # noqa: B008 - frozen
    """Read a BPMN 2.0 document: its bytes, its text, or the path of its file.

    Content never raises: whatever is wrong with it is a finding, with its line and what to do.  ``name`` stands in
    the positions; a path's own name is the default.  A file that cannot be read raises `ModelError`.
    """
    if isinstance(source, Path):
        name = name or str(source)
        return _read_bytes(_file(source, limits), name=name, limits=limits)
    if isinstance(source, bytes):
        return _read_bytes(source, name=name, limits=limits)
    try:
        data = source.removeprefix("\ufeff").encode()
    except UnicodeEncodeError as error:
        finding = Finding(
            level=Level.ERROR,
            rule="xml-encoding",
            message=f"The text holds half a surrogate pair at index {error.start}, which no encoding can express.",
            remedy="Decode the file with its real encoding, or give its bytes.",
            position=Position(source.count("\n", 0, error.start) + 1, name),
        )
        return Document(definitions=None, findings=(finding,))
    # Text is decoded already: what its declaration says about an encoding was true of the bytes it came from.
    return _read_bytes(data, name=name, limits=limits, encoding="utf-8")


def _file(path: Path, limits: Limits) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(limits.max_bytes + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(f"cannot read the BPMN file {str(path)!r}: {reason}; check the path and its access") from error


def _read_bytes(data: bytes, *, name: str, limits: Limits, encoding: str | None = None) -> Document:
    root = parse(data, limits=limits, source=name, encoding=encoding)
    if isinstance(root, Finding):
        return Document(definitions=None, findings=(root,))
    diagnostics = Diagnostics(name)
    if root.tag != clark(Definitions.tag):
        diagnostics.not_bpmn(root)
        return Document(definitions=None, findings=diagnostics.sorted())
    definitions = _Reader.of(root, bpmn_schema(), diagnostics).document(root)
    return Document(definitions=definitions, findings=diagnostics.sorted(), dialect=dialect_of(definitions))


@define(eq=False)
class _Reader:
    """Reads one document."""

    schema: Schema
    report: Diagnostics
    raw: RawReader
    identity: Identity
    types: dict[Type, Callable[[str, Attribute, Node], Any]] = field(init=False)
    kinds: dict[Kind, Callable[[Node, Slot, Node], Any]] = field(init=False)

    @classmethod
    def of(cls, root: Node, schema: Schema, report: Diagnostics) -> _Reader:
        target = root.get("targetNamespace") or ""
        imported = frozenset(node.get("namespace") or "" for node in root if node.tag == clark("import"))
        return cls(
            schema,
            report,
            RawReader(report.source, target),
            Identity.of(report, target=target, imported=imported, default=root.nsmap.get(None) or ""),
        )

    def __attrs_post_init__(self) -> None:
        self.types = {
            Type.STRING: lambda text, _attribute, _node: text,
            Type.BOOLEAN: self._boolean,
            Type.INTEGER: self._integer,
            Type.WORD: self._word,
            Type.ID: lambda text, _attribute, node: self.identity.register(text, node),
            Type.REFERENCE: lambda text, attribute, node: self.identity.refer(
                text, node, attribute.name, attribute.reference
            ),
        }
        self.kinds = {
            Kind.ELEMENT: self._child,
            Kind.EXPRESSION: self._expression,
            Kind.FORMAL_EXPRESSION: self._formal,
            Kind.NAMED_EXPRESSION: self._named_expression,
            Kind.WRAPPED_EXPRESSION: self._wrapped_expression,
            Kind.REFERENCE: self._reference,
            Kind.TEXT: lambda node, _slot, _parent: self._text(node),
            Kind.RAW: self._raw,
            Kind.OUT_OF_SCOPE: self._out_of_scope,
            Kind.DOCUMENTATION: self._documentation,
        }

    def document(self, root: Node) -> Definitions:
        """The definitions, with every reference looked up."""
        self.raw.learn(root.nsmap)
        definitions: Definitions = self.element(root, self.schema.shapes[Definitions])
        self.identity.check()
        return attrs.evolve(definitions, namespaces=tuple(self.raw.namespaces.items()))

    # -------------------------------------------------------------- elements

    def element(self, node: Node, shape: Shape, **preset: Any) -> Any:
        """The model's object for one element and everything in it."""
        values: dict[str, Any] = {"position": Position(node.sourceline, self.report.source), **preset}
        foreign = self._attributes(node, shape, values)
        extensions: list[RawElement] = []
        if len(node):
            self._children(node, shape, values, extensions)
        if "text" not in preset:
            self._stray_text(node, node.text)
        if foreign or extensions:
            values["extensions"] = Extensions(attributes=tuple(foreign), elements=tuple(extensions))
        if shape.named_by:
            values[shape.named_by] = local_name(node.tag)
        self._complete(node, shape, values)
        return shape.cls(**values)

    def _attributes(self, node: Node, shape: Shape, values: dict[str, Any]) -> list[tuple[str, str]]:
        foreign: list[tuple[str, str]] = []
        known = shape.attributes
        for name, text in node.items():
            attribute = known.get(name)
            if attribute is not None:
                value = text if attribute.type is Type.STRING else self.types[attribute.type](text, attribute, node)
                if value is not None:
                    values[attribute.field] = value
            elif name[0] == "{" and not name.startswith(_BPMN):
                if name != _XSI_TYPE:
                    foreign.append((name, text))
            else:
                self.report.unknown_attribute(node, name, known)
        return foreign

    def _children(self, node: Node, shape: Shape, values: dict[str, Any], extensions: list[RawElement]) -> None:
        slots = shape.slots
        for child in node:
            slot = slots.get(child.tag) or self._substitute(child, slots)
            tail = child.tail
            if tail is not None and "text" not in values:
                self._stray_text(node, tail)
            if slot is None:
                self._stranger(child, node, shape, extensions)
                continue
            kind = slot.child.kind
            if kind is Kind.EXTENSIONS:
                extensions.extend(self._extensions(child))
            elif kind is Kind.FOLDED:
                self._folded(child, slot, values)
            else:
                self._keep(self.kinds[kind](child, slot, node), child, slot, node, values)

    def _keep(self, value: Any, child: Node, slot: Slot, node: Node, values: dict[str, Any]) -> None:
        if value is None:
            return
        field_name = slot.child.field
        if slot.child.many:
            values.setdefault(field_name, []).append(value)
        elif field_name in values:
            self.report.duplicate_element(child, node)
        else:
            values[field_name] = value

    def _complete(self, node: Node, shape: Shape, values: dict[str, Any]) -> None:
        for field_name, value in values.items():
            if value.__class__ is list:
                values[field_name] = tuple(value)
        for field_name in shape.sorted_fields.intersection(values):
            order = [name for child in shape.children if child.field == field_name for name in child.names]
            ranks = {name: next(i for i, c in enumerate(shape.children) if name in c.names) for name in order}
            values[field_name] = tuple(sorted(values[field_name], key=lambda raw: ranks[raw.tag]))
        for field_name, name in shape.required.items():
            if field_name not in values:
                needed = field_name in shape.needed
                self.report.missing(node, name, needed=needed)
                if needed:
                    values[field_name] = self._nothing(shape, field_name)
        if "id" not in values and issubclass(shape.cls, FlowNode | Process) and local_name(node.tag) != "event":
            self.report.missing_id(node)

    def _nothing(self, shape: Shape, field_name: str) -> object:
        """What stands in for something needed that is missing, so that the rest can be looked at."""
        attribute_fields = {attribute.field for attribute in shape.attributes.values()}
        child = next((child for child in shape.children if child.field == field_name), None)
        is_text = field_name in attribute_fields or (child is not None and child.kind is Kind.REFERENCE)
        return "" if is_text else Expression(text="")

    def _substitute(self, child: Node, slots: Mapping[str, Slot]) -> Slot | None:
        """The slot of an element that stands under an abstract name and says by ``xsi:type`` what it is."""
        if local_name(child.tag) not in ABSTRACT:
            return None
        written = (child.get(_XSI_TYPE) or "").rpartition(":")[2]
        return slots.get(clark(written[1:2].lower() + written[2:]))

    def _stranger(self, child: Node, node: Node, shape: Shape, extensions: list[RawElement]) -> None:
        tag = child.tag
        name = local_name(tag)
        if tag.startswith("{") and not tag.startswith(_BPMN):
            self.report.misplaced_extension(child, node)
            extensions.append(self.raw.read(child))
        elif name in OUT_OF_SCOPE_IN_FLOW and clark("sequenceFlow") in shape.slots:
            self.report.choreography_in_flow(child, node)
            self.identity.register_all(child)
        else:
            self.report.unknown_element(child, node, map(local_name, shape.slots), self.schema.names)

    def _stray_text(self, node: Node, text: str | None) -> None:
        if text and not text.isspace():
            self.report.unexpected_text(node, text)

    # -------------------------------------------------------------- attribute types

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
        return self.element(node, self.schema.shapes[slot.cls])

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
        expression: Expression = self.element(node, self.schema.shapes[Expression], text=text, formal=formal)
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

    def _extensions(self, node: Node) -> list[RawElement]:
        for name, _ in node.items():
            self.report.unknown_attribute(node, name, ())
        for text in (node.text, *(child.tail for child in node)):
            self._stray_text(node, text)
        return [self.raw.read(child) for child in node]

    def _folded(self, node: Node, slot: Slot, values: dict[str, Any]) -> None:
        folded = slot.child.folded
        for name, _ in node.items():
            if name not in folded and name != "id":
                self.report.unknown_attribute(node, name, folded)
        for child in node:
            self.report.not_kept(node, f"The {local_name(child.tag)}")
        for name, (field_name, default) in folded.items():
            text = node.get(name)
            number = default if text is None else self._number(text, name, node)
            if number is not None:
                values[field_name] = number

    # -------------------------------------------------------------- text

    def _documentation(self, node: Node, _slot: Slot, _parent: Node) -> str:
        for name, _ in node.items():
            if name not in _DOCUMENTATION_ATTRIBUTES:
                self.report.not_kept(node, f"The attribute {local_name(name)!r}")
        if (node.get("textFormat") or "text/plain") != "text/plain":
            self.report.not_kept(node, f"The textFormat {node.get('textFormat')!r}")
        return self._text(node)

    def _text(self, node: Node) -> str:
        if not len(node):
            return node.text or ""
        self.report.markup_in_text(node)
        return (node.text or "") + "".join(markup(child) for child in node)
