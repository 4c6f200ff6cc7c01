"""Messages: who gets which, what the sender is told, and that none is lost or given twice."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
import trio

from tests.runtime.support import Gate, opened, parked, receiving, registry, until
from trioflow import Engine, InstanceStalled, InvalidRequest, ProcessBuilder, Status, UnstorableValue
from trioflow.model import Definitions
from trioflow.model.builder import message, terminate
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


async def test_before_and_after_the_wait(store: Store, clock: VirtualClock) -> None:
    """A message that comes before its wait is buffered and consumed by it; one that comes after is consumed at once."""
    async with opened(store, clock, receiving()) as engine:
        early = await engine.send_message("paid", payload={"n": 1})
        assert (early.state, early.instance_id) == ("buffered", None)
        first = await engine.start("receiver")
        assert (await first.wait()).variables == {"n": 1}
        second = await engine.start("receiver")
        late = await engine.send_message("paid", payload={"n": 2})
        assert (late.state, late.instance_id) == ("consumed", second.id)
        assert (await second.wait()).variables == {"n": 2}


KEYS: list[Any] = [1, "1", 1.5, Decimal("1.5"), True, datetime(2026, 1, 1, tzinfo=UTC), ["a", 1], {"a": 1}]


async def test_keys(store: Store, clock: VirtualClock) -> None:
    """Keys match if values and types are equal: a number is not its text, a truth value no number."""
    async with opened(store, clock, receiving(key="id")) as engine:
        for number, key in enumerate(KEYS):
            await engine.start("receiver", {"id": key}, instance_id=str(number))
        assert (await engine.send_message("paid", key="nobody's")).state == "buffered"
        assert (await engine.send_message("other", key=1)).state == "buffered"
        for number, key in reversed(list(enumerate(KEYS))):
            outcome = await engine.send_message("paid", key=key)
            assert (outcome.state, outcome.instance_id) == ("consumed", str(number)), key


async def test_without_keys(store: Store, clock: VirtualClock) -> None:
    """A wait without key takes a message without key, or one whose key is its instance's business key, and no other."""
    async with opened(store, clock, receiving()) as engine:
        instance = await engine.start("receiver", business_key="o-17")
        assert (await engine.send_message("paid", key="o-18")).state == "buffered"
        assert (await engine.send_message("paid", business_key="o-18")).state == "buffered"
        assert (await engine.send_message("paid", key="o-17")).instance_id == instance.id


async def test_business_key(store: Store, clock: VirtualClock) -> None:
    """A message with a business key goes to an instance with that one, though another waits longer."""
    async with opened(store, clock, receiving()) as engine:
        await engine.start("receiver", business_key="a")
        second = await engine.start("receiver", business_key="b")
        assert (await engine.send_message("paid", business_key="b")).instance_id == second.id


async def test_oldest_wait_first(store: Store, clock: VirtualClock) -> None:
    """Of several waits that match, the one that was armed first gets the message; a second wait of one instance too."""
    built = ProcessBuilder("two")
    fork = built.start("s").parallel("fork")
    for name in ("a", "b"):
        fork.catch(name, on=message("paid")).script(f"done_{name}", f"{name} = n").end(f"e_{name}")
    async with opened(store, clock, built.build()) as engine:
        first = await engine.start("two")
        second = await engine.start("two")
        receivers = [(await engine.send_message("paid", payload={"n": n})).instance_id for n in range(4)]
        assert receivers == [first.id, first.id, second.id, second.id]
        assert (await first.wait()).variables == {"n": 1, "a": 0, "b": 1}


async def test_duplicates(store: Store, clock: VirtualClock) -> None:
    """A message id is remembered: the second sending does nothing and tells what became of the first, by name and
    id.
    """
    async with opened(store, clock, receiving(), receiving("other", process="p2")) as engine:
        first = await engine.send_message("paid", message_id="m-1", payload={"n": 1})
        again = await engine.send_message("paid", message_id="m-1", payload={"n": 2})
        assert (first.state, first.duplicate, again.state, again.duplicate) == ("buffered", False, "buffered", True)
        assert not (await engine.send_message("other", message_id="m-1")).duplicate
        instance = await engine.start("receiver")
        assert (await instance.wait()).variables == {"n": 1}
        late = await engine.send_message("paid", message_id="m-1")
        assert (late.state, late.instance_id, late.duplicate) == ("consumed", instance.id, True)
        other = await engine.start("receiver")
        assert await other.status() is Status.ACTIVE


async def test_duplicates_at_the_same_time(store: Store, clock: VirtualClock) -> None:
    """Of ten sendings of one id at once, one counts; every sender is told the same receiver."""
    receivers: list[str | None] = []
    firsts: list[bool] = []

    async def sends(engine: Engine) -> None:
        outcome = await engine.send_message("paid", message_id="m-1")
        receivers.append(outcome.instance_id)
        firsts.append(not outcome.duplicate)

    async with opened(store, clock, receiving()) as engine:
        one = await engine.start("receiver")
        other = await engine.start("receiver")
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(sends, engine)
        assert (sum(firsts), receivers) == (1, [one.id] * 10)
        assert await other.status() is Status.ACTIVE


async def test_time_to_live(store: Store, clock: VirtualClock) -> None:
    """A buffered message is kept for its time to live, then it is *expired*: no wait gets it, its id is still known."""
    async with opened(store, clock, receiving()) as engine:
        await engine.send_message("paid", message_id="m-1", time_to_live=60, payload={"n": 1})
        await engine.send_message("paid", message_id="m-2", time_to_live=600, payload={"n": 2})
        await trio.sleep(61)
        instance = await engine.start("receiver")
        assert (await instance.wait()).variables == {"n": 2}
        again = await engine.send_message("paid", message_id="m-1")
        assert (again.state, again.duplicate) == ("expired", True)
        await trio.sleep(86_400)
        assert not (await engine.send_message("paid", message_id="m-1")).duplicate


PAYLOADS: list[tuple[Any, dict[str, Any]]] = [
    (None, {}),
    ({}, {}),
    ({"a": 1, "b": [1, {"c": None}]}, {"a": 1, "b": [1, {"c": None}]}),
    ("text", {"paid": "text"}),
    ([1, 2], {"paid": [1, 2]}),
    (Decimal("1.10"), {"paid": Decimal("1.10")}),
    (2**70, {"paid": 2**70}),
    ({"umlaut": "ä€\N{GRINNING FACE}"}, {"umlaut": "ä€\N{GRINNING FACE}"}),
]


@pytest.mark.parametrize("payload, written", PAYLOADS, ids=str)
@pytest.mark.parametrize("order", ["before", "after"])
async def test_payloads(store: Store, clock: VirtualClock, payload: Any, written: dict[str, Any], order: str) -> None:
    """A record is written by name, anything else under the message's name, null not at all; values keep their types."""
    async with opened(store, clock, receiving()) as engine:
        if order == "before":
            await engine.send_message("paid", payload=payload)
        instance = await engine.start("receiver")
        if order == "after":
            await engine.send_message("paid", payload=payload)
        variables = (await instance.wait()).variables
        assert variables == written
        assert {name: type(value) for name, value in variables.items()} == {n: type(v) for n, v in written.items()}


async def test_refuses(store: Store, clock: VirtualClock) -> None:
    """A message without name, with a negative time to live, or with what cannot be stored is refused; nothing is
    kept.
    """
    async with opened(store, clock, receiving()) as engine:
        with pytest.raises(InvalidRequest, match="name"):
            await engine.send_message("")
        with pytest.raises(InvalidRequest, match="-1"):
            await engine.send_message("paid", time_to_live=-1)
        with pytest.raises(UnstorableValue):
            await engine.send_message("paid", payload=object())
        with pytest.raises(UnstorableValue):
            await engine.send_message("paid", key={1, 2})
        assert await (await engine.start("receiver")).status() is Status.ACTIVE


async def test_payload_with_a_bad_name(store: Store, clock: VirtualClock) -> None:
    """A payload that cannot be written is consumed and is an incident: it does not come back for ever."""
    async with opened(store, clock, receiving()) as engine:
        instance = await engine.start("receiver")
        outcome = await engine.send_message("paid", payload={"": 1})
        assert outcome.state == "consumed"
        with pytest.raises(InstanceStalled) as stalled:
            await instance.wait()
        await engine.incidents.resolve(instance.id, stalled.value.incidents[0].id, {"n": 1})
        assert (await instance.wait()).variables == {"n": 1}


# ------------------------------------------------------------------ receivers that go away


def _ending() -> Definitions:
    """Waits for a message in one branch, and is ended by another when its handler returns."""
    built = ProcessBuilder("ending")
    fork = built.start("s").parallel("fork")
    fork.catch("wait", on=message("paid")).end("e1")
    fork.service("work").end("e2", on=terminate())
    return built.build()


@pytest.mark.parametrize("points", range(14))
async def test_receiver_that_ends_at_the_same_moment(store: Store, clock: VirtualClock, points: int) -> None:
    """A message whose receiver ends while it is on its way is matched again: to the next one that waits, at any timing.

    The sender is told what became of it, never an error.
    """
    gate = Gate()
    async with opened(store, clock, _ending(), receiving(), handlers=registry(work=gate)) as engine:
        first = await engine.start("ending")
        await gate.entered.wait()
        second = await engine.start("receiver")
        await parked_but(engine, 1)
        outcomes = []

        async def sends() -> None:
            outcomes.append(await engine.send_message("paid", message_id="m", payload={"n": 1}))

        async with trio.open_nursery() as nursery:
            gate.let.set()
            for _ in range(points):
                await trio.lowlevel.checkpoint()
            nursery.start_soon(sends)
        ended = await first.wait()
        assert ended.status is Status.TERMINATED
        if ended.variables == {}:
            with trio.fail_after(31):
                assert (await second.wait()).variables == {"n": 1}
            assert outcomes[0].state in {"consumed", "assigned", "buffered"}
        else:
            assert outcomes[0].instance_id == first.id
            assert await second.status() is Status.ACTIVE
        final = await engine.send_message("paid", message_id="m")
        assert final.duplicate
        assert (final.state, final.instance_id) == ("consumed", second.id if ended.variables == {} else first.id)


async def parked_but(engine: Engine, count: int) -> None:
    """Wait until only so many instances are resident."""
    await until(lambda: engine.statistics().resident == count)


@pytest.mark.parametrize("points", range(14))
async def test_nobody_else_waits(store: Store, clock: VirtualClock, points: int) -> None:
    """Where nobody else waits, the message of a receiver that ended is buffered again, and the sender is not told
    an error.
    """
    gate = Gate()
    async with opened(store, clock, _ending(), receiving(), handlers=registry(work=gate)) as engine:
        first = await engine.start("ending")
        await gate.entered.wait()
        await trio.sleep(1)
        outcomes = []

        async def sends() -> None:
            outcomes.append(await engine.send_message("paid", message_id="m", payload={"n": 1}))

        async with trio.open_nursery() as nursery:
            gate.let.set()
            for _ in range(points):
                await trio.lowlevel.checkpoint()
            nursery.start_soon(sends)
        ended = await first.wait()
        if ended.variables == {}:
            assert outcomes[0].state in {"assigned", "buffered"}
            late = await engine.start("receiver")
            with trio.fail_after(31):
                assert (await late.wait()).variables == {"n": 1}
        else:
            assert (outcomes[0].state, outcomes[0].instance_id) == ("consumed", first.id)


async def test_busy_receiver(store: Store, clock: VirtualClock) -> None:
    """While an instance runs a handler, its other branch's wait takes the message; the second message goes
    elsewhere.
    """
    gate = Gate()
    async with opened(store, clock, _ending(), receiving(), handlers=registry(work=gate)) as engine:
        first = await engine.start("ending")
        await gate.entered.wait()
        second = await engine.start("receiver")
        assert (await engine.send_message("paid")).instance_id == first.id
        assert (await engine.send_message("paid")).instance_id == second.id
        assert (await engine.send_message("paid")).state == "buffered"
        gate.let.set()
        assert (await first.wait()).status is Status.TERMINATED


async def test_sender_who_gives_up(store: Store, clock: VirtualClock) -> None:
    """A sender that is cancelled gives up the answer, not a message that is on its way; repeating tells what became
    of it.
    """
    async with opened(store, clock, receiving()) as engine:
        for points in range(6):
            instance = await engine.start("receiver")
            await parked(engine)
            with trio.CancelScope() as scope:

                async def gives_up(scope: trio.CancelScope = scope, points: int = points) -> None:
                    for _ in range(points):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()

                async with trio.open_nursery() as nursery:
                    nursery.start_soon(gives_up)
                    await engine.send_message("paid", message_id=f"m-{points}")
            again = await engine.send_message("paid", message_id=f"m-{points}")
            assert again.instance_id == instance.id
            assert (await instance.wait()).status is Status.COMPLETED
