"""The coordinator: starts the worker, kills it in the middle, starts it again, and answers what the order waits for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import trio
from attrs import field, frozen
from rich.console import Console
from rich.text import Text

from trioflow.cli.demo.order import INSTANCE, KILLED_IN, model
from trioflow.cli.demo.process import DemoFailed, Worker, start_worker
from trioflow.cli.narration import Narrator
from trioflow.cli.reading import look_at, opened
from trioflow.cli.show import print_tokens
from trioflow.expressions import Languages
from trioflow.facts import Fact
from trioflow.machine.program import NodeProgram
from trioflow.runtime.definitions import check_document, load_document
from trioflow.values import ValueCodec

__all__ = ["Ending", "Places", "perform"]

LONGEST = 60.0
"""Seconds that the demo may take, before it is said to have failed."""


@frozen(kw_only=True)
class Places:
    """The files of one demo."""

    folder: Path
    store: str = field(init=False)
    ledger: Path = field(init=False)
    log: Path = field(init=False)

    @store.default
    def _store(self) -> str:
        return f"sqlite:///{self.folder / 'orders.db'}"

    @ledger.default
    def _ledger(self) -> Path:
        return self.folder / "ledger.jsonl"

    @log.default
    def _log(self) -> Path:
        return self.folder / "worker.log"


@frozen(kw_only=True)
class Ending:
    """How the order ended, and which facts both workers told (kind and node)."""

    status: str
    variables: Mapping[str, Any]
    facts: tuple[tuple[str, str], ...]


def nodes() -> dict[str, NodeProgram]:
    """The nodes of the order process, by id."""
    document, content = load_document(model())
    (program,) = check_document(document, content, Languages.default(), ValueCodec()).programs
    return dict(program.nodes)


async def perform(out: Console, places: Places) -> Ending:
    """Play the demo; ``DemoFailed`` if it does not come to its end."""
    coordinator = _Coordinator(out, places)
    try:
        with trio.fail_after(LONGEST):
            return await coordinator.play()
    except trio.TooSlowError as error:
        raise DemoFailed(f"the demo had not ended after {LONGEST:.0f} seconds") from error


class _Coordinator:
    def __init__(self, out: Console, places: Places) -> None:
        self._out = out
        self._places = places
        self._nodes = nodes()
        self._narrator = Narrator(out, self._nodes)
        self._facts: list[tuple[str, str]] = []

    async def play(self) -> Ending:
        async with self._worker() as worker:
            self._chapter(f"A worker starts (process {worker.pid})")
            await self._until_it_can_be_killed(worker)
            await worker.kill()
            self._chapter(f'Process {worker.pid} is killed with SIGKILL, while "{self._name(KILLED_IN)}" runs')
        await self._look_into_the_store()
        async with self._worker() as worker:
            self._chapter(f"A new worker starts on the same store (process {worker.pid})")
            return await self._to_the_end(worker)

    def _worker(self) -> Any:
        return start_worker(self._places.store, self._places.ledger, self._places.log)

    def _chapter(self, title: str) -> None:
        self._out.print()
        self._out.print(Text(f"== {title}", style="bold"))

    def _name(self, node_id: str) -> str:
        return self._nodes[node_id].name

    # -------------------------------------------------------------- before the kill

    async def _until_it_can_be_killed(self, worker: Worker) -> None:
        """Until one of the parallel steps is done and stored, and the other is in its middle."""
        wanted = {("step-began", KILLED_IN), ("activity-completed", "pack")}
        async for told in worker:
            wanted.discard((self._hear(told), told.get("node", "")))
            if not wanted:
                return
        raise self._ended_early()

    async def _look_into_the_store(self) -> None:
        self._out.print("What it had stored is still there; in orders.db the order stands like this:")
        async with opened(self._places.store, group="main") as store:
            view = await look_at(store, INSTANCE)
        if view.unreadable:
            raise DemoFailed(f"the store cannot be read: {view.unreadable}")
        print_tokens(self._out, view.tokens)

    # -------------------------------------------------------------- after it

    async def _to_the_end(self, worker: Worker) -> Ending:
        async for told in worker:
            match self._hear(told):
                case "task-created":
                    await self._check_the_order(worker, told)
                case "node-entered" if told["node"] == "picked-up":
                    await self._pick_up(worker)
                case "worker-done":
                    ending = told
                    break
        else:
            raise self._ended_early()
        async for told in worker:
            self._hear(told)
        if status := await worker.ended():
            raise DemoFailed(f"the worker ended with the status {status}; its log is {self._places.log}")
        return Ending(status=ending["status"], variables=ending["variables"], facts=tuple(self._facts))

    async def _check_the_order(self, worker: Worker, told: dict[str, Any]) -> None:
        self._narrator.line(self._name(told["node"]), "Ada of sales says yes", style="cyan")
        task = told["details"]["task"]
        await worker.tell("complete", task=task, actor="ada", groups=["sales"], outputs={"checked_by": "ada"})

    async def _pick_up(self, worker: Worker) -> None:
        self._narrator.line(self._name("picked-up"), "the carrier sends it", style="cyan")
        await worker.tell("send", name="carrier-picked-up", key=INSTANCE, payload={"parcel": "p-77"}, id="scan-1")

    # -------------------------------------------------------------- what a worker tells

    def _hear(self, told: dict[str, Any]) -> str:
        """Show a fact, and return the kind of what was told."""
        if told["kind"] != "fact":
            return str(told["kind"])
        fact = Fact(
            kind=told["fact"],
            instance_id=INSTANCE,
            at=datetime.fromisoformat(told["at"]),
            node_id=told["node"],
            track_id=told["track"],
            details=told["details"],
        )
        self._facts.append((fact.kind, fact.node_id))
        self._narrator.tell(fact)
        return fact.kind

    def _ended_early(self) -> DemoFailed:
        lines = self._places.log.read_text("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        return DemoFailed(f"a worker ended too early{last} (its log is {self._places.log})")
