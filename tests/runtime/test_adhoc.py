"""Ad-hoc sub-processes as people and programs see them, on every store."""

from __future__ import annotations

import pytest

from tests.runtime.support import opened, parked
from trioflow import InvalidRequest, ProcessBuilder, Status
from trioflow.model import Definitions
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


def choosing(*names: str) -> Definitions:
    """Ad-hoc sub-processes of these names, all open at once, each with the user tasks a and b of its own."""
    p = ProcessBuilder("case")
    fork = p.start("s").parallel("f")
    for name in names:
        with fork.ad_hoc(name, until="done") as inside:
            inside.user(f"{name}-a")
            inside.user(f"{name}-b")
        p.at(name).end(f"{name}-end")
    return p.build()


async def test_people_choose_and_say_when_it_is_done(store: Store, clock: VirtualClock) -> None:
    """It waits, parked, until somebody acts; each act is stored when it returns."""
    async with opened(store, clock, choosing("x")) as engine:
        instance = await engine.start("case", {"done": False})
        await parked(engine)
        (choice,) = await instance.adhoc.enabled()
        assert (choice.node_id, choice.enabled, choice.inside) == ("x", ("x-a", "x-b"), 0)
        await instance.adhoc.activate("x-b")
        (task,) = await engine.tasks.query()
        await engine.tasks.complete(task.id, {"done": False})
        await instance.adhoc.activate("x-a")
        await instance.adhoc.complete()
        assert (await instance.wait()).status is Status.COMPLETED
        assert await engine.tasks.query() == ()


async def test_where_several_are_open_the_choice_is_named(store: Store, clock: VirtualClock) -> None:
    """An activity of one of them needs no name; what is ambiguous or not there is refused with what there is."""
    async with opened(store, clock, choosing("x", "y")) as engine:
        instance = await engine.start("case", {"done": False})
        with pytest.raises(InvalidRequest, match=r"several open ad-hoc sub-processes; open are: .* x-a, x-b"):
            await instance.adhoc.complete()
        with pytest.raises(InvalidRequest, match="no open ad-hoc sub-process that enables 'z'"):
            await instance.adhoc.activate("z")
        for choice in await instance.adhoc.enabled():
            await instance.adhoc.complete(choice=choice.id)
        assert (await instance.wait()).status is Status.COMPLETED
        with pytest.raises(InvalidRequest, match="open are: none"):
            await instance.adhoc.complete()
