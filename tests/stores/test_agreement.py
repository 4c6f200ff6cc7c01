"""Memory and SQLite do the same thing: whatever is asked of both, the answers are equal."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from trioflow.checkpoint.records import Item, TimerRow
from trioflow.facts import Status
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Answer, InstanceFilter, Store
from trioflow.stores.sqlite import SQLiteStore
from trioflow.testing.store_kit import Engine, ManualClock, after_item, new_item
from trioflow.testing.store_kit.support import START, subscription

_INSTANCES = st.sampled_from("abc")
_KEYS = st.sampled_from([None, '"K"', '"B"'])
_BUSINESS = st.sampled_from([None, "B"])
_WAITS = st.integers(1, 3)

_ARM = st.tuples(st.just("arm"), _INSTANCES, _WAITS, _KEYS, _BUSINESS)
_SEND = st.tuples(st.just("send"), _KEYS, _BUSINESS, st.sampled_from([None, "m1", "m2"]), st.sampled_from([5.0, 50.0]))
_MOVE = st.tuples(st.just("move"), _INSTANCES, st.booleans(), st.booleans(), st.booleans())
_OTHER = st.tuples(st.sampled_from(["end", "park", "claim", "child", "tick", "repeat", "rival"]), _INSTANCES)

_COMMANDS = st.lists(st.one_of(_ARM, _SEND, _MOVE, _OTHER), min_size=1, max_size=25)


@define(eq=False)
class _Driver:
    """Plays commands to one store.  What it does next depends on the answers only."""

    engine: Engine
    clock: ManualClock
    last: dict[str, Item] = field(factory=dict)
    heard: list[Any] = field(factory=list)

    async def play(self, number: int, command: tuple[Any, ...]) -> None:
        """Do one command and write down what was heard."""
        await getattr(self, f"_{command[0]}")(f"commit-{number}", *command[1:])

    async def _commit(self, *batch: Item) -> None:
        outcomes = await self.engine.commit(*batch)
        self.heard += outcomes
        for item, outcome in zip(batch, outcomes, strict=True):
            if outcome.answer is Answer.STORED:
                self.last[item.instance_id] = item

    def _next(self, commit_id: str, name: str, **changes: Any) -> Item:
        last = self.last.get(name)
        if last is None:
            return new_item(name, commit_id=commit_id, **{"upserts": (), **changes})
        return after_item(last, commit_id=commit_id, **changes)

    async def _arm(self, commit_id: str, name: str, wait: int, key: str | None, business_key: str | None) -> None:
        rows = (subscription(name, wait, key=key, business_key=business_key), TimerRow(name, wait, START))
        await self._commit(self._next(commit_id, name, upserts=rows))

    async def _send(
        self, _: str, key: str | None, business_key: str | None, message_id: str | None, live: float
    ) -> None:
        parts: dict[str, Any] = {"key": key, "business_key": business_key, "message_id": message_id}
        self.heard.append(
            await self.engine.send(
                **parts, payload=b"%d" % len(self.heard), time_to_live_seconds=live, dedup_seconds=30
            )
        )

    async def _move(self, commit_id: str, name: str, consume: bool, stay: bool, release: bool) -> None:  # noqa: FBT001
        """Take or decline the oldest delivery; its wait stays or goes."""
        found = (await self.engine.store.deliveries(name))[:1]
        ids = tuple(delivery.id for delivery in found)
        gone = () if stay else tuple(("subscription", delivery.wait_id) for delivery in found)
        ended = {"consumed": ids} if consume else {"declined": ids}
        await self._commit(self._next(commit_id, name, deleted=gone, release=release, **ended))

    async def _end(self, commit_id: str, name: str) -> None:
        await self._commit(self._next(commit_id, name, status=Status.COMPLETED))

    async def _park(self, commit_id: str, name: str) -> None:
        await self._commit(
            self._next(commit_id, name, release=True, piece=commit_id.encode(), slot=len(self.heard) % 3)
        )

    async def _claim(self, _: str, name: str) -> None:
        self.heard.append(await self.engine.store.claim(name, self.engine.owner))

    async def _child(self, commit_id: str, name: str) -> None:
        await self._commit(
            new_item(f"{name}-child", root_id=name, commit_id=commit_id, upserts=[subscription(f"{name}-child")])
        )

    async def _tick(self, _: str, __: str) -> None:
        self.clock.advance(10)
        self.heard.append(await self.engine.store.expire())

    async def _repeat(self, _: str, name: str) -> None:
        if name in self.last:
            await self._commit(self.last[name])

    async def _rival(self, commit_id: str, name: str) -> None:
        """Two items of one batch for one instance, of which the second knows nothing of the first."""
        await self._commit(self._next(commit_id, name), self._next(f"{commit_id}-rival", name, piece=b"rival"))

    async def look(self) -> None:
        """Write down all that can be read."""
        store = self.engine.store
        heads = await store.instances(InstanceFilter())
        self.heard += heads
        for head in heads:
            self.heard += [await store.load(head.instance_id), await store.deliveries(head.instance_id)]
        self.heard += [await store.counts(), await store.pins(), await store.undelivered()]
        self.heard.append(await store.timers(after=None, until=START, limit=100))


async def _heard(store: Store, clock: ManualClock, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    async with store:
        driver = _Driver(Engine(store, await store.open(group="main", engine_id="one")), clock)
        for number, command in enumerate(commands):
            await driver.play(number, command)
        await driver.look()
        return driver.heard


@settings(max_examples=60)
@given(commands=_COMMANDS)
def test_stores_agree(commands: Sequence[tuple[Any, ...]]) -> None:
    """Sixty walks of up to 25 commands over three instances, their children and their messages."""

    async def main(folder: str) -> None:
        one, two = ManualClock(), ManualClock()
        reference = await _heard(MemoryStore(clock=one), one, commands)
        path = Path(folder) / "agreement.db"
        assert await _heard(SQLiteStore(path, clock=two, synchronous="normal"), two, commands) == reference

    with tempfile.TemporaryDirectory() as folder:
        trio.run(main, folder)
