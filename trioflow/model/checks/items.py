"""Item definitions as the rules compare them (clause 8.4.10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from trioflow.model.activities import Activity, SubProcess
from trioflow.model.base import BaseElement
from trioflow.model.checks.view import walk
from trioflow.model.data import (
    DataInput,
    DataObject,
    DataObjectReference,
    DataOutput,
    DataStore,
    DataStoreReference,
    InputOutputSpecification,
    ItemDefinition,
    Property,
)
from trioflow.model.graph import Graph

__all__ = ["ITEM_AWARE", "data_elements", "differ", "item_of", "scalar_of_collection", "specifications"]

ITEM_AWARE = (DataInput, DataObject, DataObjectReference, DataOutput, DataStore, DataStoreReference, Property)
"""Elements that hold data."""

Owner: TypeAlias = BaseElement


def data_elements(graph: Graph) -> dict[str, BaseElement]:
    """Every data element of the process and every data store, by id."""
    found = (element for element in walk(graph.process) if isinstance(element, ITEM_AWARE) and element.id)
    stores = (element for element in graph.definitions.root_elements if isinstance(element, DataStore))
    return {element.id: element for element in (*stores, *found)}


def item_of(data: dict[str, BaseElement], element: BaseElement | None) -> str | None:
    """The id of an element's item definition; a reference has that of what it refers to."""
    if isinstance(element, DataObjectReference):
        return element.item_subject_ref or item_of(data, data.get(element.data_object_ref or ""))
    if isinstance(element, DataStoreReference):
        return element.item_subject_ref or item_of(data, data.get(element.data_store_ref or ""))
    ref: str | None = getattr(element, "item_subject_ref", None)
    return ref


def differ(graph: Graph, first: str | None, second: str | None) -> bool:
    """Whether two item definitions are known and have different structures."""
    if first is None or second is None or first == second:
        return False
    one, other = graph.roots.get(first), graph.roots.get(second)
    if not isinstance(one, ItemDefinition) or not isinstance(other, ItemDefinition):
        return False
    same_structure = one.structure_ref is not None and one.structure_ref == other.structure_ref
    return not same_structure or one.is_collection != other.is_collection


def scalar_of_collection(graph: Graph, scalar: str | None, collection: str | None) -> bool:
    """Whether the one can be an item of the other, as far as both are known."""
    one, many = graph.roots.get(scalar or ""), graph.roots.get(collection or "")
    if not isinstance(one, ItemDefinition) or not isinstance(many, ItemDefinition):
        return True
    return one.structure_ref == many.structure_ref and many.is_collection and not one.is_collection


def specifications(graph: Graph) -> Iterator[tuple[Owner, InputOutputSpecification]]:
    """Every ``ioSpecification`` with the process or activity that owns it."""
    if graph.process.io_specification is not None:
        yield graph.process, graph.process.io_specification
    for node in graph.nodes.values():
        if isinstance(node, Activity) and not isinstance(node, SubProcess) and node.io_specification is not None:
            yield node, node.io_specification
