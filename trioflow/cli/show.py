"""``trioflow show``: one instance, and why it is where it is."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import click
import trio
from rich.console import Console
from rich.text import Text

from trioflow.checkpoint.records import IncidentRow
from trioflow.cli.instances import as_document
from trioflow.cli.output import console, moment, paragraph, plain_table, print_json, shown
from trioflow.cli.reading import View, group_option, look_at, opened, store_option
from trioflow.machine.explain import Explanation
from trioflow.machine.state import IncidentKind

__all__ = ["incident_document", "print_incident", "print_tokens", "print_view", "show", "token_document"]

_WITH_TRACEBACK = frozenset({IncidentKind.HANDLER_FAILURE, IncidentKind.RETRIES_EXHAUSTED, IncidentKind.CRASHED})
"""Incidents that come from the user's own code: where it failed is what he looks for."""


@click.command(short_help="Show one instance, and why it waits.")
@click.argument("instance_id", metavar="ID")
@store_option
@group_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def show(*, instance_id: str, url: str, group: str, as_json: bool) -> None:
    """Show the instance with this ID: status, variables, tokens, why each of them waits, and incidents.

    It reads only: an engine that runs on the store is not disturbed.
    """
    view = trio.run(_read, instance_id, url, group)
    if as_json:
        print_json(_document(view))
    else:
        print_view(console(), view)


async def _read(instance_id: str, url: str, group: str) -> View:
    async with opened(url, group=group) as store:
        return await look_at(store, instance_id)


# ------------------------------------------------------------------ for people


def print_view(out: Console, view: View) -> None:
    """All of it, a part after the other; parts that are empty are left out."""
    facts = plain_table("", "")
    for name, value in _facts(view):
        facts.add_row(Text(name, style="bold"), Text(value))
    out.print(facts)
    if view.unreadable:
        out.print(Text("\nIts variables and tokens cannot be read here: ") + Text(view.unreadable))
    if view.variables:
        out.print(Text("\nVariables", style="bold"))
        table = plain_table("", "")
        for name, value in view.variables.items():
            table.add_row(Text(f"  {name}"), Text(shown(value)))
        out.print(table)
    if view.tokens:
        out.print(Text("\nTokens", style="bold"))
        print_tokens(out, view.tokens)
    if view.incidents:
        out.print(Text("\nIncidents", style="bold"))
        for incident in view.incidents:
            print_incident(out, incident)


def _facts(view: View) -> list[tuple[str, str]]:
    head = view.head
    name = "" if view.program is None else view.program.graph.process.name or ""
    found = [
        ("Instance", head.instance_id),
        ("Process", f"{head.process_key}, version {head.version}{f' ({name})' if name else ''}"),
        ("Status", f"{head.status.value}{f': {head.reason}' if head.reason else ''}"),
        ("Business key", head.business_key or ""),
        ("Started", moment(head.created)),
        ("Updated", moment(head.updated)),
        ("Held by", _holder(view)),
        ("Drifted", head.drift),
        ("Not loaded", f"{head.failures} times, last: {head.failure}" if head.failures else ""),
    ]
    return [(label, value) for label, value in found if value]


def _holder(view: View) -> str:
    if view.head.status.is_terminal:
        return ""
    return f"engine {view.head.owner}" if view.head.owner else "no engine: it waits in the store"


def print_tokens(out: Console, tokens: tuple[Explanation, ...]) -> None:
    """A line for each token: where it is, and why."""
    for each in tokens:
        paragraph(out, f"{each.label} {each.reason.text}", indent=4, first="  - ")


def print_incident(out: Console, incident: IncidentRow) -> None:
    """An incident: kind, place, message, and for a failure in the user's code its traceback."""
    dropped = ", dropped" if incident.state == "dropped" else ""
    title = f"Incident {incident.wait_id} ({incident.incident_kind}{dropped}) at {incident.node_id}"
    paragraph(out, f"{title}, {moment(incident.last)}", indent=2, style="red")
    paragraph(out, incident.message, indent=4)
    if incident.incident_kind in _WITH_TRACEBACK:
        for cause in incident.causes:
            # A traceback is not wrapped: its lines are read by programs too.
            out.print(Text(indent(cause.rstrip(), "    "), style="dim"), soft_wrap=True)


# ------------------------------------------------------------------ for machines


def _document(view: View) -> dict[str, Any]:
    return {
        **as_document(view.head),
        "unreadable": view.unreadable,
        "variables": view.variables,
        "tokens": [token_document(each) for each in view.tokens],
        "incidents": [incident_document(incident) for incident in view.incidents],
    }


def token_document(each: Explanation) -> dict[str, Any]:
    """A token for machines."""
    token = each.token
    return {
        "id": token.id,
        "node": token.node,
        "name": token.name,
        "scope": list(token.scope),
        "flow": token.flow,
        "state": token.state,
        "why": each.reason.text,
    }


def incident_document(incident: IncidentRow) -> dict[str, Any]:
    """An incident for machines."""
    return {
        "id": incident.wait_id,
        "kind": incident.incident_kind,
        "state": incident.state,
        "node": incident.node_id,
        "message": incident.message,
        "attempts": incident.attempts,
        "first": incident.first.isoformat(),
        "last": incident.last.isoformat(),
        "causes": list(incident.causes),
    }
