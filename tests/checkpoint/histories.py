"""The instances whose documents are kept as golden files: each shows another part of the document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from tests.machine.support import Driver, compiled
from trioflow.machine.events import ErrorThrown, Reentered, TaskClaimed
from trioflow.machine.state import TaskWait
from trioflow.model.builder import ProcessBuilder, message, terminate, timer
from trioflow.values import Duration

__all__ = ["GOLDEN", "HISTORIES", "VALUES"]

GOLDEN = Path(__file__).parent / "golden"

VALUES: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "negative": -7,
    "large": 2**80,
    "larger": -(10**40),
    "float": 0.1,
    "whole": 3.0,
    "infinite": float("inf"),
    "minus_infinite": float("-inf"),
    "decimal": Decimal("10.50"),
    "text": 'Grüße, 世界 \U0001f600 \x00 " \\',
    "empty": "",
    "bytes": b"\x00\xff",
    "moment": datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    "zoned": datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
    "date": date(2026, 2, 28),
    "time": time(23, 59, 59, 1),
    "interval": timedelta(days=1, microseconds=1),
    "duration": Duration.parse("P1Y2M3DT4H5M6S"),
    "uuid": UUID("12345678-1234-5678-1234-567812345678"),
    "list": [1, [2.0, ["x"]], {}],
    "record": {"a": {"b": [None, b"c"]}, "$odd": 1, "": 0},
}
"""One value of each kind that an instance can hold."""


def created() -> Driver:
    """Not started; all of the identity given."""
    built = ProcessBuilder("p")
    built.start("s")
    return Driver(
        compiled(built), root_id="root", parent_id="above", parent_node="call", tenant="t", business_key="order-1"
    )


def running() -> Driver:
    """Two steps run, one for the second time and re-entered after a crash, in a loop's third entry."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.exclusive("again").service("work").to("again")
    fork.service("other")
    run = Driver(compiled(built))
    run.start()
    run.complete("work")
    run.complete("work")
    run.fail("other", retry_in=timedelta(minutes=1))
    run.due("other")
    run.apply(Reentered())
    return run


def waiting() -> Driver:
    """One token in each kind of wait."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.catch("once", on=timer(duration="PT1H"))
    fork.catch("cycle", on=timer(cycle="R3/2026-03-02T09:00:00[Europe/Berlin]/P1D"))
    fork.catch("keyed", on=message("paid", key="[order, 'x']"))
    fork.catch("keyless", on=message("paid"))
    fork.service("flaky")
    fork.user("task", candidate_users=["ann"], candidate_groups=["clerks"], priority=70, due_date="=due")
    fork.user("given", assignee="bob")
    run = Driver(compiled(built))
    run.start(order=17, due=datetime(2026, 7, 1, 9, tzinfo=ZoneInfo("America/New_York")))
    run.fail("flaky", retry_in=timedelta(seconds=90))
    run.apply(TaskClaimed(wait=run.wait("task", TaskWait).id, actor="ann"))
    return run


def joining() -> Driver:
    """Nested scopes with data of their own, joins in two instances of one sub-process, an excess token."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    sub = fork.subprocess("sub")
    fork.to("sub")
    with sub as inner:
        inner.property("local")
        split = inner.parallel("split")
        merge, join = inner.exclusive("merge"), inner.parallel("join")
        merge.to("join")
        split.service("a").to("merge")
        split.service("b").to("merge")
        split.service("c").to("join")
        assert join.id == "join"
    run = Driver(compiled(built))
    run.start()
    run.complete("a", local=1)
    run.complete("b")
    run.complete("a", local=[2])
    return run


def troubled() -> Driver:
    """Open incidents of several kinds, a stuck join, a dead letter."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("broken")
    fork.service("thrower")
    fork.service("given-up")
    fork.exclusive("undecided").when("x > 1").end("e")
    fork.service("leaving").when("nowhere").end("e2")
    maybe = fork.exclusive("maybe")
    built.parallel("join")
    maybe.when("x == 0").to("join")
    maybe.otherwise().to("join")
    run = Driver(compiled(built))
    run.start(x=0)
    run.fail("broken", retry_in=timedelta(minutes=1))
    run.due("broken")
    run.fail("broken")
    thrower = run.at("thrower")
    run.apply(ErrorThrown(track=thrower.id, step=thrower.step, code="E1", message="sold out"))
    run.fail("given-up")
    run.drop("given-up")
    run.complete("leaving")
    return run


def completed() -> Driver:
    """Completed, with a value of every kind; a dead letter is left."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("work")
    fork.service("lost")
    run = Driver(compiled(built))
    run.start(**VALUES)
    run.fail("lost")
    run.drop("lost")
    run.complete("work", more=1)
    return run


def terminated() -> Driver:
    """Ended by a terminate end event, with a reason."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("work")
    fork.service("stop").end("e", on=terminate(), name="Stop")
    run = Driver(compiled(built))
    run.start(x=1)
    run.complete("stop")
    return run


def keyed() -> Driver:
    """Waits for messages whose keys are of kinds that JSON lacks."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    for name in ("decimal", "uuid", "moment", "record", "large"):
        fork.catch(name, on=message("m", key=f"key_{name}"))
    run = Driver(compiled(built))
    run.start(**{f"key_{name}": VALUES[name] for name in ("decimal", "uuid", "moment", "record", "large")})
    return run


HISTORIES: Mapping[str, Callable[[], Driver]] = {
    each.__name__: each for each in (created, running, waiting, joining, troubled, completed, terminated, keyed)
}
