"""The end of a run: what is said about it, to people and to machines, and the exit status."""

from __future__ import annotations

import shlex
from typing import Any

from rich.console import Console
from rich.text import Text

from trioflow.cli.output import FAILED, INTERRUPTED, OK, paragraph, plain_table, shown
from trioflow.cli.run.driver import End
from trioflow.cli.run.session import Result
from trioflow.cli.show import incident_document, print_incident, print_tokens, token_document
from trioflow.facts import Status
from trioflow.machine.state import IncidentKind

__all__ = ["exit_status", "print_result", "result_document"]


def exit_status(result: Result) -> int:
    """0: it has ended as its model or somebody wanted; 1: it failed or stands still; 130: interrupted."""
    if result.end is None:
        return INTERRUPTED
    return OK if result.end is End.OVER and result.status is not Status.FAILED else FAILED


def result_document(result: Result) -> dict[str, Any]:
    """The result for machines."""
    return {
        "instance": result.instance_id,
        "end": "interrupted" if result.end is None else result.end.value,
        "status": None if result.status is None else result.status.value,
        "reason": result.reason,
        "variables": result.variables,
        "tokens": [token_document(each) for each in result.tokens],
        "incidents": [incident_document(incident) for incident in result.incidents],
    }


def print_result(out: Console, result: Result, *, file: str, store: str | None, lost: int) -> None:
    """The result for people: how it ended, its variables, and where it stands if it has not ended."""
    if lost:
        out.print(f"({lost} lines of progress were not shown: the screen was too slow.)")
    out.print()
    out.print(Text(_headline(result), style="bold green" if exit_status(result) == OK else "bold red"))
    if result.end is not None and not result.created:
        out.print("It had been started before: variables given now were not used.")
    for incident in result.incidents:
        print_incident(out, incident)
        if incident.incident_kind == IncidentKind.MISSING_HANDLER:
            hint = 'Give its outputs in the answers file under "handlers", or your own handlers with --handlers.'
            paragraph(out, hint, indent=4)
    if result.tokens and not result.incidents:
        print_tokens(out, result.tokens)
    for answer in result.unused:
        out.print(f"The message {answer.name} ({answer.place} in the answers) was not waited for, and was not sent.")
    if result.variables:
        table = plain_table("", "")
        for name, value in result.variables.items():
            table.add_row(Text(f"  {name}"), Text(shown(value)))
        out.print(table)
    if result.end is not End.OVER:
        out.print(_how_to_go_on(result, file, store))


def _headline(result: Result) -> str:
    instance = f"Instance {result.instance_id}"
    reason = f": {result.reason}" if result.reason else ""
    match result.end:
        case None:
            return f"Interrupted. {instance} has not ended."
        case End.OVER:
            return f"{instance} is {result.status}{reason}."
        case End.TOO_LONG:
            return f"{instance} has not ended in the time given."
        case _ if result.incidents:
            return f"{instance} cannot go on by itself."
    return f"{instance} waits for what nobody gives."


def _how_to_go_on(result: Result, file: str, store: str | None) -> str:
    if store is None or store.startswith("memory:"):
        return "It was held in memory only and is gone; with --store sqlite:///FILE it can go on later."
    arguments = ["trioflow", "run", file, "--store", store, "--instance-id", result.instance_id]
    if result.incidents:
        arguments.append("--retry")
    return f"It is kept in the store. It goes on with: {shlex.join(arguments)}"
