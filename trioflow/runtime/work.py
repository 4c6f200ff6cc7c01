"""What a handler is given: its inputs, and the names under which it can make itself idempotent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from trioflow.machine.state import State, Track
from trioflow.values import Value, ValueCodec

__all__ = ["Inputs", "Work"]


class Inputs(Mapping[str, Value]):
    """A read-only view of the variables that the step can see, its own scope first.

    A list or record is copied when it is read, so that changing it changes nothing but the copy.
    """

    __slots__ = ("_codec", "_layers")

    def __init__(self, layers: tuple[Mapping[str, Value], ...], codec: ValueCodec) -> None:
        self._layers = layers
        self._codec = codec

    def __getitem__(self, name: str) -> Value:
        for layer in self._layers:
            if name in layer:
                return self._codec.copy(layer[name])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for layer in self._layers for name in list(layer)))

    def __len__(self) -> int:
        return len({name for layer in self._layers for name in list(layer)})

    def __repr__(self) -> str:
        return f"<Inputs {', '.join(self)}>"


@frozen(kw_only=True)
class Work:
    """One run of one step.

    ``inputs`` is a read-only mapping of the visible variables, or what the handler's ``inputs`` class was
    structured from them.  ``data`` is always the mapping.  ``idempotency_key`` is equal over retries and crashes:
    give it to what you call, so that a repetition is known as one.  ``attempt`` counts from 1.
    """

    inputs: Any
    data: Mapping[str, Value]
    attempt: int
    idempotency_key: str
    instance_id: str
    process_key: str
    node_id: str
    business_key: str | None


def inputs_of(state: State, track: Track, codec: ValueCodec) -> Inputs:
    """The view of a track's scope; it holds the scopes themselves, so it outlives their end."""
    return Inputs(tuple(scope.data for scope in state.scope_chain(track.scope)), codec)


def idempotency_key(state: State, track: Track) -> str:
    """Instance / scope path / node / n, where each step of the path is a sub-process with its own n."""
    path: list[str] = []
    scope = state.scopes[track.scope]
    while scope.host is not None:
        host = state.tracks[scope.host]
        path.append(f"{host.node}.{host.entry}")
        scope = state.scopes[host.scope]
    return "/".join((state.identity.instance_id, *reversed(path), track.node, str(track.entry)))
