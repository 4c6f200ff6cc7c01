"""The instance host: one nursery, one owner task, and the task of each track that executes something.

The owner is the only one that changes the instance's state.  What comes to it (reports of track tasks, acts of callers,
triggers) goes through one inbox; what comes out of the machine (runs, stops) is performed once what led to it
is stored.  When every track is parked, the last piece is taken *with* the release of ownership, and the host ends:
that is dehydration, the normal case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import trio
from attrs import define, field

from trioflow.checkpoint.recorder import Recorder
from trioflow.checkpoint.records import Item, SubscriptionRow
from trioflow.errors import EngineBug, InvalidRequest, StoreError, TrioflowError
from trioflow.facts import RawFact
from trioflow.machine.apply import advance, apply
from trioflow.machine.events import Event, MessageArrived, Report, SignalArrived
from trioflow.machine.program import Program
from trioflow.machine.state import State
from trioflow.machine.transition import Effect, Post, Run, Stop, Transition
from trioflow.runtime.acts import Act, Reply, Told, ownership_lost
from trioflow.runtime.parking import Berth
from trioflow.runtime.shell import LOGGER, Shell
from trioflow.runtime.track_tasks import Blocked, TrackTasks
from trioflow.stores.port import Answer, Outcome

if TYPE_CHECKING:
    from trioflow.runtime.runners import Runner

__all__ = ["Host"]

SUBSCRIPTION = SubscriptionRow.kind
MANY_MARKS = 4_096
"""Touched entities after which a volatile store's marks are forgotten: the next piece is a base anyway."""


_ARRIVALS = (MessageArrived, SignalArrived)
"""A union would be made anew at each step."""


@define(eq=False)
class Host:
    """One resident instance.

    ``seq`` counts the transitions, and what waits for the store waits for one of them to be ``stored``.
    ``is_lost``: ownership was lost or the state was thrown away, and nothing of it is stored any more;
    ``reload``: it is to be loaded again then, at its last commit.
    """

    shell: Shell
    program: Program
    state: State
    recorder: Recorder
    instance_id: str = field(init=False)
    tasks: TrackTasks = field(init=False)
    nursery: trio.Nursery | None = field(init=False, default=None)
    is_lost: bool = field(init=False, default=False)
    reload: bool = field(init=False, default=False)
    forgiven: bool = field(init=False, default=False)
    """An operator had it loaded again: what was noted of failures is forgotten, even if nothing is applied."""
    seq: int = field(init=False, default=0)
    stored: int = field(init=False, default=0)
    _captured: int = field(init=False, default=0)
    _is_new: bool = field(init=False)
    _volatile: bool = field(init=False)
    _logged: int = field(init=False)
    _leaving: bool = field(init=False, default=False)
    _gone: bool = field(init=False, default=False)
    _dirty: bool = field(init=False, default=False)
    _calls: int = field(init=False, default=0)
    _room: trio.Event | None = field(init=False, default=None)
    _berth: Berth = field(init=False, factory=Berth)
    _awake: bool = field(init=False, default=True)
    """The owner is at work, or has been woken: it will look at everything before it sleeps."""
    _inbox: deque[Act | Report | None] = field(init=False, factory=deque)
    _pending: deque[tuple[int, Run | Told | list[RawFact]]] = field(init=False, factory=deque)
    """What waits until a transition is stored: runs that act outside, answers, facts; in their order."""
    _pending_runs: int = field(init=False, default=0)
    _backlog: Sequence[Effect] = field(init=False, default=())
    _blocked: tuple[Blocked, ...] = field(init=False, default=())
    _consumed: tuple[int, ...] = field(init=False, default=())
    _declined: tuple[int, ...] = field(init=False, default=())
    _posts: tuple[Post, ...] = field(init=False, default=())
    _deliveries: frozenset[int] = field(init=False, default=frozenset())

    def __attrs_post_init__(self) -> None:
        self.instance_id = self.state.identity.instance_id
        self.tasks = TrackTasks(self)
        self._is_new = self.recorder.version == 0
        self._volatile = self.shell.store.volatile
        self._logged = self.state.header.counter

    # -------------------------------------------------------------- from others

    def post(self, act: Act) -> None:
        """Put an act into the inbox; never waits."""
        self._calls += 1
        self._put(act)

    async def is_stored(self) -> None:
        """Wait until the instance has its row; raises what kept it from getting one."""
        if self._is_new and self.stored == 0 and not self.is_lost and not self._gone:
            reply = Reply()
            self._pending.append((1, Told(reply, None)))
            await reply.wait()
        else:
            await trio.lowlevel.checkpoint()

    @property
    def final_state(self) -> State | None:
        """The state, if the instance has ended or stalled and that is stored; whatever is in the inbox comes later."""
        if self.stored < self.seq or self.tasks.busy:
            return None
        return self.state if self.state.is_terminal or self.state.is_stalled else None

    async def admit(self) -> None:
        """Wait while the inbox holds as many acts as callers may have waiting (back-pressure)."""
        while self._calls >= self.shell.call_limit and not self._gone:
            if self._room is None:
                self._room = trio.Event()
            await self._room.wait()

    def report(self, event: Report | None) -> None:
        """A track task reports; there is always room for it (None: its step was not wanted any more)."""
        self.tasks.reported()
        self._put(event)

    def runner_ended(self, runner: Runner) -> None:
        """A track task has really ended: what waited for that goes on."""
        self.tasks.ended(runner)
        if self._blocked:
            self._unblock(runner.track)
        self._wake()

    def _unblock(self, track: int) -> None:
        for blocked in self._blocked:
            blocked.stops.discard(track)
        free = [each for each in self._blocked if not each.stops]
        self._blocked = tuple(each for each in self._blocked if each.stops)
        for blocked in free:
            self._perform(blocked.effects, blocked.seq)

    def _put(self, entry: Act | Report | None) -> None:
        self._inbox.append(entry)
        self._wake()

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            self._berth.wake()

    # -------------------------------------------------------------- the owner task

    def begin(self, effects: Iterable[Effect], first: Transition | None = None) -> None:
        """What the owner does first: the steps of a hydrated state, or the transition of its start."""
        if first is None:
            self._backlog = tuple(effects)
            return
        self._backlog = first.effects
        self._absorb(first)
        self._settle()

    async def run(self) -> None:
        """Own the instance until it is parked, over, or lost."""
        try:
            async with trio.open_nursery() as self.nursery:
                backlog, self._backlog = self._backlog, ()
                self._perform(backlog, self.seq)
                await self._own()
        finally:
            self._gone = True
            self.nursery = None
            if self._room is not None:
                self._room.set()
            self.shell.residents.left(self, self._leftovers())

    async def _own(self) -> None:
        while not self._gone:
            while self._inbox and not self._leaving:
                if self.state.is_pending:
                    await self._finish_turn()
                self._take(self._inbox.popleft())
            if self.state.is_pending:
                await self._finish_turn()
                continue
            if self._inbox and not self._leaving:
                continue
            self._settle()
            if not self._gone:
                self._awake = False
                await self._berth.sleep()

    async def _finish_turn(self) -> None:
        """Work off an agenda that outlasted its budget; others run in between."""
        while self.state.is_pending and not self.is_lost:
            if self._volatile:
                self._index_now()
            await trio.lowlevel.checkpoint()
            try:
                transition = advance(self.program, self.state, self.shell.store.now())
            except Exception as error:  # noqa: BLE001 - a bug of ours must not reach a sibling
                self._bug(error, None)
                return
            self._absorb(transition)
            self._perform(transition.effects, self.seq)

    def _take(self, entry: Act | Report | None) -> None:
        if isinstance(entry, Act):
            self._calls -= 1
            if self._room is not None:
                self._room.set()
                self._room = None
            if entry.query is not None:
                self._answer_query(entry)
            elif entry.event is not None:
                self._apply(entry.event, entry.reply)
        elif entry is not None:
            self._apply(entry, None)
            self.tasks.dismiss_if_parked(entry.track)

    def _answer_query(self, act: Act) -> None:
        assert act.query is not None
        assert act.reply is not None
        if self.is_lost:
            act.reply.fail(ownership_lost(self.instance_id))
            return
        try:
            answer = act.query(self.program, self.state)
        except Exception as error:  # noqa: BLE001 - it is the asker's, and goes there
            act.reply.fail(error)
            return
        self._reply_when_stored(act.reply, value=answer)

    def _apply(self, event: Event, reply: Reply | None) -> None:
        if self.is_lost:
            if reply is not None:
                reply.fail(ownership_lost(self.instance_id))
            return
        if isinstance(event, _ARRIVALS) and self._is_known(event, reply):
            return
        try:
            transition = apply(self.program, self.state, event, self.shell.store.now())
        except Exception as error:  # noqa: BLE001 - a bug of ours must not reach a sibling
            self._bug(error, reply)
            return
        if transition.refusal:
            if reply is not None:
                reply.fail(InvalidRequest(transition.refusal))
            return
        self._absorb(transition)
        if transition.effects:
            self._perform(transition.effects, self.seq)
        if reply is not None:
            declined = isinstance(event, MessageArrived) and event.delivery in transition.declined
            self._reply_when_stored(reply, value=not declined)

    def _is_known(self, event: MessageArrived | SignalArrived, reply: Reply | None) -> bool:
        """Whether that delivery was handled already: a sender and a look into the store may both bring it."""
        if event.delivery not in self._deliveries:
            self._deliveries |= {event.delivery}
            return False
        if reply is not None:
            self._reply_when_stored(reply, value=True)
        return True

    def _bug(self, error: Exception, reply: Reply | None) -> None:
        """An exception inside the machine: the state is thrown away, the last commit is what counts."""
        LOGGER.error("instance %s: the engine failed while it applied an event", self.instance_id, exc_info=error)
        bug = EngineBug(
            f"instance {self.instance_id!r}: the engine failed ({type(error).__name__}: {error}); nothing was kept"
        )
        bug.__cause__ = error
        if reply is not None:
            reply.fail(bug)
        if reply is not None and not self._volatile:
            self.reload = True  # a caller's act is refused to him, and not counted against the instance
            self.lose(bug)
        else:
            self.lose(bug, failure=f"{type(error).__name__}: {error}")

    # -------------------------------------------------------------- what a transition leads to

    def _absorb(self, transition: Transition) -> None:
        if not (transition.facts or transition.effects or transition.declined or transition.consumed):
            return  # an event that was not wanted: nothing has happened
        self.seq += 1
        if transition.consumed or transition.declined:
            self._consumed += tuple(transition.consumed)
            self._declined += tuple(transition.declined)
        if transition.posts:
            self._posts += tuple(transition.posts)
        if self.state.incidents.touched:
            self._log_incidents()
        if self.shell.observers:
            self._observe(transition.facts)
        if self._volatile:
            self.stored = self.seq
        else:
            self._mark_dirty()

    def _observe(self, facts: list[RawFact]) -> None:
        if self._volatile:
            self.shell.observers.publish(self.instance_id, self.state.header.now, facts)
        else:
            self._pending.append((self.seq, facts))

    def _log_incidents(self) -> None:
        """A newcomer sees at once what went wrong, with the traceback."""
        for incident in self.state.incidents.touched.values():
            if incident.id <= self._logged or incident.id not in self.state.incidents:
                continue
            self._logged = incident.id
            causes = "\n" + "\n".join(incident.causes).rstrip() if incident.causes else ""
            LOGGER.error(
                "incident %d (%s) of instance %s at %s: %s%s",
                incident.id, incident.kind.value, self.instance_id, incident.node, incident.message, causes,
            )  # fmt: skip

    def _reply_when_stored(self, reply: Reply, *, value: object) -> None:
        if self.stored >= self.seq:
            reply.give(value)
        else:
            self._pending.append((self.seq, Told(reply, value)))

    def _perform(self, effects: Sequence[Effect], seq: int) -> None:
        """Perform effects in order; a run that acts outside waits for its commit, what follows a stop for its end."""
        stops: set[int] = set()
        for place, effect in enumerate(effects):
            if type(effect) is Run:
                if stops:
                    self._blocked += (Blocked(stops, effects[place:], seq),)
                    return
                if effect.outside and seq > self.stored:
                    self._pending.append((seq, effect))
                    self._pending_runs += 1
                else:
                    self.tasks.start(effect)
            elif type(effect) is Stop and self.tasks.stop(effect.track):
                stops.add(effect.track)

    # -------------------------------------------------------------- storing

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to do here: no agenda, no inbox, no step that runs, no effect that waits."""
        return not (
            self.state.is_pending
            or self._inbox
            or self.tasks.busy
            or self._pending_runs
            or self._blocked
            or self._backlog
        )

    def _settle(self) -> None:
        """At the end of a stretch: park if all is quiet."""
        if self._leaving or self.is_lost:
            self._gone = self._gone or self.is_lost
        elif not self._volatile:
            if self.is_quiet:
                self._mark_dirty()
        elif self.is_quiet:
            self._commit_now(release=True)
        else:
            self._index_now()

    def _index_now(self) -> None:
        """A volatile store gets no piece before the instance parks; what can be looked up is there at once."""
        state = self.state
        if state.is_terminal:
            return  # its last item is its release, once its tasks have ended
        letters = self._consumed or self._declined or self._posts
        if state.waits.touched or state.incidents.touched or letters or self._never_stored:
            self._commit_now(release=False)
        elif len(state.tracks.touched) > MANY_MARKS:
            self.recorder.take(state, written=False)

    @property
    def _never_stored(self) -> bool:
        return self.recorder.version == 0

    @property
    def has_left(self) -> bool:
        """Whether the instance is parked or over, and stored: there is nothing to own."""
        return self._gone

    def _mark_dirty(self) -> None:
        if not self._dirty and not self.is_lost:
            self._dirty = True
            self.shell.committer.enlist(self)

    def capture(self) -> Item | None:
        """The item of the next commit, at a consistent cut; None: now is none (the agenda is not empty)."""
        if self.state.is_pending or self.is_lost or self._leaving:
            self._dirty = self.state.is_pending
            return None
        self._dirty = False
        release = self.is_quiet
        if self.state.is_terminal and not release:
            return None  # stopped tasks are still cleaning up; the owner comes back when they have ended
        self._leaving = release
        self._captured = self.seq
        return self._item(release=release, with_piece=True)

    def _commit_now(self, *, release: bool) -> None:
        item = self._item(release=release, with_piece=release)
        if release:
            self._leaving = True
        self._captured = self.seq
        answer = self.shell.store.commit_now((item,), self.shell.owner)
        self.committed(item, answer.outcomes[0])

    def _item(self, *, release: bool, with_piece: bool) -> Item:
        consumed, self._consumed = self._consumed, ()
        declined, self._declined = self._declined, ()
        posts, self._posts = self._posts, ()
        return self.recorder.item(
            self.state,
            commit_id=self.shell.commit_id(),
            at=self.state.header.now,
            consumed=consumed,
            declined=declined,
            posts=posts,
            release=release,
            with_piece=with_piece,
            resume=release and self.state.is_executing,
            idle=self.seq == 0 and not self.forgiven,
        )

    def committed(self, item: Item, outcome: Outcome) -> None:
        """The answer to a commit: perform what waited for it, answer who waited for it, or give up."""
        if outcome.answer is not Answer.STORED:
            self._not_stored(outcome)
            return
        self.stored = max(self.stored, self._captured)
        if item.upserts:
            self.shell.timers.stored(item)
        if outcome.deliveries:
            self.shell.residents.deliver_all(outcome.deliveries)
        if outcome.sent:
            self.shell.residents.deliver_all(outcome.sent)
        if outcome.is_repeated and (item.messages or item.signals):
            self.shell.recovery.look_everywhere()
        if item.declined or (self.state.is_terminal and any(kind == SUBSCRIPTION for kind, _ in item.deleted)):
            self.shell.recovery.look()  # a message may have been matched again, to an instance that is parked
        self._release_pending()
        if self.shell.watchers.watches(self.instance_id) and self.final_state is not None:
            self.shell.watchers.notify(self.instance_id, self.state)
        if self._leaving:
            self._gone = True
            self._wake()
        elif self.is_quiet and not self._volatile:
            self._mark_dirty()  # what has just been answered was the last thing to do

    def _release_pending(self) -> None:
        """Do all that waited for what is stored now, in its order."""
        while self._pending and self._pending[0][0] <= self.stored:
            _, entry = self._pending.popleft()
            if type(entry) is Run:
                self._pending_runs -= 1
                self.tasks.start(entry)
            elif type(entry) is Told:
                entry.reply.give(entry.value)
            elif type(entry) is list:
                self.shell.observers.publish(self.instance_id, self.state.header.now, entry)

    def _not_stored(self, outcome: Outcome) -> None:
        error: TrioflowError
        if outcome.answer is Answer.EXISTS:
            error = InvalidRequest(f"there is an instance {self.instance_id!r} already")
        elif outcome.answer is Answer.REFUSED:
            error = StoreError(f"the store cannot hold instance {self.instance_id!r}: {outcome.reason}")
        else:
            error = ownership_lost(self.instance_id)
        LOGGER.warning("instance %s was not stored (%s): %s", self.instance_id, outcome.answer.value, error)
        self.lose(error)

    def lose(self, error: Exception, *, failure: str = "") -> None:
        """Give the instance up without storing anything: tasks are cancelled, callers get the error."""
        if self.is_lost:
            return
        self.is_lost = True
        self._leaving = False
        self.tasks.cancel_all()
        self._blocked = ()
        self._pending_runs = 0
        self.state.agenda.clear()
        self.state.is_pending = False
        while self._pending:
            entry = self._pending.popleft()[1]
            if isinstance(entry, Told):
                entry.reply.fail(error)
        self.shell.residents.lost(self, failure)
        self._wake()

    def stop_running(self) -> None:
        """The grace of a shutdown is over: cancel what still runs."""
        self.tasks.cancel_all()

    def nudge(self) -> None:
        """Have the owner look whether it can park now (the engine closes)."""
        self.tasks.dismiss_idle()
        self._wake()

    def _leftovers(self) -> list[Act]:
        """Acts that came while the host was leaving; they are posted again."""
        acts = [entry for entry in self._inbox if isinstance(entry, Act)]
        self._inbox.clear()
        return acts
