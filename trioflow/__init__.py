"""trioflow runs BPMN 2.0 processes inside a Trio program, and keeps them alive through crashes."""

from __future__ import annotations

from trioflow.errors import (
    BpmnError,
    CorruptRecord,
    DefinitionNotFound,
    DefinitionRefused,
    EngineBug,
    EngineClosed,
    EngineInUse,
    ExpressionError,
    HandlerMissing,
    InstanceFailed,
    InstanceIdInUse,
    InstanceNotFound,
    InstanceNotLoadable,
    InstanceStalled,
    InvalidRequest,
    ModelError,
    OwnershipLost,
    StoreError,
    StoreTooNew,
    TaskNotAvailable,
    TrioflowError,
    UnstorableValue,
)
from trioflow.facts import Fact, Status
from trioflow.model.builder import ProcessBuilder
from trioflow.runtime.adhoc import AdHoc, Choice
from trioflow.runtime.engine import Engine, MessageOutcome, Statistics, open_engine
from trioflow.runtime.handlers import Handler, Handlers, Retry
from trioflow.runtime.instance import Instance, Outcome
from trioflow.runtime.work import Work
from trioflow.values import Duration, value_type

__all__ = [
    "AdHoc",
    "BpmnError",
    "Choice",
    "CorruptRecord",
    "DefinitionNotFound",
    "DefinitionRefused",
    "Duration",
    "Engine",
    "EngineBug",
    "EngineClosed",
    "EngineInUse",
    "ExpressionError",
    "Fact",
    "Handler",
    "HandlerMissing",
    "Handlers",
    "Instance",
    "InstanceFailed",
    "InstanceIdInUse",
    "InstanceNotFound",
    "InstanceNotLoadable",
    "InstanceStalled",
    "InvalidRequest",
    "MessageOutcome",
    "ModelError",
    "Outcome",
    "OwnershipLost",
    "ProcessBuilder",
    "Retry",
    "Statistics",
    "Status",
    "StoreError",
    "StoreTooNew",
    "TaskNotAvailable",
    "TrioflowError",
    "UnstorableValue",
    "Work",
    "open_engine",
    "value_type",
]
