"""The store port: small protocols, one per consumer, implemented by one adapter over one handle.

One adapter, because what they write belongs into one commit.  Everything is scoped by the *group* the store
was opened with: two groups in one database do not see each other.

Rules for every adapter (``trioflow.testing.store_kit`` checks them):

* What is returned is a copy; what was handed in may be changed by the caller afterwards.
* A method either does all it says or raises ``StoreError`` and has done nothing, except that an answer may be lost on
  the way: whoever repeats a ``commit`` with the same commit ids, or a ``send`` with the same message id, is told the
  same outcome as if the first had been answered.
* Cancelling a method leaves the work done or not done, never half; ``commit`` is not abandoned once it was sent.
* No method costs more because more instances are parked: each is O(what it touches) plus the depth of an index.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from datetime import datetime
from types import TracebackType
from typing import Protocol, Self

from attrs import field, frozen

from trioflow.checkpoint.records import (
    Definition,
    Delivery,
    IncidentRow,
    InstanceHead,
    Item,
    Message,
    TaskRow,
    TimerRow,
)
from trioflow.facts import Status

__all__ = [
    "Answer",
    "CommitAnswer",
    "DefinitionStore",
    "EngineRegistry",
    "InstanceFilter",
    "InstanceStore",
    "Loaded",
    "MessageStore",
    "Outcome",
    "Owner",
    "Sent",
    "Store",
    "TaskFilter",
    "TimerCursor",
    "WaitStore",
]


# ------------------------------------------------------------------ engines and ownership


@frozen(kw_only=True)
class Owner:
    """An engine as it owns instances: its id, and the incarnation that is new at each start."""

    engine_id: str
    incarnation: int


class EngineRegistry(Protocol):
    """Who runs."""

    async def open(
        self, *, group: str, engine_id: str, create_group: bool = True, handler_names: Sequence[str] = ()
    ) -> Owner:
        """Prepare the schema (numbered migrations, under a lock), take the liveness lock, write the engine's row.

        The lock is held until ``close`` or the end of the process.  Raises ``EngineInUse`` if a living engine has
        that group and id; ``StoreTooNew`` if the store's migrations name a newer code than ours as the oldest that
        works; ``StoreError`` naming path and reason if it cannot be opened, or if the group does not exist and
        ``create_group`` is False.
        """

    async def open_reader(self, *, group: str) -> None:
        """Open for reading only, without lock or engine row; ``StoreError`` if there is no such store or group."""

    async def close(self) -> None:
        """Give the lock up and close the handle.  Twice is once."""


# ------------------------------------------------------------------ instances


class Answer(enum.Enum):
    """What became of one item."""

    STORED = "stored"
    """It is stored; by this call, or by an earlier one whose answer was lost (its commit id is the row's last)."""
    CONFLICT = "conflict"
    """The row has another record version, and another commit id than this item's: somebody else wrote.

    Also an item that consumes a delivery which its instance does not have, or has no more: nothing is consumed twice.
    """
    EXISTS = "exists"
    """``expected`` was 0, and an instance of that id is there (not by this commit id)."""
    FENCED = "fenced"
    """The root row is not owned by this owner and incarnation."""
    ABSENT = "absent"
    """There is no such instance."""
    REFUSED = "refused"
    """The store cannot hold what the item has, for ``Outcome.reason``; the rest of the batch is not concerned."""


@frozen(kw_only=True)
class Outcome:
    """One item's answer.

    ``deliveries``: after an item that armed a subscription, consumed a message or released the instance was stored,
    all that is assigned to it (buffered messages that its free subscriptions match are assigned first); else empty.
    ``sent``: what the messages and signals of the item became for other instances.  ``is_repeated``: it was stored by
    an earlier call whose answer was lost, and with that ``sent``.
    """

    answer: Answer
    deliveries: tuple[Delivery, ...] = ()
    sent: tuple[Delivery, ...] = ()
    is_repeated: bool = False
    reason: str = ""


@frozen(kw_only=True)
class CommitAnswer:
    """The answers of a batch, in its order.

    ``engine_fenced``: the engine's own row names another incarnation; then every item is FENCED and nothing was stored.
    """

    outcomes: tuple[Outcome, ...]
    engine_fenced: bool = False


@frozen(kw_only=True)
class Loaded:
    """An instance with its pieces in slot order.

    ``abandoned``: it was claimed, and an earlier incarnation of this engine had left it owned (that one crashed).
    """

    head: InstanceHead
    pieces: tuple[bytes, ...]
    abandoned: bool = False


@frozen(kw_only=True)
class InstanceFilter:
    """Which instances; None: any."""

    process_key: str | None = None
    business_key: str | None = None
    status: frozenset[Status] | None = None
    has_incidents: bool | None = None
    not_resumed: bool | None = None
    """True: only those with a drift mark or failures to load."""


class InstanceStore(Protocol):
    """Checkpoints."""

    async def commit(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """Store a batch in one transaction; each item by itself all or nothing, each with its own answer.

        A new instance is owned by ``owner`` unless it is released in the same item.  An item whose status is terminal
        releases the ownership and takes the instance's index rows away, its dead letters excepted.  ``updated``
        becomes the item's ``at``.
        """

    async def claim(self, instance_id: str, owner: Owner) -> Loaded | None:
        """Take an instance that nobody owns (or that an earlier incarnation of this engine owned) and load it.

        Taking and loading are one transaction.  None: it is absent, terminal, or owned by another living engine.
        Claiming what this incarnation owns already returns it too.
        """

    async def release(
        self, instance_id: str, owner: Owner, *, failure: str = "", retry_at: datetime | None = None
    ) -> None:
        """Give up an instance that could not be loaded; with ``failure``: count it.

        It is entered as due at ``retry_at``, as a timer row with the wait id 0 (None: not entered, an operator tries
        again).
        """

    async def mark_drift(self, instance_id: str, owner: Owner, reason: str) -> None:
        """Mark as drifted (pieces untouched, ownership released); an empty reason takes the mark away."""

    async def load(self, instance_id: str) -> Loaded | None:
        """Read an instance without claiming it."""

    async def head(self, instance_id: str) -> InstanceHead | None:
        """Read the head row alone."""

    async def instances(self, where: InstanceFilter, *, after: str = "", limit: int = 100) -> tuple[InstanceHead, ...]:
        """Heads in the order of their ids, those after ``after``, at most ``limit``."""

    async def orphans(self, owner: Owner, *, after: str = "", limit: int = 100) -> tuple[str, ...]:
        """Ids of live root instances that earlier incarnations of this engine id left owned, in order of id."""

    async def counts(self) -> dict[Status, int]:
        """How many instances there are of each status (kept as counts, not by reading the population)."""


# ------------------------------------------------------------------ definitions


class DefinitionStore(Protocol):
    """Deployed versions."""

    async def deploy(self, definition: Definition) -> Definition:
        """Store a definition and mint its version (``definition.version`` is ignored): the highest of its key plus one.

        The same content hash as the latest version changes nothing and returns that one.  Versions are never reused.
        """

    async def definition(self, key: str, version: int | None = None) -> Definition | None:
        """That version, or the latest."""

    async def definitions(self) -> tuple[Definition, ...]:
        """The latest of each key, in order of key."""

    async def pins(self) -> dict[tuple[str, int], int]:
        """(key, version) to the number of live instances pinned to it, for those that have any."""


# ------------------------------------------------------------------ waits


@frozen(order=True)
class TimerCursor:
    """A place in the order of timers: by deadline, then instance, then wait."""

    due: datetime
    instance_id: str = ""
    wait_id: int = 0


@frozen(kw_only=True)
class TaskFilter:
    """Which user tasks; None: any.

    ``candidate``: those that this person could claim (no owner, and either no candidates at all or the person among
    the users or one of ``groups`` among the groups).
    """

    owner: str | None = None
    candidate: str | None = None
    groups: frozenset[str] = field(factory=frozenset)
    instance_id: str | None = None
    process_key: str | None = None
    business_key: str | None = None
    node_id: str | None = None
    unowned: bool = False


class WaitStore(Protocol):
    """The wait index."""

    async def timers(self, *, after: TimerCursor | None, until: datetime, limit: int) -> tuple[TimerRow, ...]:
        """Timers behind the cursor with a deadline at or before ``until``, in cursor order, at most ``limit``."""

    async def next_timer(self, *, after: TimerCursor | None) -> TimerCursor | None:
        """The first timer behind the cursor."""

    async def tasks(
        self, where: TaskFilter, *, after: tuple[str, int] = ("", 0), limit: int = 100
    ) -> tuple[TaskRow, ...]:
        """User tasks in the order of (instance id, wait id)."""

    async def task(self, instance_id: str, wait_id: int) -> TaskRow | None:
        """One user task."""

    async def incidents(
        self,
        *,
        instance_id: str | None = None,
        state: str | None = "open",
        after: tuple[str, int] = ("", 0),
        limit: int = 100,
    ) -> tuple[IncidentRow, ...]:
        """Incidents in the order of (instance id, incident id); ``state`` None: dead letters too."""


# ------------------------------------------------------------------ messages


@frozen(kw_only=True)
class Sent:
    """What became of a message.

    ``state``: ``assigned`` (to ``delivery``'s wait, not consumed yet), ``buffered``, ``consumed`` (by
    ``instance_id``; only a duplicate can find that) or ``expired``.  ``duplicate``: a message of that name and id was
    sent before, and this is what became of it.
    """

    state: str
    instance_id: str | None = None
    delivery: Delivery | None = None
    owner: str | None = None
    duplicate: bool = False


class MessageStore(Protocol):
    """Messages and their assignment.

    A message goes to exactly one subscription of its group and tenant: exact key match first, then (where the
    subscription has no key) those that match by name: the message has no key, or its key or business key is the
    business key of the subscription's instance.  Among several the oldest subscription first.  A message that carries
    a ``business_key`` matches only subscriptions of instances with that business key.  A subscription has one delivery
    at a time: until that is consumed or declined, further messages go to others that match, or stay buffered.
    """

    async def send(self, message: Message) -> Sent:
        """Store the message, then look for a subscription and assign it (one transaction, or two in that order)."""

    async def broadcast(self, signal: Message) -> tuple[Delivery, ...]:
        """Store a signal for all who wait for it at this moment; its name has the mark ``SIGNAL`` in front.

        It is never buffered, and one whose receiver has ended is gone.
        """

    async def deliveries(self, instance_id: str) -> tuple[Delivery, ...]:
        """What is assigned to the instance and not consumed, oldest first."""

    async def undelivered(self, *, after: int = 0, limit: int = 100) -> tuple[Delivery, ...]:
        """Deliveries whose instance nobody owns, in order of id: the poll that repeats a look that was missed."""

    async def expire(self) -> int:
        """Mark buffered messages past their time to live as expired, and forget ids past their window.

        Returns how many expired.
        """


class Store(EngineRegistry, InstanceStore, DefinitionStore, WaitStore, MessageStore, Protocol):
    """One adapter over one handle.

    ``volatile``: nothing survives the process, and every item counts as stored at once; such a store has
    ``commit_now`` (the same as ``commit``, without waiting), and the runtime writes a piece only when an instance
    parks.
    """

    @property
    def volatile(self) -> bool:
        """Whether nothing survives the process."""

    def now(self) -> datetime:
        """The store's time, aware, in UTC."""

    def commit_now(self, batch: Sequence[Item], owner: Owner) -> CommitAnswer:
        """``commit`` without waiting; only where ``volatile``."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
