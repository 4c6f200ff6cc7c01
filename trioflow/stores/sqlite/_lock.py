"""The liveness lock of an engine: a lock on a file beside the database, which the end of the process gives up."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from trioflow.errors import EngineInUse, StoreError

if sys.platform != "win32":
    import fcntl

__all__ = ["LivenessLock"]


class LivenessLock:
    """A held lock.  Its file stays when it is given up: to remove it would let two engines lock two files."""

    def __init__(self, database: Path, group: str, engine_id: str) -> None:
        """Take the lock; EngineInUse if another handle has it, in this process or another."""
        if sys.platform == "win32":
            raise StoreError("SQLiteStore needs the file locks of a POSIX system to know whether an engine lives")
        name = hashlib.sha256(f"{group}\0{engine_id}".encode()).hexdigest()[:16]
        self.path = database.with_name(f"{database.name}.engine-{name}.lock")
        self._file: int | None = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._file, 64, 0).decode("ascii", "replace").strip()
            self._close()
            raise EngineInUse(
                f"engine {engine_id!r} of group {group!r} is running over {database}"
                f" ({f'pid {holder}' if holder else 'its pid is not known'}): stop it, or take another engine id"
            ) from error
        except BaseException:
            self._close()
            raise
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Give it up; twice is once."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            self._close()

    def _close(self) -> None:
        assert self._file is not None
        os.close(self._file)
        self._file = None
