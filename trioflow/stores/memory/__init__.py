"""The memory store: the reference of what a store does, and what an engine without a store runs on."""

from __future__ import annotations

from trioflow.stores.memory._store import MemoryStore

__all__ = ["MemoryStore"]
