"""Small translations from keyword options to parts of definitions: expressions, own attributes, loops, data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from attrs import evolve

from trioflow.errors import ModelError
from trioflow.model.activities import (
    LoopCharacteristics,
    MultiInstanceLoopCharacteristics,
    StandardLoopCharacteristics,
)
from trioflow.model.base import NO_EXTENSIONS, TRIOFLOW_NAMESPACE, Expression, Extensions
from trioflow.model.common import ResourceRole
from trioflow.model.data import DataInput, DataOutput, InputOutputSpecification, Property

__all__ = [
    "ActivityOptions",
    "NodeOptions",
    "activity_fields",
    "check_id",
    "expression",
    "for_each",
    "loop",
    "node_fields",
    "own_extensions",
    "times",
    "with_extensions",
]

_NCNAME = re.compile(r"[^\W\d][\w.\-]*")
_DATA_OPTIONS = ("inputs", "outputs")
"""Options that the scope works in itself, because they need its declared data."""


class NodeOptions(TypedDict, total=False):
    """What every node of the builder takes."""

    name: str
    documentation: str
    extensions: Extensions
    inputs: Mapping[str, str | Expression]
    """Activities and throwing events: own name of a value to the expression that gives it."""
    outputs: Mapping[str, str | Expression]
    """Activities and catching events: name or path in the scope to the expression over what came out."""
    properties: Iterable[Property]


class ActivityOptions(NodeOptions, total=False):
    """What every activity of the builder takes besides."""

    loop: LoopCharacteristics
    for_compensation: bool
    start_quantity: int
    completion_quantity: int
    io_specification: InputOutputSpecification
    resources: Iterable[ResourceRole]


_FIELDS: Mapping[str, str] = {"for_compensation": "is_for_compensation", "loop": "loop_characteristics"}
_SEQUENCES = ("properties", "resources")


def check_id(element_id: str) -> None:
    """Refuse what cannot be the id of an XML element."""
    if not _NCNAME.fullmatch(element_id):
        raise ModelError(
            f"{element_id!r} cannot be an id: ids start with a letter or underscore and go on with letters, digits, "
            f"'_', '-' and '.'; put other text into name="
        )


def expression(text: str | Expression | None) -> Expression | None:
    """``text`` as an expression in the document's language; an ``Expression`` passes as it is."""
    return Expression(text=text) if isinstance(text, str) else text


def own_extensions(**values: str | int | Iterable[str] | None) -> Extensions:
    """Trioflow's own attributes with these values; None leaves one out, several texts are joined by commas."""
    attributes = tuple(
        (f"{{{TRIOFLOW_NAMESPACE}}}{name}", _attribute_text(value))
        for name, value in values.items()
        if value is not None
    )
    return Extensions(attributes=attributes) if attributes else NO_EXTENSIONS


def _attribute_text(value: str | int | Iterable[str]) -> str:
    return str(value) if isinstance(value, (str, int)) else ",".join(value)


def with_extensions(first: Extensions, second: Extensions) -> Extensions:
    """Both together."""
    return evolve(first, attributes=first.attributes + second.attributes, elements=first.elements + second.elements)


def node_fields(node_id: str, options: Mapping[str, Any], allowed: type = NodeOptions) -> dict[str, Any]:
    """Builder options as fields of the definition, without those for data."""
    known = allowed.__annotations__.keys() | NodeOptions.__annotations__.keys()
    unknown = sorted(options.keys() - known)
    if unknown:
        raise ModelError(
            f"{node_id!r} does not take the option {', '.join(unknown)}; it takes {', '.join(sorted(known))}."
        )
    fields: dict[str, Any] = {"id": node_id}
    for option, value in options.items():
        if option == "documentation":
            fields[option] = (value,)
        elif option not in _DATA_OPTIONS:
            fields[_FIELDS.get(option, option)] = tuple(value) if option in _SEQUENCES else value
    return fields


def activity_fields(node_id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The same for an activity."""
    return node_fields(node_id, options, ActivityOptions)


# ------------------------------------------------------------------ loops


def loop(
    while_: str | Expression | None = None, *, maximum: int | None = None, test_before: bool = False
) -> StandardLoopCharacteristics:
    """A standard loop: while the condition holds, at most ``maximum`` rounds, tested after each round or before."""
    return StandardLoopCharacteristics(loop_condition=expression(while_), loop_maximum=maximum, test_before=test_before)


def times(
    cardinality: str | int | Expression,
    *,
    sequential: bool = False,
    until: str | Expression | None = None,
    max_concurrent: int | None = None,
) -> MultiInstanceLoopCharacteristics:
    """A multi-instance of so many instances; ``until`` is its completion condition."""
    return MultiInstanceLoopCharacteristics(
        is_sequential=sequential,
        loop_cardinality=expression(str(cardinality) if isinstance(cardinality, int) else cardinality),
        completion_condition=expression(until),
        extensions=own_extensions(maxConcurrent=max_concurrent),
    )


def for_each(
    collection: str,
    *,
    item: str | None = None,
    output_collection: str | None = None,
    output_item: str | None = None,
    sequential: bool = False,
    until: str | Expression | None = None,
    max_concurrent: int | None = None,
) -> MultiInstanceLoopCharacteristics:
    """A multi-instance over a collection, named by the id of the data element that holds it.

    ``item`` is the name under which each instance sees its item; the values of ``output_item`` are
    gathered in ``output_collection``.
    """
    return MultiInstanceLoopCharacteristics(
        is_sequential=sequential,
        loop_data_input_ref=collection,
        loop_data_output_ref=output_collection,
        input_data_item=None if item is None else DataInput(name=item),
        output_data_item=None if output_item is None else DataOutput(name=output_item),
        completion_condition=expression(until),
        extensions=own_extensions(maxConcurrent=max_concurrent),
    )
