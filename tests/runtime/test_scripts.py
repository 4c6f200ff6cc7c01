"""Scripts of an asynchronous engine: they take their time in the token's task, throw, fail, and are cancelled."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import attrs
import pytest
import trio

from tests.runtime.support import opened, until
from trioflow import BpmnError, InstanceStalled, ProcessBuilder, Retry, Status
from trioflow.errors import ExpressionError
from trioflow.expressions import Languages
from trioflow.model import Definitions
from trioflow.model.builder import error, timer
from trioflow.runtime.instance import Instance
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock

Body = Callable[[Mapping[str, Any]], Awaitable[Any]]

# ------------------------------------------------------------------ an engine whose scripts are functions of the test


@attrs.frozen
class Function:
    """A script that is the function of its name."""

    text: str
    body: Body
    language: str = "functions"
    names: frozenset[str] = frozenset()
    assigns: frozenset[str] = frozenset()
    is_async: bool = True


@attrs.frozen
class Call(Function):
    """It is run by a coroutine function."""

    async def run(self, names: Mapping[str, Any], now: datetime) -> Any:  # noqa: ARG002  # the port's signature
        """What the function returns, whatever that is."""
        return await self.body(names)


@attrs.frozen
class Later(Function):
    """It is run by a plain function that hands out something to be awaited."""

    def run(self, names: Mapping[str, Any], now: datetime) -> Awaitable[Any]:  # noqa: ARG002  # the port's signature
        """The same, in another wrapping."""
        return Promise(self.body(names))


@attrs.frozen
class Promise:
    """An awaitable that is no coroutine."""

    of: Awaitable[Any]

    def __await__(self) -> Any:
        return self.of.__await__()


@attrs.frozen
class Functions:
    """The engine of those scripts."""

    bodies: Mapping[str, Body]
    kind: type[Call | Later] = Call
    languages: frozenset[str] = frozenset({"functions"})

    def compile(self, text: str) -> Call | Later:
        """The function must be there."""
        if text not in self.bodies:
            raise ExpressionError(f"there is no function {text!r}")
        return self.kind(text, self.bodies[text])


def having(*, kind: type[Call | Later] = Call, **bodies: Body) -> Languages:
    """Languages whose scripts are those functions."""
    return Languages(scripts=(Functions(bodies, kind),), default_script="functions")


async def ten_seconds(names: Mapping[str, Any]) -> dict[str, Any]:
    """Takes ten seconds, and assigns what follows from what it read before."""
    n = names["n"]
    await trio.sleep(10)
    return {"n": n + 1}


class Held:
    """A script that runs until it is cancelled, and tells its life."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def __call__(self, names: Mapping[str, Any]) -> None:  # noqa: ARG002  # what all of them are given
        """Never returns."""
        self.log.append("began")
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            self.log.append("cancelled")
            raise


def scripts(*names: str) -> Definitions:
    """Script tasks in a row, named for what they call."""
    built = ProcessBuilder("p")
    path = built.start("s")
    for name in names:
        path = path.script(name, name)
    path.end("e")
    return built.build()


def guarded(name: str, on: Any) -> Definitions:
    """One script task, with an interrupting boundary event that leads to an end of its own."""
    built = ProcessBuilder("p")
    task = built.start("s").script(name, name)
    task.boundary("caught", on=on).end("other")
    task.end("e")
    return built.build()


async def stalled(instance: Instance) -> Any:
    """The one incident that stops the instance."""
    with pytest.raises(InstanceStalled) as told:
        await instance.wait()
    (incident,) = told.value.incidents
    return incident


# ------------------------------------------------------------------ it takes its time


@pytest.mark.parametrize("kind", [Call, Later])
async def test_takes_its_time(store: Store, clock: VirtualClock, kind: type[Call | Later]) -> None:
    """A script may be awaited for long, from a coroutine function or not; then what it assigned are variables."""
    languages = having(kind=kind, ten_seconds=ten_seconds)
    async with opened(store, clock, scripts("ten_seconds"), languages=languages) as engine:
        began = trio.current_time()
        instance = await engine.start("p", {"n": 1})
        assert await instance.status() is Status.ACTIVE
        outcome = await instance.wait()
        assert (outcome.status, outcome.variables) == (Status.COMPLETED, {"n": 2})
        assert trio.current_time() - began == pytest.approx(10, abs=0.5)


async def test_side_by_side(store: Store, clock: VirtualClock) -> None:
    """The scripts of two branches run at the same time: together they take as long as one."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    join = fork.script("a", "ten_seconds").parallel("join")
    fork.script("b", "ten_seconds").to("join")
    join.end("e")
    async with opened(store, clock, built.build(), languages=having(ten_seconds=ten_seconds)) as engine:
        began = trio.current_time()
        instance = await engine.start("p", {"n": 1})
        assert (await instance.wait()).variables == {"n": 2}  # both had read before the other wrote
        assert trio.current_time() - began == pytest.approx(10, abs=0.5)


# ------------------------------------------------------------------ it throws and fails


async def test_throws(clock: VirtualClock) -> None:
    """A BPMN error that a script raises after some time is caught by its boundary event, with its variables; so is one
    that comes alone out of a nursery.
    """

    async def plainly(names: Mapping[str, Any]) -> None:
        await trio.sleep(1)
        raise BpmnError("full", "no room", {"left": 0})

    async def in_a_nursery(names: Mapping[str, Any]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(plainly, names)
            await trio.sleep_forever()

    for body in (plainly, in_a_nursery):
        model = guarded("throws", error("full"))
        async with opened(None, clock, model, languages=having(throws=body)) as engine:
            outcome = await (await engine.start("p")).wait()
        assert outcome.status is Status.COMPLETED
        assert outcome.variables == {"errorCode": "full", "errorMessage": "no room", "left": 0}


async def test_uncaught(store: Store, clock: VirtualClock) -> None:
    """A BPMN error of a script that nothing in the model catches is an incident with its code, as one of a handler."""

    async def throws(names: Mapping[str, Any]) -> None:
        raise BpmnError("full")

    async with opened(store, clock, guarded("throws", error("other")), languages=having(throws=throws)) as engine:
        incident = await stalled(await engine.start("p"))
        assert (incident.kind.value, incident.code) == ("uncaught-error", "full")


@pytest.mark.parametrize(
    "failure, told",
    [
        (ExpressionError("n is missing"), "n is missing"),
        (OSError("no such file"), "OSError: no such file"),
        (ExceptionGroup("many", [ExpressionError("n is missing")]), "n is missing"),
    ],
)
async def test_fails(clock: VirtualClock, failure: Exception, told: str) -> None:
    """Whatever else a script raises is an incident of the script, which tells it; no retry policy runs it again, an
    operator's retry does.
    """
    runs: list[Exception | None] = [None, failure]

    async def fails(names: Mapping[str, Any]) -> dict[str, Any]:
        await trio.sleep(1)
        if (error := runs.pop()) is not None:
            raise error
        return {"n": 2}

    languages = having(fails=fails)
    async with opened(None, clock, scripts("fails"), languages=languages, retry=Retry(attempts=5)) as engine:
        instance = await engine.start("p")
        incident = await stalled(instance)
        assert (incident.kind.value, incident.message) == ("script", told)
        assert len(runs) == 1
        await engine.incidents.retry(instance.id, incident.id)
        assert (await instance.wait()).variables == {"n": 2}


async def test_returns_rubbish(clock: VirtualClock) -> None:
    """An engine that returns something other than names is told so in an incident, and harms nobody."""

    async def wrong(names: Mapping[str, Any]) -> int:
        return 7

    async with opened(None, clock, scripts("wrong"), languages=having(wrong=wrong)) as engine:
        incident = await stalled(await engine.start("p"))
        assert incident.kind.value == "script"
        assert "the script in functions of" in incident.message
        assert "returned 7 (int)" in incident.message


# ------------------------------------------------------------------ it is cancelled


async def test_interrupted(store: Store, clock: VirtualClock) -> None:
    """An interrupting boundary event cancels the script that runs, and what it would have assigned is not assigned."""
    held = Held()
    languages = having(held=held)
    async with opened(store, clock, guarded("held", timer(duration="PT2S")), languages=languages) as engine:
        began = trio.current_time()
        outcome = await (await engine.start("p", {"n": 1})).wait()
        assert (outcome.status, outcome.variables) == (Status.COMPLETED, {"n": 1})
        assert trio.current_time() - began == pytest.approx(2, abs=0.5)
    assert held.log == ["began", "cancelled"]


async def test_instance_is_cancelled(store: Store, clock: VirtualClock) -> None:
    """Cancelling the instance ends its script before the answer comes."""
    held = Held()
    async with opened(store, clock, scripts("held"), languages=having(held=held)) as engine:
        instance = await engine.start("p")
        await until(lambda: held.log)
        assert (await instance.cancel("enough")).status is Status.TERMINATED
        assert held.log == ["began", "cancelled"]


async def test_shutdown(durable: Store, clock: VirtualClock) -> None:
    """A script that outlasts the engine's grace is cancelled; the next engine runs it again, from its beginning."""
    held = Held()
    async with opened(durable, clock, scripts("script"), languages=having(script=held), grace=1) as engine:
        instance = await engine.start("p", {"n": 1})
        await until(lambda: held.log)
    assert held.log == ["began", "cancelled"]
    async with opened(durable, clock, languages=having(script=ten_seconds)) as engine:
        assert (await engine.instance(instance.id).wait()).variables == {"n": 2}
