"""The engine: opened in a Trio program, it runs processes until its block is left."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio
from attrs import frozen

from trioflow.checkpoint.documents import Documents
from trioflow.checkpoint.recorder import key_text
from trioflow.checkpoint.records import SIGNAL, InstanceHead, Message
from trioflow.errors import (
    EngineClosed,
    HandlerMissing,
    InstanceIdInUse,
    InvalidRequest,
    StoreError,
    TrioflowError,
)
from trioflow.expressions import Languages
from trioflow.facts import Status
from trioflow.machine.apply import apply, new_state
from trioflow.machine.events import Start
from trioflow.machine.program import Options, Overdue, Program
from trioflow.machine.state import Identity
from trioflow.model.digest import DIGEST_ALGORITHM
from trioflow.runtime.acts import Act, Reply
from trioflow.runtime.closed_store import closed_store
from trioflow.runtime.committer import Committer
from trioflow.runtime.definitions import Deployed, Programs, Source
from trioflow.runtime.handlers import Handler, Handlers, Retry
from trioflow.runtime.instance import Instance
from trioflow.runtime.observers import Observation
from trioflow.runtime.operator import Incidents
from trioflow.runtime.recovery import Recovery, RecoveryReport
from trioflow.runtime.residents import Residents
from trioflow.runtime.shell import LOGGER, Shell
from trioflow.runtime.tasks import Tasks
from trioflow.runtime.timing import Timers
from trioflow.stores.clock import Clock, SystemClock
from trioflow.stores.memory import MemoryStore
from trioflow.stores.opening import open_store
from trioflow.stores.port import InstanceFilter, Sent, Store
from trioflow.values import ValueCodec

__all__ = ["Engine", "MessageOutcome", "Statistics", "open_engine"]


@frozen(kw_only=True)
class MessageOutcome:
    """What became of a message: ``consumed`` by an instance, ``assigned``, ``buffered`` or ``expired``.

    ``assigned``: its receiver has not answered (if it ends first, the message is matched again, in its place).

    ``duplicate``: a message of that name and id was sent before, and this is what became of it.
    """

    state: str
    instance_id: str | None = None
    duplicate: bool = False


@frozen(kw_only=True)
class Statistics:
    """Counts of one engine, for metrics."""

    resident: int
    commits: int
    items: int


class Engine:
    """A running engine; ``open_engine`` makes one."""

    def __init__(self, shell: Shell, programs: Programs, recovery: RecoveryReport) -> None:
        self._shell = shell
        self._programs = programs
        self.recovery = recovery
        self.tasks = Tasks(shell)
        self.incidents = Incidents(shell)

    # -------------------------------------------------------------- definitions

    async def deploy(self, *sources: Source, strict: bool = False) -> tuple[Deployed, ...]:
        """Deploy .bpmn files (paths or bytes) or built models; one new version for each changed executable process.

        Raises ``DefinitionRefused`` with every finding; with ``strict`` violations of the standard are refused too.
        """
        deployed: list[Deployed] = []
        for source in sources:
            deployed += await self._programs.deploy(source, strict=strict, now=self._shell.store.now())
        if self._shell.is_serving:
            self._shell.residents.deployed()
        return tuple(deployed)

    async def definitions(self) -> tuple[Deployed, ...]:
        """The latest version of each deployed process."""
        return await self._programs.deployed()

    # -------------------------------------------------------------- instances

    async def start(
        self,
        key: str,
        variables: Mapping[str, Any] | None = None,
        *,
        business_key: str | None = None,
        instance_id: str | None = None,
        start_event: str | None = None,
    ) -> Instance:
        """Start an instance of the latest version of process ``key``; returns when it is stored.

        With ``instance_id``, starting twice returns the first (``created`` is False), also when it has ended;
        ``InstanceIdInUse`` if that id belongs to an instance of another process.  ``InvalidRequest`` if a variable
        cannot be stored, or the process has several start events and ``start_event`` does not name one.
        Cancelling gives up the answer; whether it was started can be asked by ``instance_id``.
        """
        self._check_open()
        version, program = self._programs.at_hand(key) or await self._programs.latest(key)
        if instance_id is None:
            instance_id = _new_id()
        elif not instance_id or not isinstance(instance_id, str):
            raise InvalidRequest(f"{instance_id!r} is no instance id: give a text of your own, or none")
        else:
            found = await self._find(instance_id, key)
            if found is not None:
                return found
        return await self._start(
            program, version, instance_id, business_key, Start(variables=variables or {}, node=start_event)
        )

    async def _start(
        self, program: Program, version: int, instance_id: str, business_key: str | None, event: Start
    ) -> Instance:
        shell = self._shell
        now = shell.store.now()
        identity = Identity(
            instance_id=instance_id,
            root_id=instance_id,
            process_key=program.key,
            version=version,
            digest=program.digest,
            digest_algorithm=DIGEST_ALGORITHM,
            created=now,
            business_key=business_key,
        )
        state = new_state(identity)
        transition = apply(program, state, event, now)
        if transition.refusal:
            raise InvalidRequest(transition.refusal)
        if shell.residents.holds(instance_id):
            return await self._found(instance_id, program.key)
        host = shell.residents.create(program, state, transition)
        try:
            await host.is_stored()
        except InvalidRequest:
            return await self._found(instance_id, program.key)
        return Instance(shell, self._programs, instance_id)

    async def _find(self, instance_id: str, key: str) -> Instance | None:
        host = self._shell.residents.host(instance_id)
        if host is not None:
            await host.is_stored()
        head = await self._shell.store.head(instance_id)
        if head is None:
            return None
        if head.process_key != key:
            raise InstanceIdInUse(
                f"the instance id {instance_id!r} belongs to an instance of process {head.process_key!r}, not {key!r}: "
                f"choose another"
            )
        return Instance(self._shell, self._programs, instance_id, created=False)

    async def _found(self, instance_id: str, key: str) -> Instance:
        found = await self._find(instance_id, key)
        if found is None:
            raise StoreError(f"the start of instance {instance_id!r} was not stored: repeat it")
        return found

    def instance(self, instance_id: str) -> Instance:
        """A handle on the instance of that id; whether it exists shows when it is used."""
        return Instance(self._shell, self._programs, instance_id, created=False)

    async def instances(
        self,
        *,
        process_key: str | None = None,
        business_key: str | None = None,
        status: Iterable[Status] | None = None,
        has_incidents: bool | None = None,
        not_resumed: bool | None = None,
        after: str = "",
        limit: int = 100,
    ) -> tuple[InstanceHead, ...]:
        """Instances in the order of their ids, those after the id ``after``, at most ``limit``."""
        where = InstanceFilter(
            process_key=process_key,
            business_key=business_key,
            status=None if status is None else frozenset(status),
            has_incidents=has_incidents,
            not_resumed=not_resumed,
        )
        return await self._shell.store.instances(where, after=after, limit=limit)

    # -------------------------------------------------------------- messages

    async def send_message(
        self,
        name: str,
        *,
        key: Any = None,
        payload: Any = None,
        message_id: str | None = None,
        business_key: str | None = None,
        time_to_live: float = 3600.0,
    ) -> MessageOutcome:
        """Send a message to exactly one receiver; returns when what happened to it is stored.

        ``key`` is compared with the subscriptions' keys (equal values of equal types).  If nothing waits for it, it is
        buffered for ``time_to_live`` seconds.  Sending again with the same ``message_id`` does nothing and says what
        became of the first.  Cancelling gives up the answer, not the message.
        """
        self._check_open()
        codec, documents = self._shell.codec, self._shell.documents
        _check_name("message", name)
        if time_to_live < 0:
            raise InvalidRequest(f"the message {name!r} has a time to live of {time_to_live} s: it cannot be negative")
        message = Message(
            name=name,
            key=None if key is None else key_text(documents, codec.canonical(key, "key")),
            payload=documents.write_value(codec.canonical(payload, "payload")),
            message_id=message_id,
            business_key=business_key,
            time_to_live_seconds=time_to_live,
        )
        sent = await self._shell.store.send(message)
        if sent.delivery is None:
            return _outcome(sent)
        reply = Reply()
        act = Act(self._shell.residents.arrival(sent.delivery), reply=reply)
        self._shell.residents.deliver(sent.delivery.instance_id, act)
        try:
            consumed = await reply.wait()
        except TrioflowError:
            consumed = False  # its receiver ended, or cannot be loaded: the message itself is stored
        if consumed:
            receiver = sent.delivery.instance_id
            return MessageOutcome(state="consumed", instance_id=receiver, duplicate=sent.duplicate)
        if message_id is None:
            return _outcome(sent)
        again = await self._shell.store.send(message)  # known by its id: nothing is sent twice
        return _outcome(again, duplicate=sent.duplicate)

    async def signal(self, name: str, payload: Any = None) -> int:
        """Broadcast a signal to all that wait for it at this moment, parked instances included; how many those are.

        Returns when it is stored.  It is never buffered: who waits later does not get it.
        """
        self._check_open()
        _check_name("signal", name)
        codec, documents = self._shell.codec, self._shell.documents
        payload_bytes = documents.write_value(codec.canonical(payload, "payload"))
        sent = await self._shell.store.broadcast(Message(name=SIGNAL + name, payload=payload_bytes))
        self._shell.residents.deliver_all(sent)
        return len(sent)

    # -------------------------------------------------------------- observation

    def observe(self, *, buffer: int = 1_000) -> AbstractAsyncContextManager[Observation]:
        """Facts as they are stored: ``async with engine.observe() as facts: async for fact in facts``.

        A subscriber that lags more than ``buffer`` facts behind loses some (``facts.lost`` counts them).
        """
        return self._shell.observers.subscribe(buffer=buffer)

    def statistics(self) -> Statistics:
        """Counts as they are now."""
        committer = self._shell.committer
        return Statistics(resident=len(self._shell.residents), commits=committer.commits, items=committer.items)

    def _check_open(self) -> None:
        if self._shell.closing:
            raise EngineClosed("the engine is closing and takes no new work")


def _check_name(kind: str, name: str) -> None:
    if not name or not name.isprintable():
        raise InvalidRequest(f"a {kind} needs a name that can be printed, not {name!r}")


def _outcome(sent: Sent, *, duplicate: bool | None = None) -> MessageOutcome:
    receiver = sent.instance_id if sent.delivery is None else sent.delivery.instance_id
    return MessageOutcome(
        state=sent.state, instance_id=receiver, duplicate=sent.duplicate if duplicate is None else duplicate
    )


# ------------------------------------------------------------------ opening and closing


@asynccontextmanager
async def open_engine(
    store: str | Store | None = None,
    *,
    handlers: Handlers | Mapping[str, Handler] | None = None,
    deploy: Iterable[Source] = (),
    engine_id: str = "main",
    group: str | None = None,
    create_group: bool = True,
    retry: Retry = Retry(),  # noqa: B008 - frozen
    languages: Languages | None = None,
    value_types: Iterable[type] = (),
    clock: Clock | None = None,
    worker_threads: int = 40,
    grace: float = 10.0,
    require_handlers: bool = False,
    overdue: Overdue = "once",
    presumed_abort: bool = True,
    step_limit: int = 1_000_000,
) -> AsyncIterator[Engine]:
    """Open an engine; leaving the block shuts it down gracefully, and never ends an instance.

    ``store``: None (in memory only), a URL such as ``sqlite:///orders.db``, or a store object.  ``engine_id`` names
    the engine in its ``group`` (default: the engine's id); a second living engine of the same name is refused with
    ``EngineInUse``.  ``deploy``: what ``Engine.deploy`` takes.  ``retry``: the policy of handlers without one of their
    own.  ``value_types``: attrs classes that variables may hold.  ``worker_threads`` bounds the plain handlers that
    run at once.  ``grace``: seconds that running steps have to finish at the end; those that do not are cancelled, and
    run again when the instance is loaded next.  ``require_handlers``: refuse a deployment whose handlers are missing
    (``HandlerMissing``).

    ``overdue``: of a timer cycle whose points were missed, ``once`` fires once for all of them, ``skip`` not at all,
    ``all`` each.  ``presumed_abort``: an error that leaves a sub-process has what that did undone first (a process says
    otherwise for itself with ``trioflow:presumedAbort``).  ``step_limit``: steps of a token without a wait or an
    executed activity, before it is an incident.

    An exception of the block itself leaves unwrapped; a bug of the engine propagates out of it.
    """
    settings = _Settings(
        store=_store(store, clock),
        handlers=handlers if handlers is not None else Handlers(),
        deploy=tuple(deploy),
        engine_id=engine_id,
        group=group if group is not None else engine_id,
        create_group=create_group,
        retry=retry,
        languages=languages if languages is not None else Languages.default(),
        codec=ValueCodec(value_types),
        clock=clock if clock is not None else SystemClock(),
        worker_threads=worker_threads,
        grace=grace,
        require_handlers=require_handlers,
        options=Options(hop_limit=step_limit, overdue=overdue, presumed_abort=presumed_abort),
    )
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            engine, close = await nursery.start(_serve, settings)
            try:
                yield engine
            except BaseException as error:  # noqa: ASYNC103 - raised below, outside the nursery, unwrapped
                failure = error
                if _is_cancellation(error):
                    raise
            finally:
                with trio.CancelScope(shield=True):
                    await close()
    except BaseExceptionGroup as group_error:
        raise _unwrapped(group_error) from failure
    if failure is not None:
        raise failure


@frozen(kw_only=True)
class _Settings:
    store: Store
    handlers: Mapping[str, Handler]
    deploy: tuple[Source, ...]
    engine_id: str
    group: str
    create_group: bool
    retry: Retry
    languages: Languages
    codec: ValueCodec
    clock: Clock
    worker_threads: int
    grace: float
    require_handlers: bool
    options: Options


def _store(store: str | Store | None, clock: Clock | None) -> Store:
    if store is None:
        return MemoryStore(clock=clock) if clock is not None else MemoryStore()
    if isinstance(store, str):
        return open_store(store, clock=clock)
    return store


def _unwrapped(error: BaseException) -> BaseException:
    """What nurseries have wrapped, if it is one exception alone."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _is_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(_is_cancellation(each) for each in error.exceptions)
    return isinstance(error, trio.Cancelled)


async def _serve(settings: _Settings, *, task_status: trio.TaskStatus[Any]) -> None:  # noqa: ASYNC128 - _work does
    """The engine's own task, from the opening of the store to its close."""
    store = settings.store
    owner = await store.open(
        group=settings.group,
        engine_id=settings.engine_id,
        create_group=settings.create_group,
        handler_names=tuple(settings.handlers),
    )
    try:
        shell = Shell(
            store=store,
            owner=owner,
            codec=settings.codec,
            documents=Documents(settings.codec),
            handlers=settings.handlers,
            retry=settings.retry,
            threads=trio.CapacityLimiter(settings.worker_threads),
            clock=settings.clock,
        )
        programs = Programs(store, settings.languages, settings.codec, clock=settings.clock, options=settings.options)
        engine = Engine(shell, programs, RecoveryReport())
        await _deploy(engine, settings)
        try:
            with trio.CancelScope(shield=True):  # a cancelled program still shuts the engine down in order
                await _work(engine, shell, programs, grace=settings.grace, task_status=task_status)
        finally:
            shell.store = closed_store()
            programs.close()
    finally:
        with trio.CancelScope(shield=True):
            await store.close()


async def _work(
    engine: Engine, shell: Shell, programs: Programs, *, grace: float, task_status: trio.TaskStatus[Any]
) -> None:
    """Serve until ``close`` is called, then shut down; ``close`` returns when that is done."""
    closing, done = trio.Event(), trio.Event()

    async def close() -> None:
        closing.set()
        await done.wait()

    try:
        async with trio.open_nursery() as nursery:
            shell.assemble(
                nursery=nursery,
                committer=Committer(shell),
                residents=Residents(shell, programs, engine.recovery),
                timers=Timers(shell),
                recovery=Recovery(shell, engine.recovery),
            )
            nursery.start_soon(shell.committer.run)
            async with trio.open_nursery() as services:
                services.start_soon(shell.timers.run)
                services.start_soon(shell.recovery.run)
                task_status.started((engine, close))
                await closing.wait()
                services.cancel_scope.cancel()
            await _shut_down(shell, grace)
            nursery.cancel_scope.cancel()
    finally:
        done.set()


async def _deploy(engine: Engine, settings: _Settings) -> None:
    for source in settings.deploy:
        for deployed in await engine.deploy(source):
            missing = [name for name in deployed.handler_names if name not in settings.handlers]
            if not missing:
                continue
            message = f"process {deployed.key!r} calls handlers that the engine does not have: {', '.join(missing)}"
            if settings.require_handlers:
                raise HandlerMissing(f"{message}; register them with @handlers.task(name)")
            LOGGER.warning("%s; a token that gets there becomes an incident", message)


async def _shut_down(shell: Shell, grace: float) -> None:
    """Stop intake, let running steps finish, cancel the rest, take the last checkpoints, give the ownership up."""
    shell.closing = True
    shell.watchers.release_all()
    for host in shell.residents.hosts():
        host.nudge()
    with trio.move_on_after(grace):
        await shell.residents.closed()
    for host in shell.residents.hosts():
        LOGGER.warning(
            "instance %s: steps that are still running are cancelled; they run again later", host.instance_id
        )
        host.stop_running()
    with trio.move_on_after(max(grace, 1.0)):
        await shell.residents.closed()
        await shell.committer.drained()
    shell.residents.give_up()
    shell.observers.close()
    shell.watchers.release_all()


def _new_id() -> str:
    """A new instance id: 26 characters, sorted by nothing, unique without asking anybody."""
    return secrets.token_hex(13)
