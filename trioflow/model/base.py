"""What every element of a model has: identity, documentation, extensions and where it was written."""

from __future__ import annotations

from typing import ClassVar

from attrs import field, frozen

__all__ = ["BPMN_NAMESPACE", "TRIOFLOW_NAMESPACE", "BaseElement", "Expression", "Extensions", "Position", "RawElement"]

BPMN_NAMESPACE = "http://www.omg.org/spec/BPMN/20100524/MODEL"
TRIOFLOW_NAMESPACE = "https://trioflow.dev/schema/bpmn"
"""The namespace of our own extension attributes (``trioflow:correlationKey`` and so on)."""


@frozen
class Position:
    """Where an element stands in its document; lines count from 1."""

    line: int
    source: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.source else f"line {self.line}"


@frozen(kw_only=True)
class RawElement:
    """XML that is carried, not interpreted: extension elements, diagrams, artefacts of other vocabularies.

    Names are in Clark notation (``{namespace}local``).  ``tail`` is the text that follows the
    element inside its parent, so that mixed content survives.
    """

    tag: str
    attributes: tuple[tuple[str, str], ...] = ()
    text: str = ""
    tail: str = ""
    children: tuple[RawElement, ...] = ()
    position: Position | None = field(default=None, eq=False)

    def get(self, name: str, default: str | None = None) -> str | None:
        """The value of the attribute ``name`` (Clark notation), or ``default``."""
        return next((value for key, value in self.attributes if key == name), default)


@frozen(kw_only=True)
class Extensions:
    """What vendors and users added to an element: foreign attributes (by Clark name) and ``extensionElements``."""

    attributes: tuple[tuple[str, str], ...] = ()
    elements: tuple[RawElement, ...] = ()

    def own(self, name: str) -> str | None:
        """The value of trioflow's own attribute ``name``, or None."""
        return self.get(f"{{{TRIOFLOW_NAMESPACE}}}{name}")

    def get(self, name: str) -> str | None:
        """The value of the attribute with this Clark name, or None."""
        return next((value for key, value in self.attributes if key == name), None)

    def __bool__(self) -> bool:
        return bool(self.attributes or self.elements)


NO_EXTENSIONS = Extensions()


@frozen(kw_only=True)
class BaseElement:
    """The root of the vocabulary (clause 8.3.1).  ``id`` is empty where the document gives none."""

    tag: ClassVar[str] = "baseElement"
    """The element's local name in the BPMN namespace."""

    id: str = ""
    documentation: tuple[str, ...] = ()
    extensions: Extensions = NO_EXTENSIONS
    position: Position | None = field(default=None, eq=False, repr=False)


@frozen(kw_only=True)
class Expression(BaseElement):
    """An expression (clause 8.4.7): its text, and its language where the document names one.

    ``formal`` says whether it was written as a ``tFormalExpression``; a plain one counts the same here.
    """

    tag: ClassVar[str] = "formalExpression"

    text: str
    language: str | None = None
    evaluates_to_type_ref: str | None = None
    formal: bool = True
