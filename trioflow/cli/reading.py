"""Reading a store beside whoever runs on it: no engine, no lock, nothing written, nothing created."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import click
import trio
from attrs import frozen

from trioflow.checkpoint.documents import Documents
from trioflow.checkpoint.records import IncidentRow, InstanceHead
from trioflow.cli.output import plain
from trioflow.errors import DefinitionNotFound, InstanceNotFound, InvalidRequest, StoreError
from trioflow.expressions import Languages
from trioflow.machine.derive import derive
from trioflow.machine.explain import Explanation, explain
from trioflow.machine.program import Program
from trioflow.machine.state import State
from trioflow.runtime.definitions import Programs
from trioflow.stores.opening import open_store
from trioflow.stores.port import Loaded, Store
from trioflow.values import ValueCodec

__all__ = ["View", "group_option", "look_at", "opened", "store_option"]

store_option = click.option(
    "--store", "url", required=True, envvar="TRIOFLOW_STORE", help="The store, such as sqlite:///orders.db."
)
group_option = click.option("--group", default="main", show_default=True, help="The group of engines in the store.")


CLOSING_SECONDS = 5.0


@asynccontextmanager
async def opened(url: str, *, group: str) -> AsyncIterator[Store]:
    """The store of that URL, opened for reading.

    Raises ``StoreError`` if there is none, ``InvalidRequest`` for a store in memory: its process alone can read it.
    """
    store = open_store(url)
    if store.volatile:
        raise InvalidRequest(f"{url!r} is held in the memory of the program that runs it: name a store that is kept")
    try:
        await store.open_reader(group=group)
        yield store
    finally:
        with trio.move_on_after(CLOSING_SECONDS, shield=True):
            await store.close()


@frozen(kw_only=True)
class View:
    """One instance as the store holds it.

    ``unreadable`` says why variables and tokens are not there: its definition or its document cannot be read here.
    ``variables`` are those of the root scope, as JSON can hold them.
    """

    head: InstanceHead
    incidents: tuple[IncidentRow, ...]
    variables: dict[str, Any]
    tokens: tuple[Explanation, ...] = ()
    program: Program | None = None
    unreadable: str = ""


async def look_at(store: Store, instance_id: str) -> View:
    """All that the store knows about one instance; ``InstanceNotFound`` if there is none of that id."""
    loaded = await store.load(instance_id)
    if loaded is None:
        raise InstanceNotFound(
            f"there is no instance {instance_id!r} in this store and group: see 'trioflow instances'"
        )
    incidents = await store.incidents(instance_id=instance_id, state=None)
    try:
        program, state = await _read(store, loaded)
    except (DefinitionNotFound, StoreError) as error:
        return View(head=loaded.head, incidents=incidents, variables={}, unreadable=str(error))
    root = next(iter(state.scopes.values()), None)
    codec = ValueCodec()
    return View(
        head=loaded.head,
        incidents=incidents,
        variables={} if root is None else {name: plain(value, codec) for name, value in root.data.items()},
        tokens=explain(program, state),
        program=program,
    )


async def _read(store: Store, loaded: Loaded) -> tuple[Program, State]:
    head, codec = loaded.head, ValueCodec()
    program = await Programs(store, Languages.default(), codec).version(head.process_key, head.version)
    if program.digest != head.digest:
        raise StoreError(f"the process has the shape {program.digest}, the instance was stored under {head.digest}")
    state = Documents(codec).fold(loaded.pieces, instance_id=head.instance_id)
    derive(program, state)
    return program, state
