"""A handler that fails: it is tried again, becomes an incident, and an operator decides.

    python incident.py

An incident loses nothing: the token stands at its node, and goes on when somebody has retried or resolved it.
"""

from __future__ import annotations

import logging
from typing import Any

import trio

import trioflow

handlers = trioflow.Handlers()
attempts: list[tuple[int, str]] = []


@handlers.task("book-flight", retry=trioflow.Retry(attempts=3, delay=0.05, backoff=2.0))
async def book(work: trioflow.Work) -> dict[str, Any]:
    """An airline whose computer is down."""
    attempts.append((work.attempt, work.idempotency_key))
    raise ConnectionError("the airline does not answer")


async def main() -> trioflow.Outcome:
    """Start a trip, wait until it stalls, and book the flight by telephone."""
    model = trioflow.ProcessBuilder("trip")
    model.start("wanted").service("book", name="Book the flight", handler="book-flight").end("booked")

    async with trioflow.open_engine(handlers=handlers, deploy=[model.build()]) as engine:
        instance = await engine.start("trip", {"to": "Lisbon"})
        try:
            outcome = await instance.wait()
        except trioflow.InstanceStalled as stalled:
            (incident,) = stalled.incidents
            print(f"stalled: incident {incident.id} ({incident.kind}) at {incident.node}: {incident.message}")
        else:
            raise SystemExit(f"it was to stall, and ended: {outcome}")
        for token in await instance.explain():
            print(token.text)

        # retry() would call the handler again, under the same key; drop() would give the token up.
        await engine.incidents.resolve(instance.id, incident.id, {"ticket": "by telephone"})
        return await instance.wait()


if __name__ == "__main__":
    # An incident is logged with its traceback; here it is part of the plot.
    logging.getLogger("trioflow").setLevel(logging.CRITICAL)
    outcome = trio.run(main)
    print(f"{outcome.status}: {outcome.variables}")
    if outcome.variables != {"to": "Lisbon", "ticket": "by telephone"}:
        raise SystemExit(f"this is not what was to come out: {outcome}")
    if [attempt for attempt, _ in attempts] != [1, 2, 3] or len({key for _, key in attempts}) != 1:
        raise SystemExit(f"three attempts under one key were to be made, and not {attempts}")
