"""For the tests of programs that use trioflow: virtual time, crashes at chosen commits, the kit for stores."""

from __future__ import annotations

from trioflow.testing.clock import VirtualClock
from trioflow.testing.crash import CrashingStore, CrashPoint, SimulatedCrash, run_until_crash

__all__ = ["CrashPoint", "CrashingStore", "SimulatedCrash", "VirtualClock", "run_until_crash"]
