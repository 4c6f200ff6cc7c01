"""The state of one instance: plain data, in tables of entities under ids from one counter.

It holds ids, never objects of the definition, never a callable.  Whoever changes or removes an entity marks
it *touched*; a checkpoint writes what was touched and nothing else (``docs/explanation/how-it-works.md``).

Some attributes are *derived*: indexes that make every operation cost what it touches.  They are never
written; ``machine.derive`` builds them again after a fold.  Each is marked as such where it is declared.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Generic, Protocol, Self, TypeVar

from attrs import define, field, frozen

from trioflow.facts import Status
from trioflow.values import Value

__all__ = [
    "AdHocWait",
    "Arrival",
    "CallWait",
    "ConditionWait",
    "DataWait",
    "Entry",
    "FailedArming",
    "Gate",
    "Gathering",
    "Header",
    "Identity",
    "Incident",
    "IncidentKind",
    "IncidentState",
    "Incidents",
    "Join",
    "LedgerEntry",
    "MessageWait",
    "Opening",
    "Resume",
    "RetryWait",
    "Scope",
    "ScopeKind",
    "SignalWait",
    "State",
    "Sweep",
    "SweepWait",
    "Table",
    "TaskWait",
    "TimerWait",
    "Track",
    "TrackState",
    "Wait",
]

MAX_REENTRIES = 5
"""How often a step is entered again after crashes, without ever reporting, before it is an incident."""


class TrackState(enum.StrEnum):
    """Where a track is in its life (``docs/explanation/elements.md``); ended ones leave the table.

    *Leaving* has no state of its own: a track that cannot choose its flows is at an incident whose ``resume`` says so.
    """

    at_rest: bool
    """Whether the token stands at its node for others to see (one that waits at a join is counted there)."""

    def __new__(cls, value: str, at_rest: bool = False) -> Self:  # noqa: FBT001, FBT002 - a row of the table below
        """A member with its mark; the mark is an attribute because it is asked at every step."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.at_rest = at_rest
        return member

    READY = "ready"
    EXECUTING = "executing", True
    WAITING = "waiting", True
    JOINING = "joining"
    HOSTING = "hosting", True
    THROWING = "throwing", True
    INCIDENT = "incident", True
    ENDED = "ended"


# ------------------------------------------------------------------ entities


@frozen(kw_only=True)
class Identity:
    """What never changes: who the instance is, and which definition it runs.

    Of a called instance, ``parent_wait`` is the wait of its caller, ``depth`` how many calls it is inside of, and
    ``catches`` the error codes that are caught around the call, its callers' included (``catches_any``: any code).
    """

    instance_id: str
    root_id: str
    process_key: str
    version: int
    digest: str
    digest_algorithm: int
    created: datetime
    tenant: str = ""
    business_key: str | None = None
    parent_id: str | None = None
    parent_node: str | None = None
    parent_wait: int = 0
    depth: int = 0
    catches: tuple[str, ...] = ()
    catches_any: bool = False


@define(eq=False)
class Header:
    """What changes with the instance as a whole.  ``counter`` is the last id given out."""

    now: datetime
    status: Status = Status.CREATED
    since: datetime | None = None
    reason: str = ""
    counter: int = 0


class ScopeKind(enum.StrEnum):
    """What a scope is the scope of (``docs/explanation/how-it-works.md``)."""

    BODY = "body"
    """A process, a sub-process, or one firing of an event sub-process: it holds the tokens of its inner nodes."""
    LOOP = "loop"
    """All instances of one repeating activity: their counters; it holds no token of its own."""
    INSTANCE = "instance"
    """One instance of an activity that has data of its own: it holds one token, at the activity itself."""
    UNDO = "undo"
    """What an activity completed with, to be read by its compensation handler, whose token it holds."""


@define(eq=False)
class Scope:
    """One running instance of the process, of a sub-process or of an activity, with its own data.

    ``host`` is the track that waits for it; the root scope has none.  ``index`` counts the instances of a loop or
    multi-instance from 1.  ``interrupted``: an interrupting event sub-process has taken it over.  ``undoes``: the
    ledger entry that it is open again for, or holds the handler of; ``inner``: whose ledger it goes on with then.

    Of an ad-hoc sub-process, ``queue``: the activities that follow one another, ``is_asked_again``: its router is to
    choose once more when it has chosen.
    """

    id: int
    node: str
    parent: int | None = None
    host: int | None = None
    kind: ScopeKind = ScopeKind.BODY
    index: int = 0
    interrupted: bool = False
    undoes: int = 0
    inner: int = 0
    queue: tuple[str, ...] = ()
    is_asked_again: bool = False

    data: dict[str, Value] = field(factory=dict)
    """Own variables; written under their own keys (``State.touched_data``)."""
    items: dict[int, Value] = field(factory=dict)
    """Of a loop, by index: what an instance that is not open yet will get, what a completed one has brought.

    Null is the same as absent.  Written under their own keys (``State.touched_items``).
    """
    tracks: dict[int, Track] = field(factory=dict)
    """Derived: the live tracks directly in it."""
    handlers: int = 0
    """Derived: how many of them are running event sub-processes; if all are, the scope is completing (13.5.4)."""
    armed: dict[int, Wait] = field(factory=dict)
    """Derived: what its event sub-processes wait for."""
    folded: bool = False
    """Derived: its ledger lives on in an entry (the scope is about to go, so never at a quiescent point)."""
    opening: bool = False
    """Derived: it is a loop that opens its first instances (never so at a quiescent point)."""
    occupied: dict[str, int] = field(factory=dict)
    """Derived: node id to how many tokens rest there, those that wait at a join excepted."""
    held: dict[str, set[tuple[str, str]]] = field(factory=dict)
    """Derived: node id to the (join, want) pairs that count on a token at that node."""
    vacated: list[str] = field(factory=list)
    """Derived: nodes of ``held`` that the last token left since the joins were last looked at."""
    doubted: dict[str, None] = field(factory=dict)
    """Derived: joins all of whose wants must be looked at (a set that keeps its order)."""
    joins: dict[str, Join] = field(factory=dict)
    """Derived: node id to the queues of a join that holds a token, or waits for its reset."""


@define(eq=False)
class Track:
    """One thread of execution: a token is its projection.

    ``flow`` is the sequence flow it came by (empty: it started here), ``parent`` the track it was forked
    from, ``entry`` the n of the idempotency key, ``attempt`` counts runs of the step, ``step`` names the
    present run so that a late report of an earlier one is known as such.  ``opened``: the activity that it stands
    at has begun, so its boundary events are armed; it is not begun again when a retry enters the node again (the
    number tells this activation from others).  ``origin``: the activation whose boundary event set it off.
    """

    id: int
    node: str
    scope: int
    flow: str = ""
    state: TrackState = TrackState.READY
    parent: int = 0
    entry: int = 0
    attempt: int = 0
    step: int = 0
    reentries: int = 0
    opened: int = 0
    origin: int = 0
    failing: datetime | None = None
    """Since when its step fails, over retries; None: it does not, or what failed has worked since."""

    hops: int = 0
    """Derived: steps since the last wait or executed activity, for the livelock limit; of a host those inside too."""
    wait: Wait | None = None
    """Derived: what it is parked on."""
    armed: dict[int, Wait] = field(factory=dict)
    """Derived: what else can happen while it stands there: its boundary events, the arms of its gateway."""
    incident: Incident | None = None
    """Derived: the open incident that pins it."""
    hosted: dict[int, Scope] = field(factory=dict)
    """Derived: the scopes that it hosts."""


@define(eq=False)
class Entry:
    """How often a node was entered in a scope instance; outlives tracks."""

    scope: int
    node: str
    count: int = 0


# Every wait has an owner, ``track``, or ``scope`` for an event sub-process.  ``node``: whose event it is, where that is
# not the node that the track is parked at (a boundary event, an arm of a gateway, a start event); ``label``: which of
# the event's definitions, where it has several.


@define(eq=False)
class TimerWait:
    """A timer: its absolute deadline, what is left of the cycle, interval and anchor."""

    id: int
    track: int
    deadline: datetime
    left: int | None = None
    interval: str | None = None
    anchor: datetime | None = None
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class MessageWait:
    """A message by name and key; no key: matched by name, and by business key where the message gives one."""

    id: int
    track: int
    name: str
    key: Value = None
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class SignalWait:
    """A signal by name."""

    id: int
    track: int
    name: str
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class ConditionWait:
    """A condition that is to become true; ``last`` is what it was, so that a restart is no edge."""

    id: int
    track: int
    last: bool = False
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class Gathering:
    """An event with several definitions: ``came`` is what of a parallel multiple happened already, label to payload."""

    id: int
    track: int
    came: dict[str, Value] = field(factory=dict)
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class FailedArming:
    """Stands in for what could not be armed; its incident says why, and a retry arms it."""

    id: int
    track: int
    scope: int = 0
    node: str = ""
    label: str = ""

    incident: Incident | None = None
    """Derived: the incident that names it."""


@define(eq=False)
class TaskWait:
    """A user task: open or claimed, with the eligibility that was frozen when it was created."""

    id: int
    track: int
    created: datetime
    owner: str | None = None
    assignee: str | None = None
    candidate_users: tuple[str, ...] = ()
    candidate_groups: tuple[str, ...] = ()
    priority: int = 50
    due: datetime | None = None
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class RetryWait:
    """A failed step that runs again at its deadline."""

    id: int
    track: int
    deadline: datetime
    message: str = ""
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class SweepWait:
    """A compensation that must end first."""

    id: int
    track: int
    sweep: int = 0
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class DataWait:
    """An activity waits until one of its input sets is available (13.3.2)."""

    id: int
    track: int
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class AdHocWait:
    """People and programs choose which activities of an ad-hoc sub-process start."""

    id: int
    track: int
    scope: int = 0
    node: str = ""
    label: str = ""


@define(eq=False)
class CallWait:
    """A called instance must end first."""

    id: int
    track: int
    child: str
    scope: int = 0
    node: str = ""
    label: str = ""


Trigger = TimerWait | MessageWait | SignalWait | ConditionWait
"""What an event of the model waits for."""
Wait = Trigger | Gathering | FailedArming | TaskWait | RetryWait | SweepWait | DataWait | AdHocWait | CallWait


@define(eq=False)
class Gate:
    """A complex gateway that was activated and waits for its reset: the flows whose tokens it has consumed."""

    id: int
    scope: int
    node: str
    flows: tuple[str, ...] = ()


@define(eq=False)
class Arrival:
    """A token that waits at a join, in the queue of one incoming flow."""

    id: int
    scope: int
    node: str
    flow: str
    track: int


@define(eq=False)
class LedgerEntry:
    """Completed work that can be undone, in the ledger of a scope; ids are in the order of completion.

    ``ledger`` is the id of that scope, ``inner`` the id of the scope that closed with it: the entries there are nested
    in this one.  ``data``: the activity's own data, as it completed.  ``partial``: it did not complete, only its
    contents are undone.  ``activation`` and ``origin`` say which work was set off by which.  ``sweep``: who undoes it,
    as number ``rank`` of its queue.
    """

    id: int
    ledger: int
    node: str
    index: int = 0
    inner: int = 0
    data: dict[str, Value] = field(factory=dict)
    partial: bool = False
    activation: int = 0
    origin: int = 0
    sweep: int = 0
    rank: int = 0
    undoing: bool = False


@define(eq=False)
class Sweep:
    """Compensation at work: entries of one ledger are undone in the live scope ``scope``.

    ``carrier`` is the token that waits for it and hosts what runs; ``entry``: it undoes the contents of that entry.
    ``together``: all at once (one parallel multi-instance), else one after the other.
    """

    id: int
    scope: int
    carrier: int
    entry: int = 0
    together: bool = False

    queue: deque[LedgerEntry] = field(factory=deque)
    """Derived: what is still to be undone, in order."""
    running: int = 0
    """Derived: how many entries are being undone."""


class IncidentKind(enum.StrEnum):
    """Why an incident is there (``docs/howto/incidents.md``)."""

    HANDLER_FAILURE = "handler-failure"
    RETRIES_EXHAUSTED = "retries-exhausted"
    UNCAUGHT_ERROR = "uncaught-error"
    ARMING = "arming"
    MISSING_OUTPUT = "missing-output"
    EXPRESSION = "expression"
    SCRIPT = "script"
    NO_OUTGOING_FLOW = "no-outgoing-flow"
    UNSTORABLE_VALUE = "unstorable-value"
    MISSING_HANDLER = "missing-handler"
    UNKNOWN_PROCESS = "unknown-process"
    STUCK = "stuck"
    STEP_LIMIT = "step-limit"
    CRASHED = "crashed"


class IncidentState(enum.StrEnum):
    """Open, or dropped (a dead letter: the token is gone, the record stays)."""

    OPEN = "open"
    DROPPED = "dropped"


class Resume(enum.StrEnum):
    """What a retry does: enter the node, run the step, choose the outgoing flows, look at the join, arm the event."""

    ARM = "arm"
    ENTER = "enter"
    RUN = "run"
    LEAVE = "leave"
    JOIN = "join"


@define(eq=False)
class Incident:
    """A failure that the model did not handle.

    ``track`` is 0 for a stuck join, whose tokens stay there, and for an event that could not be armed (``wait``).
    """

    id: int
    kind: IncidentKind
    node: str
    scope: int
    track: int
    resume: Resume
    message: str
    first: datetime
    last: datetime
    state: IncidentState = IncidentState.OPEN
    causes: tuple[str, ...] = ()
    attempts: int = 0
    code: str | None = None
    wait: int = 0


@define(eq=False)
class Join:
    """Derived: the queues of one join in one scope instance.

    ``queues``: incoming flow id to the arrivals that wait there, oldest first (only non-empty ones); ``count``: how
    many those are.  ``holders``: what it wants (of a parallel join each missing flow) to the node of a token that
    can still bring it; looked for again when the last token leaves that node.  A join that is not at an incident has
    all of them, at every quiescent point.  ``candidates``: of those who held an inclusive join back when its round
    began, the ones that were not found to have gone.  ``gate``: it is a complex gateway that waits for its reset, and
    counts the flows ``taken`` as filled.  ``since``: when the incident opened that an operator has just retried.
    """

    queues: dict[str, deque[Arrival]] = field(factory=dict)
    count: int = 0
    holders: dict[str, str] = field(factory=dict)
    incident: Incident | None = None
    candidates: list[str] | None = None
    gate: Gate | None = None
    taken: frozenset[str] = frozenset()
    since: datetime | None = None


# ------------------------------------------------------------------ tables


class _Entity(Protocol):
    id: int


E = TypeVar("E", bound=_Entity)


class Table(dict[int, E], Generic[E]):
    """Entities by id, and those touched since the last capture (the removed ones as they last were)."""

    __slots__ = ("touched",)

    def __init__(self) -> None:
        super().__init__()
        self.touched: dict[int, E] = {}

    def put(self, entity: E) -> E:
        """Add the entity, or mark it as changed."""
        key = entity.id
        self[key] = entity
        self.touched[key] = entity
        return entity

    def touch(self, entity: E) -> None:
        """Mark an entity of the table as changed."""
        self.touched[entity.id] = entity

    def drop(self, key: int) -> None:
        """Remove an entity that is there."""
        self.touched[key] = self.pop(key)


class Incidents(Table[Incident]):
    """The incidents, and derived from them the open ones: dead letters stay and grow, so nobody looks through them.

    Whoever changes the state of an incident puts it again.
    """

    __slots__ = ("open",)

    def __init__(self) -> None:
        super().__init__()
        self.open: dict[int, Incident] = {}

    def __setitem__(self, key: int, incident: Incident) -> None:
        super().__setitem__(key, incident)
        if incident.state is IncidentState.OPEN:
            self.open[key] = incident
        else:
            self.open.pop(key, None)

    def drop(self, key: int) -> None:
        """Remove an incident that is there."""
        super().drop(key)
        self.open.pop(key, None)


@define(eq=False)
class Opening:
    """A multi-instance that has instances to open: the scope of all of them, the items of these, if it has any."""

    loop: Scope
    left: deque[Value] | None
    until: int


@define(eq=False)
class State:
    """The whole of one instance.  ``stored`` is the counter at the last capture: what was made and removed
    since then leaves no trace in the checkpoint.
    """

    identity: Identity
    header: Header
    scopes: Table[Scope] = field(factory=Table)
    tracks: Table[Track] = field(factory=Table)
    waits: Table[Any] = field(factory=Table)
    arrivals: Table[Arrival] = field(factory=Table)
    gates: Table[Gate] = field(factory=Table)
    ledger: Table[LedgerEntry] = field(factory=Table)
    sweeps: Table[Sweep] = field(factory=Table)
    incidents: Incidents = field(factory=Incidents)
    entries: dict[tuple[int, str], Entry] = field(factory=dict)

    touched_header: bool = True
    touched_identity: bool = True
    touched_data: dict[tuple[int, str], None] = field(factory=dict)
    """(scope, name): a set that keeps its order, so that a folded scope lists its names as this one does."""
    touched_items: dict[tuple[int, int], None] = field(factory=dict)
    touched_entries: dict[tuple[int, str], None] = field(factory=dict)
    stored: int = 0

    is_pending: bool = False
    """Derived: a turn's budget ran out before its work did.  It is no quiescent point, and nothing is captured."""
    agenda: deque[Track] = field(factory=deque)
    """Tracks that have a step to make; empty at every capture."""
    ledgers: dict[int, dict[int, LedgerEntry]] = field(factory=dict)
    """Derived: scope id to the entries of its ledger, in the order of completion."""
    sweeping: dict[int, Sweep] = field(factory=dict)
    """Compensations that can go on; empty at every capture."""
    openings: deque[Opening] = field(factory=deque)
    """Activities that open their instances, some at a time; empty at every capture."""
    throws: deque[Track] = field(factory=deque)
    """Tracks that throw something, in order: carried out when all tokens have come to rest; empty at every capture."""
    unsettled: dict[int, Scope] = field(factory=dict)
    """Derived: scopes whose joins must be looked at when the agenda is empty."""
    signals: dict[str, dict[int, SignalWait]] = field(factory=dict)
    """Derived: signal name to what waits for it, in the order of arming."""
    conditions: dict[str, dict[int, ConditionWait | DataWait]] = field(factory=dict)
    """Derived: variable name to the conditions and waiting activities that read it, in the order of arming."""
    changed: dict[str, None] = field(factory=dict)
    """Names that they read and that were written since the conditions were last looked at."""
    gated: dict[str, dict[tuple[int, str], None]] = field(factory=dict)
    """Derived: variable name to the (scope, join) pairs whose activation condition reads it."""
    rested: int = 0
    """Derived: the counter at the last quiescent point; who arrived at a join before it has waited there."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Every table of entities."""
        return (
            self.scopes,
            self.tracks,
            self.waits,
            self.arrivals,
            self.gates,
            self.ledger,
            self.sweeps,
            self.incidents,
        )

    def new_id(self) -> int:
        """The next id; ids are given in the order of creation, so they are an order of arming too."""
        header = self.header
        header.counter += 1
        self.touched_header = True
        return header.counter

    @property
    def status(self) -> Status:
        """The status of the instance."""
        return self.header.status

    @property
    def is_terminal(self) -> bool:
        """Whether no event can change it any more."""
        return self.header.status.is_terminal

    def scope_chain(self, scope_id: int) -> Iterator[Scope]:
        """The scope and those around it, innermost first."""
        scope: Scope | None = self.scopes[scope_id]
        while scope is not None:
            yield scope
            scope = None if scope.parent is None else self.scopes[scope.parent]

    def open_incidents(self) -> Iterator[Incident]:
        """The incidents that wait for an operator, oldest first."""
        return iter(self.incidents.open.values())

    @property
    def has_incidents(self) -> bool:
        """Whether an incident waits for an operator; dead letters do not count."""
        return bool(self.incidents.open)

    @property
    def is_executing(self) -> bool:
        """Whether some step is being executed, or was when the last piece was taken."""
        return bool(self.tracks) and any(track.state is TrackState.EXECUTING for track in self.tracks.values())

    @property
    def is_stalled(self) -> bool:
        """Whether only an operator can move it: every live token is at an incident or a join, or hosts only such."""
        if self.is_terminal or self.is_pending:
            return False
        still = {TrackState.INCIDENT, TrackState.JOINING, TrackState.HOSTING}
        return all(track.state in still or isinstance(track.wait, SweepWait) for track in self.tracks.values())
