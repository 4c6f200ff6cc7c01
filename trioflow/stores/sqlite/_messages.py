"""Messages in SQL: sending, matching, what becomes of a delivery, expiry; all within the caller's transaction."""

# statements are put together from constants of this module; values are always bound

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final

from attrs import frozen

from trioflow.checkpoint.records import Delivery, Item, Message, SubscriptionRow
from trioflow.stores.matching import ANYONE, addressee, key_text
from trioflow.stores.port import Sent

__all__ = ["Settling", "broadcast", "deliveries_of", "expire", "looks_for_deliveries", "send", "undelivered"]

_TICK: Final = timedelta(microseconds=1)

# ------------------------------------------------------------------ statements

_OWNER: Final = """
SELECT root.owner FROM trioflow_instances AS own
JOIN trioflow_instances AS root ON root.group_id = own.group_id AND root.instance_id = own.root_id
WHERE own.group_id = ? AND own.instance_id = ?
"""

_DELIVERY: Final = """
SELECT delivery.id, delivery.instance_id, delivery.wait_id, message.name, message.payload
FROM trioflow_deliveries AS delivery JOIN trioflow_messages AS message ON message.number = delivery.message
"""

_UNDELIVERED: Final = f"""
{_DELIVERY}
JOIN trioflow_instances AS own
    ON own.group_id = delivery.group_id AND own.instance_id = delivery.instance_id
JOIN trioflow_instances AS root ON root.group_id = own.group_id AND root.instance_id = own.root_id
WHERE +delivery.group_id = ? AND delivery.id > ? AND root.owner IS NULL
ORDER BY delivery.id LIMIT ?
"""

# A free subscription for a message: by key, by business key, by name alone.
_FREE: Final = (
    "SELECT number, instance_id, wait_id FROM trioflow_subscriptions WHERE group_id = ? AND tenant = ? AND name = ?"
)
_FREE_BY_KEY: Final = (
    f"{_FREE} AND delivery IS NULL AND key = ? AND (? IS NULL OR business_key = ?) ORDER BY number LIMIT 1"
)
_FREE_BY_BUSINESS: Final = f"{_FREE} AND delivery IS NULL AND key IS NULL AND business_key = ? ORDER BY number LIMIT 1"
_FREE_BY_NAME: Final = f"{_FREE} AND delivery IS NULL AND key IS NULL ORDER BY number LIMIT 1"

# A buffered message for a subscription: by key, by business key, by name alone.  A plus keeps the planner from finding
# rows by that column: by their expiry would be all there are.
_BUFFERED: Final = """
SELECT number FROM trioflow_messages
WHERE group_id = ? AND tenant = ? AND name = ? AND state = 'buffered' AND +expires > ?
"""
_BUFFERED_BY_KEY: Final = (
    f"{_BUFFERED} AND key = ? AND (business_key IS NULL OR business_key = ?) ORDER BY number LIMIT 1"
)
_BUFFERED_BY_BUSINESS: Final = f"{_BUFFERED} AND business_key = ? ORDER BY number LIMIT 1"
_BUFFERED_BY_NAME: Final = f"{_BUFFERED} AND key IS NULL AND business_key IS NULL ORDER BY number LIMIT 1"

_WAITING: Final = """
SELECT number, tenant, name, key, business_key FROM trioflow_subscriptions
WHERE group_id = ? AND instance_id = ? AND wait_id = ? AND delivery IS NULL
"""

_KNOWN: Final = """
SELECT number, state, instance_id, expires, remembered FROM trioflow_messages
WHERE group_id = ? AND tenant = ? AND name = ? AND message_id = ?
"""

_POST: Final = """
INSERT INTO trioflow_messages
    (group_id, tenant, name, key, business_key, message_id, payload, state, expires, remembered)
VALUES (?, ?, ?, ?, ?, ?, ?, 'buffered', ?, ?)
"""

_SIGNALLED: Final = """
SELECT instance_id, wait_id FROM trioflow_subscriptions
WHERE group_id = ? AND tenant = ? AND name = ? AND delivery IS NULL AND instance_id <> ? ORDER BY number
"""

_SIGNAL: Final = """
INSERT INTO trioflow_messages (group_id, tenant, name, payload, state, expires, remembered)
VALUES (?, ?, ?, ?, 'signal', ?, ?)
"""

_DELIVER: Final = "INSERT INTO trioflow_deliveries (group_id, message, instance_id, wait_id) VALUES (?, ?, ?, ?)"

# A signal goes with the last of its deliveries.
_SIGNAL_GONE: Final = """
DELETE FROM trioflow_messages WHERE number = ?
AND NOT EXISTS (SELECT 1 FROM trioflow_deliveries WHERE message = trioflow_messages.number)
"""

_LETTER: Final = """
SELECT tenant, name, key, business_key FROM trioflow_messages
WHERE number = ? AND state = 'buffered' AND expires > ?
"""

_TAKE_BACK: Final = "UPDATE trioflow_messages SET state = 'buffered', instance_id = NULL WHERE number = ?"

_WITHDRAW: Final = """
DELETE FROM trioflow_deliveries WHERE id = ? AND group_id = ? AND instance_id = ? RETURNING message, wait_id
"""

_FREE_AGAIN: Final = """
UPDATE trioflow_subscriptions SET delivery = NULL
WHERE group_id = ? AND instance_id = ? AND wait_id = ? AND delivery = ?
"""


_DROP_LATE: Final = """
DELETE FROM trioflow_messages WHERE group_id = ? AND state = 'buffered' AND expires <= ? AND message_id IS NULL
"""

_MARK_LATE: Final = """
UPDATE trioflow_messages SET state = 'expired', payload = x'' WHERE group_id = ? AND state = 'buffered' AND expires <= ?
"""

_FORGET: Final = """
DELETE FROM trioflow_messages WHERE group_id = ? AND state IN ('consumed', 'expired') AND remembered <= ?
"""


# ------------------------------------------------------------------ reading


def deliveries_of(db: sqlite3.Connection, group: int, instance_id: str) -> tuple[Delivery, ...]:
    """What is assigned to an instance, oldest first."""
    rows = db.execute(
        f"{_DELIVERY} WHERE delivery.group_id = ? AND delivery.instance_id = ? ORDER BY delivery.id",
        (group, instance_id),
    )
    return _deliveries(rows)


def undelivered(db: sqlite3.Connection, group: int, after: int, limit: int) -> tuple[Delivery, ...]:
    """What is assigned to instances whose tree nobody owns."""
    return _deliveries(db.execute(_UNDELIVERED, (group, after, limit)))


def _deliveries(rows: Iterable[Sequence[Any]]) -> tuple[Delivery, ...]:
    return tuple(
        Delivery(id=number, instance_id=instance_id, wait_id=wait_id, name=name, payload=payload)
        for number, instance_id, wait_id, name, payload in rows
    )


def looks_for_deliveries(item: Item) -> bool:
    """Whether the answer to an item names what is assigned to its instance."""
    return item.release or bool(item.consumed) or any(type(row) is SubscriptionRow for row in item.upserts)


# ------------------------------------------------------------------ sending


def send(db: sqlite3.Connection, group: int, message: Message, now: int) -> Sent:
    """Store a message, then look who waits for it; or say what became of the one of that id."""
    known = _known(db, group, message, now)
    if known is not None:
        return known
    number = _post(db, group, message, now)
    assigned = _hand_out(db, group, number, now, lasting=True)
    if assigned is None:
        return Sent(state="buffered")
    return _sent(db, group, "assigned", assigned, duplicate=False)


def _known(db: sqlite3.Connection, group: int, message: Message, now: int) -> Sent | None:
    if message.message_id is None:
        return None
    row = db.execute(_KNOWN, (group, message.tenant, message.name, message.message_id)).fetchone()
    if row is None:
        return None
    number, state, instance_id, expires, remembered = row
    if remembered <= now:
        db.execute("UPDATE trioflow_messages SET message_id = NULL WHERE number = ?", (number,))
        return None
    if state == "assigned":
        (delivery,) = db.execute(
            f"{_DELIVERY} WHERE delivery.message = ? AND delivery.instance_id = ?", (number, instance_id)
        )
        return _sent(db, group, state, _deliveries([delivery])[0], duplicate=True)
    if state == "buffered" and expires <= now:
        state = "expired"
    return Sent(state=state, instance_id=instance_id, duplicate=True)


def _sent(db: sqlite3.Connection, group: int, state: str, delivery: Delivery, *, duplicate: bool) -> Sent:
    (owner,) = db.execute(_OWNER, (group, delivery.instance_id)).fetchone()
    return Sent(state=state, instance_id=delivery.instance_id, delivery=delivery, owner=owner, duplicate=duplicate)


def _post(db: sqlite3.Connection, group: int, message: Message, now: int) -> int:
    expires = now + timedelta(seconds=message.time_to_live_seconds) // _TICK
    remembered = now + timedelta(seconds=message.dedup_seconds) // _TICK
    columns = (message.tenant, message.name, message.key, message.business_key, message.message_id, message.payload)
    number = db.execute(_POST, (group, *columns, expires, remembered)).lastrowid
    assert number is not None
    return number


def broadcast(
    db: sqlite3.Connection, group: int, signal: Message, now: int, *, besides: str = ""
) -> tuple[Delivery, ...]:
    """Store a signal once, with a delivery for each who waits for it."""
    receivers = db.execute(_SIGNALLED, (group, signal.tenant, signal.name, besides)).fetchall()
    if not receivers:
        return ()
    number = db.execute(_SIGNAL, (group, signal.tenant, signal.name, signal.payload, now, now)).lastrowid
    rows = [(group, number, instance_id, wait_id) for instance_id, wait_id in receivers]
    db.executemany(_DELIVER, rows)
    return _deliveries(db.execute(f"{_DELIVERY} WHERE delivery.message = ? ORDER BY delivery.id", (number,)))


# ------------------------------------------------------------------ matching


@frozen
class _Wanted:
    """What a subscription and a message are matched by."""

    tenant: str
    name: str
    key: str | None
    business_key: str | None


@frozen
class _Free:
    number: int
    instance_id: str
    wait_id: int


def _receiver(db: sqlite3.Connection, group: int, sent: _Wanted) -> _Free | None:
    """The free subscription that comes first for such a message."""
    place = (group, sent.tenant, sent.name)
    row = None
    if sent.key is not None:
        row = db.execute(_FREE_BY_KEY, (*place, sent.key, sent.business_key, sent.business_key)).fetchone()
    wanted = addressee(sent.key, sent.business_key)
    if row is None and wanted is ANYONE:
        row = db.execute(_FREE_BY_NAME, place).fetchone()
    elif row is None and wanted is not None:
        row = db.execute(_FREE_BY_BUSINESS, (*place, wanted)).fetchone()
    return None if row is None else _Free(*row)


def _oldest_for(db: sqlite3.Connection, group: int, armed: _Wanted, now: int) -> int | None:
    """The oldest buffered message that such a subscription may get."""
    place = (group, armed.tenant, armed.name, now)
    key, business_key = armed.key, armed.business_key
    if key is not None:
        rows = [db.execute(_BUFFERED_BY_KEY, (*place, key, business_key)).fetchone()]
    elif business_key is None:
        rows = [db.execute(_BUFFERED_BY_NAME, place).fetchone()]
    else:
        rows = [
            db.execute(_BUFFERED_BY_NAME, place).fetchone(),
            db.execute(_BUFFERED_BY_BUSINESS, (*place, business_key)).fetchone(),
            db.execute(_BUFFERED_BY_KEY, (*place, key_text(business_key), business_key)).fetchone(),
        ]
    return min((row[0] for row in rows if row is not None), default=None)


def _assign(db: sqlite3.Connection, group: int, number: int, free: _Free) -> int:
    """Give a buffered message to a free subscription; the id of the delivery."""
    db.execute(
        "UPDATE trioflow_messages SET state = 'assigned', instance_id = ? WHERE number = ?", (free.instance_id, number)
    )
    delivery = db.execute(
        "INSERT INTO trioflow_deliveries (group_id, message, instance_id, wait_id) VALUES (?, ?, ?, ?)",
        (group, number, free.instance_id, free.wait_id),
    ).lastrowid
    assert delivery is not None
    db.execute("UPDATE trioflow_subscriptions SET delivery = ? WHERE number = ?", (delivery, free.number))
    return delivery


def _hand_out(db: sqlite3.Connection, group: int, number: int, now: int, *, lasting: bool = False) -> Delivery | None:
    """Look for a receiver of a buffered message; ``lasting``: even if its time to live has ended."""
    row = db.execute(_LETTER, (number, -1 if lasting else now)).fetchone()
    free = None if row is None else _receiver(db, group, _Wanted(*row))
    if free is None:
        return None
    delivery = _assign(db, group, number, free)
    return _deliveries(db.execute(f"{_DELIVERY} WHERE delivery.id = ?", (delivery,)))[0]


# ------------------------------------------------------------------ what an item does to messages


class Settling:
    """What one item does to the messages of its instance: deliveries end, and then there is matching again."""

    def __init__(self, db: sqlite3.Connection, group: int, instance_id: str, now: int) -> None:
        self._db = db
        self._group = group
        self._instance_id = instance_id
        self._now = now
        self._freed: set[int] = set()
        self._back: list[int] = []

    def arm(self, wait_id: int) -> None:
        """Note a subscription that may match now."""
        self._freed.add(wait_id)

    def consume(self, delivery: int) -> None:
        """End a delivery for good."""
        number = self._withdraw(delivery)
        if number is not None and not self._was_signal(number):
            self._db.execute("DELETE FROM trioflow_messages WHERE number = ? AND message_id IS NULL", (number,))
            self._db.execute(
                "UPDATE trioflow_messages SET state = 'consumed', payload = x'' WHERE number = ?", (number,)
            )

    def decline(self, delivery: int) -> None:
        """Take a delivery back into the buffer, in its place; nothing, if the instance has it no more."""
        number = self._withdraw(delivery)
        if number is not None and not self._was_signal(number):
            self._db.execute(_TAKE_BACK, (number,))
            self._back.append(number)

    def _was_signal(self, number: int) -> bool:
        """Whether it was a signal: nobody else gets it, and it goes with its last delivery."""
        (state,) = self._db.execute("SELECT state FROM trioflow_messages WHERE number = ?", (number,)).fetchone()
        if state == "signal":
            self._db.execute(_SIGNAL_GONE, (number,))
        return bool(state == "signal")

    def decline_all(self) -> None:
        """Take everything back."""
        rows = self._db.execute(
            "SELECT id FROM trioflow_deliveries WHERE group_id = ? AND instance_id = ?",
            (self._group, self._instance_id),
        ).fetchall()
        for (delivery,) in rows:
            self.decline(delivery)

    def _withdraw(self, delivery: int) -> int | None:
        rows = self._db.execute(_WITHDRAW, (delivery, self._group, self._instance_id)).fetchall()
        if not rows:
            return None
        ((number, wait_id),) = rows
        self._db.execute(_FREE_AGAIN, (self._group, self._instance_id, wait_id, delivery))
        self._freed.add(wait_id)
        return int(number)

    def match(self) -> None:
        """First what the subscriptions that came free want, then who wants what was given back."""
        for number, wait_id, *columns in self._waiting():
            message = _oldest_for(self._db, self._group, _Wanted(*columns), self._now)
            if message is not None:
                _assign(self._db, self._group, message, _Free(number, self._instance_id, wait_id))
        for message in sorted(self._back):
            _hand_out(self._db, self._group, message, self._now)

    def _waiting(self) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for wait_id in self._freed:
            row = self._db.execute(_WAITING, (self._group, self._instance_id, wait_id)).fetchone()
            if row is not None:
                found.append((row[0], wait_id, *row[1:]))
        return sorted(found)


# ------------------------------------------------------------------ time


def expire(db: sqlite3.Connection, group: int, now: int) -> int:
    """Mark what is past its time to live, forget what is past its window; how many were marked."""
    gone = db.execute(_DROP_LATE, (group, now)).rowcount
    marked = db.execute(_MARK_LATE, (group, now)).rowcount
    db.execute(_FORGET, (group, now))
    return gone + marked
