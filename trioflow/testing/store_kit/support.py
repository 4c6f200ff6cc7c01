"""What the parts of the kit share: a clock that is moved by hand, an opened engine, and short ways to make rows."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from attrs import define, evolve, frozen

from trioflow.checkpoint.records import Item, Message, NewInstance, SubscriptionRow
from trioflow.facts import Status
from trioflow.stores.port import Answer, Outcome, Owner, Sent, Store

__all__ = [
    "START",
    "Contract",
    "Engine",
    "MakeStore",
    "ManualClock",
    "after_item",
    "message",
    "new_item",
    "subscription",
]

START = datetime(2030, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

MakeStore = Callable[[], Store]


@define(eq=False)
class ManualClock:
    """A clock that stands still.  ``held_now``: how many are inside ``held()``; ``holds``: how many ever were."""

    moment: datetime = START
    held_now: int = 0
    holds: int = 0

    def now(self) -> datetime:
        """The moment it was set to."""
        return self.moment

    def advance(self, seconds: float) -> None:
        """Move on."""
        self.moment += timedelta(seconds=seconds)

    @contextlib.contextmanager
    def _hold(self) -> Iterator[None]:
        self.held_now += 1
        self.holds += 1
        try:
            yield
        finally:
            self.held_now -= 1

    def held(self) -> contextlib.AbstractContextManager[None]:
        """Count who holds it."""
        return self._hold()


@frozen
class Engine:
    """An opened handle and who owns through it."""

    store: Store
    owner: Owner

    async def commit(self, *batch: Item) -> tuple[Outcome, ...]:
        """Commit a batch as this engine."""
        return (await self.store.commit(batch, self.owner)).outcomes

    async def answers(self, *batch: Item) -> tuple[Answer, ...]:
        """Commit a batch; the answers alone."""
        return tuple(outcome.answer for outcome in await self.commit(*batch))

    async def stored(self, item: Item) -> Outcome:
        """Commit one item that must be stored."""
        (outcome,) = await self.commit(item)
        assert outcome.answer is Answer.STORED, outcome
        return outcome

    async def arm(self, instance_id: str, *rows: SubscriptionRow, **columns: Any) -> Outcome:
        """Make an instance with subscriptions."""
        return await self.stored(new_item(instance_id, upserts=rows, **columns))

    async def send(self, name: str = "paid", **parts: Any) -> Sent:
        """Send a message."""
        return await self.store.send(message(name, **parts))


class Contract:
    """The fixtures of each part of the kit."""

    @pytest.fixture
    def store_clock(self) -> ManualClock:
        """The clock of every handle that ``make_store`` gives."""
        return ManualClock()

    @pytest.fixture
    def make_store(self) -> MakeStore:
        """The adapter's factory."""
        raise NotImplementedError(
            "a class that runs the kit gives a fixture make_store: a callable that returns a handle"
        )

    @pytest.fixture
    async def engine(self, make_store: MakeStore) -> AsyncIterator[Engine]:
        """The engine ``one`` of the group ``main``, open."""
        async with make_store() as store:
            yield Engine(store, await store.open(group="main", engine_id="one"))


# ------------------------------------------------------------------ rows


def new_item(
    instance_id: str = "a",
    *,
    root_id: str | None = None,
    process_key: str = "order",
    version: int = 1,
    business_key: str | None = None,
    tenant: str = "",
    piece: bytes | None = b"{}",
    upserts: Sequence[Any] = (),
    **changes: Any,
) -> Item:
    """The item that creates an instance: active, with a base, by a commit id of its own."""
    created = NewInstance(
        instance_id=instance_id,
        root_id=root_id or instance_id,
        parent_id=root_id,
        process_key=process_key,
        version=version,
        digest="0123456789ab",
        digest_algorithm=1,
        document_schema=1,
        created=START,
        tenant=tenant,
        business_key=business_key,
    )
    item = Item(
        instance_id=instance_id,
        commit_id=uuid4().hex,
        expected=0,
        status=Status.ACTIVE,
        at=START,
        new=created,
        piece=piece,
        upserts=tuple(upserts),
    )
    return evolve(item, **changes)


def after_item(item: Item, **changes: Any) -> Item:
    """The next item of the same instance: only index rows, nothing released, unless ``changes`` say more."""
    following = Item(
        instance_id=item.instance_id,
        commit_id=uuid4().hex,
        expected=item.expected + 1,
        status=item.status,
        at=item.at + timedelta(seconds=1),
    )
    return evolve(following, **changes)


def subscription(
    instance_id: str = "a",
    wait_id: int = 1,
    *,
    name: str = "paid",
    key: str | None = None,
    business_key: str | None = None,
    tenant: str = "",
) -> SubscriptionRow:
    """A wait for a message."""
    return SubscriptionRow(instance_id, wait_id, name, key, business_key, tenant)


def message(name: str = "paid", *, payload: bytes = b"{}", **parts: Any) -> Message:
    """A message."""
    return Message(name=name, payload=payload, **parts)
