"""Two engines, one after the other, over one SQLite file: a timer goes on at the deadline that was stored.

    python restart.py

Leaving the first engine's block is a shutdown: it ends no instance.  (How a killed one goes on: ``trioflow demo``.)
"""

from __future__ import annotations

import tempfile
from datetime import datetime
from typing import Any

import trio

import trioflow
from trioflow.machine.explain import ForTimer
from trioflow.model.builder import timer

SECONDS = 1.5

handlers = trioflow.Handlers()


@handlers.task("remind")
async def remind(work: trioflow.Work) -> dict[str, Any]:
    """The step behind the timer."""
    return {"reminded": work.inputs["who"]}


def model() -> trioflow.ProcessBuilder:
    """Wait, then remind."""
    process = trioflow.ProcessBuilder("reminder")
    process.start("asked").catch("later", on=timer(duration=f"PT{SECONDS}S")).service("remind").end("done")
    return process


async def first(store: str) -> datetime:
    """Start the reminder, see what it waits for, and shut down."""
    async with trioflow.open_engine(store, handlers=handlers, deploy=[model().build()]) as engine:
        instance = await engine.start("reminder", {"who": "Ada"}, instance_id="r-1")
        return await deadline("first engine: ", instance)


async def second(store: str) -> tuple[datetime, trioflow.Outcome]:
    """Find it by its id, and see it to its end; the model comes from the store."""
    async with trioflow.open_engine(store, handlers=handlers) as engine:
        instance = engine.instance("r-1")
        return await deadline("second engine:", instance), await instance.wait()


async def deadline(who: str, instance: trioflow.Instance) -> datetime:
    """When the timer is due that its only token waits for."""
    (token,) = await instance.explain()
    print(who, token.text)
    if not isinstance(token.reason, ForTimer):
        raise SystemExit(f"it was to wait for its timer: {token}")
    return token.reason.deadline


async def main() -> None:
    """Let half of the time pass while no engine runs."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{folder}/reminders.db"
        due = await first(store)
        await trio.sleep(SECONDS / 2)
        still_due, outcome = await second(store)

    print(f"{outcome.status}: {outcome.variables}")
    if due != still_due:
        raise SystemExit(f"the timer was due at {due}, and after the restart at {still_due}")
    if outcome.variables != {"who": "Ada", "reminded": "Ada"}:
        raise SystemExit(f"this is not what was to come out: {outcome}")


if __name__ == "__main__":
    trio.run(main)
