"""The answers file: what it gives, in which order, and what is said about a wrong one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.support import EXAMPLES
from trioflow.cli.run.answers import Answers, MessageAnswer, Supply, parse_answers, read_answers
from trioflow.errors import InvalidRequest

WRONG = {
    "no JSON": ('{"tasks": ', "line 1, column 11"),
    "no number of JSON": ('{"variables": {"x": NaN}}', "NaN is no number of JSON"),
    "no object": ("[1]", "the whole file: expected an object, but it is a list: [1]"),
    "an unknown part": (
        '{"task": {}}',
        "task: no such part; the parts are variables, handlers, tasks, messages; did you mean 'tasks'?",
    ),
    "variables in a list": ('{"variables": []}', "variables: expected an object, but it is a list: []"),
    "outputs that are a text": (
        '{"tasks": {"check": "yes"}}',
        "tasks.check: expected an object of outputs by name, or a list",
    ),
    "one output of a list": (
        '{"handlers": {"a": [{}, 7]}}',
        "handlers.a[1]: expected an object, but it is a number: 7",
    ),
    "messages in an object": ('{"messages": {}}', "messages: expected a list of messages, but it is an object: {}"),
    "a message without name": (
        '{"messages": [{"key": 1}]}',
        "messages[0].name: expected the message's name, but it is null",
    ),
    "a message with more": (
        '{"messages": [{"name": "a", "body": 1}]}',
        "messages[0].body: a message has the parts name, key, payload",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_refused_with_the_part_that_is_wrong(name: str) -> None:
    """The message names the file, the path of the part, what belongs there and what stands there."""
    text, said = WRONG[name]

    with pytest.raises(InvalidRequest) as caught:
        parse_answers(text, source="a.json")

    assert said in str(caught.value)
    assert "'a.json'" in str(caught.value)


def test_the_example_can_be_read() -> None:
    """The answers of the examples hold all four parts."""
    answers = read_answers(EXAMPLES / "order-answers.json")

    assert answers.variables == {"order_id": "o-1001", "amount": 240}
    assert set(answers.tasks) == {"check-order"}
    assert len(answers.handlers) == 5
    assert answers.messages == (
        MessageAnswer(name="carrier-picked-up", key="o-1001", payload={"parcel": "p-77"}, place="messages[0]"),
    )


def supply(**parts: Any) -> Supply:
    """The supply of a file with these parts."""
    return Supply(parse_answers(json.dumps(parts), source="a.json"))


def test_one_object_answers_every_time_and_a_list_once_each() -> None:
    """An object is given again and again; a list in its order, and then there is nothing left."""
    given = supply(tasks={"always": {"n": 0}, "twice": [{"n": 1}, {"n": 2}]})

    assert [given.outputs("tasks", "always") for _ in range(3)] == [{"n": 0}] * 3
    assert [given.outputs("tasks", "twice") for _ in range(3)] == [{"n": 1}, {"n": 2}, None]
    assert given.outputs("tasks", "other") is None
    assert given.outputs("handlers", "always") is None


@pytest.mark.parametrize(
    "given,wanted,business_key,fits",
    [
        (None, "o-1", None, True),
        ("o-1", "o-1", None, True),
        ("o-1", "o-2", None, False),
        (1, True, None, False),
        (1, 1.0, None, False),
        ("o-1", None, "o-1", True),
        ("o-1", None, "o-2", False),
        ("o-1", None, None, False),
    ],
)
def test_a_message_fits_by_name_and_key(given: Any, wanted: Any, business_key: str | None, *, fits: bool) -> None:
    """Keys are equal in value and type; none in the file fits any; a wait without key takes the business key."""
    message = MessageAnswer(name="paid", key=given)

    found = Supply(Answers(messages=(message,))).message("paid", wanted, business_key=business_key)

    assert (found is message) == fits


def test_each_message_is_sent_once_and_what_is_left_is_known() -> None:
    """Two messages of one name serve two waits in order; a third stays, and is reported as unused."""
    first, second, other = (MessageAnswer(name=name, payload=n) for n, name in enumerate(("a", "a", "b")))
    given = Supply(Answers(messages=(first, second, other)))

    assert given.message("a", "k", business_key=None) is first
    assert given.message("a", "k", business_key=None) is second
    assert given.message("a", "k", business_key=None) is None
    assert given.unused_messages == (other,)
