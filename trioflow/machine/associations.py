"""Data that is moved: into an activity, out of it, into a thrown event, out of a caught one (clauses 10.4.2, 13.3.2).

An association copies its source, transforms its sources, or carries out assignments to places inside its target.  What
an activity does is one commit of data: all its associations see the same values, and write together or not at all.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, cast

from attrs import frozen

from trioflow.errors import ExpressionError, UnstorableValue
from trioflow.machine.data import ScopeView
from trioflow.machine.state import DataWait, IncidentKind, Resume, Scope, ScopeKind, Track, TrackState
from trioflow.values import Path

if TYPE_CHECKING:
    from trioflow.machine.program import Evaluable, NodeProgram
    from trioflow.machine.turn import Turn
    from trioflow.values import Value

__all__ = [
    "Association",
    "DataPlan",
    "PayloadPlan",
    "arrived",
    "can_take_inputs",
    "carried",
    "take_inputs",
    "written_by",
]


@frozen(kw_only=True)
class Association:
    """Names of its sources and its target; with assignments, each ``to`` is a path that begins at the target."""

    sources: tuple[str, ...]
    target: str
    transformation: Evaluable | None = None
    assignments: tuple[tuple[Evaluable, Path], ...] = ()

    def is_available(self, names: Mapping[str, Value]) -> bool:
        """Whether each of its sources has a value."""
        return all(names.get(source) is not None for source in self.sources)


@frozen(kw_only=True)
class DataPlan:
    """The data of an activity.

    ``own``: names that each instance declares.  ``input_sets``: of each set, the associations whose sources must have a
    value before the activity starts; none: it needs nothing.  ``output_sets``: of each, the names that must have one
    when it completes.
    """

    own: tuple[str, ...] = ()
    inputs: tuple[Association, ...] = ()
    outputs: tuple[Association, ...] = ()
    input_sets: tuple[tuple[Association, ...], ...] = ()
    output_sets: tuple[tuple[str, ...], ...] = ()

    @property
    def awaited(self) -> tuple[str, ...]:
        """The names that it may have to wait for."""
        needed = (source for each in self.input_sets for association in each for source in association.sources)
        return tuple(dict.fromkeys(needed))


@frozen(kw_only=True)
class PayloadPlan:
    """What a throwing event carries: the value of its data input."""

    name: str
    associations: tuple[Association, ...]

    def evaluate(self, turn: Turn, scope_id: int) -> Value:
        """The payload; null if nothing is moved into it."""
        names = ScopeView(turn.state, scope_id)
        return carried(turn, self.associations, names, {}).get(self.name)


# ------------------------------------------------------------------ moving


def carried(
    turn: Turn, associations: tuple[Association, ...], names: Mapping[str, Value], before: Mapping[str, Value]
) -> dict[str, Value]:
    """The targets with their new values; ``before``: what they hold now, for those of which only a part is replaced.

    An association one of whose sources has no value moves nothing.  Raises ExpressionError, UnstorableValue.
    """
    moved: dict[str, Value] = {}
    for association in associations:
        if association.is_available(names):
            for path, value in _moves(turn, association, names):
                moved[path.name] = path.set(moved.get(path.name, before.get(path.name)), value)
    return moved


def _moves(turn: Turn, association: Association, names: Mapping[str, Value]) -> Iterator[tuple[Path, Value]]:
    canonical = turn.program.codec.canonical
    if association.transformation is not None or not association.assignments:
        if association.transformation is not None:
            value = association.transformation.evaluate(names, turn.now)
        else:
            value = names.get(association.sources[0]) if association.sources else None
        yield Path((association.target,)), canonical(value, association.target)
    for source, path in association.assignments:
        yield path, canonical(source.evaluate(names, turn.now), str(path))


# ------------------------------------------------------------------ activities


def can_take_inputs(plan: DataPlan, names: Mapping[str, Value]) -> bool:
    """Whether some input set is available (13.3.2)."""
    if not plan.input_sets:
        return True
    return any(all(each.is_available(names) for each in needed) for needed in plan.input_sets)


def take_inputs(turn: Turn, body: Track, node: NodeProgram, plan: DataPlan) -> bool:
    """Build the activity's own data from the scope; False: it waits for its data, or is at an incident."""
    scope = turn.state.scopes[body.scope]
    targets = {association.target for association in plan.inputs}
    if targets <= scope.data.keys():
        return True  # recorded when it was activated; a retry uses the same
    names = ScopeView(turn.state, scope.id)
    if not can_take_inputs(plan, names):
        turn.park(body, DataWait(turn.state.new_id(), body.id))
        turn.fact("data-awaited", body, names=plan.awaited)
        return False
    try:
        values = carried(turn, plan.inputs, names, {})
    except (ExpressionError, UnstorableValue) as error:
        turn.incident(body, IncidentKind.EXPRESSION, Resume.ENTER, f"the inputs of {node.label}: {error}")
        return False
    turn.declare(scope, {**dict.fromkeys(sorted(targets)), **values})
    return True


def written_by(
    turn: Turn, body: Track, node: NodeProgram, plan: DataPlan, returned: Mapping[str, Value]
) -> dict[str, Value] | None:
    """What completing the activity writes around it; None: it is at an incident, and nothing is written."""
    scope = turn.state.scopes[body.scope]
    inner = next((each for each in body.hosted.values() if each.kind is ScopeKind.BODY), scope)
    names = cast("Mapping[str, Value]", ChainMap(_mutable(returned), _mutable(ScopeView(turn.state, inner.id))))
    missing = _missing_outputs(plan, names)
    if missing:
        message = f"{node.label} completed without {', '.join(missing)}: none of its output sets is available"
        turn.incident(body, IncidentKind.MISSING_OUTPUT, Resume.RUN, message)
        return None
    if not plan.outputs:
        return dict(returned)
    outside = ScopeView(turn.state, _around(scope))
    try:
        return carried(turn, plan.outputs, names, outside)
    except (ExpressionError, UnstorableValue) as error:
        turn.incident(body, IncidentKind.EXPRESSION, Resume.RUN, f"the outputs of {node.label}: {error}")
        return None


def _around(scope: Scope) -> int:
    return scope.id if scope.parent is None else scope.parent


def _missing_outputs(plan: DataPlan, names: Mapping[str, Value]) -> list[str]:
    """The names that the first output set lacks, if no set has all of its own."""
    lacking = [[name for name in needed if names.get(name) is None] for needed in plan.output_sets]
    return min(lacking, key=len) if lacking and all(lacking) else []


def _mutable(names: Mapping[str, Any]) -> MutableMapping[str, Any]:
    """What is only read, for a ``ChainMap``, which could write."""
    return cast("MutableMapping[str, Any]", names)


def arrived(turn: Turn, track: Track, plan: DataPlan) -> None:
    """Data was written that the activity may wait for: it starts, if an input set is available now."""
    if can_take_inputs(plan, ScopeView(turn.state, track.scope)):
        turn.lift(track)
        turn.disarm(track)
        assert track.state is TrackState.READY
        turn.state.agenda.append(track)
