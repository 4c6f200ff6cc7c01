"""Who runs, and who owns what."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio

from trioflow.checkpoint.records import TimerRow
from trioflow.errors import EngineInUse, StoreError
from trioflow.facts import Status
from trioflow.stores.port import Answer, InstanceFilter, Loaded, Owner
from trioflow.testing.store_kit.support import START, Contract, Engine, MakeStore, after_item, new_item


class OwnershipContract(Contract):
    """Engines, groups, claims, fencing, what is left behind."""

    async def test_second_engine_of_the_same_id_is_refused(self, engine: Engine, make_store: MakeStore) -> None:
        """A living engine's group and id are taken; the refusal names both."""
        assert engine.owner.engine_id == "one"
        async with make_store() as other:
            with pytest.raises(EngineInUse, match=r"one.*main"):
                await other.open(group="main", engine_id="one")

    async def test_other_ids_and_groups_are_free(self, engine: Engine, make_store: MakeStore) -> None:
        """Another id in the group, and the same id in another group, are other engines."""
        assert engine.owner.engine_id == "one"
        async with make_store() as other, make_store() as elsewhere:
            assert (await other.open(group="main", engine_id="two")).engine_id == "two"
            assert (await elsewhere.open(group="side", engine_id="one")).engine_id == "one"

    async def test_incarnation_is_new_at_each_start(self, make_store: MakeStore) -> None:
        """Two starts of one engine never have the same incarnation, and the later one has the higher."""
        owners: list[Owner] = []
        for _ in range(3):
            async with make_store() as store:
                owners.append(await store.open(group="main", engine_id="one"))
        numbers = [owner.incarnation for owner in owners]
        assert numbers == sorted(set(numbers))

    async def test_one_handle_opens_again_after_close(self, make_store: MakeStore) -> None:
        """Closing twice is once, and a closed handle can be opened again and finds its data."""
        store = make_store()
        engine = Engine(store, await store.open(group="main", engine_id="one"))
        await engine.stored(new_item("a"))
        await store.close()
        await store.close()
        await store.open(group="main", engine_id="one")
        assert await store.head("a") is not None
        await store.close()

    async def test_closed_handle_refuses_work(self, make_store: MakeStore) -> None:
        """What is not open says so, instead of answering that nothing is there."""
        with pytest.raises(StoreError, match="open"):
            await make_store().head("a")

    async def test_missing_group_is_refused_without_create_group(self, engine: Engine, make_store: MakeStore) -> None:
        """With ``create_group=False`` a mistyped group is an error that names it."""
        assert engine.owner.engine_id == "one"
        async with make_store() as other:
            with pytest.raises(StoreError, match="mian"):
                await other.open(group="mian", engine_id="two", create_group=False)
            await other.open(group="main", engine_id="two", create_group=False)

    async def test_groups_do_not_see_each_other(self, engine: Engine, make_store: MakeStore) -> None:
        """The same instance id lives in two groups of one store, each with its own content and counts."""
        await engine.stored(new_item("a", piece=b"main"))
        async with make_store() as store:
            side = Engine(store, await store.open(group="side", engine_id="one"))
            assert await store.head("a") is None
            await side.stored(new_item("a", piece=b"side"))
            assert (await _load(side, "a")).pieces == (b"side",)
            assert (await store.counts())[Status.ACTIVE] == 1
        assert (await _load(engine, "a")).pieces == (b"main",)

    async def test_reader_sees_without_being_an_engine(self, engine: Engine, make_store: MakeStore) -> None:
        """A reader needs no lock and reads what is stored; for a group that is not there it is refused."""
        await engine.stored(new_item("a"))
        async with make_store() as reader:
            await reader.open_reader(group="main")
            assert await reader.head("a") is not None
        async with make_store() as reader:
            with pytest.raises(StoreError, match="nowhere"):
                await reader.open_reader(group="nowhere")

    async def test_new_instance_is_owned_by_its_creator(self, engine: Engine) -> None:
        """A new instance belongs to who stored it, unless it is released in the same item."""
        await engine.commit(new_item("kept"), new_item("parked", release=True))
        kept, parked = await engine.store.head("kept"), await engine.store.head("parked")
        assert kept is not None
        assert (kept.owner, kept.incarnation) == ("one", engine.owner.incarnation)
        assert parked is not None
        assert parked.owner is None

    async def test_claim_takes_and_loads(self, engine: Engine) -> None:
        """Claiming a parked instance returns it owned; claiming it again returns it too."""
        await engine.stored(new_item("a", piece=b"base", release=True))
        for _ in range(2):
            loaded = await engine.store.claim("a", engine.owner)
            assert loaded is not None
            assert loaded.pieces == (b"base",)
            assert loaded.head.owner == "one"

    async def test_claim_of_what_cannot_be_claimed(self, engine: Engine, make_store: MakeStore) -> None:
        """Absent, terminal, and owned by another living engine: None."""
        await engine.commit(new_item("done", status=Status.COMPLETED), new_item("mine"))
        assert await engine.store.claim("absent", engine.owner) is None
        assert await engine.store.claim("done", engine.owner) is None
        async with make_store() as store:
            owner = await store.open(group="main", engine_id="two")
            assert await store.claim("mine", owner) is None

    async def test_contended_claim_has_one_winner(self, engine: Engine, make_store: MakeStore) -> None:
        """Of two engines that claim the same parked instances at once, each instance goes to exactly one."""
        names = [f"i{number}" for number in range(20)]
        await engine.commit(*(new_item(name, release=True) for name in names))
        won: dict[str, list[str]] = {name: [] for name in names}

        async def claim_all(rival: Engine) -> None:
            for name in names:
                if await rival.store.claim(name, rival.owner) is not None:
                    won[name].append(rival.owner.engine_id)

        async with make_store() as store:
            rival = Engine(store, await store.open(group="main", engine_id="two"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(claim_all, engine)
                nursery.start_soon(claim_all, rival)
        assert [len(winners) for winners in won.values()] == [1] * len(names)

    async def test_orphans_are_what_earlier_incarnations_left(self, make_store: MakeStore) -> None:
        """The next start finds the owned live roots in pages, not the parked, ended or children; claimed ones go."""
        async with make_store() as store:
            first = Engine(store, await store.open(group="main", engine_id="one"))
            await first.commit(
                *(new_item(name) for name in "bca"),
                new_item("parked", release=True),
                new_item("done", status=Status.FAILED),
                new_item("child", root_id="a"),
            )
            assert await store.orphans(first.owner) == ()
        async with make_store() as store:
            owner = await store.open(group="main", engine_id="one")
            assert await store.orphans(owner, limit=2) == ("a", "b")
            assert await store.orphans(owner, after="b") == ("c",)
            assert await store.claim("b", owner) is not None
            assert await store.orphans(owner) == ("a", "c")

    async def test_orphans_are_those_of_the_same_engine(self, engine: Engine, make_store: MakeStore) -> None:
        """Another engine's instances are not orphans of this one."""
        await engine.stored(new_item("a"))
        async with make_store() as store:
            assert await store.orphans(await store.open(group="main", engine_id="two")) == ()

    async def test_earlier_incarnation_is_fenced(self, make_store: MakeStore) -> None:
        """What a crashed start still sends is fenced as a whole, stores nothing and claims nothing."""
        first = new_item("a")
        async with make_store() as store:
            zombie = Engine(store, await store.open(group="main", engine_id="one"))
            await zombie.stored(first)
        async with make_store() as store:
            await store.open(group="main", engine_id="one")
            answer = await store.commit((after_item(first), new_item("b")), zombie.owner)
            assert answer.engine_fenced
            assert [outcome.answer for outcome in answer.outcomes] == [Answer.FENCED] * 2
            assert await store.claim("a", zombie.owner) is None
            assert await store.head("b") is None

    async def test_released_instance_is_fenced(self, engine: Engine) -> None:
        """After the release the former owner cannot write before it claims again."""
        first = new_item("a")
        parked = after_item(first, release=True)
        await engine.commit(first, parked)
        late = after_item(parked)
        assert await engine.answers(late) == (Answer.FENCED,)
        await engine.store.claim("a", engine.owner)
        assert await engine.answers(late) == (Answer.STORED,)

    async def test_a_tree_is_owned_through_its_root(self, engine: Engine) -> None:
        """A child is stored by who owns the root, claimed with the tree, and fenced with it."""
        root, child = new_item("root"), new_item("child", root_id="root")
        assert await engine.answers(root, child) == (Answer.STORED, Answer.STORED)
        head = await engine.store.head("child")
        assert head is not None
        assert (head.root_id, head.parent_id, head.owner) == ("root", "root", None)
        await engine.stored(after_item(root, release=True))
        assert await engine.answers(after_item(child)) == (Answer.FENCED,)
        assert await engine.answers(new_item("late", root_id="root")) == (Answer.FENCED,)
        assert await engine.store.claim("child", engine.owner) is not None
        assert await engine.answers(after_item(child)) == (Answer.STORED,)

    async def test_end_of_a_child_keeps_the_tree(self, engine: Engine) -> None:
        """A terminal child does not give the tree up; the terminal root does."""
        root, child = new_item("root"), new_item("child", root_id="root")
        await engine.commit(root, child, after_item(child, status=Status.COMPLETED))
        assert (await _load(engine, "root")).head.owner == "one"
        await engine.stored(after_item(root, status=Status.COMPLETED))
        assert (await _load(engine, "root")).head.owner is None

    async def test_failure_to_load_is_counted(self, engine: Engine) -> None:
        """Releasing with a failure counts it; the next commit, which proves it loads, clears the marks."""
        first = new_item("a")
        await engine.stored(first)
        for _ in range(2):
            await engine.store.claim("a", engine.owner)
            await engine.store.release(
                "a", engine.owner, failure="no such codec", retry_at=START + timedelta(minutes=1)
            )
        head = (await _load(engine, "a")).head
        assert (head.owner, head.failures, head.failure) == (None, 2, "no such codec")
        assert head.retry_at == START + timedelta(minutes=1)
        assert [found.instance_id for found in await engine.store.instances(InstanceFilter(not_resumed=True))] == ["a"]
        await engine.store.claim("a", engine.owner)
        await engine.stored(after_item(first))
        head = (await _load(engine, "a")).head
        assert (head.failures, head.failure, head.retry_at) == (0, "", None)
        assert await engine.store.instances(InstanceFilter(not_resumed=True)) == ()

    async def test_failure_to_load_is_due_again(self, engine: Engine) -> None:
        """With a time to try again the instance is entered as a timer with the wait id 0; without, it is not."""
        await engine.commit(new_item("a"), new_item("b"))
        await engine.store.release("a", engine.owner, failure="no such codec", retry_at=START)
        await engine.store.release("b", engine.owner, failure="no such codec")
        found = await engine.store.timers(after=None, until=START, limit=9)
        assert found == (TimerRow("a", 0, START),)

    async def test_claim_says_whether_it_was_abandoned(self, make_store: MakeStore) -> None:
        """Only a tree that an earlier incarnation left owned is abandoned, and only for who claims it first."""
        async with make_store() as store:
            first = Engine(store, await store.open(group="main", engine_id="one"))
            await first.commit(new_item("left"), new_item("child", root_id="left"), new_item("parked", release=True))
        async with make_store() as store:
            owner = await store.open(group="main", engine_id="one")
            claimed = [await store.claim(name, owner) for name in ("parked", "child", "left")]
        assert [found is not None and found.abandoned for found in claimed] == [False, True, False]

    async def test_plain_release_counts_nothing(self, engine: Engine) -> None:
        """Without a failure only the ownership goes; and who does not own cannot release."""
        await engine.stored(new_item("a"))
        await engine.store.release("a", Owner(engine_id="two", incarnation=1), failure="mine")
        assert (await _load(engine, "a")).head.owner == "one"
        await engine.store.release("a", engine.owner)
        head = (await _load(engine, "a")).head
        assert (head.owner, head.failures, head.record_version) == (None, 0, 1)

    async def test_drift_mark(self, engine: Engine) -> None:
        """A drifted instance keeps its pieces, is released and listed; an empty reason takes the mark away."""
        await engine.stored(new_item("a", piece=b"old"))
        await engine.store.mark_drift("a", engine.owner, "digest 1 is not 2")
        loaded = await _load(engine, "a")
        assert (loaded.head.drift, loaded.head.owner, loaded.pieces) == ("digest 1 is not 2", None, (b"old",))
        assert [found.instance_id for found in await engine.store.instances(InstanceFilter(not_resumed=True))] == ["a"]
        await engine.store.claim("a", engine.owner)
        await engine.store.mark_drift("a", engine.owner, "")
        head = (await _load(engine, "a")).head
        assert (head.drift, head.owner) == ("", "one")


async def _load(engine: Engine, instance_id: str) -> Loaded:
    loaded = await engine.store.load(instance_id)
    assert loaded is not None
    return loaded
