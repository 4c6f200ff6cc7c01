"""What an analysis may cost: its steps are counted, and there is a limit."""

from __future__ import annotations

from attrs import define

__all__ = ["OutOfSteps", "Steps"]


class OutOfSteps(Exception):
    """The limit is reached: what has not been decided stays so.  It never leaves this package."""


@define(eq=False)
class Steps:
    """Counts steps, each of constant cost (an arc looked at, a node of a condition), up to a limit."""

    limit: int
    taken: int = 0

    def take(self, count: int = 1) -> None:
        """Count steps, or raise ``OutOfSteps``."""
        self.taken += count
        if self.taken > self.limit:
            raise OutOfSteps
