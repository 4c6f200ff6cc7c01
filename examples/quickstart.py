"""A process built in code, one handler, one run: the smallest program that does something.

    python quickstart.py

Nothing is kept: without a store the engine works in memory.
"""

from __future__ import annotations

from typing import Any

import trio

import trioflow

handlers = trioflow.Handlers()


@handlers.task("greet")
async def greet(work: trioflow.Work) -> dict[str, Any]:
    """What the service task does; what it returns is written into the variables of the process."""
    return {"greeting": f"Hello, {work.inputs['name']}!"}


def process() -> trioflow.ProcessBuilder:
    """Start, one service task, end: read it as the diagram."""
    model = trioflow.ProcessBuilder("welcome", name="Welcome")
    model.start("arrived").service("greet", name="Greet").end("welcomed")
    return model


async def main() -> None:
    """Open an engine, run one instance, and look at what came out."""
    async with trioflow.open_engine(handlers=handlers, deploy=[process().build()]) as engine:
        instance = await engine.start("welcome", {"name": "Ada"})
        outcome = await instance.wait()

    print(f"{outcome.status}: {outcome.variables['greeting']}")
    if (outcome.status, outcome.variables["greeting"]) != (trioflow.Status.COMPLETED, "Hello, Ada!"):
        raise SystemExit(f"this is not what was to come out: {outcome}")


if __name__ == "__main__":
    trio.run(main)
