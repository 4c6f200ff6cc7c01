"""What ``apply`` answers: facts, effects, and the deliveries that it consumed or declined.

Entities that changed are not listed here: the state's tables remember what was touched.
"""

from __future__ import annotations

from attrs import define, field

from trioflow.facts import RawFact, Status

__all__ = ["Effect", "Ended", "Run", "Stop", "Transition"]


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
class Transition:
    """The outcome of one event.

    ``consumed``/``declined``: delivery rows that this transition used up, or gave back to be matched again.
    ``refusal``: why a caller's act was not done; empty: it was done, or there was nothing to refuse.
    ``pending``: the budget ran out; the agenda is not empty, and ``advance`` must go on before any other event.
    """

    facts: list[RawFact] = field(factory=list)
    effects: list[Effect] = field(factory=list)
    consumed: list[int] = field(factory=list)
    declined: list[int] = field(factory=list)
    refusal: str = ""
    pending: bool = False
