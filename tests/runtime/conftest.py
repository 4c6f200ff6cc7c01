"""What the tests of the runtime share: virtual time, a store of every kind, and the search for what a test left
behind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.support import living_tasks
from trioflow.stores.memory import MemoryStore
from trioflow.stores.opening import open_store
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock

_HAS_SQLITE = find_spec("trioflow.stores.sqlite._store") is not None
FOLDER = Path(__file__).parent
LONGEST_TEST = 4e6
"""Virtual seconds, some more than the forty days that the longest test lets pass: what waits for ever fails then."""
KINDS = ["volatile", "recording", *(["sqlite"] if _HAS_SQLITE else [])]
DURABLE = KINDS[1:]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run every test of this folder under a clock that jumps; first, because pytest-trio's own mark is there too."""
    for item in items:
        if item.path.is_relative_to(FOLDER):
            item.add_marker(pytest.mark.trio(run=_in_virtual_time), append=False)


def _in_virtual_time(function: Callable[[], Awaitable[Any]], **options: Any) -> Any:
    async def bounded() -> Any:
        with trio.fail_after(LONGEST_TEST):
            return await function()

    return trio.run(bounded, **{**options, "clock": options.get("clock") or MockClock(autojump_threshold=0)})


@pytest.fixture(autouse=True)
def nothing_left(no_leaked_threads: None) -> Iterator[None]:
    """Every test of this folder: no thread at work and no coroutine that nobody awaited is left."""
    return iter((None,))


@pytest.fixture
async def clock() -> AsyncIterator[VirtualClock]:
    """Virtual time that jumps when every task waits; afterwards no task of the test's is left."""
    assert isinstance(trio.lowlevel.current_clock(), MockClock)
    before = living_tasks()
    yield VirtualClock()
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


@pytest.fixture
def memory(clock: VirtualClock) -> MemoryStore:
    """A recording store in memory."""
    return MemoryStore(clock=clock, recording=True)
