"""The instance host: one nursery, one owner task, and the task of each track that executes something.

The owner is the only one that changes the instance's state.  What comes to it (reports of track tasks, acts of callers,
triggers) goes through one inbox; what comes out of the machine (runs, stops) is performed once what led to it
is stored.  When every track is parked, the last piece is taken *with* the release of ownership, and the host ends:
that is dehydration, the normal case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import trio
from attrs import define

from trioflow.checkpoint.records import Item
from trioflow.checkpoint.recorder import Recorder
from trioflow.errors import EngineBug, EngineClosed, InvalidRequest, OwnershipLost, StoreError, TrioflowError
from trioflow.facts import RawFact
from trioflow.machine.apply import advance, apply
from trioflow.machine.events import Event, MessageArrived, Report
from trioflow.machine.program import Program
from trioflow.machine.state import State, TrackState
from trioflow.machine.transition import Effect, Run, Stop, Transition
from trioflow.runtime.acts import Act, Reply
from trioflow.runtime.parking import Berth
from trioflow.runtime.runners import Runner
from trioflow.runtime.shell import LOGGER, Shell
from trioflow.stores.port import Answer, Outcome

__all__ = ["Host"]

MANY_MARKS = 4_096
"""Touched entities after which a volatile store's marks are forgotten: the next piece is a base anyway."""


@define(eq=False)
class Told:
    """An answer that is given when what it tells is stored."""

    reply: Reply
    value: object


@define(eq=False)
class Blocked:
    """Effects that wait until the tasks that the same transition stopped have really ended."""

    stops: set[int]
    effects: Sequence[Effect]
    seq: int


class Host:
    """One resident instance."""

    __slots__ = (
        "_awake",
        "_backlog",
        "_berth",
        "_blocked",
        "_busy",
        "_calls",
        "_captured",
        "_consumed",
        "_declined",
        "_deliveries",
        "_dirty",
        "_gone",
        "_inbox",
        "_is_new",
        "_leaving",
        "_logged",
        "_nursery",
        "_pending",
        "_pending_runs",
        "_room",
        "_runners",
        "_volatile",
        "instance_id",
        "is_lost",
        "program",
        "recorder",
        "reload",
        "seq",
        "shell",
        "state",
        "stored",
    )

    def __init__(self, shell: Shell, program: Program, state: State, recorder: Recorder) -> None:
        self.shell = shell
        self.program = program
        self.state = state
        self.recorder = recorder
        self.instance_id = state.identity.instance_id
        self.is_lost = False
        """Ownership was lost or the state was thrown away: nothing of it is stored any more."""
        self.reload = False
        """After it was given up, it is to be loaded again at its last commit."""
        self.seq = 0
        """Counts the transitions; what waits for the store waits for one of them."""
        self.stored = 0
        self._captured = 0
        self._is_new = recorder.version == 0
        self._volatile = shell.store.volatile
        self._logged = state.header.counter
        self._leaving = self._gone = self._dirty = False
        self._calls = self._busy = self._pending_runs = 0
        self._room: trio.Event | None = None
        self._nursery: trio.Nursery | None = None
        self._berth = Berth()
        self._awake = True
        """The owner is at work, or has been woken: it will look at everything before it sleeps."""
        self._inbox: deque[Act | Report | None] = deque()
        self._runners: dict[int, Runner] = {}
        self._pending: deque[tuple[int, Run | Told | list[RawFact]]] = deque()
        """What waits until a transition is stored: runs that act outside, answers, facts; in their order."""
        self._backlog: Sequence[Effect] = ()
        self._blocked: tuple[Blocked, ...] = ()
        self._consumed: tuple[int, ...] = ()
        self._declined: tuple[int, ...] = ()
        self._deliveries: frozenset[int] = frozenset()

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
        """The state, if the instance has ended or stalled and that is stored."""
        if self.stored < self.seq or not self.is_quiet:
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
        self._busy -= 1
        self._put(event)

    def runner_ended(self, runner: Runner) -> None:
        """A track task has really ended: what waited for that goes on."""
        if runner.busy:
            self._busy -= 1
        if self._runners.get(runner.track) is runner:
            del self._runners[runner.track]
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

    async def run(self) -> None:
        """Own the instance until it is parked, over, or lost."""
        try:
            async with trio.open_nursery() as self._nursery:
                backlog, self._backlog = self._backlog, ()
                self._perform(backlog, self.seq)
                await self._own()
        finally:
            self._gone = True
            self._nursery = None
            if self._room is not None:
                self._room.set()
            self.shell.residents.left(self, self._leftovers())

    async def _own(self) -> None:
        while not self._gone:
            while self._inbox and not self._leaving:
                if self.state.agenda:
                    await self._finish_turn()
                self._take(self._inbox.popleft())
            if self.state.agenda:
                await self._finish_turn()
                continue
            self._settle()
            if not self._gone:
                self._awake = False
                await self._berth.sleep()

    async def _finish_turn(self) -> None:
        """Work off an agenda that outlasted its budget; others run in between."""
        while self.state.agenda and not self.is_lost:
            await trio.lowlevel.checkpoint()
            try:
                transition = advance(self.program, self.state, self.shell.store.now())
            except Exception as error:
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
            self._dismiss_if_parked(entry.track)

    def _answer_query(self, act: Act) -> None:
        assert act.query is not None and act.reply is not None
        if self.is_lost:
            act.reply.fail(_lost(self.instance_id))
            return
        try:
            answer = act.query(self.program, self.state)
        except Exception as error:
            act.reply.fail(error)
            return
        self._reply_when_stored(act.reply, answer)

    def _apply(self, event: Event, reply: Reply | None) -> None:
        if self.is_lost:
            if reply is not None:
                reply.fail(_lost(self.instance_id))
            return
        if isinstance(event, MessageArrived) and self._is_known(event, reply):
            return
        try:
            transition = apply(self.program, self.state, event, self.shell.store.now())
        except Exception as error:
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
            self._reply_when_stored(reply, not declined)

    def _is_known(self, event: MessageArrived, reply: Reply | None) -> bool:
        """Whether that delivery was handled already: a sender and a look into the store may both bring it."""
        if event.delivery not in self._deliveries:
            self._deliveries |= {event.delivery}
            return False
        if reply is not None:
            self._reply_when_stored(reply, True)
        return True

    def _dismiss_if_parked(self, track_id: int) -> None:
        """The task of a track that has no next step ends."""
        runner = self._runners.get(track_id)
        if runner is None or runner.busy:
            return
        track = self.state.tracks.get(track_id)
        if track is None or track.state is not TrackState.EXECUTING or self.shell.closing:
            runner.dismiss()

    def _bug(self, error: Exception, reply: Reply | None) -> None:
        """An exception inside the machine: the state is thrown away, the last commit is what counts."""
        LOGGER.error("instance %s: the engine failed while it applied an event", self.instance_id, exc_info=error)
        bug = EngineBug(f"instance {self.instance_id!r}: the engine failed ({type(error).__name__}: {error}); nothing was kept")
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
        self.seq += 1
        if transition.consumed or transition.declined:
            self._consumed += tuple(transition.consumed)
            self._declined += tuple(transition.declined)
        state = self.state
        if state.incidents.touched:
            self._log_incidents()
        if self.shell.observers:
            self._observe(transition.facts)
        if not self._volatile:
            self._mark_dirty()
            return
        if state.is_terminal:
            return  # its last item is its release, once its tasks have ended
        if state.waits.touched or state.incidents.touched or self._consumed or self._declined or not self.recorder.version:
            self._commit_now(release=False)
        elif len(state.tracks.touched) > MANY_MARKS:
            self.recorder.take(state, written=False)
        self.stored = self.seq

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

    def _reply_when_stored(self, reply: Reply, value: object) -> None:
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
                    self._start(effect)
            elif type(effect) is Stop:
                runner = self._runners.get(effect.track)
                if runner is not None:
                    runner.cancel()
                    stops.add(effect.track)

    def _start(self, run: Run) -> None:
        track = self.state.tracks.get(run.track)
        if self.is_lost or track is None or track.step != run.step or track.state is not TrackState.EXECUTING:
            return
        if self.shell.closing:
            return  # it stays executing in the state, and is entered when the instance is loaded next
        runner = self._runners.get(run.track)
        self._busy += 1
        if runner is not None and not runner.is_cancelled:
            runner.hand(run)
            return
        runner = self._runners[run.track] = Runner(self, run.track, run)
        assert self._nursery is not None
        self._nursery.start_soon(runner, name=f"{self.instance_id}:{track.node}")

    # -------------------------------------------------------------- storing

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is left to do here: no agenda, no inbox, no step that runs, no effect that waits."""
        return not (self.state.agenda or self._inbox or self._busy or self._pending_runs or self._blocked or self._backlog)

    def _settle(self) -> None:
        """At the end of a stretch: park if all is quiet."""
        if self._leaving or self.is_lost:
            self._gone = self._gone or self.is_lost
            return
        if not self.is_quiet:
            return
        if self._volatile:
            self._commit_now(release=True)
        else:
            self._mark_dirty()

    def _mark_dirty(self) -> None:
        if not self._dirty and not self.is_lost:
            self._dirty = True
            self.shell.committer.enlist(self)

    def capture(self) -> Item | None:
        """The item of the next commit, at a consistent cut; None: now is none (the agenda is not empty)."""
        if self.state.agenda or self.is_lost or self._leaving:
            self._dirty = bool(self.state.agenda)
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
        return self.recorder.item(
            self.state,
            commit_id=self.shell.commit_id(),
            at=self.state.header.now,
            consumed=consumed,
            declined=declined,
            release=release,
            with_piece=with_piece,
            resume=release and self.state.is_executing,
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
                self._start(entry)
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
            error = _lost(self.instance_id)
        LOGGER.warning("instance %s was not stored (%s): %s", self.instance_id, outcome.answer.value, error)
        self.lose(error)

    def lose(self, error: Exception, *, failure: str = "") -> None:
        """Give the instance up without storing anything: tasks are cancelled, callers get the error."""
        if self.is_lost:
            return
        self.is_lost = True
        self._leaving = False
        for runner in list(self._runners.values()):
            runner.cancel()
        self._blocked = ()
        self._pending_runs = 0
        self.state.agenda.clear()
        while self._pending:
            entry = self._pending.popleft()[1]
            if isinstance(entry, Told):
                entry.reply.fail(error)
        self.shell.residents.lost(self, failure)
        self._wake()

    def stop_running(self) -> None:
        """The grace of a shutdown is over: cancel what still runs."""
        for runner in list(self._runners.values()):
            runner.cancel()

    def nudge(self) -> None:
        """Have the owner look whether it can park now (the engine closes)."""
        for runner in list(self._runners.values()):
            if not runner.busy:
                runner.dismiss()
        self._wake()

    def _leftovers(self) -> list[Act]:
        """Acts that came while the host was leaving; they are posted again."""
        acts = [entry for entry in self._inbox if isinstance(entry, Act)]
        self._inbox.clear()
        return acts


def _lost(instance_id: str) -> OwnershipLost:
    return OwnershipLost(
        f"this engine does not own instance {instance_id!r} any more: the act was not stored; repeat it with an id"
    )


def closed(instance_id: str) -> EngineClosed:
    """What a caller gets whose act comes after the engine has closed."""
    return EngineClosed(f"the engine is closed; the act for instance {instance_id!r} was not done: repeat it with an id")
