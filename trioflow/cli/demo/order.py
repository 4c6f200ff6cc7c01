"""The order that the demo runs: its model, its data, and what each step does."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import trio

from trioflow.cli.demo.ledger import Entry, append
from trioflow.runtime.handlers import Handlers
from trioflow.runtime.work import Work

__all__ = ["INSTANCE", "KILLED_IN", "PROCESS", "SECONDS", "VARIABLES", "handlers", "model"]

PROCESS = "order"
INSTANCE = "o-1001"
VARIABLES: Mapping[str, Any] = {"order_id": INSTANCE, "amount": 240}

KILLED_IN = "charge-card"
"""The step in whose middle the worker is killed."""

SECONDS: Mapping[str, float] = {
    "reserve-stock": 0.4,
    "charge-card": 2.0,
    "pack": 0.4,
    "print-label": 0.3,
    "close-order": 0.3,
}
"""How long each step takes."""


def model() -> bytes:
    """The order process: ``examples/order.bpmn``, which the package brings along."""
    return (files("trioflow.cli") / "data" / "order.bpmn").read_bytes()


def handlers(ledger: Path, began: Callable[[str], None]) -> Handlers:
    """A handler for each step; ``began`` is called with the step's id when its run stands in the ledger."""
    found = Handlers()

    async def step(work: Work) -> dict[str, Any]:
        await trio.to_thread.run_sync(
            append, ledger, Entry(step=work.node_id, key=work.idempotency_key, pid=os.getpid())
        )
        began(work.node_id)
        await trio.sleep(SECONDS[work.node_id])
        return {"receipt": receipt(work.idempotency_key)} if work.node_id == "charge-card" else {}

    for name in SECONDS:
        found.task(name, step)
    return found


def receipt(key: str) -> str:
    """What the bank answers: the same for the same key, as it does not charge twice for one key."""
    return f"r-{hashlib.sha256(key.encode()).hexdigest()[:6]}"
