"""What the tests of the XML floor share: small documents, and findings as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from trioflow.model import BPMN_NAMESPACE, BaseElement, Definitions, Process
from trioflow.xml import Document, read, write

Kind = TypeVar("Kind", bound=BaseElement)

CAMUNDA = "http://camunda.org/schema/1.0/bpmn"


def document(body: str, *, attributes: str = "", prefix: str = "") -> str:
    """A document in the default namespace (or with ``prefix``) whose root holds ``body`` from line 3 on."""
    declared = f"xmlns:{prefix}" if prefix else "xmlns"
    name = f"{prefix}:definitions" if prefix else "definitions"
    return (
        '<?xml version="1.0"?>\n'
        f'<{name} {declared}="{BPMN_NAMESPACE}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xmlns:camunda="{CAMUNDA}" targetNamespace="urn:test" {attributes}>\n{body}\n</{name}>'
    )


def process(body: str) -> str:
    """A document with one process that holds ``body`` from line 4 on."""
    return document(f'<process id="P">\n{body}\n</process>')


def said(found: Document) -> list[str]:
    """The findings as a person sees them."""
    return [str(finding) for finding in found.findings]


def definitions(source: str | bytes) -> Definitions:
    """The definitions of a document with which nothing is wrong."""
    found = read(source)
    assert said(found) == []
    assert found.definitions is not None
    return found.definitions


def the_process(source: str | bytes) -> Process:
    """The only process of a document with which nothing is wrong."""
    (only,) = definitions(source).processes
    return only


def only(elements: Iterable[object], kind: type[Kind]) -> Kind:
    """The only element of a class among others."""
    (element,) = [element for element in elements if isinstance(element, kind)]
    return element


def round_trip(model: Definitions) -> Definitions:
    """The definitions that are read from what is written for ``model``; nothing is wrong with them."""
    return definitions(write(model))
