"""The demo's outside world: a file into which each run of a step is written before the step does anything else.

It is the witness: what stands there was done, whatever became of the process that did it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from attrs import asdict, frozen

__all__ = ["Entry", "append", "read_ledger"]


@frozen(kw_only=True)
class Entry:
    """One run of one step, begun in the process ``pid``."""

    step: str
    key: str
    pid: int


def append(path: Path, entry: Entry) -> None:
    """Write an entry, and return when it is on the disk."""
    line = json.dumps(asdict(entry)) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())  # one call: two steps that run at once do not mix their lines
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_ledger(path: Path) -> tuple[Entry, ...]:
    """All entries, oldest first; none if nothing has run yet."""
    if not path.exists():
        return ()
    return tuple(Entry(**json.loads(line)) for line in path.read_text("utf-8").splitlines())
