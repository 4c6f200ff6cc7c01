"""Carried XML: lxml elements to `RawElement` and back.

Text between elements is kept unless it is only white space.  Qualified names in the attributes that are known to
hold some are kept in Clark notation, so that they mean the same under other prefixes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import Factory, define
from lxml import etree

from trioflow.model import Position, RawElement
from trioflow.xml.names import Prefixes, expand
from trioflow.xml.tree import Node

__all__ = ["Element", "RawReader", "append_raw", "content", "markup"]

Element = etree._Element  # noqa: SLF001 - lxml has no public name for the class of its elements

_QNAMES = frozenset(
    {
        "{http://www.w3.org/2001/XMLSchema-instance}type",
        *("bpmnElement", "choreographyActivityShape", "labelStyle", "sourceElement", "targetElement"),
    }
)


@define(eq=False)
class RawReader:
    """Reads carried XML; ``namespaces`` collects the prefixes that it meets, the first of each name wins."""

    source: str
    target_namespace: str
    namespaces: dict[str, str] = Factory(dict)
    _seen: set[str] = Factory(set)

    def read(self, node: Node, *, lines: bool = True) -> RawElement:
        """The element and everything in it; ``lines`` says whether the elements keep their positions."""
        return self._read(node, None, self.source if lines else None)

    def _read(self, node: Node, tail: str | None, source: str | None) -> RawElement:
        # Diagrams are most of a file: this is the hottest function of the reader, and calls nothing per node.
        tag = node.tag
        if tag not in self._seen:
            self._seen.add(tag)
            self.learn(node.nsmap)
        text = node.text
        children: tuple[RawElement, ...] = ()
        if len(node):
            children = tuple([self._read(child, child.tail, source) for child in node])
            text = content(text)
        attributes = node.items()
        for name, value in attributes:
            if name in _QNAMES and ":" in value:
                attributes = [(each, self._value(each, value, node)) for each, value in attributes]
                break
        return RawElement(
            tag=tag,
            attributes=tuple(attributes),
            text=text or "",
            tail="" if tail is None or tail.isspace() else tail,
            children=children,
            position=None if source is None else Position(node.sourceline, source),
        )

    def learn(self, nsmap: Mapping[str | None, str]) -> None:
        """Keep the prefixes that stand for a namespace there."""
        for prefix, uri in nsmap.items():
            if prefix:
                self.namespaces.setdefault(prefix, uri)

    def _value(self, name: str, value: str, node: Node) -> str:
        return expand(value, node.nsmap, self.target_namespace) if name in _QNAMES else value


def content(text: str | None) -> str:
    """Text between elements, or nothing where it is only white space."""
    return "" if text is None or text.isspace() else text


def markup(node: Node) -> str:
    """The element as it was written, with the text that follows it."""
    return etree.tostring(cast("Element", node), encoding="unicode")


def append_raw(parent: Element, raw: RawElement, prefixes: Prefixes) -> None:
    """Write the element and everything in it as the last child of ``parent``."""
    prefixes.declare(raw.tag)
    node = etree.SubElement(parent, raw.tag)
    for name, value in raw.attributes:
        prefixes.declare(name)
        node.set(name, prefixes.qname(value) if name in _QNAMES else value)
    node.text = raw.text or None
    node.tail = raw.tail or None
    for child in raw.children:
        append_raw(node, child, prefixes)
