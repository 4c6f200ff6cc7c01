"""The floor of `durable`: sqlite3 with the same settings, a head row and a piece for each item, commits in a thread."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Self

import trio

SCHEMA = """
CREATE TABLE heads (id TEXT PRIMARY KEY, head BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE pieces (id TEXT NOT NULL, slot INTEGER NOT NULL, piece BLOB NOT NULL, PRIMARY KEY (id, slot));
"""
HEAD = "INSERT INTO heads VALUES (?, ?) ON CONFLICT DO UPDATE SET head = excluded.head"
PIECE = "INSERT INTO pieces VALUES (?, 0, ?) ON CONFLICT DO UPDATE SET piece = excluded.piece"


class Table:
    """A database file, written by whole commits."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.executescript(SCHEMA)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    async def commit(self, ids: list[str], head: bytes, piece: bytes) -> None:
        """Write a head and a piece for each id, in one commit."""
        await trio.to_thread.run_sync(self._commit, ids, head, piece)

    def _commit(self, ids: list[str], head: bytes, piece: bytes) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(HEAD, [(each, head) for each in ids])
        self._connection.executemany(PIECE, [(each, piece) for each in ids])
        self._connection.execute("COMMIT")
