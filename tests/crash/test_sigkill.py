"""Real processes, killed with SIGKILL at moments that nobody chose.

``TRIOFLOW_SIGKILL_RUNS`` says how many runs there are (5 in the suite, 50 in ``nox -s crash``);
``TRIOFLOW_SIGKILL_SEED`` repeats those of an earlier session.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import trio
from attrs import define, field, frozen

from tests.conftest import PATIENCE, ROOT
from tests.crash.support import live_keys
from tests.crash.worker import ORDERS, STEPS, expected
from trioflow.errors import StoreError
from trioflow.stores.sqlite import SQLiteStore

RUNS = int(os.environ.get("TRIOFLOW_SIGKILL_RUNS", "5"))
SEED = int(os.environ.get("TRIOFLOW_SIGKILL_SEED") or random.SystemRandom().randrange(10**6))
MOST_KILLS = 3


@frozen
class Ran:
    """A line of the log."""

    key: str
    attempt: int
    pid: int


@define
class Kill:
    """What there was when a worker had been killed: the steps that had begun, and those that the store still runs."""

    begun: list[Ran]
    live: set[str] = field(factory=set)


def _log(folder: Path) -> list[Ran]:
    try:
        lines = (folder / "log").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [Ran(key, int(attempt), int(pid)) for key, attempt, pid in map(str.split, lines)]


def _start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-W", "error", "-m", "tests.crash.worker", str(folder)], cwd=ROOT)


def _kill_once(folder: Path, rng: random.Random) -> bool:
    """Start a worker and kill it; False: it had done everything before that."""
    with _start(folder) as worker:
        steps = len(_log(folder)) + rng.randrange(12)
        until = time.monotonic() + PATIENCE
        while len(_log(folder)) < steps and worker.poll() is None:
            assert time.monotonic() < until, "the worker does nothing any more"
            time.sleep(0.001)
        time.sleep(rng.choice([0.0, 0.001, 0.004, 0.01, 0.3]))
        worker.kill()
    return worker.returncode != 0


def _live(folder: Path) -> set[str]:
    try:
        return trio.run(live_keys, SQLiteStore(folder / "orders.db"))
    except StoreError:
        assert _log(folder) == [], "a step ran before anything was stored"
        return set()


def _run(folder: Path, rng: random.Random) -> list[Kill]:
    kills: list[Kill] = []
    for _ in range(rng.randint(1, MOST_KILLS)):
        if not _kill_once(folder, rng):
            break
        kills.append(Kill(_log(folder), _live(folder)))
    if not (folder / "ends").exists():
        with _start(folder) as worker:
            assert worker.wait(PATIENCE) == 0
    return kills


@pytest.mark.sigkill
@pytest.mark.parametrize("number", range(RUNS))
def test_killed_and_started_again(number: int, tmp_path: Path) -> None:
    """All orders come to their right end; a step runs again only if the store had it as running at a kill."""
    print(f"TRIOFLOW_SIGKILL_SEED={SEED}, run {number}")  # noqa: T201  # pytest shows it when the test fails
    kills = _run(tmp_path, random.Random(f"{SEED}/{number}"))
    ran = _log(tmp_path)
    assert json.loads((tmp_path / "ends").read_text()) == {order: ["completed", expected(order)] for order in ORDERS}
    assert {run.key for run in ran} == {f"{order}/{step}/1" for order in ORDERS for step in STEPS}
    assert {run.attempt for run in ran} == {1}
    assert max(Counter((run.key, run.pid) for run in ran).values()) == 1
    for kill in kills:
        again = {run.key for run in kill.begun} & {run.key for run in ran[len(kill.begun) :]}
        assert again <= kill.live
    assert len(ran) - len(ORDERS) * len(STEPS) <= sum(len(kill.live) for kill in kills)
    assert trio.run(live_keys, SQLiteStore(tmp_path / "orders.db")) == set()
