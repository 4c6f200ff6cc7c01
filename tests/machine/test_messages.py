"""Message catch events (semantics sections 3 and 7)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.machine.support import Driver, compiled
from trioflow.facts import Status
from trioflow.machine.events import MessageArrived
from trioflow.machine.state import MessageWait
from trioflow.model.builder import ProcessBuilder, message


def waiting(key: str | None = None) -> ProcessBuilder:
    """A process that waits for the message `paid`."""
    built = ProcessBuilder("p")
    built.start("s").catch("c", on=message("paid", key=key)).end("e")
    return built


@pytest.mark.parametrize(
    "key, variables, expected",
    [
        pytest.param(None, {}, None, id="without-key"),
        pytest.param("order", {"order": 17}, 17, id="a-variable"),
        pytest.param("[shop, order]", {"order": 17, "shop": "x"}, ["x", 17], id="several"),
    ],
)
def test_the_subscription_is_the_name_and_the_key_when_it_is_armed(
    key: str | None, variables: Any, expected: Any
) -> None:
    """The key expression is evaluated when the token arrives."""
    run = Driver(compiled(waiting(key)))
    run.start(**variables)
    wait = run.wait("c", MessageWait)
    assert (wait.name, wait.key) == ("paid", expected)


@pytest.mark.parametrize("key", ["order", "missing"], ids=["null", "raises"])
def test_a_key_that_is_null_or_fails_is_an_incident_and_not_a_wait_by_name(key: str) -> None:
    """Nothing could match it; the retry evaluates it again."""
    run = Driver(compiled(waiting(key)))
    run.start(order=None)
    assert run.incidents == [("expression", "c")]
    run.retry("c", {"order": 1, "missing": 1})
    assert run.wait("c", MessageWait).key == 1


@pytest.mark.parametrize(
    "payload, written",
    [
        pytest.param({"amount": 5, "by": ["x"]}, {"amount": 5, "by": ["x"]}, id="record-by-name"),
        pytest.param("cash", {"paid": "cash"}, id="scalar-under-the-message's-name"),
        pytest.param([1, 2], {"paid": [1, 2]}, id="list-under-the-message's-name"),
        pytest.param(None, {}, id="null-writes-nothing"),
        pytest.param({}, {}, id="empty-record"),
    ],
)
def test_the_payload_is_written_and_the_delivery_consumed(payload: Any, written: Any) -> None:
    """The message is consumed in the transition that moves the token."""
    run = Driver(compiled(waiting()))
    run.start()
    transition = run.receive("c", payload, delivery=8)
    assert (transition.consumed, transition.declined) == ([8], [])
    assert run.data == written
    assert run.status is Status.COMPLETED
    assert run.store.rows == {}


def test_a_wait_that_is_gone_or_another_one_declines() -> None:
    """The delivery is given back, to be matched again: no such wait, another name, an instance that has ended."""
    built = ProcessBuilder("p")
    fork = built.start("s").parallel("fork")
    fork.catch("c", on=message("paid"))
    fork.user("u")
    run = Driver(compiled(built))
    run.start()
    wait, task = run.wait("c", MessageWait).id, run.at("u").wait
    assert task is not None
    cases = [(999, "paid"), (task.id, "paid"), (wait, "sent")]
    for number, (wait_id, name) in enumerate(cases):
        transition = run.apply(MessageArrived(wait=wait_id, delivery=number, name=name))
        assert (transition.consumed, transition.declined) == ([], [number])
    run.receive("c")
    run.complete("u")
    transition = run.apply(MessageArrived(wait=wait, delivery=7, name="paid"))
    assert (transition.consumed, transition.declined) == ([], [7])


def test_of_two_deliveries_to_one_wait_the_second_is_declined() -> None:
    """A wait is served once."""
    built = ProcessBuilder("p")
    built.start("s").catch("c", on=message("paid")).service("after")
    run = Driver(compiled(built))
    run.start()
    wait = run.wait("c", MessageWait).id
    run.receive("c", delivery=1)
    transition = run.apply(MessageArrived(wait=wait, delivery=2, name="paid"))
    assert transition.declined == [2]


def unwritable() -> Driver:
    """An instance that got a payload with a name that no variable can have."""
    built = ProcessBuilder("p")
    built.start("s").catch("c", on=message("paid")).service("after")
    run = Driver(compiled(built))
    run.start()
    transition = run.receive("c", {"": 1, "amount": 2}, delivery=3)
    assert transition.consumed == [3]
    assert run.incidents == [("unstorable-value", "c")]
    assert run.data == {}
    return run


def test_a_payload_that_cannot_be_written_is_an_incident_whose_retry_waits_again() -> None:
    """All or nothing is written; the message is consumed, and the retry waits for the next one."""
    run = unwritable()
    run.retry("c")
    assert run.nodes == ["c"]
    run.receive("c", {"amount": 2})
    assert (run.nodes, run.data) == (["after"], {"amount": 2})


def test_a_payload_that_cannot_be_written_can_be_given_by_hand() -> None:
    """Resolving the incident writes the outputs and goes on."""
    run = unwritable()
    run.resolve("c", amount=2)
    assert (run.nodes, run.data) == (["after"], {"amount": 2})
