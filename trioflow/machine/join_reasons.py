"""Why a token waits for other tokens: part of what ``machine.explain`` shows."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from trioflow.machine import joins
from trioflow.machine.program import NodeProgram, Program
from trioflow.machine.state import IncidentKind, Join, Scope

__all__ = ["AtGateway", "AtJoin", "ForTokens", "HeldBack", "JoinReason", "MissingFlow", "why_joining"]


@frozen
class MissingFlow:
    """A flow that a join misses; ``holder`` is the label of the node whose token can still come (None: nobody can)."""

    flow: str
    holder: str | None

    @property
    def text(self) -> str:
        """The flow, and from where its token can come."""
        origin = "no token can come" if self.holder is None else f"a token can come from {self.holder}"
        return f"{self.flow} ({origin})"


@frozen(kw_only=True)
class AtJoin:
    """It waits at a join for the tokens of other flows; ``incident``: the join is stuck."""

    arrived: tuple[str, ...]
    missing: tuple[MissingFlow, ...]
    incident: int | None

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        misses = ", ".join(flow.text for flow in self.missing)
        return f"waits at the join, which holds {', '.join(self.arrived)} and misses {misses}{_stuck(self.incident)}"


@frozen(kw_only=True)
class HeldBack:
    """It waits at an inclusive join, or for the reset of a complex gateway: ``by`` labels a node that holds it back.

    A token there can still come by one of the ``awaited`` flows; ``by`` is None where the reset itself has failed.
    """

    arrived: tuple[str, ...]
    awaited: tuple[str, ...]
    by: str | None
    resets: bool
    incident: int | None

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        place = "for the reset of the gateway" if self.resets else "at the join"
        if self.by is None:
            return f"waits {place}, which holds {', '.join(self.arrived)}{_failed(self.incident)}"
        origin = f"a token at {self.by} can still come by {', '.join(self.awaited)}"
        return f"waits {place}, which holds {', '.join(self.arrived)}, because {origin}{_stuck(self.incident)}"


@frozen(kw_only=True)
class AtGateway:
    """It waits at a complex gateway until that is activated; ``failed``: its condition could not be evaluated."""

    arrived: tuple[str, ...]
    condition: str
    incident: int | None
    failed: bool

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        end = _failed(self.incident) if self.failed else _stuck(self.incident)
        return f"waits at the gateway, which holds {', '.join(self.arrived)}, until {self.condition!r} is true{end}"


@frozen(kw_only=True)
class ForTokens:
    """It waits until enough tokens are there to start the activity."""

    there: int
    needed: int
    incident: int | None

    @property
    def text(self) -> str:
        """The reason as a person reads it."""
        return f"waits until {self.needed} tokens are there ({self.there} by now){_stuck(self.incident)}"


JoinReason = AtJoin | HeldBack | AtGateway | ForTokens


def _stuck(incident: int | None) -> str:
    return "" if incident is None else f"; the join is stuck (incident {incident})"


def _failed(incident: int | None) -> str:
    return "" if incident is None else f"; the gateway is at incident {incident}"


def why_joining(program: Program, scope: Scope, node: NodeProgram) -> JoinReason:
    """The reason of all that wait at this join."""
    join = scope.joins[node.id]
    incident = None if join.incident is None else join.incident.id
    arrived = tuple(flow.id for flow in node.incoming if flow.id in join.queues)
    rule = joins.rule_of(node)
    if rule is joins.QUANTITY:
        needed = node.activity.start_quantity if node.activity is not None else 1
        return ForTokens(there=join.count, needed=needed, incident=incident)
    if rule is joins.PARALLEL:
        return AtJoin(arrived=arrived, missing=tuple(_missing_flows(program, join, node)), incident=incident)
    if isinstance(rule, joins.Complex) and rule.activation is not None and join.gate is None:
        failed = join.incident is not None and join.incident.kind is not IncidentKind.STUCK
        return AtGateway(arrived=arrived, condition=rule.activation.text, incident=incident, failed=failed)
    blocker = join.holders.get(joins.BLOCKER)
    return HeldBack(
        arrived=arrived,
        awaited=() if blocker is None else tuple(joins.awaited(program, node, join)),
        by=None if blocker is None else program.nodes[blocker].label,
        resets=join.gate is not None,
        incident=incident,
    )


def _missing_flows(program: Program, join: Join, node: NodeProgram) -> Iterator[MissingFlow]:
    for flow in joins.missing(join, node):
        holder = join.holders.get(flow)
        yield MissingFlow(flow, None if holder is None else program.nodes[holder].label)
