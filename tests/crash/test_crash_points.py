"""Every crash point of every scenario: the process dies at each of its commits, and the next one goes on.

What ``prove`` proves of every run: the same outcome as undisturbed, every step at least once and under one key, no
completed step again, no deadline moved, nothing left in the wait index, pins and counts right; and of every commit in
it that what is stored folds to the live state.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Literal

import pytest

from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.support import Chronicled, Plan, play, prove, prove_folds, resent
from trioflow.testing import VirtualClock
from trioflow.testing.crash import CrashPoint

NewStore = Callable[[], Chronicled]
Tried = Callable[[int], None]

TWICE = ("inner", "people", "messages", "timer", "retried")
"""Those that crash twice in a run."""
OTHER_WRITES: tuple[tuple[Literal["claim", "send"], str], ...] = (
    ("send", "messages"),
    ("claim", "messages"),
    ("claim", "timer"),
    ("claim", "people"),
    ("claim", "retry"),
)
"""Those that crash where an instance is claimed for a trigger, or a message is stored."""
AFTER_SECONDS = (0.35, 0.8, 1.2, 1.9, 2.6, 700.0)
"""When they crash between two commits: while steps run, while somebody waits."""


@pytest.fixture(autouse=True)
def every_capture_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each capture of the tests of this module folds to the live state."""
    prove_folds(monkeypatch)


each_scenario = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)


@pytest.mark.parametrize("point", CrashPoint, ids=lambda point: point.value.replace(" ", "-"))
@each_scenario
async def test_at_every_commit(
    scenario: Scenario, point: CrashPoint, new_store: NewStore, clock: VirtualClock, tried: Tried
) -> None:
    """Whichever commit it is that something happens to, the run ends as the undisturbed one."""
    undisturbed = await play(scenario, new_store(), clock)
    await prove(scenario, undisturbed, undisturbed)
    for number in count(1):
        history = await play(scenario, new_store(), clock, Plan(number, point))
        await prove(scenario, history, undisturbed)
        if not history.reached:
            break
        if point is CrashPoint.ACKNOWLEDGEMENT_LOST:
            assert history.runs == undisturbed.runs
            assert resent(history)
    tried(number - 1)
    assert number > 3


@pytest.mark.parametrize("point", CrashPoint, ids=lambda point: point.value.replace(" ", "-"))
@pytest.mark.parametrize("write", OTHER_WRITES, ids="-".join)
async def test_at_other_writes(
    write: tuple[Literal["claim", "send"], str],
    point: CrashPoint,
    new_store: NewStore,
    clock: VirtualClock,
    tried: Tried,
) -> None:
    """What is written by itself may fail like a commit: an instance is taken up, a message comes."""
    operation, name = write
    (scenario,) = [each for each in SCENARIOS if each.name == name]
    undisturbed = await play(scenario, new_store(), clock)
    for number in count(1):
        history = await play(scenario, new_store(), clock, Plan(number, point, operation))
        await prove(scenario, history, undisturbed)
        if not history.reached:
            break
    tried(number - 1)
    assert number > 1


@pytest.mark.parametrize("name", TWICE)
async def test_two_crashes(name: str, new_store: NewStore, clock: VirtualClock, tried: Tried) -> None:
    """A second crash, at the first or second commit of the recovery from the first one, changes nothing either."""
    (scenario,) = [each for each in SCENARIOS if each.name == name]
    undisturbed = await play(scenario, new_store(), clock)
    reached = 0
    for number in range(1, undisturbed.commits + 1):
        plans = Plan(number, CrashPoint.AFTER_COMMIT), Plan(1 + number % 2, CrashPoint.BEFORE_COMMIT)
        history = await play(scenario, new_store(), clock, *plans)
        await prove(scenario, history, undisturbed)
        reached += history.reached
    tried(reached)
    assert reached > undisturbed.commits


@each_scenario
async def test_between_commits(scenario: Scenario, new_store: NewStore, clock: VirtualClock, tried: Tried) -> None:
    """A crash at any other moment repeats what was running then, and nothing else."""
    undisturbed = await play(scenario, new_store(), clock)
    reached = 0
    for seconds in AFTER_SECONDS:
        history = await play(scenario, new_store(), clock, Plan(seconds=seconds))
        await prove(scenario, history, undisturbed)
        reached += history.reached
    tried(reached)
    assert reached
