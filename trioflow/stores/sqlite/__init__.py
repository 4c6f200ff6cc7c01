"""The store in a file: one SQLite database, for the engines of one machine."""

from __future__ import annotations

from trioflow.stores.sqlite._store import SQLiteStore

__all__ = ["SQLiteStore"]
