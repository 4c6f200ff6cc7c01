"""What happened, as observers see it: frozen facts, made at the observer's edge only.

Inside, a fact is a plain tuple ``(kind, node_id, track_id, detail)``; the engine adds the instance and
the time.  Facts are observation, never state: nothing is rebuilt from them, and a slow observer loses some.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from attrs import field, frozen

__all__ = ["TERMINAL", "Fact", "RawFact", "Status"]


class Status(enum.StrEnum):
    """The status of an instance (``docs/explanation/how-it-works.md``)."""

    is_terminal: bool
    """Whether nothing can change it any more."""

    def __new__(cls, value: str, is_terminal: bool = False) -> Self:  # noqa: FBT001, FBT002 - a row of the table below
        """A member with its mark; the mark is an attribute because it is asked at every event."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.is_terminal = is_terminal
        return member

    CREATED = "created"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    TERMINATING = "terminating"
    COMPLETED = "completed", True
    TERMINATED = "terminated", True
    FAILED = "failed", True


TERMINAL = frozenset(status for status in Status if status.is_terminal)

RawFact = tuple[str, str, int, Mapping[str, Any]]
"""``(kind, node id, track id, details)``; node id is empty and track id 0 where the fact has none."""


@frozen(kw_only=True)
class Fact:
    """One fact: what happened to which instance, at which node, when.

    ``kind`` is one of the words of the life cycle, such as ``instance-active``, ``activity-completed``,
    ``timer-fired``, ``incident-opened``, ``instance-hydrated``.  ``details`` holds names, counts and
    codes, never values of variables.
    """

    kind: str
    instance_id: str
    at: datetime
    node_id: str = ""
    track_id: int = 0
    details: Mapping[str, Any] = field(factory=dict)
