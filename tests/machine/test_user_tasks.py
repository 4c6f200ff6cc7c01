"""User tasks: who may take and complete them (clause 10.3.4; semantics section 4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import Event, TaskAssigned, TaskClaimed, TaskCompleted, TaskUnclaimed
from trioflow.machine.state import TaskWait
from trioflow.model.builder import ProcessBuilder

CLERKS = frozenset({"clerks"})


def opened(**options: Any) -> Driver:
    """An instance that stands at a user task with these options."""
    built = ProcessBuilder("p")
    built.start("s").user("u", **options).end("e")
    run = Driver(compiled(built))
    run.start(boss="zoe", team=["ann", "bob"], level=70, due="2026-01-01")
    return run


def the_task(run: Driver) -> TaskWait:
    """The wait of the task."""
    return run.wait("u", TaskWait)


@pytest.mark.parametrize(
    "options, expected",
    [
        pytest.param({}, (None, (), (), 50), id="nothing"),
        pytest.param({"assignee": "ann"}, ("ann", (), (), 50), id="assignee"),
        pytest.param({"assignee": "=boss"}, ("zoe", (), (), 50), id="assignee-by-expression"),
        pytest.param({"candidate_users": ["a", "b"]}, (None, ("a", "b"), (), 50), id="users"),
        pytest.param({"candidate_users": "=team"}, (None, ("ann", "bob"), (), 50), id="users-by-expression"),
        pytest.param({"candidate_groups": "sales, clerks"}, (None, (), ("sales", "clerks"), 50), id="groups"),
        pytest.param({"priority": "=level"}, (None, (), (), 70), id="priority-by-expression"),
        pytest.param({"priority": 3}, (None, (), (), 3), id="priority"),
    ],
)
def test_who_may_work_on_it_is_frozen_when_it_is_created(options: Any, expected: Any) -> None:
    """An assignee owns it from the start; candidates and priority are literals or expressions."""
    task = the_task(opened(**options))
    assert (task.assignee, task.candidate_users, task.candidate_groups, task.priority) == expected
    assert task.owner == task.assignee


@pytest.mark.parametrize(
    "options",
    [
        {"assignee": "=level"},
        {"candidate_users": "=level"},
        {"priority": "=boss"},
        {"due_date": "=due"},
        {"due_date": "=no"},
    ],
    ids=["assignee", "users", "priority", "due", "raises"],
)
def test_a_value_of_the_wrong_kind_is_an_incident(options: Any) -> None:
    """No task is created, no entry counted; the retry evaluates it all again."""
    run = opened(**options)
    assert run.incidents == [("expression", "u")]
    assert run.state.entries == {}
    run.resolve("u")
    assert run.status is Status.COMPLETED


def test_a_retry_after_the_variables_were_corrected_creates_the_task() -> None:
    """The first entry is the one that created it."""
    run = opened(assignee="=level")
    run.retry("u", {"level": "kim"})
    assert (the_task(run).owner, run.at("u").entry) == ("kim", 1)


def done(run: Driver, event: Event) -> str:
    """Apply a person's act; return the refusal, or nothing."""
    return run.apply(event).refusal


CANDIDATES = {"candidate_users": ["ann"], "candidate_groups": ["clerks"]}


@pytest.mark.parametrize(
    "options, actor, groups, refusal",
    [
        pytest.param({}, "anybody", frozenset(), "", id="open-to-all"),
        pytest.param(CANDIDATES, "ann", frozenset(), "", id="a-candidate"),
        pytest.param(CANDIDATES, "bob", CLERKS, "", id="of-a-group"),
        pytest.param(CANDIDATES, "bob", frozenset({"sales"}), "is none of them", id="neither"),
        pytest.param({"assignee": "ann"}, "ann", frozenset(), "", id="the-owner"),
        pytest.param({"assignee": "ann"}, "bob", CLERKS, "is held by 'ann'", id="somebody-else's"),
        pytest.param(
            {"assignee": "ann", **CANDIDATES}, "bob", CLERKS, "is held by 'ann'", id="a-candidate-of-an-owned-one"
        ),
    ],
)
def test_claiming_and_completing_ask_the_same_question(
    options: Any, actor: str, groups: frozenset[str], refusal: str
) -> None:
    """The owner may; where nobody owns it the candidates, or everybody if there are none."""
    run = opened(**options)
    claim = TaskClaimed(wait=the_task(run).id, actor=actor, groups=groups)
    complete = TaskCompleted(wait=claim.wait, actor=actor, groups=groups)
    if refusal:
        assert refusal in run.refused(claim)
        assert refusal in run.refused(complete)
        return
    assert done(run, claim) == ""
    assert the_task(run).owner == actor
    assert run.store.rows[("task", claim.wait)].owner == actor
    assert done(run, complete) == ""
    assert run.status is Status.COMPLETED


def test_a_claimed_task_is_given_back_by_its_owner_or_by_an_operator() -> None:
    """Nobody else can; then it is open to its candidates again."""
    run = opened(**CANDIDATES)
    task = the_task(run).id
    assert done(run, TaskClaimed(wait=task, actor="ann")) == ""
    assert "not held by 'bob'" in run.refused(TaskUnclaimed(wait=task, actor="bob"))
    assert done(run, TaskUnclaimed(wait=task, actor="ann")) == ""
    assert the_task(run).owner is None
    assert done(run, TaskClaimed(wait=task, actor="bob", groups=CLERKS)) == ""
    assert done(run, TaskUnclaimed(wait=task)) == ""
    assert "held by: nobody" in run.refused(TaskUnclaimed(wait=task, actor="ann"))


def test_an_operator_assigns_it_to_whom_he_likes() -> None:
    """Candidates or not; the former owner may do nothing more."""
    run = opened(**CANDIDATES)
    task = the_task(run).id
    assert done(run, TaskClaimed(wait=task, actor="ann")) == ""
    assert done(run, TaskAssigned(wait=task, assignee="eve")) == ""
    assert (the_task(run).owner, the_task(run).assignee) == ("eve", "eve")
    assert "is held by 'eve'" in run.refused(TaskCompleted(wait=task, actor="ann"))
    assert done(run, TaskCompleted(wait=task, actor="eve")) == ""


def test_the_program_itself_completes_without_being_asked_who_it_is() -> None:
    """No actor: no eligibility; the outputs are written by name."""
    run = opened(assignee="ann")
    run.complete("u", answer=42)
    assert run.status is Status.COMPLETED
    assert run.data["answer"] == 42
    assert run.store.rows == {}


@pytest.mark.parametrize("outputs", [{"x": object()}, {"": 1}, {"x": [1, {2}]}], ids=["object", "no-name", "set"])
def test_outputs_that_cannot_be_stored_are_refused_and_the_task_stays_open(outputs: Any) -> None:
    """Whoever completes it is told scope and name; nothing was changed."""
    run = opened()
    reason = run.refused(TaskCompleted(wait=the_task(run).id, outputs=outputs))
    assert "outputs of 'u'" in reason
    assert run.nodes == ["u"]


def test_no_act_on_a_task_that_is_done() -> None:
    """Completed, and again: the second is refused, so is every other act, before and after the instance ended."""
    built = ProcessBuilder("p")
    built.start("s").user("u").service("after")
    run = Driver(compiled(built))
    run.start()
    task = run.wait("u", TaskWait).id
    run.complete("u")
    acts = (
        TaskCompleted(wait=task),
        TaskClaimed(wait=task, actor="ann"),
        TaskUnclaimed(wait=task),
        TaskAssigned(wait=task, assignee="ann"),
    )
    for act in acts:
        assert f"no open user task {task}" in run.refused(act)
    run.complete("after")
    for act in acts:
        assert "has ended (completed)" in run.refused(act)
