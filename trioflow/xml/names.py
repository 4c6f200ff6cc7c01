"""Qualified names: from prefixes to namespaces when reading, and back when writing.

A name of the document's own target namespace is a plain id; a name of another namespace is kept in Clark notation
(``{namespace}local``); a name whose prefix is not declared stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from attrs import Factory, define

from trioflow.model import BPMN_NAMESPACE, TRIOFLOW_NAMESPACE

__all__ = ["XSI_NAMESPACE", "Prefixes", "expand"]

XSI_NAMESPACE = "http://www.w3.org/2001/XMLSchema-instance"
XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"

USUAL = MappingProxyType(
    {
        BPMN_NAMESPACE: "bpmn",
        XSI_NAMESPACE: "xsi",
        TRIOFLOW_NAMESPACE: "trioflow",
        "http://www.w3.org/2001/XMLSchema": "xsd",
        "http://www.omg.org/spec/BPMN/20100524/DI": "bpmndi",
        "http://www.omg.org/spec/DD/20100524/DC": "dc",
        "http://www.omg.org/spec/DD/20100524/DI": "di",
    }
)
"""The prefixes of what a document does not name itself."""

_CLARK_NAME = re.compile(r"\{([^{}]+)\}([^{}:\s]+)")


def expand(value: str, nsmap: Mapping[str | None, str], target_namespace: str) -> str:
    """A qualified name without its prefix: an id of this document, or a Clark name."""
    prefix, colon, local = value.partition(":")
    uri = nsmap.get(prefix) if colon else None
    if uri is None:
        return value
    return local if uri == target_namespace else f"{{{uri}}}{local}"


@define(eq=False)
class Prefixes:
    """The prefixes that a document is written with: those it had, the usual ones, and new ones where needed."""

    by_uri: dict[str, str] = Factory(dict)
    new: bool = False
    """Whether a namespace came up after the root element was made."""

    @classmethod
    def of(cls, namespaces: Iterable[tuple[str, str]]) -> Prefixes:
        """The prefixes for a document that declared ``namespaces``; each prefix and each namespace once."""
        prefixes = cls()
        for prefix, uri in namespaces:
            if uri not in prefixes.by_uri and uri != XML_NAMESPACE and prefix not in prefixes.by_uri.values():
                prefixes.by_uri[uri] = prefix
        prefixes.add(BPMN_NAMESPACE)
        prefixes.add(XSI_NAMESPACE)
        return prefixes

    def add(self, uri: str) -> str:
        """The prefix of a namespace, which gets one if it has none."""
        if uri not in self.by_uri:
            usual = USUAL.get(uri)
            free = (name for n in range(1, len(self.by_uri) + 2) if (name := f"ns{n}") not in self.by_uri.values())
            self.by_uri[uri] = usual if usual and usual not in self.by_uri.values() else next(free)
            self.new = True
        return self.by_uri[uri]

    def declare(self, name: str) -> None:
        """Make sure that the namespace of a Clark name has a prefix."""
        if name[0] == "{":
            uri = name[1 : name.index("}")]
            if uri not in self.by_uri and uri != XML_NAMESPACE:
                self.add(uri)

    def qname(self, value: str) -> str:
        """A reference as it is written: a Clark name with its prefix, anything else as it is."""
        if value[:1] != "{" or not (match := _CLARK_NAME.fullmatch(value)):
            return value
        return f"{self.add(match[1])}:{match[2]}"

    def nsmap(self) -> dict[str | None, str]:
        """What the root element declares."""
        return {prefix: uri for uri, prefix in self.by_uri.items()}
