"""Asking a store again until it answers: a question whose answer was lost may have been done all the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from trioflow.errors import StoreError
from trioflow.runtime.shell import LOGGER

__all__ = ["insist"]

T = TypeVar("T")

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 5.0
MAX_ATTEMPTS = 100
"""Over some eight minutes; then the store counts as unable to (an impossible id)."""


async def insist(
    what: str, ask: Callable[[], Awaitable[T]], *, refused: Callable[[StoreError], None] | None = None
) -> T | None:
    """The answer to ``ask``, asked again after a pause while the store raises; None if it never answered.

    ``refused`` is told each error.
    """
    pause = FIRST_PAUSE
    for _ in range(MAX_ATTEMPTS):
        try:
            return await ask()
        except StoreError as error:
            LOGGER.error("the store does not %s (%s); trying again in %.2f s", what, error, pause)
            if refused is not None:
                refused(error)
        await trio.sleep(pause)
        pause = min(pause * 2, LONGEST_PAUSE)
    LOGGER.error("the store did not %s in %d attempts: given up", what, MAX_ATTEMPTS)
    return None
