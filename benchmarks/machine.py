"""What a figure depends on besides the code: Python, processors, versions, the disk."""

from __future__ import annotations

import gc
import os
import platform
import sqlite3
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

__all__ = ["facts"]

PACKAGES = ("trioflow", "trio", "attrs", "cattrs", "lxml", "orjson")


def facts() -> dict[str, Any]:
    """The facts, as plain data."""
    return {
        "python": sys.version.split()[0],
        "implementation": platform.python_implementation(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "sqlite": sqlite3.sqlite_version,
        "versions": {name: version(name) for name in PACKAGES},
        "gc": {"enabled": gc.isenabled(), "threshold": gc.get_threshold(), "frozen_before_each_sample": True},
        "fsync_seconds": _fsync_seconds(),
    }


def _fsync_seconds(times: int = 11) -> float:
    """What it costs to have 4 kB on the disk that `durable` writes to: a file system in memory asks nothing."""
    taken = []
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "probe").open("wb", buffering=0) as probe:
        for _ in range(times):
            begun = time.perf_counter()
            probe.write(bytes(4096))
            os.fsync(probe.fileno())
            taken.append(time.perf_counter() - begun)
    return median(taken)
