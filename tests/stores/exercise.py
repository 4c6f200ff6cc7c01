"""One walk through the whole port, for tests that look at what an adapter does meanwhile."""

from __future__ import annotations

from datetime import timedelta

from trioflow.checkpoint.records import IncidentRow, TaskRow, TimerRow
from trioflow.facts import Status
from trioflow.stores.port import InstanceFilter, TaskFilter, TimerCursor
from trioflow.testing.store_kit import Engine, after_item, message, new_item
from trioflow.testing.store_kit.support import START, subscription

__all__ = ["everything"]

_FILTERS = (
    InstanceFilter(),
    InstanceFilter(process_key="order"),
    InstanceFilter(business_key="B"),
    InstanceFilter(status=frozenset({Status.ACTIVE, Status.COMPLETED})),
    InstanceFilter(has_incidents=True),
    InstanceFilter(not_resumed=True),
)

_TASK_FILTERS = (
    TaskFilter(),
    TaskFilter(owner="ann"),
    TaskFilter(candidate="ann", groups=frozenset({"sales"})),
    TaskFilter(instance_id="a"),
    TaskFilter(instance_id="a", candidate="ann"),
)


async def everything(engine: Engine) -> None:
    """Write and read all kinds of rows."""
    await _write(engine)
    await _read(engine)


async def _write(engine: Engine) -> None:
    timer = TimerRow("a", 1, START)
    task = TaskRow(
        instance_id="a", wait_id=2, node_id="n", name="n", process_key="order", created=START, candidate_users=("ann",)
    )
    incident = IncidentRow(
        instance_id="a",
        wait_id=3,
        incident_kind="stuck",
        node_id="n",
        process_key="order",
        message="",
        first=START,
        last=START,
    )
    keyed, business = subscription("a", 4, key='"K"'), subscription("a", 5, business_key="B")
    first = new_item("a", business_key="B", upserts=[timer, task, incident, keyed, business])
    await engine.commit(first, new_item("child", root_id="a"))
    got = [await engine.send(**parts) for parts in ({"key": '"K"'}, {"business_key": "B"}, {}, {"message_id": "m"})]
    await engine.send(message_id="m")
    named = [sent.delivery.id for sent in got if sent.delivery is not None]
    second = after_item(first, consumed=tuple(named[:1]), declined=tuple(named[1:]), slot=1, piece=b"1")
    await engine.commit(second)
    await engine.commit(after_item(second, slot=0, piece=b"0", deleted=(("timer", 1), ("task", 2))))
    await engine.store.release("a", engine.owner, failure="x", retry_at=START + timedelta(seconds=1))
    await engine.store.claim("a", engine.owner)
    await engine.store.mark_drift("a", engine.owner, "y")
    await engine.store.claim("a", engine.owner)
    await engine.commit(after_item(first, expected=3, status=Status.COMPLETED))
    await engine.store.send(message("late"))
    await engine.store.expire()


async def _read(engine: Engine) -> None:
    store = engine.store
    await store.load("a")
    await store.orphans(engine.owner)
    await store.counts()
    await store.pins()
    for where in _FILTERS:
        await store.instances(where)
    cursor = TimerCursor(START)
    for after in (None, cursor):
        await store.timers(after=after, until=START, limit=5)
        await store.next_timer(after=after)
    for wanted in _TASK_FILTERS:
        await store.tasks(wanted)
    await store.task("a", 2)
    for state in ("open", None):
        await store.incidents(state=state)
        await store.incidents(state=state, instance_id="a")
    await store.deliveries("a")
    await store.undelivered()
