"""Data elements, input and output sets, associations (clauses 8.4.6 and 10.4)."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model.activities import SubProcess
from trioflow.model.base import Expression
from trioflow.model.checks.items import data_elements, differ, item_of, specifications
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.checks.view import described, each, executable, nodes_of
from trioflow.model.data import (
    DataAssociation,
    DataInput,
    DataInputAssociation,
    DataObject,
    DataObjectReference,
    DataOutput,
    DataOutputAssociation,
    InputSet,
    ItemDefinition,
    OutputSet,
)
from trioflow.model.findings import Level
from trioflow.model.graph import Graph

__all__ = ["RULES"]


# ------------------------------------------------------------------ expressions as such


def expression_empty(graph: Graph) -> Iterator[Problem]:
    """An expression that is there has a text (8.4.6)."""
    for expression in each(graph, Expression):
        if not expression.text.strip():
            yield Problem(expression, f"The expression {expression.id!r} is empty.", "Write it, or remove the element.")


def expression_informal(graph: Graph) -> Iterator[Problem]:
    """In an executable process expressions are formal; we evaluate both alike (8.4.6)."""
    for expression in each(graph, Expression) if executable(graph) else ():
        if not expression.formal:
            yield Problem(
                expression,
                f"The expression {expression.text!r} is not marked as formal.",
                "Give it xsi:type='tFormalExpression'.",
            )


# ------------------------------------------------------------------ sets


def data_unlisted(graph: Graph) -> Iterator[Problem]:
    """Each input is in an input set, each output in an output set (10.4.1)."""
    for owner, io in specifications(graph):
        inputs = {ref for each_set in io.input_sets for ref in each_set.data_input_refs}
        outputs = {ref for each_set in io.output_sets for ref in each_set.data_output_refs}
        for element, listed in ((io.data_inputs, inputs), (io.data_outputs, outputs)):
            for data in element:
                if data.id not in listed:
                    yield Problem(
                        data, f"The {data.tag} {data.id!r} of {owner.id!r} is in no set.", "List it in a set."
                    )


def set_ref_unresolved(graph: Graph) -> Iterator[Problem]:
    """Sets list data of their own specification (10.4.1)."""
    for owner, io in specifications(graph):
        inputs, outputs = {data.id for data in io.data_inputs}, {data.id for data in io.data_outputs}
        for input_set in io.input_sets:
            yield from _unknown(input_set, _input_refs(input_set), inputs, owner.id)
        for output_set in io.output_sets:
            yield from _unknown(output_set, _output_refs(output_set), outputs, owner.id)


def _unknown(element: InputSet | OutputSet, refs: tuple[str, ...], known: set[str], owner: str) -> Iterator[Problem]:
    for ref in refs:
        if ref not in known:
            yield Problem(element, f"It lists {ref!r}, which {owner!r} does not declare.", "Declare it, or remove it.")


def _input_refs(each_set: InputSet) -> tuple[str, ...]:
    return each_set.data_input_refs + each_set.optional_input_refs + each_set.while_executing_input_refs


def _output_refs(each_set: OutputSet) -> tuple[str, ...]:
    return each_set.data_output_refs + each_set.optional_output_refs + each_set.while_executing_output_refs


def optional_unlisted(graph: Graph) -> Iterator[Problem]:
    """What is optional or arrives while executing is in the set at all (10.4.1)."""
    for owner, io in specifications(graph):
        for input_set in io.input_sets:
            extra = set(_input_refs(input_set)) - set(input_set.data_input_refs)
            yield from _not_listed(input_set, extra, owner.id)
        for output_set in io.output_sets:
            extra = set(_output_refs(output_set)) - set(output_set.data_output_refs)
            yield from _not_listed(output_set, extra, owner.id)


def _not_listed(element: InputSet | OutputSet, refs: set[str], owner: str) -> Iterator[Problem]:
    for ref in sorted(refs):
        yield Problem(
            element,
            f"{ref!r} is optional or while executing in a set of {owner!r} that does not list it.",
            "List it among the set's data too.",
        )


def set_pairing_contradicted(graph: Graph) -> Iterator[Problem]:
    """Input and output sets that belong together name each other (10.4.1)."""
    for owner, io in specifications(graph):
        inputs = {each_set.id: each_set for each_set in io.input_sets if each_set.id}
        outputs = {each_set.id: each_set for each_set in io.output_sets if each_set.id}
        pairs = [
            *((one, ref, outputs.get(ref)) for one in io.input_sets for ref in one.output_set_refs),
            *((one, ref, inputs.get(ref)) for one in io.output_sets for ref in one.input_set_refs),
        ]
        for one, ref, other in pairs:
            back = () if other is None else _partners(other)
            if one.id not in back:
                yield Problem(
                    one,
                    f"The {one.tag} {one.id!r} of {owner.id!r} names {ref!r}, which does not name it.",
                    "Let both sets name each other.",
                )


def _partners(each_set: InputSet | OutputSet) -> tuple[str, ...]:
    return each_set.output_set_refs if isinstance(each_set, InputSet) else each_set.input_set_refs


def sub_process_io(graph: Graph) -> Iterator[Problem]:
    """A sub-process has no ``ioSpecification``: it sees its parent's data (10.4.1)."""
    for node in nodes_of(graph, SubProcess):
        if node.io_specification is not None:
            yield Problem(node, "It has an ioSpecification.", "Use properties or data objects inside it.")


# ------------------------------------------------------------------ associations


def association_sources(graph: Graph) -> Iterator[Problem]:
    """Several sources need a transformation (10.4.1)."""
    for association in each(graph, DataAssociation):
        if len(association.source_refs) > 1 and association.transformation is None and not association.assignments:
            yield Problem(
                association,
                f"It has the sources {', '.join(association.source_refs)} and no transformation.",
                "Add a transformation, or use one source.",
            )


def association_target_missing(graph: Graph) -> Iterator[Problem]:
    """An association has a target (10.4.1)."""
    for association in each(graph, DataAssociation):
        if not association.target_ref and not association.assignments:
            yield Problem(association, "It has neither targetRef nor assignment: it moves nothing.", "Add a targetRef.")


def association_direction(graph: Graph) -> Iterator[Problem]:
    """Data goes into inputs and comes out of outputs, not the other way (10.4.1)."""
    data = data_elements(graph)
    for incoming in each(graph, DataInputAssociation):
        for ref in incoming.source_refs:
            if isinstance(data.get(ref), DataOutput):
                yield Problem(
                    incoming, f"An input comes from {ref!r}, a data output.", "Go by a data object or property."
                )
    for outgoing in each(graph, DataOutputAssociation):
        if isinstance(data.get(outgoing.target_ref or ""), DataInput):
            yield Problem(
                outgoing,
                f"An output goes to {outgoing.target_ref!r}, a data input.",
                "Go by a data object or property.",
            )


def association_items(graph: Graph) -> Iterator[Problem]:
    """A plain copy is between data of one item definition (10.4.1)."""
    data = data_elements(graph)
    for association in each(graph, DataAssociation):
        if association.transformation is not None or association.assignments:
            continue
        target = item_of(data, data.get(association.target_ref or ""))
        for ref in association.source_refs[:1]:
            source = item_of(data, data.get(ref))
            if differ(graph, source, target):
                yield Problem(
                    association,
                    f"It copies {ref!r} ({source}) to {association.target_ref!r} ({target}).",
                    "Add a transformation, or use one item definition.",
                )


# ------------------------------------------------------------------ data elements


def collection_contradicted(graph: Graph) -> Iterator[Problem]:
    """``isCollection`` is what the item definition says (10.4.1)."""
    for element in _with_collection_mark(graph):
        item = graph.roots.get(element.item_subject_ref or "")
        if isinstance(item, ItemDefinition) and item.is_collection != element.is_collection:
            yield Problem(
                element,
                f"Its isCollection is {element.is_collection}, that of its item {item.id!r} is {item.is_collection}.",
                "Use the same value in both.",
            )


def _with_collection_mark(graph: Graph) -> Iterator[DataObject | DataInput | DataOutput]:
    yield from each(graph, DataObject)
    yield from each(graph, DataInput)
    yield from each(graph, DataOutput)


def reference_name(graph: Graph) -> Iterator[Problem]:
    """A reference is named after its data object, with the state in brackets (10.4.1)."""
    data = data_elements(graph)
    for reference in each(graph, DataObjectReference):
        referred = data.get(reference.data_object_ref or "")
        state = reference.data_state.name if reference.data_state else None
        if not isinstance(referred, DataObject) or not (referred.name and reference.name and state):
            continue
        wanted = f"{referred.name} [{state}]"
        if reference.name != wanted:
            yield Problem(
                reference,
                f"It is named {reference.name!r}; {described(referred)} is in {state!r}.",
                f"Name it {wanted!r}.",
            )


RULES: Table[Graph] = (
    Rule("expression-empty", Level.ERROR, "8.4.6", expression_empty),
    Rule("expression-informal", Level.VIOLATION, "8.4.6", expression_informal),
    Rule("data-unlisted", Level.VIOLATION, "10.4.1", data_unlisted),
    Rule("io-set-unresolved", Level.ERROR, "10.4.1", set_ref_unresolved),
    Rule("io-set-optional-unlisted", Level.VIOLATION, "10.4.1", optional_unlisted),
    Rule("io-set-pairing", Level.VIOLATION, "10.4.1", set_pairing_contradicted),
    Rule("sub-process-io", Level.VIOLATION, "10.4.1", sub_process_io),
    Rule("data-association-sources", Level.VIOLATION, "10.4.1", association_sources),
    Rule("data-association-target-missing", Level.VIOLATION, "10.4.1", association_target_missing),
    Rule("data-association-direction", Level.VIOLATION, "10.4.1", association_direction),
    Rule("data-association-items", Level.VIOLATION, "10.4.1", association_items),
    Rule("collection-contradicted", Level.VIOLATION, "10.4.1", collection_contradicted),
    Rule("data-reference-name", Level.VIOLATION, "10.4.1", reference_name),
)
"""Rules about data."""
