"""Gateways (clause 10.6)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from trioflow.model.base import Expression
from trioflow.model.flow import FlowNode

__all__ = ["ComplexGateway", "EventBasedGateway", "ExclusiveGateway", "Gateway", "InclusiveGateway", "ParallelGateway"]


@frozen(kw_only=True)
class Gateway(FlowNode):
    """Splits and joins; its direction is checked against its flows, never trusted."""

    gateway_direction: str = "Unspecified"


@frozen(kw_only=True)
class ExclusiveGateway(Gateway):
    """One way out: the first whose condition is true."""

    tag: ClassVar[str] = "exclusiveGateway"

    default: str | None = None


@frozen(kw_only=True)
class InclusiveGateway(Gateway):
    """Every way out whose condition is true; joins what can still come."""

    tag: ClassVar[str] = "inclusiveGateway"

    default: str | None = None


@frozen(kw_only=True)
class ParallelGateway(Gateway):
    """All ways out; joins one token from each way in."""

    tag: ClassVar[str] = "parallelGateway"


@frozen(kw_only=True)
class ComplexGateway(Gateway):
    """Joins by an activation condition, in two phases."""

    tag: ClassVar[str] = "complexGateway"

    default: str | None = None
    activation_condition: Expression | None = None


@frozen(kw_only=True)
class EventBasedGateway(Gateway):
    """The first event chooses the way."""

    tag: ClassVar[str] = "eventBasedGateway"

    instantiate: bool = False
    event_gateway_type: str = "Exclusive"
