"""Ids and references of one document: who is called what, and whether every reference leads somewhere."""

from __future__ import annotations

import re

from attrs import Factory, define

from trioflow.model import Level
from trioflow.xml.diagnostics import Diagnostics
from trioflow.xml.facets import Reference
from trioflow.xml.names import expand
from trioflow.xml.tree import Node

__all__ = ["Identity"]

_NAME = re.compile(r"[^\W\d][\w.\-\u00b7]*")
"""An NCName, but for a few rare characters that Python does not count as letters."""


@define(eq=False)
class Identity:
    """The ids seen so far, and the references to look up once all are seen."""

    report: Diagnostics
    target: str
    default_import: str
    """The default namespace where it is an imported one: names without prefix lead there."""
    ids: dict[str, Node] = Factory(dict)
    pending: list[tuple[str, Node, str, Level]] = Factory(list)

    @classmethod
    def of(cls, report: Diagnostics, *, target: str, imported: frozenset[str], default: str) -> Identity:
        """The identity of a document with that target namespace, imports and default namespace."""
        return cls(report, target, default if default != target and default in imported else "")

    def register(self, text: str, node: Node) -> str | None:
        """The id of an element; None where it is empty."""
        identity = text.strip()
        # Most ids are identifiers of Python as well, which is quicker to see.
        if not identity.isidentifier() and not _NAME.fullmatch(identity):
            self.report.bad_id(node, text)
        first = self.ids.setdefault(identity, node)
        if identity and first is not node:
            self.report.duplicate_id(node, first)
        return identity or None

    def register_all(self, node: Node) -> None:
        """Register the ids of carried elements, which can be referred to."""
        for element in node.iter():
            if text := element.get("id"):
                self.register(text, element)

    def refer(
        self, text: str, node: Node, name: str, reference: Reference | None, *, element: Node | None = None
    ) -> str | None:
        """A reference, without its prefix: an id, or a Clark name; None where it is empty.

        ``node`` has the reference, as its attribute ``name`` or as its child ``element`` of that name.
        """
        value = text.strip()
        if not value:
            self.report.empty_reference(node, name)
            return None
        if reference is None:
            return value
        if ":" in value:
            value = expand(value, (node if element is None else element).nsmap, self.target)
        elif self.default_import and not reference.by_id:
            value = f"{{{self.default_import}}}{value}"
        if reference.level is not None and value[0] != "{":
            self.pending.append((value, node if element is None else element, name, reference.level))
        return value

    def check(self) -> None:
        """Report the references that lead nowhere; in a process that is not to be executed none is an error."""
        ids = self.ids
        for value, node, name, level in self.pending:
            if value in ids:
                continue
            owner = node.getparent() if node.tag.endswith("}" + name) else node
            assert owner is not None  # the root element is no reference
            only_drawn = level is Level.ERROR and _is_only_drawn(owner)
            self.report.unresolved(owner, name, value, Level.VIOLATION if only_drawn else level)


def _is_only_drawn(node: Node | None) -> bool:
    while node is not None and not node.tag.endswith("}process"):
        node = node.getparent()
    return node is not None and (node.get("isExecutable") or "").strip() in {"false", "0"}
