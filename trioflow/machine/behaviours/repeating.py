"""How loop characteristics become the frame of their activity (clause 10.3.8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trioflow.machine.behaviours.events import action_of
from trioflow.machine.program import Frame
from trioflow.machine.repetition import BehaviourEvent, MultiInstance, StandardLoop
from trioflow.model import (
    Activity,
    DataInput,
    DataObject,
    DataObjectReference,
    DataOutput,
    EventDefinition,
    MultiInstanceLoopCharacteristics,
    StandardLoopCharacteristics,
    SubProcess,
    elements_of,
)

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation

__all__ = ["frame_of"]


def frame_of(compilation: Compilation, activity: Activity) -> Frame | None:
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
    return None


def _multi_instance(
    compilation: Compilation, activity: Activity, loop: MultiInstanceLoopCharacteristics
) -> MultiInstance:
    cardinality, until = loop.loop_cardinality, loop.completion_condition
    item, output = loop.input_data_item, loop.output_data_item
    return MultiInstance(
        sequential=loop.is_sequential,
        cardinality=None if cardinality is None else compilation.expression(activity, cardinality),
        collection=_name_of(compilation, activity, loop.loop_data_input_ref),
        item=None if item is None else item.name or item.id or None,
        output_collection=_name_of(compilation, activity, loop.loop_data_output_ref),
        output_item=None if output is None else output.name or output.id or None,
        until=None if until is None else compilation.expression(activity, until),
        max_concurrent=compilation.own_number(loop, "maxConcurrent"),
        events=tuple(_events(compilation, activity, loop)),
    )


def _name_of(compilation: Compilation, activity: Activity, ref: str | None) -> str | None:
    """The name of the variable that a data element is: a data object, a property, an input or output of the activity.

    A reference that is the id of none of these is a name already (*choice*: most editors write one).
    """
    if not ref:
        return None
    specification = activity.io_specification
    if specification is not None:
        inside: list[DataInput | DataOutput] = [*specification.data_inputs, *specification.data_outputs]
        for own in inside:
            if own.id == ref:
                return own.name or own.id
    process = compilation.graph.process
    sub_processes = [node for node in compilation.graph.nodes.values() if isinstance(node, SubProcess)]
    for declared in (*process.properties, *(each for inner in sub_processes for each in inner.properties)):
        if declared.id == ref:
            return declared.name or declared.id
    found = next((element for element, _ in elements_of(process) if element.id == ref), None)
    if isinstance(found, DataObject):
        return found.name or found.id
    if isinstance(found, DataObjectReference) and found.data_object_ref:
        return _name_of(compilation, activity, found.data_object_ref)
    return ref


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
