"""From a URL to a store that is not opened yet."""

from __future__ import annotations

from typing import Final

from trioflow.errors import InvalidRequest
from trioflow.stores.clock import Clock
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Store
from trioflow.stores.sqlite import SQLiteStore

__all__ = ["open_store"]

_KNOWN: Final = "'memory:', 'sqlite:///relative/path.db' (three slashes) and 'sqlite:////absolute/path.db' (four)"


def open_store(url: str, *, clock: Clock | None = None) -> Store:
    """The store that a URL names; nothing is opened or created before its ``open``.

    ``memory:`` is a new volatile store; ``sqlite:///`` is followed by a path, taken as it is written (no
    percent-decoding, no ``~``).  ``clock`` None: the system's.  Raises InvalidRequest for any other URL.
    """
    scheme, colon, rest = url.partition(":")
    if colon and scheme == "memory":
        return _memory(url, rest, clock)
    if colon and scheme == "sqlite":
        return _sqlite(url, rest, clock)
    raise InvalidRequest(f"no store is known for the URL {url!r}; the known ones are {_KNOWN}")


def _memory(url: str, rest: str, clock: Clock | None) -> Store:
    if rest:
        raise InvalidRequest(f"the URL {url!r} says more than 'memory:', and a store in memory has no name")
    return MemoryStore(clock=clock)


def _sqlite(url: str, rest: str, clock: Clock | None) -> Store:
    path = rest.removeprefix("///")
    if path == rest or not path:
        raise InvalidRequest(f"the URL {url!r} names no file; the known forms are {_KNOWN}")
    if "?" in path or "#" in path:
        raise InvalidRequest(f"the URL {url!r} has options or a fragment; options are given to SQLiteStore itself")
    return SQLiteStore(path, clock=clock)
