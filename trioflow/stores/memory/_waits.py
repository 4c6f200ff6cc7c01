"""The wait index in memory: timers by deadline, tasks by who may see them, incidents by state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from heapq import merge
from itertools import islice

from trioflow.checkpoint.records import IncidentRow, TaskRow, TimerRow
from trioflow.stores.memory._order import Lines, Ordered
from trioflow.stores.memory._rows import Due
from trioflow.stores.port import TaskFilter, TimerCursor

__all__ = ["WaitIndex", "due_of", "is_wanted"]

Place = tuple[str, int]
"""(instance id, wait id)."""


class WaitIndex:
    """Places in order; the rows themselves are the instances'."""

    __slots__ = ("_incidents", "_tasks", "_timers")

    def __init__(self) -> None:
        self._timers: Ordered[Due] = Ordered()
        self._tasks: Lines[Place] = Lines()
        self._incidents: Lines[Place] = Lines()

    # ---------------------------------------------------------------- writing

    def put_timer(self, timer: Due, old: Due | None) -> None:
        """Enter a timer in the place of another, or of none."""
        if old is not None:
            self._timers.discard(old)
        self._timers.add(timer)

    def add(self, row: TaskRow | IncidentRow) -> None:
        """Enter a row."""
        lines, keys = self._kept(row)
        for key in keys:
            lines.add(key, (row.instance_id, row.wait_id))

    def remove(self, row: Due | TaskRow | IncidentRow) -> None:
        """Take a row out."""
        if isinstance(row, tuple):
            self._timers.discard(row)
            return
        lines, keys = self._kept(row)
        for key in keys:
            lines.discard(key, (row.instance_id, row.wait_id))

    def _kept(self, row: TaskRow | IncidentRow) -> tuple[Lines[Place], Iterable[tuple[str, ...]]]:
        if isinstance(row, TaskRow):
            return self._tasks, (("all",), *_seen_by(row))
        return self._incidents, (("all",), (row.state,))

    # ---------------------------------------------------------------- reading

    def timers(self, after: TimerCursor | None, until: datetime, limit: int) -> tuple[TimerRow, ...]:
        """Timers behind the cursor, up to and with ``until``."""
        end = until.astimezone(UTC)
        found: list[TimerRow] = []
        for due, instance_id, wait_id in islice(self._timers.after(_place(after)), limit):
            if due > end:
                break
            found.append(TimerRow(instance_id, wait_id, due))
        return tuple(found)

    def next_timer(self, after: TimerCursor | None) -> TimerCursor | None:
        """The first timer behind the cursor."""
        for due, instance_id, wait_id in self._timers.after(_place(after)):
            return TimerCursor(due, instance_id, wait_id)
        return None

    def tasks(self, where: TaskFilter, after: Place) -> Iterator[Place]:
        """Places of tasks that may be meant, in order; the rest of the filter is the caller's."""
        if where.owner is not None:
            yield from self._tasks.after(("owner", where.owner), after)
        elif where.candidate is not None:
            keys = [("anyone",), ("user", where.candidate), *(("group", group) for group in sorted(where.groups))]
            last: Place | None = None
            for place in merge(*(self._tasks.after(key, after) for key in keys)):
                if place != last:
                    yield place
                last = place
        else:
            yield from self._tasks.after(("all",), after)

    def incidents(self, state: str | None, after: Place) -> Iterator[Place]:
        """Places of incidents, in order."""
        yield from self._incidents.after(("all",) if state is None else (state,), after)


def due_of(row: TimerRow) -> Due:
    """A timer as it is kept; in UTC, for comparing within one zone is several times faster."""
    due = row.due
    return (due if due.tzinfo is UTC else due.astimezone(UTC), row.instance_id, row.wait_id)


def _place(cursor: TimerCursor | None) -> Due | None:
    return None if cursor is None else (cursor.due.astimezone(UTC), cursor.instance_id, cursor.wait_id)


def _seen_by(task: TaskRow) -> tuple[tuple[str, ...], ...]:
    """The lines of those who may see a task: its owner, else who could claim it."""
    if task.owner is not None:
        return (("owner", task.owner),)
    if not task.candidate_users and not task.candidate_groups:
        return (("anyone",),)
    users = tuple(("user", user) for user in dict.fromkeys(task.candidate_users))
    return (*users, *(("group", group) for group in dict.fromkeys(task.candidate_groups)))


def is_wanted(task: TaskRow, where: TaskFilter) -> bool:
    """Whether a task passes the filter, its candidates included."""
    wanted = (
        (where.instance_id, task.instance_id),
        (where.process_key, task.process_key),
        (where.business_key, task.business_key),
        (where.node_id, task.node_id),
        (where.owner, task.owner),
    )
    if any(asked is not None and asked != has for asked, has in wanted):
        return False
    if task.owner is not None:
        return where.candidate is None and not where.unowned
    return where.candidate is None or _could_claim(task, where.candidate, where.groups)


def _could_claim(task: TaskRow, person: str, groups: frozenset[str]) -> bool:
    if not task.candidate_users and not task.candidate_groups:
        return True
    return person in task.candidate_users or not groups.isdisjoint(task.candidate_groups)
