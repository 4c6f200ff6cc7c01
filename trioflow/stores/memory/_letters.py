"""Messages, subscriptions, and who gets which."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar

from attrs import define, evolve

from trioflow.checkpoint.records import SIGNAL, Delivery, Message, SubscriptionRow
from trioflow.stores.matching import ANYONE, addressee, key_text, matches
from trioflow.stores.memory._order import Lines, Ordered

__all__ = ["Letter", "PostOffice", "Waiting"]


@define(eq=False, weakref_slot=False)
class Waiting:
    """A subscription.  ``number``: its place in the order of arming; ``letter``: what it has, until consumed."""

    kind: ClassVar[str] = "subscription"

    row: SubscriptionRow
    number: int
    letter: Letter | None = None

    @property
    def wait_id(self) -> int:
        """The wait in its instance."""
        return self.row.wait_id


@define(eq=False, weakref_slot=False)
class Letter:
    """A message.  ``number``: its place in the order of sending; ``delivery``: the assignment, until it ends.

    ``receiver``: the instance that has it or had it; ``waiting``: the subscription, as long as that is armed.
    """

    number: int
    message: Message
    expires: datetime
    remembered: datetime
    state: str = "buffered"
    receiver: str | None = None
    delivery: Delivery | None = None
    waiting: Waiting | None = None

    @property
    def is_signal(self) -> bool:
        """Whether it is one receiver's copy of a signal: it goes to nobody else."""
        return self.message.name.startswith(SIGNAL)


class PostOffice:
    """The subscriptions that are free, the messages that nobody has, and the ids that are remembered.

    A subscription has at most one delivery at a time: the next message goes to another that matches, or waits until
    this one was consumed.
    """

    __slots__ = (
        *("_arming", "_assigned", "_buffered", "_ends", "_free", "_known", "_letters", "_looks"),
        *("_outgoing", "_sending", "_waiting", "outgoing"),
    )

    def __init__(self) -> None:
        self._arming = 0
        self._sending = 0
        self._assigned = 0
        self._waiting: dict[int, Waiting] = {}  # the free ones, by number
        self._free: Lines[int] = Lines()
        self._letters: dict[int, Letter] = {}  # the buffered ones, by number
        self._buffered: Lines[int] = Lines()
        self._known: dict[tuple[str, str, str], Letter] = {}
        self._looks = 0
        self._ends: list[tuple[datetime, int, Letter]] = []  # a heap: when to look at a letter again
        self._outgoing: Ordered[int] = Ordered()
        self.outgoing: dict[int, Letter] = {}
        """Assigned and not consumed, by delivery id."""

    # ---------------------------------------------------------------- subscriptions

    def arm(self, row: SubscriptionRow) -> Waiting:
        """Add a subscription behind all others."""
        self._arming += 1
        waiting = Waiting(row=row, number=self._arming)
        self._set_free(waiting)
        return waiting

    def rearm(self, waiting: Waiting, row: SubscriptionRow) -> None:
        """Write a subscription anew, in its place."""
        self._set_busy(waiting)
        waiting.row = row
        if waiting.letter is None:
            self._set_free(waiting)

    def disarm(self, waiting: Waiting) -> None:
        """Remove a subscription; what it was assigned stays assigned to its instance."""
        self._set_busy(waiting)
        if waiting.letter is not None:
            waiting.letter.waiting = None
            waiting.letter = None

    def _set_free(self, waiting: Waiting) -> None:
        self._waiting[waiting.number] = waiting
        for line in _lines_of(waiting.row):
            self._free.add(line, waiting.number)

    def _set_busy(self, waiting: Waiting) -> None:
        if self._waiting.pop(waiting.number, None) is not None:
            for line in _lines_of(waiting.row):
                self._free.discard(line, waiting.number)

    # ---------------------------------------------------------------- messages

    def known(self, message: Message, now: datetime) -> Letter | None:
        """The letter of the same name and id that is still remembered."""
        if message.message_id is None:
            return None
        letter = self._known.get((message.tenant, message.name, message.message_id))
        if letter is None or letter.remembered <= now:
            return None
        return letter

    def post(self, message: Message, now: datetime) -> Letter:
        """Store a message behind all others."""
        self._sending += 1
        letter = Letter(
            number=self._sending,
            message=message,
            expires=now + timedelta(seconds=message.time_to_live_seconds),
            remembered=now + timedelta(seconds=message.dedup_seconds),
        )
        if message.message_id is not None:
            self._known[message.tenant, message.name, message.message_id] = letter
        self._buffer(letter)
        return letter

    def _buffer(self, letter: Letter) -> None:
        self._letters[letter.number] = letter
        for line in _lines_to(letter.message):
            self._buffered.add(line, letter.number)
        self._look_again(letter.expires, letter)

    def _take_out(self, letter: Letter) -> None:
        if self._letters.pop(letter.number, None) is not None:
            for line in _lines_to(letter.message):
                self._buffered.discard(line, letter.number)

    # ---------------------------------------------------------------- matching

    def receiver_of(self, letter: Letter) -> Waiting | None:
        """The free subscription that comes first for this message."""
        for line in _wanted_by(letter.message):
            for number in self._free.after(line):
                waiting = self._waiting[number]
                if matches(letter.message, waiting.row):
                    return waiting
        return None

    def letter_for(self, waiting: Waiting, now: datetime) -> Letter | None:
        """The oldest buffered message that this subscription, if it is free, may get."""
        if waiting.letter is not None:
            return None
        found = (self._oldest(line, waiting.row, now) for line in _wants(waiting.row))
        return min((letter for letter in found if letter is not None), key=_number, default=None)

    def _oldest(self, line: tuple[str, ...], row: SubscriptionRow, now: datetime) -> Letter | None:
        for number in self._buffered.after(line):
            letter = self._letters[number]
            if letter.expires > now and matches(letter.message, row):
                return letter
        return None

    def assign(self, letter: Letter, waiting: Waiting) -> Delivery:
        """Give a buffered message to a free subscription."""
        self._take_out(letter)
        self._set_busy(waiting)
        self._assigned += 1
        row = waiting.row
        delivery = Delivery(
            id=self._assigned,
            instance_id=row.instance_id,
            wait_id=row.wait_id,
            name=row.name,
            payload=letter.message.payload,
        )
        waiting.letter, letter.waiting = letter, waiting
        letter.state, letter.receiver, letter.delivery = "assigned", row.instance_id, delivery
        self.outgoing[delivery.id] = letter
        self._outgoing.add(delivery.id)
        return delivery

    def all_for(self, signal: Message) -> list[Waiting]:
        """All who wait for a signal, in the order of arming."""
        return [self._waiting[number] for number in self._free.after(("any", signal.tenant, signal.name))]

    def hand(self, signal: Message, waiting: Waiting, now: datetime) -> Letter:
        """Give a signal to one who waits for it; who does goes on waiting."""
        self._sending += 1
        self._assigned += 1
        row = waiting.row
        delivery = Delivery(
            id=self._assigned,
            instance_id=row.instance_id,
            wait_id=row.wait_id,
            name=signal.name,
            payload=signal.payload,
        )
        letter = Letter(self._sending, signal, now, now, "assigned", row.instance_id, delivery)
        self.outgoing[delivery.id] = letter
        self._outgoing.add(delivery.id)
        return letter

    def outgoing_after(self, delivery_id: int) -> Iterator[Letter]:
        """Assigned and not consumed, in order of delivery id, those behind that id."""
        return (self.outgoing[found] for found in self._outgoing.after(delivery_id))

    # ---------------------------------------------------------------- what becomes of a delivery

    def consume(self, letter: Letter) -> Waiting | None:
        """End a delivery for good; the subscription, if it is still armed and now free again."""
        waiting = self._withdraw(letter)
        letter.state = "consumed"
        if letter.message.message_id is not None:
            letter.message = _without_payload(letter.message)
            self._look_again(letter.remembered, letter)
        return waiting

    def decline(self, letter: Letter) -> Waiting | None:
        """Take a delivery back into the buffer, in its place; the subscription, if it is still armed."""
        waiting = self._withdraw(letter)
        letter.state, letter.receiver = "buffered", None
        self._buffer(letter)
        return waiting

    def _withdraw(self, letter: Letter) -> Waiting | None:
        assert letter.delivery is not None
        del self.outgoing[letter.delivery.id]
        self._outgoing.discard(letter.delivery.id)
        letter.delivery = None
        waiting, letter.waiting = letter.waiting, None
        if waiting is not None:
            waiting.letter = None
            self._set_free(waiting)
        return waiting

    # ---------------------------------------------------------------- time

    def expire(self, now: datetime) -> int:
        """Mark what is past its time to live, forget what is past its window; how many were marked."""
        marked = 0
        while self._ends and self._ends[0][0] <= now:
            letter = heapq.heappop(self._ends)[2]
            if letter.state == "buffered" and letter.expires <= now:
                self._mark(letter)
                marked += 1
            self._forget(letter, now)
        return marked

    def _look_again(self, when: datetime, letter: Letter) -> None:
        self._looks += 1  # letters have no order: a number decides between equal times
        heapq.heappush(self._ends, (when, self._looks, letter))

    def _mark(self, letter: Letter) -> None:
        self._take_out(letter)
        letter.state = "expired"
        letter.message = _without_payload(letter.message)

    def _forget(self, letter: Letter, now: datetime) -> None:
        message = letter.message
        if message.message_id is None or letter.state not in {"consumed", "expired"}:
            return
        name = (message.tenant, message.name, message.message_id)
        if letter.remembered > now:
            self._look_again(letter.remembered, letter)
        elif self._known.get(name) is letter:
            del self._known[name]


def _number(letter: Letter) -> int:
    return letter.number


def _without_payload(message: Message) -> Message:
    return evolve(message, payload=b"")


# ------------------------------------------------------------------ the lines in which both stand

Line = tuple[str, ...]


def _lines_of(row: SubscriptionRow) -> tuple[Line, ...]:
    """Where a subscription stands."""
    place = (row.tenant, row.name)
    if row.key is not None:
        return (("key", *place, row.key),)
    if row.business_key is None:
        return (("any", *place),)
    return (("any", *place), ("business", *place, row.business_key))


def _wanted_by(message: Message) -> tuple[Line, ...]:
    """Where a message looks for a subscription, the best line first."""
    place = (message.tenant, message.name)
    wanted = addressee(message.key, message.business_key)
    lines: tuple[Line, ...] = () if message.key is None else (("key", *place, message.key),)
    if wanted is ANYONE:
        return (*lines, ("any", *place))
    return lines if wanted is None else (*lines, ("business", *place, wanted))


def _lines_to(message: Message) -> tuple[Line, ...]:
    """Where a message stands."""
    place = (message.tenant, message.name)
    lines: list[Line] = []
    if message.key is not None:
        lines.append(("key", *place, message.key))
    if message.business_key is not None:
        lines.append(("business", *place, message.business_key))
    return tuple(lines) or (("any", *place),)


def _wants(row: SubscriptionRow) -> tuple[Line, ...]:
    """Where a subscription looks for messages; the oldest of all its lines is its message."""
    place = (row.tenant, row.name)
    if row.key is not None:
        return (("key", *place, row.key),)
    if row.business_key is None:
        return (("any", *place),)
    key = key_text(row.business_key)
    return (("any", *place), ("business", *place, row.business_key), ("key", *place, key))
