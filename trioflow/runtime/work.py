"""What a handler is given: its inputs, and the names under which it can make itself idempotent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from trioflow.machine.state import Scope, ScopeKind, State, Track
from trioflow.values import Value, ValueCodec

__all__ = ["Inputs", "Work"]


class Inputs(Mapping[str, Value]):
    """A read-only view of the variables that the step can see, its own scope first.

    A list or record is copied when it is read, so that changing it changes nothing but the copy.
    """

    __slots__ = ("_codec", "_scopes")

    def __init__(self, scopes: tuple[Scope, ...], codec: ValueCodec) -> None:
        self._scopes = scopes
        self._codec = codec

    def __getitem__(self, name: str) -> Value:
        for scope in self._scopes:
            if name in scope.data:
                return self._codec.copy(scope.data[name])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for scope in self._scopes for name in list(scope.data)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<Inputs {', '.join(self)}>"


class Work:
    """One run of one step, as its handler sees it.

    ``attempt`` counts from 1; ``node_id`` names the task in the model.
    """

    __slots__ = ("_entry", "_inputs", "_key", "_state", "attempt", "data", "node_id")

    def __init__(self, state: State, track: Track, codec: ValueCodec, *, own_data: bool = False) -> None:
        own = state.scopes[track.scope]
        scopes = (own,) if own.parent is None else tuple(state.scope_chain(track.scope))
        self._state = state
        self._entry = track.entry
        self._inputs: Any = None
        # Hosts move on and end while a cancelled handler still cleans up: what their place says is read now.
        self._key: str | None = None if len(scopes) == 1 else self._key_inside(track, scopes)
        self.attempt = track.attempt
        self.node_id = track.node
        self.data: Mapping[str, Value] = Inputs(_own(scopes) if own_data else scopes, codec)
        """A read-only view of what the step can see: all variables, or where it has data inputs, those and its own."""

    @property
    def inputs(self) -> Any:
        """``data``, or what the handler's ``inputs`` class was structured from it."""
        return self.data if self._inputs is None else self._inputs

    @property
    def idempotency_key(self) -> str:
        """Instance / scope path / node / n: equal over retries and crashes, so what you call can know a repetition."""
        if self._key is None:
            self._key = f"{self.instance_id}/{self.node_id}/{self._entry}"
        return self._key

    def _key_inside(self, track: Track, scopes: tuple[Scope, ...]) -> str:
        path = [step for scope in reversed(scopes) for step in self._step_into(scope)]
        return "/".join((self.instance_id, *path, track.node, str(track.entry)))

    def _step_into(self, scope: Scope) -> Iterator[str]:
        """The node with its host's entry; in a loop or multi-instance with the index too, and the loop is no step."""
        if scope.host is None or scope.kind is ScopeKind.LOOP:
            return
        host = self._state.tracks[scope.host]
        yield f"{host.node}.{host.entry}" + (f"[{scope.index}]" if scope.index else "")

    @property
    def instance_id(self) -> str:
        """The instance's id."""
        return self._state.identity.instance_id

    @property
    def process_key(self) -> str:
        """The id of the process that the instance runs."""
        return self._state.identity.process_key

    @property
    def business_key(self) -> str | None:
        """The business key that the instance was started with."""
        return self._state.identity.business_key

    def settle(self, inputs: Any) -> None:
        """Fix what ``inputs`` gives (the runtime does this before the handler is called)."""
        self._inputs = inputs

    def freeze(self) -> None:
        """Take what can be seen as it is now: a thread must not look into what the owner changes meanwhile."""
        self._key = self.idempotency_key
        self.data = dict(self.data)

    def __repr__(self) -> str:
        return f"<Work {self.idempotency_key} attempt {self.attempt}>"


def _own(scopes: tuple[Scope, ...]) -> tuple[Scope, ...]:
    """The scopes of the activity itself: its instance, and the loop around that."""
    return tuple(takewhile(lambda scope: scope.kind is not ScopeKind.BODY, scopes))
