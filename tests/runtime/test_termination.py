"""The termination cascade: what is cancelled has ended before what follows it begins."""

from __future__ import annotations

import threading

import pytest
import trio

import trioflow
from tests.conftest import PATIENCE
from tests.runtime.support import Gate, opened, registry, until
from trioflow import BpmnError, ProcessBuilder, Status, Work
from trioflow.model import Definitions
from trioflow.model.builder import terminate
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


def _terminating(*, beside: bool = False) -> Definitions:
    """A sub-process whose one branch terminates it while the other runs; then ``after``; perhaps another branch."""
    built = ProcessBuilder("p")
    path = built.start("s")
    if beside:
        path = path.parallel("outer")
        path.service("beside").service("beside_2", handler="beside").end("e3")
    host = path.subprocess("sub")
    with host as inside:
        fork = inside.start("s2").parallel("fork")
        fork.service("victim").end("e1")
        fork.service("killer").end("kill", on=terminate())
    host.service("after").end("e")
    return built.build()


async def test_root_terminate(store: Store, clock: VirtualClock) -> None:
    """A terminate end event cancels running handlers; the end is told when their clean-up has ended."""
    log: list[str] = []

    async def victim(work: Work) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
            log.append(f"cleaned {work.idempotency_key} {work.instance_id} {work.inputs['n']}")

    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("victim").end("e1")
    fork.service("killer").end("kill", on=terminate())
    gate = Gate()
    async with opened(store, clock, built.build(), handlers=registry(victim=victim, killer=gate)) as engine:
        instance = await engine.start("p", {"n": 1}, instance_id="i")
        await gate.entered.wait()
        gate.let.set()
        outcome = await instance.wait()
        assert log == ["cleaned i/victim/1 i 1"], "a handler that cleans up still knows who it is and what it saw"
        assert outcome.status is Status.TERMINATED
        assert "kill" in outcome.reason


async def test_what_follows_waits_for_the_clean_up(store: Store, clock: VirtualClock) -> None:
    """After a sub-process is terminated its host's next task starts when the cancelled handler has cleaned up, not
    before.
    """
    log: list[str] = []

    async def victim(work: Work) -> None:
        log.append("victim")
        try:
            await trio.sleep_forever()
        finally:
            with trio.move_on_after(10, shield=True):
                await trio.sleep(5)
            log.append(f"cleaned {work.idempotency_key}, saw {work.inputs['n']}")

    async def after(work: Work) -> None:
        log.append("after")

    gate = Gate()
    handlers = registry(victim=victim, killer=gate, after=after)
    async with opened(store, clock, _terminating(), handlers=handlers) as engine:
        instance = await engine.start("p", {"n": 1}, instance_id="i")
        await until(lambda: "victim" in log)
        gate.let.set()
        outcome = await instance.wait()
        assert log == ["victim", "cleaned i/sub.1/victim/1, saw 1", "after"]
        assert outcome.status is Status.COMPLETED


async def test_other_branches_go_on_meanwhile(store: Store, clock: VirtualClock) -> None:
    """While a cancelled handler cleans up, the other branches of its instance go on, and callers are answered."""
    log: list[str] = []
    cleaning = trio.Event()
    let = trio.Event()

    async def victim(work: Work) -> None:
        try:
            await trio.sleep_forever()
        finally:
            cleaning.set()
            with trio.CancelScope(shield=True):
                await let.wait()
            log.append("cleaned")

    async def beside(work: Work) -> None:
        if work.node_id == "beside":
            await cleaning.wait()
        log.append(work.node_id)

    async def after(work: Work) -> None:
        log.append("after")

    gate = Gate()
    handlers = registry(victim=victim, killer=gate, after=after, beside=beside)
    async with opened(store, clock, _terminating(beside=True), handlers=handlers) as engine:
        instance = await engine.start("p")
        await gate.entered.wait()
        await trio.sleep(1)
        gate.let.set()
        await cleaning.wait()
        while "beside_2" not in log:  # noqa: ASYNC110 - it is polled, or it would be told by what it tests
            await trio.sleep(0.01)
        assert [token.node for token in await instance.tokens()] == ["after"]
        assert log == ["beside", "beside_2"]
        let.set()
        await instance.wait()
        assert log == ["beside", "beside_2", "cleaned", "after"]


async def test_a_second_termination_during_the_first(store: Store, clock: VirtualClock) -> None:
    """An instance that is cancelled while a handler of it still cleans up ends when that has ended; nothing new
    starts.
    """
    let, cleaning = trio.Event(), trio.Event()
    log: list[str] = []

    async def victim(work: Work) -> None:
        try:
            await trio.sleep_forever()
        finally:
            cleaning.set()
            with trio.CancelScope(shield=True):
                await let.wait()
            log.append("cleaned")

    async def after(work: Work) -> None:
        log.append("after")

    gate = Gate()
    async with opened(
        store, clock, _terminating(), handlers=registry(victim=victim, killer=gate, after=after)
    ) as engine:
        instance = await engine.start("p")
        await gate.entered.wait()
        await trio.sleep(1)
        gate.let.set()
        await cleaning.wait()
        async with trio.open_nursery() as nursery:

            async def cancels() -> None:
                outcome = await instance.cancel("enough")
                log.append(outcome.status.value)

            nursery.start_soon(cancels)
            await trio.sleep(1)
            assert log == []
            let.set()
        assert log == ["cleaned", "terminated"]


@pytest.mark.parametrize("manner", ["returns", "raises", "swallows", "raises-in-finally", "bpmn-error", "group"])
async def test_last_words_are_dropped(
    store: Store, clock: VirtualClock, manner: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a cancelled handler still says (outputs, an error, its clean-up's error) changes nothing."""
    reached: list[str] = []

    async def victim(work: Work) -> dict[str, str] | None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            reached.append(manner)
            if manner == "raises":
                raise ValueError("in the way out") from None
            if manner == "bpmn-error":
                raise BpmnError("late") from None
            if manner == "group":
                raise ExceptionGroup("late", [ValueError("in the way out")]) from None
            if manner == "returns":
                return {"late": "outputs"}
            if manner == "swallows":
                with trio.CancelScope(shield=True):
                    await trio.sleep(1)
                return None
            raise
        finally:
            if manner == "raises-in-finally":
                raise RuntimeError("clean-up failed")

    gate, after = Gate(), Gate()
    after.let.set()
    handlers = registry(victim=victim, killer=gate, after=after)
    async with opened(store, clock, _terminating(), handlers=handlers) as engine:
        instance = await engine.start("p", {"n": 1})
        await gate.entered.wait()
        await trio.sleep(1)
        gate.let.set()
        outcome = await instance.wait()
        assert (outcome.status, outcome.variables, reached) == (Status.COMPLETED, {"n": 1}, [manner])
        assert len(after.keys) == 1
        assert await engine.incidents.query() == ()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_swallows_and_goes_on_working(store: Store, clock: VirtualClock) -> None:
    """A handler that swallows its cancellation is cancelled again at its next await: nothing waits for it for ever."""
    rounds: list[int] = []

    async def victim(work: Work) -> None:
        for number in range(5):
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                rounds.append(number)

    gate = Gate()
    after = Gate()
    after.let.set()
    async with opened(
        store, clock, _terminating(), handlers=registry(victim=victim, killer=gate, after=after)
    ) as engine:
        instance = await engine.start("p")
        await gate.entered.wait()
        await trio.sleep(1)
        gate.let.set()
        assert (await instance.wait()).status is Status.COMPLETED
        assert rounds == [0, 1, 2, 3, 4]


async def test_cancelled_while_it_waits_for_its_turn(store: Store, clock: VirtualClock) -> None:
    """A step that waits for ``max_concurrent`` when it is cancelled never runs, and frees nobody's place."""
    holder, ran = Gate(), Gate()
    handlers = trioflow.Handlers()
    keys: list[str] = []

    @handlers.task("victim", max_concurrent=1)
    async def victim(work: Work) -> None:
        keys.append(work.instance_id)
        await (holder if work.instance_id == "first" else ran)(work)

    killers = {"first": Gate(), "second": Gate()}

    @handlers.task("killer")
    async def killer(work: Work) -> None:
        await killers[work.instance_id](work)

    after = Gate()
    after.let.set()
    handlers.task("after", after)
    async with opened(store, clock, _terminating(), handlers=handlers) as engine:
        first = await engine.start("p", instance_id="first")
        await holder.entered.wait()
        second = await engine.start("p", instance_id="second")
        await killers["second"].entered.wait()
        await trio.sleep(1)
        killers["second"].let.set()
        assert (await second.wait()).status is Status.COMPLETED
        assert keys == ["first"]
        await first.cancel()


async def test_a_thread_is_abandoned(clock: VirtualClock) -> None:
    """A plain handler cannot be interrupted: its thread is left to end, its place among the threads is kept till
    then.
    """
    let, running = threading.Event(), threading.Event()

    def victim(work: Work) -> dict[str, int]:
        running.set()
        let.wait(timeout=PATIENCE)
        return {"late": 1}

    gate, after = Gate(), Gate()
    after.let.set()
    handlers = registry(victim=victim, killer=gate, after=after)
    async with opened(None, clock, _terminating(), handlers=handlers, worker_threads=1) as engine:
        try:
            instance = await engine.start("p")
            await until(running.is_set)
            gate.let.set()
            assert (await instance.wait()).variables == {}
            assert engine._shell.threads.borrowed_tokens == 1
        finally:
            let.set()
        await until(lambda: engine._shell.threads.borrowed_tokens == 0)
        assert await instance.variables() == {}
