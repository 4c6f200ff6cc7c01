"""Incidents: what stops is seen, stays stored, and can be retried, resolved or dropped."""

from __future__ import annotations

import pytest
import trio

from tests.runtime.support import Gate, opened, parked, receiving, registry, serving
from trioflow import Engine, InstanceStalled, InvalidRequest, ProcessBuilder, Status, Work
from trioflow.machine.explain import AtIncident, AtJoin
from trioflow.model import Definitions
from trioflow.model.builder import message
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


class Flaky:
    """Fails as long as ``broken``; keeps its keys."""

    def __init__(self) -> None:
        self.broken = True
        self.runs: list[tuple[str, int]] = []

    async def __call__(self, work: Work) -> dict[str, object]:
        """Fail, or tell ``n``."""
        self.runs.append((work.idempotency_key, work.attempt))
        if self.broken:
            raise RuntimeError("out of paper")
        return {"printed": work.inputs.get("n")}


def _forked() -> Definitions:
    """A flaky service beside a message wait."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("print").end("e1")
    fork.catch("wait", on=message("paid")).end("e2")
    return built.build()


async def test_wait_raises_at_once(store: Store, clock: VirtualClock) -> None:
    """``wait()`` raises when nothing but an operator can go on, with the incidents; also when it comes later, and
    again.
    """
    async with opened(store, clock, serving("print"), handlers=registry(print=Flaky())) as engine:
        instance = await engine.start("order", {"n": 1})
        for _ in range(3):
            with pytest.raises(InstanceStalled, match="out of paper") as stalled:
                await instance.wait()
            (incident,) = stalled.value.incidents
            assert (incident.node, incident.kind.value) == ("print", "handler-failure")
            await parked(engine)
        assert await instance.status() is Status.ACTIVE
        (why,) = await instance.explain()
        assert isinstance(why.reason, AtIncident)
        (head,) = await engine.instances(has_incidents=True)
        assert head.instance_id == instance.id


async def test_not_stalled_while_another_branch_waits(store: Store, clock: VirtualClock) -> None:
    """While another token can be moved from outside ``wait()`` waits; it raises when that one has ended."""
    async with opened(store, clock, _forked(), handlers=registry(print=Flaky())) as engine:
        instance = await engine.start("p")
        with trio.move_on_after(3600) as scope:
            await instance.wait()
        assert scope.cancelled_caught
        await engine.send_message("paid")
        with pytest.raises(InstanceStalled):
            await instance.wait()


async def test_through_incidents(store: Store, clock: VirtualClock) -> None:
    """With ``through_incidents`` one waits on, until an operator has mended it."""
    flaky = Flaky()
    async with opened(store, clock, serving("print"), handlers=registry(print=flaky)) as engine:
        instance = await engine.start("order", {"n": 1})
        statuses: list[Status] = []

        async def waits() -> None:
            statuses.append((await instance.wait(through_incidents=True)).status)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits)
            await trio.sleep(100)
            assert statuses == []
            await _retry(engine, instance.id)  # in vain
            await trio.sleep(100)
            assert statuses == []
            flaky.broken = False
            await _retry(engine, instance.id)
        assert statuses == [Status.COMPLETED]


async def _retry(engine: Engine, instance_id: str) -> None:
    (row,) = await engine.incidents.query(instance_id=instance_id)
    await engine.incidents.retry(instance_id, row.wait_id)


async def test_retry(store: Store, clock: VirtualClock) -> None:
    """A retry runs the step under the same key; with changed variables it is a new entry under another key, attempt
    1.
    """
    flaky = Flaky()
    async with opened(store, clock, serving("print"), handlers=registry(print=flaky)) as engine:
        instance = await engine.start("order", {"n": 1}, instance_id="i")
        with pytest.raises(InstanceStalled):
            await instance.wait()
        await _retry(engine, "i")
        with pytest.raises(InstanceStalled):
            await instance.wait()
        flaky.broken = False
        (row,) = await engine.incidents.query()
        await engine.incidents.retry("i", row.wait_id, variables={"n": 2})
        assert (await instance.wait()).variables == {"n": 2, "printed": 2}
        assert flaky.runs == [("i/print/1", 1), ("i/print/1", 2), ("i/print/2", 1)]
        assert await engine.incidents.query() == ()


async def test_resolve_and_drop(store: Store, clock: VirtualClock) -> None:
    """Resolved, a step counts as done with the given outputs; dropped, its token is gone and a dead letter stays."""
    async with opened(store, clock, serving("print"), handlers=registry(print=Flaky())) as engine:
        resolved, dropped = [await engine.start("order") for _ in range(2)]
        await parked(engine)
        (row,) = await engine.incidents.query(instance_id=resolved.id)
        await engine.incidents.resolve(resolved.id, row.wait_id, {"printed": "by hand"})
        assert (await resolved.wait()).variables == {"printed": "by hand"}
        (row,) = await engine.incidents.query(instance_id=dropped.id)
        await engine.incidents.drop(dropped.id, row.wait_id)
        assert (await dropped.wait()).status is Status.COMPLETED


async def test_dead_letter_of_a_living_instance(store: Store, clock: VirtualClock) -> None:
    """A dropped incident is listed among the dead letters, not among the open ones, and the other branch goes on."""
    async with opened(store, clock, _forked(), handlers=registry(print=Flaky())) as engine:
        instance = await engine.start("p")
        await parked(engine)
        (row,) = await engine.incidents.query()
        await engine.incidents.drop(instance.id, row.wait_id)
        assert await engine.incidents.query() == ()
        (letter,) = await engine.incidents.query(dropped=True)
        assert (letter.wait_id, letter.state, letter.node_id) == (row.wait_id, "dropped", "print")
        with pytest.raises(InvalidRequest, match="no open incident"):
            await engine.incidents.retry(instance.id, row.wait_id)
        await engine.send_message("paid")
        assert (await instance.wait()).status is Status.COMPLETED


async def test_refusals(store: Store, clock: VirtualClock) -> None:
    """What is no open incident, no flow, or no storable output is refused, and nothing has changed."""
    async with opened(store, clock, serving("print"), handlers=registry(print=Flaky())) as engine:
        instance = await engine.start("order")
        await parked(engine)
        (row,) = await engine.incidents.query()
        with pytest.raises(InvalidRequest, match="'nobody'"):
            await engine.incidents.retry("nobody", 1)
        with pytest.raises(InvalidRequest, match=f"open ones: {row.wait_id}"):
            await engine.incidents.retry(instance.id, 999)
        with pytest.raises(InvalidRequest, match="'nowhere'"):
            await engine.incidents.resolve(instance.id, row.wait_id, flows=["nowhere"])
        with pytest.raises(InvalidRequest, match="bad"):
            await engine.incidents.resolve(instance.id, row.wait_id, {"bad": object()})
        assert await engine.incidents.query() == (row,)


async def test_stuck_join(store: Store, clock: VirtualClock) -> None:
    """A join whose missing token cannot come any more is an incident at once, and explains what it misses."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    join = fork.service("a").parallel("join")
    choice = fork.exclusive("choice")
    choice.when("go").to("join")
    choice.otherwise().end("away")
    join.end("e")
    gate = Gate()
    async with opened(store, clock, built.build(), handlers=registry(a=gate)) as engine:
        instance = await engine.start("p", {"go": False})
        gate.let.set()
        with pytest.raises(InstanceStalled, match="stuck"):
            await instance.wait()
        (why,) = await instance.explain()
        assert isinstance(why.reason, AtJoin)
        assert [flow.holder for flow in why.reason.missing] == [None]
        (row,) = await engine.incidents.query()
        assert (row.incident_kind, row.node_id) == ("stuck", "join")
        await engine.incidents.resolve(instance.id, row.wait_id)
        assert (await instance.wait()).status is Status.COMPLETED


async def test_script_and_expression(store: Store, clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    """A script that raises and a condition without answer are incidents, logged at ERROR; mended variables let them
    pass.
    """
    built = ProcessBuilder("p")
    choice = built.start("s").script("count", "n = n + 1").exclusive("choice")
    choice.when("ok").end("good")
    choice.otherwise().end("bad")
    async with opened(store, clock, built.build()) as engine:
        instance = await engine.start("p", {"n": "text", "ok": None})
        for kind, values in (("script", {"n": 1}), ("expression", {"ok": True})):
            with pytest.raises(InstanceStalled) as stalled:
                await instance.wait()
            (incident,) = stalled.value.incidents
            assert incident.kind.value == kind
            await engine.incidents.retry(instance.id, incident.id, variables=values)
        assert (await instance.wait()).variables["n"] == 2
    assert [record.levelname for record in caplog.records if instance.id in record.getMessage()] == ["ERROR", "ERROR"]


async def test_several_incidents(store: Store, clock: VirtualClock) -> None:
    """An instance with several incidents lists all, in pages, and ends when all are mended."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    for number in range(5):
        fork.service(f"print_{number}", handler="print").end(f"e{number}")
    flaky = Flaky()
    async with opened(store, clock, built.build(), receiving(), handlers=registry(print=flaky)) as engine:
        instance = await engine.start("p")
        with pytest.raises(InstanceStalled) as stalled:
            await instance.wait()
        assert len(stalled.value.incidents) == 5
        first = await engine.incidents.query(limit=3)
        rest = await engine.incidents.query(limit=3, after=(first[-1].instance_id, first[-1].wait_id))
        rows = (*first, *rest)
        assert (len(first), len(rest), {row.node_id for row in rows}) == (3, 2, {f"print_{n}" for n in range(5)})
        flaky.broken = False
        async with trio.open_nursery() as nursery:
            for row in rows:
                nursery.start_soon(engine.incidents.retry, instance.id, row.wait_id)
        assert (await instance.wait(through_incidents=True)).status is Status.COMPLETED


async def test_over_a_restart(durable: Store, clock: VirtualClock) -> None:
    """An incident outlives the engine, with its traceback, and is retried under the same key."""
    flaky = Flaky()
    async with opened(durable, clock, serving("print"), handlers=registry(print=flaky)) as engine:
        instance = await engine.start("order", {"n": 1}, instance_id="i")
        with pytest.raises(InstanceStalled):
            await instance.wait()
    flaky.broken = False
    async with opened(durable, clock, handlers=registry(print=flaky)) as engine:
        with pytest.raises(InstanceStalled, match="out of paper"):
            await engine.instance("i").wait()
        (row,) = await engine.incidents.query()
        assert "RuntimeError: out of paper" in row.causes[0]
        await _retry(engine, "i")
        assert (await engine.instance("i").wait()).variables == {"n": 1, "printed": 1}
        assert flaky.runs == [("i/print/1", 1), ("i/print/1", 2)]
