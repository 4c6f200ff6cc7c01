"""The program that the SIGKILL test kills: ``python -m tests.crash.worker FOLDER`` works off its orders, and ends.

It is written to be started again at any moment: orders are started under ids of their own, payments sent under ids of
their own, and what its handlers do is a line in ``FOLDER/log`` that is on disk before the step goes on.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio

import trioflow
from trioflow import Engine, ProcessBuilder, Work
from trioflow.model import Definitions
from trioflow.model.builder import message, timer

__all__ = ["ORDERS", "STEPS", "expected"]

ORDERS = tuple(f"order-{number}" for number in range(6))
STEPS = {"reserve": 0.004, "charge": 0.006, "receipt": 0.002, "pick": 0.003, "pack": 0.005, "ship": 0.004}
"""The steps of an order, and how many seconds each takes."""


def expected(order: str) -> dict[str, Any]:
    """Return the variables that the order ends with."""
    amount = 10 * (ORDERS.index(order) + 1)
    steps = {step: f"{step} of {order}" for step in STEPS}
    return {"order": order, "amount": amount, "paid": amount, "total": amount * 1.25, **steps}


def _model() -> Definitions:
    built = ProcessBuilder("order")
    split = built.start("s").service("reserve").parallel("split")
    paid = split.catch("payment", on=message("payment", key="order"))
    join = paid.service("charge").service("receipt").parallel("join")
    split.service("pick").catch("cool", on=timer(duration="PT0.02S")).service("pack").to(join)
    split.script("sum", "total = amount * 1.25").to(join)
    join.service("ship").end("e")
    return built.build()


def _step(log: int, seconds: float) -> Callable[[Work], Awaitable[dict[str, Any]]]:
    async def handler(work: Work) -> dict[str, Any]:
        os.write(log, f"{work.idempotency_key} {work.attempt} {os.getpid()}\n".encode())
        os.fsync(log)
        await trio.sleep(seconds)
        return {work.node_id: f"{work.node_id} of {work.instance_id}"}

    return handler


async def _order(engine: Engine, order: str, ends: dict[str, Any]) -> None:
    amount = expected(order)["amount"]
    instance = await engine.start("order", {"order": order, "amount": amount}, instance_id=order)
    await engine.send_message("payment", key=order, payload={"paid": amount}, message_id=order)
    outcome = await instance.wait()
    ends[order] = [outcome.status.value, outcome.variables]


async def _work_off(folder: Path) -> None:
    log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    handlers = trioflow.Handlers()
    for name, seconds in STEPS.items():
        handlers.task(name, _step(log, seconds))
    ends: dict[str, Any] = {}
    store = f"sqlite:///{folder / 'orders.db'}"
    async with (
        trioflow.open_engine(store, handlers=handlers, deploy=[_model()]) as engine,
        trio.open_nursery() as nursery,
    ):
        for order in ORDERS:
            nursery.start_soon(_order, engine, order, ends)
    (folder / "ends").write_text(json.dumps(ends))


if __name__ == "__main__":
    trio.run(_work_off, Path(sys.argv[1]))
