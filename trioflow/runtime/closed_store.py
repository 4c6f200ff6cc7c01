"""What a closed engine has for a store: whoever still asks is told that the engine is closed."""

from __future__ import annotations

from typing import Any, NoReturn

from trioflow.errors import EngineClosed

__all__ = ["ClosedStore"]


class ClosedStore:
    """Refuses every look with ``EngineClosed``; it stands where a ``Store`` stood."""

    def __getattr__(self, name: str) -> NoReturn:
        raise EngineClosed("the engine is closed: open it again to ask it something")

    def __repr__(self) -> str:
        return "<ClosedStore>"


def closed_store() -> Any:
    """A closed store, typed as whatever is needed where it is put."""
    return ClosedStore()
