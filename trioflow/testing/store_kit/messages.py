"""Messages: who gets which, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from attrs import evolve

from trioflow.checkpoint.records import Delivery, Item, Message, SubscriptionRow
from trioflow.facts import Status
from trioflow.stores.port import Answer, Sent
from trioflow.testing.store_kit.support import (
    Contract,
    Engine,
    MakeStore,
    ManualClock,
    after_item,
    message,
    new_item,
    subscription,
)

_KEYED = subscription("a", key='"K"')
_OPEN = subscription("a")
_BUSINESS = subscription("a", business_key="B")
_BOTH = subscription("a", key='"K"', business_key="B")

# The subscription, the message, and how many deliveries that makes.
_TABLE = [
    (_KEYED, message(key='"K"'), 1),
    (_KEYED, message(key='"L"'), 0),
    (_KEYED, message(), 0),
    (_KEYED, message(key='"K"', business_key="B"), 0),
    (_KEYED, message(business_key="B"), 0),
    (_OPEN, message(), 1),
    (_OPEN, message(key='"K"'), 0),
    (_OPEN, message(business_key="B"), 0),
    (_OPEN, message("refunded"), 0),
    (_BUSINESS, message(), 1),
    (_BUSINESS, message(key='"B"'), 1),
    (_BUSINESS, message(key='"K"'), 0),
    (_BUSINESS, message(key="5"), 0),
    (_BUSINESS, message(business_key="B"), 1),
    (_BUSINESS, message(business_key="C"), 0),
    (_BUSINESS, message(key='"K"', business_key="B"), 1),
    (_BUSINESS, message(key='"B"', business_key="C"), 0),
    (_BOTH, message(key='"K"'), 1),
    (_BOTH, message(key='"K"', business_key="B"), 1),
    (_BOTH, message(key='"K"', business_key="C"), 0),
    (_BOTH, message(key='"B"'), 0),
    (_BOTH, message(), 0),
    (subscription("a", tenant="t"), message(), 0),
    (_OPEN, message(tenant="t"), 0),
    (subscription("a", tenant="t", key='{"n":1}'), message(tenant="t", key='{"n":1}'), 1),
    (subscription("a", business_key='ä "q" 名'), message(key='"ä \\"q\\" 名"'), 1),
]


class MessageContract(Contract):
    """Matching, buffering, consumption, deduplication, expiry."""

    # ---------------------------------------------------------------- matching

    @pytest.mark.parametrize("row, sent, matched", _TABLE)
    async def test_matching_when_sent(self, engine: Engine, row: SubscriptionRow, sent: Message, matched: bool) -> None:  # noqa: FBT001  # a column of the table
        """A message finds a subscription exactly where the rule says so."""
        await engine.arm("a", row)
        assert (await engine.store.send(sent)).state == ("assigned" if matched else "buffered")

    @pytest.mark.parametrize("row, sent, matched", _TABLE)
    async def test_matching_when_armed(self, engine: Engine, row: SubscriptionRow, sent: Message, matched: int) -> None:
        """A subscription finds a buffered message exactly where the message would have found the subscription."""
        assert (await engine.store.send(sent)).state == "buffered"
        outcome = await engine.arm("a", row)
        assert len(outcome.deliveries) == matched

    async def test_assignment_says_all(self, engine: Engine) -> None:
        """The sender is told wait, instance and owner; the addressee sees the same delivery with name and payload."""
        await engine.arm("a", subscription("a", 4))
        sent = await engine.send(payload='{"größe":1}'.encode())
        assert sent.delivery is not None
        expected = Delivery(
            id=sent.delivery.id, instance_id="a", wait_id=4, name="paid", payload='{"größe":1}'.encode()
        )
        assert sent == Sent(state="assigned", instance_id="a", delivery=expected, owner="one")
        assert await engine.store.deliveries("a") == (expected,)
        assert await engine.store.deliveries("b") == ()

    async def test_oldest_subscription_first(self, engine: Engine) -> None:
        """Messages go to subscriptions in the order of arming, one to each, then into the buffer."""
        await engine.arm("b", subscription("b"))
        await engine.arm("a", subscription("a", 1), subscription("a", 2))
        got = [await engine.send() for _ in range(4)]
        assert [_place(sent) for sent in got] == [("b", 1), ("a", 1), ("a", 2), None]

    async def test_exact_key_before_keyless(self, engine: Engine) -> None:
        """A younger subscription with the key comes before an older one without."""
        await engine.arm("old", subscription("old", business_key="K"))
        await engine.arm("young", subscription("young", key='"K"'))
        assert [_place(await engine.send(key='"K"')) for _ in range(2)] == [("young", 1), ("old", 1)]

    async def test_upsert_keeps_the_place(self, engine: Engine) -> None:
        """A subscription that is written again, with another key too, stays before those armed after it."""
        first = new_item("a", upserts=[subscription("a", key='"old"')])
        await engine.commit(first, new_item("b", upserts=[subscription("b", key='"new"')]))
        await engine.stored(after_item(first, upserts=(subscription("a", key='"new"'),)))
        assert (await engine.send(key='"old"')).state == "buffered"
        assert _place(await engine.send(key='"new"')) == ("a", 1)

    async def test_rekeyed_subscription_looks_again(self, engine: Engine) -> None:
        """A subscription whose key changes finds what was buffered for the new key."""
        first = new_item("a", upserts=[subscription("a", key='"old"')])
        await engine.stored(first)
        await engine.send(key='"new"')
        outcome = await engine.stored(after_item(first, upserts=(subscription("a", key='"new"'),)))
        assert [delivery.wait_id for delivery in outcome.deliveries] == [1]

    async def test_oldest_message_first(self, engine: Engine) -> None:
        """Each new subscription gets the oldest message that it matches, over all ways to match."""
        for number, parts in enumerate(({"key": '"B"'}, {}, {"business_key": "B"})):
            await engine.send(payload=b"%d" % number, **parts)
        rows = [subscription("a", wait, business_key="B") for wait in (1, 2, 3)]
        outcome = await engine.arm("a", *rows, business_key="B")
        assert [(got.wait_id, got.payload) for got in outcome.deliveries] == [(1, b"0"), (2, b"1"), (3, b"2")]

    async def test_deleted_subscription_gets_nothing(self, engine: Engine) -> None:
        """A wait that is gone matches no more."""
        item = new_item("a", upserts=[subscription("a")])
        await engine.commit(item, after_item(item, deleted=(("subscription", 1),)))
        assert (await engine.send()).state == "buffered"

    async def test_arming_and_sending_at_once_never_miss(self, engine: Engine, make_store: MakeStore) -> None:
        """Whichever of the two is stored later sees the other: no message stays beside a wait for it."""
        async with make_store() as store:
            sender = Engine(store, await store.open(group="main", engine_id="two"))

            async def arm(number: int) -> None:
                await engine.arm(f"i{number}", subscription(f"i{number}", key=str(number)))

            async def send(number: int) -> None:
                await sender.send(key=str(number))

            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(arm, number)
                    nursery.start_soon(send, number)
        got = [await engine.store.deliveries(f"i{number}") for number in range(20)]
        assert [len(deliveries) for deliveries in got] == [1] * 20

    # ---------------------------------------------------------------- deliveries

    async def test_release_reports_deliveries(self, engine: Engine) -> None:
        """An item that parks its instance is told what is assigned to it; one that does neither is not."""
        first = new_item("a", upserts=[subscription("a")])
        assert (await engine.stored(first)).deliveries == ()
        sent = await engine.send()
        second = after_item(first)
        assert (await engine.stored(second)).deliveries == ()
        assert (await engine.stored(after_item(second, release=True))).deliveries == (sent.delivery,)

    async def test_undelivered(self, engine: Engine) -> None:
        """The poll finds, in pages by id, what is assigned to instances that nobody owns, children's too."""
        root = new_item("root")
        await engine.commit(root, new_item("child", root_id="root", upserts=[subscription("child")]))
        await engine.arm("owned", subscription("owned", name="x"))
        await engine.arm("parked", subscription("parked", name="y"), release=True)
        for name in ("paid", "x", "y"):
            await engine.send(name)
        assert [found.instance_id for found in await engine.store.undelivered()] == ["parked"]
        await engine.stored(after_item(root, release=True))
        found = await engine.store.undelivered()
        assert [delivery.instance_id for delivery in found] == ["child", "parked"]
        assert await engine.store.undelivered(limit=1) == found[:1]
        assert await engine.store.undelivered(after=found[0].id) == found[1:]
        await engine.store.claim("parked", engine.owner)
        assert [delivery.instance_id for delivery in await engine.store.undelivered()] == ["child"]

    async def test_consumed_in_the_item_that_moves_on(self, engine: Engine) -> None:
        """A consumed delivery is gone, and only a duplicate hears who consumed it."""
        first, delivery = await _assigned(engine, message_id="m1")
        second = after_item(first, consumed=(delivery.id,), deleted=(("subscription", 1),))
        assert (await engine.stored(second)).deliveries == ()
        assert await engine.store.deliveries("a") == ()
        again = await engine.send(message_id="m1")
        assert again == Sent(state="consumed", instance_id="a", duplicate=True)

    async def test_refused_item_consumes_nothing(self, engine: Engine) -> None:
        """A conflict leaves the message assigned."""
        first, delivery = await _assigned(engine)
        assert await engine.answers(after_item(first, expected=9, consumed=(delivery.id,))) == (Answer.CONFLICT,)
        assert await engine.store.deliveries("a") == (delivery,)

    async def test_nothing_is_consumed_twice(self, engine: Engine) -> None:
        """An item that consumes what is not, or no longer, assigned to its instance is a conflict as a whole."""
        first, delivery = await _assigned(engine)
        other = new_item("b")
        await engine.stored(other)
        assert await engine.answers(after_item(other, consumed=(delivery.id,))) == (Answer.CONFLICT,)
        second = after_item(first, consumed=(delivery.id,))
        assert await engine.answers(second) == (Answer.STORED,)
        assert await engine.answers(after_item(second, consumed=(delivery.id,), piece=b"x")) == (Answer.CONFLICT,)

    async def test_subscription_that_stays_gets_the_next(self, engine: Engine) -> None:
        """While a delivery is open the next message waits; when it is consumed and the wait stays, it follows."""
        first, delivery = await _assigned(engine)
        assert (await engine.send(payload=b"2")).state == "buffered"
        outcome = await engine.stored(after_item(first, consumed=(delivery.id,)))
        assert [got.payload for got in outcome.deliveries] == [b"2"]

    async def test_declined_message_goes_to_the_next(self, engine: Engine) -> None:
        """A declined message is matched again, before younger ones."""
        first, delivery = await _assigned(engine, payload=b"1")
        await engine.send(payload=b"2")
        await engine.stored(after_item(first, declined=(delivery.id,), deleted=(("subscription", 1),)))
        assert await engine.store.deliveries("a") == ()
        outcome = await engine.arm("b", subscription("b", 1), subscription("b", 2))
        assert [got.payload for got in outcome.deliveries] == [b"1", b"2"]

    async def test_declined_message_finds_who_waits(self, engine: Engine) -> None:
        """If another subscription waits already, declining assigns to it at once."""
        first, delivery = await _assigned(engine)
        await engine.arm("b", subscription("b"))
        await engine.stored(after_item(first, declined=(delivery.id,), deleted=(("subscription", 1),)))
        (found,) = await engine.store.deliveries("b")
        assert found.id != delivery.id

    async def test_foreign_decline_is_ignored(self, engine: Engine) -> None:
        """Declining what is assigned to another, or to nobody, changes nothing."""
        _, delivery = await _assigned(engine)
        await engine.stored(new_item("b", declined=(delivery.id, 12345)))
        assert await engine.store.deliveries("a") == (delivery,)

    async def test_end_of_the_addressee_declines(self, engine: Engine) -> None:
        """What an instance had not consumed when it ended goes to the next that waits, or back into the buffer."""
        first = new_item("a", upserts=[subscription("a", 1), subscription("a", 2)])
        await engine.stored(first)
        await engine.send(payload=b"1")
        await engine.send(payload=b"2")
        await engine.arm("b", subscription("b"))
        await engine.stored(after_item(first, status=Status.TERMINATED))
        assert await engine.store.deliveries("a") == ()
        assert [got.payload for got in await engine.store.deliveries("b")] == [b"1"]
        assert [got.payload for got in (await engine.arm("c", subscription("c"))).deliveries] == [b"2"]

    # ---------------------------------------------------------------- deduplication and expiry

    async def test_duplicates_hear_the_first_outcome(self, engine: Engine) -> None:
        """The same name and id again stores nothing and tells what became of the first, as of now."""
        first = await engine.send(message_id="m1", payload=b"1")
        assert (first.state, first.duplicate) == ("buffered", False)
        assert await engine.send(message_id="m1", payload=b"2") == evolve(first, duplicate=True)
        outcome = await engine.arm("a", subscription("a", 1), subscription("a", 2))
        assert [got.payload for got in outcome.deliveries] == [b"1"]
        again = await engine.send(message_id="m1")
        assert (again.state, again.delivery, again.owner, again.duplicate) == (
            "assigned",
            outcome.deliveries[0],
            "one",
            True,
        )

    async def test_ids_are_those_of_a_name_and_tenant(self, engine: Engine) -> None:
        """The same id under another name or in another tenant is another message."""
        await engine.send(message_id="m1")
        assert not (await engine.send("refunded", message_id="m1")).duplicate
        assert not (await engine.send(message_id="m1", tenant="t")).duplicate
        assert not (await engine.send()).duplicate

    async def test_racing_duplicates(self, engine: Engine, make_store: MakeStore) -> None:
        """Of the same message sent by many at once, exactly one is no duplicate."""
        results: list[Sent] = []

        async def send(by: Engine) -> None:
            results.append(await by.send(message_id="m1"))

        async with make_store() as store:
            other = Engine(store, await store.open(group="main", engine_id="two"))
            async with trio.open_nursery() as nursery:
                for number in range(10):
                    nursery.start_soon(send, (engine, other)[number % 2])
        assert sorted(sent.duplicate for sent in results) == [False] + [True] * 9

    async def test_buffered_message_expires(self, engine: Engine, store_clock: ManualClock) -> None:
        """Past its time to live a message matches no more, is counted once, and a duplicate hears ``expired``."""
        await engine.send(message_id="m1", time_to_live_seconds=10)
        await engine.send(time_to_live_seconds=20)
        store_clock.advance(10)
        assert (await engine.send(message_id="m1")).state == "expired"
        assert await engine.store.expire() == 1
        assert await engine.store.expire() == 0
        assert (await engine.send(message_id="m1")).state == "expired"
        store_clock.advance(10)
        assert (await engine.arm("a", subscription("a"))).deliveries == ()
        assert await engine.store.expire() == 1

    async def test_assigned_message_does_not_expire(self, engine: Engine, store_clock: ManualClock) -> None:
        """What was assigned in time is kept for its addressee; declined later, it is past its time."""
        first, delivery = await _assigned(engine, time_to_live_seconds=10)
        store_clock.advance(100)
        assert await engine.store.expire() == 0
        assert await engine.store.deliveries("a") == (delivery,)
        await engine.arm("b", subscription("b"))
        await engine.stored(after_item(first, declined=(delivery.id,), deleted=(("subscription", 1),)))
        assert await engine.store.deliveries("b") == ()
        assert await engine.store.expire() == 1

    async def test_ids_are_forgotten_after_their_window(self, engine: Engine, store_clock: ManualClock) -> None:
        """An id is remembered as long as its window, however short its time to live, and then it is free."""
        first, delivery = await _assigned(engine, message_id="m1", time_to_live_seconds=1, dedup_seconds=100)
        await engine.send("other", message_id="m2", time_to_live_seconds=1, dedup_seconds=100)
        await engine.stored(after_item(first, consumed=(delivery.id,), deleted=(("subscription", 1),)))
        store_clock.advance(99)
        await engine.store.expire()
        assert (await engine.send(message_id="m1")).state == "consumed"
        assert (await engine.send("other", message_id="m2")).state == "expired"
        store_clock.advance(1)
        assert not (await engine.send(message_id="m1")).duplicate
        await engine.store.expire()
        assert not (await engine.send("other", message_id="m2")).duplicate

    async def test_id_of_a_kept_message_is_free_after_its_window(
        self, engine: Engine, store_clock: ManualClock
    ) -> None:
        """A message that lives longer than its window stays, beside a new one of the same id."""
        await engine.send(message_id="m1", payload=b"1", dedup_seconds=10)
        store_clock.advance(10)
        assert await engine.store.expire() == 0
        assert not (await engine.send(message_id="m1", payload=b"2")).duplicate
        outcome = await engine.arm("a", subscription("a", 1), subscription("a", 2))
        assert [got.payload for got in outcome.deliveries] == [b"1", b"2"]


def _place(sent: Sent) -> tuple[str, int] | None:
    return None if sent.delivery is None else (sent.delivery.instance_id, sent.delivery.wait_id)


async def _assigned(engine: Engine, **parts: Any) -> tuple[Item, Delivery]:
    """An instance ``a`` whose wait 1 has been assigned a message; its item, and the delivery."""
    item = new_item("a", upserts=[subscription("a")])
    await engine.stored(item)
    sent = await engine.send(**parts)
    assert sent.delivery is not None
    return item, sent.delivery
