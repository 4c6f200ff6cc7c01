"""One instance's way into the store: base and tail, index rows, record version (``docs/explanation/how-it-works.md``).

A commit writes one piece with what was touched.  Small instances rewrite slot 0 whole; a larger one appends to a
tail, until the tail would outgrow its base: then the base is written anew.  So what is written stays below
three times the sum of the pieces, and cost is linear in the work done.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson
from attrs import define, field

from trioflow.checkpoint.documents import SCHEMA, Documents
from trioflow.checkpoint.records import (
    SIGNAL,
    IncidentRow,
    IndexRow,
    Item,
    Message,
    NewInstance,
    SubscriptionRow,
    TaskRow,
    TimerRow,
)
from trioflow.machine.program import Program
from trioflow.machine.state import (
    Incident,
    MessageWait,
    RetryWait,
    SignalWait,
    State,
    TaskWait,
    TimerWait,
    TrackState,
    Wait,
)
from trioflow.machine.transition import MessagePost, Post, SignalPost

__all__ = ["SMALL_BASE", "Recorder", "key_text"]

SMALL_BASE = 2_048
"""Bytes: up to this size a commit rewrites the whole state in slot 0."""
RESUME = 0
"""The wait id (no entity has it) of the timer row of an instance whose steps were to run when it was released."""
SMALL_TAIL = 16_384
"""Bytes: the tail may grow to this, or to the size of the base."""


@define(eq=False)
class Recorder:
    """Turns what was touched into the items of one instance.

    ``version`` is the record version that the store has after the last item that was made; ``base`` and ``tail`` are
    the bytes in slot 0 and behind it, ``slots`` how many there are.
    """

    documents: Documents
    program: Program
    version: int = 0
    base: int = 0
    tail: int = 0
    slots: int = 0
    indexed: int = 0
    """The state's counter at the last item: an entity with a greater id never had an index row."""
    resumes: bool = False
    """There is a row that has the instance loaded because steps were to run."""
    small_base: int = field(default=SMALL_BASE, kw_only=True)
    small_tail: int = field(default=SMALL_TAIL, kw_only=True)

    def item(
        self,
        state: State,
        *,
        commit_id: str,
        at: datetime,
        consumed: tuple[int, ...] = (),
        declined: tuple[int, ...] = (),
        posts: Sequence[Post] = (),
        release: bool = False,
        with_piece: bool = True,
        resume: bool = False,
        idle: bool = False,
    ) -> Item:
        """Capture: everything touched since the last item, marked as taken.

        ``with_piece`` False leaves the document for later (a volatile store, which wants only the index meanwhile):
        the next piece is then a base.  ``resume``: the instance is released while steps were to run, so it is
        entered in the index as due at once; the first item after that takes the entry away.
        """
        upserts, deleted = self._index(state)
        if self.resumes and not resume:
            deleted += ((TimerRow.kind, RESUME),)
        if resume:
            upserts += (TimerRow(state.identity.instance_id, RESUME, at),)
        self.resumes = resume
        slot, piece = self._next_piece(state) if with_piece else (0, None)
        self.take(state, written=with_piece)
        item = Item(
            instance_id=state.identity.instance_id,
            commit_id=commit_id,
            expected=self.version,
            status=state.header.status,
            at=at,
            reason=state.header.reason,
            has_incidents=state.has_incidents,
            new=new_instance(state) if self.version == 0 else None,
            slot=slot,
            piece=piece,
            upserts=upserts,
            deleted=deleted,
            consumed=consumed,
            declined=declined,
            messages=tuple(self._message(state, post) for post in posts if isinstance(post, MessagePost)),
            signals=tuple(self._signal(state, post) for post in posts if isinstance(post, SignalPost)),
            release=release,
            idle=idle,
        )
        self.version += 1
        return item

    def loaded(self, state: State, *, version: int, pieces: tuple[bytes, ...], failed: bool = False) -> None:
        """The state was folded from these pieces, and its row has this version.

        ``failed``: attempts to load it had failed before, so the store has it in the index as due for another one.
        """
        self.version = version
        self.indexed = state.header.counter
        self.slots = len(pieces)
        self.base = len(pieces[0])
        self.tail = sum(map(len, pieces[1:]))
        self.resumes = failed or any(track.state is TrackState.EXECUTING for track in state.tracks.values())

    def take(self, state: State, *, written: bool) -> None:
        """All that was touched is in an item now; or it need not be, because the next piece is a base."""
        if not written:
            self.base = 0
        for table in state.tables:
            table.touched.clear()
        state.touched_header = state.touched_identity = False
        state.touched_data.clear()
        state.touched_items.clear()
        state.touched_entries.clear()
        self.indexed = state.header.counter
        if written:
            state.stored = state.header.counter

    # -------------------------------------------------------------- what leaves

    def _message(self, state: State, post: MessagePost) -> Message:
        """Its id is made of instance and step, so that its receiver can tell a repetition."""
        return Message(
            name=post.name,
            key=None if post.key is None else key_text(self.documents, post.key),
            payload=self.documents.write_value(post.payload),
            message_id=f"{state.identity.instance_id}/{post.step}",
            tenant=state.identity.tenant,
        )

    def _signal(self, state: State, post: SignalPost) -> Message:
        payload = self.documents.write_value(post.payload)
        return Message(name=SIGNAL + post.name, payload=payload, tenant=state.identity.tenant)

    # -------------------------------------------------------------- pieces

    def _next_piece(self, state: State) -> tuple[int, bytes]:
        if self.base <= self.small_base:
            return self._new_base(state)
        piece = self.documents.piece(state)
        if self.tail + len(piece) > max(self.small_tail, self.base):
            return self._new_base(state)
        slot = self.slots
        self.slots += 1
        self.tail += len(piece)
        return slot, piece

    def _new_base(self, state: State) -> tuple[int, bytes]:
        base = self.documents.base(state)
        self.base, self.tail, self.slots = len(base), 0, 1
        return 0, base

    # -------------------------------------------------------------- the wait index

    def _index(self, state: State) -> tuple[tuple[IndexRow, ...], tuple[tuple[str, int], ...]]:
        touched = (*state.waits.touched.values(), *state.incidents.touched.values())
        touched = tuple(entity for entity in touched if type(entity) in _KINDS)
        if not touched:
            return (), ()
        upserts: list[IndexRow] = []
        deleted: list[tuple[str, int]] = []
        for entity in touched:
            if entity.id in state.waits or entity.id in state.incidents:
                upserts.append(self._row(state, entity))
            elif entity.id <= self.indexed:
                deleted.append((_KINDS[type(entity)], entity.id))
        return tuple(upserts), tuple(deleted)

    def _row(self, state: State, entity: Wait | Incident) -> IndexRow:
        instance_id = state.identity.instance_id
        if isinstance(entity, TimerWait | RetryWait):
            return TimerRow(instance_id, entity.id, entity.deadline)
        if isinstance(entity, SignalWait):
            return SubscriptionRow(instance_id, entity.id, SIGNAL + entity.name, None, None, state.identity.tenant)
        if isinstance(entity, MessageWait):
            key = None if entity.key is None else key_text(self.documents, entity.key)
            identity = state.identity
            return SubscriptionRow(instance_id, entity.id, entity.name, key, identity.business_key, identity.tenant)
        if isinstance(entity, TaskWait):
            return self._task_row(state, entity)
        assert isinstance(entity, Incident)
        return self._incident_row(state, entity)

    def _task_row(self, state: State, wait: TaskWait) -> TaskRow:
        node = self.program.nodes[state.tracks[wait.track].node]
        return TaskRow(
            instance_id=state.identity.instance_id,
            wait_id=wait.id,
            node_id=node.id,
            name=node.name or node.id,
            process_key=state.identity.process_key,
            created=wait.created,
            owner=wait.owner,
            assignee=wait.assignee,
            candidate_users=wait.candidate_users,
            candidate_groups=wait.candidate_groups,
            priority=wait.priority,
            due=wait.due,
            business_key=state.identity.business_key,
            tenant=state.identity.tenant,
        )

    def _incident_row(self, state: State, incident: Incident) -> IncidentRow:
        return IncidentRow(
            instance_id=state.identity.instance_id,
            wait_id=incident.id,
            incident_kind=incident.kind.value,
            node_id=incident.node,
            process_key=state.identity.process_key,
            message=incident.message,
            first=incident.first,
            last=incident.last,
            state=incident.state.value,
            attempts=incident.attempts,
            causes=incident.causes,
        )


_KINDS: dict[type, str] = {
    TimerWait: TimerRow.kind,
    RetryWait: TimerRow.kind,
    MessageWait: SubscriptionRow.kind,
    SignalWait: SubscriptionRow.kind,
    TaskWait: TaskRow.kind,
    Incident: IncidentRow.kind,
}


def key_text(documents: Documents, key: Any) -> str:
    """A correlation key as canonical JSON text: equal keys, and only those, have equal texts."""
    return orjson.dumps(documents.codec.encode(key), option=orjson.OPT_SORT_KEYS).decode()


def new_instance(state: State) -> NewInstance:
    """The columns of the head row that never change."""
    identity = state.identity
    return NewInstance(
        instance_id=identity.instance_id,
        root_id=identity.root_id,
        process_key=identity.process_key,
        version=identity.version,
        digest=identity.digest,
        digest_algorithm=identity.digest_algorithm,
        document_schema=SCHEMA,
        created=identity.created,
        tenant=identity.tenant,
        business_key=identity.business_key,
        parent_id=identity.parent_id,
    )
