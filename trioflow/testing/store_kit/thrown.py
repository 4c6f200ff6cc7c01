"""What an instance throws: messages and signals that are stored with the item that throws them."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from trioflow.checkpoint.records import SIGNAL, Delivery, Message, SubscriptionRow
from trioflow.facts import Status
from trioflow.stores.port import Answer
from trioflow.testing.store_kit.support import Contract, Engine, after_item, message, new_item, subscription

__all__ = ["ThrownContract"]


def _signal(name: str = "go", payload: bytes = b'"now"', **parts: Any) -> Message:
    return message(SIGNAL + name, payload=payload, **parts)


def _waits(instance_id: str, wait: int = 1, name: str = "go", **parts: Any) -> SubscriptionRow:
    return evolve(subscription(instance_id, wait, **parts), name=SIGNAL + name)


def _places(deliveries: tuple[Delivery, ...]) -> list[tuple[str, int]]:
    return [(delivery.instance_id, delivery.wait_id) for delivery in deliveries]


class ThrownContract(Contract):
    """Messages and signals as parts of an item."""

    async def test_message_of_an_item(self, engine: Engine) -> None:
        """It goes to one receiver with the item that throws it, and the answer says to whom."""
        await engine.arm("b", subscription("b"))
        outcome = await engine.stored(new_item("a", messages=(message(message_id="a/1"),)))
        assert _places(outcome.sent) == [("b", 1)]
        assert _places(await engine.store.deliveries("b")) == [("b", 1)]

    async def test_message_that_nobody_waits_for(self, engine: Engine) -> None:
        """It is buffered, like one that is sent from outside."""
        outcome = await engine.stored(new_item("a", messages=(message(),)))
        assert outcome.sent == ()
        armed = await engine.arm("b", subscription("b"))
        assert _places(armed.deliveries) == [("b", 1)]

    async def test_signal_of_an_item(self, engine: Engine) -> None:
        """It reaches all who wait for it, in the order of arming, but none of the thrower's own waits."""
        await engine.arm("b", _waits("b", 1), _waits("b", 2))
        await engine.arm("c", _waits("c"))
        await engine.arm("d", _waits("d", name="other"))
        outcome = await engine.stored(new_item("a", upserts=[_waits("a")], signals=(_signal(),)))
        assert _places(outcome.sent) == [("b", 1), ("b", 2), ("c", 1)]
        assert {delivery.payload for delivery in outcome.sent} == {b'"now"'}
        assert await engine.store.deliveries("a") == ()

    async def test_signal_from_outside(self, engine: Engine) -> None:
        """Stored for those who wait at that moment; who waits later does not get it."""
        await engine.arm("a", _waits("a"))
        sent = await engine.store.broadcast(_signal())
        assert _places(sent) == [("a", 1)]
        armed = await engine.arm("b", _waits("b"))
        assert armed.deliveries == ()

    async def test_two_signals_before_the_first_is_consumed(self, engine: Engine) -> None:
        """Who waits goes on waiting: each is a delivery of its own."""
        await engine.arm("a", _waits("a"))
        for payload in (b"1", b"2"):
            await engine.store.broadcast(_signal(payload=payload))
        assert [delivery.payload for delivery in await engine.store.deliveries("a")] == [b"1", b"2"]

    async def test_signal_is_consumed_by_each_for_itself(self, engine: Engine) -> None:
        """Consumed in one instance, it is still there for the other."""
        first, second = (new_item(name, upserts=[_waits(name)]) for name in "ab")
        await engine.commit(first, second)
        one, two = await engine.store.broadcast(_signal())
        await engine.stored(after_item(first, consumed=(one.id,)))
        assert await engine.store.deliveries("a") == ()
        assert _places(await engine.store.deliveries("b")) == [("b", 1)]
        assert (await engine.store.deliveries("b"))[0].payload == b'"now"'
        await engine.stored(after_item(second, consumed=(two.id,)))
        assert await engine.store.deliveries("b") == ()

    async def test_signal_whose_receiver_has_ended(self, engine: Engine) -> None:
        """It is gone with its receiver, and goes to nobody else."""
        first = new_item("a", upserts=[_waits("a")])
        await engine.stored(first)
        await engine.store.broadcast(_signal())
        await engine.stored(after_item(first, status=Status.COMPLETED))
        armed = await engine.arm("b", _waits("b"))
        assert armed.deliveries == ()
        assert await engine.store.undelivered() == ()

    async def test_declined_signal(self, engine: Engine) -> None:
        """A wait that is gone does not want it: it is gone too."""
        first = new_item("a", upserts=[_waits("a")])
        await engine.stored(first)
        (sent,) = await engine.store.broadcast(_signal())
        await engine.stored(after_item(first, declined=(sent.id,), deleted=(("subscription", 1),)))
        armed = await engine.arm("b", _waits("b"))
        assert armed.deliveries == ()

    async def test_tenants_do_not_hear_each_other(self, engine: Engine) -> None:
        """A signal stays in its tenant."""
        await engine.arm("a", _waits("a", tenant="t"))
        assert await engine.store.broadcast(_signal()) == ()
        assert _places(await engine.store.broadcast(_signal(tenant="t"))) == [("a", 1)]

    async def test_item_that_is_sent_again(self, engine: Engine) -> None:
        """An answer that was lost is no second throw; that it was is said, for what it led to is not known."""
        await engine.arm("b", _waits("b"))
        item = new_item("a", signals=(_signal(),), messages=(message(),))
        await engine.stored(item)
        again = await engine.stored(item)
        assert again.is_repeated
        assert again.sent == ()
        assert len(await engine.store.deliveries("b")) == 1

    async def test_item_that_is_refused(self, engine: Engine) -> None:
        """What it throws is not stored either."""
        await engine.arm("b", _waits("b"))
        item = new_item("a")
        await engine.stored(item)
        late = evolve(after_item(item, signals=(_signal(),)), expected=9)
        assert await engine.answers(late) == (Answer.CONFLICT,)
        assert await engine.store.deliveries("b") == ()
