"""A definition compiled for the machine: nodes with their behaviour, flows with their conditions.

Made once per deployed version and shared by all its instances; nothing in it changes at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from attrs import define, field, frozen

from trioflow.model import FlowNode, Graph
from trioflow.values import Value, ValueCodec

if TYPE_CHECKING:
    from trioflow.machine.behaviours.base import Behaviour

__all__ = ["Evaluable", "FlowProgram", "NodeProgram", "Program", "ScopeProgram"]


class Evaluable(Protocol):
    """What the machine needs of a compiled expression."""

    @property
    def text(self) -> str:
        """The text as the model has it."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The root names that an evaluation may read."""
        ...

    def evaluate(self, names: Mapping[str, Value], now: datetime) -> Value:
        """The value; every failure is an ``ExpressionError``."""
        ...


@frozen(kw_only=True)
class FlowProgram:
    """A sequence flow: where from, where to, and on which condition."""

    id: str
    source: str
    target: str
    condition: Evaluable | None = None


@define(eq=False, kw_only=True)
class NodeProgram:
    """A flow node: its behaviour and its flows in document order.

    ``plain``: flows without a condition, the default excepted; ``conditional``: those with one.
    """

    id: str
    name: str
    element: FlowNode
    container: str
    behaviour: Behaviour
    outgoing: tuple[FlowProgram, ...] = ()
    incoming: tuple[FlowProgram, ...] = ()
    plain: tuple[FlowProgram, ...] = ()
    conditional: tuple[FlowProgram, ...] = ()
    default: FlowProgram | None = None
    jumps: tuple[str, ...] = ()
    """Of a link catch event: its throw events, from which a token comes here as if along a flow."""
    attached_to: str | None = None
    """Of a boundary event other than compensation: its host; a token there can come here, but need not."""

    @property
    def label(self) -> str:
        """The node as a person knows it: its name with its id, or the id alone."""
        return f"{self.name} ({self.id})" if self.name and self.name != self.id else self.id


@frozen(kw_only=True)
class ScopeProgram:
    """The process itself or a sub-process: where its tokens start, what it declares.

    ``starts``: its none start events, or without any start event its nodes without incoming flow.
    """

    id: str
    starts: tuple[str, ...]
    implicit: bool
    nodes: tuple[str, ...]
    declared: tuple[str, ...] = ()


@define(eq=False, kw_only=True)
class Program:
    """One version of one process, ready to run.  ``scopes`` is keyed by the id of the process or sub-process."""

    key: str
    graph: Graph
    digest: str
    digest_algorithm: int
    codec: ValueCodec
    nodes: dict[str, NodeProgram] = field(factory=dict)
    flows: dict[str, FlowProgram] = field(factory=dict)
    scopes: dict[str, ScopeProgram] = field(factory=dict)
    handler_names: frozenset[str] = frozenset()
    hop_limit: int = 1_000_000
