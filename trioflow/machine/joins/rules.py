"""What each kind of join has in common, and how the rule of a node is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import frozen

from trioflow.errors import EngineBug
from trioflow.machine.program import FlowProgram, NodeProgram, Program
from trioflow.machine.state import Join, Scope, Track

if TYPE_CHECKING:
    from trioflow.machine.turn import Turn

__all__ = ["JoinRule", "Look", "arrived", "listed", "missing", "rule_of"]

_NAMED = 10
"""How many flows a message names at most."""


@frozen
class Look:
    """One look at a join; ``can_serve`` says of a node whether a token there can still go on."""

    program: Program
    scope: Scope
    node: NodeProgram
    join: Join
    can_serve: Callable[[str], bool]


class JoinRule:
    """What a kind of join waits for; it has no state, that is all in the ``Join``."""

    __slots__ = ()
    weighs_arrivals = False
    """Whether the first token on a flow can change what holds the join back."""
    reads: tuple[str, ...] = ()
    """The names of data that decide over the join: when one is written, it is asked again."""

    def wants(self, node: NodeProgram, join: Join) -> Iterable[str]:
        """What somebody must be able to bring, each under a key of its own (a flow id, where it is a flow)."""
        raise NotImplementedError

    def find(self, look: Look, want: str) -> str | None:
        """The node of tokens that can bring it."""
        raise NotImplementedError

    def keeps(self, look: Look, want: str, holder: str) -> bool:
        """Whether the holder of a want is still one, after a first token came on some flow."""
        return True

    def is_served(self, node: NodeProgram, join: Join) -> bool:
        """Whether the join can still fire, as far as its holders say."""
        raise NotImplementedError

    def is_ready(self, join: Join) -> bool:
        """Whether it fires now that all tokens are at rest."""
        return False

    def fire(self, turn: Turn, scope: Scope, node: NodeProgram) -> None:
        """It is ready."""
        raise EngineBug(f"the join {node.id!r} in scope {scope.id} fires with an arrival only: {turn}")

    def look_again(self, turn: Turn, scope: Scope, node: NodeProgram) -> None:
        """An operator retries the incident of the join: what is decided at an arrival is decided anew."""

    def force(self, turn: Turn, scope: Scope, node: NodeProgram, flows: list[FlowProgram]) -> Track | None:
        """An operator lets it fire with what is there, along these flows (none: it chooses).

        Returns the survivor where it is to begin an activity.
        """
        raise NotImplementedError

    def why_stuck(self, program: Program, node: NodeProgram, join: Join) -> str:
        """The sentence that tells an operator why it can never fire."""
        raise NotImplementedError


def rule_of(node: NodeProgram) -> JoinRule:
    """How tokens are joined at a node: a gateway's rule, or a queue before an activity."""
    return node.behaviour.join_rule


def missing(join: Join, node: NodeProgram) -> Iterator[str]:
    """The incoming flows that hold no token, and gave none in this round, in document order."""
    return (flow.id for flow in node.incoming if flow.id not in join.queues and flow.id not in join.taken)


def arrived(join: Join, node: NodeProgram) -> str:
    """The flows that hold tokens, with how many, as a message lists them."""
    flows = [flow.id for flow in node.incoming if flow.id in join.queues]
    flows += [flow for flow in join.queues if not flow]
    return listed([f"{flow or 'no flow'} ({len(join.queues[flow])})" for flow in flows])


def listed(names: list[str]) -> str:
    """The names in a row, ten at most."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
