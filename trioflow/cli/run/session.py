"""One run: the engine, the instance, and how it ended."""

from __future__ import annotations

import math
import signal
from collections.abc import AsyncIterator, Mapping
from typing import Any

import trio
from attrs import field, frozen

from trioflow.checkpoint.records import IncidentRow
from trioflow.cli.output import plain
from trioflow.cli.run.answers import MessageAnswer, Supply
from trioflow.cli.run.driver import Driver, End
from trioflow.errors import InstanceFailed
from trioflow.facts import Status
from trioflow.machine.explain import Explanation
from trioflow.runtime.engine import Engine, open_engine
from trioflow.runtime.handlers import Handler
from trioflow.runtime.instance import Instance
from trioflow.values import ValueCodec

__all__ = ["Plan", "Result", "run_process"]

GRACE = 3.0
"""Seconds that running steps have to finish when a run is interrupted."""


BUFFER = 10_000
"""Facts that may wait to be shown; a terminal is slower than an engine."""


@frozen(kw_only=True)
class Plan:
    """What to run, with what, and where it is kept."""

    content: bytes
    process_key: str
    handlers: Mapping[str, Handler]
    supply: Supply
    variables: Mapping[str, Any]
    instance_id: str
    business_key: str | None = None
    store: str | None = None
    engine_id: str = "main"
    max_wait: float = math.inf
    retry: bool = False


@frozen(kw_only=True)
class Result:
    """How it ended; ``end`` None: it was interrupted.  ``variables`` are as JSON can hold them."""

    instance_id: str
    end: End | None
    status: Status | None = None
    reason: str = ""
    created: bool = True
    variables: dict[str, Any] = field(factory=dict)
    tokens: tuple[Explanation, ...] = ()
    incidents: tuple[IncidentRow, ...] = ()
    unused: tuple[MessageAnswer, ...] = ()


async def run_process(plan: Plan, driver: Driver) -> Result:
    """Run the plan; an interrupt (Ctrl-C) or SIGTERM closes the engine in order, and ends no instance."""
    result = Result(instance_id=plan.instance_id, end=None)
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            work = trio.CancelScope()
            nursery.start_soon(_cancel_at, signals, work)
            with work:
                result = await _run(plan, driver)
            nursery.cancel_scope.cancel()
    return result


async def _cancel_at(signals: AsyncIterator[int], work: trio.CancelScope) -> None:
    async for _ in signals:
        work.cancel()


async def _run(plan: Plan, driver: Driver) -> Result:
    async with (
        open_engine(
            plan.store, handlers=plan.handlers, deploy=[plan.content], engine_id=plan.engine_id, grace=GRACE
        ) as engine,
        engine.observe(buffer=BUFFER) as facts,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(driver.listener.listen, facts, plan.instance_id)
        instance = await engine.start(
            plan.process_key, plan.variables, business_key=plan.business_key, instance_id=plan.instance_id
        )
        if plan.retry:
            for incident in await engine.incidents.query(instance_id=instance.id):
                await engine.incidents.retry(instance.id, incident.wait_id)
        end = End.TOO_LONG
        with trio.move_on_after(plan.max_wait):
            end = await driver.drive(engine, instance)
        result = await _result(plan, engine, instance, end)
        nursery.cancel_scope.cancel()
    return result


async def _result(plan: Plan, engine: Engine, instance: Instance, end: End) -> Result:
    reason = ""
    if end is End.OVER:
        try:
            reason = (await instance.wait()).reason
        except InstanceFailed as error:
            reason = str(error)
    codec = ValueCodec()
    return Result(
        instance_id=instance.id,
        end=end,
        status=await instance.status(),
        reason=reason,
        created=instance.created,
        variables={name: plain(value, codec) for name, value in (await instance.variables()).items()},
        tokens=await instance.explain(),
        incidents=await engine.incidents.query(instance_id=instance.id),
        unused=plan.supply.unused_messages,
    )
