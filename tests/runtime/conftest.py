"""What the tests of the runtime share: virtual time, a store of every kind, and the search for what a test left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.support import living_tasks
from trioflow.stores.memory import MemoryStore
from trioflow.stores.opening import open_store
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock

_HAS_SQLITE = find_spec("trioflow.stores.sqlite._store") is not None
KINDS = ["volatile", "recording", *(["sqlite"] if _HAS_SQLITE else [])]
DURABLE = KINDS[1:]


@pytest.fixture(autouse=True)
def nothing_left(no_leaked_threads: None) -> Iterator[None]:
    """Every test of this folder: no thread at work and no coroutine that nobody awaited is left."""
    return iter((None,))


@pytest.fixture
async def clock(autojump_clock: MockClock) -> AsyncIterator[VirtualClock]:
    """Virtual time that jumps when every task waits; afterwards no task of the test's is left."""
    before = living_tasks()
    yield VirtualClock(autojump_clock)
    await trio.testing.wait_all_tasks_blocked()
    left = sorted(task.name for task in living_tasks() - before)
    assert not left, f"the test left tasks: {', '.join(left)}"


def _make(kind: str, clock: VirtualClock, folder: Path) -> Store:
    if kind == "sqlite":
        return open_store(f"sqlite:///{folder}/engine.db", clock=clock)
    return MemoryStore(clock=clock, recording=kind == "recording")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Store:
    """A store of every kind."""
    return _make(request.param, clock, tmp_path)


@pytest.fixture(params=DURABLE)
def durable(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Store:
    """A store that has commits, and whose data outlives the engine."""
    return _make(request.param, clock, tmp_path)
