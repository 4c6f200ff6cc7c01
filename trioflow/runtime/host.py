"""The instance host: one nursery, one owner task, and the task of each track that executes something.

The owner is the only one that changes the instance's state.  What comes to it (reports of track tasks, acts of callers,
triggers) goes through one inbox; what comes out of the machine (runs, stops) is performed once what led to it
is stored.  When every track is parked, the last piece is taken *with* the release of ownership, and the host ends:
that is dehydration, the normal case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import trio
from attrs import define

from trioflow.checkpoint.records import Item
from trioflow.checkpoint.recorder import Recorder
from trioflow.errors import EngineBug, EngineClosed, InvalidRequest, OwnershipLost, StoreError, TrioflowError
from trioflow.facts import RawFact
from trioflow.machine.apply import advance, apply
from trioflow.machine.events import Event, MessageArrived
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
class Blocked:
    """Effects that wait until the tasks that the same transition stopped have really ended."""

    stops: set[int]
    effects: deque[Effect]
    seq: int


class Host:
    """One resident instance."""

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
        self.stored = 0
        self._captured = 0
        self._leaving = False
        self._gone = False
        self._dirty = False
        self._volatile = shell.store.volatile
        self._logged = state.header.counter
        self._calls = 0
        self._busy = 0
        self._room: trio.Event | None = None
        self._inbox: deque[Act | Event | None] = deque()
        self._berth = Berth()
        self._awake = True
        """The owner is at work, or has been woken: it will look at everything before it sleeps."""
        self._runners: dict[int, Runner] = {}
        self._waiting: deque[tuple[int, deque[Effect]]] = deque()
        self._blocked: list[Blocked] = []
        self._replies: deque[tuple[int, Reply, object]] = deque()
        self._facts: deque[tuple[int, list[RawFact]]] = deque()
        self._consumed: list[int] = []
        self._declined: list[int] = []
        self._backlog: list[Effect] = []
        self._nursery: trio.Nursery | None = None

    # -------------------------------------------------------------- from others

    def post(self, act: Act) -> None:
        """Put an act into the inbox; never waits."""
        self._calls += 1
        self._put(act)

    async def is_stored(self) -> None:
        """Wait until the instance has its row; raises what kept it from getting one."""
        if self.stored == 0 and not self._gone:
            reply = Reply()
            self._replies.append((1, reply, None))
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

    def report(self, event: Event | None) -> None:
        """A track task reports; there is always room for it (None: its step was not wanted any more)."""
        self._busy -= 1
        self._put(event)

    def runner_ended(self, runner: Runner) -> None:
        """A track task has really ended: what waited for that goes on."""
        if runner.busy:
            self._busy -= 1
        if self._runners.get(runner.track) is runner:
            del self._runners[runner.track]
        for blocked in [each for each in self._blocked if runner.track in each.stops]:
            blocked.stops.discard(runner.track)
            if not blocked.stops:
                self._blocked.remove(blocked)
                self._perform(blocked.effects, blocked.seq)
        self._wake()

    def _put(self, entry: Act | Event | None) -> None:
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
            self._backlog.extend(effects)
            return
        self._absorb(first)
        self._backlog.extend(first.effects)

    async def run(self) -> None:
        """Own the instance until it is parked, over, or lost."""
        try:
            async with trio.open_nursery() as self._nursery:
                self._perform(deque(self._backlog), self.seq)
                self._backlog.clear()
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
            self._perform(deque(transition.effects), self.seq)

    def _take(self, entry: Act | Event | None) -> None:
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
            self._dismiss_if_parked(entry)

    def _answer_query(self, act: Act) -> None:
        assert act.query is not None and act.reply is not None
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
            self._perform(deque(transition.effects), self.seq)
        if reply is not None:
            declined = isinstance(event, MessageArrived) and event.delivery in transition.declined
            self._reply_when_stored(reply, not declined)

    def _dismiss_if_parked(self, report: Event) -> None:
        track_id = getattr(report, "track", 0)
        track = self.state.tracks.get(track_id)
        if track is None or track.state is not TrackState.EXECUTING or self.shell.closing:
            runner = self._runners.get(track_id)
            if runner is not None and not runner.busy:
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
        self._consumed += transition.consumed
        self._declined += transition.declined
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
            self._facts.append((self.seq, facts))

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
            self._replies.append((self.seq, reply, value))

    def _perform(self, effects: deque[Effect], seq: int) -> None:
        """Perform effects in order; a run that acts outside waits for its commit, what follows a stop for its end."""
        stops: set[int] = set()
        while effects:
            effect = effects[0]
            if stops and not isinstance(effect, Stop):
                self._blocked.append(Blocked(stops, effects, seq))
                return
            effects.popleft()
            if isinstance(effect, Stop):
                runner = self._runners.get(effect.track)
                if runner is not None:
                    runner.cancel()
                    stops.add(effect.track)
            elif isinstance(effect, Run):
                if effect.outside and seq > self.stored:
                    self._waiting.append((seq, deque((effect,))))
                else:
                    self._start(effect)

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
        return not (self.state.agenda or self._inbox or self._busy or self._waiting or self._blocked or self._backlog)

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
        consumed, self._consumed = self._consumed, []
        declined, self._declined = self._declined, []
        return self.recorder.item(
            self.state,
            commit_id=self.shell.commit_id(),
            at=self.state.header.now,
            consumed=tuple(consumed),
            declined=tuple(declined),
            release=release,
            with_piece=with_piece,
            resume=release and any(track.state is TrackState.EXECUTING for track in self.state.tracks.values()),
        )

    def committed(self, item: Item, outcome: Outcome) -> None:
        """The answer to a commit: perform what waited for it, answer who waited for it, or give up."""
        if outcome.answer is not Answer.STORED:
            self._not_stored(outcome)
            return
        self.stored = max(self.stored, self._captured)
        self.shell.timers.stored(item)
        self.shell.residents.deliver_all(outcome.deliveries)
        self._publish()
        while self._waiting and self._waiting[0][0] <= self.stored:
            seq, effects = self._waiting.popleft()
            self._perform(effects, seq)
        while self._replies and self._replies[0][0] <= self.stored:
            _, reply, value = self._replies.popleft()
            reply.give(value)
        if self._leaving:
            self._gone = True
            self._wake()
        elif self.is_quiet and not self._volatile:
            self._mark_dirty()  # what has just been answered was the last thing to do

    def _publish(self) -> None:
        while self._facts and self._facts[0][0] <= self.stored:
            _, facts = self._facts.popleft()
            self.shell.observers.publish(self.instance_id, self.state.header.now, facts)
        if self.shell.watchers.watches(self.instance_id) and self.final_state is not None:
            self.shell.watchers.notify(self.instance_id, self.state)

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
        self._waiting.clear()
        self._blocked.clear()
        self._facts.clear()
        self.state.agenda.clear()
        while self._replies:
            self._replies.popleft()[1].fail(error)
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
        self._waiting.clear()
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
