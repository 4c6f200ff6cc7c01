"""Instances in SQL: who owns which, and what is read of them."""

# ruff: noqa: S608  # statements are put together from constants of this module; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice
from typing import Any, Final

from attrs import evolve, frozen

from trioflow.checkpoint.records import InstanceHead
from trioflow.facts import Status
from trioflow.stores.port import InstanceFilter, Loaded, Owner
from trioflow.stores.sqlite._columns import micros, micros_or_none, moment, moment_or_none
from trioflow.stores.sqlite._commit import is_current
from trioflow.stores.sqlite._waits import TIMER

__all__ = ["claim", "counts", "head", "instances", "load", "mark_drift", "orphans", "pins", "release"]

_COLUMNS: Final = (
    "instance_id, root_id, parent_id, process_key, version, digest, digest_algorithm, document_schema, created, tenant,"
    " business_key, status, updated, reason, has_incidents, record_version, commit_id, owner, incarnation, drift,"
    " failures, failure, retry_at"
)

_LIVE: Final = "status NOT IN ('completed', 'terminated', 'failed')"

_ROOT: Final = "(SELECT root_id FROM trioflow_instances WHERE group_id = :group AND instance_id = :instance)"

_HOLDER: Final = f"""
SELECT owner, incarnation FROM trioflow_instances WHERE group_id = :group AND instance_id = {_ROOT}
"""

_CLAIM: Final = f"""
UPDATE trioflow_instances SET owner = :engine, incarnation = :incarnation
WHERE group_id = :group AND instance_id = {_ROOT}
"""

_HELD: Final = f"""
SELECT root.instance_id FROM trioflow_instances AS root
WHERE root.group_id = :group AND root.instance_id = {_ROOT} AND root.owner = :engine AND root.incarnation = :incarnation
"""

_GIVE_UP: Final = "UPDATE trioflow_instances SET owner = NULL, incarnation = 0 WHERE group_id = ? AND instance_id = ?"


@frozen
class _Condition:
    """The rest of a WHERE clause, and what it binds."""

    text: str
    values: Sequence[str]


# ------------------------------------------------------------------ reading


def head(db: sqlite3.Connection, group: int, instance_id: str) -> InstanceHead | None:
    """The head row alone."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM trioflow_instances WHERE group_id = ? AND instance_id = ?", (group, instance_id)
    ).fetchone()
    return None if row is None else _head(row)


def load(db: sqlite3.Connection, group: int, instance_id: str) -> Loaded | None:
    """Head and pieces, of one state of the database."""
    found = head(db, group, instance_id)
    if found is None:
        return None
    rows = db.execute(
        "SELECT piece FROM trioflow_pieces WHERE group_id = ? AND instance_id = ? ORDER BY slot", (group, instance_id)
    )
    return Loaded(head=found, pieces=tuple(piece for (piece,) in rows))


def instances(
    db: sqlite3.Connection, group: int, where: InstanceFilter, after: str, limit: int
) -> tuple[InstanceHead, ...]:
    """Heads in order of id.  Several statuses are several pages, merged: each is a walk along an index."""
    conditions = _conditions(where)
    pages = [_page(db, group, condition, after, limit) for condition in conditions]
    return tuple(islice(merge(*pages, key=lambda found: found.instance_id), limit))


def _page(db: sqlite3.Connection, group: int, condition: _Condition, after: str, limit: int) -> Iterator[InstanceHead]:
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM trioflow_instances WHERE group_id = ? AND instance_id > ?{condition.text}"
        " ORDER BY instance_id LIMIT ?",
        (group, after, *condition.values, limit),
    )
    return map(_head, rows.fetchall())


def _conditions(where: InstanceFilter) -> list[_Condition]:
    """One condition for each status that is asked for."""
    text = ""
    values: list[str] = []
    for column, value in (("process_key", where.process_key), ("business_key", where.business_key)):
        if value is not None:
            text += f" AND {column} = ?"
            values.append(value)
    if where.has_incidents is not None:
        text += f" AND has_incidents = {int(where.has_incidents)}"
    if where.not_resumed is not None:
        text += " AND (drift <> '' OR failures > 0)" if where.not_resumed else " AND drift = '' AND failures = 0"
    if where.status is None:
        return [_Condition(text, values)]
    return [_Condition(f"{text} AND status = ?", [*values, str(status)]) for status in sorted(where.status)]


def orphans(db: sqlite3.Connection, group: int, owner: Owner, after: str, limit: int) -> tuple[str, ...]:
    """Live roots that earlier incarnations left owned."""
    rows = db.execute(
        "SELECT instance_id FROM trioflow_instances"
        f" WHERE group_id = ? AND owner = ? AND instance_id > ? AND incarnation < ? AND {_LIVE}"
        " ORDER BY instance_id LIMIT ?",
        (group, owner.engine_id, after, owner.incarnation, limit),
    )
    return tuple(instance_id for (instance_id,) in rows)


def counts(db: sqlite3.Connection, group: int) -> dict[Status, int]:
    """How many of each status, as they were counted."""
    rows = db.execute("SELECT status, instances FROM trioflow_counts WHERE group_id = ?", (group,))
    return dict.fromkeys(Status, 0) | {Status(status): number for status, number in rows}


def pins(db: sqlite3.Connection, group: int) -> dict[tuple[str, int], int]:
    """How many live instances of each version."""
    rows = db.execute(
        "SELECT process_key, version, instances FROM trioflow_pins WHERE group_id = ? AND instances > 0", (group,)
    )
    return {(process_key, version): number for process_key, version, number in rows}


def _head(row: Sequence[Any]) -> InstanceHead:
    return InstanceHead(
        instance_id=row[0],
        root_id=row[1],
        parent_id=row[2],
        process_key=row[3],
        version=row[4],
        digest=row[5],
        digest_algorithm=row[6],
        document_schema=row[7],
        created=moment(row[8]),
        tenant=row[9],
        business_key=row[10],
        status=Status(row[11]),
        updated=moment(row[12]),
        reason=row[13],
        has_incidents=bool(row[14]),
        record_version=row[15],
        commit_id=row[16],
        owner=row[17],
        incarnation=row[18],
        drift=row[19],
        failures=row[20],
        failure=row[21],
        retry_at=moment_or_none(row[22]),
    )


# ------------------------------------------------------------------ ownership


def claim(db: sqlite3.Connection, group: int, instance_id: str, owner: Owner) -> Loaded | None:
    """Take the tree of a live instance, and load the instance."""
    found = head(db, group, instance_id)
    if found is None or found.status.is_terminal or not is_current(db, group, owner):
        return None
    names = _names(group, instance_id, owner)
    ((holder, incarnation),) = db.execute(_HOLDER, names).fetchall()
    if holder not in {None, owner.engine_id}:
        return None
    db.execute(_CLAIM, names)
    loaded = load(db, group, instance_id)
    assert loaded is not None
    return evolve(loaded, abandoned=holder is not None and incarnation != owner.incarnation)


def release(
    db: sqlite3.Connection, group: int, instance_id: str, owner: Owner, *, failure: str, retry_at: datetime | None
) -> None:
    """Give the tree up; a failure is counted at the instance, which is entered as due when to try again."""
    root_id = _held_root(db, group, instance_id, owner)
    if root_id is None:
        return
    if failure:
        db.execute(
            "UPDATE trioflow_instances SET failures = failures + 1, failure = ?, retry_at = ?"
            " WHERE group_id = ? AND instance_id = ?",
            (failure, micros_or_none(retry_at), group, instance_id),
        )
        if retry_at is not None:
            db.execute(TIMER, (group, instance_id, 0, micros(retry_at)))
    db.execute(_GIVE_UP, (group, root_id))


def mark_drift(db: sqlite3.Connection, group: int, instance_id: str, owner: Owner, reason: str) -> None:
    """Mark the instance and give its tree up; or take the mark away and keep it."""
    root_id = _held_root(db, group, instance_id, owner)
    if root_id is None:
        return
    db.execute(
        "UPDATE trioflow_instances SET drift = ? WHERE group_id = ? AND instance_id = ?", (reason, group, instance_id)
    )
    if reason:
        db.execute(_GIVE_UP, (group, root_id))


def _held_root(db: sqlite3.Connection, group: int, instance_id: str, owner: Owner) -> str | None:
    row = db.execute(_HELD, _names(group, instance_id, owner)).fetchone()
    return None if row is None else str(row[0])


def _names(group: int, instance_id: str, owner: Owner) -> dict[str, Any]:
    return {
        "group": group,
        "instance": instance_id,
        "engine": owner.engine_id,
        "incarnation": owner.incarnation,
    }
