"""What the tests of the documentation share: a page leaves nothing behind."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_left(no_leaked_threads: None) -> Iterator[None]:
    """Every test of this folder: no thread is left at work, and the log level that a page set is taken back."""
    logger = logging.getLogger("trioflow")
    level = logger.level
    yield
    logger.setLevel(level)
