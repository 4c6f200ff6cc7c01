"""What a handler is given: its inputs, and the names under which it can make itself idempotent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trioflow.machine.state import Scope, State, Track
from trioflow.values import Value, ValueCodec

__all__ = ["Inputs", "Work"]


class Inputs(Mapping[str, Value]):
    """A read-only view of the variables that the step can see, its own scope first.

    A list or record is copied when it is read, so that changing it changes nothing but the copy.
    """

    __slots__ = ("_codec", "_scope", "_state")

    def __init__(self, state: State, scope: Scope, codec: ValueCodec) -> None:
        self._state = state
        self._scope = scope
        self._codec = codec

    def _layers(self) -> Iterator[Mapping[str, Value]]:
        scope: Scope | None = self._scope
        while scope is not None:
            yield scope.data
            scope = None if scope.parent is None else self._state.scopes.get(scope.parent)

    def __getitem__(self, name: str) -> Value:
        for layer in self._layers():
            if name in layer:
                return self._codec.copy(layer[name])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for layer in self._layers() for name in list(layer)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<Inputs {', '.join(self)}>"


class Work:
    """One run of one step, as its handler sees it.

    ``attempt`` counts from 1; ``node_id`` names the task in the model.
    """

    __slots__ = ("_entry", "_inputs", "_key", "_scope", "_state", "attempt", "data", "node_id")

    def __init__(self, state: State, track: Track, codec: ValueCodec) -> None:
        self._state = state
        self._scope = state.scopes[track.scope]
        self._entry = track.entry
        self._inputs: Any = None
        self._key: str | None = None
        self.attempt = track.attempt
        self.node_id = track.node
        self.data: Mapping[str, Value] = Inputs(state, self._scope, codec)
        """A read-only view of the variables that the step can see."""

    @property
    def inputs(self) -> Any:
        """``data``, or what the handler's ``inputs`` class was structured from it."""
        return self.data if self._inputs is None else self._inputs

    @property
    def idempotency_key(self) -> str:
        """Instance / scope path / node / n: equal over retries and crashes, so what you call can know a repetition."""
        if self._key is not None:
            return self._key
        path: list[str] = []
        scope = self._scope
        while scope.host is not None:
            host = self._state.tracks[scope.host]
            path.append(f"{host.node}.{host.entry}")
            scope = self._state.scopes[host.scope]
        return "/".join((self.instance_id, *reversed(path), self.node_id, str(self._entry)))

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
