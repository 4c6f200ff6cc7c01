"""Standard loop and multi-instance on every kind of activity (clauses 10.3.8, 13.3.6, 13.3.7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled, failure
from trioflow.facts import Status
from trioflow.machine.data import visible
from trioflow.machine.events import ActivityCompleted, ActivityFailed, Start, TaskCompleted
from trioflow.machine.state import ScopeKind, Track, TrackState
from trioflow.model.activities import LoopCharacteristics
from trioflow.model.builder import ProcessBuilder, error, for_each, loop, message, terminate, timer, times


def repeated(how: LoopCharacteristics, *, kind: str = "service") -> Driver:
    """One repeating activity ``t``, with a message boundary event ``b``; ``after`` comes behind it."""
    p = ProcessBuilder("p")
    start = p.start("s")
    if kind == "sub-process":
        with start.subprocess("t", loop=how) as i:
            i.start("is").service("inner").end("ie")
    else:
        {"user": start.user, "pass": start.task, "service": start.service}[kind]("t", loop=how)
    t = p.at("t")
    t.user("after").end("e")
    t.boundary("b", on=message("stop")).user("stopped").end("f")
    return Driver(compiled(p))


def bodies(run: Driver, node: str = "t") -> list[Track]:
    """The tokens inside the instances, oldest first."""
    kinds = run.state.scopes
    return [track for track in run.all_at(node) if kinds[track.scope].kind is ScopeKind.INSTANCE]


def finish(run: Driver, track: Track, **outputs: Any) -> None:
    """Complete the step of one instance."""
    run.apply(ActivityCompleted(track.id, track.step, outputs))


def counters(run: Driver) -> dict[str, Any]:
    """The counters of the one loop scope."""
    (scope,) = [each for each in run.state.scopes.values() if each.kind is ScopeKind.LOOP]
    return {
        name.removeprefix("numberOf").removesuffix("Instances") or "All": value for name, value in scope.data.items()
    }


# ------------------------------------------------------------------ standard loop


def test_a_loop_runs_as_long_as_its_condition_holds() -> None:
    """The test comes after each round; ``loopCounter`` is how many are done, inside it counts from 1."""
    run = repeated(loop("loopCounter < 3"))
    run.start()
    seen = []
    while run.nodes[-1] == "t":
        (body,) = bodies(run)
        seen.append(visible(run.state, body.scope)["loopCounter"])
        finish(run, body)
    assert seen == [1, 2, 3]
    assert run.nodes == ["after"]


def test_a_loop_that_tests_before_may_run_not_at_all() -> None:
    """The test sees 0 before the first round."""
    run = repeated(loop("loopCounter > 0", test_before=True))
    run.start()
    assert run.nodes == ["after"]


def test_a_loop_without_condition_runs_to_its_maximum() -> None:
    """The maximum decides alone."""
    run = repeated(loop(maximum=4), kind="pass")
    run.start()
    assert run.said("iteration-completed") == ["t"] * 4
    assert run.nodes == ["after"]


def test_a_loop_condition_sees_what_the_round_wrote() -> None:
    """Outputs are in the scope around it before the test."""
    run = repeated(loop("again"))
    run.start(again=False)
    finish(run, bodies(run)[0], again=True)
    finish(run, bodies(run)[0], again=False)
    assert run.nodes == ["after"]


def test_a_loop_condition_that_fails_is_an_incident_and_its_retry_tests_again() -> None:
    """No round is run twice."""
    run = repeated(loop("more"))
    run.start()
    finish(run, bodies(run)[0])
    assert run.incidents == [("expression", "t")]
    run.retry("t", {"more": True})
    assert [visible(run.state, body.scope)["loopCounter"] for body in bodies(run)] == [2]
    finish(run, bodies(run)[0], more=False)
    assert run.nodes == ["after"]


def test_a_loop_in_which_nothing_waits_is_a_livelock() -> None:
    """Steps are counted over its rounds."""
    p = ProcessBuilder("p")
    p.start("s").task("t", loop=loop("loopCounter >= 0")).end("e")
    run = Driver(compiled(p, hop_limit=100))
    run.start()
    assert [kind for kind, _ in run.incidents] == ["step-limit"]


# ------------------------------------------------------------------ multi-instance


KINDS = ["service", "user", "sub-process"]


def complete_one(run: Driver, kind: str, **outputs: Any) -> None:
    """Complete the oldest open instance, whatever its kind."""
    if kind == "sub-process":
        run.complete("inner", **outputs)
    elif kind == "user":
        wait = bodies(run)[0].wait
        assert wait is not None
        run.apply(TaskCompleted(wait=wait.id, outputs=outputs))
    else:
        finish(run, bodies(run)[0], **outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_parallel_instances_run_all_at_once(kind: str) -> None:
    """Each has its counter and its item; the activity completes with the last."""
    run = repeated(for_each("orders", item="order"), kind=kind)
    run.start(orders=["a", "b", "c"])
    seen = [
        (visible(run.state, body.scope)["loopCounter"], visible(run.state, body.scope)["order"]) for body in bodies(run)
    ]
    assert seen == [(1, "a"), (2, "b"), (3, "c")]
    assert counters(run) == {"All": 3, "Active": 3, "Completed": 0, "Terminated": 0}
    for left in (2, 1):
        complete_one(run, kind)
        assert counters(run)["Active"] == left
    complete_one(run, kind)
    assert run.nodes == ["after"]
    assert run.said("activity-completed")[-1] == "t"


@pytest.mark.parametrize("kind", KINDS)
def test_sequential_instances_run_one_by_one(kind: str) -> None:
    """The next starts when the last has ended; the collection is the one of the entry."""
    run = repeated(for_each("orders", item="order", sequential=True), kind=kind)
    run.start(orders=["a", "b"])
    assert len(bodies(run)) == 1
    complete_one(run, kind, orders=["other"])
    assert visible(run.state, bodies(run)[0].scope)["order"] == "b"
    complete_one(run, kind)
    assert run.nodes == ["after"]


def test_at_most_so_many_run_at_a_time() -> None:
    """``maxConcurrent``: an instance that ends makes room for one."""
    run = repeated(for_each("l", item="x", max_concurrent=2))
    run.start(l=[1, 2, 3, 4, 5])
    order = []
    while bodies(run):
        assert len(bodies(run)) <= 2
        order.append(visible(run.state, bodies(run)[0].scope)["x"])
        finish(run, bodies(run)[0])
    assert order == [1, 2, 3, 4, 5]
    assert run.nodes == ["after"]


@pytest.mark.parametrize("sequential", [False, True])
def test_zero_instances_complete_at_once_with_an_empty_output(sequential: bool) -> None:  # noqa: FBT001  # a row
    """The boundary event is disarmed too."""
    how = for_each("l", item="x", output_collection="results", output_item="result", sequential=sequential)
    run = repeated(how)
    run.start(l=[])
    assert run.nodes == ["after"]
    assert run.data["results"] == []


def test_outputs_are_gathered_by_input_position_and_published_once() -> None:
    """Whatever the order of completion; a terminated instance leaves null."""
    run = repeated(for_each("l", item="x", output_collection="results", output_item="result"))
    run.start(l=[1, 2, 3])
    first, second, third = bodies(run)
    finish(run, third, result="c")
    assert "results" not in run.data
    run.apply(ActivityFailed(track=second.id, step=second.step, failure=failure()))
    finish(run, first, result="a")
    run.drop("t")
    assert run.data["results"] == ["a", None, "c"]
    assert run.nodes == ["after"]


CONDITIONS = [("numberOfCompletedInstances == 2", 2), ("result == 'enough'", 1), ("numberOfCompletedInstances > 9", 3)]


@pytest.mark.parametrize("until, completed", CONDITIONS)
def test_a_completion_condition_completes_the_activity_once(until: str, completed: int) -> None:
    """It sees the scope of the instance that just completed, and the counters; what is left is cancelled."""
    run = repeated(for_each("l", item="x", output_item="result", output_collection="r", until=until))
    run.start(l=[1, 2, 3])
    for _ in range(completed):
        finish(run, bodies(run)[0], result="enough")
    assert run.nodes == ["after"]
    assert run.said("iteration-completed") == ["t"] * completed
    assert run.said("activity-completed") == ["t"]
    assert run.data["r"] == ["enough"] * completed + [None] * (3 - completed)


def test_a_completion_condition_that_fails_is_an_incident_of_the_instance_that_completed() -> None:
    """Its retry asks again; nothing was counted twice."""
    run = repeated(times(2, until="enough"))
    run.start()
    finish(run, bodies(run)[0])
    assert run.incidents == [("expression", "t")]
    assert counters(run) == {"All": 2, "Active": 2, "Completed": 0, "Terminated": 0}
    run.retry("t", {"enough": False})
    assert counters(run) == {"All": 2, "Active": 1, "Completed": 1, "Terminated": 0}
    finish(run, bodies(run)[0])
    assert run.nodes == ["after"]


REFUSED: list[tuple[str, LoopCharacteristics, dict[str, Any]]] = [
    ("not there", for_each("l", item="x"), {}),
    ("no list", for_each("l", item="x"), {"l": 7}),
    ("negative", times("n"), {"n": -1}),
    ("no number", times("n"), {"n": "many"}),
    ("no limit", for_each("l", item="x"), {"l": None}),
]


@pytest.mark.parametrize("how, data", [pytest.param(*row[1:], id=row[0]) for row in REFUSED])
def test_what_cannot_be_counted_is_an_incident_at_the_activity(how: LoopCharacteristics, data: dict[str, Any]) -> None:
    """Nothing was opened; a retry counts again."""
    run = repeated(how)
    run.start(**data)
    assert run.incidents == [("expression", "t")]
    run.retry("t", {"l": [1], "n": 1})
    finish(run, bodies(run)[0])
    assert run.nodes == ["after"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", [loop(maximum=3), times(3), times(3, sequential=True)], ids=["loop", "par", "seq"])
def test_a_boundary_event_cancels_all_its_instances(kind: str, how: LoopCharacteristics) -> None:
    """It is armed once, for all of them."""
    run = repeated(how, kind=kind)
    run.start()
    run.receive("b")
    assert run.nodes == ["stopped"]
    assert len(run.state.scopes) == 1


def test_an_error_of_one_instance_goes_to_the_boundary_of_the_activity() -> None:
    """All instances end with it."""
    p = ProcessBuilder("p")
    t = p.start("s").service("t", loop=times(3))
    t.end("e")
    t.boundary("b", on=error("E")).user("caught").end("f")
    run = Driver(compiled(p))
    run.start()
    run.throw("t", "E")
    assert run.nodes == ["caught"]


def test_terminate_ends_one_instance_of_a_sub_process() -> None:
    """Its siblings go on; the activity goes on along its normal flow."""
    p = ProcessBuilder("p")
    t = p.start("s").subprocess("t", loop=times(2))
    with t as i:
        fork = i.start("is").parallel("f")
        fork.user("u").end("ie")
        fork.user("v").end("it", on=terminate())
    t.user("after").end("e")
    run = Driver(compiled(p))
    run.start()
    run.complete("v")
    assert run.nodes.count("u") == 1
    run.complete("v")
    assert run.nodes == ["after"]


def test_instances_in_instances() -> None:
    """Each has its own counters; the innermost name wins."""
    p = ProcessBuilder("p")
    outer = p.start("s").subprocess("outer", loop=for_each("rows", item="row"))
    with outer as i:
        i.start("is").service("t", loop=for_each("row", item="cell")).end("ie")
    outer.end("e")
    run = Driver(compiled(p))
    run.start(rows=[[1, 2], [3]])
    assert [visible(run.state, body.scope)["cell"] for body in bodies(run)] == [1, 2, 3]
    for body in bodies(run):
        finish(run, body)
    assert run.status is Status.COMPLETED


def test_many_instances_open_within_the_budget_of_a_turn() -> None:
    """Opening is cut into pieces, so that other instances are not kept waiting; ids are those of one piece."""
    whole, pieces = repeated(times(40), kind="pass"), repeated(times(40), kind="pass")
    whole.start()
    transition = pieces.apply(Start(), budget=7)
    assert transition.refusal == ""
    assert pieces.nodes == whole.nodes == ["after"]
    assert pieces.said("iteration-completed") == ["t"] * 40


def test_an_incident_of_one_instance_leaves_the_others_alone() -> None:
    """The activity waits for it."""
    run = repeated(times(2))
    run.start()
    first, second = bodies(run)
    run.apply(ActivityFailed(track=first.id, step=first.step, failure=failure()))
    finish(run, second)
    assert run.incidents == [("handler-failure", "t")]
    run.resolve("t", done=1)
    assert run.nodes == ["after"]


def test_a_timer_at_a_repeating_activity_is_armed_once() -> None:
    """For the whole life of all instances."""
    p = ProcessBuilder("p")
    t = p.start("s").service("t", loop=times(2, sequential=True))
    t.end("e")
    t.boundary("b", on=timer(duration="PT1H")).user("late").end("f")
    run = Driver(compiled(p))
    run.start()
    wait = run.armed("b", object)
    finish(run, bodies(run)[0])
    assert run.armed("b", object) is wait
    run.due("b")
    assert run.nodes == ["late"]


def test_the_host_shows_as_hosting() -> None:
    """One token at the activity for all, and one in each instance."""
    run = repeated(times(2))
    run.start()
    assert [track.state for track in run.all_at("t")] == [
        TrackState.HOSTING,
        TrackState.EXECUTING,
        TrackState.EXECUTING,
    ]
