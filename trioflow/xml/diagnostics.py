"""What the reader has to say about a document: every message that a person can get from it stands here."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from attrs import Factory, define

from trioflow.model import BPMN_NAMESPACE, Finding, Level, Position
from trioflow.model.checks.syntax import is_media_type
from trioflow.xml.facets import Words
from trioflow.xml.tree import Node

__all__ = ["Diagnostics", "local_name"]

_OTHER_KINDS = (
    ("/DMN/", "a DMN decision model", "Give decisions to a business rule task's handler; only BPMN is read here."),
    ("/CMMN/", "a CMMN case model", "Model the case as a BPMN process, for example with an ad-hoc sub-process."),
    ("wfmc.org", "an XPDL package", "Export it as BPMN 2.0 from the tool that made it."),
    ("jbpm", "a jPDL process", "Export it as BPMN 2.0 from the tool that made it."),
    ("bpel", "a BPEL process", "Model it as a BPMN 2.0 process."),
    ("w3.org/1999/xhtml", "a web page", "Download the file itself, not the page that shows it."),
    ("bpmn", "a draft or another version of BPMN", f"Export it as BPMN 2.0 (namespace {BPMN_NAMESPACE})."),
    ("BPMN", "another file of the BPMN family", "Give the document with the <definitions>, not a part of it."),
)


def local_name(tag: str) -> str:
    """The local part of a Clark name."""
    return tag.rpartition("}")[2]


def _tag(node: Node) -> str:
    return f"<{local_name(node.tag)}>"


def _shown(node: Node) -> str:
    identity = node.get("id")
    return f"{_tag(node)}" + (f" {identity!r}" if identity else "")


def _hint(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"Did you mean {near[0]!r}? " if near else ""


@define(eq=False)
class Diagnostics:
    """Collects the findings about one document.  ``source`` is its name in the positions."""

    source: str
    found: list[Finding] = Factory(list)

    def sorted(self) -> tuple[Finding, ...]:
        """All findings, by line."""
        return tuple(sorted(self.found, key=lambda finding: finding.position.line if finding.position else 0))

    def _add(self, level: Level, rule: str, node: Node, message: str, remedy: str) -> None:
        self.found.append(
            Finding(
                level=level,
                rule=rule,
                message=message,
                remedy=remedy,
                element_id=node.get("id") or "",
                position=Position(node.sourceline, self.source),
            )
        )

    # -------------------------------------------------------------- the document

    def not_bpmn(self, root: Node) -> None:
        """The root element is not BPMN's ``definitions``."""
        tag = root.tag
        uri = tag[1:].rpartition("}")[0]
        if uri == BPMN_NAMESPACE:
            message = f"The root element is <{local_name(tag)}>; a BPMN document starts with <definitions>."
            remedy = "Put it into a <definitions> element with a targetNamespace."
        elif not uri:
            message = f"The root element <{tag}> has no namespace, so this is not known to be BPMN 2.0."
            remedy = f'Declare the namespace of BPMN 2.0 on it: xmlns="{BPMN_NAMESPACE}".'
        else:
            kind, remedy = next(
                ((kind, remedy) for part, kind, remedy in _OTHER_KINDS if part in uri),
                ("another kind of file", "Give a BPMN 2.0 file."),
            )
            message = f"The root element is <{local_name(tag)}> of the namespace {uri}: this is {kind}."
        self._add(Level.ERROR, "not-bpmn", root, message, remedy)

    def must_be_understood(self, node: Node) -> None:
        """A BPMN ``extension`` whose author says that the model means something else without it."""
        self._add(
            Level.ERROR,
            "extension-not-understood",
            node,
            f"The document requires the extension {node.get('definition') or 'without a name'!r} to be understood "
            "(mustUnderstand), and trioflow does not know it.",
            "Set mustUnderstand to false if the model can be executed without it.",
        )

    # -------------------------------------------------------------- elements

    def unknown_element(self, node: Node, parent: Node, allowed: Iterable[str], vocabulary: frozenset[str]) -> None:
        """An element that has no place there."""
        name = local_name(node.tag)
        where = _shown(parent)
        if not node.tag.startswith("{"):
            self._add(
                Level.ERROR,
                "unknown-element",
                node,
                f"<{name}> in {where} has no namespace, so it is no element of BPMN.",
                "Write it with the prefix of the BPMN namespace, or put it into <extensionElements>.",
            )
        elif name in vocabulary:
            self._add(
                Level.ERROR,
                "misplaced-element",
                node,
                f"<{name}> cannot stand in {where}.",
                "Move it to where BPMN 2.0 allows it, or remove it.",
            )
        else:
            self._add(
                Level.ERROR,
                "unknown-element",
                node,
                f"<{name}> in {where} is no element of BPMN 2.0.",
                f"{_hint(name, allowed)}Content of your own belongs into <extensionElements>, "
                "in a namespace of its own.",
            )

    def choreography_in_flow(self, node: Node, parent: Node) -> None:
        """A choreography's flow element in a process."""
        self._add(
            Level.ERROR,
            "not-executable",
            node,
            f"{_tag(node)} in {_shown(parent)} belongs to choreographies, which have no execution in a process.",
            "Replace it by tasks and message events, or move it to a <choreography>.",
        )

    def out_of_scope(self, node: Node) -> None:
        """Vocabulary that is carried and not executed."""
        self._add(
            Level.WARNING,
            "not-executed",
            node,
            f"{_tag(node)} belongs to conversations and choreographies: it is kept, and not executed.",
            "Nothing needs to be done if only the processes shall run.",
        )

    def misplaced_extension(self, node: Node, parent: Node) -> None:
        """Another vocabulary's element outside of ``extensionElements``."""
        self._add(
            Level.VIOLATION,
            "misplaced-extension",
            node,
            f"{_tag(node)} of the namespace {node.tag[1:].rpartition('}')[0]} stands in {_shown(parent)} "
            "outside of <extensionElements>; it is kept as if it stood there.",
            "Put it into <extensionElements>.",
        )

    def duplicate_element(self, node: Node, parent: Node) -> None:
        """A second element where one is allowed."""
        self._add(
            Level.ERROR,
            "duplicate-element",
            node,
            f"{_shown(parent)} has more than one <{local_name(node.tag)}>; only the first was read.",
            "Keep one of them.",
        )

    def unexpected_text(self, node: Node, text: str) -> None:
        """Text where BPMN has elements only."""
        self._add(
            Level.VIOLATION,
            "unexpected-text",
            node,
            f"{_tag(node)} holds the text {text.strip()[:40]!r}, where BPMN allows elements only; it is left out.",
            "Remove it, or make it a <documentation>.",
        )

    def markup_in_text(self, node: Node) -> None:
        """Elements where text was expected."""
        self._add(
            Level.WARNING,
            "markup-in-text",
            node,
            f"{_tag(node)} holds XML elements; they are kept as text, as they were written.",
            "If markup was not meant, write < as &lt; or use a CDATA section.",
        )

    def not_kept(self, node: Node, what: str) -> None:
        """Something that the model has no place for."""
        self._text_format(node)
        self._add(
            Level.WARNING,
            "not-kept",
            node,
            f"{what} of <{local_name(node.tag)}> is not kept.",
            "Nothing needs to be done to execute the model; move it to the element around if it must survive writing.",
        )

    def _text_format(self, node: Node) -> None:
        """The format of a documentation (8.3.2), which is not kept, so that no check would ever see it."""
        text_format = node.get("textFormat")
        if text_format and not is_media_type(text_format):
            self._add(
                Level.VIOLATION,
                "not-a-media-type",
                node,
                f"{_tag(node)} has the textFormat {text_format!r}, which is no media type.",
                "Write one, such as text/plain or text/html.",
            )

    # -------------------------------------------------------------- attributes

    def unknown_attribute(self, node: Node, name: str, known: Iterable[str]) -> None:
        """An attribute that BPMN does not know."""
        plain = local_name(name)
        shown = f"{plain!r} with the prefix of BPMN" if name.startswith("{") else repr(plain)
        known = tuple(known)
        hint = "Write it without a prefix. " if plain != name and plain in known else _hint(plain, known)
        self._add(
            Level.ERROR,
            "unknown-attribute",
            node,
            f"{_tag(node)} has the attribute {shown}, which BPMN 2.0 does not give it (value {node.get(name)!r}).",
            f"{hint}Remove it, or put an attribute of your own into a namespace of its own.",
        )

    def missing(self, node: Node, name: str, *, needed: bool) -> None:
        """Something that the schema requires is not there."""
        self._add(
            Level.ERROR if needed else Level.VIOLATION,
            "missing-attribute",
            node,
            f"{_tag(node)} has no {name}, which BPMN 2.0 requires.",
            f"Add {name}.",
        )

    def missing_id(self, node: Node) -> None:
        """An element that nobody can refer to."""
        self._add(
            Level.ERROR,
            "missing-id",
            node,
            f"{_tag(node)} has no id, so that no flow, token or caller can refer to it.",
            "Give it an id that is unique in the document.",
        )

    def bad_value(self, node: Node, name: str, value: str, expected: str) -> None:
        """A value that is not of its attribute's type."""
        self._add(
            Level.ERROR,
            "bad-value",
            node,
            f"{_tag(node)} has {name}={value!r}, which is not {expected}.",
            f"Write {expected}, or leave {name} out for its default.",
        )

    def bad_word(self, node: Node, name: str, value: str, words: Words) -> None:
        """A value that is not in its attribute's list."""
        known = ", ".join(words.values)
        self._add(
            words.level,
            "bad-value",
            node,
            f"{_tag(node)} has {name}={value!r}, which is none of {known}.",
            f"{_hint(value, words.values)}Write one of {known}.",
        )

    def bad_type(self, node: Node, value: str) -> None:
        """An ``xsi:type`` that an expression cannot have."""
        self._add(
            Level.VIOLATION,
            "bad-value",
            node,
            f"{_tag(node)} has xsi:type={value!r}, which is no expression; it is read as a formal expression.",
            "Write xsi:type with the BPMN prefix and tFormalExpression.",
        )

    # -------------------------------------------------------------- identity

    def bad_id(self, node: Node, value: str) -> None:
        """An id that is no XML name."""
        self._add(
            Level.VIOLATION,
            "bad-id",
            node,
            f"{_tag(node)} has the id {value!r}, which is no name by the rules of XML.",
            "Begin it with a letter or _, and use only letters, digits, '.', '-' and '_'.",
        )

    def duplicate_id(self, node: Node, first: Node) -> None:
        """An id that was given before."""
        self._add(
            Level.ERROR,
            "duplicate-id",
            node,
            f"{_tag(node)} (line {node.sourceline}) has the id of the <{local_name(first.tag)}> "
            f"in line {first.sourceline}.",
            "Give one of them another id, and change the references that mean it.",
        )

    def empty_reference(self, node: Node, name: str) -> None:
        """A reference without content."""
        self._add(
            Level.VIOLATION,
            "empty-reference",
            node,
            f"{_tag(node)} has an empty {name}; it is read as if it were not there.",
            f"Remove {name}, or name an element.",
        )

    def unresolved(self, node: Node, name: str, value: str, level: Level) -> None:
        """A reference to nothing."""
        self._add(
            level,
            "unresolved-reference",
            node,
            f"{_tag(node)} refers by {name} to {value!r}, and the document has no element with that id.",
            "Correct the reference, or add the element.",
        )
