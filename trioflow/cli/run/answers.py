"""Answers from a file: what a run needs from outside, written down beforehand.

A JSON object with any of these parts::

    {
      "variables": {"amount": 12},
      "handlers": {"charge-card": {"receipt": "r-1"}},
      "tasks": {"check-order": {"approved": true}},
      "messages": [{"name": "carrier-picked-up", "key": "o-17", "payload": {"parcel": "p-1"}}]
    }

``handlers`` (by handler name) and ``tasks`` (by the id of the user task) give the outputs: one object for every time,
or a list of objects, one for each time, in order.  A message is sent once, when a token waits for it; without ``key``
it fits any key, without ``payload`` it carries none.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from trioflow.errors import InvalidRequest
from trioflow.machine.program import Program
from trioflow.model import Message, UserTask

__all__ = ["Answers", "MessageAnswer", "Supply", "parse_answers", "read_answers"]

Outputs = Mapping[str, Any]

_PARTS = ("variables", "handlers", "tasks", "messages")
_MESSAGE_PARTS = ("name", "key", "payload")
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


@frozen(kw_only=True)
class MessageAnswer:
    """One message to send; ``key`` None fits any key.  ``place`` is where the file says so."""

    name: str
    key: Any = None
    payload: Any = None
    place: str = ""


@frozen(kw_only=True)
class Series:
    """The outputs for one name: ``given`` in order, or one of them every time."""

    given: tuple[Outputs, ...]
    every_time: bool


@frozen(kw_only=True)
class Answers:
    """What a file holds.  ``source`` is its name, for messages about it."""

    source: str = ""
    variables: Outputs = field(factory=dict)
    handlers: Mapping[str, Series] = field(factory=dict)
    tasks: Mapping[str, Series] = field(factory=dict)
    messages: tuple[MessageAnswer, ...] = ()

    def check_against(self, programs: Iterable[Program]) -> None:
        """Refuse, with ``InvalidRequest``, answers for what the model does not have: a slip would never be noticed."""
        programs = tuple(programs)
        nodes = [node.element for program in programs for node in program.nodes.values()]
        roots = [root for program in programs for root in program.graph.roots.values()]
        tasks = {node.id for node in nodes if isinstance(node, UserTask)}
        handlers = {name for program in programs for name in program.handler_names}
        messages = {root.name or root.id for root in roots if isinstance(root, Message)}
        for name in self.handlers:
            self._known(f"handlers.{name}", "handler", name, handlers)
        for name in self.tasks:
            self._known(f"tasks.{name}", "user task", name, tasks)
        for answer in self.messages:
            self._known(f"{answer.place}.name", "message", answer.name, messages)

    def _known(self, place: str, what: str, name: str, known: set[str]) -> None:
        if name not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise _wrong(self.source, place, f"the model has no {what} {name!r} ({has}){_meant(name, known)}")


@define(eq=False)
class Supply:
    """The answers of one run as they are used up."""

    answers: Answers
    _used: dict[tuple[str, str], int] = field(factory=dict)
    _messages: list[MessageAnswer] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._messages = list(self.answers.messages)

    def outputs(self, part: str, name: str) -> Outputs | None:
        """The next outputs for a name of ``handlers`` or ``tasks``; None: there are none (left)."""
        series: Series | None = getattr(self.answers, part).get(name)
        if series is None:
            return None
        if series.every_time:
            return series.given[0]
        at = self._used.get((part, name), 0)
        self._used[(part, name)] = at + 1
        return series.given[at] if at < len(series.given) else None

    def message(self, name: str, key: Any, *, business_key: str | None) -> MessageAnswer | None:
        """Take the first message that fits a wait of that name and key."""
        for answer in self._messages:
            if answer.name == name and _fits(answer.key, key, business_key):
                self._messages.remove(answer)
                return answer
        return None

    @property
    def unused_messages(self) -> tuple[MessageAnswer, ...]:
        """The messages that no token waited for."""
        return tuple(self._messages)


def _fits(given: Any, wanted: Any, business_key: str | None) -> bool:
    """Equal values of equal types; a wait without key takes its instance's business key."""
    if given is None:
        return True
    expected = business_key if wanted is None else wanted
    return type(given) is type(expected) and bool(given == expected)


# ------------------------------------------------------------------ reading


def read_answers(path: Path) -> Answers:
    """The answers of a file; ``InvalidRequest`` names the file, the part that is wrong, and what belongs there."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidRequest(f"cannot read the answers file {str(path)!r}: {reason}") from error
    return parse_answers(text, source=str(path))


def parse_answers(text: str, *, source: str) -> Answers:
    """The answers in a JSON text; ``source`` stands for it in messages."""
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"answers file {source!r}, line {error.lineno}, column {error.colno}: this is no JSON: {error.msg}"
        ) from error
    except ValueError as error:
        raise InvalidRequest(f"answers file {source!r}: {error}") from error
    whole = _object(source, "the whole file", document)
    for name in whole:
        if name not in _PARTS:
            raise _wrong(source, name, f"no such part; the parts are {', '.join(_PARTS)}{_meant(name, _PARTS)}")
    return Answers(
        source=source,
        variables=_object(source, "variables", whole.get("variables", {})),
        handlers=_all_series(source, "handlers", whole.get("handlers", {})),
        tasks=_all_series(source, "tasks", whole.get("tasks", {})),
        messages=_messages(source, whole.get("messages", [])),
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _all_series(source: str, part: str, given: Any) -> dict[str, Series]:
    named = _object(source, part, given)
    return {name: _series(source, f"{part}.{name}", outputs) for name, outputs in named.items()}


def _series(source: str, place: str, given: Any) -> Series:
    if isinstance(given, list):
        outputs = tuple(_object(source, f"{place}[{index}]", each) for index, each in enumerate(given))
        return Series(given=outputs, every_time=False)
    if isinstance(given, dict):
        return Series(given=(given,), every_time=True)
    raise _wrong(source, place, f"expected an object of outputs by name, or a list of them, but it is {_kind(given)}")


def _messages(source: str, given: Any) -> tuple[MessageAnswer, ...]:
    if not isinstance(given, list):
        raise _wrong(source, "messages", f"expected a list of messages, but it is {_kind(given)}")
    return tuple(_message(source, f"messages[{index}]", each) for index, each in enumerate(given))


def _message(source: str, place: str, given: Any) -> MessageAnswer:
    parts = _object(source, place, given)
    for name in parts:
        if name not in _MESSAGE_PARTS:
            known = ", ".join(_MESSAGE_PARTS)
            raise _wrong(source, f"{place}.{name}", f"a message has the parts {known}{_meant(name, _MESSAGE_PARTS)}")
    message = parts.get("name")
    if not isinstance(message, str) or not message:
        raise _wrong(source, f"{place}.name", f"expected the message's name, but it is {_kind(message)}")
    return MessageAnswer(name=message, key=parts.get("key"), payload=parts.get("payload"), place=place)


def _object(source: str, place: str, given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    raise _wrong(source, place, f"expected an object, but it is {_kind(given)}")


def _kind(given: Any) -> str:
    kind = _KINDS.get(type(given), "a number")
    return kind if given is None else f"{kind}: {json.dumps(given, ensure_ascii=False)[:60]}"


def _wrong(source: str, place: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"answers file {source!r}, {place}: {what}")


def _meant(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
