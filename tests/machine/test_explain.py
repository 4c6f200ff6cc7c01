"""What `tokens` and `explain` show."""

from __future__ import annotations

from datetime import timedelta

from tests.machine.support import NOON, Driver, compiled, identity
from trioflow.machine.apply import apply, new_state
from trioflow.machine.events import Start, TaskClaimed
from trioflow.machine.explain import AtJoin, Token, explain, tokens
from trioflow.machine.state import TaskWait
from trioflow.model.builder import ProcessBuilder, message, timer


def everything() -> Driver:
    """One instance with a token in each kind of wait."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.service("work", name="Work")
    fork.service("flaky")
    fork.service("broken")
    fork.catch("timer", on=timer(duration="PT1H"))
    fork.catch("keyed", on=message("paid", key="order"))
    fork.catch("keyless", on=message("paid"))
    fork.user("review", name="Review", candidate_users=["ann"], candidate_groups=["clerks"])
    fork.user("open")
    sub = fork.subprocess("sub")
    with sub as inner:
        split = inner.parallel("split")
        inner.parallel("join", name="Both")
        split.service("a", name="A").to("join")
        split.service("b").to("join")
    run = Driver(compiled(built))
    run.start(order=17)
    run.fail("flaky", retry_in=timedelta(minutes=5))
    run.fail("broken")
    run.complete("b")
    return run


def test_each_token_says_in_one_line_why_it_waits() -> None:
    """Deadline, message and key, candidates, retry, incident, inside of a scope, missing flow and who can serve it."""
    run = everything()
    ids = {track.node: track.id for track in run.state.tracks.values()}
    task, open_task = run.wait("review", TaskWait).id, run.wait("open", TaskWait).id
    expected = {
        "work": "Work (work) runs it (attempt 1)",
        "flaky": "flaky runs again at 2026-03-02T12:05:00+00:00, because it failed: it broke",
        "broken": f"broken stands at incident {run.incident('broken').id} (handler-failure): it broke",
        "timer": "timer waits for the timer that is due at 2026-03-02T13:00:00+00:00",
        "keyed": "keyed waits for the message 'paid' with the key 17",
        "keyless": "keyless waits for the message 'paid' without a key",
        "review": f"Review (review) waits for somebody to claim user task {task} (open to user 'ann', group 'clerks')",
        "open": f"open waits for somebody to claim user task {open_task} (open to everybody)",
        "sub": "sub waits until the 2 tokens inside it ended",
        "a": "A (a) runs it (attempt 1)",
        "join": "Both (join) waits at the join, which holds flow_b_join and misses flow_a_join "
        "(a token can come from A (a))",
    }
    assert {node: run.why(node) for node in ids} == {
        node: [f"token {ids[node]} at {line}"] for node, line in expected.items()
    }


def test_a_claimed_task_names_its_owner() -> None:
    """Who is to complete it."""
    run = everything()
    task = run.wait("review", TaskWait).id
    run.apply(TaskClaimed(wait=task, actor="ann"))
    assert run.why("review")[0].endswith(f"Review (review) waits for 'ann' to complete user task {task}")


def test_a_stuck_join_says_so_and_that_no_token_can_come() -> None:
    """Its missing flow has no holder."""
    run = everything()
    run.fail("a")
    run.drop("a")
    (line,) = run.why("join")
    incident = run.incident("join").id
    assert line.endswith(f"misses flow_a_join (no token can come); the join is stuck (incident {incident})")


def test_the_lines_of_a_folded_state_are_the_same() -> None:
    """Nothing of it depends on what was remembered on the way."""
    run = everything()
    folded = run.store.fold(run.program, run.state)
    assert [each.text for each in explain(run.program, folded)] == [
        each.text for each in explain(run.program, run.state)
    ]


def test_tokens_show_node_flow_scope_path_state_and_parent() -> None:
    """The projection: alive, waiting or incident; ended tokens are not in it."""
    run = everything()
    shown = {token.node: token for token in tokens(run.program, run.state)}
    first = run.at("work").id
    assert shown["work"] == Token(
        id=first, node="work", name="Work", flow="flow_fork_work", scope=("p",), state="alive", parent=0
    )
    assert (shown["a"].scope, shown["a"].flow, shown["a"].parent) == (("p", "sub"), "flow_split_a", 0)
    assert shown["join"].parent == shown["a"].id
    assert {node: token.state for node, token in shown.items() if token.state != "alive"} == {
        "flaky": "waiting",
        "broken": "incident",
        "timer": "waiting",
        "keyed": "waiting",
        "keyless": "waiting",
        "review": "waiting",
        "open": "waiting",
    }


def test_a_token_of_a_pending_turn_is_about_to_enter_its_node() -> None:
    """Also a state that is not at rest can be shown."""
    built = ProcessBuilder("p")
    built.start("s").task("t").end("e")
    program = compiled(built)
    state = new_state(identity(program))
    apply(program, state, Start(), NOON, budget=1)
    assert [each.text for each in explain(program, state)] == [
        f"token {next(iter(state.tracks))} at t is about to enter it"
    ]


def test_tokens_at_one_join_share_one_reason() -> None:
    """A join of many flows is described once, not once for each token that waits there."""
    run = everything()
    reasons = [each.reason for each in explain(run.program, run.state) if isinstance(each.reason, AtJoin)]
    assert len({id(reason) for reason in reasons}) == 1
