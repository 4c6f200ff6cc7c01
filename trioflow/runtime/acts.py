"""What comes to an instance's owner: an event to apply or a question to answer, and where the answer goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio
from attrs import define

from trioflow.machine.events import Event
from trioflow.machine.program import Program
from trioflow.machine.state import State

__all__ = ["Act", "Reply"]


class Reply:
    """An answer that one task waits for and another gives, once."""

    __slots__ = ("_done", "_error", "_value")

    def __init__(self) -> None:
        self._done = trio.Event()
        self._value: Any = None
        self._error: BaseException | None = None

    def give(self, value: Any = None) -> None:
        """Answer with a value; a second answer is ignored."""
        if not self._done.is_set():
            self._value = value
            self._done.set()

    def fail(self, error: BaseException) -> None:
        """Answer with an error; a second answer is ignored."""
        if not self._done.is_set():
            self._error = error
            self._done.set()

    async def wait(self) -> Any:
        """The value, or the error raised.  Cancelling gives up the answer, not the act."""
        await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._value


@define(eq=False)
class Act:
    """One thing for an owner: ``event`` is applied, or ``query`` is asked of the state at a quiescent point.

    ``reply`` is answered when all that the act led to (or the answer shows) is stored.
    """

    event: Event | None = None
    query: Callable[[Program, State], Any] | None = None
    reply: Reply | None = None
