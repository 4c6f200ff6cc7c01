"""Retries: how often, after how long, under which key; and the handler that is not there yet."""

from __future__ import annotations

from datetime import timedelta

import pytest
import trio

from tests.runtime.support import opened, registry, returning, serving
from trioflow import Handlers, InstanceStalled, ProcessBuilder, Retry, Work
from trioflow.machine.explain import ForRetry
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


async def test_retry_policy(store: Store, clock: VirtualClock) -> None:
    """Retries wait delay, delay * backoff, ... at most max_delay, under one key; then the failure is an incident."""
    runs: list[tuple[int, float, str]] = []
    handlers = Handlers()
    began = trio.current_time()

    @handlers.task("work", retry=Retry(attempts=5, delay=10, backoff=3, max_delay=60))
    async def work(work: Work) -> None:
        runs.append((work.attempt, trio.current_time() - began, work.idempotency_key))
        raise ValueError(f"attempt {work.attempt}")

    async with opened(store, clock, serving("work"), handlers=handlers) as engine:
        instance = await engine.start("order", instance_id="i-1")
        await trio.sleep(1)
        (why,) = await instance.explain()
        assert isinstance(why.reason, ForRetry)
        assert engine.statistics().resident == 0
        with pytest.raises(InstanceStalled, match="attempt 5") as stalled:
            await instance.wait()
        assert [each.kind.value for each in stalled.value.incidents] == ["retries-exhausted"]
        assert stalled.value.incidents[0].attempts == 5
    assert [attempt for attempt, _, _ in runs] == [1, 2, 3, 4, 5]
    assert [at for _, at, _ in runs] == pytest.approx([0, 10, 40, 100, 160], abs=0.5)
    assert {key for _, _, key in runs} == {"i-1/work/1"}


async def test_retry_succeeds(store: Store, clock: VirtualClock) -> None:
    """A step that works at its second run goes on; the engine's policy holds where the handler has none."""

    async def work(work: Work) -> dict[str, int]:
        if work.attempt == 1:
            raise ConnectionError("not yet")
        return {"attempt": work.attempt}

    retry = Retry(attempts=2, delay=0)
    async with opened(store, clock, serving("work"), handlers=registry(work=work), retry=retry) as engine:
        instance = await engine.start("order")
        assert (await instance.wait()).variables == {"attempt": 2}


async def test_policy_arithmetic() -> None:
    """Delays are capped, and an exponent that overflows is the cap."""
    policy = Retry(attempts=10_000, delay=1, backoff=10, max_delay=100)
    assert [policy.after(n) for n in (1, 2, 3, 4)] == [timedelta(seconds=s) for s in (1, 10, 100, 100)]
    assert policy.after(9_999) == timedelta(seconds=100)
    assert policy.after(10_000) is None


async def test_keys(store: Store, clock: VirtualClock) -> None:
    """Keys differ over the rounds of a loop and over instances of a sub-process, and nowhere else repeat."""
    keys: list[str] = []

    async def work(work: Work) -> dict[str, int]:
        keys.append(work.idempotency_key)
        return {"n": work.inputs["n"] + 1}

    built = ProcessBuilder("loop")
    again = built.start("s").exclusive("again")
    host = again.subprocess("sub")
    with host as inside:
        inside.start("s2").service("work").service("work_2", handler="work").end("e2")
    choice = host.exclusive("choice")
    choice.when("n < 6").to("again")
    choice.otherwise().end("e")
    async with opened(store, clock, built.build(), handlers=registry(work=work)) as engine:
        instance = await engine.start("loop", {"n": 0}, instance_id="i")
        await instance.wait()
    assert keys == [f"i/sub.{n}/{node}/1" for n in (1, 2, 3) for node in ("work", "work_2")]


async def test_missing_handler(clock: VirtualClock, durable: Store, caplog: pytest.LogCaptureFixture) -> None:
    """A handler that the engine lacks is a warning at opening and an incident in the step; an engine with it can
    retry.
    """
    async with opened(durable, clock, serving("charge")) as engine:
        assert "charge" in caplog.text
        instance = await engine.start("order", instance_id="i-1")
        with pytest.raises(InstanceStalled, match="'charge'") as stalled:
            await instance.wait()
        assert [each.kind.value for each in stalled.value.incidents] == ["missing-handler"]
    async with opened(durable, clock, handlers=registry(charge=returning({"ok": True}))) as engine:
        (row,) = await engine.incidents.query(instance_id="i-1")
        await engine.incidents.retry("i-1", row.wait_id)
        assert (await engine.instance("i-1").wait()).variables == {"ok": True}
        assert await engine.incidents.query() == ()
