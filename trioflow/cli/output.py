"""What commands share when they speak: consoles, exit statuses, JSON, and how a finding looks."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trioflow.checkpoint.documents import Documents
from trioflow.model import Finding, Level
from trioflow.values import Value, ValueCodec

__all__ = [
    "FAILED",
    "INTERRUPTED",
    "LEVEL_STYLES",
    "OK",
    "WRONG_USE",
    "complain",
    "console",
    "moment",
    "paragraph",
    "plain",
    "plain_table",
    "print_finding",
    "print_json",
    "shown",
]

OK = 0
FAILED = 1
WRONG_USE = 2
INTERRUPTED = 130

LEVEL_STYLES = {Level.ERROR: "bold red", Level.VIOLATION: "yellow", Level.WARNING: "cyan"}


def console(*, stderr: bool = False) -> Console:
    """A console that prints names as they are: brackets are no markup, numbers and paths have no colours.

    Without a terminal it is 80 columns wide and has no colours.
    """
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def complain(message: str) -> None:
    """An error for a person, on the error output."""
    console(stderr=True).print(Text("error: ", style="bold red") + Text(message, style="default"))


def print_json(document: Any) -> None:
    """One JSON document on the output, for machines: indented, in the order it was made."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def plain(value: Value, codec: ValueCodec) -> Any:
    """A variable's value as JSON can hold it: what JSON has no kind for is tagged as in the store."""
    return json.loads(Documents(codec).write_value(value))


def shown(value: Any, *, limit: int = 200) -> str:
    """A JSON value in one line for people, cut where it gets too long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def moment(at: datetime) -> str:
    """A time for people: to the second, with its zone."""
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def paragraph(out: Console, text: str, *, indent: int = 0, first: str = "", style: str = "") -> None:
    """Text wrapped to the width of the console, its lines indented; ``first`` stands in the first one's indentation."""
    start = first or " " * indent
    width = max(20, out.width - indent)
    for line in Text(text, style=style or "default").wrap(out, width):
        line.rstrip()
        out.print(Text(start) + line, soft_wrap=True)
        start = " " * indent


def plain_table(*headers: str) -> Table:
    """A table without lines around it, which fits between other lines of text."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_header=bool(any(headers)))
    for header in headers:
        table.add_column(header, overflow="fold")
    return table


def print_finding(out: Console, finding: Finding, *, source: str) -> None:
    """One finding: where and which, in a line that is never wrapped (for grep and editors); what, and what to do."""
    where = f"{source}:{finding.position.line}: " if finding.position else f"{source}: "
    who = f" {finding.element_id}" if finding.element_id else ""
    level = Text(finding.level.value, style=LEVEL_STYLES[finding.level])
    out.print(Text(where) + level + Text(f" [{finding.rule}]{who}"), soft_wrap=True)
    paragraph(out, finding.message, indent=4)
    paragraph(out, finding.remedy, indent=4, style="dim")
