"""What all tests share: Hypothesis and its profiles, the seed of Trio's order, numbers that are summed over the
session, the check for left threads, the shared files.

The suite may run in several processes at once (``pytest -n auto``): a test keeps to its ``tmp_path``, and needs no
other test before it.

Time: pytest-trio gives `mock_clock`, which a test moves by hand, and `autojump_clock`, which
jumps when every task waits.  A `@given` test calls `trio.run(..., clock=MockClock())` itself,
for a fixture lives longer than one example.
"""

from __future__ import annotations

import gc
import os
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Importing Hypothesis is also what makes Trio shuffle every batch of runnable tasks, from a
# seed that Hypothesis sets: without it a batch is only ever run forward or backward.
from hypothesis import HealthCheck, settings
from trio._core import _run as trio_run

ROOT = Path(__file__).resolve().parent.parent

# ------------------------------------------------------------------ Hypothesis

IN_CI = bool(os.environ.get("CI"))

# No deadline, and no check for slow examples: their time is the machine's, and its cores may be busy.  Under CI the
# suite draws the same examples each time; new ones are what the stress profile is for.
settings.register_profile(
    "suite",
    max_examples=200,
    deadline=None,
    print_blob=True,
    derandomize=IN_CI,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "stress", settings.get_profile("suite"), max_examples=10_000, stateful_step_count=100, derandomize=False
)
settings.load_profile(os.environ.get("TRIOFLOW_HYPOTHESIS_PROFILE", "suite"))


# ------------------------------------------------------------------ Trio's order

# Left in the environment, for the worker processes of this session are to have the same one.
SEED = os.environ.setdefault("TRIOFLOW_SEED", "0" if IN_CI else str(random.SystemRandom().randrange(10**6)))
"""Says, with the name of a test, in which order Trio runs tasks that can run at the same time."""


def pytest_report_header() -> str:
    """Say how to have the same order of tasks again."""
    return f"order of tasks: TRIOFLOW_SEED={SEED}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a test its order, whichever tests ran before it in this process."""
    trio_run._r.seed(f"{SEED}/{item.nodeid}")


# ------------------------------------------------------------------ numbers of the session

COUNT = "count of "


@pytest.fixture
def counted(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Adds to a number that the summary tells, such as of the crash points that were tried.

    It travels with the test's report: so it is summed over the processes of the session.
    """
    properties = request.node.user_properties
    return lambda what, number: properties.append((COUNT + what, number))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell the numbers: a scenario that tried nothing any more would pass in silence."""
    told: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        told.update({name.removeprefix(COUNT): n for name, n in report.user_properties if name.startswith(COUNT)})
    for what, number in sorted(told.items()):
        terminalreporter.write_line(f"{what}: {number}")


# ------------------------------------------------------------------ the order of the tests


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow ones: what takes a minute must not be the last thing that one of several processes does."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


# ------------------------------------------------------------------ leaks

IDLE_WORKER = re.compile(r"Trio thread \d+")
"""The name that Trio's cached threads have between two jobs; with a job they are named for it."""
PATIENCE = 60.0
"""Seconds of real time after which a thread or another program counts as stuck, on a machine that is busy with others.

No test waits so long for what comes.
"""


def busy_threads() -> set[threading.Thread]:
    """Return the threads that do something: all but Trio's idle workers, which end by themselves."""
    return {thread for thread in threading.enumerate() if not IDLE_WORKER.fullmatch(thread.name)}


@pytest.fixture
def no_leaked_threads() -> Iterator[None]:
    """Fail the test if a thread that it started still works after it.

    A thread that is just ending gets the time to do so.  Coroutines that nobody awaited need no check of their own:
    collecting them here warns, and warnings are errors.
    """
    before = busy_threads()
    yield
    gc.collect()
    for thread in busy_threads() - before:
        thread.join(timeout=PATIENCE)
    left = sorted(thread.name for thread in busy_threads() - before)
    assert not left, f"the test left threads at work: {', '.join(left)}"


@pytest.fixture(scope="module", autouse=True)
def aside() -> None:
    """Put aside what the modules are made of and what earlier ones left: the collections above need not walk it.

    Once for each module and not for each test, for then nothing that a test or fixture holds is put aside with it.
    """
    gc.collect()
    gc.freeze()


# ------------------------------------------------------------------ shared files


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared test input: `TRIOFLOW_SHARED`, or `../shared` from the project's root."""
    folder = Path(os.environ.get("TRIOFLOW_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"the shared test input is not at {folder}: set TRIOFLOW_SHARED to its folder")
    return folder
