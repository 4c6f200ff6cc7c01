"""What comes to an instance's owner: an event to apply or a question to answer, and where the answer goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define

from trioflow.errors import EngineClosed, OwnershipLost
from trioflow.machine.events import Event
from trioflow.machine.program import Program
from trioflow.machine.state import State
from trioflow.runtime.parking import Berth

__all__ = ["Act", "Reply", "Told", "engine_closed", "ownership_lost"]


class Reply:
    """An answer that one task waits for and another gives, once."""

    __slots__ = ("_berth", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._berth = Berth()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None

    def give(self, value: Any = None) -> None:
        """Answer with a value; a second answer is ignored."""
        if not self._done:
            self._done = True
            self._value = value
            self._berth.wake()

    def fail(self, error: BaseException) -> None:
        """Answer with an error; a second answer is ignored."""
        if not self._done:
            self._done = True
            self._error = error
            self._berth.wake()

    async def wait(self) -> Any:
        """The value, or the error raised; for one task.  Cancelling gives up the answer, not the act."""
        await self._berth.sleep()
        if self._error is not None:
            raise self._error
        return self._value


@define(eq=False)
class Told:
    """An answer that is given when what it tells is stored."""

    reply: Reply
    value: object


@define(eq=False)
class Act:
    """One thing for an owner: ``event`` is applied, or ``query`` is asked of the state at a quiescent point.

    ``reply`` is answered when all that the act led to (or the answer shows) is stored.
    """

    event: Event | None = None
    query: Callable[[Program, State], Any] | None = None
    reply: Reply | None = None


def ownership_lost(instance_id: str) -> OwnershipLost:
    """What a caller gets whose act was not stored because the instance is another engine's now."""
    return OwnershipLost(
        f"this engine does not own instance {instance_id!r} any more: the act was not stored; repeat it with an id"
    )


def engine_closed(instance_id: str) -> EngineClosed:
    """What a caller gets whose act comes after the engine has closed."""
    return EngineClosed(
        f"the engine is closed; the act for instance {instance_id!r} was not done: repeat it with an id"
    )
