"""The driver of the machine's tests: it applies events, and proves the invariants after every one of them.

Three copies of an instance run in lockstep.  *Plain* is captured with the limits of production, *fine* with limits so
small that bases, tails and rewritten bases all occur.  At every quiescent point both stores are folded; the
fold must equal the state, and becomes a *twin*, which gets every later event too and must give the same transitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

import attrs

from trioflow.checkpoint.documents import Documents
from trioflow.checkpoint.recorder import Recorder
from trioflow.checkpoint.records import Item
from trioflow.expressions import Languages
from trioflow.facts import RawFact, Status
from trioflow.machine.apply import BUDGET, advance, apply, new_state
from trioflow.machine.compiler import compile_program
from trioflow.machine.derive import derive
from trioflow.machine.events import (
    ActivityCompleted,
    ActivityFailed,
    DropIncident,
    ErrorThrown,
    Event,
    Failure,
    MessageArrived,
    ResolveIncident,
    RetryIncident,
    SignalArrived,
    Start,
    TaskCompleted,
    TimerDue,
)
from trioflow.machine.explain import explain, tokens
from trioflow.machine.invariants import violations
from trioflow.machine.program import Options, Program
from trioflow.machine.state import (
    Identity,
    Incident,
    IncidentKind,
    MessageWait,
    RetryWait,
    SignalWait,
    State,
    TaskWait,
    TimerWait,
    Track,
    TrackState,
)
from trioflow.machine.transition import MessagePost, SignalPost, Transition
from trioflow.model.builder import ProcessBuilder
from trioflow.model.findings import Finding
from trioflow.model.graph import Graph
from trioflow.values import ValueCodec

__all__ = [
    "NOON",
    "Driver",
    "Store",
    "compiled",
    "differences",
    "documents",
    "failure",
    "findings",
    "identity",
    "seen",
    "thrown",
]

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
"""When every instance of these tests is created."""

MAX_TWINS = 12
"""So many folded copies go on at most: those of the first captures, and those of the latest."""

W = TypeVar("W", TimerWait, MessageWait, TaskWait, RetryWait)

_DERIVED: Mapping[str, frozenset[str]] = {
    "Scope": frozenset(
        {"tracks", "handlers", "armed", "folded", "opening", "occupied", "held", "vacated", "doubted", "joins"}
    ),
    "Track": frozenset({"hops", "wait", "armed", "incident", "hosted"}),
    "Sweep": frozenset({"queue", "running"}),
    "FailedArming": frozenset({"incident"}),
}
"""What is never written; written down again here, so that the tests do not believe the code about it."""


# ------------------------------------------------------------------ programs


@cache
def documents() -> Documents:
    """The writer and reader of documents: it takes longer to make than most of these tests take."""
    return Documents(ValueCodec())


def _compile(
    built: ProcessBuilder, languages: Languages | None, options: Options
) -> tuple[Program | None, tuple[Finding, ...]]:
    definitions = built.build()
    process = next(each for each in definitions.processes if each.id == built.id)
    graph = Graph.of(definitions, process)
    return compile_program(graph, languages or Languages.default(), documents().codec, options=options)


def compiled(built: ProcessBuilder, *, hop_limit: int = 5_000, **options: Any) -> Program:
    """Return the program of a process that must compile without a finding."""
    program, found = _compile(built, None, Options(hop_limit=hop_limit, **options))
    assert program is not None, [str(each) for each in found]
    assert found == ()
    return program


def findings(built: ProcessBuilder, *, languages: Languages | None = None) -> tuple[Finding, ...]:
    """Return the findings of a process that must not compile."""
    program, found = _compile(built, languages, Options())
    assert program is None
    return found


def identity(program: Program, instance_id: str = "i-1", **fields: Any) -> Identity:
    """Return the identity of a root instance of that program."""
    given = {"root_id": instance_id, "version": 1, "created": NOON, **fields}
    return Identity(
        instance_id=instance_id,
        process_key=program.key,
        digest=program.digest,
        digest_algorithm=program.digest_algorithm,
        **given,
    )


# ------------------------------------------------------------------ comparing


def seen(transition: Transition) -> tuple[Any, ...]:
    """Return all of a transition as one comparable value."""
    effects = [(type(effect).__name__, attrs.astuple(effect)) for effect in transition.effects]
    facts = [(kind, node, track, dict(detail)) for kind, node, track, detail in transition.facts]
    return (
        facts,
        effects,
        transition.consumed,
        transition.declined,
        [(type(post).__name__, attrs.astuple(post)) for post in transition.posts],
        transition.refusal,
        transition.pending,
    )


def thrown(transition: Transition) -> list[SignalPost | MessagePost]:
    """Return the messages and signals that leave with a transition."""
    return [post for post in transition.posts if isinstance(post, SignalPost | MessagePost)]


def _stored(entity: Any) -> dict[str, Any]:
    left_out = _DERIVED.get(type(entity).__name__, frozenset())
    fields = {each.name: getattr(entity, each.name) for each in attrs.fields(type(entity)) if each.name not in left_out}
    if "data" in fields:  # the names' order too: it is the order in which they are listed to a person
        fields["data"] = list(fields["data"].items())
    return {"kind": type(entity).__name__, **{name: (type(value), value) for name, value in fields.items()}}


def differences(state: State, other: State) -> list[str]:
    """Return where two states differ in what is stored, a sentence each."""
    pairs = {part: (getattr(state, part), getattr(other, part)) for part in ("identity", "header")}
    found = [f"{part}: {one} is not {two}" for part, (one, two) in pairs.items() if _stored(one) != _stored(two)]
    for part in ("scopes", "tracks", "waits", "arrivals", "gates", "ledger", "sweeps", "incidents"):
        one, two = getattr(state, part), getattr(other, part)
        if list(one) != list(two):
            found.append(f"{part}: {list(one)} is not {list(two)}")
            continue
        found += [
            f"{part} {key}: {one[key]} is not {two[key]}" for key in one if _stored(one[key]) != _stored(two[key])
        ]
    counts, others = ({key: entry.count for key, entry in each.entries.items()} for each in (state, other))
    if counts != others:
        found.append(f"entries: {counts} is not {others}")
    return found


# ------------------------------------------------------------------ what was written


class Store:
    """The slots and index rows of one instance, as its items make them."""

    def __init__(self, documents: Documents, recorder: Recorder) -> None:
        self.documents = documents
        self.recorder = recorder
        self.slots: dict[int, bytes] = {}
        self.rows: dict[tuple[str, int], Any] = {}
        self.written = 0
        self.bases = 0
        self.version = 0

    def take(self, state: State) -> Item:
        """Capture the state and keep what was captured."""
        item = self.recorder.item(state, commit_id=f"c{self.version}", at=state.header.now)
        assert item.expected == self.version
        assert (item.new is not None) is (self.version == 0)
        assert item.piece is not None
        self.version += 1
        self._keep(item.slot, item.piece)
        self.rows.update({(row.kind, row.wait_id): row for row in item.upserts})
        for key in item.deleted:
            del self.rows[key]
        return item

    def _keep(self, slot: int, piece: bytes) -> None:
        if slot == 0:
            self.slots.clear()
            self.bases += 1
        assert slot == len(self.slots), "a slot was left out"
        self.slots[slot] = piece
        self.written += len(piece)

    def fold(self, program: Program, state: State) -> State:
        """Return the state that the slots make, with its derived indexes."""
        folded = self.documents.fold(tuple(self.slots.values()), instance_id=state.identity.instance_id)
        derive(program, folded)
        return folded


# ------------------------------------------------------------------ the driver


class Driver:
    """One instance of a program under test; ``twins`` is how many folded copies go on with it at most."""

    def __init__(self, program: Program, *, twins: int = MAX_TWINS, **fields: Any) -> None:
        self.program = program
        self.now = NOON
        self.state = new_state(identity(program, **fields))
        self._fine = new_state(identity(program, **fields))
        self._twins: list[State] = []
        self._max_twins = twins
        assert program.codec is documents().codec
        self.store = Store(documents(), Recorder(documents(), program))
        self.fine_store = Store(documents(), Recorder(documents(), program, small_base=0, small_tail=150))
        self.facts: list[RawFact] = []
        self.transitions: list[Transition] = []
        self._prove_the_folds()

    # -------------------------------------------------------------- events

    def apply(self, event: Event, *, budget: int = BUDGET, after: timedelta = timedelta()) -> Transition:
        """Let the event happen, ``after`` the last one, run it to quiescence, and prove what must hold."""
        self.now += after
        outcomes = [self._run(state, event, budget) for state in (self.state, self._fine, *self._twins)]
        first = outcomes[0]
        assert all(seen(other) == seen(first) for other in outcomes[1:]), "a copy went another way"
        self.facts += first.facts
        self.transitions.append(first)
        self._prove_the_folds()
        return first

    def _run(self, state: State, event: Event, budget: int) -> Transition:
        whole = apply(self.program, state, event, self.now, budget=budget)
        assert not (found := violations(self.program, state)), found
        pending = whole.pending
        while pending:
            part = advance(self.program, state, self.now, budget=budget)
            assert violations(self.program, state) == []
            whole.facts += part.facts
            whole.effects += part.effects
            whole.posts += part.posts
            pending = part.pending
        whole.pending = False
        return whole

    def _prove_the_folds(self) -> None:
        for state, store in ((self.state, self.store), (self._fine, self.fine_store)):
            store.take(state)
            twin = store.fold(self.program, state)
            assert not (found := differences(state, twin)), found
            assert violations(self.program, twin) == []
            assert self._indexed(state) == store.rows.keys()
            self._twins.append(twin)
        assert len(tokens(self.program, self.state)) == len(self.state.tracks)
        assert all("\n" not in each.text for each in explain(self.program, self.state))
        while len(self._twins) > self._max_twins:
            del self._twins[self._max_twins // 2]

    @staticmethod
    def _indexed(state: State) -> set[tuple[str, int]]:
        kinds = {
            TimerWait: "timer",
            RetryWait: "timer",
            MessageWait: "subscription",
            SignalWait: "subscription",
            TaskWait: "task",
        }
        waits = {(kinds[type(wait)], wait.id) for wait in state.waits.values() if type(wait) in kinds}
        return waits | {("incident", incident.id) for incident in state.incidents.values()}

    def start(self, node: str | None = None, /, **variables: Any) -> Transition:
        """Start the instance with these variables; it must not be refused."""
        return self._done(self.apply(Start(variables=variables, node=node)))

    def complete(self, node: str, /, **outputs: Any) -> Transition:
        """Complete the running step, or the open user task, of the oldest token at the node."""
        track = self.at(node)
        if isinstance(track.wait, TaskWait):
            return self._done(self.apply(TaskCompleted(wait=track.wait.id, outputs=outputs)))
        return self.apply(ActivityCompleted(track.id, track.step, outputs))

    def complete_task(self, track: Track, **outputs: Any) -> Transition:
        """Complete the user task that the token waits for."""
        assert isinstance(track.wait, TaskWait)
        return self._done(self.apply(TaskCompleted(wait=track.wait.id, outputs=outputs)))

    def restore(self) -> None:
        """Go on from what was stored, as after a crash."""
        self.state = self.store.fold(self.program, self.state)
        self._fine = self.fine_store.fold(self.program, self._fine)

    def complete_running(self, node: str, /, **outputs: Any) -> Transition:
        """Complete the step of the oldest token that executes one at the node."""
        track = self.running(node)
        return self.apply(ActivityCompleted(track.id, track.step, outputs))

    def fail_running(self, node: str) -> Transition:
        """Fail the step of the oldest token that executes one at the node."""
        track = self.running(node)
        return self.apply(ActivityFailed(track=track.id, step=track.step, failure=failure()))

    def fail(self, node: str, *, retry_in: timedelta | None = None, kind: str = "handler-failure") -> Transition:
        """Fail the running step of the oldest token at the node."""
        track = self.at(node)
        return self.apply(
            ActivityFailed(track=track.id, step=track.step, failure=failure(kind), retry_in=retry_in),
        )

    def due(self, node: str) -> Transition:
        """Let the deadline of the oldest timer of the node be reached: of its token, or of the event armed there."""
        wait = self.armed(node, TimerWait | RetryWait)
        self.now = max(self.now, wait.deadline)
        return self.apply(TimerDue(wait.id, wait.deadline))

    def receive(self, node: str, payload: Any = None, *, delivery: int = 1) -> Transition:
        """Give the oldest token at the node, or the event armed there, the message that it waits for."""
        wait = self.armed(node, MessageWait)
        return self.apply(MessageArrived(wait=wait.id, delivery=delivery, name=wait.name, payload=payload))

    def signal(self, node: str, payload: Any = None, *, delivery: int = 1) -> Transition:
        """Let the signal reach that the oldest token at the node, or the event armed there, waits for."""
        wait = self.armed(node, SignalWait)
        return self.apply(SignalArrived(wait=wait.id, delivery=delivery, name=wait.name, payload=payload))

    def throw(self, node: str, code: str, message: str = "no", **variables: Any) -> Transition:
        """Let the running step of the oldest token at the node throw a BPMN error."""
        track = self.running(node)
        event = ErrorThrown(track=track.id, step=track.step, code=code, message=message, variables=variables)
        return self.apply(event)

    def retry(self, node: str, variables: Mapping[str, Any] | None = None) -> Transition:
        """Retry the open incident at the node."""
        return self._done(self.apply(RetryIncident(incident=self.incident(node).id, variables=variables)))

    def resolve(self, node: str, *flows: str, **outputs: Any) -> Transition:
        """Resolve the open incident at the node, along these flows."""
        return self._done(self.apply(ResolveIncident(incident=self.incident(node).id, outputs=outputs, flows=flows)))

    def drop(self, node: str) -> Transition:
        """Drop the open incident at the node."""
        return self._done(self.apply(DropIncident(incident=self.incident(node).id)))

    @staticmethod
    def _done(transition: Transition) -> Transition:
        assert transition.refusal == ""
        return transition

    def refused(self, event: Event) -> str:
        """Apply an event that must be refused without a trace, and return why."""
        before = self.store.documents.base(self.state)
        transition = self.apply(event)
        assert seen(transition) == ([], [], [], [], [], transition.refusal, False)
        assert self.store.documents.base(self.state) == before
        assert transition.refusal
        return transition.refusal

    def ignored(self, event: Event) -> None:
        """Apply an event that must do nothing at all."""
        before = self.store.documents.base(self.state)
        assert seen(self.apply(event)) == ([], [], [], [], [], "", False)
        assert self.store.documents.base(self.state) == before

    # -------------------------------------------------------------- looking

    @property
    def status(self) -> Status:
        """The status of the instance."""
        return self.state.status

    @property
    def nodes(self) -> list[str]:
        """Where the live tokens are, oldest first."""
        return [track.node for track in self.state.tracks.values()]

    @property
    def data(self) -> dict[str, Any]:
        """The variables of the root scope."""
        return next(iter(self.state.scopes.values())).data

    @property
    def incidents(self) -> list[tuple[str, str]]:
        """The (kind, node) of the open incidents, oldest first."""
        return [(incident.kind.value, incident.node) for incident in self.state.open_incidents()]

    def all_at(self, node: str) -> list[Track]:
        """The tokens at a node, oldest first."""
        return [track for track in self.state.tracks.values() if track.node == node]

    def at(self, node: str) -> Track:
        """The oldest token at a node that does not wait at a join there."""
        resting = [track for track in self.all_at(node) if track.state is not TrackState.JOINING]
        assert resting, f"no token at {node!r}, only at {self.nodes}"
        return resting[0]

    def running(self, node: str) -> Track:
        """The oldest token that executes a step at the node."""
        return next(track for track in self.all_at(node) if track.state is TrackState.EXECUTING)

    def armed(self, node: str, kind: Any) -> Any:
        """The oldest wait of that kind whose event is the node's."""
        for wait in self.state.waits.values():
            at = wait.node or self.state.tracks[wait.track].node
            if at == node and isinstance(wait, kind):
                return wait
        raise AssertionError(f"nothing of {node!r} waits: {list(self.state.waits.values())}")

    def wait(self, node: str, kind: type[W]) -> W:
        """What the oldest token at a node waits for."""
        wait = self.at(node).wait
        assert isinstance(wait, kind)
        return wait

    def incident(self, node: str) -> Incident:
        """The one open incident at a node."""
        (incident,) = [each for each in self.state.open_incidents() if each.node == node]
        return incident

    def entered(self, node: str) -> int:
        """How often tokens entered the node."""
        return sum(1 for kind, where, _, _ in self.facts if (kind, where) == ("node-entered", node))

    def said(self, kind: str) -> list[str]:
        """The nodes of the facts of one kind, in order."""
        return [where for each, where, _, _ in self.facts if each == kind]

    def why(self, node: str) -> list[str]:
        """The lines of ``explain`` about the tokens at a node."""
        return [each.text for each in explain(self.program, self.state) if each.token.node == node]


def failure(kind: str = "handler-failure", message: str = "it broke", causes: Iterable[str] = ()) -> Failure:
    """Return a failure as a runner reports it."""
    return Failure(kind=IncidentKind(kind), message=message, causes=tuple(causes))
