"""Flow elements: nodes and the sequence flows between them; lanes and artifacts (clauses 8.4.8, 8.4.13, 10.8)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from trioflow.model.base import BaseElement, Expression, RawElement
from trioflow.model.common import Auditing, Monitoring

__all__ = [
    "Artifact",
    "Association",
    "FlowElement",
    "FlowNode",
    "Group",
    "Lane",
    "LaneSet",
    "SequenceFlow",
    "TextAnnotation",
]


@frozen(kw_only=True)
class FlowElement(BaseElement):
    """A named member of a process or sub-process."""

    name: str | None = None
    auditing: Auditing | None = None
    monitoring: Monitoring | None = None
    category_value_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class FlowNode(FlowElement):
    """A node that tokens visit.

    ``incoming`` and ``outgoing`` are the lists that the document gives, for the checks and the round trip; the
    truth about connections is the sequence flows themselves (``Graph``).
    """

    incoming: tuple[str, ...] = ()
    outgoing: tuple[str, ...] = ()


@frozen(kw_only=True)
class SequenceFlow(FlowElement):
    """A connection of two nodes of one scope, with an optional condition."""

    tag: ClassVar[str] = "sequenceFlow"

    source_ref: str
    target_ref: str
    condition_expression: Expression | None = None
    is_immediate: bool | None = None


@frozen(kw_only=True)
class Lane(BaseElement):
    """A partition of a process; carried, not executed."""

    tag: ClassVar[str] = "lane"

    name: str | None = None
    partition_element_ref: str | None = None
    partition_element: RawElement | None = None
    flow_node_refs: tuple[str, ...] = ()
    child_lane_set: LaneSet | None = None


@frozen(kw_only=True)
class LaneSet(BaseElement):
    """A set of lanes; also the ``childLaneSet`` of a lane."""

    tag: ClassVar[str] = "laneSet"

    name: str | None = None
    lanes: tuple[Lane, ...] = ()


@frozen(kw_only=True)
class Artifact(BaseElement):
    """What explains a diagram; carried, not executed (an association also links compensation handlers)."""


@frozen(kw_only=True)
class Association(Artifact):
    """A dotted line; from a compensation boundary event it names the handler."""

    tag: ClassVar[str] = "association"

    source_ref: str
    target_ref: str
    association_direction: str = "None"


@frozen(kw_only=True)
class TextAnnotation(Artifact):
    """A note."""

    tag: ClassVar[str] = "textAnnotation"

    text: str | None = None
    text_format: str = "text/plain"


@frozen(kw_only=True)
class Group(Artifact):
    """A visual grouping."""

    tag: ClassVar[str] = "group"

    category_value_ref: str | None = None
