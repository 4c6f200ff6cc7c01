"""The rules about soundness: each with a model that breaks it, one that keeps it, and what the message shows."""

from __future__ import annotations

import pytest

from tests.model.support import Case, assert_case, graph_of, rule_of
from trioflow.model import Definitions, Finding, Level, ProcessBuilder, check
from trioflow.model.builder import compensate, error, message, terminate, timer
from trioflow.model.soundness import RULES, findings


def deadlock(process: ProcessBuilder, *, broken: bool) -> None:
    """Alternatives are merged by an exclusive gateway."""
    split = process.start("s").exclusive("split")
    join = process.parallel("bad") if broken else process.exclusive("bad")
    split.when("x").task("a").to(join)
    split.otherwise().task("b").to(join)
    join.end("e")


def join_never_fires(process: ProcessBuilder, *, broken: bool) -> None:
    """A way back is merged by an exclusive gateway."""
    process.start("s").to(process.parallel("bad") if broken else process.exclusive("bad"))
    again = process.at("bad").task("a").exclusive("again")
    again.when("x").to("bad")
    again.otherwise().end("e")


def lack_of_synchronisation(process: ProcessBuilder, *, broken: bool) -> None:
    """Parallel branches are joined by a parallel gateway."""
    split = process.start("s").parallel("split")
    join = process.exclusive("bad") if broken else process.parallel("bad")
    split.task("a").to(join)
    split.task("b").to(join)
    join.end("e")


def endless_loop(process: ProcessBuilder, *, broken: bool) -> None:
    """A loop has a way out."""
    process.start("s").exclusive("bad").task("a").exclusive("c").when("x").to("bad")
    process.at("c").otherwise().to("bad" if broken else process.end("e"))


def dead_nodes(process: ProcessBuilder, *, broken: bool) -> None:
    """A cycle is reached from outside of it."""
    process.start("s").parallel("fork").end("e")
    process.exclusive("bad").task("a").to("bad")
    if not broken:
        process.at("fork").to("bad")


def compensation_uncaught(process: ProcessBuilder, *, broken: bool) -> None:
    """What is compensated can be undone."""
    booked = process.start("s").task("book")
    if not broken:
        booked.boundary("undo", on=compensate()).undone_by(process.task("unbook", for_compensation=True))
    booked.end("bad", on=compensate("book"))


CASES = (deadlock, join_never_fires, lack_of_synchronisation, endless_loop, dead_nodes, compensation_uncaught)


@pytest.mark.parametrize("case", CASES, ids=rule_of)
def test_rules(case: Case) -> None:
    """Each rule finds its culprit, and nothing in the model that keeps it."""
    assert_case(case)


def test_every_rule_has_a_case_and_warns() -> None:
    """No rule of the package is without a case, and none refuses a model."""
    assert [rule.name for rule in RULES] == [rule_of(case) for case in CASES]
    assert {rule.level for rule in RULES} == {Level.WARNING}


def test_findings_are_those_of_the_rules() -> None:
    """One analysis for all rules finds what each rule finds by itself."""
    for case in CASES:
        process = ProcessBuilder("p")
        case(process, broken=True)
        graph = graph_of(process.build())

        assert list(findings(graph)) == [found for rule in RULES for found in rule.findings(graph)]


# ------------------------------------------------------------------ what a finding shows


def warnings(definitions: Definitions) -> dict[str, Finding]:
    """The warnings of the soundness rules, by the element they are about."""
    names = {rule.name for rule in RULES}
    return {finding.element_id: finding for finding in check(definitions) if finding.rule in names}


def test_a_deadlock_shows_the_way_from_the_split_to_the_join() -> None:
    """The message names the nodes of the way in their order, the flow on which nothing comes, and the decision."""
    process = ProcessBuilder("p")
    split = process.start("s").parallel("split")
    join = split.task("a").parallel("join")
    work = split.task("b")
    work.to(join).end("e")
    work.boundary("late", on=timer(duration="PT1H")).end("gave_up")

    message_text = warnings(process.build())["join"].message

    assert "'split' -> 'a' -> 'join'" in message_text
    assert "none comes by 'flow_b_join'" in message_text
    assert message_text.startswith("Once the way by 'late' is taken, a token waits here for ever")


def test_two_tokens_show_both_ways() -> None:
    """The message names both ways, from where the tokens parted to where they meet."""
    process = ProcessBuilder("p")
    lack_of_synchronisation(process, broken=True)

    text = warnings(process.build())["bad"].message

    assert "'split' -> 'a' -> 'bad'" in text
    assert "'split' -> 'b' -> 'bad'" in text


def test_a_long_way_is_shortened() -> None:
    """Of a way of more than twelve nodes the first and the last six are shown."""
    process = ProcessBuilder("p")
    path = process.start("s").parallel("split")
    join = path.parallel("join")
    path.exclusive("x").when("y").to(join)
    process.at("x").otherwise().end("gone")
    long = ProcessBuilder("q")
    at = long.start("s").parallel("bad")
    for number in range(20):
        at = at.task(f"t{number}")
    at.to("bad")

    (finding,) = warnings(long.build()).values()

    assert finding.rule == "join-never-fires"
    assert finding.message.count("->") <= 12
    assert "join" in warnings(process.build())


# ------------------------------------------------------------------ what is no flaw


def test_what_ends_the_scope_leaves_nothing_waiting() -> None:
    """A token that ends in a terminate or error end event takes those that wait at a join with it."""
    for end in (terminate(), error("E")):
        process = ProcessBuilder("p")
        split = process.start("s").parallel("split")
        join = split.task("a").parallel("join")
        choice = split.exclusive("choice")
        choice.when("x").to(join)
        choice.otherwise().end("stop", on=end)
        join.end("e")

        assert not warnings(process.build())


def test_tokens_that_end_side_by_side_do_no_harm() -> None:
    """Parallel branches may lead to one end event, which is no merge."""
    process = ProcessBuilder("p")
    split = process.start("s").parallel("split")
    split.task("a").to(process.end("e"))
    split.task("b").to("e")

    assert not warnings(process.build())


def test_an_endless_loop_may_be_ended_from_outside() -> None:
    """A loop without a way out is meant, if an event of its host or an event sub-process ends it."""
    process = ProcessBuilder("p")
    with process.start("s").subprocess("poll") as inside:
        inside.start("ps").exclusive("again").task("ask").to("again")
    process.at("poll").end("e")
    assert "again" in warnings(process.build())

    process.at("poll").boundary("enough", on=message("stop", key="id")).end("stopped")
    assert not warnings(process.build())


def test_two_decisions_that_data_may_tie_together_are_no_flaw() -> None:
    """A merge that gets two tokens only if two conditions go a certain way each is not reported."""
    process = ProcessBuilder("p")
    split = process.start("s").parallel("split")
    merge = process.exclusive("merge")
    for name in ("a", "b"):
        choice = split.exclusive(name)
        choice.when(name).to(merge)
        choice.otherwise().end(f"no_{name}")
    merge.end("e")

    assert not warnings(process.build())


def test_a_signal_that_its_own_process_throws_may_always_come() -> None:
    """A join with the flow of a boundary event for a message is not reported: the message may be sure to come."""
    process = ProcessBuilder("p")
    split = process.start("s").parallel("split")
    join = split.task("a").parallel("join")
    waits = split.user("waits")
    waits.end("too_early")
    waits.boundary("told", on=message("go", key="id")).to(join)
    join.end("e")

    assert not warnings(process.build())


def test_a_called_process_may_have_something_to_undo() -> None:
    """A throw that compensates a call is not reported: what the called process leaves to undo is not known here."""
    process = ProcessBuilder("p")
    process.start("s").call("other", process="q").end("e", on=compensate())

    assert not warnings(process.build())
