"""The wait index: timers, user tasks, incidents."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest
from attrs import evolve

from trioflow.checkpoint.records import IncidentRow, TaskRow, TimerRow
from trioflow.facts import Status
from trioflow.stores.port import TaskFilter, TimerCursor
from trioflow.testing.store_kit.support import START, Contract, Engine, after_item, new_item


def _timer(instance_id: str, wait_id: int, seconds: float) -> TimerRow:
    return TimerRow(instance_id, wait_id, START + timedelta(seconds=seconds))


def _task(instance_id: str, wait_id: int = 1, **columns: Any) -> TaskRow:
    task = TaskRow(
        instance_id=instance_id, wait_id=wait_id, node_id="check", name="Prüfen", process_key="order", created=START
    )
    return evolve(task, **columns)


def _incident(instance_id: str, wait_id: int = 1, **columns: Any) -> IncidentRow:
    incident = IncidentRow(
        instance_id=instance_id,
        wait_id=wait_id,
        incident_kind="handler failure",
        node_id="charge",
        process_key="order",
        message="no money",
        first=START,
        last=START + timedelta(seconds=5),
        attempts=3,
        causes=("ValueError: no money", "KeyError: 'card'"),
    )
    return evolve(incident, **columns)


class WaitContract(Contract):
    """What waits is found by what people and the timer task ask for."""

    # ---------------------------------------------------------------- timers

    async def test_timers_in_order_of_deadline(self, engine: Engine) -> None:
        """By deadline, then instance, then wait; up to and with ``until``; at most ``limit``."""
        rows = [_timer("b", 1, 20), _timer("b", 10, 10), _timer("b", 2, 10), _timer("a", 3, 10), _timer("c", 1, 30)]
        await engine.commit(
            *(new_item(name, upserts=[row for row in rows if row.instance_id == name]) for name in "abc")
        )
        until = START + timedelta(seconds=20)
        expected = (_timer("a", 3, 10), _timer("b", 2, 10), _timer("b", 10, 10), _timer("b", 1, 20))
        assert await engine.store.timers(after=None, until=until, limit=10) == expected
        assert await engine.store.timers(after=None, until=until, limit=2) == expected[:2]

    async def test_timers_behind_a_cursor(self, engine: Engine) -> None:
        """Windows that follow each other have neither gaps nor repetitions, also among equal deadlines."""
        await engine.commit(
            *(new_item(f"i{number:02}", upserts=[_timer(f"i{number:02}", 1, 5)]) for number in range(25))
        )
        cursor: TimerCursor | None = None
        seen: list[str] = []
        while window := await engine.store.timers(after=cursor, until=START + timedelta(seconds=5), limit=10):
            seen += [row.instance_id for row in window]
            cursor = TimerCursor(window[-1].due, window[-1].instance_id, window[-1].wait_id)
        assert seen == [f"i{number:02}" for number in range(25)]

    async def test_next_timer(self, engine: Engine) -> None:
        """The first one behind the cursor, which need not be a timer's place; None behind the last."""
        await engine.stored(new_item("a", upserts=[_timer("a", 1, 10), _timer("a", 2, 20)]))
        first = await engine.store.next_timer(after=None)
        assert first == TimerCursor(START + timedelta(seconds=10), "a", 1)
        assert await engine.store.next_timer(after=TimerCursor(START)) == first
        second = await engine.store.next_timer(after=first)
        assert second == TimerCursor(START + timedelta(seconds=20), "a", 2)
        assert await engine.store.next_timer(after=second) is None

    async def test_timer_is_moved_and_deleted(self, engine: Engine) -> None:
        """The same wait again is the same timer with another deadline; deleted or ended it is gone."""
        item = new_item("a", upserts=[_timer("a", 1, 10), _timer("a", 2, 20)])
        moved = after_item(item, upserts=(_timer("a", 1, 30),))
        await engine.commit(item, moved)
        everything = START + timedelta(days=1)
        assert await engine.store.timers(after=None, until=everything, limit=9) == (
            _timer("a", 2, 20),
            _timer("a", 1, 30),
        )
        deleted = after_item(moved, deleted=(("timer", 2), ("timer", 99)))
        await engine.stored(deleted)
        assert await engine.store.timers(after=None, until=everything, limit=9) == (_timer("a", 1, 30),)
        await engine.stored(after_item(deleted, status=Status.COMPLETED))
        assert await engine.store.next_timer(after=None) is None

    async def test_deadlines_of_other_zones(self, engine: Engine) -> None:
        """A deadline is a moment: its zone is of no account in the order, and it comes back the same moment."""
        tokyo = timezone(timedelta(hours=9))
        row = TimerRow("a", 1, (START + timedelta(seconds=15)).astimezone(tokyo))
        await engine.stored(new_item("a", upserts=[row, _timer("a", 2, 10), _timer("a", 3, 20)]))
        found = await engine.store.timers(after=None, until=START.astimezone(tokyo) + timedelta(seconds=15), limit=9)
        assert [(timer.wait_id, timer.due) for timer in found] == [(2, _timer("a", 2, 10).due), (1, row.due)]

    async def test_many_timers(self, engine: Engine) -> None:
        """Thousands of deadlines, armed in no order and half of them gone again, are read in order."""
        names = [f"i{number * 7919 % 3000:04}" for number in range(3000)]
        items = [new_item(name, upserts=[_timer(name, 1, int(name[1:]))]) for name in names]
        await engine.commit(*items)
        await engine.commit(
            *(after_item(item, deleted=(("timer", 1),)) for item in items if int(item.instance_id[1:]) % 2)
        )
        found = await engine.store.timers(after=None, until=START + timedelta(days=1), limit=5000)
        assert [row.instance_id for row in found] == [f"i{number:04}" for number in range(0, 3000, 2)]

    # ---------------------------------------------------------------- user tasks

    async def test_task_comes_back(self, engine: Engine) -> None:
        """Every column of a task, and None for one that is not there."""
        task = _task(
            "a",
            owner="änne",
            assignee="bob",
            candidate_users=("b", "a"),
            candidate_groups=("y", "x"),
            priority=7,
            due=START + timedelta(days=1),
            business_key="K",
            tenant="t",
        )
        await engine.stored(new_item("a", upserts=[task]))
        assert await engine.store.task("a", 1) == task
        assert await engine.store.tasks(TaskFilter()) == (task,)
        assert await engine.store.task("a", 2) is None
        assert await engine.store.task("b", 1) is None

    @pytest.mark.parametrize(
        "where, expected",
        [
            (TaskFilter(), "abcde"),
            (TaskFilter(owner="ann"), "d"),
            (TaskFilter(candidate="ann"), "ab"),
            (TaskFilter(candidate="bob"), "a"),
            (TaskFilter(candidate="bob", groups=frozenset({"sales", "night"})), "ac"),
            (TaskFilter(candidate="ann", groups=frozenset({"sales"})), "abc"),
            (TaskFilter(groups=frozenset({"sales"})), "abcde"),
            (TaskFilter(unowned=True), "abce"),
            (TaskFilter(owner="ann", unowned=True), ""),
            (TaskFilter(instance_id="c"), "c"),
            (TaskFilter(instance_id="zzz"), ""),
            (TaskFilter(process_key="refund"), "e"),
            (TaskFilter(business_key="K"), "e"),
            (TaskFilter(node_id="ship"), "b"),
            (TaskFilter(node_id="ship", candidate="bob"), ""),
        ],
    )
    async def test_task_filter(self, engine: Engine, where: TaskFilter, expected: str) -> None:
        """Who could claim: no owner, and no candidates, or the person, or one of the groups; all parts must hold."""
        tasks = [
            _task("a"),
            _task("b", candidate_users=("ann", "eve"), candidate_groups=("sales",), node_id="ship"),
            _task("c", candidate_groups=("sales", "night")),
            _task("d", owner="ann", candidate_users=("bob",)),
            _task("e", candidate_users=("nobody",), process_key="refund", business_key="K"),
        ]
        if where.candidate == "bob" and where.groups:
            tasks[1] = _task("b", candidate_users=("ann",))
        await engine.commit(*(new_item(task.instance_id, upserts=[task]) for task in tasks))
        found = await engine.store.tasks(where)
        assert "".join(task.instance_id for task in found) == expected

    async def test_task_changes_hands(self, engine: Engine) -> None:
        """A task that is claimed, given back, opened to others and completed is found by whom it concerns then."""
        item = new_item("a", upserts=[_task("a", candidate_users=("ann",))])
        await engine.stored(item)
        ann, bob = TaskFilter(candidate="ann"), TaskFilter(candidate="bob")
        steps: list[tuple[dict[str, Any], tuple[int, int, int]]] = [
            ({"upserts": (_task("a", candidate_users=("ann",), owner="ann"),)}, (0, 0, 1)),
            ({"upserts": (_task("a", candidate_users=("bob",)),)}, (0, 1, 0)),
            ({"upserts": (_task("a"),)}, (1, 1, 0)),
            ({"deleted": (("task", 1),)}, (0, 0, 0)),
        ]
        for changes, expected in steps:
            item = after_item(item, **changes)
            await engine.stored(item)
            found = [await engine.store.tasks(where) for where in (ann, bob, TaskFilter(owner="ann"))]
            assert tuple(len(rows) for rows in found) == expected

    async def test_task_pages(self, engine: Engine) -> None:
        """Tasks come in the order of (instance, wait), waits as numbers, without gaps or repetitions."""
        for name in ("b", "a"):
            await engine.stored(new_item(name, upserts=[_task(name, wait) for wait in (10, 9, 1)]))
        for where in (TaskFilter(), TaskFilter(candidate="ann")):
            seen: list[tuple[str, int]] = []
            while page := await engine.store.tasks(where, after=seen[-1] if seen else ("", 0), limit=2):
                seen += [(task.instance_id, task.wait_id) for task in page]
            assert seen == [("a", 1), ("a", 9), ("a", 10), ("b", 1), ("b", 9), ("b", 10)]
        assert [task.wait_id for task in await engine.store.tasks(TaskFilter(instance_id="a"), after=("a", 1))] == [
            9,
            10,
        ]

    # ---------------------------------------------------------------- incidents

    async def test_incidents(self, engine: Engine) -> None:
        """Open ones by default, dead letters when asked; of all or of one instance, in pages."""
        open_one, dropped = _incident("b", 2), _incident("b", 1, state="dropped", causes=())
        await engine.commit(new_item("b", upserts=[open_one, dropped]), new_item("a", upserts=[_incident("a")]))
        assert await engine.store.incidents() == (_incident("a"), open_one)
        assert await engine.store.incidents(state=None) == (_incident("a"), dropped, open_one)
        assert await engine.store.incidents(state="dropped", instance_id="b") == (dropped,)
        assert await engine.store.incidents(instance_id="b") == (open_one,)
        assert await engine.store.incidents(state=None, after=("a", 1), limit=1) == (dropped,)
        assert await engine.store.incidents(state=None, instance_id="b", after=("b", 1)) == (open_one,)

    async def test_incident_is_dropped_and_ended(self, engine: Engine) -> None:
        """An incident that becomes a dead letter is no open one; the end of its instance leaves it alone."""
        item = new_item("a", upserts=[_incident("a")], has_incidents=True)
        dropped = after_item(item, upserts=(_incident("a", state="dropped"),))
        await engine.commit(item, dropped)
        assert await engine.store.incidents() == ()
        assert len(await engine.store.incidents(state=None)) == 1
        other = after_item(dropped, upserts=(_incident("a", 2),))
        last = after_item(
            other, status=Status.TERMINATED, upserts=(_incident("a", 3), _incident("a", 4, state="dropped"))
        )
        await engine.commit(other, last)
        assert await engine.store.incidents() == ()
        assert [row.wait_id for row in await engine.store.incidents(state=None)] == [1, 4]

    async def test_kinds_do_not_meet(self, engine: Engine) -> None:
        """A timer, a task and an incident may have the same wait id; deleting one leaves the others."""
        item = new_item("a", upserts=[_timer("a", 1, 1), _task("a"), _incident("a")])
        await engine.commit(item, after_item(item, deleted=(("task", 1),)))
        assert await engine.store.task("a", 1) is None
        assert await engine.store.next_timer(after=None) is not None
        assert len(await engine.store.incidents()) == 1
