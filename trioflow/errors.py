"""The error tree: one root, one child for each thing a caller can do something about.

A message says what happened, to which id, with which value, and what to do next.  Where an
error has parts that a program may want (an instance id, a list of findings), they are
attributes too, so that nobody has to parse a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = [
    "BpmnError",
    "CorruptRecord",
    "DefinitionNotFound",
    "DefinitionRefused",
    "EngineBug",
    "EngineClosed",
    "EngineInUse",
    "ExpressionError",
    "HandlerMissing",
    "InstanceFailed",
    "InstanceIdInUse",
    "InstanceNotFound",
    "InstanceNotLoadable",
    "InstanceStalled",
    "InvalidRequest",
    "ModelError",
    "OwnershipLost",
    "StoreError",
    "StoreTooNew",
    "TaskNotAvailable",
    "TrioflowError",
    "UnstorableValue",
]


class TrioflowError(Exception):
    """The root of every error that trioflow raises on purpose."""


# ------------------------------------------------------------------ what a user's model or data got wrong


class ModelError(TrioflowError):
    """A model could not be built or read: the text names what is wrong and where."""


class DefinitionRefused(ModelError):
    """Registration found errors; ``findings`` holds all of them, not only the first."""

    def __init__(self, message: str, findings: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.findings = tuple(findings)


class ExpressionError(TrioflowError):
    """An expression or script does not parse, or its evaluation failed or was refused."""


class BpmnError(TrioflowError):
    """A business error (clause 10.5.6) that a handler throws into the model.

    ``code`` is compared with the ``errorCode`` of the catching events; ``variables`` are
    bound for the catcher.  It is not a technical failure: it has no retry.
    """

    def __init__(self, code: str, message: str = "", variables: Mapping[str, Any] | None = None) -> None:
        super().__init__(message or f"BPMN error {code!r}")
        self.code = code
        self.variables: dict[str, Any] = dict(variables or {})


# ------------------------------------------------------------------ what a caller asked for and cannot have


class InvalidRequest(TrioflowError):
    """A call whose arguments make no sense together; nothing was done."""


class UnstorableValue(InvalidRequest):
    """A value has no canonical form; ``path`` leads to the offending part of it."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


class DefinitionNotFound(InvalidRequest):
    """No definition of that key (and version) is deployed."""


class InstanceNotFound(InvalidRequest):
    """No instance of that id is known to this engine's group."""


class InstanceNotLoadable(TrioflowError):
    """The instance is kept, but cannot be loaded (now): the text says why, and what to do."""


class InstanceIdInUse(InvalidRequest):
    """An instance of another process or tenant already has that id."""


class HandlerMissing(InvalidRequest):
    """Something needs a handler that the engine was opened without."""


class TaskNotAvailable(InvalidRequest):
    """The user task does not exist any more, is held by somebody else, or may not be touched by the actor."""


# ------------------------------------------------------------------ how an instance can end or get stuck


class InstanceFailed(TrioflowError):
    """The instance ended *failed*: an error that its model threw and nobody caught."""


class InstanceStalled(TrioflowError):
    """Nothing but an operator can move the instance; ``incidents`` says why."""

    def __init__(self, message: str, incidents: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.incidents = tuple(incidents)


# ------------------------------------------------------------------ the engine and its store


class EngineClosed(TrioflowError):
    """The engine is shutting down or closed and takes no new work."""


class EngineInUse(TrioflowError):
    """A living engine already runs under that group and id."""


class EngineBug(TrioflowError):
    """The engine's own code failed.  The act was refused and nothing of it was kept."""


class OwnershipLost(TrioflowError):
    """The engine no longer owns the instance: the act was not stored, and is safe to repeat with an id."""


class StoreError(TrioflowError):
    """The store cannot be opened, read or written; the text names the path and the reason."""


class StoreTooNew(StoreError):
    """The store was migrated by a newer trioflow that does not admit this one."""


class CorruptRecord(StoreError):
    """A stored document cannot be read; ``instance_id`` names whose it is."""

    def __init__(self, message: str, *, instance_id: str = "") -> None:
        super().__init__(message)
        self.instance_id = instance_id
