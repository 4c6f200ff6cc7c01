"""For the tests of programs that use trioflow: virtual time, and the conformance kit for stores."""

from __future__ import annotations

from trioflow.testing.clock import VirtualClock

__all__ = ["VirtualClock"]
