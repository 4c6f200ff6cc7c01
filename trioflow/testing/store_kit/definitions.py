"""Deployed versions."""

from __future__ import annotations

from attrs import evolve

from trioflow.checkpoint.records import Definition
from trioflow.testing.store_kit.support import START, Contract, Engine

_ORDER = Definition(
    key="order",
    version=0,
    digest="0123456789ab",
    digest_algorithm=1,
    handler_names=("charge", "schicken"),
    content="<définition/>".encode(),
    content_hash="hash-1",
    deployed=START,
    name="Order",
)


class DefinitionContract(Contract):
    """Versions are minted once and never reused."""

    async def test_versions_are_minted_in_order(self, engine: Engine) -> None:
        """Each new content is the next version of its key, whatever version it claims."""
        first = await engine.store.deploy(evolve(_ORDER, version=17))
        second = await engine.store.deploy(evolve(_ORDER, content_hash="hash-2"))
        other = await engine.store.deploy(evolve(_ORDER, key="refund"))
        assert first == evolve(_ORDER, version=1)
        assert (second.version, other.version) == (2, 1)

    async def test_same_content_changes_nothing(self, engine: Engine) -> None:
        """The latest content again is the version that is there; an older content is a new version."""
        first = await engine.store.deploy(_ORDER)
        assert await engine.store.deploy(evolve(_ORDER, name="another name")) == first
        await engine.store.deploy(evolve(_ORDER, content_hash="hash-2"))
        assert (await engine.store.deploy(_ORDER)).version == 3

    async def test_definitions_come_back(self, engine: Engine) -> None:
        """By version, the latest, and the latest of each key in order; None where there is none."""
        for key, content_hash in (("z", "1"), ("order", "1"), ("order", "2")):
            await engine.store.deploy(evolve(_ORDER, key=key, content_hash=content_hash))
        latest = evolve(_ORDER, version=2, content_hash="2")
        assert await engine.store.definition("order") == latest
        assert await engine.store.definition("order", 1) == evolve(_ORDER, version=1, content_hash="1")
        assert await engine.store.definition("order", 3) is None
        assert await engine.store.definition("absent") is None
        assert [found.key for found in await engine.store.definitions()] == ["order", "z"]
        assert (await engine.store.definitions())[0] == latest
