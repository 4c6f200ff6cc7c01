"""What ``apply`` answers: facts, effects, and the deliveries that it consumed or declined.

Entities that changed are not listed here: the state's tables remember what was touched.
"""

from __future__ import annotations

from attrs import define, field

from trioflow.facts import RawFact, Status
from trioflow.values import Value

__all__ = [
    "ChildCancelPost",
    "ChildEndPost",
    "ChildPost",
    "Effect",
    "Ended",
    "EscalationPost",
    "MessagePost",
    "Post",
    "Run",
    "SignalPost",
    "Stop",
    "Transition",
]


@define(eq=False)
class Run:
    """Run the step that the track stands at.  ``outside``: it acts outside, so what led to it must be stored first."""

    track: int
    step: int
    outside: bool


@define(eq=False)
class Stop:
    """Cancel what the track is running.  Effects that follow wait until it has really ended."""

    track: int


@define(eq=False)
class Ended:
    """The instance is over."""

    status: Status


Effect = Run | Stop | Ended


@define(eq=False)
class SignalPost:
    """A signal for all who wait for it in other instances; those of the thrower's own were served by the machine."""

    name: str
    payload: Value


@define(eq=False)
class MessagePost:
    """A message for one receiver; ``step`` tells a repetition of the same throw from another one."""

    name: str
    key: Value
    payload: Value
    step: int


@define(eq=False, kw_only=True)
class ChildPost:
    """A called instance is to start: its id, what it runs, with which variables, and which errors its callers catch."""

    child: str
    wait: int
    node: str
    process_key: str
    version: int | None
    tag: str | None
    variables: dict[str, Value]
    business_key: str | None
    catches: tuple[str, ...]
    catches_any: bool


@define(eq=False, kw_only=True)
class ChildEndPost:
    """A called instance has ended: what its caller is told."""

    status: Status
    outputs: dict[str, Value]
    code: str | None = None
    message: str = ""
    is_expected: bool = False


@define(eq=False)
class EscalationPost:
    """An escalation that nobody in this called instance catches, for its caller."""

    code: str | None
    values: dict[str, Value]


@define(eq=False)
class ChildCancelPost:
    """A called instance is to be cancelled, because its caller is."""

    child: str


Post = SignalPost | MessagePost | ChildPost | ChildEndPost | EscalationPost | ChildCancelPost
"""What leaves the instance as rows of the same commit."""


@define(eq=False)
class Transition:
    """The outcome of one event.

    ``posts``: what leaves the instance with the commit that holds this transition, in order.
    ``consumed``/``declined``: delivery rows that this transition used up, or gave back to be matched again.
    ``refusal``: why a caller's act was not done; empty: it was done, or there was nothing to refuse.
    ``pending``: the budget ran out; the agenda is not empty, and ``advance`` must go on before any other event.
    """

    facts: list[RawFact] = field(factory=list)
    effects: list[Effect] = field(factory=list)
    consumed: list[int] = field(factory=list)
    declined: list[int] = field(factory=list)
    posts: list[Post] = field(factory=list)
    refusal: str = ""
    pending: bool = False
