"""User tasks: query, claim, complete; every act is checked against who does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trioflow.checkpoint.records import TaskRow
from trioflow.errors import InstanceNotFound, InvalidRequest, TaskNotAvailable
from trioflow.machine.events import Event, TaskAssigned, TaskClaimed, TaskCompleted, TaskUnclaimed
from trioflow.runtime.acts import Act, Reply
from trioflow.stores.port import TaskFilter

if TYPE_CHECKING:
    from trioflow.runtime.shell import Shell

__all__ = ["Tasks"]


class Tasks:
    """The user tasks of an engine's group.  A task is named by its id (``task.id``)."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def query(
        self,
        *,
        owner: str | None = None,
        candidate: str | None = None,
        groups: frozenset[str] | set[str] = frozenset(),
        instance_id: str | None = None,
        process_key: str | None = None,
        business_key: str | None = None,
        node_id: str | None = None,
        unowned: bool = False,
        after: str = "",
        limit: int = 100,
    ) -> tuple[TaskRow, ...]:
        """Open user tasks in the order of their ids, those after the task id ``after``, at most ``limit``.

        ``candidate`` (with ``groups``): those that this person could claim.  ``owner``: those that this person holds.
        """
        where = TaskFilter(
            owner=owner,
            candidate=candidate,
            groups=frozenset(groups),
            instance_id=instance_id,
            process_key=process_key,
            business_key=business_key,
            node_id=node_id,
            unowned=unowned,
        )
        return await self._shell.store.tasks(where, after=_parsed(after) if after else ("", 0), limit=limit)

    async def get(self, task: str) -> TaskRow:
        """One open user task; ``TaskNotAvailable`` if there is none of that id."""
        row = await self._shell.store.task(*_parsed(task))
        if row is None:
            raise TaskNotAvailable(f"there is no open user task {task!r}: it is done, was cancelled, or never was")
        return row

    async def claim(self, task: str, actor: str, *, groups: frozenset[str] | set[str] = frozenset()) -> None:
        """``actor`` takes the task; ``TaskNotAvailable`` if somebody holds it or the actor is no candidate."""
        await self._act(task, TaskClaimed(wait=_parsed(task)[1], actor=actor, groups=frozenset(groups)))

    async def unclaim(self, task: str, actor: str | None = None) -> None:
        """The owner gives the task back (without ``actor``: an operator takes it from whoever holds it)."""
        await self._act(task, TaskUnclaimed(wait=_parsed(task)[1], actor=actor))

    async def assign(self, task: str, assignee: str) -> None:
        """An operator gives the task to somebody."""
        await self._act(task, TaskAssigned(wait=_parsed(task)[1], assignee=assignee))

    async def complete(
        self,
        task: str,
        outputs: Mapping[str, Any] | None = None,
        *,
        actor: str | None = None,
        groups: frozenset[str] | set[str] = frozenset(),
    ) -> None:
        """The task is done, with these outputs; returns when that is stored.

        With ``actor``: the actor must hold it, or be a candidate of a task that nobody holds.  Without: the program
        itself completes it.  ``UnstorableValue`` names an output that cannot be stored; the task stays open.
        """
        stored = self._shell.codec.canonical(dict(outputs or {}), "outputs")
        event = TaskCompleted(wait=_parsed(task)[1], outputs=stored, actor=actor, groups=frozenset(groups))
        await self._act(task, event)

    async def _act(self, task: str, event: Event) -> None:
        instance_id, _ = _parsed(task)
        try:
            await self._shell.residents.call(instance_id, Act(event, reply=Reply()))
        except InstanceNotFound as error:
            raise TaskNotAvailable(f"there is no open user task {task!r}: {error}") from error
        except InvalidRequest as error:
            if type(error) is not InvalidRequest:
                raise
            raise TaskNotAvailable(str(error)) from error


def _parsed(task: str) -> tuple[str, int]:
    instance_id, slash, number = task.rpartition("/")
    if not slash or not number.isdecimal():
        raise InvalidRequest(
            f"{task!r} is no task id: expected is an instance id, a slash and a number, such as o-17/5"
        )
    return instance_id, int(number)
