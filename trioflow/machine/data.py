"""Reading and writing variables along the scope chain (``docs/reference/values.md``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trioflow.machine.state import Scope, ScopeKind, State
from trioflow.values import Value

__all__ = ["ScopeView", "visible", "write"]


class ScopeView(Mapping[str, Value]):
    """What can be read in a scope: its own names, then those around it.  A lazy view; read-only."""

    __slots__ = ("_scope", "_state")

    def __init__(self, state: State, scope_id: int) -> None:
        self._state = state
        self._scope = scope_id

    def __getitem__(self, name: str) -> Value:
        for scope in self._state.scope_chain(self._scope):
            if name in scope.data:
                return scope.data[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        for scope in self._state.scope_chain(self._scope):
            for name in scope.data:
                if name not in seen:
                    seen.add(name)
                    yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)


def visible(state: State, scope_id: int) -> dict[str, Value]:
    """All that can be read in a scope, as a dict of its own (the values are shared)."""
    return dict(ScopeView(state, scope_id))


def write(state: State, scope_id: int, name: str, value: Value) -> None:
    """Write a canonical value where the name lives, or in the root if no scope of the chain has it."""
    scope = next(owner for owner in _owners(state, scope_id, name))
    scope.data[name] = value
    state.touched_data[(scope.id, name)] = None
    if name in state.conditions or name in state.gated:
        state.changed[name] = None


def _owners(state: State, scope_id: int, name: str) -> Iterator[Scope]:
    root: Scope | None = None
    for scope in state.scope_chain(scope_id):
        if name in scope.data and scope.kind is not ScopeKind.UNDO:
            yield scope
        root = scope
    if root is not None:
        yield root
