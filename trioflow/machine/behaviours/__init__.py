"""The registry: one behaviour for each kind of node.  Adding an element means adding to one family and its tests."""

from __future__ import annotations

from trioflow.machine.behaviours import ad_hoc, calling, event_gateway, events, gateways, messaging, subprocess, tasks
from trioflow.machine.behaviours.base import Behaviour, Compilers

__all__ = ["COMPILERS", "Behaviour"]

COMPILERS: Compilers = {
    **tasks.COMPILERS,
    **messaging.COMPILERS,
    **gateways.COMPILERS,
    **event_gateway.COMPILERS,
    **events.COMPILERS,
    **subprocess.COMPILERS,
    **ad_hoc.COMPILERS,
    **calling.COMPILERS,
}
