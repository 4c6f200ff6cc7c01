"""What the memory store keeps of an instance: small, because a million of them may be parked.

A parked instance is one ``Row``, one piece and one index entry.  A container is made only where there are two of a
kind, and the columns that never change stay in the caller's frozen ``NewInstance``.
"""

from __future__ import annotations

from datetime import datetime

from attrs import define, frozen

from trioflow.checkpoint.records import (
    IncidentRow,
    InstanceHead,
    NewInstance,
    TaskRow,
)
from trioflow.facts import Status
from trioflow.stores.memory._letters import Letter, Waiting
from trioflow.stores.port import Loaded

__all__ = ["Due", "Entry", "Row", "Trouble", "entry_kind", "entry_wait", "head_of", "loaded"]

Due = tuple[datetime, str, int]
"""A timer as it is kept: its place in the order of timers, and all that its row says."""

Entry = Due | Waiting | TaskRow | IncidentRow


@frozen
class Trouble:
    """The columns that nearly every instance leaves empty."""

    drift: str = ""
    failures: int = 0
    failure: str = ""
    retry_at: datetime | None = None


@define(eq=False, weakref_slot=False)
class Row:
    """The row of an instance.  ``root`` is None in a root; ``owner`` and ``incarnation`` are used in roots only."""

    new: NewInstance
    root: Row | None
    status: Status
    updated: datetime
    commit_id: str
    record_version: int
    owner: str | None = None
    incarnation: int = 0
    reason: str = ""
    has_incidents: bool = False
    trouble: Trouble | None = None
    pieces: bytes | dict[int, bytes] | None = None
    entries: Entry | dict[tuple[str, int], Entry] | None = None
    inbox: list[Letter] | None = None

    # ---------------------------------------------------------------- pieces

    def put_piece(self, slot: int, piece: bytes) -> None:
        """Write one slot; slot 0 is a new base and takes the place of all."""
        if slot == 0:
            self.pieces = piece
        elif isinstance(self.pieces, dict):
            self.pieces[slot] = piece
        else:
            base = {} if self.pieces is None else {0: self.pieces}
            self.pieces = {**base, slot: piece}

    # ---------------------------------------------------------------- index entries

    def entry(self, kind: str, wait_id: int) -> Entry | None:
        """The index entry of a wait, if there is one."""
        held = self.entries
        if held is None:
            return None
        if isinstance(held, dict):
            return held.get((kind, wait_id))
        return held if entry_wait(held) == wait_id and entry_kind(held) == kind else None

    def put_entry(self, kind: str, wait_id: int, entry: Entry) -> None:
        """Write an index entry over the one of the same wait, or beside the others."""
        held = self.entries
        if held is None:
            self.entries = entry
        elif isinstance(held, dict):
            held[kind, wait_id] = entry
        elif entry_wait(held) == wait_id and entry_kind(held) == kind:
            self.entries = entry
        else:
            self.entries = {(entry_kind(held), entry_wait(held)): held, (kind, wait_id): entry}

    def put_timer(self, timer: Due) -> Due | None:
        """Write a timer and return the one whose place it takes; short where it is the only entry, as most are."""
        held = self.entries
        if held is None:
            self.entries = timer
            return None
        if isinstance(held, tuple) and held[2] == timer[2]:
            self.entries = timer
            return held
        old = self.entry("timer", timer[2])
        self.put_entry("timer", timer[2], timer)
        return old if isinstance(old, tuple) else None

    def drop_entry(self, kind: str, wait_id: int) -> None:
        """Forget an index entry, which is there; the last one left is kept without a container."""
        held = self.entries
        if not isinstance(held, dict):
            self.entries = None
            return
        del held[kind, wait_id]
        if len(held) == 1:
            (self.entries,) = held.values()

    def all_entries(self) -> tuple[Entry, ...]:
        """Every index entry."""
        held = self.entries
        if held is None:
            return ()
        return tuple(held.values()) if isinstance(held, dict) else (held,)

    # ---------------------------------------------------------------- deliveries

    def receive(self, letter: Letter) -> None:
        """Note a message that was assigned."""
        if self.inbox is None:
            self.inbox = [letter]
        else:
            self.inbox.append(letter)

    def give_up(self, letter: Letter) -> None:
        """Forget a message that was assigned; the rest keeps its order."""
        held = self.inbox
        assert held is not None
        held.remove(letter)
        if not held:
            self.inbox = None


def entry_kind(entry: Entry) -> str:
    """The kind of an index entry, as its row has it."""
    return "timer" if type(entry) is tuple else entry.kind  # type: ignore[union-attr]  # a tuple is a timer


def entry_wait(entry: Entry) -> int:
    """The wait of an index entry."""
    return entry[2] if type(entry) is tuple else entry.wait_id  # type: ignore[union-attr]  # see above


# ------------------------------------------------------------------ what callers get


def head_of(row: Row) -> InstanceHead:
    """The head as the port has it."""
    new, trouble = row.new, row.trouble or Trouble()
    return InstanceHead(
        instance_id=new.instance_id,
        root_id=new.root_id,
        process_key=new.process_key,
        version=new.version,
        digest=new.digest,
        digest_algorithm=new.digest_algorithm,
        document_schema=new.document_schema,
        created=new.created,
        tenant=new.tenant,
        business_key=new.business_key,
        parent_id=new.parent_id,
        status=row.status,
        updated=row.updated,
        reason=row.reason,
        has_incidents=row.has_incidents,
        record_version=row.record_version,
        commit_id=row.commit_id,
        owner=row.owner,
        incarnation=row.incarnation,
        drift=trouble.drift,
        failures=trouble.failures,
        failure=trouble.failure,
        retry_at=trouble.retry_at,
    )


def loaded(row: Row) -> Loaded:
    """The head and the pieces in slot order."""
    held = row.pieces
    if held is None:
        return Loaded(head=head_of(row), pieces=())
    pieces = tuple(held[slot] for slot in sorted(held)) if isinstance(held, dict) else (held,)
    return Loaded(head=head_of(row), pieces=pieces)
