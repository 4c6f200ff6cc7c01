"""What a commit does, and what it never does."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio

from trioflow.checkpoint.records import InstanceHead, Item
from trioflow.facts import Status
from trioflow.stores.port import Answer, InstanceFilter, Loaded
from trioflow.testing.store_kit.support import START, Contract, Engine, after_item, new_item, subscription


class CommitContract(Contract):
    """Compare-and-set, batches, lost acknowledgements, pieces, terminal items, listings and counts."""

    async def test_every_column_comes_back(self, engine: Engine) -> None:
        """The head has what the item said, times to the microsecond, and text of any script."""
        created = new_item("ä/名前 😀", business_key="Bestellung №1", tenant="küche", process_key="заказ", version=3)
        item = after_item(created, status=Status.SUSPENDED, reason="warte ☕", has_incidents=True, piece=b"\x00\xff")
        await engine.commit(created, item)
        assert item.new is None
        loaded = await _load(engine, "ä/名前 😀")
        assert loaded.head == InstanceHead(
            instance_id="ä/名前 😀",
            root_id="ä/名前 😀",
            process_key="заказ",
            version=3,
            digest="0123456789ab",
            digest_algorithm=1,
            document_schema=1,
            status=Status.SUSPENDED,
            created=START,
            updated=START + timedelta(seconds=1),
            tenant="küche",
            business_key="Bestellung №1",
            reason="warte ☕",
            has_incidents=True,
            record_version=2,
            commit_id=item.commit_id,
            owner="one",
            incarnation=engine.owner.incarnation,
        )
        assert loaded.pieces == (b"\x00\xff",)
        assert loaded.head == await engine.store.head("ä/名前 😀")
        assert loaded.head.updated.utcoffset() == timedelta(0)

    async def test_absent(self, engine: Engine) -> None:
        """What is not there is None to read, and an update of it is ABSENT."""
        assert await engine.store.load("a") is None
        assert await engine.store.head("a") is None
        assert await engine.answers(after_item(new_item("a"))) == (Answer.ABSENT,)
        assert await engine.store.head("a") is None

    async def test_compare_and_set(self, engine: Engine) -> None:
        """Only the item that knows the row's version is stored; the other changes nothing."""
        first = new_item("a")
        second, rival = after_item(first, piece=b"second"), after_item(first, piece=b"rival")
        assert await engine.answers(first, second) == (Answer.STORED, Answer.STORED)
        assert await engine.answers(rival) == (Answer.CONFLICT,)
        loaded = await _load(engine, "a")
        assert (loaded.head.record_version, loaded.head.commit_id) == (2, second.commit_id)
        assert loaded.pieces == (b"second",)

    async def test_existing_id(self, engine: Engine) -> None:
        """A second instance of the same id is EXISTS, and the first is untouched."""
        assert await engine.answers(new_item("a", piece=b"first")) == (Answer.STORED,)
        assert await engine.answers(new_item("a", piece=b"second")) == (Answer.EXISTS,)
        assert (await _load(engine, "a")).pieces == (b"first",)

    async def test_items_answer_each_by_itself(self, engine: Engine) -> None:
        """In one batch those that can be stored are, whatever becomes of the others; answers keep the order."""
        there, parked = new_item("there"), new_item("parked", release=True)
        await engine.commit(there, parked)
        answers = await engine.answers(
            new_item("new"),
            new_item("there"),
            after_item(there, expected=7),
            after_item(parked),
            after_item(new_item("absent")),
            after_item(there, piece=b"last"),
        )
        assert answers == (
            *(Answer.STORED, Answer.EXISTS, Answer.CONFLICT, Answer.FENCED, Answer.ABSENT),
            Answer.STORED,
        )
        assert (await _load(engine, "there")).pieces == (b"last",)
        assert await engine.store.head("new") is not None

    async def test_empty_batch(self, engine: Engine) -> None:
        """An empty batch has an empty answer."""
        assert await engine.commit() == ()

    async def test_large_batch(self, engine: Engine) -> None:
        """A thousand items are one batch like any other."""
        batch = [new_item(f"i{number:04}", upserts=[subscription(f"i{number:04}")]) for number in range(1000)]
        assert set(await engine.answers(*batch)) == {Answer.STORED}
        assert (await engine.store.counts())[Status.ACTIVE] == 1000

    @pytest.mark.parametrize("changes", [{}, {"release": True}, {"status": Status.COMPLETED}])
    async def test_lost_acknowledgement(self, engine: Engine, changes: dict[str, object]) -> None:
        """The same item again is STORED without being done twice, also when it gave the ownership up."""
        first = new_item("a")
        second = after_item(first, piece=b"second", **changes)
        for item in (first, first, second, second):
            await engine.stored(item)
        loaded = await _load(engine, "a")
        assert (loaded.head.record_version, loaded.pieces) == (2, (b"second",))
        assert sum((await engine.store.counts()).values()) == 1

    async def test_lost_acknowledgement_of_an_older_commit_is_a_conflict(self, engine: Engine) -> None:
        """Only the last commit is known again: an older one was followed by another, so its sender is behind."""
        first = new_item("a")
        second = after_item(first)
        await engine.commit(first, second, after_item(second))
        assert await engine.answers(first, second) == (Answer.EXISTS, Answer.CONFLICT)

    async def test_lost_acknowledgement_looks_deliveries_up_again(self, engine: Engine) -> None:
        """An item sent again is told what is assigned to its instance now."""
        await engine.send()
        item = new_item("a", upserts=[subscription("a")])
        first = await engine.stored(item)
        assert [delivery.wait_id for delivery in first.deliveries] == [1]
        again = await engine.stored(item)
        assert again.deliveries == first.deliveries
        assert (first.is_repeated, again.is_repeated) == (False, True)

    async def test_cancelled_commit_is_done(self, engine: Engine) -> None:
        """Cancelling who waits for a commit never undoes it nor leaves it half done."""
        with trio.CancelScope() as scope:
            scope.cancel()
            await engine.commit(*(new_item(f"i{number}", upserts=[subscription(f"i{number}")]) for number in range(9)))
        heads = await engine.store.instances(InstanceFilter())
        assert len(heads) in {0, 9}
        assert (await engine.store.counts())[Status.ACTIVE] == len(heads)

    async def test_pieces_in_slot_order(self, engine: Engine) -> None:
        """Tail slots come back in order, a slot is overwritten in place, and a new base deletes the tail."""
        item = new_item("a", piece=b"base")
        await engine.stored(item)
        for slot in (2, 1, 3, 2):
            item = after_item(item, slot=slot, piece=f"{slot}@{item.expected}".encode())
            await engine.stored(item)
        assert (await _load(engine, "a")).pieces == (b"base", b"1@1", b"2@3", b"3@2")
        item = after_item(item, slot=0, piece=b"new base")
        await engine.commit(item, after_item(item))
        assert (await _load(engine, "a")).pieces == (b"new base",)

    async def test_ten_megabytes(self, engine: Engine) -> None:
        """A large piece and a large payload come back whole."""
        large = bytes(range(256)) * 40_000
        await engine.stored(new_item("a", piece=large, upserts=[subscription("a")]))
        await engine.send(payload=large)
        assert (await _load(engine, "a")).pieces == (large,)
        assert (await engine.store.deliveries("a"))[0].payload == large

    async def test_terminal_item_cleans_up(self, engine: Engine) -> None:
        """The end takes ownership, index rows and pins with it; status, reason and pieces stay readable."""
        first = new_item("a", upserts=[subscription("a")])
        await engine.stored(first)
        assert await engine.store.pins() == {("order", 1): 1}
        await engine.stored(after_item(first, status=Status.FAILED, reason="stuck", piece=b"end"))
        loaded = await _load(engine, "a")
        assert (loaded.head.status, loaded.head.reason, loaded.head.owner) == (Status.FAILED, "stuck", None)
        assert loaded.pieces == (b"end",)
        assert await engine.store.pins() == {}
        assert (await engine.send()).state == "buffered"

    async def test_started_and_ended_in_one_item(self, engine: Engine) -> None:
        """An instance whose first item is terminal is never owned, pinned or waiting."""
        await engine.stored(new_item("a", status=Status.COMPLETED, upserts=[subscription("a")]))
        assert (await _load(engine, "a")).head.owner is None
        assert await engine.store.pins() == {}
        assert (await engine.send()).state == "buffered"

    async def test_counts_and_pins(self, engine: Engine) -> None:
        """Both follow each item: births, changes of status, ends; every status has a count."""
        one, two = new_item("a", version=1), new_item("b", version=2)
        await engine.commit(one, two, new_item("c", version=2))
        await engine.commit(after_item(one, status=Status.TERMINATED), after_item(two, status=Status.SUSPENDED))
        expected = dict.fromkeys(Status, 0) | {Status.ACTIVE: 1, Status.SUSPENDED: 1, Status.TERMINATED: 1}
        assert await engine.store.counts() == expected
        assert await engine.store.pins() == {("order", 2): 2}

    async def test_refused_items_count_nothing(self, engine: Engine) -> None:
        """What was not stored leaves counts and pins alone."""
        await engine.stored(new_item("a"))
        await engine.commit(new_item("a", status=Status.FAILED), after_item(new_item("b")))
        assert (await engine.store.counts())[Status.ACTIVE] == sum((await engine.store.counts()).values()) == 1
        assert await engine.store.pins() == {("order", 1): 1}

    async def test_paging(self, engine: Engine) -> None:
        """Pages are in the order of ids and have neither gaps nor repetitions."""
        names = [f"i{number:03}" for number in range(25)]
        await engine.commit(*(new_item(name) for name in reversed(names)))
        seen: list[str] = []
        while page := await engine.store.instances(InstanceFilter(), after=seen[-1] if seen else "", limit=10):
            seen += [head.instance_id for head in page]
        assert seen == names

    @pytest.mark.parametrize(
        "where, expected",
        [
            (InstanceFilter(), "abcd"),
            (InstanceFilter(process_key="order"), "abd"),
            (InstanceFilter(business_key="K"), "bc"),
            (InstanceFilter(business_key="K", process_key="order"), "b"),
            (InstanceFilter(status=frozenset({Status.ACTIVE, Status.SUSPENDED})), "abc"),
            (InstanceFilter(status=frozenset()), ""),
            (InstanceFilter(has_incidents=True), "a"),
            (InstanceFilter(has_incidents=False), "bcd"),
            (InstanceFilter(not_resumed=True), ""),
            (InstanceFilter(not_resumed=False), "abcd"),
        ],
    )
    async def test_filters(self, engine: Engine, where: InstanceFilter, expected: str) -> None:
        """Each part of a filter narrows; all must hold."""
        await engine.commit(
            new_item("a", has_incidents=True),
            new_item("b", business_key="K"),
            new_item("c", business_key="K", process_key="refund", status=Status.SUSPENDED),
            new_item("d", status=Status.COMPLETED),
        )
        found = await engine.store.instances(where)
        assert "".join(head.instance_id for head in found) == expected

    async def test_handed_in_containers_are_not_kept(self, engine: Engine) -> None:
        """A batch is read while it is committed: what the caller does to the list afterwards is not seen."""
        batch: list[Item] = [new_item("a"), new_item("b")]
        await engine.store.commit(batch, engine.owner)
        batch.clear()
        assert (await engine.store.counts())[Status.ACTIVE] == 2


async def _load(engine: Engine, instance_id: str) -> Loaded:
    loaded = await engine.store.load(instance_id)
    assert loaded is not None
    return loaded
