"""Folding what was written equals the live state, where the pieces are small: bases, tails and new bases all occur."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.support import Chronicled, Plan, play, prove, prove_folds
from trioflow.checkpoint.recorder import Recorder
from trioflow.runtime import residents
from trioflow.testing import VirtualClock
from trioflow.testing.crash import CrashPoint


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_small_pieces(
    scenario: Scenario, new_store: Callable[[], Chronicled], clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With limits of a few bytes each capture folds to the live state, also after a crash behind each commit."""
    monkeypatch.setattr(residents, "Recorder", partial(Recorder, small_base=0, small_tail=400))
    prove_folds(monkeypatch)
    undisturbed = await play(scenario, new_store(), clock)
    for number in count(1):
        history = await play(scenario, new_store(), clock, Plan(number, CrashPoint.AFTER_COMMIT))
        await prove(scenario, history, undisturbed)
        assert history.store.chronicle.tails
        if not history.reached:
            break
    assert number > 3
