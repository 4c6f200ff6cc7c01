"""The residents: which instances this engine holds in memory, and how the others come here.

An act for an instance that is not here claims it first, then hydrates it, then delivers; acts that come meanwhile
wait in its entry.  One code path serves wake-on-trigger, restart and adoption.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import trio
from attrs import define, field

from trioflow.checkpoint.recorder import RESUME, Recorder
from trioflow.checkpoint.records import SIGNAL, Delivery, InstanceHead, TimerRow
from trioflow.errors import (
    CorruptRecord,
    DefinitionNotFound,
    InstanceNotFound,
    OwnershipLost,
    StoreError,
    TrioflowError,
)
from trioflow.machine.apply import running_steps
from trioflow.machine.derive import derive
from trioflow.machine.events import MessageArrived, Reentered, SignalArrived
from trioflow.machine.program import Program
from trioflow.machine.state import State
from trioflow.machine.transition import Transition
from trioflow.runtime.acts import Act, engine_closed
from trioflow.runtime.host import Host
from trioflow.runtime.insisting import insist
from trioflow.runtime.set_aside import SetAside
from trioflow.runtime.shell import LOGGER, Shell
from trioflow.stores.port import Loaded

if TYPE_CHECKING:
    from trioflow.runtime.definitions import Programs
    from trioflow.runtime.recovery import RecoveryReport

__all__ = ["Residents"]

MAX_ENTERING = 64
"""Instances that may be on their way in before triggers that can wait do so."""
MAX_FAILURES = 5
"""Attempts to load an instance before it is quarantined."""


@define(eq=False)
class Entering:
    """An instance on its way in: who asked for it waits here."""

    instance_id: str
    acts: deque[Act] = field(factory=deque)
    by_operator: bool = False


class Residents:
    """Instances in memory, by id."""

    def __init__(self, shell: Shell, programs: Programs, report: RecoveryReport) -> None:
        self._shell = shell
        self._programs = programs
        self._report = report
        self._entries: dict[str, Host | Entering] = {}
        self._entering = 0
        self._room = trio.Event()
        self._set_aside = SetAside()
        self._empty = trio.Event()

    def __len__(self) -> int:
        return len(self._entries)

    def host(self, instance_id: str) -> Host | None:
        """The host, if the instance is resident."""
        entry = self._entries.get(instance_id)
        return entry if isinstance(entry, Host) else None

    def holds(self, instance_id: str) -> bool:
        """Whether the instance is resident, or on its way in."""
        return instance_id in self._entries

    # -------------------------------------------------------------- coming in

    def create(self, program: Program, state: State, transition: Transition) -> Host:
        """A new instance whose start has just been applied."""
        recorder = Recorder(self._shell.documents, program)
        host = Host(self._shell, program, state, recorder)
        self._entries[host.instance_id] = host
        host.begin((), first=transition)
        if host.has_left:
            self.left(host, [])
        else:
            self._shell.nursery.start_soon(host.run, name=host.instance_id)
        return host

    def deliver(self, instance_id: str, act: Act) -> None:
        """Give an act to the instance, wherever it is; never waits.  Look-up and posting are one stretch."""
        entry = self._entries.get(instance_id)
        if isinstance(entry, Host):
            entry.post(act)
            return
        if entry is None:
            refusal = self._set_aside.refusal(instance_id, self._shell.store.now())
            if refusal is not None:
                _refuse(act, refusal)
                return
            entry = self._entries[instance_id] = Entering(instance_id)
            self._entering += 1
            self._shell.nursery.start_soon(self._enter, entry, name=instance_id)
        entry.acts.append(act)

    @property
    def is_crowded(self) -> bool:
        """Whether so many instances are on their way in that a trigger that can wait had better (``wait_for_room``)."""
        return self._entering >= MAX_ENTERING

    async def wait_for_room(self) -> None:
        """Wait until fewer instances are on their way in."""
        while self.is_crowded:
            self._room = trio.Event()
            await self._room.wait()

    def _has_entered(self) -> None:
        self._entering -= 1
        self._room.set()

    def retry(self, instance_id: str, act: Act) -> None:
        """An operator has an instance loaded again that was set aside."""
        self._set_aside.retry(instance_id)
        self.deliver(instance_id, act)
        entry = self._entries.get(instance_id)
        if isinstance(entry, Entering):
            entry.by_operator = True

    def deployed(self) -> None:
        """Something was deployed: instances that missed their definition are tried again."""
        for instance_id in self._set_aside.deployed():
            self.deliver(instance_id, Act())

    async def call(self, instance_id: str, act: Act) -> object:
        """``deliver`` for a caller who waits for the answer, and for room at a busy instance."""
        if self._shell.closing:
            raise engine_closed(instance_id)
        host = self.host(instance_id)
        if host is not None:
            await host.admit()
        assert act.reply is not None
        self.deliver(instance_id, act)
        return await act.reply.wait()

    def deliver_all(self, deliveries: Iterable[Delivery]) -> None:
        """Bring assigned messages to the waits that they were assigned to (a closing engine leaves them stored)."""
        if self._shell.closing:
            return
        for delivery in deliveries:
            self.deliver(delivery.instance_id, Act(self.arrival(delivery)))

    def arrival(self, delivery: Delivery) -> MessageArrived | SignalArrived:
        """The event that a delivery is for its instance."""
        payload = self._shell.documents.read_value(delivery.payload)
        if delivery.name.startswith(SIGNAL):
            name = delivery.name.removeprefix(SIGNAL)
            return SignalArrived(wait=delivery.wait_id, delivery=delivery.id, name=name, payload=payload)
        return MessageArrived(wait=delivery.wait_id, delivery=delivery.id, name=delivery.name, payload=payload)

    async def _enter(self, entry: Entering) -> None:
        """Claim, load, check, fold, derive; then deliver what waits."""
        loaded = await self._claim(entry)
        if loaded is None:
            await self._not_claimed(entry)
            return
        if await self._is_quarantined(entry, loaded):
            return
        try:
            host = await self._hydrate(loaded)
        except Exception as error:  # noqa: BLE001 - one bad record is one bad record
            await self._not_loaded(entry, loaded, error)
            return
        self._entries[entry.instance_id] = host
        host.forgiven = entry.by_operator
        for act in entry.acts:
            host.post(act)
        self._has_entered()
        await host.run()

    async def _claim(self, entry: Entering) -> Loaded | None:
        """Claim until that is answered: one that was done while its answer was lost leaves an instance nobody looks at.

        Callers are told at once, and repeat their acts; triggers wait here.
        """
        instance_id, owner = entry.instance_id, self._shell.owner
        return await insist(
            f"give instance {instance_id}",
            lambda: self._shell.store.claim(instance_id, owner),
            refused=lambda error: self._refuse_callers(entry, error),
        )

    @staticmethod
    def _refuse_callers(entry: Entering, error: Exception) -> None:
        waiting = [act for act in entry.acts if act.reply is not None]
        entry.acts = deque(act for act in entry.acts if act.reply is None)
        for act in waiting:
            _refuse(act, error)

    async def _is_quarantined(self, entry: Entering, loaded: Loaded) -> bool:
        """Whether it failed so often that only an operator may have it tried again (``entry.by_operator``)."""
        head = loaded.head
        if head.failures < MAX_FAILURES or entry.by_operator:
            return False
        self._set_aside.add(head.instance_id, f"quarantined after {head.failures} failures, the last: {head.failure}")
        self._report.add("quarantined", head.instance_id, head.failure)
        await self._give_back(head.instance_id)
        refusal = self._set_aside.refusal(head.instance_id, self._shell.store.now())
        assert refusal is not None
        self._turn_away(entry, refusal)
        return True

    async def _hydrate(self, loaded: Loaded) -> Host:
        head = loaded.head
        program = await self._programs.version(head.process_key, head.version)
        if (program.digest, program.digest_algorithm) != (head.digest, head.digest_algorithm):
            raise _Drifted(
                f"process {head.process_key!r} version {head.version} has the shape {program.digest}, "
                f"the instance was stored under {head.digest or 'none'}"
            )
        state = self._shell.documents.fold(loaded.pieces, instance_id=head.instance_id)
        derive(program, state)
        recorder = Recorder(self._shell.documents, program)
        recorder.loaded(state, version=head.record_version, pieces=loaded.pieces, failed=bool(head.failures))
        host = Host(self._shell, program, state, recorder)
        if loaded.abandoned:
            self._report.add("resumed", head.instance_id)
            host.post(Act(Reentered()))
        else:
            host.begin(running_steps(state))
        self._fact(head.instance_id, "instance-hydrated")
        return host

    async def _not_claimed(self, entry: Entering) -> None:
        try:
            head = await self._shell.store.head(entry.instance_id)
        except StoreError as error:
            self._turn_away(entry, error)
            return
        self._turn_away(entry, _why_not(entry.instance_id, head))

    async def _not_loaded(self, entry: Entering, loaded: Loaded, error: Exception) -> None:
        """One bad record is one bad record: it is marked or counted, and everything else goes on."""
        head, store, owner = loaded.head, self._shell.store, self._shell.owner
        if isinstance(error, _Drifted):
            self._set_aside.add(head.instance_id, f"drifted: {error}")
            self._report.add("drifted", head.instance_id, str(error))
            await insist("mark a drifted instance", lambda: store.mark_drift(head.instance_id, owner, str(error)))
        elif isinstance(error, DefinitionNotFound):
            self._set_aside.add(head.instance_id, str(error), for_definition=True)
            self._report.add("unknown definition", head.instance_id, str(error))
            await self._give_back(head.instance_id)
        else:
            await self._count_failure(head.instance_id, head.failures, error)
        reason = self._set_aside.refusal(head.instance_id, store.now()) or error
        self._turn_away(entry, error if isinstance(error, CorruptRecord) else reason)

    async def _count_failure(self, instance_id: str, failures: int, error: Exception | str) -> None:
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        final = self._shell.store.volatile or failures + 1 >= MAX_FAILURES
        retry_at = None if final else self._shell.store.now() + timedelta(seconds=2.0**failures)
        self._set_aside.add(instance_id, text, until=retry_at)
        await self._give_back(instance_id, failure=text, retry_at=retry_at)
        if retry_at is not None:
            self._shell.timers.push(TimerRow(instance_id, RESUME, retry_at))
        kind = "quarantined" if retry_at is None else "failed"
        self._report.add(kind, instance_id, text)
        LOGGER.error(
            "instance %s %s: %s", instance_id, kind, text, exc_info=error if isinstance(error, Exception) else None
        )

    async def _give_back(self, instance_id: str, *, failure: str = "", retry_at: datetime | None = None) -> None:
        """Give up the ownership of an instance that cannot be loaded."""
        store, owner = self._shell.store, self._shell.owner
        await insist(
            f"take instance {instance_id} back",
            lambda: store.release(instance_id, owner, failure=failure, retry_at=retry_at),
        )

    def _turn_away(self, entry: Entering, error: Exception) -> None:
        self._entries.pop(entry.instance_id, None)
        self._has_entered()
        for act in entry.acts:
            _refuse(act, error)
        self._check_empty()

    # -------------------------------------------------------------- going out

    def left(self, host: Host, leftovers: list[Act]) -> None:
        """A host has ended.  Who came meanwhile is delivered again: the instance is claimed and hydrated for it."""
        if self._entries.get(host.instance_id) is host:
            del self._entries[host.instance_id]
        if host.state.is_terminal or host.is_lost:
            self._shell.watchers.notify(host.instance_id, None)  # whoever waits looks into the store
        for act in leftovers:
            if self._shell.closing:
                _refuse(act, engine_closed(host.instance_id))
            elif act.query is not None:
                _refuse(act, InstanceNotFound(f"instance {host.instance_id!r} has just parked: the store knows"))
            else:
                self.deliver(host.instance_id, act)
        if host.reload and not self._shell.closing:
            self.deliver(host.instance_id, Act())
        self._check_empty()

    def lost(self, host: Host, failure: str) -> None:
        """A host gave its instance up without storing; with ``failure`` that is counted in the store."""
        if failure:
            self._shell.nursery.start_soon(self._count_loss, host.instance_id, failure)

    async def _count_loss(self, instance_id: str, failure: str) -> None:
        head = await insist("tell of a lost instance", lambda: self._shell.store.head(instance_id))
        if head is not None:
            await self._count_failure(instance_id, head.failures, failure)

    async def closed(self) -> None:
        """Wait until no instance is resident any more (the engine closes)."""
        while self._entries:
            self._empty = trio.Event()
            await self._empty.wait()

    def give_up(self) -> None:
        """The store does not answer at the end of a shutdown: whoever waits for it is told."""
        for entry in list(self._entries.values()):
            error = engine_closed(entry.instance_id)
            if isinstance(entry, Host):
                entry.lose(error)
            else:
                self._turn_away(entry, error)

    def hosts(self) -> list[Host]:
        """All hosts, as they are now."""
        return [entry for entry in self._entries.values() if isinstance(entry, Host)]

    def _check_empty(self) -> None:
        if not self._entries:
            self._empty.set()

    def _fact(self, instance_id: str, kind: str) -> None:
        if self._shell.observers:
            self._shell.observers.publish(instance_id, self._shell.store.now(), ((kind, "", 0, {}),))


def _refuse(act: Act, error: Exception) -> None:
    if act.reply is not None:
        act.reply.fail(error)


def _why_not(instance_id: str, head: InstanceHead | None) -> TrioflowError:
    if head is None:
        return InstanceNotFound(f"there is no instance {instance_id!r}")
    if head.status.is_terminal:
        return InstanceNotFound(f"instance {instance_id!r} has ended ({head.status.value})")
    return OwnershipLost(f"instance {instance_id!r} is held by the engine {head.owner!r}: try again there")


class _Drifted(TrioflowError):
    """The stored shape is not the definition's."""
