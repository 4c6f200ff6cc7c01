"""``instance.adhoc``: people and programs choose the activities of an ad-hoc sub-process (clause 10.3.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import frozen

from trioflow.errors import InvalidRequest
from trioflow.machine.behaviours.ad_hoc import AdHoc as Behaviour
from trioflow.machine.events import AdHocActivated, AdHocCompleted, Event
from trioflow.machine.program import Program
from trioflow.machine.state import AdHocWait, State

__all__ = ["AdHoc", "Choice"]


@frozen(kw_only=True)
class Choice:
    """An open ad-hoc sub-process.

    ``id`` is its number in the instance; ``enabled`` the ids of the activities that can be activated; ``inside`` how
    many tokens it holds.
    """

    id: int
    node_id: str
    enabled: tuple[str, ...]
    inside: int


class AdHoc:
    """What people and programs can do with the ad-hoc sub-processes of one instance that leave the choice to them."""

    def __init__(
        self,
        ask: Callable[[Callable[[Program, State], tuple[Choice, ...]]], Awaitable[tuple[Choice, ...]]],
        act: Callable[[Event], Awaitable[Any]],
    ) -> None:
        self._ask = ask
        self._act = act

    async def enabled(self) -> tuple[Choice, ...]:
        """The ad-hoc sub-processes that are open, oldest first, and what each enables."""
        return await self._ask(_choices)

    async def activate(self, activity: str, *, choice: int | None = None) -> None:
        """Start an enabled activity; returns when that is stored.

        ``choice`` names the sub-process (``Choice.id``) where several are open that enable it.  ``InvalidRequest`` says
        what can be activated, or that a sequential one is busy.
        """
        open_ones = await self.enabled()
        chosen = _one(open_ones, choice, [each for each in open_ones if activity in each.enabled], activity)
        await self._act(AdHocActivated(wait=chosen, activity=activity))

    async def complete(self, *, choice: int | None = None) -> None:
        """Say that it is done: what still runs in it is cancelled, or may end, as the model says."""
        open_ones = await self.enabled()
        await self._act(AdHocCompleted(wait=_one(open_ones, choice, list(open_ones), "")))


def _one(open_ones: tuple[Choice, ...], choice: int | None, fitting: list[Choice], activity: str) -> int:
    if choice is not None:
        return choice
    if len(fitting) == 1:
        return fitting[0].id
    known = "; ".join(f"{each.id} ({each.node_id}): {', '.join(each.enabled)}" for each in open_ones) or "none"
    what = f" that enables {activity!r}" if activity else ""
    number = "several open ad-hoc sub-processes" if fitting else "no open ad-hoc sub-process"
    raise InvalidRequest(f"there {'are' if fitting else 'is'} {number}{what}; open are: {known}")


def _choices(program: Program, state: State) -> tuple[Choice, ...]:
    found: list[Choice] = []
    for wait in state.waits.values():
        if not isinstance(wait, AdHocWait):
            continue
        track = state.tracks[wait.track]
        behaviour = program.nodes[track.node].behaviour
        assert isinstance(behaviour, Behaviour)
        scope = behaviour.scope_of(track)
        assert scope is not None
        found.append(Choice(id=wait.id, node_id=track.node, enabled=behaviour.enabled, inside=len(scope.tracks)))
    return tuple(found)
