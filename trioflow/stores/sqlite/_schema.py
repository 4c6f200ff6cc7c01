"""Connections, and the schema with its numbered migrations."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Final

from attrs import frozen

from trioflow.errors import StoreError, StoreTooNew

__all__ = ["SCHEMA", "SYNCHRONOUS", "Migration", "admit", "connect", "migrate", "migrations"]

SCHEMA: Final = 2
"""The number of this code's schema: that of its last migration."""

SYNCHRONOUS: Final = ("full", "extra", "normal")

_OLDEST_SQLITE: Final = (3, 40, 0)
_BUSY_SECONDS: Final = 10.0
_NAME: Final = re.compile(r"(\d{4})_(\w+)\.sql")
_OLDEST_CODE: Final = re.compile(r"-- oldest code: (\d+)")

_MIGRATIONS_TABLE: Final = """
CREATE TABLE IF NOT EXISTS trioflow_migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    oldest_code INTEGER NOT NULL,
    applied INTEGER NOT NULL
) STRICT
"""


@frozen(kw_only=True)
class Migration:
    """One file: ``oldest_code`` is the lowest schema number of a code that still works with what it makes."""

    number: int
    name: str
    oldest_code: int
    sql: str

    def statements(self) -> Iterator[str]:
        """One statement at a time, so that all are in the caller's transaction."""
        gathered = ""
        for line in self.sql.splitlines(keepends=True):
            gathered += line
            if sqlite3.complete_statement(gathered):
                yield gathered
                gathered = ""


def migrations() -> tuple[Migration, ...]:
    """The embedded migrations, in order."""
    folder = resources.files(__package__) / "migrations"
    found = [
        _read(match, file.read_text("utf-8")) for file in folder.iterdir() if (match := _NAME.fullmatch(file.name))
    ]
    return tuple(sorted(found, key=lambda migration: migration.number))


def _read(name: re.Match[str], sql: str) -> Migration:
    oldest = _OLDEST_CODE.match(sql)
    assert oldest is not None, f"{name[0]} does not begin with the oldest code that works with it"
    return Migration(number=int(name[1]), name=name[2], oldest_code=int(oldest[1]), sql=sql)


# ------------------------------------------------------------------ connections


def connect(path: Path, *, synchronous: str = "full", read_only: bool = False) -> sqlite3.Connection:
    """A connection in WAL mode, whose transactions are begun and ended by statements only."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise StoreError(f"{path}: this Python has SQLite {sqlite3.sqlite_version}; 3.40 or newer is needed")
    mode = "ro" if read_only else "rwc"
    db = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None, cached_statements=256
    )
    try:
        _prepare(db, synchronous=synchronous, read_only=read_only)
    except BaseException:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, *, synchronous: str, read_only: bool) -> None:
    db.execute("PRAGMA foreign_keys = ON")
    if read_only:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # is it a database at all?
        return
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"the database cannot use a write-ahead log, its journal mode stays {mode!r}")
    assert synchronous in SYNCHRONOUS
    db.execute(f"PRAGMA synchronous = {synchronous}")


# ------------------------------------------------------------------ migrations


def migrate(db: sqlite3.Connection, now: int) -> None:
    """Bring the schema up to this code's, in one transaction that keeps every other writer out.

    Raises StoreTooNew before anything is changed.
    """
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(_MIGRATIONS_TABLE)
        done = admit(db)
        for migration in migrations():
            if migration.number not in done:
                _apply(db, migration, now)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _apply(db: sqlite3.Connection, migration: Migration, now: int) -> None:
    for statement in migration.statements():
        db.execute(statement)
    db.execute(
        "INSERT INTO trioflow_migrations (number, name, oldest_code, applied) VALUES (?, ?, ?, ?)",
        (migration.number, migration.name, migration.oldest_code, now),
    )


def admit(db: sqlite3.Connection) -> frozenset[int]:
    """The migrations that were applied; StoreTooNew if one of them does not work with this code any more."""
    if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'trioflow_migrations'").fetchone():
        raise StoreError("it is a database without trioflow's tables")
    rows = db.execute("SELECT number, name, oldest_code FROM trioflow_migrations ORDER BY number").fetchall()
    for number, name, oldest_code in rows:
        if oldest_code > SCHEMA:
            raise StoreTooNew(
                f"the store was migrated by a newer trioflow: migration {number} ({name}) needs code of schema"
                f" {oldest_code} or newer, and this is {SCHEMA}; upgrade trioflow"
            )
    return frozenset(number for number, _, _ in rows)
