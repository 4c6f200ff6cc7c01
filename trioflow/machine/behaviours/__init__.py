"""The registry: one behaviour for each kind of node.  Adding an element means adding to one family and its tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from trioflow.machine.behaviours import events, gateways, subprocess, tasks
from trioflow.machine.behaviours.base import Behaviour
from trioflow.model import FlowNode

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation

__all__ = ["COMPILERS", "Behaviour"]

Compiler = Callable[["Compilation", FlowNode], Behaviour]

COMPILERS: Mapping[type[FlowNode], Compiler] = {
    **tasks.COMPILERS,
    **gateways.COMPILERS,
    **events.COMPILERS,
    **subprocess.COMPILERS,
}
