"""Signals and thrown messages between instances, on every store."""

from __future__ import annotations

import pytest
import trio

from tests.runtime.support import opened, parked
from trioflow import InvalidRequest, ProcessBuilder, Status
from trioflow.model import Definitions
from trioflow.model.builder import message, signal
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


def listening() -> Definitions:
    """Waits for a signal and keeps what it brings."""
    p = ProcessBuilder("listener")
    p.start("s").catch("c", on=signal("go")).end("e")
    return p.build()


def beside() -> Definitions:
    """A non-interrupting handler for the signal, beside a wait for the end."""
    p = ProcessBuilder("beside")
    p.start("s").catch("end", on=message("end")).end("e")
    with p.event_subprocess("esp") as handler:
        handler.start("hs", on=signal("go"), interrupting=False).user("heard").end("he")
    return p.build()


def throwing() -> Definitions:
    """Throws a signal and a message."""
    p = ProcessBuilder("thrower")
    path = p.start("s").throw("si", on=signal("go"), inputs={"by": "name"})
    path.throw("me", on=message("paid", key="order"), inputs={"amount": "40 + 2"}).end("e")
    return p.build()


def paid() -> Definitions:
    """Waits for the message of its order."""
    p = ProcessBuilder("payable")
    p.start("s").catch("c", on=message("paid", key="order")).end("e")
    return p.build()


async def test_a_signal_from_outside_reaches_all_who_wait(store: Store, clock: VirtualClock) -> None:
    """Parked instances too; it says how many; who waits later does not get it."""
    async with opened(store, clock, listening()) as engine:
        instances = [await engine.start("listener") for _ in range(3)]
        await parked(engine)
        assert await engine.signal("go", {"by": "us"}) == 3
        for instance in instances:
            outcome = await instance.wait()
            assert (outcome.status, outcome.variables["by"]) == (Status.COMPLETED, "us")
        late = await engine.start("listener")
        await parked(engine)
        assert await late.status() is Status.ACTIVE


async def test_what_an_instance_throws_reaches_the_others(store: Store, clock: VirtualClock) -> None:
    """A signal all of them, a message the one whose key it has."""
    async with opened(store, clock, listening(), throwing(), paid()) as engine:
        listener = await engine.start("listener")
        mine, other = [await engine.start("payable", {"order": number}) for number in (1, 2)]
        await parked(engine)
        thrower = await engine.start("thrower", {"name": "t", "order": 1})
        assert (await thrower.wait()).status is Status.COMPLETED
        assert (await listener.wait()).variables["by"] == "t"
        assert (await mine.wait()).variables["amount"] == 42
        await parked(engine)
        assert await other.status() is Status.ACTIVE


async def test_a_message_that_is_thrown_before_anybody_waits(store: Store, clock: VirtualClock) -> None:
    """Buffered, as one from outside."""
    async with opened(store, clock, throwing(), paid()) as engine:
        await (await engine.start("thrower", {"name": "t", "order": 7})).wait()
        outcome = await (await engine.start("payable", {"order": 7})).wait()
        assert outcome.variables["amount"] == 42


async def test_signals_one_after_the_other_are_all_heard(store: Store, clock: VirtualClock) -> None:
    """A non-interrupting handler goes on waiting: none is lost, none comes twice."""
    async with opened(store, clock, beside()) as engine:
        instance = await engine.start("beside")
        await parked(engine)
        for _ in range(5):
            assert await engine.signal("go") == 1
        await parked(engine)
        heard = await engine.tasks.query(node_id="heard")
        assert len(heard) == 5
        await engine.send_message("end")
        for task in heard:
            await engine.tasks.complete(task.id)
        assert (await instance.wait()).status is Status.COMPLETED


async def test_a_signal_to_an_instance_that_is_not_loaded_after_a_restart(store: Store, clock: VirtualClock) -> None:
    """What was stored while its engine was down is delivered when another one opens."""
    another = store.another() if hasattr(store, "another") else None
    if another is None:
        pytest.skip("this store has one handle")
    async with opened(another, clock, listening()) as engine:
        instance = await engine.start("listener")
        await parked(engine)
    async with opened(store, clock, listening()) as engine:
        assert await engine.signal("go", {"by": "late"}) == 1
        assert (await engine.instance(instance.id).wait()).variables["by"] == "late"


@pytest.mark.parametrize("name", ["", "\x1fgo", "two\nlines"])
async def test_a_name_that_cannot_be_one_is_refused(store: Store, clock: VirtualClock, name: str) -> None:
    """For signals and messages alike."""
    async with opened(store, clock, listening()) as engine:
        with pytest.raises(InvalidRequest, match="a signal needs a name"):
            await engine.signal(name)
        with pytest.raises(InvalidRequest, match="a message needs a name"):
            await engine.send_message(name)
    await trio.lowlevel.checkpoint()
