"""Bugs of the engine: one act is lost, or the instance waits for an operator; its neighbours never notice."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import trio

from tests.runtime.support import Gate, asking, opened, parked, receiving, registry, sleeping
from trioflow import EngineBug, ProcessBuilder, Status, Work
from trioflow.machine.behaviours.catching import Catch
from trioflow.machine.behaviours.tasks import UserTaskBehaviour
from trioflow.machine.state import MessageWait
from trioflow.runtime.timing import Timers
from trioflow.stores.memory import MemoryStore
from trioflow.testing import VirtualClock


async def nothing(work: Work) -> None:
    """A handler that does nothing."""


def _broken(*args: object, **kwargs: object) -> None:
    raise ZeroDivisionError("a bug of ours")


async def test_bug_in_a_callers_act(
    memory: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug while a caller's act is applied is refused to him; the instance is as it was, and works when the bug is
    gone.
    """
    async with opened(memory, clock, asking()) as engine:
        instance, sibling = await engine.start("asker"), await engine.start("asker")
        (row,) = await engine.tasks.query(instance_id=instance.id)
        (other,) = await engine.tasks.query(instance_id=sibling.id)
        with monkeypatch.context() as patched:
            patched.setattr(UserTaskBehaviour, "completed", _broken)
            for _ in range(7):  # more than five: a caller's act is not counted against the instance
                with pytest.raises(EngineBug, match="a bug of ours"):
                    await engine.tasks.complete(row.id)
        await engine.tasks.complete(other.id)
        assert (await sibling.wait()).status is Status.COMPLETED
        await engine.tasks.complete(row.id, {"n": 1})
        assert (await instance.wait()).variables == {"n": 1}
    assert "ZeroDivisionError" in caplog.text


async def test_bug_beside_a_running_step(
    memory: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug cancels what the instance runs; it is loaded at its last commit and the step runs again under its key."""
    gate = Gate()
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("a").end("e1")
    fork.user("u").end("e2")
    async with opened(memory, clock, built.build(), handlers=registry(a=gate)) as engine:
        instance = await engine.start("p", instance_id="i")
        await gate.entered.wait()
        gate.entered = trio.Event()
        (row,) = await engine.tasks.query()
        with monkeypatch.context() as patched:
            patched.setattr(UserTaskBehaviour, "completed", _broken)
            with pytest.raises(EngineBug):
                await engine.tasks.complete(row.id)
        await gate.entered.wait()
        assert gate.log == ["entered", "cancelled", "entered"]
        assert gate.keys == ["i/a/1"] * 2
        gate.let.set()
        await engine.tasks.complete(row.id)
        assert (await instance.wait()).status is Status.COMPLETED


async def test_bug_that_passes(memory: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug while a timer is applied: the instance is loaded again by itself, later and later, until it works."""
    times: list[float] = []
    began = trio.current_time()
    real = Catch.occurred

    def sometimes(*args: Any) -> None:
        times.append(trio.current_time() - began)
        if len(times) < 4:
            _broken()
        real(*args)

    monkeypatch.setattr(Catch, "occurred", sometimes)
    async with opened(memory, clock, sleeping(duration="PT100S")) as engine:
        instance = await engine.start("sleeper")
        assert (await instance.wait()).status is Status.COMPLETED
        head = await memory.head(instance.id)
        assert head is not None
        assert head.failures == 0
    assert times[0] == pytest.approx(100, abs=1)
    assert all(later > earlier for earlier, later in itertools.pairwise(times))
    assert times[-1] < 250


async def test_bug_that_stays(memory: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """After five failures the instance is quarantined: listed, shown, not tried any more, and its siblings go on."""
    calls: list[int] = []
    real = Catch.occurred

    def broken(self: Catch, turn: Any, node: Any, wait: Any, payload: Any) -> None:
        if isinstance(wait, MessageWait):
            real(self, turn, node, wait, payload)
            return
        calls.append(1)
        _broken()

    monkeypatch.setattr(Catch, "occurred", broken)
    async with opened(memory, clock, sleeping(duration="PT1S"), receiving()) as engine:
        instance, sibling = await engine.start("sleeper"), await engine.start("receiver")
        await trio.sleep(4_000)
        assert len(calls) == 5
        (head,) = await engine.instances(not_resumed=True)
        assert (head.instance_id, head.failures, head.retry_at) == (instance.id, 5, None)
        assert "ZeroDivisionError" in head.failure
        assert await instance.status() is Status.ACTIVE
        assert engine.recovery.counts["quarantined"] == 1
        await engine.send_message("paid")
        assert (await sibling.wait()).status is Status.COMPLETED
        monkeypatch.undo()
        await engine.incidents.load_again(instance.id)
        assert (await instance.wait()).status is Status.COMPLETED


async def test_bug_in_a_delivery(memory: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug while a message is applied loses no message: when the bug is gone it is consumed, once."""
    with monkeypatch.context() as patched:
        patched.setattr(Catch, "occurred", _broken)
        async with opened(memory.another(), clock, receiving()) as engine:
            instance = await engine.start("receiver")
            await parked(engine)
            outcome = await engine.send_message("paid", payload={"n": 1})
            assert outcome.state == "assigned"
    async with opened(memory.another(), clock) as engine:
        assert (await engine.instance(instance.id).wait()).variables == {"n": 1}


async def test_bug_in_every_delivery(memory: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that the engine cannot apply is tried five times, not once a second for ever, and is kept."""
    calls: list[int] = []

    def broken(*args: Any) -> None:
        calls.append(1)
        _broken()

    monkeypatch.setattr(Catch, "occurred", broken)
    async with opened(memory, clock, receiving()) as engine:
        instance = await engine.start("receiver")
        await parked(engine)
        await engine.send_message("paid", payload={"n": 1})
        await trio.sleep(4_000)
        assert len(calls) == 1 + 5, "its sender's own act, and five that count"
        (head,) = await engine.instances(not_resumed=True)
        assert (head.failures, head.retry_at) == (5, None)
        monkeypatch.undo()
        await engine.incidents.load_again(instance.id)
        assert (await instance.wait()).variables == {"n": 1}


async def test_the_engines_own_bug(memory: MemoryStore, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the engine outside any instance leaves ``open_engine``, unwrapped: it does not go on as if nothing
    were.
    """
    monkeypatch.setattr(Timers, "_fire", _broken)
    with pytest.raises(ZeroDivisionError, match="a bug of ours"):
        async with opened(memory, clock):
            await trio.sleep_forever()
