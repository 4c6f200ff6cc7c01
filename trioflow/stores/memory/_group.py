"""All data of one group, and the one place where it is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from attrs import evolve

from trioflow.checkpoint.records import (
    Delivery,
    IncidentRow,
    IndexRow,
    InstanceHead,
    Item,
    Message,
    SubscriptionRow,
    TaskRow,
    TimerRow,
)
from trioflow.facts import TERMINAL, Status
from trioflow.stores.clock import Clock
from trioflow.stores.memory._letters import Letter, PostOffice, Waiting
from trioflow.stores.memory._order import Lines, Ordered
from trioflow.stores.memory._registry import Registry
from trioflow.stores.memory._rows import Entry, Row, Trouble, entry_wait, head_of, loaded
from trioflow.stores.memory._waits import WaitIndex, due_of, is_wanted
from trioflow.stores.port import Answer, CommitAnswer, InstanceFilter, Loaded, Outcome, Owner, Sent, TaskFilter

__all__ = ["Group"]

_STORED = Outcome(answer=Answer.STORED)
_REFUSED = {answer: Outcome(answer=answer) for answer in tuple(Answer)}


class Group:
    """The tables of one group.  Every method is one step: it is done when it returns."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.post = PostOffice()
        self.waits = WaitIndex()
        self._rows: dict[str, Row] = {}
        self._ids: Ordered[str] = Ordered()
        self._unsorted: list[str] = []  # new ids: only who lists needs their order
        self._business: Lines[str] = Lines()
        self._troubled: Ordered[str] = Ordered()
        self._counts: Counter[Status] = Counter()
        self._pins: Counter[tuple[str, int]] = Counter()

    # ---------------------------------------------------------------- commit

    def commit(self, batch: Sequence[Item], owner: Owner, clock: Clock) -> CommitAnswer:
        """Store what can be stored, item by item."""
        if not self.registry.is_current(owner):
            return CommitAnswer(outcomes=(_REFUSED[Answer.FENCED],) * len(batch), engine_fenced=True)
        return CommitAnswer(outcomes=tuple([self._answer(item, owner, clock) for item in batch]))

    def _answer(self, item: Item, owner: Owner, clock: Clock) -> Outcome:
        row = self._rows.get(item.instance_id)
        if row is not None and row.commit_id == item.commit_id:
            return evolve(self._outcome(row, item), is_repeated=True)  # stored before; only the answer was lost
        refused = self._refusal(row, item, owner)
        if refused is not None:
            return _REFUSED[refused]
        if row is None:
            row = self._insert(item, owner)
        self._write(row, item, clock)
        if not (item.messages or item.signals):
            return self._outcome(row, item)
        sent = self._throw(item, clock.now())
        return evolve(self._outcome(row, item), sent=sent)

    def _throw(self, item: Item, now: datetime) -> tuple[Delivery, ...]:
        """What the item sends: messages, each to one receiver, then signals."""
        found = [self.send(message, now).delivery for message in item.messages]
        sent = [delivery for delivery in found if delivery is not None]
        for signal in item.signals:
            sent += self.broadcast(signal, now, besides=item.instance_id)
        return tuple(sent)

    def broadcast(self, signal: Message, now: datetime, *, besides: str = "") -> tuple[Delivery, ...]:
        """Store a signal for all who wait for it, in the order of arming."""
        sent: list[Delivery] = []
        for waiting in self.post.all_for(signal):
            if waiting.row.instance_id != besides:
                letter = self.post.hand(signal, waiting, now)
                self._rows[waiting.row.instance_id].receive(letter)
                assert letter.delivery is not None
                sent.append(letter.delivery)
        return tuple(sent)

    def _refusal(self, row: Row | None, item: Item, owner: Owner) -> Answer | None:
        if row is None:
            return self._refusal_of_new(item, owner)
        if item.expected == 0:
            return Answer.EXISTS
        root = row.root or row
        if root.owner != owner.engine_id or root.incarnation != owner.incarnation:
            return Answer.FENCED
        if row.record_version != item.expected or not self._has_all(item):
            return Answer.CONFLICT
        return None

    def _refusal_of_new(self, item: Item, owner: Owner) -> Answer | None:
        new = item.new
        if item.expected != 0 or new is None:
            return Answer.ABSENT
        if new.root_id == new.instance_id:
            return None
        root = self._rows.get(new.root_id)
        held = root is not None and root.owner == owner.engine_id and root.incarnation == owner.incarnation
        return None if held else Answer.FENCED

    def _has_all(self, item: Item) -> bool:
        """Whether what the item consumes is still assigned to it: nothing may be consumed twice."""
        return not item.consumed or all(self._assigned(number, item.instance_id) for number in item.consumed)

    def _assigned(self, delivery_id: int, instance_id: str) -> Letter | None:
        letter = self.post.outgoing.get(delivery_id)
        return letter if letter is not None and letter.receiver == instance_id else None

    @staticmethod
    def _outcome(row: Row, item: Item) -> Outcome:
        if row.inbox is None or not looks_for_deliveries(item):
            return _STORED
        return Outcome(answer=Answer.STORED, deliveries=_deliveries(row))

    # ---------------------------------------------------------------- one item

    def _insert(self, item: Item, owner: Owner) -> Row:
        new = item.new
        assert new is not None
        root = None if new.root_id == new.instance_id else self._rows[new.root_id]
        row = Row(new, root, item.status, item.at, "", 0)
        self._rows[new.instance_id] = row
        self._unsorted.append(new.instance_id)
        if new.business_key is not None:
            self._business.add(new.business_key, new.instance_id)
        self._counts[item.status] += 1
        if item.status not in TERMINAL:
            self._pins[new.process_key, new.version] += 1
        if root is None and not item.release:
            self._own(row, owner)
        return row

    def _write(self, row: Row, item: Item, clock: Clock) -> None:
        row.record_version += 1
        row.commit_id = item.commit_id
        row.updated = item.at
        row.reason = item.reason
        if item.status is not row.status:
            self._set_status(row, item.status)
        trouble = row.trouble if item.idle else None
        if row.trouble is not trouble or row.has_incidents is not item.has_incidents:
            self._set_trouble(row, trouble, has_incidents=item.has_incidents)
        if item.piece is not None:
            row.put_piece(item.slot, item.piece)
        for kind, wait_id in item.deleted:
            self._drop(row, kind, wait_id)
        freed = [waiting for index_row in item.upserts if (waiting := self._upsert(row, index_row)) is not None]
        ended = item.status in TERMINAL
        if ended:
            self._drop_all(row)
        if freed or item.consumed or item.declined or (ended and row.inbox):
            self._settle(row, item, freed, clock.now())
        if item.release or (ended and row.root is None):
            self._disown(row.root or row)

    def _set_status(self, row: Row, status: Status) -> None:
        self._counts[row.status] -= 1
        self._counts[status] += 1
        if status in TERMINAL and row.status not in TERMINAL:
            self._pins[row.new.process_key, row.new.version] -= 1
        row.status = status

    def _set_trouble(self, row: Row, trouble: Trouble | None, *, has_incidents: bool) -> None:
        had = row.has_incidents or row.trouble is not None
        has = has_incidents or trouble is not None
        row.trouble, row.has_incidents = trouble, has_incidents
        if has and not had:
            self._troubled.add(row.new.instance_id)
        elif had and not has:
            self._troubled.discard(row.new.instance_id)

    # ---------------------------------------------------------------- index rows

    def _upsert(self, row: Row, index_row: IndexRow) -> Waiting | None:
        """Write an index row; a subscription that is new or has changed is returned, for it may match now."""
        if isinstance(index_row, TimerRow):
            timer = due_of(index_row)
            self.waits.put_timer(timer, row.put_timer(timer))
            return None
        kind, wait_id = index_row.kind, index_row.wait_id
        old = row.entry(kind, wait_id)
        if isinstance(index_row, SubscriptionRow):
            return self._subscribe(row, index_row, old)
        if old is not None and not isinstance(old, Waiting):
            self.waits.remove(old)
        row.put_entry(kind, wait_id, index_row)
        self.waits.add(index_row)
        return None

    def _subscribe(self, row: Row, index_row: SubscriptionRow, old: Entry | None) -> Waiting:
        if isinstance(old, Waiting):
            self.post.rearm(old, index_row)
            return old
        waiting = self.post.arm(index_row)
        row.put_entry(index_row.kind, index_row.wait_id, waiting)
        return waiting

    def _drop(self, row: Row, kind: str, wait_id: int) -> None:
        entry = row.entry(kind, wait_id)
        if entry is not None:
            row.drop_entry(kind, wait_id)
            self._unlink(entry)

    def _drop_all(self, row: Row) -> None:
        """All index rows of an instance that has ended, but its dead letters."""
        letters: dict[tuple[str, int], Entry] = {}
        for entry in row.all_entries():
            if isinstance(entry, IncidentRow) and entry.state == "dropped":
                letters[(entry.kind, entry.wait_id)] = entry
            else:
                self._unlink(entry)
        row.entries = letters or None

    def _unlink(self, entry: Entry) -> None:
        if isinstance(entry, Waiting):
            self.post.disarm(entry)
        else:
            self.waits.remove(entry)

    # ---------------------------------------------------------------- messages

    def _settle(self, row: Row, item: Item, freed: list[Waiting], now: datetime) -> None:
        """End deliveries, then match again: the subscriptions that came free first, then what was given back."""
        ended = [
            letter for number in set(item.consumed) if (letter := self._assigned(number, item.instance_id)) is not None
        ]
        for letter in ended:
            row.give_up(letter)
            freed += _some(self.post.consume(letter))
        back = [
            letter for number in set(item.declined) if (letter := self._assigned(number, item.instance_id)) is not None
        ]
        if item.status in TERMINAL:
            back = list(row.inbox or ())
        for letter in back:
            row.give_up(letter)
            freed += _some(self.post.consume(letter) if letter.is_signal else self.post.decline(letter))
        if item.status not in TERMINAL:
            self._fill(freed, now)
        for letter in sorted(back, key=_number):
            if letter.state == "buffered" and letter.expires > now:
                self._hand_out(letter)

    def _fill(self, freed: list[Waiting], now: datetime) -> None:
        for waiting in sorted(freed, key=_number):
            letter = self.post.letter_for(waiting, now)
            if letter is not None:
                self._assign(letter, waiting)

    def _hand_out(self, letter: Letter) -> None:
        waiting = self.post.receiver_of(letter)
        if waiting is not None:
            self._assign(letter, waiting)

    def _assign(self, letter: Letter, waiting: Waiting) -> None:
        self.post.assign(letter, waiting)
        self._rows[waiting.row.instance_id].receive(letter)

    def send(self, message: Message, now: datetime) -> Sent:
        """Store a message and look who waits for it; or say what became of it."""
        known = self.post.known(message, now)
        if known is not None:
            return self._sent(known, now, duplicate=True)
        letter = self.post.post(message, now)
        self._hand_out(letter)
        return self._sent(letter, now, duplicate=False)

    def _sent(self, letter: Letter, now: datetime, *, duplicate: bool) -> Sent:
        late = letter.state == "buffered" and letter.expires <= now
        return Sent(
            state="expired" if late and duplicate else letter.state,
            instance_id=letter.receiver,
            delivery=letter.delivery,
            owner=None if letter.delivery is None else self._owner_of(letter.delivery.instance_id),
            duplicate=duplicate,
        )

    def deliveries(self, instance_id: str) -> tuple[Delivery, ...]:
        """What is assigned to the instance."""
        row = self._rows.get(instance_id)
        return () if row is None else _deliveries(row)

    def undelivered(self, after: int, limit: int) -> tuple[Delivery, ...]:
        """Deliveries whose instance nobody owns."""
        found = (
            letter.delivery
            for letter in self.post.outgoing_after(after)
            if letter.delivery is not None and self._owner_of(letter.delivery.instance_id) is None
        )
        return tuple(islice(found, limit))

    # ---------------------------------------------------------------- ownership

    def _own(self, root: Row, owner: Owner) -> None:
        root.owner, root.incarnation = owner.engine_id, owner.incarnation
        self.registry.engines[owner.engine_id].held.add(root.new.instance_id)

    def _disown(self, root: Row) -> None:
        if root.owner is None:
            return
        engine = self.registry.engines[root.owner]
        if root.incarnation == engine.incarnation:
            engine.held.discard(root.new.instance_id)
        else:
            engine.left.discard(root.new.instance_id)
        root.owner, root.incarnation = None, 0

    def _owner_of(self, instance_id: str) -> str | None:
        row = self._rows[instance_id]
        return (row.root or row).owner

    def claim(self, instance_id: str, owner: Owner) -> Loaded | None:
        """Take and load."""
        row = self._rows.get(instance_id)
        if row is None or row.status in TERMINAL or not self.registry.is_current(owner):
            return None
        root = row.root or row
        if root.owner not in {None, owner.engine_id}:
            return None
        abandoned = root.owner is not None and root.incarnation != owner.incarnation
        self._disown(root)
        self._own(root, owner)
        return evolve(loaded(row), abandoned=abandoned)

    def release(self, instance_id: str, owner: Owner, failure: str, retry_at: datetime | None) -> None:
        """Give up; a failure is counted."""
        row = self._held(instance_id, owner)
        if row is None:
            return
        if failure:
            old = row.trouble or Trouble()
            trouble = evolve(old, failures=old.failures + 1, failure=failure, retry_at=retry_at)
            self._set_trouble(row, trouble, has_incidents=row.has_incidents)
            if retry_at is not None:
                self._upsert(row, TimerRow(instance_id, 0, retry_at))
        self._disown(row.root or row)

    def mark_drift(self, instance_id: str, owner: Owner, reason: str) -> None:
        """Mark and give up; or take the mark away."""
        row = self._held(instance_id, owner)
        if row is None:
            return
        trouble = evolve(row.trouble or Trouble(), drift=reason)
        self._set_trouble(row, None if trouble == Trouble() else trouble, has_incidents=row.has_incidents)
        if reason:
            self._disown(row.root or row)

    def _held(self, instance_id: str, owner: Owner) -> Row | None:
        row = self._rows.get(instance_id)
        if row is None:
            return None
        root = row.root or row
        return row if (root.owner, root.incarnation) == (owner.engine_id, owner.incarnation) else None

    def orphans(self, owner: Owner, after: str, limit: int) -> tuple[str, ...]:
        """What earlier incarnations left."""
        engine = self.registry.engines.get(owner.engine_id)
        if engine is None:
            return ()
        live = (found for found in engine.left.after(after) if self._rows[found].status not in TERMINAL)
        return tuple(islice(live, limit))

    # ---------------------------------------------------------------- reading instances

    def load(self, instance_id: str) -> Loaded | None:
        """Head and pieces."""
        row = self._rows.get(instance_id)
        return None if row is None else loaded(row)

    def head(self, instance_id: str) -> InstanceHead | None:
        """The head alone."""
        row = self._rows.get(instance_id)
        return None if row is None else head_of(row)

    def instances(self, where: InstanceFilter, after: str, limit: int) -> tuple[InstanceHead, ...]:
        """Heads in order of id."""
        rows = (self._rows[found] for found in self._narrowed(where, after))
        return tuple(islice((head_of(row) for row in rows if _is_meant(row, where)), limit))

    def _narrowed(self, where: InstanceFilter, after: str) -> Iterator[str]:
        if where.business_key is not None:
            return self._business.after(where.business_key, after)
        if where.has_incidents or where.not_resumed:
            return self._troubled.after(after)
        for instance_id in sorted(self._unsorted):
            self._ids.add(instance_id)
        self._unsorted.clear()
        return self._ids.after(after)

    def counts(self) -> dict[Status, int]:
        """How many of each status."""
        return {status: self._counts[status] for status in Status}

    def pins(self) -> dict[tuple[str, int], int]:
        """How many live instances of each version."""
        return {pinned: count for pinned, count in self._pins.items() if count}

    # ---------------------------------------------------------------- tasks and incidents

    def tasks(self, where: TaskFilter, after: tuple[str, int], limit: int) -> tuple[TaskRow, ...]:
        """User tasks that pass the filter."""
        if where.instance_id is None:
            places = self.waits.tasks(where, after)
            rows: Iterator[Entry | None] = (self._entry(place, "task") for place in places)
        else:
            rows = self._entries_of(where.instance_id, after)
        return tuple(islice((row for row in rows if isinstance(row, TaskRow) and is_wanted(row, where)), limit))

    def task(self, instance_id: str, wait_id: int) -> TaskRow | None:
        """One user task."""
        row = self._rows.get(instance_id)
        entry = None if row is None else row.entry("task", wait_id)
        return entry if isinstance(entry, TaskRow) else None

    def incidents(
        self, instance_id: str | None, state: str | None, after: tuple[str, int], limit: int
    ) -> tuple[IncidentRow, ...]:
        """Incidents of that state."""
        if instance_id is None:
            places = self.waits.incidents(state, after)
            rows: Iterator[Entry | None] = (self._entry(place, "incident") for place in places)
        else:
            rows = self._entries_of(instance_id, after)
        found = (row for row in rows if isinstance(row, IncidentRow) and state in {None, row.state})
        return tuple(islice(found, limit))

    def _entry(self, place: tuple[str, int], kind: str) -> Entry | None:
        return self._rows[place[0]].entry(kind, place[1])

    def _entries_of(self, instance_id: str, after: tuple[str, int]) -> Iterator[Entry | None]:
        row = self._rows.get(instance_id)
        entries = () if row is None else row.all_entries()
        yield from sorted((entry for entry in entries if (instance_id, entry_wait(entry)) > after), key=entry_wait)


def looks_for_deliveries(item: Item) -> bool:
    """Whether the answer to an item names what is assigned to its instance."""
    return item.release or bool(item.consumed) or any(type(row) is SubscriptionRow for row in item.upserts)


def _deliveries(row: Row) -> tuple[Delivery, ...]:
    return tuple(letter.delivery for letter in row.inbox or () if letter.delivery is not None)


def _number(numbered: Letter | Waiting) -> int:
    return numbered.number


def _some(waiting: Waiting | None) -> tuple[Waiting, ...]:
    return () if waiting is None else (waiting,)


def _is_meant(row: Row, where: InstanceFilter) -> bool:
    trouble = row.trouble
    not_resumed = trouble is not None
    return (
        where.process_key in {None, row.new.process_key}
        and where.business_key in {None, row.new.business_key}
        and (where.status is None or row.status in where.status)
        and where.has_incidents in {None, row.has_incidents}
        and where.not_resumed in {None, not_resumed}
    )
