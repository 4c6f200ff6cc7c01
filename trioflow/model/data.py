"""Data and its movement: items, data objects, properties, stores, associations (clauses 8.4.10 and 10.4)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from trioflow.model.base import BaseElement, Expression
from trioflow.model.common import Auditing, Monitoring

__all__ = [
    "Assignment",
    "DataAssociation",
    "DataInput",
    "DataInputAssociation",
    "DataObject",
    "DataObjectReference",
    "DataOutput",
    "DataOutputAssociation",
    "DataState",
    "DataStore",
    "DataStoreReference",
    "InputOutputBinding",
    "InputOutputSpecification",
    "InputSet",
    "ItemDefinition",
    "OutputSet",
    "Property",
]


@frozen(kw_only=True)
class ItemDefinition(BaseElement):
    """The structure of an item (clause 8.4.10)."""

    tag: ClassVar[str] = "itemDefinition"

    structure_ref: str | None = None
    is_collection: bool = False
    item_kind: str = "Information"


@frozen(kw_only=True)
class DataState(BaseElement):
    """The named state of a data element, such as *paid*."""

    tag: ClassVar[str] = "dataState"

    name: str | None = None


@frozen(kw_only=True)
class Property(BaseElement):
    """A named item of a process, an activity or an event, invisible in the diagram."""

    tag: ClassVar[str] = "property"

    name: str | None = None
    item_subject_ref: str | None = None
    data_state: DataState | None = None


@frozen(kw_only=True)
class DataObject(BaseElement):
    """A data object: declared in its scope, lives as long as the scope."""

    tag: ClassVar[str] = "dataObject"

    name: str | None = None
    item_subject_ref: str | None = None
    is_collection: bool = False
    data_state: DataState | None = None
    auditing: Auditing | None = None
    monitoring: Monitoring | None = None
    category_value_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class DataObjectReference(BaseElement):
    """Another appearance of a data object, possibly in another state."""

    tag: ClassVar[str] = "dataObjectReference"

    name: str | None = None
    data_object_ref: str | None = None
    item_subject_ref: str | None = None
    data_state: DataState | None = None
    auditing: Auditing | None = None
    monitoring: Monitoring | None = None
    category_value_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class DataStore(BaseElement):
    """A store that outlives the process (root element)."""

    tag: ClassVar[str] = "dataStore"

    name: str | None = None
    capacity: int | None = None
    is_unlimited: bool = True
    item_subject_ref: str | None = None
    data_state: DataState | None = None


@frozen(kw_only=True)
class DataStoreReference(BaseElement):
    """An appearance of a data store in a process."""

    tag: ClassVar[str] = "dataStoreReference"

    name: str | None = None
    data_store_ref: str | None = None
    item_subject_ref: str | None = None
    data_state: DataState | None = None
    auditing: Auditing | None = None
    monitoring: Monitoring | None = None
    category_value_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class DataInput(BaseElement):
    """A declared input of an activity, a process or a throw event."""

    tag: ClassVar[str] = "dataInput"

    name: str | None = None
    item_subject_ref: str | None = None
    is_collection: bool = False
    data_state: DataState | None = None


@frozen(kw_only=True)
class DataOutput(BaseElement):
    """A declared output of an activity, a process or a catch event."""

    tag: ClassVar[str] = "dataOutput"

    name: str | None = None
    item_subject_ref: str | None = None
    is_collection: bool = False
    data_state: DataState | None = None


@frozen(kw_only=True)
class InputSet(BaseElement):
    """Inputs that together allow an activity to start."""

    tag: ClassVar[str] = "inputSet"

    name: str | None = None
    data_input_refs: tuple[str, ...] = ()
    optional_input_refs: tuple[str, ...] = ()
    while_executing_input_refs: tuple[str, ...] = ()
    output_set_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class OutputSet(BaseElement):
    """Outputs that together are produced."""

    tag: ClassVar[str] = "outputSet"

    name: str | None = None
    data_output_refs: tuple[str, ...] = ()
    optional_output_refs: tuple[str, ...] = ()
    while_executing_output_refs: tuple[str, ...] = ()
    input_set_refs: tuple[str, ...] = ()


@frozen(kw_only=True)
class InputOutputSpecification(BaseElement):
    """The data contract of an activity or process."""

    tag: ClassVar[str] = "ioSpecification"

    data_inputs: tuple[DataInput, ...] = ()
    data_outputs: tuple[DataOutput, ...] = ()
    input_sets: tuple[InputSet, ...] = ()
    output_sets: tuple[OutputSet, ...] = ()


@frozen(kw_only=True)
class InputOutputBinding(BaseElement):
    """Binds an input and an output to an operation of a supported interface."""

    tag: ClassVar[str] = "ioBinding"

    operation_ref: str | None = None
    input_data_ref: str | None = None
    output_data_ref: str | None = None


@frozen(kw_only=True)
class Assignment(BaseElement):
    """One assignment of a data association: ``from`` is evaluated, ``to`` names the place."""

    tag: ClassVar[str] = "assignment"

    from_expression: Expression
    to_expression: Expression


@frozen(kw_only=True)
class DataAssociation(BaseElement):
    """Moves data from sources to a target, by copy, transformation or assignments (clause 10.4.2)."""

    source_refs: tuple[str, ...] = ()
    target_ref: str | None = None
    transformation: Expression | None = None
    assignments: tuple[Assignment, ...] = ()


@frozen(kw_only=True)
class DataInputAssociation(DataAssociation):
    """Data into an activity or a throw event."""

    tag: ClassVar[str] = "dataInputAssociation"


@frozen(kw_only=True)
class DataOutputAssociation(DataAssociation):
    """Data out of an activity or a catch event."""

    tag: ClassVar[str] = "dataOutputAssociation"
