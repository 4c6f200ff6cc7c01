"""What user code can do, and what becomes of it: outputs, failures, retries, and how it is called."""

from __future__ import annotations

import threading
import warnings
from collections.abc import AsyncIterator
from typing import Any

import attrs
import pytest
import trio

import trioflow
from tests.conftest import PATIENCE
from tests.runtime.support import Gate, opened, parked, receiving, registry, returning, serving, sleeping
from trioflow import BpmnError, Handlers, InstanceStalled, InvalidRequest, ProcessBuilder, Retry, Status, Work
from trioflow.stores.memory import MemoryStore
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock

# ------------------------------------------------------------------ how they are called


async def test_kinds(store: Store, clock: VirtualClock) -> None:
    """An async handler runs in the loop's thread, an inline one too, a plain one in another."""
    threads: dict[str, threading.Thread] = {}
    handlers = Handlers()

    @handlers.task("a")
    async def asynchronous(work: Work) -> dict[str, int]:
        threads["a"] = threading.current_thread()
        await trio.lowlevel.checkpoint()
        return {"a": 1}

    @handlers.task("b")
    def plain(work: Work) -> dict[str, Any]:
        threads["b"] = threading.current_thread()
        return {"b": work.inputs["a"] + 1, "key": work.idempotency_key}

    @handlers.task("c", inline=True)
    def inline(work: Work) -> dict[str, int]:
        threads["c"] = threading.current_thread()
        return {"c": work.inputs["b"] + 1}

    async with opened(store, clock, serving("a", "b", "c"), handlers=handlers) as engine:
        instance = await engine.start("order", instance_id="i-1")
        assert (await instance.wait()).variables == {"a": 1, "b": 2, "c": 3, "key": "i-1/b/1"}
    here = threading.current_thread()
    assert threads["a"] is threads["c"] is here
    assert threads["b"] is not here


async def test_what_a_handler_is_told(store: Store, clock: VirtualClock) -> None:
    """A handler knows its instance, process, node and business key, and sees the variables as a read-only mapping."""
    told: list[Any] = []

    async def work(work: Work) -> None:
        told.append(
            (work.instance_id, work.process_key, work.node_id, work.business_key, work.attempt, dict(work.data))
        )
        with pytest.raises(TypeError):
            work.inputs["n"] = 2
        with pytest.raises(KeyError):
            work.inputs["unknown"]

    async with opened(store, clock, serving("work"), handlers=registry(work=work)) as engine:
        instance = await engine.start("order", {"n": 1}, instance_id="i-1", business_key="b")
        await instance.wait()
    assert told == [("i-1", "order", "work", "b", 1, {"n": 1})]


async def test_worker_threads(clock: VirtualClock) -> None:
    """At most ``worker_threads`` plain handlers run at once, over all instances; the others wait and run later."""
    lock, together = threading.Lock(), threading.Barrier(2)
    running, most = 0, 0

    def work(work: Work) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait(timeout=PATIENCE)  # two at a time, neither more nor fewer
        with lock:
            running -= 1

    async with opened(None, clock, serving("work"), handlers=registry(work=work), worker_threads=2) as engine:
        instances = [await engine.start("order") for _ in range(8)]
        for instance in instances:
            assert (await instance.wait()).status is Status.COMPLETED
    assert most == 2


@pytest.mark.parametrize("limit", [1, 3])
async def test_max_concurrent(store: Store, clock: VirtualClock, limit: int) -> None:
    """At most ``max_concurrent`` runs of one handler at once, over all instances."""
    running, most = 0, 0
    handlers = Handlers()

    @handlers.task("work", max_concurrent=limit)
    async def work(work: Work) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(1)
        running -= 1

    async with opened(store, clock, serving("work"), handlers=handlers) as engine:
        for instance in [await engine.start("order") for _ in range(10)]:
            await instance.wait()
    assert most == limit


@attrs.frozen
class Order:
    """Typed inputs."""

    amount: int
    tags: list[str] = attrs.field(factory=list)


async def test_typed_inputs(store: Store, clock: VirtualClock) -> None:
    """An attrs class is structured from the variables; the mapping is there all the same."""
    seen: list[Any] = []
    handlers = Handlers()

    @handlers.task("work", inputs=Order)
    async def work(work: Work) -> None:
        seen.append((work.inputs, work.data["other"]))

    async with opened(store, clock, serving("work"), handlers=handlers) as engine:
        instance = await engine.start("order", {"amount": 12, "tags": ["a"], "other": 1})
        await instance.wait()
    assert seen == [(Order(12, ["a"]), 1)]


async def test_typed_inputs_that_do_not_fit(store: Store, clock: VirtualClock) -> None:
    """Variables that do not fit the class are an incident of the step that names the field; it can be mended."""
    handlers = Handlers()

    @handlers.task("work", inputs=Order)
    async def work(work: Work) -> dict[str, int]:
        return {"doubled": work.inputs.amount * 2}

    async with opened(store, clock, serving("work"), handlers=handlers) as engine:
        instance = await engine.start("order", {"tags": []})
        with pytest.raises(InstanceStalled, match="amount") as stalled:
            await instance.wait()
        await engine.incidents.retry(instance.id, stalled.value.incidents[0].id, variables={"amount": 4})
        assert (await instance.wait()).variables["doubled"] == 8


async def test_registry_refuses() -> None:
    """A name twice, a limit below one and ``inline`` on an async function are refused when they are registered."""
    handlers = Handlers()
    handlers.task("a", print)
    with pytest.raises(InvalidRequest, match="'a'"):
        handlers.task("a", print)
    with pytest.raises(InvalidRequest, match="max_concurrent is 0"):
        handlers.task("b", print, max_concurrent=0)

    async def asynchronous(work: Work) -> None:
        """Async already."""

    with pytest.raises(InvalidRequest, match="async already"):
        handlers.task("c", asynchronous, inline=True)
    assert list(handlers) == ["a"]
    with pytest.raises(InvalidRequest, match="attempts"):
        Retry(attempts=0)


# ------------------------------------------------------------------ what they return


@pytest.mark.parametrize(
    "returned, kind, text",
    [
        ([1, 2], "handler-failure", r"\[1, 2\] \(list\)"),
        ("text", "handler-failure", "'text'"),
        (7, "handler-failure", "7 "),
        ({"f": print}, "unstorable-value", "f"),
        ({"a": {"deep": [object()]}}, "unstorable-value", r"a\.deep\[0\]"),
        ({1: "x"}, "unstorable-value", "must be a text, not 1"),
        ({"": "x"}, "unstorable-value", "must be a text"),
    ],
    ids=["list", "text", "int", "function", "deep", "key", "empty-key"],
)
async def test_rubbish(store: Store, clock: VirtualClock, returned: Any, kind: str, text: str) -> None:
    """Outputs that are no outputs are an incident that shows them; nothing of them is written."""
    async with opened(store, clock, serving("work"), handlers=registry(work=returning(returned))) as engine:
        instance = await engine.start("order", {"n": 1})
        with pytest.raises(InstanceStalled, match=text) as stalled:
            await instance.wait()
        (incident,) = stalled.value.incidents
        assert (incident.kind.value, incident.node) == (kind, "work")
        assert await instance.variables() == {"n": 1}
        await engine.incidents.resolve(instance.id, incident.id, {"n": 2})
        assert (await instance.wait()).variables == {"n": 2}


async def test_none_and_empty(store: Store, clock: VirtualClock) -> None:
    """None and an empty dict mean: no outputs."""
    handlers = registry(a=returning(None), b=returning({}))
    async with opened(store, clock, serving("a", "b"), handlers=handlers) as engine:
        instance = await engine.start("order", {"n": 1})
        assert (await instance.wait()).variables == {"n": 1}


async def test_inputs_are_copies(store: Store, clock: VirtualClock) -> None:
    """A handler that changes what it was given, or later what it returned, changes nothing of the instance."""
    kept: dict[str, list[int]] = {"made": [1]}

    async def work(work: Work) -> dict[str, list[int]]:
        work.inputs["items"].append(99)
        work.data["items"].clear()
        return kept

    async with opened(
        store, clock, serving("work", "again"), handlers=registry(work=work, again=returning(None))
    ) as engine:
        instance = await engine.start("order", {"items": [1, 2]})
        await instance.wait()
        kept["made"].append(2)
        assert await instance.variables() == {"items": [1, 2], "made": [1]}


# ------------------------------------------------------------------ what they raise


async def test_raises(store: Store, clock: VirtualClock, caplog: pytest.LogCaptureFixture) -> None:
    """An exception is an incident with its type, text and traceback; it is logged at ERROR with all of that."""

    async def work(work: Work) -> None:
        try:
            raise KeyError("inner")  # noqa: TRY301 - the chain of causes is what is tested
        except KeyError as error:
            raise ValueError("no such card") from error

    async with opened(store, clock, serving("work"), handlers=registry(work=work)) as engine:
        instance = await engine.start("order")
        with pytest.raises(InstanceStalled, match="ValueError: no such card"):
            await instance.wait()
        (row,) = await engine.incidents.query()
        assert (row.instance_id, row.node_id, row.incident_kind, row.attempts) == (
            instance.id,
            "work",
            "handler-failure",
            1,
        )
        assert "in work" in row.causes[0]
        assert "KeyError: 'inner'" in row.causes[0]
        assert "direct cause" in row.causes[0]
    (record,) = [each for each in caplog.records if each.levelname == "ERROR"]
    assert record.name == "trioflow"
    for part in (instance.id, "work", "no such card", "Traceback (most recent call last)"):
        assert part in record.getMessage()


@pytest.mark.parametrize("nesting", [0, 1, 3])
async def test_bpmn_error(store: Store, clock: VirtualClock, nesting: int) -> None:
    """A BPMN error is no failure, also as the only leaf of exception groups: it is not retried, and here nobody
    catches it.
    """
    runs: list[int] = []
    handlers = Handlers()

    @handlers.task("work", retry=Retry(attempts=3))
    async def work(work: Work) -> None:
        runs.append(work.attempt)
        error: Exception = BpmnError("no-stock", "sold out")
        for _ in range(nesting):
            error = ExceptionGroup("from a nursery", [error])
        raise error

    async with opened(store, clock, serving("work"), handlers=handlers) as engine:
        instance = await engine.start("order")
        with pytest.raises(InstanceStalled, match=r"'no-stock' \(sold out\)") as stalled:
            await instance.wait()
        assert [each.kind.value for each in stalled.value.incidents] == ["uncaught-error"]
        assert runs == [1]


async def test_group_of_two(store: Store, clock: VirtualClock) -> None:
    """A group that holds more than one BPMN error is a failure."""

    async def work(work: Work) -> None:
        raise ExceptionGroup("two", [BpmnError("a"), ValueError("b")])

    async with opened(store, clock, serving("work"), handlers=registry(work=work)) as engine:
        instance = await engine.start("order")
        with pytest.raises(InstanceStalled, match="ExceptionGroup: two") as stalled:
            await instance.wait()
        assert [each.kind.value for each in stalled.value.incidents] == ["handler-failure"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("call", ["async", "inline", "thread"])
async def test_leaves_the_engine(clock: VirtualClock, kind: type[BaseException], call: str) -> None:
    """KeyboardInterrupt and SystemExit stop the program: they leave the engine unwrapped, and nothing is an
    incident.
    """
    memory = MemoryStore(clock=clock, recording=True)

    def plain(work: Work) -> None:
        raise kind("stop")

    async def asynchronous(work: Work) -> None:
        raise kind("stop")

    handlers = Handlers()
    handlers.task("work", asynchronous if call == "async" else plain, inline=call == "inline")
    with pytest.raises(kind, match="stop"):  # noqa: PT012 - the block of the engine is what raises
        async with opened(memory, clock, serving("work"), handlers=handlers) as engine:
            await engine.start("order", instance_id="i-1")
            await trio.sleep_forever()
    async with opened(memory, clock, handlers=registry(work=returning(None))) as engine:
        assert (await engine.instance("i-1").wait()).status is Status.COMPLETED


async def test_group_with_an_interrupt(clock: VirtualClock) -> None:
    """An interrupt inside a group leaves the engine too."""

    async def work(work: Work) -> None:
        async with trio.open_nursery():
            raise KeyboardInterrupt

    with pytest.raises(BaseException) as left:  # noqa: PT011, PT012 - the kind is looked at below
        async with opened(None, clock, serving("work"), handlers=registry(work=work)) as engine:
            await engine.start("order")
            await trio.sleep_forever()
    error: BaseException = left.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    assert isinstance(error, KeyboardInterrupt)


# ------------------------------------------------------------------ neighbours


async def test_siblings_of_a_blocked_one(store: Store, clock: VirtualClock) -> None:
    """A handler that never ends holds up its own token only: neither its instance's other branch nor other
    instances.
    """
    gate = Gate()
    built = ProcessBuilder("forking")
    fork = built.start("s").parallel("fork")
    fork.service("blocked").end("e1")
    fork.service("quick").end("e2")
    handlers = registry(blocked=gate, quick=returning({"quick": True}))
    async with opened(store, clock, built.build(), serving("quick"), handlers=handlers) as engine:
        one = await engine.start("forking")
        await gate.entered.wait()
        for _ in range(5):
            assert (await (await engine.start("order")).wait()).status is Status.COMPLETED
        assert await one.variables() == {"quick": True}
        assert [token.node for token in await one.tokens()] == ["blocked"]
        gate.let.set()
        assert (await one.wait()).status is Status.COMPLETED


async def test_calls_the_engine(store: Store, clock: VirtualClock) -> None:
    """A handler can start an instance, send it a message, wait for it, and look at its own instance."""
    engines: list[trioflow.Engine] = []

    async def outer(work: Work) -> dict[str, Any]:
        (engine,) = engines
        inner = await engine.start("receiver", {"from": work.instance_id})
        outcome = await engine.send_message("paid", payload={"amount": 3})
        mine = [token.node for token in await engine.instance(work.instance_id).tokens()]
        return {
            "amount": (await inner.wait()).variables["amount"],
            "sent": outcome.instance_id == inner.id,
            "mine": mine,
        }

    async with opened(store, clock, serving("outer"), receiving(), handlers=registry(outer=outer)) as engine:
        engines.append(engine)
        instance = await engine.start("order")
        assert (await instance.wait()).variables == {"amount": 3, "sent": True, "mine": ["outer"]}


async def test_cancels_its_own_instance(store: Store, clock: VirtualClock) -> None:
    """A handler that cancels its own instance is itself cancelled, and the instance is terminated."""
    engines: list[trioflow.Engine] = []
    ended: list[str] = []

    async def work(work: Work) -> None:
        try:
            await engines[0].instance(work.instance_id).cancel("by itself")
        finally:
            ended.append(work.node_id)

    async with opened(store, clock, serving("work"), handlers=registry(work=work)) as engine:
        engines.append(engine)
        outcome = await (await engine.start("order")).wait()
        assert (outcome.status, outcome.reason, ended) == (Status.TERMINATED, "by itself", ["work"])


async def test_leftover_generator(clock: VirtualClock) -> None:
    """An async generator that a handler leaves unfinished is closed by Trio, and does the engine no harm."""
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append("closed")

    async def work(work: Work) -> dict[str, int]:
        async for number in numbers():
            return {"n": number}
        return {}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Trio says that the handler should have closed it
        async with opened(
            None, clock, serving("work", "next"), handlers=registry(work=work, next=returning(None))
        ) as engine:
            assert (await (await engine.start("order")).wait()).variables == {"n": 1}
            await trio.sleep(1)
    assert closed == ["closed"]


async def test_handler_of_a_parked_instance_is_not_kept(store: Store, clock: VirtualClock) -> None:
    """After a step the instance parks at its next wait, and its handler runs anew only for a new step."""
    gate = Gate()
    gate.let.set()
    async with opened(store, clock, receiving(first="work"), sleeping(), handlers=registry(work=gate)) as engine:
        instance = await engine.start("receiver")
        await parked(engine)
        await engine.send_message("paid")
        await instance.wait()
        assert len(gate.keys) == 1
