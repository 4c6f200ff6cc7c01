"""The documents: golden files of each schema, values of every kind, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest

from tests.checkpoint.histories import GOLDEN, HISTORIES, VALUES
from tests.machine.support import NOON, Driver, compiled, differences, identity
from trioflow.checkpoint.documents import SCHEMA, Documents
from trioflow.errors import CorruptRecord
from trioflow.machine.apply import apply, new_state
from trioflow.machine.derive import derive
from trioflow.machine.events import Start
from trioflow.machine.invariants import violations
from trioflow.machine.state import MessageWait
from trioflow.model.builder import ProcessBuilder
from trioflow.values import ValueCodec

DOCUMENTS = Documents(ValueCodec())


def golden(name: str, schema: int = SCHEMA) -> bytes:
    """The document of that name, as that schema wrote it."""
    return (GOLDEN / f"{name}.{schema}.json").read_bytes().rstrip(b"\n")


@pytest.mark.parametrize("name", HISTORIES)
def test_documents_of_schema_1_are_read_and_mean_what_they_meant(name: str) -> None:
    """Each golden file folds to the state that its history makes, and every invariant holds in it."""
    run = HISTORIES[name]()
    folded = DOCUMENTS.fold((golden(name, 1),), instance_id="i-1")
    derive(run.program, folded)
    assert differences(run.state, folded) == []
    assert violations(run.program, folded) == []


@pytest.mark.parametrize("name", HISTORIES)
def test_the_same_state_is_written_in_the_same_bytes(name: str) -> None:
    """A change of what is written shows here: it needs another schema version and an upgrade of this one."""
    assert DOCUMENTS.base(HISTORIES[name]().state) == golden(name)


def test_every_golden_file_has_its_history() -> None:
    """None is left behind untested."""
    assert {path.name.split(".")[0] for path in GOLDEN.glob("*.json")} == set(HISTORIES)


def test_a_document_is_what_the_table_says() -> None:
    """One small state, written out by hand: short keys, no defaults, no derived attributes, ids as keys."""
    built = ProcessBuilder("p")
    built.start("s").service("work")
    run = Driver(compiled(built))
    run.start(x=1)
    document = orjson.loads(DOCUMENTS.base(run.state))
    assert document == {
        "v": 1,
        "i": {
            "instance_id": "i-1",
            "root_id": "i-1",
            "process_key": "p",
            "version": 1,
            "digest": run.program.digest,
            "digest_algorithm": run.program.digest_algorithm,
            "created": "2026-03-02T12:00:00+00:00",
        },
        "h": {
            "now": "2026-03-02T12:00:00+00:00",
            "status": "active",
            "since": "2026-03-02T12:00:00+00:00",
            "counter": 3,
        },
        "s": {"1": {"node": "p"}},
        "t": {
            "2": {
                "node": "work",
                "scope": 1,
                "flow": "flow_s_work",
                "state": "executing",
                "entry": 1,
                "attempt": 1,
                "step": 3,
            }
        },
        "d": {"1": {"x": 1}},
        "e": {"1": {"work": 1}},
    }


@pytest.mark.parametrize("name", VALUES)
def test_values_of_every_kind_survive_in_variables_with_their_types(name: str) -> None:
    """Equal, and of the same type, zone and precision."""
    value = HISTORIES["completed"]().data[name]
    folded = DOCUMENTS.fold((golden("completed"),), instance_id="i-1")
    restored = next(iter(folded.scopes.values())).data[name]
    assert (restored, type(restored), repr(restored)) == (value, type(value), repr(value))
    assert value == VALUES[name]


def test_not_a_number_survives_too() -> None:
    """It equals nothing, not even itself, so it is no part of the golden files."""
    built = ProcessBuilder("p")
    built.start("s").service("work")
    state = new_state(identity(compiled(built)))
    apply(compiled(built), state, Start(variables={"x": math.nan}), NOON)
    folded = DOCUMENTS.fold((DOCUMENTS.base(state),), instance_id="i-1")
    assert math.isnan(next(iter(folded.scopes.values())).data["x"])


def test_keys_of_every_kind_survive_in_message_waits() -> None:
    """A correlation key is a value like any other."""
    folded = DOCUMENTS.fold((golden("keyed"),), instance_id="i-1")
    keys = [wait.key for wait in folded.waits.values() if isinstance(wait, MessageWait)]
    assert keys == [VALUES[name] for name in ("decimal", "uuid", "moment", "record", "large")]


# ------------------------------------------------------------------ what is refused


def broken(part: str, *path: Any, to: Any = ...) -> bytes:
    """The golden document of `waiting` with one place changed (or removed, without ``to``)."""
    document = orjson.loads(golden("waiting"))
    place, keys = document, (part, *path)
    for key in keys[:-1]:
        place = place[key] if key in place else place[next(iter(place))]
    key = keys[-1] if keys[-1] in place or to is not ... else next(iter(place))
    if to is ...:
        del place[key]
    else:
        place[key] = to
    return orjson.dumps(document)


WHOLE = golden("waiting")

CORRUPT = {
    "truncated": ((WHOLE[:-20],), "JSONDecodeError"),
    "empty-bytes": ((b"",), "JSONDecodeError"),
    "no-piece": ((), "there is no piece"),
    "not-utf-8": ((b"\xff\xfe",), "JSONDecodeError"),
    "a-list": ((b"[]",), "a piece is an object"),
    "null": ((b"null",), "a piece is an object"),
    "empty-object": ((b"{}",), "document schema None, this version reads 1"),
    "newer-schema": ((broken("v", to=2),), "document schema 2"),
    "no-identity": ((broken("i"),), "KeyError: 'i'"),
    "no-header": ((broken("h"),), "KeyError: 'h'"),
    "unknown-part": ((broken("z", to={}),), "unknown parts z"),
    "unknown-wait": ((broken("w", "first", "k", to="sundial"),), "unknown kind 'sundial'"),
    "wait-without-kind": ((broken("w", "first", "k"),), "unknown kind ''"),
    "unknown-attribute": ((broken("t", "first", "colour", to="red"),), "colour"),
    "missing-attribute": ((broken("t", "first", "node"),), "node"),
    "text-for-a-number": ((broken("t", "first", "scope", to="1"),), "expected int, found '1'"),
    "number-for-a-text": ((broken("t", "first", "node", to=1),), "expected str, found 1"),
    "true-for-a-number": ((broken("h", "counter", to=True),), "expected int, found True"),
    "unknown-state": ((broken("t", "first", "state", to="dreaming"),), "dreaming"),
    "unknown-status": ((broken("h", "status", to="dreaming"),), "dreaming"),
    "no-time": ((broken("h", "now", to="noon"),), "noon"),
    "time-without-zone": ((broken("h", "now", to="2026-03-02T12:00:00"),), "has no zone"),
    "entity-is-a-list": ((broken("t", "first", to=[]),), ""),
    "unknown-value-tag": ((broken("d", "first", "order", to={"$": "colour", "v": 1}),), ""),
    "scope-missing": ((broken("s", "first"),), ""),
    "track-missing": ((broken("t", "first"),), "track 2 is missing"),
    "another-instance's": ((broken("i", "instance_id", to="i-2"),), "it is the state of 'i-2'"),
    "tail-alone": ((b'{"v":1,"t":{}}',), "KeyError: 'i'"),
    "second-piece-truncated": ((WHOLE, b'{"v":1,'), "JSONDecodeError"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_what_cannot_be_read_is_refused_by_the_name_of_its_instance(name: str) -> None:
    """Loud, for that instance, with the reason; never half a state."""
    pieces, reason = CORRUPT[name]
    with pytest.raises(CorruptRecord) as caught:
        DOCUMENTS.fold(pieces, instance_id="i-1")
    assert caught.value.instance_id == "i-1"
    assert "instance 'i-1'" in str(caught.value)
    assert reason in str(caught.value)


def test_times_in_the_tests_are_those_of_the_store() -> None:
    """The golden documents were written at noon of the driver's clock."""
    assert orjson.loads(golden("created"))["h"]["now"] == NOON.isoformat()
