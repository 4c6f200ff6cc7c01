"""Engines and deployed definitions of one group, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, evolve

from trioflow.checkpoint.records import Definition
from trioflow.stores.memory._order import Ordered
from trioflow.stores.port import Owner

__all__ = ["Engine", "Registry"]


@define(eq=False)
class Engine:
    """An engine's row.  ``held``: roots of this incarnation; ``left``: those of earlier ones, in order of id."""

    incarnation: int
    handler_names: tuple[str, ...]
    held: set[str]
    left: Ordered[str]


class Registry:
    """Who runs, and what is deployed."""

    def __init__(self) -> None:
        self.engines: dict[str, Engine] = {}
        self._versions: dict[str, list[Definition]] = {}

    # ---------------------------------------------------------------- engines

    def enrol(self, engine_id: str, handler_names: Sequence[str]) -> Owner:
        """A new incarnation; what earlier ones held is left for it."""
        engine = self.engines.get(engine_id)
        if engine is None:
            engine = self.engines[engine_id] = Engine(0, (), set(), Ordered())
        engine.incarnation += 1
        engine.handler_names = tuple(handler_names)
        for instance_id in sorted(engine.held):
            engine.left.add(instance_id)
        engine.held.clear()
        return Owner(engine_id=engine_id, incarnation=engine.incarnation)

    def is_current(self, owner: Owner) -> bool:
        """Whether the engine's row names this incarnation."""
        engine = self.engines.get(owner.engine_id)
        return engine is not None and engine.incarnation == owner.incarnation

    # ---------------------------------------------------------------- definitions

    def deploy(self, definition: Definition) -> Definition:
        """Mint a version, unless the content is the latest."""
        versions = self._versions.setdefault(definition.key, [])
        if versions and versions[-1].content_hash == definition.content_hash:
            return versions[-1]
        versions.append(evolve(definition, version=len(versions) + 1))
        return versions[-1]

    def definition(self, key: str, version: int | None) -> Definition | None:
        """That version, or the latest."""
        versions = self._versions.get(key)
        if not versions:
            return None
        if version is None:
            return versions[-1]
        return versions[version - 1] if 1 <= version <= len(versions) else None

    def definitions(self) -> tuple[Definition, ...]:
        """The latest of each key."""
        return tuple(self._versions[key][-1] for key in sorted(self._versions))
