"""Groups, engines and deployed definitions in SQL."""

# ruff: noqa: S608  # statements are put together from constants of this module; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve

from trioflow.checkpoint.records import Definition
from trioflow.errors import StoreError
from trioflow.stores.port import Owner
from trioflow.stores.sqlite._columns import listed, listing, micros, moment

__all__ = ["definition", "definitions", "deploy", "enrol", "find_group"]

_COLUMNS: Final = "key, version, name, digest, digest_algorithm, handler_names, content, content_hash, deployed"

_ENROL: Final = """
INSERT INTO trioflow_engines (group_id, engine_id, incarnation, handler_names, opened) VALUES (?, ?, 1, ?, ?)
ON CONFLICT (group_id, engine_id) DO UPDATE SET
    incarnation = incarnation + 1, handler_names = excluded.handler_names, opened = excluded.opened
RETURNING incarnation
"""

_LATEST: Final = f"""
SELECT {_COLUMNS} FROM trioflow_definitions AS found WHERE group_id = ? AND version =
    (SELECT max(version) FROM trioflow_definitions WHERE group_id = found.group_id AND key = found.key)
ORDER BY key
"""


def find_group(db: sqlite3.Connection, group: str) -> int:
    """The number of a group; StoreError if there is none of that name."""
    row = db.execute("SELECT id FROM trioflow_groups WHERE name = ?", (group,)).fetchone()
    if row is None:
        raise StoreError(f"there is no group {group!r} in it")
    return int(row[0])


def enrol(
    db: sqlite3.Connection, group: str, engine_id: str, handler_names: Sequence[str], now: int, *, create_group: bool
) -> tuple[int, Owner]:
    """Find or create the group, and begin a new incarnation of the engine."""
    if create_group:
        _create_group(db, group, now)
    number = find_group(db, group)
    ((incarnation,),) = db.execute(_ENROL, (number, engine_id, listing(handler_names), now)).fetchall()
    return number, Owner(engine_id=engine_id, incarnation=incarnation)


def _create_group(db: sqlite3.Connection, group: str, now: int) -> None:
    created = db.execute(
        "INSERT INTO trioflow_groups (name, created, default_tenant) VALUES (?, ?, '') ON CONFLICT DO NOTHING",
        (group, now),
    )
    if created.rowcount:
        db.execute("INSERT INTO trioflow_tenants (group_id, name, created) VALUES (?, '', ?)", (created.lastrowid, now))


# ------------------------------------------------------------------ definitions


def deploy(db: sqlite3.Connection, group: int, new: Definition) -> Definition:
    """Store a definition under the next version of its key, unless its content is the latest."""
    latest = definition(db, group, new.key, None)
    if latest is not None and latest.content_hash == new.content_hash:
        return latest
    stored = evolve(new, version=1 if latest is None else latest.version + 1)
    db.execute(
        f"INSERT INTO trioflow_definitions (group_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(group, stored.key, stored.version, stored.name, stored.digest, stored.digest_algorithm),
            *(listing(stored.handler_names), stored.content, stored.content_hash, micros(stored.deployed)),
        ),
    )
    return stored


def definition(db: sqlite3.Connection, group: int, key: str, version: int | None) -> Definition | None:
    """That version, or the latest."""
    row = db.execute(
        f"SELECT {_COLUMNS} FROM trioflow_definitions WHERE group_id = ? AND key = ? AND version = coalesce(?,"
        " (SELECT max(version) FROM trioflow_definitions WHERE group_id = ? AND key = ?))",
        (group, key, version, group, key),
    ).fetchone()
    return None if row is None else _definition(row)


def definitions(db: sqlite3.Connection, group: int) -> tuple[Definition, ...]:
    """The latest of each key."""
    return tuple(_definition(row) for row in db.execute(_LATEST, (group,)))


def _definition(row: Sequence[Any]) -> Definition:
    key, version, name, digest, digest_algorithm, handler_names, content, content_hash, deployed = row
    return Definition(
        key=key,
        version=version,
        name=name,
        digest=digest,
        digest_algorithm=digest_algorithm,
        handler_names=listed(handler_names),
        content=content,
        content_hash=content_hash,
        deployed=moment(deployed),
    )
