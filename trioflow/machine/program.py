"""A definition compiled for the machine: nodes with their behaviour, flows with their conditions.

Made once per deployed version and shared by all its instances; nothing in it changes at run time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from attrs import define, field, frozen

from trioflow.errors import InvalidRequest
from trioflow.model import FlowNode, Graph
from trioflow.values import Value, ValueCodec

if TYPE_CHECKING:
    from trioflow.machine.associations import DataPlan
    from trioflow.machine.behaviours.base import Behaviour
    from trioflow.machine.state import Scope, Track
    from trioflow.machine.turn import Turn

__all__ = [
    "NO_CATCHERS",
    "ActivityProgram",
    "Catchers",
    "Evaluable",
    "FlowProgram",
    "Frame",
    "NodeProgram",
    "Options",
    "Overdue",
    "Program",
    "ScopeProgram",
    "Undo",
    "Ways",
]


class Evaluable(Protocol):
    """What the machine needs of a compiled expression."""

    @property
    def text(self) -> str:
        """The text as the model has it."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The root names that an evaluation may read."""
        ...

    def evaluate(self, names: Mapping[str, Value], now: datetime) -> Value:
        """The value; every failure is an ``ExpressionError``."""
        ...


@frozen(kw_only=True)
class FlowProgram:
    """A sequence flow: where from, where to, and on which condition."""

    id: str
    source: str
    target: str
    condition: Evaluable | None = None


@frozen
class Catchers:
    """Who catches errors, or escalations, in one place: by code, else the one that takes any (clause 10.5.1).

    Each is the id of a boundary event, or of the start event of an event sub-process.
    """

    exact: Mapping[str, str] = field(factory=dict)
    any: str | None = None

    def of(self, code: str | None) -> str | None:
        """The catcher of that code; an equal code wins over a catch-all."""
        return next(self.candidates(code), None)

    def candidates(self, code: str | None) -> Iterator[str]:
        """Who could catch that code, the best first."""
        if code is not None and code in self.exact:
            yield self.exact[code]
        if self.any is not None:
            yield self.any


NO_CATCHERS: Mapping[str, Catchers] = {}


class Frame(Protocol):
    """How an activity runs that has data of its own, or instances: each in an *instance* scope of its own."""

    @property
    def own(self) -> tuple[str, ...]:
        """Names that stay in the instance when its work returns them."""
        ...

    def begin(self, turn: Turn, host: Track, node: NodeProgram) -> None:
        """The activity starts: open its first instances."""
        ...

    def completed(self, turn: Turn, body: Track, node: NodeProgram, outputs: Mapping[str, Any]) -> None:
        """The token in one of its instances has done its work, with these outputs."""
        ...

    def terminated(self, turn: Turn, host: Track, node: NodeProgram, scope: Scope) -> None:
        """The token of that instance is gone without having done its work: the scope is empty."""
        ...


@frozen(kw_only=True)
class Undo:
    """How what an activity did is undone (clause 10.7).

    ``handler``: the activity that its compensation boundary event is linked to; ``event_sub_process``: the start event
    of its own event sub-process for compensation; with neither, a sub-process is undone by what is in it.
    """

    handler: str | None = None
    event_sub_process: str | None = None
    is_scope: bool = False
    is_transaction: bool = False
    repeats: bool = False
    together: bool = False


@frozen(kw_only=True)
class ActivityProgram:
    """What an activity has beyond its own work; an activity that has nothing of it has no such program.

    ``boundaries``: its boundary events that wait for something, in document order.  ``catchers``: by kind (``error``,
    ``escalation``).
    """

    boundaries: tuple[str, ...] = ()
    catchers: Mapping[str, Catchers] = NO_CATCHERS
    start_quantity: int = 1
    frame: Frame | None = None
    data: DataPlan | None = None
    undo: Undo | None = None
    in_ad_hoc: bool = False
    cancelled: str | None = None
    """Of a transaction: its cancel boundary event."""

    @property
    def looks_back(self) -> bool:
        """Whether its completion needs the scope of its work: for the ledger, or for its outputs."""
        return self.undo is not None or self.data is not None


@define(eq=False, kw_only=True)
class NodeProgram:
    """A flow node: its behaviour and its flows in document order.

    ``plain``: flows without a condition, the default excepted; ``conditional``: those with one.  ``copies``: how many
    tokens each flow gets that is taken (the completion quantity of an activity).
    """

    id: str
    name: str
    element: FlowNode
    container: str
    behaviour: Behaviour
    outgoing: tuple[FlowProgram, ...] = ()
    incoming: tuple[FlowProgram, ...] = ()
    plain: tuple[FlowProgram, ...] = ()
    conditional: tuple[FlowProgram, ...] = ()
    default: FlowProgram | None = None
    is_activity: bool = False
    is_for_compensation: bool = False
    activity: ActivityProgram | None = None
    has_inputs: bool = False
    """Its work sees only what its data inputs were given."""
    copies: int = 1
    jumps: tuple[str, ...] = ()
    """Of a link catch event: its throw events, from which a token comes here as if along a flow."""
    attached_to: str | None = None
    """Of a boundary event other than compensation: its host; a token there can come here, but need not."""

    @property
    def label(self) -> str:
        """The node as a person knows it: its name with its id, or the id alone."""
        return f"{self.name} ({self.id})" if self.name and self.name != self.id else self.id


@frozen(kw_only=True)
class ScopeProgram:
    """The process itself or a sub-process: where its tokens start, what it declares.

    ``starts``: its none start events, or without any start event its nodes without incoming flow.  ``handlers``: the
    start events of its event sub-processes that wait for something.  ``catchers``: those that catch errors or
    escalations, by kind.  ``triggered``: the start events that need a trigger.
    """

    id: str
    starts: tuple[str, ...]
    implicit: bool
    nodes: tuple[str, ...]
    declared: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    catchers: Mapping[str, Catchers] = NO_CATCHERS
    triggered: tuple[str, ...] = ()


Overdue = Literal["once", "skip", "all"]
"""What happens to the points of a timer cycle that were missed: one firing for all of them, none, or each."""


@frozen(kw_only=True)
class Options:
    """How an engine runs every process.

    ``hop_limit``: steps of a token without a wait or an executed activity, before it counts as a livelock.
    ``presumed_abort``: an error that leaves a sub-process has what that did undone first (clause 10.7).
    """

    hop_limit: int = 1_000_000
    overdue: Overdue = "once"
    presumed_abort: bool = True

    def __attrs_post_init__(self) -> None:
        if self.overdue not in get_args(Overdue):
            raise InvalidRequest(f"overdue is one of {', '.join(get_args(Overdue))}, not {self.overdue!r}")
        if self.hop_limit < 1:
            raise InvalidRequest(f"a token cannot make fewer than 1 step, so the step limit is no {self.hop_limit}")


@frozen
class Ways:
    """Which incoming flows of one join can be reached from a node: with boundary events, and without (13.4.3)."""

    holding: frozenset[str]
    releasing: frozenset[str]


@define(eq=False, kw_only=True)
class Program:
    """One version of one process, ready to run.  ``scopes`` is keyed by the id of the process or sub-process.

    ``ways`` (by join, then by node) and ``followers`` (the nodes to which ways lead) are computed at first use.
    """

    key: str
    graph: Graph
    digest: str
    digest_algorithm: int
    codec: ValueCodec
    nodes: dict[str, NodeProgram] = field(factory=dict)
    flows: dict[str, FlowProgram] = field(factory=dict)
    scopes: dict[str, ScopeProgram] = field(factory=dict)
    handler_names: frozenset[str] = frozenset()
    ad_hoc: frozenset[str] = frozenset()
    """The ids of its ad-hoc sub-processes."""
    options: Options = Options()
    ways: dict[str, Mapping[str, Ways]] = field(factory=dict)
    followers: dict[str, tuple[str, ...]] = field(factory=dict)
