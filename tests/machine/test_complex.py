"""The complex gateway: activation, reset, starting over (clause 13.4.5; semantics section 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.machine.support import NOON, Driver, compiled, identity
from trioflow.facts import Status
from trioflow.machine.apply import apply, new_state
from trioflow.machine.events import ActivityCompleted, Start
from trioflow.machine.joins import inclusive, quantity, reach
from trioflow.machine.state import Gate, Track
from trioflow.machine.transition import Run
from trioflow.model.builder import Path, ProcessBuilder, error


def gateway(activation: str | None, *names: str) -> tuple[ProcessBuilder, Path]:
    """A fork into service tasks, and a complex gateway behind them."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    gate = built.complex("gate", name="Some", activation=activation)
    for name in names:
        fork.service(name).to("gate")
    return built, gate


def driver(activation: str | None, *names: str, **variables: Any) -> Driver:
    """One instance of ``gateway``, with a task ``early`` on activation and ``late`` on reset."""
    built, gate = gateway(activation, *names)
    gate.when("waitingForStart").service("early")
    gate.when("not waitingForStart").service("late")
    run = Driver(compiled(built))
    run.start(**variables)
    return run


def gates(run: Driver) -> list[tuple[str, ...]]:
    """The flows that gave, of each gateway that waits for its reset."""
    return [gate.flows for gate in run.state.gates.values()]


# ------------------------------------------------------------------ examples


def test_a_discriminator_goes_on_with_the_first_and_swallows_the_others() -> None:
    """One of three activates it; the others are awaited and consumed; then it could start over."""
    built, gate = gateway("activationCount >= 1", "a", "b", "c")
    gate.when("waitingForStart").service("next")
    run = Driver(compiled(built))
    run.start()
    run.complete("b")
    assert run.nodes == ["a", "next", "c"]
    assert gates(run) == [("flow_b_gate",)]
    run.complete("a")
    assert run.nodes == ["gate", "next", "c"]
    run.complete("c")
    assert run.nodes == ["next"]
    assert gates(run) == []
    run.complete("next")
    assert run.status is Status.COMPLETED
    assert run.said("gateway-activated") == run.said("gateway-reset") == ["gate"]


def test_n_of_m_goes_on_with_the_second_of_three() -> None:
    """It consumes the two that came; the survivor is the last of them."""
    run = driver("activationCount >= 2", "a", "b", "c")
    run.complete("c")
    assert run.nodes == ["a", "b", "gate"]
    survivor = run.at("a").id
    run.complete("a")
    assert [(track.id, track.node) for track in run.state.tracks.values()] == [
        (survivor, "early"),
        (run.at("b").id, "b"),
    ]
    assert run.said("token-merged") == ["gate"]


def test_the_reset_has_ways_out_of_its_own() -> None:
    """What is open on activation and what is open on reset differ by ``waitingForStart``."""
    run = driver("activationCount >= 2", "a", "b", "c")
    run.complete("a")
    run.complete("b")
    assert sorted(run.nodes) == ["c", "early"]
    run.complete("c")
    assert sorted(run.nodes) == ["early", "late"]


def test_the_counts_of_the_flows_are_a_record() -> None:
    """A decision over which flows have come, whatever else did."""
    activation = "activationCounts.flow_a_gate >= 1 and activationCounts['flow_c_gate'] >= 1"
    run = driver(activation, "a", "b", "c")
    run.complete("a")
    run.complete("b")
    assert run.nodes.count("gate") == 2
    run.complete("c")
    assert "early" in run.nodes
    assert run.said("token-merged") == ["gate", "gate"]


def test_a_condition_on_an_outgoing_flow_sees_the_counts_that_activated_it() -> None:
    """They are evaluated before the tokens are consumed."""
    built, gate = gateway("activationCount >= 2", "a", "b", "c")
    gate.when("activationCounts.flow_a_gate == 1").service("with-a")
    gate.otherwise().service("without-a")
    for first, second, taken in (("a", "b", "with-a"), ("b", "c", "without-a")):
        run = Driver(compiled(built))
        run.start()
        run.complete(first)
        run.complete(second)
        assert taken in run.nodes


def test_the_condition_is_not_evaluated_before_the_first_token() -> None:
    """It would be true from the beginning."""
    run = driver("activationCount >= 0", "a", "b")
    assert run.said("gateway-activated") == []
    run.complete("a")
    assert "early" in run.nodes


def test_it_is_activated_at_the_very_token_that_makes_the_condition_true() -> None:
    """Even if others come in the same step, so an equality is met."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    gate = built.complex("gate", activation="activationCount == 2")
    for _ in range(3):
        fork.to("gate")
    gate.service("next")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["next"]
    assert run.said("gateway-reset") == ["gate"]


# ------------------------------------------------------------------ data


def test_data_that_the_condition_reads_activates_it_when_it_is_written() -> None:
    """It waits for the condition, not for a token alone: here with a sub-process that does not lead to it."""
    built, gate = gateway("enough or activationCount >= 2", "a", "b")
    gate.when("waitingForStart").service("early")
    inside = built.at("fork").subprocess("sub").inside
    inside.start("is").service("elsewhere").service("last")
    run = Driver(compiled(built))
    run.start(enough=False)
    run.complete("a")
    assert run.nodes == ["gate", "b", "sub", "elsewhere"]
    run.complete("elsewhere", enough=True)
    assert run.nodes == ["early", "b", "sub", "last"]
    assert gates(run) == [("flow_a_gate",)]


def test_data_written_elsewhere_activates_it_although_it_is_stuck() -> None:
    """No token can come any more, which is an incident; it is overtaken."""
    built, gate = gateway("enough", "a")
    gate.when("waitingForStart").service("next")
    built.at("fork").service("elsewhere").end("done")
    run = Driver(compiled(built))
    run.start(enough=False)
    run.complete("a")
    assert run.incidents == [("stuck", "gate")]
    run.complete("elsewhere", enough=True)
    assert run.nodes == ["next"]
    assert run.said("incident-overtaken") == ["gate"]


def test_a_condition_that_fails_is_an_incident_of_the_gateway_whose_tokens_stay() -> None:
    """Retrying it with the missing variable evaluates it again."""
    run = driver("activationCount >= needed", "a", "b")
    run.complete("a")
    assert run.incidents == [("expression", "gate")]
    assert "needed" in run.incident("gate").message
    assert run.why("gate")[0].endswith(
        "waits at the gateway, which holds flow_a_gate, until 'activationCount >= needed' is true; "
        f"the gateway is at incident {run.incident('gate').id}"
    )
    run.retry("gate", {"needed": 2})
    assert run.incidents == []
    assert run.nodes == ["gate", "b"]
    run.complete("b")
    assert "early" in run.nodes


def test_a_failing_condition_is_one_incident_however_many_tokens_come() -> None:
    """It is since the first time, and says when it failed last; dropping it ends all its tokens."""
    run = driver("activationCount >= needed", "a", "b", "c")
    run.complete("a")
    first = run.incident("gate").id
    run.complete("b")
    assert run.incident("gate").id == first
    run.drop("gate")
    assert run.nodes == ["c"]


def test_resolving_a_failed_condition_activates_it_along_given_flows() -> None:
    """The operator decides what the condition could not."""
    run = driver("activationCount >= needed", "a", "b")
    run.complete("a")
    run.resolve("gate", "flow_gate_late")
    assert run.nodes == ["late", "b"]
    assert gates(run) == [("flow_a_gate",)]


# ------------------------------------------------------------------ ways out


def test_without_a_way_out_on_activation_it_is_an_incident_and_nothing_is_consumed() -> None:
    """No condition true, no default: the standard's exception."""
    built, gate = gateway("activationCount >= 1", "a", "b")
    gate.when("open").service("next")
    run = Driver(compiled(built))
    run.start(open=False)
    run.complete("a")
    assert run.incidents == [("no-outgoing-flow", "gate")]
    assert run.nodes == ["gate", "b"]
    run.retry("gate", {"open": True})
    assert run.nodes == ["next", "b"]


def test_the_default_is_taken_on_activation_and_on_reset_where_nothing_else_is() -> None:
    """In both phases."""
    built, gate = gateway("activationCount >= 1", "a", "b")
    gate.when("False").service("never")
    gate.otherwise().service("default")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.complete("b")
    assert run.nodes == ["default", "default"]


def test_an_unconditional_flow_gets_a_token_on_activation_and_none_on_reset() -> None:
    """A choice; and no way out on reset is no error."""
    built, gate = gateway("activationCount >= 1", "a", "b")
    gate.service("always")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.complete("b")
    assert run.nodes == ["always"]


def test_a_condition_that_fails_on_reset_is_an_incident_and_the_gateway_waits() -> None:
    """Retry evaluates it again; the token that came is not lost meanwhile."""
    built, gate = gateway("activationCount >= 1", "a", "b")
    gate.when("waitingForStart or late").service("next")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.complete("b")
    assert run.incidents == [("expression", "gate")]
    assert run.nodes == ["next", "gate"]
    run.retry("gate")
    assert run.incidents == [("expression", "gate")]
    run.retry("gate", {"late": True})
    assert run.nodes == ["next", "next"]


def test_resolving_a_failed_reset_without_flows_starts_over_with_none() -> None:
    """Given flows are taken; without any, what cannot be evaluated is not."""
    for flows, nodes in (((), ["next"]), (("flow_gate_next",), ["next", "next"])):
        built, gate = gateway("activationCount >= 1", "a", "b")
        gate.when("waitingForStart or late").service("next")
        run = Driver(compiled(built))
        run.start()
        run.complete("a")
        run.complete("b")
        run.resolve("gate", *flows)
        assert run.nodes == nodes
        assert gates(run) == []


# ------------------------------------------------------------------ the reset


def test_a_reset_waits_only_for_what_can_still_come() -> None:
    """A branch that ends elsewhere is not awaited; if nothing came the reset makes its token out of nothing."""
    built, gate = gateway("activationCount >= 1", "a")
    gate.when("waitingForStart").service("early")
    gate.when("not waitingForStart").service("late")
    way = built.at("fork").service("b").exclusive("way")
    way.when("comes").to("gate")
    way.otherwise().end("gone")
    run = Driver(compiled(built))
    run.start(comes=False)
    run.complete("a")
    assert gates(run) == [("flow_a_gate",)]
    run.complete("b")
    assert gates(run) == []
    assert run.nodes == ["early", "late"]


def test_a_reset_that_fails_without_a_token_ends_with_its_scope() -> None:
    """There is no token at its incident, so nothing keeps the scope from completing."""
    built, gate = gateway("activationCount >= 1", "a")
    gate.when("waitingForStart or late").service("next")
    way = built.at("fork").service("b").exclusive("way")
    way.when("comes").to("gate")
    way.otherwise().end("gone")
    run = Driver(compiled(built))
    run.start(comes=False)
    run.complete("a")
    run.complete("b")
    assert run.incidents == [("expression", "gate")]
    run.complete("next")
    assert run.status is Status.COMPLETED
    assert run.incidents == []


def test_a_gate_without_a_token_ends_with_its_sub_process() -> None:
    """What still could come ended with the last token."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    fork = sub.inside.start("is").parallel("fork")
    gate = sub.inside.complex("gate", activation="activationCount >= 1")
    gate.when("waitingForStart").end("ie")
    fork.service("a").to("gate")
    way = fork.service("b").exclusive("way")
    way.when("comes").to("gate")
    way.otherwise().end("gone")
    sub.service("after")
    run = Driver(compiled(built))
    run.start(comes=False)
    run.complete("a")
    assert gates(run) == [("flow_a_gate",)]
    run.complete("b")
    assert run.nodes == ["after"]


def test_a_further_token_on_a_flow_that_gave_waits_for_the_next_round() -> None:
    """After the reset it activates the gateway again."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    gate = built.complex("gate", activation="activationCount >= 1")
    merge.to("gate")
    fork.service("a1").to("merge")
    fork.service("a2").to("merge")
    fork.service("b").to("gate")
    gate.when("waitingForStart").service("early")
    run = Driver(compiled(built))
    run.start()
    run.complete("a1")
    run.complete("a2")
    assert run.nodes == ["early", "gate", "b"]
    run.complete("b")
    assert run.nodes == ["early", "early"]
    assert run.said("gateway-activated") == ["gate", "gate"]
    assert run.said("gateway-reset") == ["gate", "gate"]
    assert gates(run) == []


def test_what_is_left_after_a_reset_and_does_not_activate_it_waits_or_is_stuck() -> None:
    """One token of two that are needed, and nobody who could come."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    gate = built.complex("gate", activation="activationCount >= 2")
    merge.to("gate")
    for name in ("a1", "a2"):
        fork.service(name).to("merge")
    fork.service("b").to("gate")
    gate.when("waitingForStart").service("early")
    run = Driver(compiled(built))
    run.start()
    run.complete("b")
    run.complete("a1")
    assert gates(run) == []
    assert run.incidents == []
    run.complete("a2")
    assert run.incidents == [("stuck", "gate")]


def test_its_own_token_that_can_come_round_is_awaited_by_the_reset() -> None:
    """The way leads from behind the gateway to a flow that gave none: the standard's rule, word for word."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    gate = built.complex("gate", activation="activationCount >= 1")
    fork.service("a").to("gate")
    fork.service("b").to("gate")
    work = gate.when("waitingForStart").service("work").exclusive("more")
    work.when("again").to("gate")
    work.otherwise().end("e")
    run = Driver(compiled(built))
    run.start(again=True)
    run.complete("a")
    run.complete("b")
    assert sorted(run.nodes) == ["gate", "work"]
    run.complete("work")
    assert run.status is Status.COMPLETED
    assert run.said("gateway-activated") == ["gate"]


# ------------------------------------------------------------------ stuck


def test_a_gateway_that_nobody_can_activate_any_more_is_stuck() -> None:
    """Two are needed and the second goes astray; resolving activates it with what is there."""
    built, gate = gateway("activationCount >= 2", "a")
    gate.when("waitingForStart").service("early")
    way = built.at("fork").service("b").exclusive("way")
    way.when("comes").to("gate")
    way.otherwise().end("gone")
    run = Driver(compiled(built))
    run.start(comes=False)
    run.complete("a")
    assert run.incidents == []
    run.complete("b")
    assert run.incidents == [("stuck", "gate")]
    assert run.incident("gate").message == (
        "no token can activate the gateway Some (gate) any more: it holds a token from flow_a_gate (1), and no live "
        "token can reach it, while its activation condition 'activationCount >= 2' is not true; resolve the incident "
        "to go on with what is there, or drop its tokens"
    )
    run.resolve("gate")
    assert run.nodes == ["early"]
    assert gates(run) == []


def test_a_flow_that_has_a_token_already_can_bring_the_one_that_is_needed() -> None:
    """Counts add up over tokens of one flow: it is not stuck while a further one can come by any flow."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    gate = built.complex("gate", activation="activationCount >= 2")
    merge.to("gate")
    fork.service("a1").to("merge")
    fork.service("a2").to("merge")
    gate.when("waitingForStart").service("early")
    run = Driver(compiled(built))
    run.start()
    run.complete("a1")
    assert run.incidents == []
    run.complete("a2")
    assert run.nodes == ["early", "gate"]
    assert run.incidents == [("stuck", "gate")]


def stuck_reset() -> Driver:
    """A gateway whose reset is held back by a token at a join that is stuck."""
    built, gate = gateway("activationCount >= 1", "a", "b")
    gate.when("waitingForStart").service("early")
    gate.when("not waitingForStart").service("late")
    dead = built.parallel("dead")
    dead.to("gate")
    fork = built.at("fork")
    fork.service("c").to("dead")
    way = fork.service("d").exclusive("way")
    way.when("comes").to("dead")
    way.otherwise().end("gone")
    run = Driver(compiled(built))
    run.start(comes=False)
    for node in ("a", "c", "b", "d"):
        run.complete(node)
    assert run.incidents == [("stuck", "gate"), ("stuck", "dead")]
    return run


def test_a_reset_that_is_held_back_by_a_stuck_join_is_stuck_with_it() -> None:
    """Its tokens could never be consumed; resolving resets it with what is there."""
    run = stuck_reset()
    assert run.incident("gate").message.startswith("the gateway Some (gate) can never reset: it holds a token from")
    run.resolve("gate")
    assert sorted(run.nodes) == ["dead", "early", "late"]
    assert gates(run) == []


def test_dropping_the_stuck_join_lets_it_reset() -> None:
    """What held it back is gone."""
    run = stuck_reset()
    run.drop("dead")
    assert run.incidents == []
    assert run.nodes == ["early", "late"]


def test_dropping_a_stuck_reset_ends_its_tokens_and_the_gateway_starts_over() -> None:
    """The next token activates it again; nobody else can come, so that is reset at once."""
    run = stuck_reset()
    run.drop("gate")
    assert gates(run) == []
    assert sorted(run.nodes) == ["dead", "early"]
    run.resolve("dead")
    assert sorted(run.nodes) == ["early", "early", "late"]


def test_a_gate_without_tokens_that_is_held_back_for_ever_is_no_incident() -> None:
    """No token waits there.  But what it would bring on reset is not to be counted on."""
    built, gate = gateway("activationCount >= 1", "a")
    gate.when("waitingForStart").service("early").end("e")
    built.parallel("both").service("after")
    gate.when("not waitingForStart").service("between").to("both")
    dead = built.parallel("dead")
    dead.to("gate")
    fork = built.at("fork")
    fork.service("b").to("both")
    fork.service("c").to("dead")
    way = fork.service("d").exclusive("way")
    way.when("comes").to("dead")
    way.otherwise().end("gone")
    run = Driver(compiled(built))
    run.start(comes=False)
    for node in ("a", "b", "c"):
        run.complete(node)
    assert run.incidents == []
    run.complete("d")
    assert run.incidents == [("stuck", "both"), ("stuck", "dead")]
    run.drop("dead")
    assert run.incidents == []
    run.complete("between")
    assert "after" in run.nodes


def test_a_gate_without_tokens_holds_no_inclusive_join_back() -> None:
    """What it may bring on reset is no token yet; who holds the gate back reaches a filled flow of the join too."""
    built, gate = gateway("activationCount >= 1", "a")
    gate.when("waitingForStart").end("e")
    merge = built.exclusive("merge")
    built.inclusive("join").service("after")
    merge.to("join")
    gate.when("not waitingForStart").to("join")
    fork = built.at("fork")
    fork.service("x").to("merge")
    way = fork.service("b").exclusive("way")
    way.when("comes").to("gate")
    way.otherwise().to("merge")
    run = Driver(compiled(built))
    run.start(comes=True)
    run.complete("a")
    assert gates(run) == [("flow_a_gate",)]
    run.complete("x")
    assert run.nodes == ["after", "b"]


# ------------------------------------------------------------------ forms


def test_without_a_condition_it_joins_like_an_inclusive_gateway() -> None:
    """And has no reset: the next tokens are a new round (a choice)."""
    run = driver(None, "a", "b")
    run.complete("a")
    assert run.nodes == ["gate", "b"]
    run.complete("b")
    assert run.nodes == ["early"]
    assert gates(run) == []
    assert run.said("gateway-reset") == []


def test_one_that_only_splits_takes_every_flow_that_is_open() -> None:
    """One flow in, no condition: each token passes."""
    built = ProcessBuilder("p")
    gate = built.start("s").complex("gate")
    gate.when("waitingForStart").service("a")
    gate.when("False").service("b")
    gate.service("c")
    run = Driver(compiled(built))
    run.start()
    assert run.nodes == ["a", "c"]


def test_one_flow_in_and_a_condition_counts_the_tokens_of_that_flow() -> None:
    """It consumes one of them, and starts over with the rest."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    merge = built.exclusive("merge")
    for name in "abc":
        fork.service(name).to("merge")
    gate = merge.complex("gate", activation="activationCount >= 2")
    gate.when("waitingForStart").service("next")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    assert run.nodes == ["gate", "b", "c"]
    run.complete("b")
    assert run.nodes.count("next") == 1
    run.complete("c")
    assert run.nodes.count("next") == 2
    assert run.incidents == [("stuck", "gate")]


def test_without_outgoing_flow_its_survivor_ends() -> None:
    """An implicit end."""
    built, _ = gateway("activationCount >= 2", "a", "b")
    run = Driver(compiled(built))
    run.start()
    run.complete("a")
    run.complete("b")
    assert run.status is Status.COMPLETED


@pytest.mark.parametrize("activation", [None, "activationCount >= 1"])
def test_a_loop_of_the_gateway_alone_is_a_livelock(activation: str | None) -> None:
    """The step limit stops the token behind it."""
    built = ProcessBuilder("p")
    merge = built.start("s").exclusive("merge")
    gate = merge.complex("gate", activation=activation)
    gate.when("waitingForStart").to("merge")
    run = Driver(compiled(built, hop_limit=20))
    run.start()
    assert [kind for kind, _ in run.incidents] == ["step-limit"]


@pytest.mark.parametrize("width", [100, 1_000])
def test_a_discriminator_over_many_branches_costs_the_same_for_each(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No walk over the graph and no count of the flows at each arrival."""
    asked: list[str] = []
    find_back, ways = reach.find_back, reach.ways_to

    class Counted(dict[str, Any]):
        def __getitem__(self, node: str) -> Any:
            asked.append(node)
            return super().__getitem__(node)

    def walked(program: Any, join: str, sources: Any, is_wanted: Callable[[str], bool]) -> str | None:
        def counted(node: str) -> bool:
            asked.append(node)
            return is_wanted(node)

        return find_back(program, join, sources, counted)

    monkeypatch.setattr(inclusive, "ways_to", lambda program, node: Counted(ways(program, node)))
    monkeypatch.setattr(quantity, "find_back", walked)
    built, gate = gateway("activationCount >= 2", *(f"t{number}" for number in range(width)))
    gate.when("waitingForStart").service("early")
    program = compiled(built)
    state = new_state(identity(program))
    effects = list(apply(program, state, Start(), NOON, budget=10**6).effects)
    for run in effects:
        assert isinstance(run, Run)
        apply(program, state, ActivityCompleted(run.track, run.step, {}), NOON)
    assert [track.node for track in state.tracks.values()] == ["early"]
    assert len(asked) <= 12 * width


def test_an_interrupted_sub_process_takes_its_gates_with_it() -> None:
    """Nothing of them stays, neither tokens nor the memory of those that gave."""
    built = ProcessBuilder("p")
    sub = built.start("s").subprocess("sub")
    fork = sub.inside.start("is").parallel("fork")
    gate = sub.inside.complex("gate", activation="activationCount >= 1 and ready")
    gate.service("next")
    for name in ("a", "b", "c"):
        fork.service(name).to("gate")
    built.boundary("sub", "failed", on=error("E")).service("mend")
    run = Driver(compiled(built))
    run.start(ready=True)
    run.complete("a")
    run.complete("b")
    assert gates(run) == [("flow_a_gate",)]
    run.throw("c", "E")
    assert run.nodes == ["mend"]
    assert gates(run) == []
    assert run.state.gated == {}


def test_explain_says_what_a_gateway_waits_for_in_both_phases() -> None:
    """Its condition, then who holds the reset back; the gate has an id of its own."""
    run = driver("activationCount >= 2", "a", "b", "c", "d")
    run.complete("a")
    token: Track = run.all_at("gate")[0]
    condition = "'activationCount >= 2'"
    assert run.why("gate") == [
        f"token {token.id} at Some (gate) waits at the gateway, which holds flow_a_gate, until {condition} is true",
    ]
    run.complete("b")
    run.complete("c")
    (gate,) = run.state.gates.values()
    assert isinstance(gate, Gate)
    assert run.why("gate")[0].endswith(
        "waits for the reset of the gateway, which holds flow_c_gate, "
        "because a token at d can still come by flow_d_gate"
    )
