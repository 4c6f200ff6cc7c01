"""``trioflow instances``: which instances a store holds."""

from __future__ import annotations

from typing import Any

import click
import trio

from trioflow.checkpoint.records import InstanceHead
from trioflow.cli.output import console, plain_table, print_json
from trioflow.cli.reading import group_option, opened, store_option
from trioflow.facts import Status
from trioflow.stores.port import InstanceFilter

__all__ = ["instances", "marks"]


@click.command(short_help="List the instances of a store.")
@store_option
@group_option
@click.option("--process", "process_key", help="Only those of this process.")
@click.option("--business-key", help="Only those with this business key.")
@click.option("--status", multiple=True, type=click.Choice([each.value for each in Status]), help="Repeatable.")
@click.option("--incidents", is_flag=True, help="Only those with open incidents.")
@click.option("--not-resumed", is_flag=True, help="Only those that an engine could not load.")
@click.option("--after", default="", help="Begin behind this id: the next page.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 10_000), help="How many at most.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def instances(
    *,
    url: str,
    group: str,
    process_key: str | None,
    business_key: str | None,
    status: tuple[str, ...],
    incidents: bool,
    not_resumed: bool,
    after: str,
    limit: int,
    as_json: bool,
) -> None:
    """List the instances of a store, in the order of their ids.

    It reads only: an engine that runs on the store is not disturbed.
    """
    where = InstanceFilter(
        process_key=process_key,
        business_key=business_key,
        status=frozenset(map(Status, status)) if status else None,
        has_incidents=True if incidents else None,
        not_resumed=True if not_resumed else None,
    )
    # One more than asked for says whether there is a next page.
    found = trio.run(_read, url, group, where, after, limit + 1)
    page, more = found[:limit], len(found) > limit
    if as_json:
        print_json({"instances": [as_document(head) for head in page], "more": more})
    else:
        _print(page, more=more)


async def _read(url: str, group: str, where: InstanceFilter, after: str, limit: int) -> tuple[InstanceHead, ...]:
    async with opened(url, group=group) as store:
        return await store.instances(where, after=after, limit=limit)


def marks(head: InstanceHead) -> str:
    """What an operator should know at a glance."""
    found = []
    if head.has_incidents:
        found.append("incidents")
    if head.drift:
        found.append("drifted")
    if head.failures:
        found.append(f"not loaded ({head.failures}x)")
    return ", ".join(found)


def as_document(head: InstanceHead) -> dict[str, Any]:
    """A head for machines."""
    return {
        "id": head.instance_id,
        "process": head.process_key,
        "version": head.version,
        "status": head.status.value,
        "reason": head.reason,
        "business_key": head.business_key,
        "parent": head.parent_id,
        "created": head.created.isoformat(),
        "updated": head.updated.isoformat(),
        "owner": head.owner,
        "has_incidents": head.has_incidents,
        "drift": head.drift,
        "failures": head.failures,
        "failure": head.failure,
    }


def _print(page: tuple[InstanceHead, ...], *, more: bool) -> None:
    out = console()
    if not page:
        out.print("No instance matches.")
        return
    table = plain_table("id", "process", "status", "business key", "updated (UTC)", "")
    for head in page:
        process = f"{head.process_key} v{head.version}"
        updated = f"{head.updated:%m-%d %H:%M:%S}"
        table.add_row(head.instance_id, process, head.status.value, head.business_key or "", updated, marks(head))
    out.print(table)
    if more:
        out.print(f"There are more: --after {page[-1].instance_id}")
