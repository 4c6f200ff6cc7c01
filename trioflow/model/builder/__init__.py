"""Models built in code: the same frozen definitions as from XML, in an order that reads like the diagram."""

from __future__ import annotations

from trioflow.model.builder.parts import for_each, loop, times
from trioflow.model.builder.process import DefinitionsBuilder, ProcessBuilder
from trioflow.model.builder.scope import Path, Scope, SubProcessPath
from trioflow.model.builder.triggers import (
    Trigger,
    cancel,
    compensate,
    condition,
    error,
    escalation,
    link,
    message,
    signal,
    terminate,
    timer,
)

__all__ = [
    "DefinitionsBuilder",
    "Path",
    "ProcessBuilder",
    "Scope",
    "SubProcessPath",
    "Trigger",
    "cancel",
    "compensate",
    "condition",
    "error",
    "escalation",
    "for_each",
    "link",
    "loop",
    "message",
    "signal",
    "terminate",
    "timer",
    "times",
]
