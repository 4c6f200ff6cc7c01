"""From URLs to stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from trioflow.errors import InvalidRequest
from trioflow.stores.memory import MemoryStore
from trioflow.stores.opening import open_store
from trioflow.stores.sqlite import SQLiteStore
from trioflow.testing.store_kit import ManualClock


def test_memory() -> None:
    """``memory:`` is a new volatile store each time, with the clock it is given."""
    clock = ManualClock()
    store = open_store("memory:", clock=clock)
    assert isinstance(store, MemoryStore)
    assert store.volatile
    assert store.now() == clock.moment
    assert open_store("memory:") is not store


@pytest.mark.parametrize("name", ["orders.db", "folder/orders.db", "ö %20 ü.db"])
def test_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Three slashes: a path from where the program runs, taken as it is written; nothing is created yet."""
    monkeypatch.chdir(tmp_path)
    store = open_store(f"sqlite:///{name}")
    assert isinstance(store, SQLiteStore)
    assert store.path == tmp_path / name
    assert list(tmp_path.iterdir()) == []


def test_absolute_path(tmp_path: Path) -> None:
    """Four slashes: a path from the root."""
    store = open_store(f"sqlite:///{tmp_path}/orders.db")
    assert isinstance(store, SQLiteStore)
    assert store.path == tmp_path / "orders.db"


@pytest.mark.parametrize(
    "url, reason",
    [
        ("", "known ones"),
        ("orders.db", "known ones"),
        ("/var/orders.db", "known ones"),
        ("postgresql://localhost/orders", "known ones"),
        ("SQLITE:///orders.db", "known ones"),
        ("memory", "known ones"),
        ("memory://", "no name"),
        ("memory:orders", "no name"),
        ("sqlite:", "names no file"),
        ("sqlite:orders.db", "names no file"),
        ("sqlite://orders.db", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///orders.db?mode=ro", "options"),
        ("sqlite:///:memory:", "memory:"),
    ],
)
def test_refused(url: str, reason: str) -> None:
    """Anything else is refused, with the URL and what would be right."""
    with pytest.raises(InvalidRequest, match=reason):
        open_store(url)
