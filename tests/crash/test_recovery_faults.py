"""A store that does not answer for a moment while an engine takes up what a crash has left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.crash.scenarios import SCENARIOS
from tests.crash.support import Chronicled, Plan, play, prove, prove_folds
from trioflow.errors import StoreError
from trioflow.testing import VirtualClock
from trioflow.testing.crash import CrashPoint

NewStore = Callable[[], Chronicled]


def _fail(store: Chronicled, method: str, times: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let a method raise so many times from now on; what it returns tells how often it did."""
    raised: list[str] = []
    answer = getattr(store, method)

    async def failing(*arguments: Any, **options: Any) -> Any:
        if len(raised) < times:
            raised.append(method)
            raise StoreError("the connection was lost")
        return await answer(*arguments, **options)

    monkeypatch.setattr(store, method, failing)
    return raised


@pytest.mark.parametrize("method", ["orphans", "claim"])
async def test_orphan_is_looked_for_again(
    method: str, new_store: NewStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An orphan that could not be listed or claimed at once is taken up when the store answers again."""
    prove_folds(monkeypatch)
    (scenario,) = [each for each in SCENARIOS if each.name == "parallel"]
    undisturbed = await play(scenario, new_store(), clock)
    store = new_store()
    raised = _fail(store, method, 3, monkeypatch)
    history = await play(scenario, store, clock, Plan(2, CrashPoint.AFTER_COMMIT))
    await prove(scenario, history, undisturbed)
    assert raised == [method] * 3
