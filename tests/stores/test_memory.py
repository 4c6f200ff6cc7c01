"""The memory store: the whole contract in both modes, and what is its own."""

from __future__ import annotations

import pytest

from trioflow.stores.memory import MemoryStore
from trioflow.testing.store_kit import MakeStore, ManualClock, StoreContract


class TestVolatile(StoreContract):
    """The contract, volatile."""

    @pytest.fixture
    def make_store(self, store_clock: ManualClock) -> MakeStore:
        """Handles over one memory."""
        return MemoryStore(clock=store_clock).another


class TestRecording(StoreContract):
    """The contract, recording."""

    @pytest.fixture
    def make_store(self, store_clock: ManualClock) -> MakeStore:
        """Handles over one memory."""
        return MemoryStore(clock=store_clock, recording=True).another
