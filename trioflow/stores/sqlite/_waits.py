"""The wait index in SQL: written for many items at once, read by cursor."""

# ruff: noqa: S608  # statements are put together from constants of this module; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, Final

from attrs import frozen

from trioflow.checkpoint.records import IncidentRow, IndexRow, Item, SubscriptionRow, TaskRow, TimerRow
from trioflow.stores.port import TaskFilter, TimerCursor
from trioflow.stores.sqlite._columns import listed, listing, micros, micros_or_none, moment, moment_or_none

__all__ = ["TIMER", "WaitWriter", "incidents", "next_timer", "task", "tasks", "timers"]

_TABLES: Final = {
    "timer": "trioflow_timers",
    "subscription": "trioflow_subscriptions",
    "task": "trioflow_tasks",
    "incident": "trioflow_incidents",
}

_TASK_COLUMNS: Final = (
    "instance_id, wait_id, node_id, name, process_key, created, owner, assignee, candidate_users, candidate_groups,"
    " priority, due, business_key, tenant"
)

_INCIDENT_COLUMNS: Final = (
    "instance_id, wait_id, incident_kind, node_id, process_key, message, first, last, state, attempts, causes"
)


def _upsert(table: str, columns: str) -> str:
    names = [name.strip() for name in columns.split(",")]
    marks = ", ".join("?" for _ in range(len(names) + 1))
    changes = ", ".join(f"{name} = excluded.{name}" for name in names[2:])
    return (
        f"INSERT INTO {table} (group_id, {columns}) VALUES ({marks})"
        f" ON CONFLICT (group_id, instance_id, wait_id) DO UPDATE SET {changes}"
    )


TIMER: Final = _upsert("trioflow_timers", "instance_id, wait_id, due")
"""Writes a timer: (group, instance id, wait id, due)."""

_UPSERTS: Final = {
    "timer": TIMER,
    "subscription": _upsert("trioflow_subscriptions", "instance_id, wait_id, tenant, name, key, business_key"),
    "task": _upsert("trioflow_tasks", _TASK_COLUMNS),
    "incident": _upsert("trioflow_incidents", _INCIDENT_COLUMNS),
}

_DELETES: Final = {
    kind: f"DELETE FROM {table} WHERE group_id = ? AND instance_id = ? AND wait_id = ?"
    for kind, table in _TABLES.items()
}

_DELETE_LINES: Final = "DELETE FROM trioflow_task_lines WHERE group_id = ? AND instance_id = ? AND wait_id = ?"

_LINE: Final = "INSERT INTO trioflow_task_lines (group_id, kind, who, instance_id, wait_id) VALUES (?, ?, ?, ?, ?)"

_DELETE_ALL: Final = (
    *(
        f"DELETE FROM {table} WHERE group_id = ? AND instance_id = ?"
        for table in (*(name for kind, name in _TABLES.items() if kind != "incident"), "trioflow_task_lines")
    ),
    f"DELETE FROM {_TABLES['incident']} WHERE group_id = ? AND instance_id = ? AND state = 'open'",
)
"""What goes with the end of an instance: all but its dead letters."""


# ------------------------------------------------------------------ writing


class WaitWriter:
    """Gathers the index rows of items of different instances, and writes them by table."""

    def __init__(self, db: sqlite3.Connection, group: int) -> None:
        self._db = db
        self._group = group
        self._statements: dict[str, list[tuple[Any, ...]]] = {}

    def write(self, items: Sequence[Item], terminal: AbstractSet[str]) -> None:
        """Deletions first, for an item may take a row away and put another in its place."""
        for item in items:
            if item.status in terminal:
                self._end(item)
            else:
                self._delete(item)
        for item in items:
            self._put(item, ended=item.status in terminal)
        for statement, rows in self._statements.items():
            self._db.executemany(statement, rows)

    def _add(self, statement: str, *row: object) -> None:
        self._statements.setdefault(statement, []).append((self._group, *row))

    def _end(self, item: Item) -> None:
        if item.expected > 0:  # a new one has none
            for statement in _DELETE_ALL:
                self._add(statement, item.instance_id)

    def _delete(self, item: Item) -> None:
        for kind, wait_id in item.deleted:
            self._add(_DELETES[kind], item.instance_id, wait_id)
            if kind == "task":
                self._add(_DELETE_LINES, item.instance_id, wait_id)
        if item.expected > 0:
            for row in item.upserts:
                if type(row) is TaskRow:
                    self._add(_DELETE_LINES, row.instance_id, row.wait_id)

    def _put(self, item: Item, *, ended: bool) -> None:
        for row in item.upserts:
            if ended and not is_dead_letter(row):
                continue
            self._add(_UPSERTS[row.kind], *_columns(row))
            if type(row) is TaskRow:
                for kind, who in _lines(row):
                    self._add(_LINE, kind, who, row.instance_id, row.wait_id)


def is_dead_letter(row: IndexRow) -> bool:
    """Whether the row outlives its instance: the record of a token that was given up."""
    return isinstance(row, IncidentRow) and row.state == "dropped"


def _columns(row: IndexRow) -> tuple[Any, ...]:
    match row:
        case TimerRow():
            return (row.instance_id, row.wait_id, micros(row.due))
        case SubscriptionRow():
            return (row.instance_id, row.wait_id, row.tenant, row.name, row.key, row.business_key)
        case TaskRow():
            return _task_columns(row)
        case IncidentRow():
            return _incident_columns(row)


def _task_columns(row: TaskRow) -> tuple[Any, ...]:
    return (
        *(row.instance_id, row.wait_id, row.node_id, row.name, row.process_key, micros(row.created)),
        *(row.owner, row.assignee, listing(row.candidate_users), listing(row.candidate_groups)),
        *(row.priority, micros_or_none(row.due), row.business_key, row.tenant),
    )


def _incident_columns(row: IncidentRow) -> tuple[Any, ...]:
    return (
        *(row.instance_id, row.wait_id, row.incident_kind, row.node_id, row.process_key, row.message),
        *(micros(row.first), micros(row.last), row.state, row.attempts, listing(row.causes)),
    )


def _lines(task: TaskRow) -> list[tuple[str, str]]:
    """Who may see a task: its owner, else who could claim it."""
    if task.owner is not None:
        return [("owner", task.owner)]
    if not task.candidate_users and not task.candidate_groups:
        return [("anyone", "")]
    users = [("user", user) for user in dict.fromkeys(task.candidate_users)]
    return [*users, *(("group", group) for group in dict.fromkeys(task.candidate_groups))]


# ------------------------------------------------------------------ timers


def timers(
    db: sqlite3.Connection, group: int, after: TimerCursor | None, until: datetime, limit: int
) -> tuple[TimerRow, ...]:
    """Timers behind the cursor, up to and with ``until``."""
    rows = db.execute(
        "SELECT instance_id, wait_id, due FROM trioflow_timers"
        " WHERE group_id = ? AND (due, instance_id, wait_id) > (?, ?, ?) AND due <= ?"
        " ORDER BY due, instance_id, wait_id LIMIT ?",
        (group, *_place(after), micros(until), limit),
    )
    return tuple(TimerRow(instance_id, wait_id, moment(due)) for instance_id, wait_id, due in rows)


def next_timer(db: sqlite3.Connection, group: int, after: TimerCursor | None) -> TimerCursor | None:
    """The first timer behind the cursor."""
    row = db.execute(
        "SELECT due, instance_id, wait_id FROM trioflow_timers"
        " WHERE group_id = ? AND (due, instance_id, wait_id) > (?, ?, ?) ORDER BY due, instance_id, wait_id LIMIT 1",
        (group, *_place(after)),
    ).fetchone()
    return None if row is None else TimerCursor(moment(row[0]), row[1], row[2])


def _place(cursor: TimerCursor | None) -> tuple[int, str, int]:
    if cursor is None:
        return (-(2**63), "", 0)
    return (micros(cursor.due), cursor.instance_id, cursor.wait_id)


# ------------------------------------------------------------------ tasks


def task(db: sqlite3.Connection, group: int, instance_id: str, wait_id: int) -> TaskRow | None:
    """One user task."""
    row = db.execute(
        f"SELECT {_TASK_COLUMNS} FROM trioflow_tasks WHERE group_id = ? AND instance_id = ? AND wait_id = ?",
        (group, instance_id, wait_id),
    ).fetchone()
    return None if row is None else _task(row)


def tasks(
    db: sqlite3.Connection, group: int, where: TaskFilter, after: tuple[str, int], limit: int
) -> tuple[TaskRow, ...]:
    """User tasks that pass the filter: a page of each line that may hold them, merged."""
    page = _Page(db, group, where, after, limit)
    if where.instance_id is not None or (where.owner is None and where.candidate is None):
        return page.of_all()
    found: dict[tuple[str, int], TaskRow] = {}
    for row in merge(*(page.of_line(*line) for line in _lines_for(where)), key=_task_place):
        if len(found) == limit:
            break
        found.setdefault(_task_place(row), row)
    return tuple(found.values())


@frozen
class _Page:
    """One page of the tasks that pass a filter, from one place of the index or another."""

    db: sqlite3.Connection
    group: int
    where: TaskFilter
    after: tuple[str, int]
    limit: int

    def of_all(self) -> tuple[TaskRow, ...]:
        """From the table; who could claim is looked at in each row, for an instance has few."""
        conditions, values = _conditions(self.where)
        person = self.where.candidate
        rows = self.db.execute(
            f"SELECT {_TASK_COLUMNS} FROM trioflow_tasks AS task"
            f" WHERE group_id = ? AND (instance_id, wait_id) > (?, ?){conditions}"
            " ORDER BY instance_id, wait_id LIMIT ?",
            (self.group, *self.after, *values, self.limit if person is None else -1),
        )
        found = (_task(row) for row in rows)
        if person is None:
            return tuple(found)
        return tuple(islice((row for row in found if _could_claim(row, person, self.where.groups)), self.limit))

    def of_line(self, kind: str, who: str) -> list[TaskRow]:
        """From one line of those who may see a task."""
        conditions, values = _conditions(self.where)
        rows = self.db.execute(
            f"SELECT {_TASK_COLUMNS} FROM trioflow_task_lines AS line"
            " JOIN trioflow_tasks AS task USING (group_id, instance_id, wait_id)"
            " WHERE line.group_id = ? AND line.kind = ? AND line.who = ? AND (line.instance_id, line.wait_id) > (?, ?)"
            f"{conditions} ORDER BY line.instance_id, line.wait_id LIMIT ?",
            (self.group, kind, who, *self.after, *values, self.limit),
        )
        return [_task(row) for row in rows]


def _lines_for(where: TaskFilter) -> list[tuple[str, str]]:
    if where.owner is not None:
        return [("owner", where.owner)]
    assert where.candidate is not None
    return [("anyone", ""), ("user", where.candidate), *(("group", group) for group in sorted(where.groups))]


def _conditions(where: TaskFilter) -> tuple[str, list[str]]:
    columns = {
        "instance_id": where.instance_id,
        "process_key": where.process_key,
        "business_key": where.business_key,
        "node_id": where.node_id,
        "owner": where.owner,
    }
    asked = {column: value for column, value in columns.items() if value is not None}
    text = "".join(f" AND task.{column} = ?" for column in asked)
    if where.unowned or where.candidate is not None:
        text += " AND task.owner IS NULL"
    return text, list(asked.values())


def _could_claim(row: TaskRow, person: str, groups: frozenset[str]) -> bool:
    if not row.candidate_users and not row.candidate_groups:
        return True
    return person in row.candidate_users or not groups.isdisjoint(row.candidate_groups)


def _task_place(row: TaskRow) -> tuple[str, int]:
    return (row.instance_id, row.wait_id)


def _task(row: Sequence[Any]) -> TaskRow:
    instance_id, wait_id, node_id, name, process_key, created, owner, assignee, users, groups, *rest = row
    priority, due, business_key, tenant = rest
    return TaskRow(
        instance_id=instance_id,
        wait_id=wait_id,
        node_id=node_id,
        name=name,
        process_key=process_key,
        created=moment(created),
        owner=owner,
        assignee=assignee,
        candidate_users=listed(users),
        candidate_groups=listed(groups),
        priority=priority,
        due=moment_or_none(due),
        business_key=business_key,
        tenant=tenant,
    )


# ------------------------------------------------------------------ incidents


def incidents(
    db: sqlite3.Connection,
    group: int,
    *,
    instance_id: str | None,
    state: str | None,
    after: tuple[str, int],
    limit: int,
) -> tuple[IncidentRow, ...]:
    """Incidents of that state, of all or of one instance."""
    conditions = ""
    values: list[str] = []
    for column, value in (("instance_id", instance_id), ("state", state)):
        if value is not None:
            conditions += f" AND {column} = ?"
            values.append(value)
    rows = db.execute(
        f"SELECT {_INCIDENT_COLUMNS} FROM trioflow_incidents"
        f" WHERE group_id = ? AND (instance_id, wait_id) > (?, ?){conditions} ORDER BY instance_id, wait_id LIMIT ?",
        (group, *after, *values, limit),
    )
    return tuple(_incident(row) for row in rows)


def _incident(row: Sequence[Any]) -> IncidentRow:
    instance_id, wait_id, kind, node_id, process_key, message, first, last, state, attempts, causes = row
    return IncidentRow(
        instance_id=instance_id,
        wait_id=wait_id,
        incident_kind=kind,
        node_id=node_id,
        process_key=process_key,
        message=message,
        first=moment(first),
        last=moment(last),
        state=state,
        attempts=attempts,
        causes=listed(causes),
    )
