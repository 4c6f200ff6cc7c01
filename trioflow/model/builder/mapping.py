"""``inputs=`` and ``outputs=`` as the standard's data inputs, properties and associations (clause 10.4.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trioflow.errors import ModelError
from trioflow.model.activities import Activity, SubProcess
from trioflow.model.base import Expression
from trioflow.model.builder.parts import NodeOptions, expression
from trioflow.model.data import (
    Assignment,
    DataInput,
    DataInputAssociation,
    DataOutputAssociation,
    InputOutputSpecification,
    InputSet,
    OutputSet,
    Property,
)
from trioflow.model.events import CatchEvent, ThrowEvent
from trioflow.model.flow import FlowNode

__all__ = ["data_fields"]

Values = Mapping[str, "str | Expression"]


def data_fields(
    kind: type[FlowNode],
    fields: dict[str, Any],
    options: NodeOptions,
    *,
    declare: Callable[[str], str],
    take: Callable[[str, str], None],
) -> dict[str, Any]:
    """The fields that ``inputs`` and ``outputs`` add to a node.

    ``declare`` gives the id of the declared data with a name, ``take`` reserves an id of the document.
    """
    inputs, outputs = options.get("inputs"), options.get("outputs")
    added: dict[str, Any] = {}
    if inputs:
        added |= _inputs(kind, fields, inputs, take)
    if outputs:
        if not issubclass(kind, (Activity, CatchEvent)):
            raise ModelError(
                f"{fields['id']!r} ({kind.tag}) has no outputs; give them to an activity or a catch event."
            )
        added["data_output_associations"] = tuple(_output(path, text, declare) for path, text in outputs.items())
    return added


def _inputs(
    kind: type[FlowNode], fields: dict[str, Any], inputs: Values, take: Callable[[str, str], None]
) -> dict[str, Any]:
    node_id = fields["id"]
    if issubclass(kind, ThrowEvent):
        return _payload(node_id, inputs, take)
    if not issubclass(kind, Activity):
        raise ModelError(f"{node_id!r} ({kind.tag}) has no inputs; give them to an activity or a throw event.")
    targets = {name: f"{node_id}_{_label(name)}" for name in inputs}
    for target in targets.values():
        take(target, "data input")
    associations = tuple(
        DataInputAssociation(target_ref=targets[name], transformation=expression(text)) for name, text in inputs.items()
    )
    if issubclass(kind, SubProcess):
        # A sub-process has no ioSpecification (clause 10.3.5): its own data are its properties.
        own = tuple(Property(id=target, name=name) for name, target in targets.items())
        return {"properties": fields.get("properties", ()) + own, "data_input_associations": associations}
    if fields.get("io_specification") is not None:
        raise ModelError(f"{node_id!r} has both inputs= and io_specification=; use one of the two.")
    specification = InputOutputSpecification(
        data_inputs=tuple(DataInput(id=target, name=name) for name, target in targets.items()),
        input_sets=(InputSet(data_input_refs=tuple(targets.values())),),
        output_sets=(OutputSet(),),
    )
    return {"io_specification": specification, "data_input_associations": associations}


def _payload(node_id: str, inputs: Values, take: Callable[[str, str], None]) -> dict[str, Any]:
    """One data input, the payload, with an assignment for each of its entries (10.5.1: one for each definition)."""
    target = f"{node_id}_payload"
    take(target, "data input")
    association = DataInputAssociation(
        target_ref=target, assignments=tuple(_assignment(text, name) for name, text in inputs.items())
    )
    return {
        "data_inputs": (DataInput(id=target, name="payload"),),
        "data_input_associations": (association,),
        "input_set": InputSet(data_input_refs=(target,)),
    }


def _output(path: str, text: str | Expression, declare: Callable[[str], str]) -> DataOutputAssociation:
    root = re.split(r"[.\[]", path, maxsplit=1)[0]
    return DataOutputAssociation(target_ref=declare(root), assignments=(_assignment(text, path),))


def _assignment(text: str | Expression, place: str) -> Assignment:
    source = text if isinstance(text, Expression) else Expression(text=text)
    return Assignment(from_expression=source, to_expression=Expression(text=place))


def _label(name: str) -> str:
    return re.sub(r"[^\w.\-]+", "_", name)
