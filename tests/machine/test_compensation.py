"""Compensation: ledgers, sweeps, transactions, presumed abort (clauses 10.7, 13.3.4, 13.5.5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled, failure, findings, thrown
from trioflow.facts import Status
from trioflow.machine.data import visible
from trioflow.machine.events import ActivityFailed
from trioflow.machine.state import Track, TrackState
from trioflow.model.builder import (
    ProcessBuilder,
    cancel,
    compensate,
    error,
    for_each,
    loop,
    message,
    terminate,
    timer,
    times,
)


def undoable(scope: Any, path: Any, name: str, **options: Any) -> Any:
    """A service task ``name`` on the path, undone by the service task ``undo-name``."""
    task = path.service(name, **options)
    handler = scope.service(f"undo-{name}", for_compensation=True)
    task.boundary(f"cb-{name}", on=compensate()).undone_by(handler)
    return task


def booked(*names: str, throw: Any = None) -> Driver:
    """A sequence of undoable tasks, then a compensation throw, then a task ``after``; all tasks are completed."""
    p = ProcessBuilder("p")
    path = p.start("s")
    for name in names:
        path = undoable(p, path, name)
    path.throw("th", on=throw or compensate()).user("after").end("e")
    run = Driver(compiled(p))
    run.start()
    for name in names:
        run.complete(name)
    return run


def undoing(run: Driver) -> list[str]:
    """The handlers that run."""
    return [t.node for t in run.state.tracks.values() if t.state is TrackState.EXECUTING and t.node.startswith("undo")]


def undo_all(run: Driver) -> list[str]:
    """Complete handlers as long as some run, one by one; their order."""
    order = []
    while undoing(run):
        order.append(undoing(run)[0])
        run.complete(order[-1])
    return order


def undone(run: Driver, *handlers: str) -> None:
    """The sweep runs exactly these handlers, one after the other, and the thrower goes on."""
    assert undo_all(run) == list(handlers)
    assert run.nodes == ["after"]
    assert not run.state.ledger
    assert not run.state.sweeps


# ------------------------------------------------------------------ the order


def test_a_throw_undoes_what_completed_in_reverse_order_and_waits() -> None:
    """One handler after the other; the thrower goes on after the last."""
    run = booked("a", "b", "c")
    assert undoing(run) == ["undo-c"]
    assert "waits for a compensation (1 being undone, 2 to come)" in run.why("th")[0]
    undone(run, "undo-c", "undo-b", "undo-a")


def test_a_throw_that_names_an_activity_undoes_only_that() -> None:
    """The rest stays in the ledger."""
    run = booked("a", "b", "c", throw=compensate("b"))
    assert undo_all(run) == ["undo-b"]
    assert [entry.node for entry in run.state.ledger.values()] == ["a", "c"]


def test_with_nothing_to_undo_the_thrower_goes_on() -> None:
    """A fact, no failure; an activity that did not complete is nothing."""
    run = booked(throw=compensate())
    assert run.nodes == ["after"]
    assert run.said("compensation-nothing") == ["th"]


def test_an_entry_is_undone_at_most_once() -> None:
    """A second throw finds nothing."""
    p = ProcessBuilder("p")
    undoable(p, p.start("s"), "a").throw("t1", on=compensate()).throw("t2", on=compensate()).user("after").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    undone(run, "undo-a")
    assert run.said("compensation-nothing") == ["t2"]


def test_a_throw_that_does_not_wait_goes_on_at_once() -> None:
    """The scope does not complete before the sweep has ended."""
    run = booked("a", throw=compensate(wait=False))
    assert sorted(run.nodes) == ["after", "th", "undo-a"]
    run.complete("after")
    assert run.nodes == ["th", "undo-a"]
    run.complete("undo-a")
    assert run.status is Status.COMPLETED


def test_an_activity_that_completed_several_times_is_undone_as_often() -> None:
    """Each entry by itself, the last first; under keys of their own."""
    p = ProcessBuilder("p")
    path = p.start("s").exclusive("again")
    task = undoable(p, path, "a")
    gate = task.exclusive("more")
    gate.when("more").to("again")
    gate.otherwise().throw("th", on=compensate()).user("after").end("e")
    run = Driver(compiled(p))
    run.start(more=True)
    run.complete("a")
    run.complete("a", more=False)
    entries = []
    while undoing(run):
        entries.append(run.running("undo-a").entry)
        run.complete("undo-a")
    assert entries == [1, 2]
    assert run.nodes == ["after"]


def test_what_a_boundary_event_set_off_is_undone_before_its_activity() -> None:
    """Also where it completed first."""
    p = ProcessBuilder("p")
    a = undoable(p, p.start("s"), "a")
    a.throw("th", on=compensate()).user("after").end("e")
    undoable(p, a.boundary("b", on=message("m"), interrupting=False), "c").end("f")
    run = Driver(compiled(p))
    run.start()
    run.receive("b")
    run.complete("c")
    run.complete("a")
    undone(run, "undo-c", "undo-a")


# ------------------------------------------------------------------ sub-processes


def nested(*, event_sub_process: bool = False, handler: bool = False, throw: Any = None) -> Driver:
    """A sub-process with two undoable tasks, then a throw outside; all tasks are completed."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        i.property("own")
        undoable(i, undoable(i, i.start("is"), "a"), "b").end("ie")
        if event_sub_process:
            with i.event_subprocess("esp") as h:
                inner = h.start("hs", on=compensate()).service("undo-own")
                inner.throw("ht", on=compensate()).service("undo-rest").end("he")
    if handler:
        sub.boundary("cb", on=compensate()).undone_by(p.service("undo-sub", for_compensation=True))
    undoable(p, sub, "c").throw("th", on=throw or compensate()).user("after").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("a", own="kept")
    run.complete("b")
    run.complete("c")
    return run


def test_a_sub_process_without_handler_is_undone_by_what_is_in_it() -> None:
    """Its scope is open again with the data that it had, under the live parent."""
    run = nested()
    run.complete("undo-c")
    assert undoing(run) == ["undo-b"]
    assert visible(run.state, run.running("undo-b").scope)["own"] == "kept"
    undone(run, "undo-b", "undo-a")


def test_the_handler_of_a_sub_process_replaces_what_is_in_it() -> None:
    """It reads what the sub-process completed with."""
    run = nested(handler=True)
    run.complete("undo-c")
    assert visible(run.state, run.running("undo-sub").scope)["own"] == "kept"
    undone(run, "undo-sub")


def test_its_event_sub_process_runs_in_the_scope_that_is_open_again() -> None:
    """A throw inside sweeps the nested ledger."""
    run = nested(event_sub_process=True)
    undone(run, "undo-c", "undo-own", "undo-b", "undo-a", "undo-rest")


def test_a_handler_writes_to_the_live_data() -> None:
    """What its activity completed with is there to be read, and shadows nothing that is written."""
    p = ProcessBuilder("p")
    undoable(p, p.start("s"), "a", loop=for_each("l", item="x")).throw("th", on=compensate()).user("after").end("e")
    run = Driver(compiled(p))
    run.start(l=[7])
    run.complete_running("a")
    run.complete("undo-a", x="live", note=1)
    assert run.data["x"] == "live"
    assert run.data["note"] == 1


def test_a_terminated_sub_process_is_not_undone() -> None:
    """It counts as terminated, not as completed."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        undoable(i, i.start("is"), "a").end("ie", on=terminate())
    sub.throw("th", on=compensate()).user("after").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    assert run.nodes == ["after"]
    assert not run.state.ledger


def test_a_ledger_ends_with_its_scope() -> None:
    """Of a sub-process that a boundary event cancels nothing is undone."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        undoable(i, i.start("is"), "a").user("u").end("ie")
    sub.end("e")
    sub.boundary("b", on=message("m")).throw("th", on=compensate()).user("after").end("f")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    run.receive("b")
    assert run.nodes == ["after"]
    assert not run.state.ledger


def test_a_throw_in_a_sub_process_undoes_only_what_that_did() -> None:
    """Its own scope."""
    p = ProcessBuilder("p")
    sub = undoable(p, p.start("s"), "outside").subprocess("sub")
    with sub as i:
        undoable(i, i.start("is"), "a").throw("th", on=compensate()).end("ie")
    sub.user("after").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("outside")
    run.complete("a")
    assert undo_all(run) == ["undo-a"]
    assert [entry.node for entry in run.state.ledger.values()] == ["outside"]


# ------------------------------------------------------------------ loops and multi-instance


def repeated(how: Any, *, kind: str) -> Driver:
    """A repeating activity, all of whose instances are completed, then a throw."""
    p = ProcessBuilder("p")
    start = p.start("s")
    if kind == "task":
        path = undoable(p, start, "a", loop=how)
    else:
        path = start.subprocess("a", loop=how)
        with path as i:
            undoable(i, i.start("is"), "in").end("ie")
    path.throw("th", on=compensate()).user("after").end("e")
    run = Driver(compiled(p))
    run.start(l=["x", "y", "z"])
    while run.nodes and "th" not in run.nodes and "after" not in run.nodes:
        run.complete_running("a" if kind == "task" else "in")
    return run


def seen_by(run: Driver, name: str) -> list[Any]:
    """What the running handlers read under that name, oldest first."""
    tracks = [run.state.tracks[t.id] for t in run.state.tracks.values() if t.state is TrackState.EXECUTING]
    return [visible(run.state, track.scope)[name] for track in tracks]


@pytest.mark.parametrize("kind", ["task", "sub-process"])
def test_a_parallel_multi_instance_is_undone_together(kind: str) -> None:
    """Once for each completed instance, with the data of that instance."""
    run = repeated(for_each("l", item="i"), kind=kind)
    assert sorted(seen_by(run, "i")) == ["x", "y", "z"]
    while undoing(run):
        run.complete(undoing(run)[0])
    assert run.nodes == ["after"]
    assert not run.state.ledger


@pytest.mark.parametrize("kind", ["task", "sub-process"])
@pytest.mark.parametrize("how", [for_each("l", item="i", sequential=True), loop(maximum=3)], ids=["sequential", "loop"])
def test_a_sequential_one_or_a_loop_is_undone_in_reverse(kind: str, how: Any) -> None:
    """One after the other."""
    run = repeated(how, kind=kind)
    counted = []
    while undoing(run):
        (counter,) = seen_by(run, "loopCounter")
        counted.append(counter)
        run.complete(undoing(run)[0])
    assert counted == [3, 2, 1]
    assert run.nodes == ["after"]


def test_instances_that_a_completion_condition_cut_short_are_no_reason_to_leave_the_others() -> None:
    """Once for each completed instance (*choice*)."""
    run = repeated(times(3, until="numberOfCompletedInstances == 2"), kind="task")
    assert len(undoing(run)) == 2


# ------------------------------------------------------------------ failures


def failed(run: Driver, node: str) -> Track:
    """Let the running step of a node fail."""
    track = run.running(node)
    run.apply(ActivityFailed(track=track.id, step=track.step, failure=failure()))
    return track


@pytest.mark.parametrize("act", ["retry", "resolve", "drop"])
def test_a_handler_that_fails_is_an_incident_in_the_sweep_and_nothing_of_the_queue_is_dropped(act: str) -> None:
    """Retried, resolved or given up: the sweep goes on with the next."""
    run = booked("a", "b", "c")
    failed(run, "undo-c")
    assert run.incidents == [("handler-failure", "undo-c")]
    assert run.state.is_stalled
    getattr(run, act)("undo-c")
    if act == "retry":
        run.complete("undo-c")
    undone(run, "undo-b", "undo-a")


def test_a_boundary_event_cancels_a_sweep_with_what_it_runs() -> None:
    """What was not begun can be undone by another throw."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        undoable(i, undoable(i, i.start("is"), "a"), "b").throw("th", on=compensate()).end("ie")
        with i.event_subprocess("esp") as h:
            h.start("hs", on=message("stop")).throw("th2", on=compensate()).end("he")
    sub.user("after").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    run.complete("b")
    assert undoing(run) == ["undo-b"]
    run.receive("hs")
    assert undoing(run) == ["undo-a"]
    undone(run, "undo-a")


# ------------------------------------------------------------------ transactions


def transaction(*, caught: bool = True) -> Driver:
    """A transaction with two undoable tasks, one in a sub-process that still runs, and a choice to cancel."""
    p = ProcessBuilder("p")
    tx = p.start("s").transaction("tx")
    with tx as i:
        fork = undoable(i, i.start("is"), "a").parallel("f")
        inner = fork.subprocess("inner")
        with inner as j:
            undoable(j, j.start("js"), "b").user("still").end("je")
        inner.end("ie1")
        fork.user("decide").end("ie2", on=cancel())
    tx.user("normal").end("e")
    if caught:
        tx.boundary("cb", on=cancel()).user("after").end("f1")
    tx.boundary("late", on=timer(duration="PT1H")).user("too-late").end("f2")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    run.complete("b")
    run.complete("decide")
    return run


def test_a_cancelled_transaction_undoes_what_it_did_then_leaves_by_its_cancel_event() -> None:
    """Running work is cancelled first; what a running sub-process had completed is undone too."""
    run = transaction()
    assert "still" not in run.nodes
    undone(run, "undo-b", "undo-a")


def test_without_a_cancel_event_the_token_ends_there() -> None:
    """Never by the normal flow (*choice*)."""
    run = transaction(caught=False)
    undo_all(run)
    assert run.status is Status.COMPLETED
    assert run.entered("normal") == 0


def test_another_boundary_event_can_interrupt_the_compensation_of_a_transaction() -> None:
    """It is armed until the transaction has ended."""
    run = transaction()
    run.due("late")
    assert run.nodes == ["too-late"]
    assert not run.state.ledger


def test_an_error_that_leaves_a_transaction_is_a_hazard() -> None:
    """No compensation."""
    p = ProcessBuilder("p")
    tx = p.start("s").transaction("tx")
    with tx as i:
        undoable(i, i.start("is"), "a").end("ie", on=error("E"))
    tx.end("e")
    tx.boundary("b", on=error("E")).user("after").end("f")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    undone(run)


def test_a_cancel_end_event_outside_a_transaction_is_a_finding() -> None:
    """By its id."""
    p = ProcessBuilder("p")
    p.start("s").end("e", on=cancel())
    assert [each.rule for each in findings(p)] == ["cancel-outside-transaction"]


# ------------------------------------------------------------------ presumed abort


def aborted(*, inside: bool = False) -> Driver:
    """A sub-process whose error end event comes after two undoable tasks, one of them deeper inside."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        inner = undoable(i, i.start("is"), "a").subprocess("inner")
        with inner as j:
            undoable(j, j.start("js"), "b").end("je")
        inner.end("ie", on=error("E"))
        if inside:
            with i.event_subprocess("esp") as h:
                h.start("hs", on=error("E")).user("after").end("he")
    sub.end("e")
    sub.boundary("bd", on=error("E")).user("after2" if inside else "after").end("f")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    run.complete("b")
    return run


def test_what_an_error_leaves_is_undone_before_its_catcher_goes_on() -> None:
    """Presumed abort (10.7)."""
    run = aborted()
    assert undoing(run) == ["undo-b"]
    assert "sub" not in run.nodes
    undone(run, "undo-b", "undo-a")


def test_an_error_that_is_caught_inside_leaves_nothing() -> None:
    """The event sub-process of that scope caught it: no presumed abort."""
    run = aborted(inside=True)
    assert undoing(run) == []
    assert "after" in run.nodes


def test_presumed_abort_before_an_event_sub_process() -> None:
    """The handler's token waits until what was left is undone."""
    p = ProcessBuilder("p")
    sub = p.start("s").subprocess("sub")
    with sub as i:
        undoable(i, i.start("is"), "a").end("ie", on=error("E"))
    sub.end("e")
    with p.event_subprocess("esp") as h:
        h.start("hs", on=error("E")).user("after").end("he")
    run = Driver(compiled(p))
    run.start()
    run.complete("a")
    assert undoing(run) == ["undo-a"]
    assert undo_all(run) == ["undo-a"]
    assert run.nodes == ["esp", "after"]


def test_an_event_that_throws_more_than_compensation_goes_on_with_the_rest() -> None:
    """*Multiple*: in the order of its definitions."""
    p = ProcessBuilder("p")
    undoable(p, p.start("s"), "a").end("e", on=[compensate(), message("m")])
    run = Driver(compiled(p))
    run.start()
    transition = run.complete("a")
    assert transition.posts == []
    transition = run.complete("undo-a")
    assert [post.name for post in thrown(transition)] == ["m"]
    assert run.status is Status.COMPLETED
