"""An instance from its start to its end, as its callers see it."""

from __future__ import annotations

import pytest
import trio

import trioflow
from tests.runtime.support import Gate, asking, opened, parked, receiving, registry, serving, sleeping
from trioflow import InstanceIdInUse, InvalidRequest, ProcessBuilder, Status, Work
from trioflow.errors import DefinitionNotFound, InstanceNotFound
from trioflow.machine.explain import ForMessage, ForTimer, Running
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


async def charge(work: Work) -> dict[str, object]:
    """A handler that answers."""
    return {"receipt": f"r-{work.inputs['amount']}"}


async def test_runs_to_its_end(store: Store, clock: VirtualClock) -> None:
    """An instance is started, waited for, and says how it ended and with which variables."""
    async with opened(store, clock, serving("charge"), handlers=registry(charge=charge)) as engine:
        instance = await engine.start("order", {"amount": 12}, business_key="o-17")
        assert instance.created
        outcome = await instance.wait()
        assert (outcome.status, outcome.variables) == (Status.COMPLETED, {"amount": 12, "receipt": "r-12"})
        assert outcome.instance_id == instance.id
        assert await instance.status() is Status.COMPLETED
        assert await instance.variables() == outcome.variables
        assert await instance.tokens() == ()
        assert await instance.explain() == ()
        (head,) = await engine.instances(business_key="o-17")
        assert (head.instance_id, head.status, head.owner) == (instance.id, Status.COMPLETED, None)


async def test_ends_in_its_start(store: Store, clock: VirtualClock) -> None:
    """An instance that has nothing to wait for is over when its start is stored."""
    built = ProcessBuilder("short")
    built.start("s").script("double", "n = n * 2").end("e")
    async with opened(store, clock, built.build()) as engine:
        instance = await engine.start("short", {"n": 21})
        assert (await instance.wait()).variables == {"n": 42}


async def test_many_wait_for_one(store: Store, clock: VirtualClock) -> None:
    """Every task that waits is told, whether it came before the end or after; one that gave up is not."""
    gate = Gate()
    statuses: list[Status] = []

    async def waits(instance: trioflow.Instance) -> None:
        statuses.append((await instance.wait()).status)

    async with opened(store, clock, serving("work"), handlers=registry(work=gate)) as engine:
        instance = await engine.start("order")
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(waits, engine.instance(instance.id))
            await gate.entered.wait()
            with trio.move_on_after(1) as impatient:
                await instance.wait()
            assert impatient.cancelled_caught
            gate.let.set()
        assert statuses == [Status.COMPLETED] * 10
        assert (await instance.wait()).status is Status.COMPLETED


async def test_shows_where_it_is(store: Store, clock: VirtualClock) -> None:
    """Tokens and explanations are those of a running step, then of the wait behind it, resident and parked."""
    gate = Gate()
    async with opened(store, clock, receiving(first="work", key="id"), handlers=registry(work=gate)) as engine:
        instance = await engine.start("receiver", {"id": 7})
        await gate.entered.wait()
        assert [(token.node, token.state) for token in await instance.tokens()] == [("work", "alive")]
        (why,) = await instance.explain()
        assert isinstance(why.reason, Running)
        assert await instance.status() is Status.ACTIVE
        gate.let.set()
        await parked(engine)
        assert [(token.node, token.state) for token in await instance.tokens()] == [("wait", "waiting")]
        (why,) = await instance.explain()
        assert why.reason == ForMessage("paid", 7)
        assert await instance.variables() == {"id": 7}
        assert engine.statistics().resident == 0, "looking at a parked instance does not bring it in"


async def test_cancel(store: Store, clock: VirtualClock) -> None:
    """A cancelled instance is terminated with the reason, running or parked; twice is refused."""
    gate = Gate()
    deploy = (serving("work"), sleeping())
    async with opened(store, clock, *deploy, handlers=registry(work=gate)) as engine:
        running = await engine.start("order")
        parked = await engine.start("sleeper")
        await gate.entered.wait()
        for instance in (running, parked):
            outcome = await instance.cancel("not wanted")
            assert (outcome.status, outcome.reason) == (Status.TERMINATED, "not wanted")
            with pytest.raises(InvalidRequest, match="has ended"):
                await instance.cancel()
        assert gate.log == ["entered", "cancelled"]


async def test_what_is_not_there(store: Store, clock: VirtualClock) -> None:
    """An unknown process, instance and start event are errors that name the known ones or what was asked."""
    async with opened(store, clock, sleeping(), asking()) as engine:
        with pytest.raises(DefinitionNotFound, match=r"'ordr'.*asker, sleeper"):
            await engine.start("ordr")
        with pytest.raises(InvalidRequest, match="'nowhere'"):
            await engine.start("sleeper", start_event="nowhere")
        nobody = engine.instance("nobody")
        for method in (nobody.status, nobody.variables, nobody.tokens, nobody.explain, nobody.wait, nobody.cancel):
            with pytest.raises(InstanceNotFound, match="'nobody'"):
                await method()
        assert await engine.instances() == ()


@pytest.mark.parametrize(
    "variables", [{"f": print}, {"a": {"b": [1, {2, 3}]}}, {1: "x"}, {"": 1}, {"loop": None}], ids=str
)
async def test_refuses_what_cannot_be_stored(
    store: Store, clock: VirtualClock, variables: dict[object, object]
) -> None:
    """A start with a value or a name that cannot be stored is refused, and there is no instance."""
    if "loop" in variables:
        variables["loop"] = variables
    async with opened(store, clock, sleeping()) as engine:
        with pytest.raises(InvalidRequest, match="sleeper"):
            await engine.start("sleeper", variables, instance_id="i-1")  # type: ignore[arg-type]  # that is the point
        assert await engine.instances() == ()
        assert (await engine.start("sleeper", instance_id="i-1")).created


async def test_variables_are_copies(store: Store, clock: VirtualClock) -> None:
    """Neither what was handed in nor what was given out is the instance's own value."""
    async with opened(store, clock, sleeping()) as engine:
        given = {"items": [1, 2]}
        instance = await engine.start("sleeper", given)
        given["items"].append(3)
        (await instance.variables())["items"].append(4)
        assert await instance.variables() == {"items": [1, 2]}


async def test_several_starts(store: Store, clock: VirtualClock) -> None:
    """With several start events one must be named, and only that one has a token."""
    built = ProcessBuilder("two")
    built.start("by_mail").script("m", "how = 'mail'").end("e1")
    built.start("by_phone").script("p", "how = 'phone'").end("e2")
    async with opened(store, clock, built.build()) as engine:
        with pytest.raises(InvalidRequest, match="by_mail, by_phone"):
            await engine.start("two")
        instance = await engine.start("two", start_event="by_phone")
        assert (await instance.wait()).variables == {"how": "phone"}
        assert len(await engine.instances()) == 1


# ------------------------------------------------------------------ one id, one instance


async def test_same_id_twice(store: Store, clock: VirtualClock) -> None:
    """The second start of an id gives the first one's handle and changes nothing, while it lives and after its end."""
    gate = Gate()
    async with opened(store, clock, serving("work"), handlers=registry(work=gate)) as engine:
        first = await engine.start("order", {"n": 1}, instance_id="i-1")
        await gate.entered.wait()
        again = await engine.start("order", {"n": 2}, instance_id="i-1")
        assert (first.created, again.created, again.id) == (True, False, "i-1")
        gate.let.set()
        assert (await again.wait()).variables == {"n": 1}
        late = await engine.start("order", {"n": 3}, instance_id="i-1")
        assert not late.created
        assert (await late.wait()).variables == {"n": 1}
        assert gate.keys == ["i-1/work/1"]


async def test_same_id_for_another_process(store: Store, clock: VirtualClock) -> None:
    """An id belongs to one process: another one's start is refused, whether the first lives or has ended."""
    async with opened(store, clock, sleeping(), asking()) as engine:
        first = await engine.start("sleeper", instance_id="i-1")
        with pytest.raises(InstanceIdInUse, match=r"'i-1'.*'sleeper'.*'asker'"):
            await engine.start("asker", instance_id="i-1")
        await first.cancel()
        with pytest.raises(InstanceIdInUse):
            await engine.start("asker", instance_id="i-1")


async def test_same_id_at_the_same_time(store: Store, clock: VirtualClock) -> None:
    """Of twenty tasks that start one id, one creates the instance and all get a handle on it."""
    runs: list[str] = []
    handles: list[trioflow.Instance] = []

    async def work(work: Work) -> None:
        runs.append(work.idempotency_key)

    async def starts(engine: trioflow.Engine, number: int) -> None:
        for _ in range(number % 4):
            await trio.lowlevel.checkpoint()
        handles.append(await engine.start("order", instance_id="i-1"))

    async with opened(store, clock, serving("work"), handlers=registry(work=work)) as engine:
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(starts, engine, number)
        assert sum(handle.created for handle in handles) == 1
        assert {handle.id for handle in handles} == {"i-1"}
        await handles[0].wait()
        assert runs == ["i-1/work/1"]
        assert len(await engine.instances()) == 1


async def test_same_id_for_two_processes_at_the_same_time(store: Store, clock: VirtualClock) -> None:
    """Two processes race for one id: one gets it, the other is refused."""
    outcomes: list[str] = []

    async def starts(engine: trioflow.Engine, key: str) -> None:
        try:
            await engine.start(key, instance_id="i-1")
            outcomes.append("started")
        except InstanceIdInUse:
            outcomes.append("refused")

    async with opened(store, clock, sleeping(), asking()) as engine:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(starts, engine, "sleeper")
            nursery.start_soon(starts, engine, "asker")
        assert sorted(outcomes) == ["refused", "started"]


# ------------------------------------------------------------------ engines


async def test_two_engines_in_one_program(clock: VirtualClock) -> None:
    """Engines over stores of their own know nothing of each other."""
    async with (
        opened(MemoryStore(clock=clock), clock, sleeping()) as one,
        opened(MemoryStore(clock=clock), clock, receiving()) as other,
    ):
        mine = await one.start("sleeper", instance_id="i-1")
        yours = await other.start("receiver", instance_id="i-1")
        assert (mine.created, yours.created) == (True, True)
        await other.send_message("paid")
        assert (await yours.wait()).status is Status.COMPLETED
        assert await mine.status() is Status.ACTIVE
        (why,) = await mine.explain()
        assert isinstance(why.reason, ForTimer)


async def test_two_engines_of_one_group(clock: VirtualClock) -> None:
    """Two engines over one group race for an id: one instance, and the loser gets a handle that is not *created*."""
    shared = MemoryStore(clock=clock, recording=True)
    handles: list[trioflow.Instance] = []

    async def starts(engine: trioflow.Engine) -> None:
        handles.append(await engine.start("sleeper", instance_id="i-1"))

    async with (
        opened(shared.another(), clock, sleeping(), engine_id="a", group="g") as one,
        opened(shared.another(), clock, sleeping(), engine_id="b", group="g") as other,
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(starts, one)
            nursery.start_soon(starts, other)
        assert sorted(handle.created for handle in handles) == [False, True]
        assert len(await one.instances()) == 1


async def test_an_engine_twice(clock: VirtualClock) -> None:
    """A second living engine of the same name is refused with an error that is not wrapped."""
    shared = MemoryStore(clock=clock)
    async with opened(shared.another(), clock):
        with pytest.raises(trioflow.EngineInUse, match="'main'"):
            async with opened(shared.another(), clock):
                pytest.fail("it was opened")
    async with opened(shared.another(), clock) as again:
        assert await again.instances() == ()


async def test_required_handlers(clock: VirtualClock) -> None:
    """With ``require_handlers`` an engine that lacks one does not open, and names it."""
    with pytest.raises(trioflow.HandlerMissing, match="charge"):
        async with opened(None, clock, serving("charge"), require_handlers=True):
            pytest.fail("it was opened")
