"""Activities: tasks, sub-processes, calls, and what loops them (clause 10.3)."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from trioflow.model.base import BaseElement, Expression
from trioflow.model.common import ResourceRole
from trioflow.model.data import (
    DataInput,
    DataInputAssociation,
    DataOutput,
    DataOutputAssociation,
    InputOutputBinding,
    InputOutputSpecification,
    Property,
)
from trioflow.model.events import ImplicitThrowEvent
from trioflow.model.flow import Artifact, FlowElement, FlowNode, LaneSet

__all__ = [
    "Activity",
    "AdHocSubProcess",
    "BusinessRuleTask",
    "CallActivity",
    "ComplexBehaviorDefinition",
    "GlobalBusinessRuleTask",
    "GlobalManualTask",
    "GlobalScriptTask",
    "GlobalTask",
    "GlobalUserTask",
    "LoopCharacteristics",
    "ManualTask",
    "MultiInstanceLoopCharacteristics",
    "ReceiveTask",
    "Rendering",
    "ScriptTask",
    "SendTask",
    "ServiceTask",
    "StandardLoopCharacteristics",
    "SubProcess",
    "Task",
    "Transaction",
    "UserTask",
]


@frozen(kw_only=True)
class LoopCharacteristics(BaseElement):
    """How often an activity runs."""


@frozen(kw_only=True)
class StandardLoopCharacteristics(LoopCharacteristics):
    """Repeats while a condition holds."""

    tag: ClassVar[str] = "standardLoopCharacteristics"

    test_before: bool = False
    loop_maximum: int | None = None
    loop_condition: Expression | None = None


@frozen(kw_only=True)
class ComplexBehaviorDefinition(BaseElement):
    """An event that a multi-instance activity throws when its condition holds."""

    tag: ClassVar[str] = "complexBehaviorDefinition"

    condition: Expression
    event: ImplicitThrowEvent | None = None


@frozen(kw_only=True)
class MultiInstanceLoopCharacteristics(LoopCharacteristics):
    """Runs once per item or number (clause 10.3.8)."""

    tag: ClassVar[str] = "multiInstanceLoopCharacteristics"

    is_sequential: bool = False
    behavior: str = "All"
    one_behavior_event_ref: str | None = None
    none_behavior_event_ref: str | None = None
    loop_cardinality: Expression | None = None
    loop_data_input_ref: str | None = None
    loop_data_output_ref: str | None = None
    input_data_item: DataInput | None = None
    output_data_item: DataOutput | None = None
    complex_behavior_definitions: tuple[ComplexBehaviorDefinition, ...] = ()
    completion_condition: Expression | None = None


@frozen(kw_only=True)
class Activity(FlowNode):
    """Work, atomic or compound."""

    is_for_compensation: bool = False
    start_quantity: int = 1
    completion_quantity: int = 1
    default: str | None = None
    io_specification: InputOutputSpecification | None = None
    properties: tuple[Property, ...] = ()
    data_input_associations: tuple[DataInputAssociation, ...] = ()
    data_output_associations: tuple[DataOutputAssociation, ...] = ()
    resources: tuple[ResourceRole, ...] = ()
    loop_characteristics: LoopCharacteristics | None = None


@frozen(kw_only=True)
class Task(Activity):
    """An abstract task: it passes."""

    tag: ClassVar[str] = "task"


@frozen(kw_only=True)
class ManualTask(Activity):
    """Work outside any engine: it passes."""

    tag: ClassVar[str] = "manualTask"


@frozen(kw_only=True)
class ServiceTask(Activity):
    """Calls a handler."""

    tag: ClassVar[str] = "serviceTask"

    implementation: str = "##WebService"
    operation_ref: str | None = None


@frozen(kw_only=True)
class SendTask(Activity):
    """Sends a message."""

    tag: ClassVar[str] = "sendTask"

    implementation: str = "##WebService"
    operation_ref: str | None = None
    message_ref: str | None = None


@frozen(kw_only=True)
class ReceiveTask(Activity):
    """Waits for a message."""

    tag: ClassVar[str] = "receiveTask"

    implementation: str = "##WebService"
    operation_ref: str | None = None
    message_ref: str | None = None
    instantiate: bool = False


@frozen(kw_only=True)
class Rendering(BaseElement):
    """How a user interface shows a task; its content is an extension."""

    tag: ClassVar[str] = "rendering"


@frozen(kw_only=True)
class UserTask(Activity):
    """A person's work."""

    tag: ClassVar[str] = "userTask"

    implementation: str = "##unspecified"
    renderings: tuple[Rendering, ...] = ()


@frozen(kw_only=True)
class ScriptTask(Activity):
    """Runs a script inside the engine."""

    tag: ClassVar[str] = "scriptTask"

    script_format: str | None = None
    script: str | None = None


@frozen(kw_only=True)
class BusinessRuleTask(Activity):
    """Asks a rule engine."""

    tag: ClassVar[str] = "businessRuleTask"

    implementation: str = "##unspecified"


@frozen(kw_only=True)
class CallActivity(Activity):
    """Runs another process or a global task."""

    tag: ClassVar[str] = "callActivity"

    called_element: str | None = None


@frozen(kw_only=True)
class SubProcess(Activity):
    """A scope of its own inside its parent; ``triggered_by_event`` makes it an event sub-process."""

    tag: ClassVar[str] = "subProcess"

    triggered_by_event: bool = False
    lane_sets: tuple[LaneSet, ...] = ()
    flow_elements: tuple[FlowElement | BaseElement, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


@frozen(kw_only=True)
class Transaction(SubProcess):
    """A sub-process that can be cancelled as a whole."""

    tag: ClassVar[str] = "transaction"

    method: str = "##Compensate"
    protocol: str | None = None


@frozen(kw_only=True)
class AdHocSubProcess(SubProcess):
    """A sub-process whose activities are chosen while it runs."""

    tag: ClassVar[str] = "adHocSubProcess"

    completion_condition: Expression | None = None
    ordering: str = "Parallel"
    cancel_remaining_instances: bool = True


@frozen(kw_only=True)
class GlobalTask(BaseElement):
    """A task that processes call (root element)."""

    tag: ClassVar[str] = "globalTask"

    name: str | None = None
    supported_interface_refs: tuple[str, ...] = ()
    io_specification: InputOutputSpecification | None = None
    io_bindings: tuple[InputOutputBinding, ...] = ()
    resources: tuple[ResourceRole, ...] = ()


@frozen(kw_only=True)
class GlobalManualTask(GlobalTask):
    """A callable manual task."""

    tag: ClassVar[str] = "globalManualTask"


@frozen(kw_only=True)
class GlobalUserTask(GlobalTask):
    """A callable user task."""

    tag: ClassVar[str] = "globalUserTask"

    implementation: str = "##unspecified"
    renderings: tuple[Rendering, ...] = ()


@frozen(kw_only=True)
class GlobalScriptTask(GlobalTask):
    """A callable script task."""

    tag: ClassVar[str] = "globalScriptTask"

    script_language: str | None = None
    script: str | None = None


@frozen(kw_only=True)
class GlobalBusinessRuleTask(GlobalTask):
    """A callable business rule task."""

    tag: ClassVar[str] = "globalBusinessRuleTask"

    implementation: str = "##unspecified"
