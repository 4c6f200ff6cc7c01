"""Every crash point of every scenario: the process dies at each of its commits, and the next one goes on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.support import Chronicled, play, prove, prove_folds
from trioflow.testing import VirtualClock
from trioflow.testing.crash import CrashPoint

NewStore = Callable[[], Chronicled]


@pytest.mark.parametrize("point", CrashPoint, ids=lambda point: point.value.replace(" ", "-"))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_at_every_commit(
    scenario: Scenario,
    point: CrashPoint,
    new_store: NewStore,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Whichever commit it is that something happens to, the run ends as the undisturbed one, with no completed step repeated."""
    prove_folds(monkeypatch)
    undisturbed = await play(scenario, new_store(), clock)
    await prove(scenario, undisturbed, undisturbed)
    for number in count(1):
        history = await play(scenario, new_store(), clock, (number, point))
        await prove(scenario, history, undisturbed)
        if point is CrashPoint.ACKNOWLEDGEMENT_LOST:
            assert history.runs == undisturbed.runs
        if not history.reached:
            break
    record_property("crash_points", number - 1)
    assert number > 3
