"""Who waits for an instance to end, or to stall."""

from __future__ import annotations

from trioflow.machine.state import State
from trioflow.runtime.acts import Reply

__all__ = ["Watchers"]


class Watchers:
    """Replies of tasks in ``wait()``, by instance; an instance that nobody waits for costs nothing here.

    A reply gets the state of an instance that has ended or stalled, or None: look again yourself.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, list[Reply]] = {}

    def notify(self, instance_id: str, state: State | None) -> None:
        """Tell everybody who waits for the instance."""
        for reply in self._waiting.pop(instance_id, ()):
            reply.give(state)

    def register(self, instance_id: str) -> Reply:
        """A reply that is given at the next change worth a look."""
        reply = Reply()
        self._waiting.setdefault(instance_id, []).append(reply)
        return reply

    def forget(self, instance_id: str, reply: Reply) -> None:
        """Nobody waits for that reply any more."""
        replies = self._waiting.get(instance_id)
        if replies is not None and reply in replies:
            replies.remove(reply)
            if not replies:
                del self._waiting[instance_id]

    def watches(self, instance_id: str) -> bool:
        """Whether somebody waits for it."""
        return instance_id in self._waiting

    def release_all(self) -> None:
        """The engine closes: everybody looks again, and finds that out."""
        for instance_id in list(self._waiting):
            self.notify(instance_id, None)
