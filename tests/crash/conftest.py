"""What the crash tests share: virtual time, both stores, a proof at every capture, and the search for what is left."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.crash.support import Chronicled, ChronicledMemory, ChronicledSQLite
from tests.runtime.support import living_tasks
from trioflow.testing import VirtualClock

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run every async test of this folder under a clock that jumps; first, for pytest-trio's own mark is there too."""
    for item in items:
        if item.path.is_relative_to(FOLDER) and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.trio(run=_in_virtual_time), append=False)


def _in_virtual_time(function: Callable[[], Awaitable[Any]], **options: Any) -> Any:
    return trio.run(function, **{**options, "clock": options.get("clock") or MockClock(autojump_threshold=0)})


@pytest.fixture
def tried(counted: Callable[[str, int], None]) -> Callable[[int], None]:
    """Adds to the number of crash points that the summary tells."""
    return partial(counted, "crash points tried")


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


@pytest.fixture(params=["memory", "sqlite"])
def new_store(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Callable[[], Chronicled]:
    """A new and empty store at each call."""
    numbers = count(1)

    def memory() -> Chronicled:
        return ChronicledMemory(clock)

    def sqlite() -> Chronicled:
        return ChronicledSQLite(tmp_path / f"{next(numbers)}.db", clock)

    return memory if request.param == "memory" else sqlite
