"""How loop characteristics become the frame of their activity (clause 10.3.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trioflow.machine.activities import Single
from trioflow.machine.behaviours.data_flow import inputs_to, outputs_from
from trioflow.machine.behaviours.events import action_of
from trioflow.machine.repetition import BehaviourEvent, MultiInstance, StandardLoop
from trioflow.model import (
    Activity,
    EventDefinition,
    MultiInstanceLoopCharacteristics,
    StandardLoopCharacteristics,
)

if TYPE_CHECKING:
    from trioflow.machine.associations import DataPlan
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import Frame

__all__ = ["frame_of"]


def frame_of(compilation: Compilation, activity: Activity, data: DataPlan | None) -> Frame | None:
    """The frame in which the activity runs; None: its work is done on the token that arrived."""
    loop = activity.loop_characteristics
    if isinstance(loop, StandardLoopCharacteristics):
        condition = loop.loop_condition
        return StandardLoop(
            condition=None if condition is None else compilation.expression(activity, condition),
            test_before=loop.test_before,
            maximum=loop.loop_maximum,
        )
    if isinstance(loop, MultiInstanceLoopCharacteristics):
        return _multi_instance(compilation, activity, loop)
    return None if data is None else Single()


def _multi_instance(
    compilation: Compilation, activity: Activity, loop: MultiInstanceLoopCharacteristics
) -> MultiInstance:
    cardinality, until = loop.loop_cardinality, loop.completion_condition
    item, output = loop.input_data_item, loop.output_data_item
    return MultiInstance(
        sequential=loop.is_sequential,
        cardinality=None if cardinality is None else compilation.expression(activity, cardinality),
        collection=_name_of(compilation, loop.loop_data_input_ref),
        collection_from=inputs_to(compilation, activity, loop.loop_data_input_ref),
        item=None if item is None else item.name or item.id or None,
        output_collection=_name_of(compilation, loop.loop_data_output_ref),
        output_to=outputs_from(compilation, activity, loop.loop_data_output_ref),
        output_item=None if output is None else output.name or output.id or None,
        until=None if until is None else compilation.expression(activity, until),
        max_concurrent=compilation.own_number(loop, "maxConcurrent"),
        events=tuple(_events(compilation, activity, loop)),
    )


def _name_of(compilation: Compilation, ref: str | None) -> str | None:
    """The name of the data element with that id; an id of none is a name already (*choice*: most editors write one)."""
    return compilation.data_names.get(ref, ref) if ref else None


def _events(
    compilation: Compilation, activity: Activity, loop: MultiInstanceLoopCharacteristics
) -> Iterator[BehaviourEvent]:
    """What it throws when an instance completes (Table 10.31)."""
    match loop.behavior:
        case "None":
            yield from _thrown(compilation, activity, loop.none_behavior_event_ref, first_only=False)
        case "One":
            yield from _thrown(compilation, activity, loop.one_behavior_event_ref, first_only=True)
        case "Complex":
            for each in loop.complex_behavior_definitions:
                condition = compilation.expression(activity, each.condition)
                event = each.event
                definitions = () if event is None else compilation.graph.event_definitions(event)
                actions = [action_of(compilation, activity, definition) for definition in definitions]
                given = tuple(action for action in actions if action is not None)
                yield BehaviourEvent(actions=given, condition=condition)
        case _:
            return


def _thrown(
    compilation: Compilation, activity: Activity, ref: str | None, *, first_only: bool
) -> Iterator[BehaviourEvent]:
    definition = compilation.graph.roots.get(ref or "")
    if isinstance(definition, EventDefinition):
        action = action_of(compilation, activity, definition)
        if action is not None:
            yield BehaviourEvent(actions=(action,), first_only=first_only)
