"""The memory store: the whole contract in both modes, and what is its own."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioflow.checkpoint.records import TimerRow
from trioflow.errors import EngineInUse, InvalidRequest
from trioflow.stores.memory import MemoryStore
from trioflow.stores.memory._order import Lines, Ordered
from trioflow.stores.port import Answer
from trioflow.testing.store_kit import Engine, MakeStore, ManualClock, StoreContract, after_item, new_item
from trioflow.testing.store_kit.support import START


class TestVolatile(StoreContract):
    """The contract, volatile."""

    @pytest.fixture
    def make_store(self, store_clock: ManualClock) -> MakeStore:
        """Handles over one memory."""
        return MemoryStore(clock=store_clock).another


class TestRecording(StoreContract):
    """The contract, recording."""

    @pytest.fixture
    def make_store(self, store_clock: ManualClock) -> MakeStore:
        """Handles over one memory."""
        return MemoryStore(clock=store_clock, recording=True).another


# ------------------------------------------------------------------ modes and handles


async def test_commit_now_is_commit() -> None:
    """A volatile store stores without waiting, with the same answers."""
    async with MemoryStore() as store:
        assert store.volatile
        owner = await store.open(group="main", engine_id="one")
        first = new_item("a")
        answer = store.commit_now([first, after_item(first), after_item(first)], owner)
        assert [found.answer for found in answer.outcomes] == [Answer.STORED, Answer.STORED, Answer.CONFLICT]


async def test_recording_goes_through_commit() -> None:
    """A recording store is not volatile and has no short cut around its commits."""
    async with MemoryStore(recording=True) as store:
        assert not store.volatile
        owner = await store.open(group="main", engine_id="one")
        with pytest.raises(InvalidRequest, match="use commit"):
            store.commit_now([new_item("a")], owner)


async def test_abandoned_store_is_found_by_the_next_engine() -> None:
    """After a crash the same object opens again: the lock is free, and what the engine owned is left owned."""
    store = MemoryStore(recording=True)
    crashed = Engine(store, await store.open(group="main", engine_id="one"))
    await crashed.stored(new_item("a"))
    with pytest.raises(EngineInUse, match="'one' of group 'main'"):
        await store.open(group="main", engine_id="one")
    store.abandon()
    owner = await store.open(group="main", engine_id="one")
    assert await store.orphans(owner) == ("a",)
    assert await crashed.answers(new_item("b")) == (Answer.FENCED,)
    await store.close()


async def test_each_engine_has_its_handle() -> None:
    """An open handle is not opened for a second engine; another handle over the same data is."""
    store = MemoryStore()
    await store.open(group="main", engine_id="one")
    with pytest.raises(InvalidRequest, match="another"):
        await store.open(group="main", engine_id="two")
    other = store.another()
    await other.open(group="main", engine_id="two")
    await store.close()
    await other.close()


# ------------------------------------------------------------------ size


async def test_parked_instance_is_small() -> None:
    """A parked instance with a piece of 600 bytes and a timer takes less than 1,600 bytes, all included."""
    number = 10_000
    store = MemoryStore()
    owner = await store.open(group="main", engine_id="one")
    tracemalloc.start()
    try:
        for index in range(number):
            name, due = f"5f0c7a52-1d5e-4c0f-9d1e-{index:012}", START + timedelta(seconds=index)
            item = new_item(name, piece=bytes(600), upserts=[TimerRow(name, 7, due)], at=due, release=True)
            store.commit_now([item], owner)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / number < 1_600
    await store.close()


# ------------------------------------------------------------------ order

_NUMBERS = st.lists(st.integers(0, 5000), max_size=3000)


@given(added=_NUMBERS, removed=_NUMBERS, place=st.integers(-1, 5001))
def test_ordered_is_a_sorted_set(added: Sequence[int], removed: Sequence[int], place: int) -> None:
    """Whatever is added and discarded, reading from anywhere gives what a sorted set gives."""
    ordered: Ordered[int] = Ordered()
    for number in set(added):
        ordered.add(number)
    for number in removed:
        ordered.discard(number)
    expected = sorted(set(added) - set(removed))
    assert list(ordered.after(None)) == expected
    assert list(ordered.after(place)) == [number for number in expected if number > place]
    assert bool(ordered) == bool(expected)


@pytest.mark.parametrize("step", [1, -1, 7919])
def test_ordered_holds_many(step: int) -> None:
    """Ten thousand items in rising, falling or scattered order, taken out again one by one from the middle."""
    numbers = [number * step % 10_007 for number in range(10_000)]
    ordered: Ordered[int] = Ordered()
    for number in numbers:
        ordered.add(number)
    left = sorted(numbers)
    assert list(ordered.after(None)) == left
    while left:
        ordered.discard(left.pop(len(left) // 2))
    assert not ordered


def test_line_of_one_and_of_many() -> None:
    """A line is the same to its readers whether it holds none, one or several."""
    lines: Lines[int] = Lines()
    for number in (3, 1, 2):
        lines.add("key", number)
    assert list(lines.after("key")) == [1, 2, 3]
    assert list(lines.after("key", 1)) == [2, 3]
    for number in (1, 3, 9):
        lines.discard("key", number)
    assert list(lines.after("key")) == [2]
    lines.discard("key", 2)
    lines.add("key", 5)
    lines.discard("key", 6)
    assert list(lines.after("key")) == [5]
    assert list(lines.after("key", 5)) == []
    assert list(lines.after("other")) == []
