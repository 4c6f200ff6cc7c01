"""What the crash tests run: small processes, their handlers, and drivers that can be started again at any moment.

A driver is the program around the engine: started again after a crash it finds out by ids what it has done
already, and goes on.  What is outside of the process (what a handler did, what an operator mended) is in the
``World`` and survives every crash.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio
from attrs import define, field, frozen

import trioflow
from trioflow import Engine, Instance, InstanceStalled, Outcome, ProcessBuilder, TaskNotAvailable, Work
from trioflow.errors import InvalidRequest
from trioflow.model import Definitions
from trioflow.model.builder import message, terminate, timer

__all__ = ["SCENARIOS", "Ran", "Scenario", "World"]

POLL = 0.25
"""Virtual seconds between two looks of a driver."""


@frozen
class Ran:
    """One run of one step: under which key, which attempt, and in which life of the engine."""

    key: str
    attempt: int
    life: int


@define(eq=False)
class World:
    """Outside of the process.

    ``life`` counts the engines, ``runs`` is what handlers did, in order.  ``begun``: the (key, attempt) of every step
    that the store has known as running; ``early``: what ran before the store knew.  ``answered``: the acts whose
    callers were told that they are stored; ``broken``: those of them that had to be done again.
    """

    life: int = 1
    runs: list[Ran] = field(factory=list)
    begun: set[tuple[str, int]] = field(factory=set)
    early: list[str] = field(factory=list)
    answered: set[str] = field(factory=set)
    broken: list[str] = field(factory=list)
    mended: bool = False

    def note(self, work: Work) -> None:
        """A step runs."""
        key, attempt = work.idempotency_key, work.attempt
        self.runs.append(Ran(key, attempt, self.life))
        if (key, attempt) not in self.begun:
            self.early.append(key)

    def promised(self, act: str, *, once: bool = True) -> None:
        """The engine has answered an act, so it is stored; ``once`` False: it was known to be done already."""
        if once and act in self.answered:
            self.broken.append(act)
        self.answered.add(act)

    def step(
        self, outputs: Mapping[str, Any] | Callable[[Work], Mapping[str, Any]] | None = None, *, seconds: float = 1.0
    ) -> Callable[[Work], Awaitable[Any]]:
        """A handler that takes some time, and returns ``outputs`` or what they make of the work."""

        async def handler(work: Work) -> Any:
            self.note(work)
            await trio.sleep(seconds)
            return outputs(work) if callable(outputs) else outputs

        return handler


@frozen(kw_only=True)
class Scenario:
    """``drive`` brings every instance to its end and says how each ended; ``messages``: the names that it waits for."""

    name: str
    model: Callable[[], Definitions]
    handlers: Callable[[World], trioflow.Handlers]
    drive: Callable[[Engine, World], Awaitable[tuple[Outcome, ...]]]
    messages: tuple[tuple[str, Any], ...] = ()


# ------------------------------------------------------------------ drivers


async def _start(
    engine: Engine, world: World, key: str, variables: Mapping[str, Any], *, instance_id: str = "i", **options: Any
) -> Instance:
    instance = await engine.start(key, variables, instance_id=instance_id, **options)
    world.promised(f"start {instance_id}", once=instance.created)
    return instance


async def _send(engine: Engine, world: World, name: str, message_id: str, **options: Any) -> None:
    outcome = await engine.send_message(name, message_id=message_id, **options)
    world.promised(f"send {message_id}", once=not outcome.duplicate)


def starting(key: str, **variables: Any) -> Callable[[Engine, World], Awaitable[tuple[Outcome, ...]]]:
    """Start one instance and wait for its end."""

    async def drive(engine: Engine, world: World) -> tuple[Outcome, ...]:
        instance = await _start(engine, world, key, variables)
        return (await instance.wait(),)

    return drive


async def drive_several(engine: Engine, world: World) -> tuple[Outcome, ...]:
    """Five instances at once, so that a commit holds several items."""
    outcomes: dict[str, Outcome] = {}

    async def one(instance_id: str) -> None:
        instance = await _start(engine, world, "several", {}, instance_id=instance_id)
        outcomes[instance_id] = await instance.wait()

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(one, f"i{number}")
    return tuple(outcomes[instance_id] for instance_id in sorted(outcomes))


async def drive_people(engine: Engine, world: World) -> tuple[Outcome, ...]:
    """Somebody claims each user task and completes it."""
    instance = await _start(engine, world, "people", {"amount": 20})
    while not (await instance.status()).is_terminal:
        for row in await engine.tasks.query(instance_id="i"):
            task = f"{row.instance_id}/{row.wait_id}"
            try:
                if row.owner is None:
                    await engine.tasks.claim(task, "anna", groups={"sales"})
                    world.promised(f"claim {task}")
                await engine.tasks.complete(task, {row.node_id: "yes"}, actor="anna")
                world.promised(f"complete {task}")
            except TaskNotAvailable:
                break  # an earlier life completed it, and the list was older than that
        await trio.sleep(POLL)
    return (await instance.wait(),)


async def drive_messages(engine: Engine, world: World) -> tuple[Outcome, ...]:
    """One message comes before the instance waits for it, the other when it waits."""
    await _send(engine, world, "paid", "m1", key=17, payload={"amount": 20}, time_to_live=1e6)
    instance = await _start(engine, world, "messages", {"order": 17}, business_key="17")
    while not (await instance.status()).is_terminal:
        if any(token.node == "packed" for token in await instance.tokens()):
            await _send(engine, world, "packed", "m2", payload="box", business_key="17")
        await trio.sleep(POLL)
    return (await instance.wait(),)


async def drive_retried(engine: Engine, world: World) -> tuple[Outcome, ...]:
    """An operator mends what is broken, and has it tried again."""
    instance = await _start(engine, world, "incident", {})
    while True:
        try:
            return (await instance.wait(),)
        except InstanceStalled:
            world.mended = True
            for row in await engine.incidents.query(instance_id="i"):
                try:
                    await engine.incidents.retry("i", row.wait_id)
                    world.promised(f"retry {row.wait_id}")
                except InvalidRequest:
                    break  # it is gone already
            await trio.sleep(POLL)


async def drive_resolved(engine: Engine, world: World) -> tuple[Outcome, ...]:
    """An operator does by hand what the step should have done."""
    instance = await _start(engine, world, "incident", {})
    while True:
        try:
            return (await instance.wait(),)
        except InstanceStalled:
            for row in await engine.incidents.query(instance_id="i"):
                try:
                    await engine.incidents.resolve("i", row.wait_id, {"charged": "by hand"})
                    world.promised(f"resolve {row.wait_id}")
                except InvalidRequest:
                    break  # it is gone already
            await trio.sleep(POLL)


# ------------------------------------------------------------------ models and handlers


def _sequence() -> Definitions:
    built = ProcessBuilder("sequence")
    built.start("s").service("one").service("two").service("three").end("e")
    return built.build()


def _sequence_handlers(world: World) -> trioflow.Handlers:
    """One handler of each way to be called: async, in the loop, in a thread."""

    def at_once(work: Work) -> dict[str, Any]:
        world.note(work)
        return {"two": work.data["one"] + 1}

    def in_a_thread(work: Work) -> dict[str, Any]:
        world.note(work)
        return {"three": work.data["two"] + 1}

    handlers = trioflow.Handlers()
    handlers.task("one", world.step({"one": 1}))
    handlers.task("two", at_once, inline=True)
    handlers.task("three", in_a_thread)
    return handlers


def _parallel(key: str = "parallel") -> Definitions:
    built = ProcessBuilder(key)
    split = built.start("s").parallel("split")
    join = split.service("a").parallel("join")
    split.service("b1").service("b2").to(join)
    split.service("c1").service("c2").service("c3").to(join)
    join.service("last").end("e")
    return built.build()


def _parallel_handlers(world: World) -> trioflow.Handlers:
    seconds = {"a": 0.5, "b1": 1.0, "b2": 1.0, "c1": 0.7, "c2": 0.7, "c3": 0.7, "last": 1.0}
    handlers = trioflow.Handlers()
    for name, each in seconds.items():
        handlers.task(name, world.step({name: f"did {name}"}, seconds=each))
    return handlers


def _loop() -> Definitions:
    built = ProcessBuilder("loop")
    decide = built.start("s").exclusive("again").service("count").exclusive("decide")
    decide.when("n < 4").to("again")
    decide.otherwise().end("e")
    return built.build()


def _loop_handlers(world: World) -> trioflow.Handlers:
    handlers = trioflow.Handlers()
    handlers.task("count", world.step(lambda work: {"n": work.data["n"] + 1}))
    return handlers


def _inner() -> Definitions:
    built = ProcessBuilder("inner")
    split = built.start("s").parallel("split")
    sub = split.subprocess("sub")
    with sub as inside:
        inside.start("is").service("dig").service("fill").end("ie")
    split.to(sub)
    split.to(sub)
    sub.service("after").end("e")
    return built.build()


def _inner_handlers(world: World) -> trioflow.Handlers:
    """Three instances of the sub-process at once: each step writes a variable of its own."""

    def own(work: Work) -> dict[str, Any]:
        return {work.idempotency_key.replace("/", "_").replace(".", "_"): True}

    handlers = trioflow.Handlers()
    handlers.task("dig", world.step(own, seconds=1.0))
    handlers.task("fill", world.step(own, seconds=0.4))
    handlers.task("after", world.step(own, seconds=0.3))
    return handlers


def _people() -> Definitions:
    built = ProcessBuilder("people")
    path = built.start("s").service("prepare").user("approve", candidate_groups=["sales"])
    path.user("sign", assignee="anna").service("ship").end("e")
    return built.build()


def _messages() -> Definitions:
    built = ProcessBuilder("messages")
    path = built.start("s").service("prepare").catch("paid", on=message("paid", key="order"))
    path.service("pack").catch("packed", on=message("packed")).service("ship").end("e")
    return built.build()


def _timer() -> Definitions:
    built = ProcessBuilder("timer")
    path = built.start("s").service("before").catch("wait", on=timer(duration="PT1H"))
    path.service("after").catch("moment", on=timer(duration="PT1M")).end("e")
    return built.build()


def _retry() -> Definitions:
    built = ProcessBuilder("retry")
    built.start("s").service("flaky").service("last").end("e")
    return built.build()


def _retry_handlers(world: World) -> trioflow.Handlers:
    async def flaky(work: Work) -> dict[str, Any]:
        world.note(work)
        await trio.sleep(1)
        if work.attempt < 3:
            raise OSError(f"not yet: attempt {work.attempt}")
        return {"attempts": work.attempt}

    handlers = trioflow.Handlers()
    handlers.task("flaky", flaky, retry=trioflow.Retry(attempts=3, delay=60.0))
    handlers.task("last", world.step({"last": True}))
    return handlers


def _incident() -> Definitions:
    built = ProcessBuilder("incident")
    split = built.start("s").parallel("split")
    join = split.service("charge").parallel("join")
    split.service("pick").to(join)
    join.service("ship").end("e")
    return built.build()


def _incident_handlers(world: World) -> trioflow.Handlers:
    async def charge(work: Work) -> dict[str, Any]:
        world.note(work)
        await trio.sleep(1)
        if not world.mended:
            raise OSError("the card reader is off")
        return {"charged": "by card"}

    handlers = _plain("pick", "ship")(world)
    handlers.task("charge", charge)
    return handlers


def _script() -> Definitions:
    built = ProcessBuilder("script")
    path = built.start("s").service("price").script("total", "total = price * amount\nrounds = [n for n in range(3)]")
    path.script("tax", "tax = total * 0.25").service("bill").end("e")
    return built.build()


def _script_handlers(world: World) -> trioflow.Handlers:
    handlers = trioflow.Handlers()
    handlers.task("price", world.step({"price": 40}))
    handlers.task("bill", world.step(lambda work: {"billed": work.data["total"] + work.data["tax"]}))
    return handlers


def _terminate() -> Definitions:
    built = ProcessBuilder("terminate")
    split = built.start("s").service("first").parallel("split")
    split.service("long").service("never").end("e")
    split.service("short").end("stop", on=terminate())
    return built.build()


def _terminate_handlers(world: World) -> trioflow.Handlers:
    """``long`` runs when the terminate end event is reached, and takes a moment to clean up."""

    async def long(work: Work) -> None:
        world.note(work)
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(0.2, shield=True):
                await trio.sleep(0.1)

    handlers = _plain("first", "short", "never")(world)
    handlers.task("long", long)
    return handlers


def _plain(*names: str) -> Callable[[World], trioflow.Handlers]:
    def make(world: World) -> trioflow.Handlers:
        handlers = trioflow.Handlers()
        for name in names:
            handlers.task(name, world.step({name: True}))
        return handlers

    return make


SCENARIOS = (
    Scenario(name="sequence", model=_sequence, handlers=_sequence_handlers, drive=starting("sequence")),
    Scenario(name="parallel", model=_parallel, handlers=_parallel_handlers, drive=starting("parallel")),
    Scenario(name="several", model=lambda: _parallel("several"), handlers=_parallel_handlers, drive=drive_several),
    Scenario(name="loop", model=_loop, handlers=_loop_handlers, drive=starting("loop", n=0)),
    Scenario(name="inner", model=_inner, handlers=_inner_handlers, drive=starting("inner")),
    Scenario(name="people", model=_people, handlers=_plain("prepare", "ship"), drive=drive_people),
    Scenario(
        name="messages",
        model=_messages,
        handlers=_plain("prepare", "pack", "ship"),
        drive=drive_messages,
        messages=(("paid", 17), ("packed", None)),
    ),
    Scenario(name="timer", model=_timer, handlers=_plain("before", "after"), drive=starting("timer")),
    Scenario(name="retry", model=_retry, handlers=_retry_handlers, drive=starting("retry")),
    Scenario(name="retried", model=_incident, handlers=_incident_handlers, drive=drive_retried),
    Scenario(name="resolved", model=_incident, handlers=_incident_handlers, drive=drive_resolved),
    Scenario(name="script", model=_script, handlers=_script_handlers, drive=starting("script", amount=3)),
    Scenario(name="terminate", model=_terminate, handlers=_terminate_handlers, drive=starting("terminate")),
)
