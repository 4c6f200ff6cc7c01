"""The process of order.bpmn with handlers, a person, a message and a timer, kept in SQLite.

    python order.py

The person and the carrier are two lines of this program; in yours they are a web page and a queue.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import trio

import trioflow

MODEL = Path(__file__).resolve().parent / "order.bpmn"

handlers = trioflow.Handlers()


@handlers.task("reserve-stock")
async def reserve(work: trioflow.Work) -> dict[str, Any]:
    """Reserve the goods under the order's id."""
    return {"reservation": f"s-{work.inputs['order_id']}"}


@handlers.task("charge-card", retry=trioflow.Retry(attempts=3))
async def charge(work: trioflow.Work) -> dict[str, Any]:
    """Charge the card; the bank gets the key, so that it knows a repetition after a crash as one."""
    return {"receipt": f"{work.inputs['amount']} paid under {work.idempotency_key}"}


@handlers.task("pack")
def pack(work: trioflow.Work) -> dict[str, Any]:
    """Pack the goods: a plain function runs in a thread, so it may block."""
    return {"boxes": 1 if work.inputs["amount"] < 50 else 2}


@handlers.task("print-label")
async def print_label(work: trioflow.Work) -> dict[str, Any]:
    """Print what the carrier scans."""
    return {"label": f"label of {work.business_key}"}


@handlers.task("close-order")
async def close(work: trioflow.Work) -> None:
    """Close the books."""
    print(f"  closed: {work.inputs['order_id']}")


async def wait_for_task(engine: trioflow.Engine, instance: trioflow.Instance) -> str:
    """The id of the instance's user task, as soon as it is there."""
    while True:
        for row in await engine.tasks.query(instance_id=instance.id, groups={"sales"}, candidate="ada"):
            return row.id
        await trio.sleep(0.02)


async def run(store: str) -> trioflow.Outcome:
    """One order from its start to its end."""
    async with trioflow.open_engine(store, handlers=handlers, deploy=[MODEL]) as engine:
        order = {"order_id": "o-17", "amount": 240}
        instance = await engine.start("order", order, business_key="o-17", instance_id="o-17")

        task = await wait_for_task(engine, instance)
        await engine.tasks.claim(task, "ada", groups={"sales"})
        await engine.tasks.complete(task, {"checked_by": "ada"}, actor="ada")
        print("  checked by ada")

        # Nobody waits for it yet, perhaps: then it is buffered.  The id makes sending it twice harmless.
        message = await engine.send_message(
            "carrier-picked-up", key="o-17", payload={"parcel": "p-77"}, message_id="scan-1"
        )
        print(f"  the carrier's message was {message.state}")
        return await instance.wait()


def main() -> None:
    """Run it in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        outcome = trio.run(run, f"sqlite:///{folder}/orders.db")
    for name, value in outcome.variables.items():
        print(f"  {name} = {value!r}")
    expected = {
        "order_id": "o-17",
        "amount": 240,
        "reservation": "s-o-17",
        "receipt": "240 paid under o-17/charge-card/1",
        "boxes": 2,
        "checked_by": "ada",
        "label": "label of o-17",
        "parcel": "p-77",
    }
    if (outcome.status, outcome.variables) != (trioflow.Status.COMPLETED, expected):
        raise SystemExit(f"this is not what was to come out: {outcome}")
    print("completed")


if __name__ == "__main__":
    main()
