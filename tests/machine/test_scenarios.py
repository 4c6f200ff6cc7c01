"""Every kind of event at every position, and every kind of activity, in every surrounding.

One row for each cell of the table of events (BPMN 2.0.2, Table 10.93) and for each activity.  Each runs alone, inside
a sub-process that a boundary event cancels, inside a parallel multi-instance, inside a loop, and restored in the middle
from what was stored.  After every event the driver proves the invariants, and that what is stored is what lives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import AdHocActivated, AdHocCompleted, ChildEnded
from trioflow.machine.state import AdHocWait, CallWait, TrackState
from trioflow.model.builder import (
    ProcessBuilder,
    cancel,
    compensate,
    condition,
    error,
    escalation,
    for_each,
    link,
    loop,
    message,
    signal,
    terminate,
    timer,
    times,
)
from trioflow.model.builder.scope import Scope
from trioflow.model.builder.vocabulary import On

Build = Callable[[Scope], Any]
Act = Callable[[Driver], Any]
Row = tuple[str, Build, list[Act]]


def due(node: str) -> Act:
    """Let the oldest timer of the node be due."""
    return lambda run: run.due(node)


def receive(node: str) -> Act:
    """Let the oldest wait of the node get its message."""
    return lambda run: run.receive(node, {"got": 1})


def signalled(node: str) -> Act:
    """Let the signal reach the oldest wait of the node."""
    return lambda run: run.signal(node)


def done(node: str, **outputs: Any) -> Act:
    """Complete what runs, or is open, at the node: the oldest."""

    def act(run: Driver) -> None:
        if any(track.state is TrackState.EXECUTING for track in run.all_at(node)):
            run.complete_running(node, **outputs)
        else:
            open_ones = [t for t in run.all_at(node) if t.state is TrackState.WAITING]
            run.complete_task(open_ones[0], **outputs)

    return act


def thrown(node: str, code: str = "E") -> Act:
    """Let the oldest step at the node throw an error."""
    return lambda run: run.throw(node, code)


RESET = done("reset", hurry=False)
HURRY = done("other", hurry=True)

EVENTS: dict[str, tuple[On, Callable[[str], Act]]] = {
    "message": (message("m"), receive),
    "timer": (timer(duration="PT1H"), due),
    "signal": (signal("go"), signalled),
    "condition": (condition("hurry"), lambda _node: HURRY),
    "multiple": ([message("m"), timer(duration="PT1H")], due),
}


# ------------------------------------------------------------------ the cells


def _caught(on: On, *, parallel: bool = False, also: bool = False) -> Build:
    def build(scope: Scope) -> None:
        start = scope.start("start")
        if also:
            start = start.script("reset", script="hurry = False").parallel("fork")
            start.user("other").end("end2")
        start.catch("event", on=on, parallel=parallel).end("end")

    return build


def _bounded(on: On, *, interrupting: bool, parallel: bool = False, also: bool = False) -> Build:
    def build(scope: Scope) -> None:
        start = scope.start("start")
        if also:
            start = start.script("reset", script="hurry = False").parallel("fork")
            start.user("other").end("end3")
        host = start.service("host")
        host.end("end")
        host.boundary("event", on=on, interrupting=interrupting, parallel=parallel).user("aside").end("end2")

    return build


def _handled(on: On, *, interrupting: bool, parallel: bool = False, also: bool = False) -> Build:
    def build(scope: Scope) -> None:
        start = scope.start("start")
        if also:
            start = start.script("reset", script="hurry = False")
        with start.subprocess("around") as inside:
            begin = inside.start("begin")
            if also:
                begin = begin.parallel("fork")
                begin.user("other").end("over2")
            begin.service("host").end("over")
            with inside.event_subprocess("handler") as handler:
                handler.start("event", on=on, interrupting=interrupting, parallel=parallel).user("aside").end("handled")
        scope.at("around").end("end")

    return build


def _inside(on: On, *, position: str, interrupting: bool) -> Build:
    """A sub-process that throws what its boundary event, or its own handler, catches."""

    def build(scope: Scope) -> None:
        with scope.start("start").subprocess("around") as inside:
            inside.start("begin").user("before").end("throws", on=on)
            if position == "handler":
                with inside.event_subprocess("handler") as handler:
                    handler.start("event", on=on, interrupting=interrupting).user("aside").end("handled")
        around = scope.at("around")
        around.end("end")
        if position == "boundary":
            around.boundary("event", on=on, interrupting=interrupting).user("aside").end("end2")

    return build


def _ends(on: On) -> Build:
    return lambda scope: scope.start("start").user("before").end("event", on=on)


def _throws(on: On) -> Build:
    return lambda scope: scope.start("start").user("before").throw("event", on=on).end("end")


def _link(scope: Scope) -> None:
    scope.start("start").user("before").throw("event", on=link("over"))
    scope.catch("target", on=link("over")).end("end")


def _error_end(scope: Scope) -> None:
    _inside(error("E"), position="boundary", interrupting=True)(scope)


def _undoable(scope: Scope, start: str = "start") -> Any:
    task = scope.start(start).service("work")
    task.boundary("undo", on=compensate()).undone_by(scope.service("undoing", for_compensation=True))
    return task


def _compensates(*, end: bool) -> Build:
    def build(scope: Scope) -> None:
        task = _undoable(scope)
        if end:
            task.end("event", on=compensate())
        else:
            task.throw("event", on=compensate()).end("end")

    return build


def _own_compensation(scope: Scope) -> None:
    with scope.start("start").subprocess("around") as inside:
        _undoable(inside, "begin").end("over")
        with inside.event_subprocess("handler") as handler:
            handler.start("event", on=compensate()).throw("rest", on=compensate()).end("handled")
    scope.at("around").throw("throw", on=compensate()).end("end")


def _transaction(scope: Scope) -> None:
    with scope.start("start").transaction("around") as inside:
        _undoable(inside, "begin").end("event", on=cancel())
    around = scope.at("around")
    around.end("end")
    around.boundary("cancelled", on=cancel()).user("aside").end("end2")


CATCHES: list[Row] = [
    *((f"catch-{name}", _caught(on), [act("event")]) for name, (on, act) in EVENTS.items() if name != "condition"),
    ("catch-condition", _caught(condition("hurry"), also=True), [RESET, HURRY]),
    (
        "catch-parallel-multiple",
        _caught([message("m"), signal("go")], parallel=True),
        [receive("event"), signalled("event")],
    ),
    ("catch-link", _link, [done("before")]),
]
BOUNDARIES: list[Row] = []
HANDLERS: list[Row] = []
for _name, (_on, _act) in EVENTS.items():
    for _int in (True, False):
        _word = "interrupting" if _int else "non-interrupting"
        _also = _name == "condition"
        _first = [RESET] if _also else []
        _rest = [] if _int else [done("host")]
        BOUNDARIES.append(
            (
                f"boundary-{_name}-{_word}",
                _bounded(_on, interrupting=_int, also=_also),
                [*_first, _act("event"), done("aside"), *_rest],
            )
        )
        HANDLERS.append(
            (
                f"handler-{_name}-{_word}",
                _handled(_on, interrupting=_int, also=_also),
                [*_first, _act("event"), *_rest, done("aside")],
            )
        )
BOUNDARIES += [
    (
        "boundary-parallel-multiple",
        _bounded([message("m"), signal("go")], interrupting=True, parallel=True),
        [receive("event"), signalled("event"), done("aside")],
    ),
    ("boundary-error", _bounded(error("E"), interrupting=True), [thrown("host"), done("aside")]),
    (
        "boundary-escalation-interrupting",
        _inside(escalation("X"), position="boundary", interrupting=True),
        [done("before"), done("aside")],
    ),
    (
        "boundary-escalation-non-interrupting",
        _inside(escalation("X"), position="boundary", interrupting=False),
        [done("before"), done("aside")],
    ),
    ("boundary-compensation", _compensates(end=False), [done("work"), done("undoing")]),
    ("boundary-cancel", _transaction, [done("work"), done("undoing"), done("aside")]),
]
HANDLERS += [
    (
        "handler-error",
        _inside(error("E"), position="handler", interrupting=True),
        [done("before"), done("aside")],
    ),
    (
        "handler-escalation-interrupting",
        _inside(escalation("X"), position="handler", interrupting=True),
        [done("before"), done("aside")],
    ),
    (
        "handler-escalation-non-interrupting",
        _inside(escalation("X"), position="handler", interrupting=False),
        [done("before"), done("aside")],
    ),
    ("handler-compensation", _own_compensation, [done("work"), done("undoing")]),
]
THROWS: list[Row] = [
    ("throw-none", lambda scope: scope.start("start").user("before").throw("event").end("end"), [done("before")]),
    ("throw-message", _throws(message("m")), [done("before")]),
    ("throw-signal", _throws(signal("go")), [done("before")]),
    ("throw-escalation", _throws(escalation("X")), [done("before")]),
    ("throw-compensation", _compensates(end=False), [done("work"), done("undoing")]),
    ("throw-multiple", _throws([message("m"), signal("go")]), [done("before")]),
]
ENDS: list[Row] = [
    ("end-none", lambda scope: scope.start("start").user("before").end("event"), [done("before")]),
    ("end-message", _ends(message("m")), [done("before")]),
    ("end-signal", _ends(signal("go")), [done("before")]),
    ("end-error", _error_end, [done("before"), done("aside")]),
    ("end-escalation", _ends(escalation("X")), [done("before")]),
    ("end-compensation", _compensates(end=True), [done("work"), done("undoing")]),
    ("end-cancel", _transaction, [done("work"), done("undoing"), done("aside")]),
    ("end-multiple", _ends([message("m"), escalation("X")]), [done("before")]),
]


# ------------------------------------------------------------------ the activities


def _activity(kind: str, **options: Any) -> Build:
    def build(scope: Scope) -> None:
        getattr(scope.start("start").user("before"), kind)("work", **options).end("end")

    return build


def _filled(kind: str, **options: Any) -> Build:
    def build(scope: Scope) -> None:
        with getattr(scope.start("start"), kind)("work", **options) as inside:
            if kind == "ad_hoc":
                inside.service("inner")
            else:
                inside.start("begin").service("inner").end("over")
        scope.at("work").end("end")

    return build


def called_ends(run: Driver) -> None:
    """The oldest called instance ends."""
    wait = next(wait for wait in run.state.waits.values() if isinstance(wait, CallWait))
    run.apply(ChildEnded(wait=wait.id, delivery=1, status=Status.COMPLETED, outputs={"got": 1}))


def chosen(run: Driver) -> None:
    """Somebody activates the inner activity of the oldest ad-hoc sub-process, it completes, and he says it is done."""
    wait = next(wait for wait in run.state.waits.values() if isinstance(wait, AdHocWait))
    run.apply(AdHocActivated(wait=wait.id, activity="inner"))
    run.complete_running("inner")
    run.apply(AdHocCompleted(wait=wait.id))


ACTIVITIES: list[Row] = [
    ("task", _activity("task"), [done("before")]),
    ("manual-task", _activity("manual"), [done("before")]),
    ("service-task", _activity("service"), [done("before"), done("work")]),
    ("script-task", _activity("script", script="x = 1"), [done("before"), done("work")]),
    ("user-task", _activity("user"), [done("before"), done("work")]),
    ("rule-task", _activity("rule"), [done("before"), done("work")]),
    ("send-task", _activity("send", message="m"), [done("before")]),
    ("receive-task", _activity("receive", message="m"), [done("before"), receive("work")]),
    ("sub-process", _filled("subprocess"), [done("inner")]),
    ("transaction", _filled("transaction"), [done("inner")]),
    ("ad-hoc", _filled("ad_hoc"), [done("inner")]),
    ("ad-hoc-chosen", _filled("ad_hoc", until="never"), [chosen]),
    ("call-activity", _activity("call", process="q"), [done("before"), called_ends]),
    ("standard-loop", _activity("service", loop=loop(maximum=2)), [done("before"), done("work"), done("work")]),
    ("multi-instance", _activity("service", loop=times(2)), [done("before"), done("work"), done("work")]),
    (
        "sequential",
        _activity("service", loop=for_each("items", item="item", sequential=True)),
        [done("before"), done("work"), done("work")],
    ),
    ("inputs", _activity("service", inputs={"own": "items"}), [done("before"), done("work", got=2)]),
    ("completion-quantity", _activity("user", completion_quantity=2), [done("before"), done("work")]),
]

ROWS = [*CATCHES, *BOUNDARIES, *HANDLERS, *THROWS, *ENDS, *ACTIVITIES]
EVERY = pytest.mark.parametrize("build, acts", [pytest.param(*row[1:], id=row[0]) for row in ROWS])
DATA: dict[str, Any] = {"hurry": False, "items": [1, 2], "never": False}


def _wrapped(build: Build, **options: Any) -> Driver:
    """The part inside a sub-process with these options, which a message cancels."""
    p = ProcessBuilder("p")
    with p.start("s").subprocess("wrap", **options) as inside:
        build(inside)
    wrap = p.at("wrap")
    wrap.user("after").end("e")
    wrap.boundary("stop", on=message("stop")).user("stopped").end("f")
    return Driver(compiled(p))


def _play(run: Driver, acts: list[Act]) -> None:
    for act in acts:
        act(run)


@EVERY
def test_alone(build: Build, acts: list[Act]) -> None:
    """It comes to its end; nothing is left."""
    p = ProcessBuilder("p")
    build(p)
    run = Driver(compiled(p))
    run.start(**DATA)
    _play(run, acts)
    assert run.status is Status.COMPLETED


@EVERY
def test_cancelled_by_a_boundary_event_at_each_of_its_points(build: Build, acts: list[Act]) -> None:
    """Whatever it waits for, runs, or has armed is gone with it."""
    for point in range(len(acts)):
        run = _wrapped(build)
        run.start(**DATA)
        _play(run, acts[:point])
        run.receive("stop")
        assert run.nodes == ["stopped"]
        assert len(run.state.scopes) == 1
        assert not run.state.ledger
        assert {wait.track for wait in run.state.waits.values()} == {run.at("stopped").id}


@EVERY
def test_inside_a_parallel_multi_instance(build: Build, acts: list[Act]) -> None:
    """Two at once, acted upon by turns: neither disturbs the other."""
    run = _wrapped(build, loop=times(2))
    run.start(**DATA)
    for act in acts:
        act(run)
        if act is not HURRY or run.all_at("other"):  # what hurries one hurries both: one variable for the two
            act(run)
    assert run.nodes == ["after"]


@EVERY
def test_inside_a_loop(build: Build, acts: list[Act]) -> None:
    """Each round is new."""
    run = _wrapped(build, loop=loop(maximum=2))
    run.start(**DATA)
    _play(run, acts)
    _play(run, acts)
    assert run.nodes == ["after"]


@EVERY
def test_restored_in_the_middle(build: Build, acts: list[Act]) -> None:
    """After each event it goes on from what was stored, as if nothing had been."""
    run = _wrapped(build)
    run.start(**DATA)
    for act in acts:
        run.restore()
        act(run)
    run.restore()
    assert run.nodes == ["after"]


def test_terminate_ends_its_scope() -> None:
    """The last cell: alone it ends the instance, inside a sub-process only that."""
    p = ProcessBuilder("p")
    fork = p.start("s").parallel("fork")
    fork.user("before").end("event", on=terminate())
    fork.user("never").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("before")
    assert run.status is Status.TERMINATED
