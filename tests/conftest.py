"""What all tests share: Hypothesis and its profiles, the check for left threads, the shared files.

Time: pytest-trio gives `mock_clock`, which a test moves by hand, and `autojump_clock`, which
jumps when every task waits.  A `@given` test calls `trio.run(..., clock=MockClock())` itself,
for a fixture lives longer than one example.
"""

from __future__ import annotations

import gc
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

# Importing Hypothesis is also what makes Trio shuffle every batch of runnable tasks, from a
# seed that Hypothesis sets: without it a batch is only ever run forward or backward.
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# ------------------------------------------------------------------ Hypothesis

# No deadline: an example's time is the machine's, and two cores may be busy.  Under CI the suite
# draws the same examples each time; new ones are what the stress profile is for.
settings.register_profile(
    "suite", max_examples=200, deadline=None, print_blob=True, derandomize=bool(os.environ.get("CI"))
)
settings.register_profile(
    "stress",
    max_examples=10_000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("TRIOFLOW_HYPOTHESIS_PROFILE", "suite"))


# ------------------------------------------------------------------ leaks

IDLE_WORKER = re.compile(r"Trio thread \d+")
"""The name that Trio's cached threads have between two jobs; with a job they are named for it."""


def busy_threads() -> set[threading.Thread]:
    """Return the threads that do something: all but Trio's idle workers, which end by themselves."""
    return {thread for thread in threading.enumerate() if not IDLE_WORKER.fullmatch(thread.name)}


@pytest.fixture
def no_leaked_threads() -> Iterator[None]:
    """Fail the test if a thread that it started still works after it.

    A thread that is just ending gets one second of real time to do so.  Coroutines that
    nobody awaited need no check of their own: collecting them here warns, and warnings are errors.
    """
    before = busy_threads()
    yield
    gc.collect()
    for thread in busy_threads() - before:
        thread.join(timeout=1)
    left = sorted(thread.name for thread in busy_threads() - before)
    assert not left, f"the test left threads at work: {', '.join(left)}"


# ------------------------------------------------------------------ shared files


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared test input: `TRIOFLOW_SHARED`, or `../shared` from the project's root."""
    folder = Path(os.environ.get("TRIOFLOW_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"the shared test input is not at {folder}: set TRIOFLOW_SHARED to its folder")
    return folder


def pytest_collection_finish() -> None:
    """Put what the test modules are made of aside: the leak checks collect after each test, and need not walk it."""
    gc.collect()
    gc.freeze()
