"""What the crash tests share: stores that keep a chronicle, runs with crashes, and what must hold after them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
import trio
from attrs import define, field, frozen

import trioflow
from tests.crash.scenarios import Scenario, World
from tests.machine.support import differences
from trioflow import Engine, Outcome
from trioflow.checkpoint.documents import Documents
from trioflow.checkpoint.recorder import RESUME
from trioflow.checkpoint.records import Item, Message, TimerRow
from trioflow.errors import StoreError
from trioflow.expressions import Languages
from trioflow.facts import Status
from trioflow.machine.behaviours.tasks import HandlerTask
from trioflow.machine.derive import derive
from trioflow.machine.invariants import violations
from trioflow.machine.state import State, TrackState
from trioflow.runtime.definitions import Programs
from trioflow.runtime.host import Host
from trioflow.runtime.work import Work
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Answer, CommitAnswer, InstanceFilter, Owner, Store, TaskFilter
from trioflow.stores.sqlite import SQLiteStore
from trioflow.testing import VirtualClock
from trioflow.testing.crash import CrashingStore, CrashPoint, SimulatedCrash, run_until_crash
from trioflow.values import ValueCodec

__all__ = [
    "Chronicled",
    "ChronicledMemory",
    "ChronicledSQLite",
    "History",
    "Plan",
    "live_keys",
    "play",
    "prove",
    "prove_folds",
    "resent",
]


@frozen
class Plan:
    """What happens in one life of the engine: something at its ``at``-th operation, or its death after ``seconds``."""

    at: int | None = None
    point: CrashPoint = CrashPoint.BEFORE_COMMIT
    operation: Literal["commit", "claim", "send"] = "commit"
    seconds: float = math.inf


UNDISTURBED = Plan()

DOWNTIME = 600.0
"""Virtual seconds from a crash to the next life: long enough that a deadline which began anew would be seen."""
LONGEST = 5_000.0
"""Virtual seconds that a life may take."""
PUNCTUAL = timedelta(seconds=1)
EVER = datetime(9999, 1, 1, tzinfo=UTC)


@cache
def documents() -> Documents:
    """The reader of pieces: it takes a while to make, and there are thousands of runs."""
    return Documents(ValueCodec())


# ------------------------------------------------------------------ what reached the store


@define(eq=False)
class Chronicle:
    """All that was committed over the lives of one run, as the store took it.

    ``sent`` are the commits that were stored, in order, repetitions included.  ``proven``: the captures whose fold was
    compared with the live state, by commit id; ``tails`` counts those of them that were not a base.  ``due`` and
    ``fired``: of each timer its deadline, and the instance's time when it was gone.  ``running``: for each commit the
    (key, attempt) of the steps that run in it; ``begun``: those of all stored commits.
    """

    slots: dict[str, dict[int, bytes]] = field(factory=dict)
    sent: list[tuple[Item, ...]] = field(factory=list)
    due: dict[tuple[str, int], datetime] = field(factory=dict)
    fired: dict[tuple[str, int], datetime] = field(factory=dict)
    proven: set[str] = field(factory=set)
    last: dict[str, str] = field(factory=dict)
    running: dict[str, set[tuple[str, int]]] = field(factory=dict)
    begun: set[tuple[str, int]] = field(factory=set)
    tails: int = 0

    def prove_fold(self, host: Host, item: Item) -> None:
        """What is stored, and this item over it, folds to the state that the host has at this moment."""
        assert item.piece is not None
        slots = _written(self.slots.get(item.instance_id, {}), item)
        folded = documents().fold(tuple(slots.values()), instance_id=item.instance_id)
        derive(host.program, folded)
        assert differences(host.state, folded) == []
        assert violations(host.program, folded) == []
        self.proven.add(item.commit_id)
        self.running[item.commit_id] = _running(host, folded)
        self.tails += item.slot > 0

    def keep(self, batch: Sequence[Item], answer: CommitAnswer) -> None:
        """A commit was stored: its pieces, and its timers; what is sent again must be told the same."""
        self.sent.append(tuple(batch))
        for item, outcome in zip(batch, answer.outcomes, strict=True):
            assert outcome.answer is Answer.STORED, outcome
            if self.last.get(item.instance_id) != item.commit_id:
                self.last[item.instance_id] = item.commit_id
                self.slots[item.instance_id] = _written(self.slots.get(item.instance_id, {}), item)
                self._keep_timers(item)
                self.begun |= self.running.get(item.commit_id, set())

    def _keep_timers(self, item: Item) -> None:
        for row in item.upserts:
            if isinstance(row, TimerRow) and row.wait_id != RESUME:
                known = self.due.setdefault((row.instance_id, row.wait_id), row.due)
                assert known == row.due, f"the deadline of {row} was moved; it was {known}"
        for kind, wait_id in item.deleted:
            if kind == TimerRow.kind and wait_id != RESUME:
                self.fired.setdefault((item.instance_id, wait_id), item.at)


def _running(host: Host, state: State) -> set[tuple[str, int]]:
    """The (key, attempt) of each step of a handler that runs in a state."""
    executing = [track for track in state.tracks.values() if track.state is TrackState.EXECUTING]
    handled = [track for track in executing if isinstance(host.program.nodes[track.node].behaviour, HandlerTask)]
    return {(Work(state, track, host.program.codec).idempotency_key, track.attempt) for track in handled}


def _written(slots: dict[int, bytes], item: Item) -> dict[int, bytes]:
    assert item.piece is not None
    if item.slot == 0:
        return {0: item.piece}
    assert item.slot == len(slots), f"slot {item.slot} of {item.instance_id} leaves one out"
    return {**slots, item.slot: item.piece}


class ChronicledMemory(MemoryStore):
    """A recording memory store with a chronicle; its handle is opened again after each crash."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock=clock, recording=True)
        self.chronicle = Chronicle()

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Commit and keep."""
        answer = await super().commit(batch, owner)
        self.chronicle.keep(batch, answer)
        return answer

    def reader(self) -> Store:
        """A handle to look with."""
        return self.another()


class ChronicledSQLite(SQLiteStore):
    """An SQLite store with a chronicle.  Processes die here, not machines: so it need not wait for the disk."""

    def __init__(self, path: Path, clock: VirtualClock) -> None:
        super().__init__(path, clock=clock, synchronous="normal")
        self.chronicle = Chronicle()

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Commit and keep."""
        answer = await super().commit(batch, owner)
        self.chronicle.keep(batch, answer)
        return answer

    def reader(self) -> Store:
        """A handle to look with."""
        return SQLiteStore(self.path, clock=self._clock)


Chronicled = ChronicledMemory | ChronicledSQLite


# ------------------------------------------------------------------ what a store holds


async def live_keys(reader: Store, *, group: str = "main") -> set[str]:
    """Return the idempotency keys of all steps that the store holds as begun and not completed."""
    keys: set[str] = set()
    codec = documents().codec
    async with reader:
        await reader.open_reader(group=group)
        programs = Programs(reader, Languages.default(), codec)
        for head in await reader.instances(InstanceFilter(), limit=1_000):
            loaded = await reader.load(head.instance_id)
            assert loaded is not None
            state = documents().fold(loaded.pieces, instance_id=head.instance_id)
            program = await programs.version(head.process_key, head.version)
            derive(program, state)
            handled = {node.id for node in program.nodes.values() if isinstance(node.behaviour, HandlerTask)}
            keys |= _keys(state, handled, codec)
    return keys


def _keys(state: State, handled: set[str], codec: ValueCodec) -> set[str]:
    if state.is_terminal:
        return set()
    return {Work(state, track, codec).idempotency_key for track in state.tracks.values() if track.node in handled}


# ------------------------------------------------------------------ one run


@define(eq=False)
class History:
    """One run of a scenario, from its first life to its end.

    ``live``: for each crash what the store held as begun and not completed; ``down``: when nothing was running.
    ``commits``: those of the last life.
    """

    world: World
    store: Chronicled
    outcomes: tuple[Outcome, ...] = ()
    live: list[set[str]] = field(factory=list)
    down: list[tuple[datetime, datetime]] = field(factory=list)
    commits: int = 0
    reached: int = 0
    """How many of the planned crash points were reached."""

    @property
    def runs(self) -> Counter[tuple[str, int]]:
        """How often each (key, attempt) ran."""
        return Counter((run.key, run.attempt) for run in self.world.runs)

    @property
    def keys(self) -> set[str]:
        """The keys of all steps that ran."""
        return {run.key for run in self.world.runs}

    @property
    def instances(self) -> int:
        """How many there were."""
        return len(self.outcomes)


async def play(scenario: Scenario, store: Chronicled, clock: VirtualClock, *plans: Plan) -> History:
    """Run a scenario to its end; each life but the last one has its plan."""
    history = History(World(begun=store.chronicle.begun), store)
    for plan in (*plans, UNDISTURBED):
        if await _live(scenario, history, clock, plan):
            return history
        history.live.append(await live_keys(store.reader()))
        since = clock.now()
        await trio.sleep(DOWNTIME)
        history.down.append((since, clock.now()))
        history.world.life += 1
    raise AssertionError("the last life has no crash")


async def _live(scenario: Scenario, history: History, clock: VirtualClock, plan: Plan) -> bool:
    """One life; False: it ended with a crash."""
    store = CrashingStore(history.store, at=plan.at, point=plan.point, operation=plan.operation)
    world = history.world
    handlers = store.guarded(scenario.handlers(world))

    async def life() -> tuple[Outcome, ...]:
        with trio.fail_after(LONGEST):
            async with trioflow.open_engine(
                store, handlers=handlers, deploy=[scenario.model()], clock=clock, grace=0
            ) as engine:
                return await _persistently(scenario, engine, world)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_crash_after, store, plan.seconds)
        try:
            history.outcomes = await run_until_crash(store, life)
        except SimulatedCrash:
            history.reached += 1
            return False
        finally:
            nursery.cancel_scope.cancel()
    history.reached += store.reached
    history.commits = store.commits
    return True


async def _persistently(scenario: Scenario, engine: Engine, world: World) -> tuple[Outcome, ...]:
    """A caller whose act the store could not take does it again."""
    while True:
        try:
            return await scenario.drive(engine, world)
        except StoreError:
            await trio.sleep(1)


async def _crash_after(store: CrashingStore, seconds: float) -> None:
    await trio.sleep(seconds)
    store.crash()


# ------------------------------------------------------------------ what must hold


async def prove(scenario: Scenario, history: History, undisturbed: History) -> None:
    """The run came to the same end, kept its word, did no completed step again, and left nothing behind."""
    chronicle = history.store.chronicle
    assert chronicle.proven >= {item.commit_id for batch in chronicle.sent for item in batch}
    assert history.world.early == [], "steps ran before all that led to them was stored"
    assert history.world.broken == [], "acts were answered before they were stored"
    assert history.outcomes == undisturbed.outcomes
    assert history.runs.keys() == undisturbed.runs.keys()
    _prove_no_repetition(history)
    _prove_timers(history)
    await _prove_nothing_left(scenario, history)


def _prove_no_repetition(history: History) -> None:
    """In one life each attempt runs once; what the store knew as completed at a crash does not run after it."""
    assert max(Counter(history.world.runs).values()) == 1
    for number, live in enumerate(history.live, start=1):
        before = {run.key for run in history.world.runs if run.life <= number}
        after = {run.key for run in history.world.runs if run.life > number}
        assert before & after <= live, f"completed, and run again after crash {number}: {before & after - live}"


def resent(history: History) -> bool:
    """Whether some commit was sent a second time, next after the first and just the same."""
    sent = history.store.chronicle.sent
    return any(first == second for first, second in pairwise(sent))


def _prove_timers(history: History) -> None:
    """Each timer fires at its recorded deadline, or as soon as an engine lives again (``keep`` sees a moved one)."""
    chronicle = history.store.chronicle
    assert chronicle.fired.keys() == chronicle.due.keys()
    for timer, due in chronicle.due.items():
        moments = [due, *(until for _, until in history.down if until > due)]
        assert any(moment <= chronicle.fired[timer] <= moment + PUNCTUAL for moment in moments)


async def _prove_nothing_left(scenario: Scenario, history: History) -> None:
    """No wait, no incident, no delivery, no pin and no owner of an ended instance is in the store; counts are right."""
    store: Store = history.store
    async with store:
        owner = await store.open(group="main", engine_id="main")
        heads = await store.instances(InstanceFilter())
        assert len(heads) == history.instances
        assert [head.instance_id for head in heads if head.owner is not None or not head.status.is_terminal] == []
        assert await store.timers(after=None, until=EVER, limit=10) == ()
        assert await store.incidents(state=None) == ()
        assert await store.undelivered() == ()
        assert await store.orphans(owner) == ()
        assert await store.pins() == {}
        expected = Counter(outcome.status for outcome in history.outcomes)
        assert await store.counts() == {status: expected[status] for status in Status}
        await _prove_nobody_waits(scenario, store)


async def _prove_nobody_waits(scenario: Scenario, store: Store) -> None:
    assert await store.tasks(TaskFilter()) == ()
    write = documents().write_value
    for name, key in scenario.messages:
        text = None if key is None else write(key).decode()
        sent = await store.send(Message(name=name, payload=write(None), key=text, business_key="17"))
        assert sent.state == "buffered", f"somebody waits for {name!r} still"


def prove_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every capture of every host proves that what is stored folds to the live state."""
    capture = Host.capture

    def proving(host: Host) -> Item | None:
        item = capture(host)
        if item is not None:
            crashing = host.shell.store
            assert isinstance(crashing, CrashingStore)
            chronicled = crashing._inner
            assert isinstance(chronicled, ChronicledMemory | ChronicledSQLite)
            chronicled.chronicle.prove_fold(host, item)
        return item

    monkeypatch.setattr(Host, "capture", proving)
