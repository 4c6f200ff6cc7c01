"""User tasks: who sees them, who gets them, who may complete them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import trio

from tests.runtime.support import asking, opened, parked
from trioflow import Engine, InvalidRequest, ProcessBuilder, Status, TaskNotAvailable
from trioflow.checkpoint.records import TaskRow
from trioflow.stores.port import Store
from trioflow.testing import VirtualClock


async def _open_task(engine: Engine, instance_id: str) -> TaskRow:
    (row,) = await engine.tasks.query(instance_id=instance_id)
    return row


async def test_shows_what_the_model_says(store: Store, clock: VirtualClock) -> None:
    """A task row has name, assignee, candidates, priority and due date as they were evaluated when it was created."""
    definitions = asking(
        name="Ask somebody",
        candidate_users="=who",
        candidate_groups=["sales", "support"],
        priority="=70 + n",
        due_date="=due",
    )
    async with opened(store, clock, definitions) as engine:
        due = datetime(2026, 6, 1, 12, tzinfo=UTC)
        instance = await engine.start("asker", {"who": ["anna", "ben"], "n": 1, "due": due}, business_key="b")
        row = await _open_task(engine, instance.id)
        assert (row.name, row.node_id, row.process_key, row.business_key) == ("Ask somebody", "ask", "asker", "b")
        assert (row.candidate_users, row.candidate_groups) == (("anna", "ben"), ("sales", "support"))
        assert (row.priority, row.due, row.owner, row.created) == (71, due, None, clock.now())
        assert await engine.tasks.get(row.id) == row


async def test_claim_and_complete(store: Store, clock: VirtualClock) -> None:
    """A candidate claims and completes; who holds it shows; its outputs are written; afterwards there is no such
    task.
    """
    async with opened(store, clock, asking(candidate_groups=["sales"])) as engine:
        instance = await engine.start("asker")
        task = (await _open_task(engine, instance.id)).id
        await engine.tasks.claim(task, "anna", groups={"sales"})
        assert (await engine.tasks.get(task)).owner == "anna"
        await engine.tasks.claim(task, "anna")
        await engine.tasks.complete(task, {"answer": 42}, actor="anna")
        assert (await instance.wait()).variables == {"answer": 42}
        for method in (engine.tasks.get(task), engine.tasks.complete(task), engine.tasks.claim(task, "anna")):
            with pytest.raises(TaskNotAvailable, match=task):
                await method


async def test_eligibility(store: Store, clock: VirtualClock) -> None:
    """Who is no candidate, or comes second, is refused with a text that says why; nothing has changed."""
    async with opened(store, clock, asking(candidate_users=["anna"], candidate_groups=["sales"])) as engine:
        instance = await engine.start("asker")
        task = (await _open_task(engine, instance.id)).id
        with pytest.raises(TaskNotAvailable, match=r"users anna and the groups sales, and 'carl'"):
            await engine.tasks.claim(task, "carl", groups={"support"})
        with pytest.raises(TaskNotAvailable, match="'carl'"):
            await engine.tasks.complete(task, actor="carl")
        await engine.tasks.claim(task, "ben", groups={"sales"})
        for act in (engine.tasks.claim(task, "anna"), engine.tasks.complete(task, actor="anna")):
            with pytest.raises(TaskNotAvailable, match="held by 'ben'"):
                await act
        with pytest.raises(TaskNotAvailable, match="not held by 'anna'"):
            await engine.tasks.unclaim(task, "anna")
        await engine.tasks.unclaim(task, "ben")
        assert (await engine.tasks.get(task)).owner is None
        await engine.tasks.complete(task, actor="anna")
        assert (await instance.wait()).status is Status.COMPLETED


async def test_assign_and_take_back(store: Store, clock: VirtualClock) -> None:
    """An operator assigns to anybody and takes it back from anybody; an assignee of the model holds it from the
    start.
    """
    async with opened(store, clock, asking(assignee="=boss")) as engine:
        instance = await engine.start("asker", {"boss": "anna"})
        task = (await _open_task(engine, instance.id)).id
        assert (await engine.tasks.get(task)).owner == "anna"
        await engine.tasks.assign(task, "zoe")
        row = await engine.tasks.get(task)
        assert (row.owner, row.assignee) == ("zoe", "zoe")
        await engine.tasks.unclaim(task)
        assert (await engine.tasks.get(task)).owner is None
        await engine.tasks.complete(task, actor="whoever")
        assert (await instance.wait()).status is Status.COMPLETED


async def test_program_completes(store: Store, clock: VirtualClock) -> None:
    """Without an actor the program completes the task, whoever holds it."""
    async with opened(store, clock, asking(candidate_users=["anna"])) as engine:
        instance = await engine.start("asker")
        task = (await _open_task(engine, instance.id)).id
        await engine.tasks.claim(task, "anna")
        await engine.tasks.complete(task, {"by": "program"})
        assert (await instance.wait()).variables == {"by": "program"}


@pytest.mark.parametrize("act", ["claim", "complete"])
async def test_fifty_at_once(store: Store, clock: VirtualClock, act: str) -> None:
    """Of fifty people who claim (or complete) one task at the same time one wins, and the others are told who has
    it.
    """
    wins: list[str] = []
    losses: list[str] = []

    async def tries(engine: Engine, task: str, actor: str) -> None:
        try:
            if act == "claim":
                await engine.tasks.claim(task, actor)
            else:
                await engine.tasks.complete(task, {"by": actor}, actor=actor)
        except TaskNotAvailable as error:
            losses.append(str(error))
        else:
            wins.append(actor)

    async with opened(store, clock, asking()) as engine:
        instance = await engine.start("asker")
        task = (await _open_task(engine, instance.id)).id
        await parked(engine)
        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(tries, engine, task, f"p{number}")
        assert (len(wins), len(losses)) == (1, 49)
        if act == "claim":
            assert (await engine.tasks.get(task)).owner == wins[0]
            assert all(f"held by {wins[0]!r}" in text for text in losses)
        else:
            assert (await instance.wait()).variables == {"by": wins[0]}


async def test_filters(store: Store, clock: VirtualClock) -> None:
    """Tasks are found by owner, candidate and groups, instance, process, business key, node, and being free."""
    built = ProcessBuilder("two")
    fork = built.start("s").parallel("fork")
    fork.user("for_anna", candidate_users=["anna"]).end("e1")
    fork.user("for_sales", candidate_groups=["sales"]).end("e2")
    async with opened(store, clock, built.build(), asking()) as engine:
        two = await engine.start("two", business_key="b")
        one = await engine.start("asker")
        query = engine.tasks.query

        async def nodes(**options: object) -> list[str]:
            return sorted(row.node_id for row in await query(**options))  # type: ignore[arg-type]  # any of them

        assert await nodes() == ["ask", "for_anna", "for_sales"]
        assert await nodes(candidate="anna") == ["ask", "for_anna"]
        assert await nodes(candidate="ben", groups={"sales"}) == ["ask", "for_sales"]
        assert await nodes(candidate="ben", groups={"sales"}, process_key="two") == ["for_sales"]
        assert await nodes(instance_id=one.id) == ["ask"]
        assert await nodes(business_key="b") == ["for_anna", "for_sales"]
        assert await nodes(node_id="ask") == ["ask"]
        (row,) = await query(node_id="for_anna")
        await engine.tasks.claim(row.id, "anna")
        assert await nodes(owner="anna") == ["for_anna"]
        assert await nodes(candidate="anna") == ["ask"]
        assert await nodes(unowned=True) == ["ask", "for_sales"]
        await two.cancel()
        assert await nodes() == ["ask"]


async def test_paging(store: Store, clock: VirtualClock) -> None:
    """Pages follow one another by the last id, without overlap, and together are all, in the order of ids."""
    async with opened(store, clock, asking()) as engine:
        for number in range(25):
            await engine.start("asker", instance_id=f"i/{number:02}")
        found: list[str] = []
        after = ""
        while page := await engine.tasks.query(after=after, limit=10):
            assert len(page) <= 10
            found += [row.id for row in page]
            after = found[-1]
        assert len(found) == 25
        assert [task.rpartition("/")[0] for task in found] == [f"i/{number:02}" for number in range(25)]


async def test_what_is_no_task(store: Store, clock: VirtualClock) -> None:
    """An id that is none is refused as such; one of no instance, or of another kind of wait, is *not available*."""
    async with opened(store, clock, asking()) as engine:
        for text in ("nonsense", "i-1/", "i-1/x", "/"):
            with pytest.raises(InvalidRequest, match="is no task id"):
                await engine.tasks.get(text)
        with pytest.raises(TaskNotAvailable, match="i-1/1"):
            await engine.tasks.complete("i-1/1")
        instance = await engine.start("asker")
        with pytest.raises(TaskNotAvailable, match="999"):
            await engine.tasks.claim(f"{instance.id}/999", "anna")


async def test_outputs_that_cannot_be_stored(store: Store, clock: VirtualClock) -> None:
    """A completion whose outputs cannot be stored is refused, and the task stays open."""
    async with opened(store, clock, asking()) as engine:
        instance = await engine.start("asker")
        task = (await _open_task(engine, instance.id)).id
        with pytest.raises(InvalidRequest, match="answer"):
            await engine.tasks.complete(task, {"answer": object()})
        await engine.tasks.complete(task, {"answer": 1})
        assert (await instance.wait()).variables == {"answer": 1}


async def test_over_a_restart(durable: Store, clock: VirtualClock) -> None:
    """A claimed task is the same task with the same id after the engine was closed and opened."""
    async with opened(durable, clock, asking()) as engine:
        instance = await engine.start("asker")
        row = await _open_task(engine, instance.id)
        await engine.tasks.claim(row.id, "anna")
    async with opened(durable, clock) as engine:
        (again,) = await engine.tasks.query(owner="anna")
        assert again.id == row.id
        await engine.tasks.complete(row.id, {"n": 1}, actor="anna")
        assert (await engine.instance(instance.id).wait()).variables == {"n": 1}
