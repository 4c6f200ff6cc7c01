"""What a store holds, and what one commit asks of it: plain frozen rows, the same for every adapter.

Times are aware datetimes.  Nothing here knows how a state is made of them (``checkpoint.capture``) nor how they are
kept (``stores``).
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from attrs import frozen

from trioflow.facts import Status

__all__ = [
    "SIGNAL",
    "Definition",
    "Delivery",
    "IncidentRow",
    "IndexRow",
    "InstanceHead",
    "Item",
    "Message",
    "NewInstance",
    "SubscriptionRow",
    "TaskRow",
    "TimerRow",
]


@frozen(kw_only=True)
class NewInstance:
    """The columns of an instance that never change; written by the item that creates it."""

    instance_id: str
    root_id: str
    process_key: str
    version: int
    digest: str
    digest_algorithm: int
    document_schema: int
    created: datetime
    tenant: str = ""
    business_key: str | None = None
    parent_id: str | None = None


@frozen(kw_only=True)
class InstanceHead:
    """One row of ``instances``: what can be known without reading a piece.

    ``record_version`` counts the commits; ``commit_id`` is the last one's.  ``owner``/``incarnation`` name
    the engine that holds the instance in memory (root rows; None: parked or ended).  ``drift`` is the reason
    why the pieces cannot be read by the definition any more.  ``failures``/``retry_at``: attempts to load it.
    """

    instance_id: str
    root_id: str
    process_key: str
    version: int
    digest: str
    digest_algorithm: int
    document_schema: int
    status: Status
    created: datetime
    updated: datetime
    tenant: str = ""
    business_key: str | None = None
    parent_id: str | None = None
    reason: str = ""
    has_incidents: bool = False
    drift: str = ""
    record_version: int = 0
    commit_id: str = ""
    owner: str | None = None
    incarnation: int = 0
    failures: int = 0
    failure: str = ""
    retry_at: datetime | None = None


# ------------------------------------------------------------------ the wait index


@frozen
class TimerRow:
    """A deadline: of a timer wait or of a scheduled retry."""

    kind: ClassVar[str] = "timer"

    instance_id: str
    wait_id: int
    due: datetime


@frozen
class SubscriptionRow:
    """A wait for a message: its name and its key in canonical JSON text (None: no key).

    The store gives each a number in the order of arming; the oldest that matches gets the message.
    """

    kind: ClassVar[str] = "subscription"

    instance_id: str
    wait_id: int
    name: str
    key: str | None
    business_key: str | None
    tenant: str = ""


@frozen(kw_only=True)
class TaskRow:
    """A user task as people query it."""

    kind: ClassVar[str] = "task"

    instance_id: str
    wait_id: int
    node_id: str
    name: str
    process_key: str
    created: datetime
    owner: str | None = None
    assignee: str | None = None
    candidate_users: tuple[str, ...] = ()
    candidate_groups: tuple[str, ...] = ()
    priority: int = 50
    due: datetime | None = None
    business_key: str | None = None
    tenant: str = ""

    @property
    def id(self) -> str:
        """The task's id: its instance's id, a slash, its number there.  Equal over restarts."""
        return f"{self.instance_id}/{self.wait_id}"


@frozen(kw_only=True)
class IncidentRow:
    """An incident, or a dead letter (``state`` is ``dropped``)."""

    kind: ClassVar[str] = "incident"

    instance_id: str
    wait_id: int
    incident_kind: str
    node_id: str
    process_key: str
    message: str
    first: datetime
    last: datetime
    state: str = "open"
    attempts: int = 0
    causes: tuple[str, ...] = ()

    @property
    def incident_id(self) -> int:
        """The incident's number in its instance: what retry, resolve and drop want."""
        return self.wait_id


IndexRow = TimerRow | SubscriptionRow | TaskRow | IncidentRow
"""``wait_id`` is the entity's id in its instance (for an incident: the incident's)."""


SIGNAL = "\x1f"
"""Stands before a signal's name where it is a subscription, message or delivery: no name in XML can have it."""


# ------------------------------------------------------------------ one instance's part of a commit


@frozen(kw_only=True)
class Item:
    """One instance's part of a commit: all of it is stored, or nothing.

    ``expected``: the record version that the row must have (0: there must be none, ``new`` is inserted).
    ``commit_id`` is unique for each capture, and the same when it is sent again.
    ``slot`` and ``piece``: where the document part goes; slot 0 is a new base and deletes all other slots;
    ``piece`` None: only index rows change.
    ``deleted``: (kind, wait id) of index rows that are gone.
    ``consumed``/``declined``: delivery ids; a declined message is unassigned and matched again, in its place.
    ``messages``, ``signals``: what the instance throws, stored with the item: a message for one receiver, a signal for
    all who wait for it now, in other instances than this one.
    ``release``: give the ownership up in the same commit.
    ``idle``: nothing was applied since the instance was loaded; then what is noted of failures stays noted.
    """

    instance_id: str
    commit_id: str
    expected: int
    status: Status
    at: datetime
    reason: str = ""
    has_incidents: bool = False
    new: NewInstance | None = None
    slot: int = 0
    piece: bytes | None = None
    upserts: tuple[IndexRow, ...] = ()
    deleted: tuple[tuple[str, int], ...] = ()
    consumed: tuple[int, ...] = ()
    declined: tuple[int, ...] = ()
    messages: tuple[Message, ...] = ()
    signals: tuple[Message, ...] = ()
    release: bool = False
    idle: bool = False


# ------------------------------------------------------------------ definitions and messages


@frozen(kw_only=True)
class Definition:
    """A deployed version, counted from 1.  ``content`` is BPMN XML, as deployed or as written from a built model."""

    key: str
    version: int
    digest: str
    digest_algorithm: int
    handler_names: tuple[str, ...]
    content: bytes
    content_hash: str
    deployed: datetime
    name: str = ""


@frozen(kw_only=True)
class Message:
    """A message on its way in.  ``key`` is canonical JSON text, ``payload`` canonical JSON bytes.

    ``time_to_live_seconds``: how long it is kept when nothing waits for it; ``dedup_seconds``: how long its
    ``message_id`` is remembered.
    """

    name: str
    payload: bytes
    key: str | None = None
    message_id: str | None = None
    business_key: str | None = None
    tenant: str = ""
    time_to_live_seconds: float = 3600.0
    dedup_seconds: float = 86400.0


@frozen(kw_only=True)
class Delivery:
    """What is addressed to an instance: a message that was assigned to one of its waits."""

    id: int
    instance_id: str
    wait_id: int
    name: str
    payload: bytes
