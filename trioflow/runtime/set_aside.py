"""Instances that could not be loaded: not tried again before their time, however many triggers come for them.

One bad record among a thousand good ones costs one attempt, not one every time something looks at it.
"""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from trioflow.errors import InstanceNotLoadable

__all__ = ["SetAside"]


@frozen
class Reason:
    """Why an instance is set aside; ``until`` None: until somebody does something about it."""

    text: str
    until: datetime | None
    for_definition: bool = False


class SetAside:
    """What this engine knows about instances that it could not load."""

    def __init__(self) -> None:
        self._reasons: dict[str, Reason] = {}

    def add(self, instance_id: str, text: str, *, until: datetime | None = None, for_definition: bool = False) -> None:
        """Set an instance aside; ``for_definition``: until something is deployed."""
        self._reasons[instance_id] = Reason(text, until, for_definition)

    def refusal(self, instance_id: str, now: datetime) -> InstanceNotLoadable | None:
        """The error for whoever wants the instance now; None: it may be tried."""
        reason = self._reasons.get(instance_id)
        if reason is None:
            return None
        if reason.until is not None and reason.until <= now:
            del self._reasons[instance_id]
            return None
        when = f"it is tried again at {reason.until.isoformat()}" if reason.until else "it is kept until that is mended"
        return InstanceNotLoadable(f"instance {instance_id!r} cannot be loaded ({reason.text}); {when}")

    def retry(self, instance_id: str) -> bool:
        """Try it again at once; whether it was set aside."""
        return self._reasons.pop(instance_id, None) is not None

    def deployed(self) -> list[str]:
        """Something was deployed: those that missed a definition may be tried again; their ids."""
        waiting = [key for key, reason in self._reasons.items() if reason.for_definition]
        for key in waiting:
            del self._reasons[key]
        return waiting
