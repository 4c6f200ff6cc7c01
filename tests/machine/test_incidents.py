"""What an operator can do about incidents (semantics section 6)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.machine.support import NOON, Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import Cancel, DropIncident, ResolveIncident, RetryIncident
from trioflow.model.builder import ProcessBuilder, message, terminate, timer


def undecided() -> Driver:
    """An instance at an exclusive gateway that could not decide."""
    built = ProcessBuilder("p")
    gate = built.start("s").exclusive("gate")
    gate.when("x > 1").service("big")
    gate.when("x > 2").service("bigger")
    run = Driver(compiled(built))
    run.start(x=0)
    return run


def forked_with_incident() -> Driver:
    """An instance with an incident in one branch and a step in the other."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("broken").service("after")
    fork.service("fine").end("stop", on=terminate())
    run = Driver(compiled(built))
    run.start()
    run.fail("broken")
    return run


def test_an_incident_at_a_gateway_is_resolved_along_a_given_flow() -> None:
    """What the gateway could not decide, the operator does."""
    run = undecided()
    run.resolve("gate", "flow_gate_bigger", x=2)
    assert (run.nodes, run.data["x"]) == (["bigger"], 2)


@pytest.mark.parametrize(
    "flows, reason",
    [
        pytest.param((), "give one of flow_gate_big, flow_gate_bigger", id="none"),
        pytest.param(("flow_gate_big", "flow_gate_bigger"), "takes one flow", id="two"),
        pytest.param(("elsewhere",), "no outgoing sequence flow 'elsewhere'", id="unknown"),
    ],
)
def test_an_exclusive_gateway_wants_exactly_one_of_its_flows(flows: tuple[str, ...], reason: str) -> None:
    """Refused otherwise, with the choices; nothing is written."""
    run = undecided()
    resolve = ResolveIncident(incident=run.incident("gate").id, flows=flows, outputs={"x": 9})
    assert reason in run.refused(resolve)
    assert run.data == {"x": 0}


def test_an_activity_is_resolved_along_given_flows_or_those_it_chooses_with_the_outputs() -> None:
    """Without flows its conditions are evaluated with the given outputs, and may fail again."""
    built = ProcessBuilder("p")
    work = built.start("s").service("work")
    work.when("x > 1").service("big")
    work.when("x > 2").service("bigger")
    for flows, outputs, nodes in [
        ((), {"x": 2}, ["big"]),
        ((), {"x": 3}, ["big", "bigger"]),
        (("flow_work_bigger",), {}, ["bigger"]),
        (("flow_work_bigger", "flow_work_big"), {}, ["big", "bigger"]),
        ((), {"x": 0}, ["work"]),
    ]:
        run = Driver(compiled(built))
        run.start(x=0)
        run.complete("work")
        assert run.incidents == [("no-outgoing-flow", "work")]
        run.resolve("work", *flows, **outputs)
        assert run.nodes == nodes
        assert bool(run.incidents) is (nodes == ["work"])


def test_acts_on_an_incident_that_is_not_open_are_refused_with_those_that_are() -> None:
    """Unknown, closed or dropped: the refusal lists the open ones."""
    run = forked_with_incident()
    incident = run.incident("broken").id
    for act in (RetryIncident(incident=99), ResolveIncident(incident=99), DropIncident(incident=99)):
        assert f"no open incident 99 (open ones: {incident})" in run.refused(act)
    run.drop("broken")
    for act in (RetryIncident(incident=incident), ResolveIncident(incident=incident), DropIncident(incident=incident)):
        assert "(open ones: none)" in run.refused(act)


@pytest.mark.parametrize("variables", [{"x": object()}, {"": 1}], ids=["object", "no-name"])
def test_an_operators_variables_must_be_storable(variables: dict[str, object]) -> None:
    """Refused before anything is done."""
    run = forked_with_incident()
    incident = run.incident("broken").id
    assert run.refused(RetryIncident(incident=incident, variables=variables))
    assert run.refused(ResolveIncident(incident=incident, outputs=variables))
    assert run.incidents == [("handler-failure", "broken")]


def test_an_instance_with_an_incident_stays_active_and_is_stalled_when_nothing_else_can_move() -> None:
    """Siblings go on; it cannot complete."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("broken")
    fork.service("fine")
    run = Driver(compiled(built))
    run.start()
    run.fail("broken")
    stalled = [run.state.is_stalled]
    run.complete("fine")
    stalled.append(run.state.is_stalled)
    assert stalled == [False, True]
    assert run.status is Status.ACTIVE


# ------------------------------------------------------------------ since when

HOUR = timedelta(hours=1)


def times(run: Driver, node: str) -> tuple[timedelta, timedelta]:
    """How long after noon the incident at the node was there first, and last."""
    incident = run.incident(node)
    return incident.first - NOON, incident.last - NOON


def wait(run: Driver) -> None:
    """An hour goes by before the next event."""
    run.now += HOUR


@pytest.mark.parametrize("variables", [None, {"x": 1}], ids=["same-step", "new-entry"])
def test_an_incident_remembers_its_first_time_over_an_operators_retries(variables: dict[str, int] | None) -> None:
    """Each retry that fails again is another incident, of the same failure."""
    run = forked_with_incident()
    for hours in (1, 2):
        wait(run)
        run.retry("broken", variables)
        run.fail("broken")
        assert times(run, "broken") == (timedelta(), hours * HOUR)


def test_an_incident_after_scheduled_retries_is_there_since_the_first_failure() -> None:
    """The retries are part of it; and the operator's later one too."""
    run = Driver(compiled(service_and_more()))
    run.start()
    for _ in range(2):
        run.fail("work", retry_in=HOUR)
        run.due("work")
    run.fail("work")
    assert run.incidents == [("retries-exhausted", "work")]
    assert times(run, "work") == (timedelta(), 2 * HOUR)
    wait(run)
    run.retry("work")
    run.fail("work")
    assert times(run, "work") == (timedelta(), 3 * HOUR)


def service_and_more() -> ProcessBuilder:
    """A service task with a way out that has to be chosen, another one, and the first one again."""
    built = ProcessBuilder("p")
    work = built.start("s").exclusive("again").service("work")
    work.when("x").service("more").to("again")
    return built


def test_a_token_that_moved_on_fails_for_the_first_time() -> None:
    """At the next node, and at the same one when it comes back."""
    run = Driver(compiled(service_and_more()))
    run.start(x=True)
    run.fail("work")
    wait(run)
    run.retry("work")
    run.complete("work")
    run.fail("more")
    assert times(run, "more") == (HOUR, HOUR)
    wait(run)
    run.resolve("more")
    run.fail("work")
    assert times(run, "work") == (2 * HOUR, 2 * HOUR)


def test_a_token_that_cannot_leave_fails_since_its_step_has_worked() -> None:
    """The failure of the step is over; choosing the flows is another one, over its own retries."""
    run = Driver(compiled(service_and_more()))
    run.start(x=False)
    run.fail("work")
    wait(run)
    run.retry("work")
    run.complete("work")
    assert run.incidents == [("no-outgoing-flow", "work")]
    wait(run)
    run.retry("work")
    assert times(run, "work") == (HOUR, 2 * HOUR)


@pytest.mark.parametrize("kind", ["user-task", "message", "timer"])
def test_a_wait_that_could_be_armed_at_last_does_not_fail_any_more(kind: str) -> None:
    """Its retries are of one failure; what happens when the wait is over is a new one."""
    built = ProcessBuilder("p")
    path = built.start("s")
    at = {
        "user-task": lambda: path.user("x", due_date="=due"),
        "message": lambda: path.catch("x", on=message("m", key="key")),
        "timer": lambda: path.catch("x", on=timer(duration="delay")),
    }[kind]()
    at.when("enough").end("e")
    run = Driver(compiled(built))
    run.start(enough=False)
    wait(run)
    run.retry("x")
    assert times(run, "x") == (timedelta(), HOUR)
    run.retry("x", {"due": None, "key": 1, "delay": "PT1H"})
    assert run.incidents == []
    wait(run)
    match kind:
        case "user-task":
            run.complete("x")
        case "message":
            run.receive("x")
        case _:
            run.due("x")
    assert run.incidents == [("no-outgoing-flow", "x")]
    assert times(run, "x") == (2 * HOUR, 2 * HOUR)


def test_a_sub_process_that_could_be_entered_at_last_does_not_fail_any_more() -> None:
    """The limit of steps stopped its token before it; the incident when it leaves is a new one."""
    built = ProcessBuilder("p")
    sub = built.start("s").task("t").subprocess("sub")
    sub.inside.service("inner")
    sub.when("enough").end("e")
    run = Driver(compiled(built, hop_limit=2))
    run.start(enough=False)
    assert run.incidents == [("step-limit", "sub")]
    wait(run)
    run.retry("sub")
    assert run.at("sub").failing is None
    run.complete("inner")
    assert run.incidents == [("no-outgoing-flow", "sub")]
    assert times(run, "sub") == (HOUR, HOUR)


def test_terminate_and_cancel_overtake_an_incident() -> None:
    """The token is gone, and with it the incident, in the state and in the index."""
    for cancelled in (True, False):
        run = forked_with_incident()
        if cancelled:
            run.apply(Cancel())
        else:
            run.complete("fine")
        assert run.status is Status.TERMINATED
        assert run.state.incidents == {}
        assert run.store.rows == {}


def test_an_operators_variables_are_written_where_their_names_live() -> None:
    """Seen from the scope of the incident."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    sub.inside.property("local")
    sub.inside.service("work").service("more")
    run = Driver(compiled(built))
    run.start(shared=1)
    run.fail("work")
    run.resolve("work", local=5, shared=2)
    inner = run.state.scopes[run.at("more").scope]
    assert (inner.data, run.data) == ({"local": 5}, {"shared": 2})


def test_an_incident_inside_a_sub_process_keeps_it_open_and_its_drop_completes_it() -> None:
    """The scope completes when the last token of it is dropped."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    sub.inside.service("work")
    sub.service("after")
    run = Driver(compiled(built))
    run.start()
    run.fail("work")
    run.drop("work")
    assert run.nodes == ["after"]


@pytest.mark.parametrize("limit", [10, 50])
def test_a_livelock_is_an_incident_at_the_limit(limit: int) -> None:
    """A token that makes so many steps without a wait or an executed activity; its retry gets as many again."""
    built = ProcessBuilder("p")
    built.start("s").exclusive("again").task("idle").to("again")
    run = Driver(compiled(built, hop_limit=limit))
    run.start()
    assert [kind for kind, _ in run.incidents] == ["step-limit"]
    assert len([1 for kind, *_ in run.facts if kind == "node-entered"]) == limit
    node = run.incidents[0][1]
    run.retry(node)
    assert [kind for kind, _ in run.incidents] == ["step-limit"]
    assert len([1 for kind, *_ in run.facts if kind == "node-entered"]) == 2 * limit


def test_a_loop_around_a_sub_process_in_which_nothing_waits_is_a_livelock() -> None:
    """The steps inside count for the host."""
    built = ProcessBuilder("p")
    sub = built.start("s").exclusive("again").subprocess("sub")
    sub.inside.task("inner")
    sub.to("again")
    run = Driver(compiled(built, hop_limit=30))
    run.start()
    assert [kind for kind, _ in run.incidents] == ["step-limit"]


@pytest.mark.parametrize("inside", [False, True], ids=["in-the-loop", "in-a-sub-process-of-it"])
def test_a_loop_with_a_wait_never_is_a_livelock(*, inside: bool) -> None:
    """Each wait starts the count anew, also one inside a sub-process, for its host."""
    built = ProcessBuilder("p")
    again = built.start("s").exclusive("again")
    if inside:
        sub = again.subprocess("sub")
        sub.inside.service("work")
        sub.to("again")
    else:
        again.service("work").to("again")
    run = Driver(compiled(built, hop_limit=8))
    run.start()
    for _ in range(12):
        run.complete("work")
    assert run.incidents == []


def test_the_limit_never_stops_a_token_before_a_join() -> None:
    """Its join would be stuck without it; it stops behind the join."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    built.parallel("join").task("behind").end("e")
    fork.task("t1").task("t2").to("join")
    fork.service("work").to("join")
    run = Driver(compiled(built, hop_limit=4))
    run.start()
    assert run.incidents == []
    run.complete("work")
    assert run.status is Status.COMPLETED


def test_a_token_that_waited_at_a_join_counts_its_steps_anew() -> None:
    """Waiting there is a wait like any other: what it did before is not held against it after the resolution."""
    built = ProcessBuilder("p")
    choice = built.start("s").task("t1").exclusive("choice")
    built.parallel("join").task("t2").task("t3").task("t4").end("e")
    choice.when("x").to("join")
    choice.otherwise().to("join")
    run = Driver(compiled(built, hop_limit=4))
    run.start(x=True)
    run.resolve("join")
    assert run.status is Status.COMPLETED
