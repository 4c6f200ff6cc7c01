"""How the model's data becomes plans: which names, which associations, which sets (clauses 10.4.1, 10.4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from trioflow.errors import ExpressionError
from trioflow.machine.associations import Association, DataPlan, PayloadPlan
from trioflow.model import (
    Activity,
    Assignment,
    BaseElement,
    CatchEvent,
    DataAssociation,
    DataInput,
    DataInputAssociation,
    DataObject,
    DataObjectReference,
    DataOutput,
    DataOutputAssociation,
    DataStoreReference,
    Event,
    Graph,
    InputOutputSpecification,
    MultiInstanceLoopCharacteristics,
    Property,
    SubProcess,
    ThrowEvent,
    elements_of,
)
from trioflow.values import Path

if TYPE_CHECKING:
    from trioflow.machine.compiler import Compilation
    from trioflow.machine.program import Evaluable

__all__ = [
    "association_of",
    "data_names",
    "data_plan",
    "data_stores",
    "inputs_to",
    "outputs_from",
    "payload_plan",
    "received",
]


def data_names(graph: Graph) -> dict[str, str]:
    """The name of every data element by its id: what an association refers to, and what a scope calls it."""
    names: dict[str, str] = {}
    references: dict[str, str] = {}
    for element in _data_elements(graph):
        if isinstance(element, DataObjectReference):
            references[element.id] = element.data_object_ref or element.id
        elif isinstance(element, DataObject | Property | DataInput | DataOutput) and element.id:
            names[element.id] = element.name or element.id
    names.update({reference: names.get(target, target) for reference, target in references.items()})
    return names


def data_stores(graph: Graph) -> frozenset[str]:
    """The ids of the references to data stores."""
    return frozenset(element.id for element, _ in elements_of(graph.process) if isinstance(element, DataStoreReference))


def _data_elements(graph: Graph) -> Iterator[BaseElement]:
    process = graph.process
    yield from process.properties
    yield from _contract(process.io_specification)
    for element, _ in elements_of(process):
        yield element
        if isinstance(element, Activity):
            yield from element.properties
            yield from _contract(element.io_specification)
        elif isinstance(element, Event):
            yield from element.properties
            yield from element.data_outputs if isinstance(element, CatchEvent) else ()
            yield from element.data_inputs if isinstance(element, ThrowEvent) else ()


def _contract(specification: InputOutputSpecification | None) -> Iterator[BaseElement]:
    if specification is not None:
        yield from specification.data_inputs
        yield from specification.data_outputs


# ------------------------------------------------------------------ associations


def association_of(compilation: Compilation, element: BaseElement, association: DataAssociation) -> Association | None:
    """The association, its expressions compiled; None: it was refused."""
    stores = [ref for ref in (*association.source_refs, association.target_ref) if ref in compilation.data_stores]
    if stores:
        compilation.refuse(element, f"a data association with the data store {stores[0]!r}", "Use a handler")
        return None
    names = compilation.data_names
    target = names.get(association.target_ref or "", association.target_ref or "")
    transformation = association.transformation
    return Association(
        sources=tuple(names.get(ref, ref) for ref in association.source_refs),
        target=target,
        transformation=None if transformation is None else compilation.expression(element, transformation),
        assignments=tuple(_assignments(compilation, element, association.assignments, target)),
    )


def _assignments(
    compilation: Compilation, element: BaseElement, assignments: Iterable[Assignment], target: str
) -> Iterator[tuple[Evaluable, Path]]:
    """A place that does not begin at the target is one inside it (*choice*)."""
    for assignment in assignments:
        try:
            path = Path.parse(assignment.to_expression.text)
        except ExpressionError as error:
            compilation.fault(element, "assignment", f"an assignment has no place: {error}", "Write a path.")
            continue
        if path.name != target:
            path = Path((target, *path.steps))
        yield compilation.expression(element, assignment.from_expression), path


def _compiled(
    compilation: Compilation, element: BaseElement, associations: Iterable[DataAssociation]
) -> tuple[Association, ...]:
    compiled = (association_of(compilation, element, each) for each in associations)
    return tuple(each for each in compiled if each is not None)


# ------------------------------------------------------------------ activities


def data_plan(compilation: Compilation, activity: Activity) -> DataPlan | None:
    """The data of an activity; None: it has none of its own, and its outputs are written by name."""
    specification = activity.io_specification
    collection, output = _collections(activity)
    inputs = [each for each in activity.data_input_associations if collection is None or each.target_ref != collection]
    outputs = [each for each in activity.data_output_associations if output is None or output not in each.source_refs]
    plan = DataPlan(
        own=_own_names(activity),
        inputs=_compiled(compilation, activity, inputs),
        outputs=_compiled(compilation, activity, outputs),
        input_sets=tuple(_input_sets(compilation, activity, inputs)),
        output_sets=tuple(_output_sets(compilation, specification)),
    )
    return None if plan == DataPlan() else plan


def _own_names(activity: Activity) -> tuple[str, ...]:
    """Of a sub-process, its own properties are declared by its scope."""
    if isinstance(activity, SubProcess):
        return ()
    return tuple(each.name or each.id for each in activity.properties)


def _collections(activity: Activity) -> tuple[str | None, str | None]:
    """The data input and output of the activity that its multi-instance splits and fills, if they are its own."""
    loop, specification = activity.loop_characteristics, activity.io_specification
    if not isinstance(loop, MultiInstanceLoopCharacteristics) or specification is None:
        return None, None
    inputs = {each.id for each in specification.data_inputs}
    outputs = {each.id for each in specification.data_outputs}
    collection = loop.loop_data_input_ref if loop.loop_data_input_ref in inputs else None
    return collection, loop.loop_data_output_ref if loop.loop_data_output_ref in outputs else None


def inputs_to(compilation: Compilation, activity: Activity, ref: str | None) -> tuple[Association, ...]:
    """The associations that fill one data input of the activity."""
    return _compiled(
        compilation, activity, (a for a in activity.data_input_associations if ref and a.target_ref == ref)
    )


def outputs_from(compilation: Compilation, activity: Activity, ref: str | None) -> tuple[Association, ...]:
    """The associations that move one data output of the activity."""
    moved = (a for a in activity.data_output_associations if ref and ref in a.source_refs)
    return _compiled(compilation, activity, moved)


def _input_sets(
    compilation: Compilation, activity: Activity, inputs: list[DataInputAssociation]
) -> Iterator[tuple[Association, ...]]:
    specification = activity.io_specification
    for each in () if specification is None else specification.input_sets:
        required = set(each.data_input_refs) - set(each.optional_input_refs)
        needed = [
            association for association in inputs if association.target_ref in required and association.source_refs
        ]
        if not needed:
            return  # a set that needs nothing is always available, whatever the others need
        yield _compiled(compilation, activity, needed)


def _output_sets(compilation: Compilation, specification: InputOutputSpecification | None) -> Iterator[tuple[str, ...]]:
    for each in () if specification is None else specification.output_sets:
        required = [ref for ref in each.data_output_refs if ref not in each.optional_output_refs]
        if not required:
            return
        yield tuple(compilation.data_names.get(ref, ref) for ref in required)


# ------------------------------------------------------------------ events


def payload_plan(compilation: Compilation, event: ThrowEvent, number: int) -> PayloadPlan | None:
    """What the event's definition of that number throws: its own data input, else the only one (10.5.1)."""
    inputs = event.data_inputs
    if not inputs:
        return None
    chosen = inputs[number] if number < len(inputs) else inputs[0]
    associations = [each for each in event.data_input_associations if each.target_ref == chosen.id]
    return PayloadPlan(name=chosen.name or chosen.id, associations=_compiled(compilation, event, associations))


def received(compilation: Compilation, event: CatchEvent) -> tuple[tuple[Association, ...], tuple[str, ...]]:
    """Where what the event catches goes, and the names of its data outputs, one for each definition."""
    names: list[DataOutput] = list(event.data_outputs)
    associations: Iterable[DataOutputAssociation] = event.data_output_associations
    return _compiled(compilation, event, associations), tuple(each.name or each.id for each in names)
