"""The worker: holds the engine, tells its facts as JSON lines, and does what it is told by JSON lines.

Started as ``python -m trioflow.cli.demo.worker STORE LEDGER``.  It ends when the instance has ended, or when its
standard input is closed (whoever started it is gone).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import trio

from trioflow.cli.demo.order import INSTANCE, PROCESS, VARIABLES, handlers, model
from trioflow.facts import TERMINAL, Fact
from trioflow.runtime.engine import Engine, open_engine

__all__ = ["main"]


_ENDS = frozenset(f"instance-{status.value}" for status in TERMINAL)


def tell(kind: str, **details: Any) -> None:
    """One JSON line to the coordinator.  A line is short, and the pipe is always read: writing does not wait."""
    sys.stdout.write(json.dumps({"kind": kind, **details}) + "\n")
    sys.stdout.flush()


async def work(store: str, ledger: Path) -> None:
    """Run the order from where it is to its end."""
    steps = handlers(ledger, lambda node: tell("step-began", node=node))
    async with (
        open_engine(store, handlers=steps, deploy=[model()], grace=1.0) as engine,
        engine.observe() as facts,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(_obey, engine, nursery.cancel_scope)
        instance = await engine.start(PROCESS, VARIABLES, instance_id=INSTANCE, business_key=INSTANCE)
        async for fact in facts:
            tell("fact", **_line(fact))
            if fact.kind in _ENDS:
                break
        outcome = await instance.wait()
        tell("worker-done", status=outcome.status.value, variables=outcome.variables)
        nursery.cancel_scope.cancel()


def _line(fact: Fact) -> dict[str, Any]:
    return {
        "fact": fact.kind,
        "node": fact.node_id,
        "track": fact.track_id,
        "at": fact.at.isoformat(),
        "details": dict(fact.details),
    }


async def _obey(engine: Engine, work_scope: trio.CancelScope) -> None:
    """Do what the coordinator says; when it is gone, end the work here."""
    buffer = b""
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        async for chunk in stream:
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                await _do(engine, json.loads(line))
    work_scope.cancel()


async def _do(engine: Engine, command: dict[str, Any]) -> None:
    match command["do"]:
        case "complete":
            task = f"{INSTANCE}/{command['task']}"
            actor, groups = command["actor"], frozenset(command["groups"])
            await engine.tasks.complete(task, command["outputs"], actor=actor, groups=groups)
        case "send":
            await engine.send_message(
                command["name"], key=command["key"], payload=command["payload"], message_id=command["id"]
            )
        case unknown:
            raise ValueError(f"the coordinator said {unknown!r}")


def main() -> None:
    """Work with the store and the ledger that the arguments name."""
    store, ledger = sys.argv[1:]
    trio.run(work, store, Path(ledger))


if __name__ == "__main__":
    main()
