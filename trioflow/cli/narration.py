"""Facts as lines on the screen: when, where, what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console

from trioflow.cli.output import paragraph
from trioflow.facts import Fact
from trioflow.machine.program import NodeProgram
from trioflow.model import CatchEvent, MessageEventDefinition, SubProcess, TimerEventDefinition

__all__ = ["Narrator"]

NAME_WIDTH = 26
"""Columns for the name of a node: a line fits into 80 with what is said about it."""


_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "activity-completed": ("done", "green"),
    "activity-failed": ("failed (attempt {attempt})", "red"),
    "activity-reentered": ("was cut off by the crash: runs again", "yellow"),
    "error-thrown": ("threw the error {code}", "red"),
    "task-created": ("waits for a person", "cyan"),
    "message-received": ("the message {name} has come", "green"),
    "incident-opened": ("INCIDENT {incident} ({kind})", "bold red"),
    "incident-retried": ("incident {incident} is retried", "yellow"),
    "instance-completed": ("the instance is completed", "bold"),
    "instance-terminated": ("the instance is terminated", "bold"),
    "instance-failed": ("the instance has failed", "bold red"),
}
"""What is said about a kind of fact, with its details, and in which style."""


class Narrator:
    """Prints one line for each fact that a person wants to see; the others are passed over in silence.

    ``nodes`` gives the names.  Times are seconds since the first fact.
    """

    def __init__(self, out: Console, nodes: Mapping[str, NodeProgram]) -> None:
        self._out = out
        self._nodes = nodes
        self._origin: datetime | None = None
        self._kept: list[tuple[str, str, str]] | None = None

    def tell(self, fact: Fact) -> None:
        """Print the fact, if there is something to say."""
        if self._origin is None:
            self._origin = fact.at
        said = self._said(fact)
        if said is not None:
            text, style = said
            self.line(self._name(fact.node_id), text, style=style, at=fact.at)

    def line(self, name: str, text: str, *, style: str = "", at: datetime | None = None) -> None:
        """Print one line; without ``at`` it has no time."""
        seconds = "" if at is None or self._origin is None else f"{max(0.0, (at - self._origin).total_seconds()):.2f} s"
        start = f"{seconds:>9}  {set_cell_size(name, NAME_WIDTH)}  "
        if self._kept is None:
            self._print(start, text, style)
        else:
            self._kept.append((start, text, style))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep lines back inside the block, because something else stands on the screen, and print them at its end."""
        kept = self._kept = []
        try:
            yield
        finally:
            self._kept = None
            for start, text, style in kept:
                self._print(start, text, style)

    def _print(self, start: str, text: str, style: str) -> None:
        paragraph(self._out, text, indent=cell_len(start), first=start, style=style)

    def _name(self, node_id: str) -> str:
        node = self._nodes.get(node_id)
        return (node.name if node is not None else "") or node_id

    def _said(self, fact: Fact) -> tuple[str, str] | None:
        node = self._nodes.get(fact.node_id)
        if node is not None and fact.kind == "node-entered":
            return _entered(node)
        if node is not None and fact.kind == "activity-started":
            return _started(node, fact.details.get("attempt", 1))
        if fact.kind == "timer-fired":
            return _fired(fact.details["late_seconds"]), "green"
        if fact.kind in _WORDS:
            text, style = _WORDS[fact.kind]
            return text.format_map(fact.details), style
        return None


def _entered(node: NodeProgram) -> tuple[str, str] | None:
    if not isinstance(node.element, CatchEvent):
        return None
    kinds = [type(definition) for definition in node.element.event_definitions]
    if TimerEventDefinition in kinds:
        return "waits for its timer", "cyan"
    if MessageEventDefinition in kinds:
        return "waits for its message", "cyan"
    return None


def _started(node: NodeProgram, attempt: int) -> tuple[str, str]:
    if isinstance(node.element, SubProcess):
        return "begins", ""
    return ("runs" if attempt == 1 else f"runs again (attempt {attempt})"), ""


def _fired(late: float) -> str:
    return "the timer fired" if late < 1 else f"the timer fired, {late:.0f} s late"
