"""A commit: prechecks tell each item's answer, then the rows of all accepted items are written table by table."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson
from attrs import define, frozen

from trioflow.checkpoint.records import Delivery, Item, NewInstance, SubscriptionRow
from trioflow.facts import TERMINAL
from trioflow.stores.port import Answer, CommitAnswer, Outcome, Owner
from trioflow.stores.sqlite._columns import micros
from trioflow.stores.sqlite._messages import Settling, broadcast, deliveries_of, looks_for_deliveries, send
from trioflow.stores.sqlite._waits import WaitWriter

__all__ = ["UNFIT", "Commit", "is_current"]

UNFIT: Final = (
    *(sqlite3.DataError, sqlite3.IntegrityError, sqlite3.ProgrammingError),
    *(ArithmeticError, ValueError, TypeError),
)
"""What is wrong with what was given.  A full disk, a lock or a broken file is not: that is everybody's."""

_TERMINAL: Final = frozenset(str(status) for status in TERMINAL)

_HEADS: Final = """
SELECT instance_id, root_id, process_key, version, status, record_version, commit_id, owner, incarnation,
    failures <> 0 OR drift <> ''
FROM trioflow_instances WHERE group_id = ? AND instance_id IN (SELECT value FROM json_each(?))
"""

_INSERT: Final = """
INSERT INTO trioflow_instances (
    group_id, instance_id, root_id, parent_id, process_key, version, digest, digest_algorithm, document_schema, created,
    tenant, business_key, status, updated, reason, has_incidents, record_version, commit_id, owner, incarnation
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?)
"""

# A commit of something that was applied proves that the instance can be loaded: what was noted of trouble goes.
_UPDATE: Final = """
UPDATE trioflow_instances SET
    status = ?, updated = ?, reason = ?, has_incidents = ?, record_version = ?, commit_id = ?,
    owner = ?, incarnation = ?
WHERE group_id = ? AND instance_id = ?
"""

_CLEAR_TROUBLE: Final = """
UPDATE trioflow_instances SET drift = '', failures = 0, failure = '', retry_at = NULL
WHERE group_id = ? AND instance_id = ? AND (failures <> 0 OR drift <> '')
"""

_RELEASE: Final = "UPDATE trioflow_instances SET owner = NULL, incarnation = 0 WHERE group_id = ? AND instance_id = ?"

_CUT_TAIL: Final = "DELETE FROM trioflow_pieces WHERE group_id = ? AND instance_id = ? AND slot <> 0"

_PIECE: Final = """
INSERT INTO trioflow_pieces (group_id, instance_id, slot, piece) VALUES (?, ?, ?, ?)
ON CONFLICT (group_id, instance_id, slot) DO UPDATE SET piece = excluded.piece
"""

_COUNT: Final = """
INSERT INTO trioflow_counts (group_id, status, instances) VALUES (?, ?, ?)
ON CONFLICT (group_id, status) DO UPDATE SET instances = instances + excluded.instances
"""

_PIN: Final = """
INSERT INTO trioflow_pins (group_id, process_key, version, instances) VALUES (?, ?, ?, ?)
ON CONFLICT (group_id, process_key, version) DO UPDATE SET instances = instances + excluded.instances
"""

# The plus keeps the planner from reading the group's deliveries: it finds them by id.
_DELIVERIES: Final = """
SELECT id, instance_id FROM trioflow_deliveries WHERE +group_id = ? AND id IN (SELECT value FROM json_each(?))
"""


@define(eq=False)
class _Head:
    """What must be known of a row to answer an item, as it will be when the item is written."""

    instance_id: str
    root_id: str
    process_key: str
    version: int
    status: str
    record_version: int
    commit_id: str
    owner: str | None
    incarnation: int
    troubled: int = 0

    def is_owned_by(self, owner: Owner) -> bool:
        """Whether this root is held by that incarnation."""
        return self.owner == owner.engine_id and self.incarnation == owner.incarnation


def is_current(db: sqlite3.Connection, group: int, owner: Owner) -> bool:
    """Whether the engine's row names this incarnation."""
    row = db.execute(
        "SELECT incarnation FROM trioflow_engines WHERE group_id = ? AND engine_id = ?", (group, owner.engine_id)
    ).fetchone()
    return row is not None and row[0] == owner.incarnation


@frozen
class Commit:
    """One batch, to be stored within a transaction that somebody else begins and ends."""

    group: int
    owner: Owner
    now: int
    batch: tuple[Item, ...]

    def run(self, db: sqlite3.Connection) -> CommitAnswer:
        """Store what can be stored; whatever raises here has spoilt the transaction as a whole."""
        return self._run(db, self.batch)

    def _run(self, db: sqlite3.Connection, items: Sequence[Item]) -> CommitAnswer:
        if not is_current(db, self.group, self.owner):
            fenced = Outcome(answer=Answer.FENCED)
            return CommitAnswer(outcomes=(fenced,) * len(items), engine_fenced=True)
        waves = _waves(items)
        return CommitAnswer(outcomes=tuple(outcome for wave in waves for outcome in _Wave(db, self).run(wave)))

    def run_carefully(self, db: sqlite3.Connection) -> CommitAnswer:
        """The same with a savepoint for each item: one that the database refuses leaves the others."""
        answers = [self._alone(db, item) for item in self.batch]
        return CommitAnswer(
            outcomes=tuple(answer.outcomes[0] for answer in answers),
            engine_fenced=any(answer.engine_fenced for answer in answers),
        )

    def _alone(self, db: sqlite3.Connection, item: Item) -> CommitAnswer:
        db.execute("SAVEPOINT item")
        try:
            answer = self._run(db, [item])
        except UNFIT as error:
            db.execute("ROLLBACK TO item")
            reason = f"{type(error).__name__}: {error}"
            answer = CommitAnswer(outcomes=(Outcome(answer=Answer.REFUSED, reason=reason),))
        db.execute("RELEASE item")
        return answer


class _Wave:
    """Items of different instances: none of them depends on the rows of another, but for the head of a new root."""

    def __init__(self, db: sqlite3.Connection, commit: Commit) -> None:
        self._db = db
        self._group = commit.group
        self._owner = commit.owner
        self._now = commit.now
        self._heads: dict[str, _Head] = {}
        self._receivers: dict[int, str] = {}
        self._counts: Counter[str] = Counter()
        self._pins: Counter[tuple[str, int]] = Counter()

    # ---------------------------------------------------------------- answers

    def run(self, items: Sequence[Item]) -> list[Outcome]:
        """Answer and write."""
        self._read(items)
        accepted: list[Item] = []
        answers: list[Answer] = []
        before: list[_Head | None] = []
        repeated: set[str] = set()
        for item in items:
            head = self._heads.get(item.instance_id)
            if head is not None and head.commit_id == item.commit_id:
                answers.append(Answer.STORED)  # stored before; only the answer was lost
                repeated.add(item.instance_id)
                continue
            refused = self._refusal(head, item)
            answers.append(refused or Answer.STORED)
            if refused is None:
                accepted.append(item)
                before.append(head)
                self._heads[item.instance_id] = self._accepted(head, item)
        self._write(accepted, before)
        sent = {item.instance_id: self._throw(item) for item in accepted if item.messages or item.signals}
        return [
            self._outcome(item, answer, sent=sent.get(item.instance_id, ()), is_repeated=item.instance_id in repeated)
            for item, answer in zip(items, answers, strict=True)
        ]

    def _throw(self, item: Item) -> tuple[Delivery, ...]:
        """What the item sends: messages, each to one receiver, then signals."""
        found = [send(self._db, self._group, message, self._now).delivery for message in item.messages]
        sent = [delivery for delivery in found if delivery is not None]
        for signal in item.signals:
            sent += broadcast(self._db, self._group, signal, self._now, besides=item.instance_id)
        return tuple(sent)

    def _outcome(self, item: Item, answer: Answer, *, sent: tuple[Delivery, ...], is_repeated: bool) -> Outcome:
        looks = answer is Answer.STORED and looks_for_deliveries(item)
        deliveries = deliveries_of(self._db, self._group, item.instance_id) if looks else ()
        return Outcome(answer=answer, deliveries=deliveries, sent=sent, is_repeated=is_repeated)

    def _read(self, items: Sequence[Item]) -> None:
        self._read_heads({item.instance_id for item in items})
        roots = {head.root_id for head in self._heads.values()}
        roots |= {item.new.root_id for item in items if item.new is not None}
        self._read_heads(roots - self._heads.keys() - {item.instance_id for item in items})
        named = [delivery for item in items for delivery in item.consumed]
        if named:
            found = self._db.execute(_DELIVERIES, (self._group, orjson.dumps(named).decode()))
            self._receivers.update(found.fetchall())

    def _read_heads(self, names: set[str]) -> None:
        if names:
            wanted = orjson.dumps(list(names)).decode()
            for row in self._db.execute(_HEADS, (self._group, wanted)).fetchall():
                self._heads[row[0]] = _Head(*row)

    def _refusal(self, head: _Head | None, item: Item) -> Answer | None:
        if head is None:
            return self._refusal_of_new(item)
        if item.expected == 0:
            return Answer.EXISTS
        if not self._heads[head.root_id].is_owned_by(self._owner):
            return Answer.FENCED
        if head.record_version != item.expected or not self._has_all(item):
            return Answer.CONFLICT
        return None

    def _refusal_of_new(self, item: Item) -> Answer | None:
        new = item.new
        if item.expected != 0 or new is None:
            return Answer.ABSENT
        if new.root_id == new.instance_id:
            return None
        root = self._heads.get(new.root_id)
        return None if root is not None and root.is_owned_by(self._owner) else Answer.FENCED

    def _has_all(self, item: Item) -> bool:
        return all(self._receivers.get(delivery) == item.instance_id for delivery in item.consumed)

    def _accepted(self, head: _Head | None, item: Item) -> _Head:
        """The head as the item makes it; a root that is given up is noted in the roots' heads too."""
        status = str(item.status)
        if head is None:
            assert item.new is not None
            head = self._born(item.new, item)
        after = _Head(
            head.instance_id,
            head.root_id,
            head.process_key,
            head.version,
            status,
            item.expected + 1,
            item.commit_id,
            head.owner,
            head.incarnation,
        )
        is_root = head.root_id == head.instance_id
        if is_root and (item.release or status in _TERMINAL):
            after.owner, after.incarnation = None, 0
        elif item.release:
            root = self._heads[head.root_id]
            root.owner, root.incarnation = None, 0
        return after

    def _born(self, new: NewInstance, item: Item) -> _Head:
        is_root = new.root_id == new.instance_id
        owner = self._owner.engine_id if is_root else None
        incarnation = self._owner.incarnation if is_root else 0
        status = str(item.status)
        return _Head(new.instance_id, new.root_id, new.process_key, new.version, status, 0, "", owner, incarnation)

    # ---------------------------------------------------------------- rows

    def _write(self, items: Sequence[Item], before: Sequence[_Head | None]) -> None:
        if not items:
            return
        self._write_heads(items, before)
        self._write_pieces(items, before)
        WaitWriter(self._db, self._group).write(items, _TERMINAL)
        for item, head in zip(items, before, strict=True):
            self._settle(item, is_new=head is None)
            self._count(item, head)
        self._write_counts()

    def _write_heads(self, items: Sequence[Item], before: Sequence[_Head | None]) -> None:
        inserts: list[tuple[Any, ...]] = []
        updates: list[tuple[Any, ...]] = []
        releases: list[tuple[int, str]] = []
        proven: list[tuple[int, str]] = []
        for item, old in zip(items, before, strict=True):
            head = self._heads[item.instance_id]
            owned = (head.owner, head.incarnation)
            state = (head.status, micros(item.at), item.reason, item.has_incidents)
            if old is None:
                assert item.new is not None
                inserts.append((self._group, *_constant(item.new), *state, item.commit_id, *owned))
            else:
                key = (self._group, item.instance_id)
                updates.append((*state, head.record_version, item.commit_id, *owned, *key))
                if old.troubled and not item.idle:
                    proven.append(key)
            if item.release and head.root_id != head.instance_id:
                releases.append((self._group, head.root_id))
        self._db.executemany(_INSERT, inserts)
        self._db.executemany(_UPDATE, updates)
        self._db.executemany(_CLEAR_TROUBLE, proven)
        self._db.executemany(_RELEASE, releases)

    def _write_pieces(self, items: Sequence[Item], before: Sequence[_Head | None]) -> None:
        cuts = [
            (self._group, item.instance_id)
            for item, head in zip(items, before, strict=True)
            if head is not None and item.slot == 0 and item.piece is not None
        ]
        pieces = [(self._group, item.instance_id, item.slot, item.piece) for item in items if item.piece is not None]
        self._db.executemany(_CUT_TAIL, cuts)
        self._db.executemany(_PIECE, pieces)

    def _settle(self, item: Item, *, is_new: bool) -> None:
        """Deliveries that end, and subscriptions that may match now."""
        ended = str(item.status) in _TERMINAL
        armed = () if ended else tuple(row.wait_id for row in item.upserts if type(row) is SubscriptionRow)
        if not (armed or item.consumed or item.declined or (ended and not is_new)):
            return
        settling = Settling(self._db, self._group, item.instance_id, self._now)
        for wait_id in armed:
            settling.arm(wait_id)
        for delivery in item.consumed:
            settling.consume(delivery)
        for delivery in item.declined:
            settling.decline(delivery)
        if ended:
            settling.decline_all()
        settling.match()

    def _count(self, item: Item, head: _Head | None) -> None:
        status = str(item.status)
        if head is None:
            assert item.new is not None
            self._counts[status] += 1
            if status not in _TERMINAL:
                self._pins[item.new.process_key, item.new.version] += 1
        elif status != head.status:
            self._counts[head.status] -= 1
            self._counts[status] += 1
            if status in _TERMINAL and head.status not in _TERMINAL:
                self._pins[head.process_key, head.version] -= 1

    def _write_counts(self) -> None:
        counts = [(self._group, status, change) for status, change in self._counts.items() if change]
        pins = [(self._group, *pinned, change) for pinned, change in self._pins.items() if change]
        self._db.executemany(_COUNT, counts)
        self._db.executemany(_PIN, pins)


def _constant(new: NewInstance) -> tuple[Any, ...]:
    """The columns that never change, in their order."""
    return (
        new.instance_id,
        new.root_id,
        new.parent_id,
        new.process_key,
        new.version,
        new.digest,
        new.digest_algorithm,
        new.document_schema,
        micros(new.created),
        new.tenant,
        new.business_key,
    )


def _waves(batch: Sequence[Item]) -> Iterator[list[Item]]:
    """Cut a batch where an instance comes a second time: the rows of its first item must be there by then."""
    wave: list[Item] = []
    seen: set[str] = set()
    for item in batch:
        if item.instance_id in seen:
            yield wave
            wave, seen = [], set()
        wave.append(item)
        seen.add(item.instance_id)
    if wave:
        yield wave
