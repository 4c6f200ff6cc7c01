"""Entities and their JSON: how a state is written into pieces and folded out of them again.

A piece is one JSON object.  Keys are short because they are written once per entity:

====  ==========================================================================================
``v``  the schema version
``i``  identity (in every base, and in the first piece)
``h``  header
``s``  scopes: id to entity, null: gone (with its data and entries)
``d``  data: scope id to {name: value}
``c``  items of a loop: scope id to {index: value}
``e``  entries: scope id to {node: count}
``t``  tracks, ``w`` waits, ``a`` arrivals, ``g`` gates, ``l`` ledger, ``p`` sweeps, ``n`` incidents:
       id to entity, null: gone
====  ==========================================================================================

Entities are structured by cattrs, without their derived attributes and without defaults; the kind of a wait is an
explicit tag.  Values go through the value codec.  What cannot be read is refused for that instance, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar

import orjson
from attrs import frozen
from cattrs import Converter
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from trioflow.errors import CorruptRecord
from trioflow.machine.state import (
    AdHocWait,
    Arrival,
    CallWait,
    ConditionWait,
    DataWait,
    Entry,
    FailedArming,
    Gate,
    Gathering,
    Header,
    Identity,
    Incident,
    LedgerEntry,
    MessageWait,
    RetryWait,
    Scope,
    SignalWait,
    State,
    Sweep,
    SweepWait,
    Table,
    TaskWait,
    TimerWait,
    Track,
)
from trioflow.values import Value, ValueCodec

__all__ = ["SCHEMA", "Documents"]

SCHEMA = 1
"""The version of the document that this code writes; older ones are upgraded when they are read."""

T = TypeVar("T")


@frozen
class _Kind:
    """How one kind of entity is written: its tag in a table of several kinds, what is derived, what holds values.

    ``values``: attributes that hold canonical values (an anchor and a due date keep their time zone).
    """

    tag: str = ""
    derived: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()


_SCOPE = frozenset(
    {
        "data",
        "items",
        "tracks",
        "handlers",
        "armed",
        "folded",
        "opening",
        "occupied",
        "held",
        "vacated",
        "doubted",
        "joins",
    }
)
_TABLES: Mapping[str, tuple[str, Mapping[type, _Kind]]] = {
    "s": ("scopes", {Scope: _Kind(derived=_SCOPE)}),
    "t": ("tracks", {Track: _Kind(derived=frozenset({"hops", "wait", "armed", "incident", "hosted"}))}),
    "w": (
        "waits",
        {
            TimerWait: _Kind("timer", values=frozenset({"anchor"})),
            MessageWait: _Kind("message", values=frozenset({"key"})),
            SignalWait: _Kind("signal"),
            ConditionWait: _Kind("condition"),
            Gathering: _Kind("gathering", values=frozenset({"came"})),
            FailedArming: _Kind("failed-arming", derived=frozenset({"incident"})),
            TaskWait: _Kind("task", values=frozenset({"due"})),
            RetryWait: _Kind("retry"),
            SweepWait: _Kind("sweep"),
            DataWait: _Kind("data"),
            AdHocWait: _Kind("ad-hoc"),
            CallWait: _Kind("call"),
        },
    ),
    "a": ("arrivals", {Arrival: _Kind()}),
    "g": ("gates", {Gate: _Kind()}),
    "l": ("ledger", {LedgerEntry: _Kind(values=frozenset({"data"}))}),
    "p": ("sweeps", {Sweep: _Kind(derived=frozenset({"queue", "running"}))}),
    "n": ("incidents", {Incident: _Kind()}),
}
"""The tables of a state: the key in a document, the attribute, and the kinds of entity in it.

An entity's id is the key it stands under, so it is not written.
"""
_KINDS: Mapping[type, _Kind] = {
    Header: _Kind(),
    Identity: _Kind(),
    **{cls: kind for _, kinds in _TABLES.values() for cls, kind in kinds.items()},
}


class Documents:
    """Writes and reads pieces; one per engine, because the value codec knows the engine's registered types."""

    def __init__(self, codec: ValueCodec) -> None:
        self.codec = codec
        self._converter = _converter()
        self._unstructure = {cls: self._writer(cls, kind) for cls, kind in _KINDS.items()}
        self._structure = {cls: self._reader(cls, kind) for cls, kind in _KINDS.items()}

    # -------------------------------------------------------------- writing

    def base(self, state: State) -> bytes:
        """The whole state as one piece."""
        tables = _tables(state)
        document: dict[str, Any] = {
            "v": SCHEMA,
            "i": self._unstructure[Identity](state.identity),
            "h": self._unstructure[Header](state.header),
            **{key: {str(e.id): self._entity(e) for e in table.values()} for key, table in tables.items() if table},
            "d": {
                str(s.id): {n: self.codec.encode(v) for n, v in s.data.items()} for s in state.scopes.values() if s.data
            },
            "e": _entries(state, state.entries),
        }
        if any(scope.items for scope in state.scopes.values()):
            document["c"] = self._items(state)
        return _bytes(document)

    def piece(self, state: State) -> bytes:
        """What was touched since the last capture, in absolute values."""
        document: dict[str, Any] = {"v": SCHEMA}
        if state.touched_identity:
            document["i"] = self._unstructure[Identity](state.identity)
        if state.touched_header:
            document["h"] = self._unstructure[Header](state.header)
        for key, table in _tables(state).items():
            if table.touched:
                document[key] = self._touched(table, state.stored)
        if state.touched_data:
            document["d"] = self._touched_data(state)
        if state.touched_items:
            document["c"] = self._touched_items(state)
        if state.touched_entries:
            document["e"] = _entries(state, state.touched_entries)
        return _bytes(document)

    def _entity(self, entity: Any) -> dict[str, Any]:
        written: dict[str, Any] = self._unstructure[type(entity)](entity)
        tag = _KINDS[type(entity)].tag
        if tag:
            written["k"] = tag
        return written

    def _touched(self, table: Table[Any], stored: int) -> dict[str, Any]:
        rows: dict[str, Any] = {}
        for key, entity in table.touched.items():
            if key in table:
                rows[str(key)] = self._entity(entity)
            elif key <= stored:
                rows[str(key)] = None
        return rows

    def _touched_data(self, state: State) -> dict[str, dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for scope_id, name in state.touched_data:
            scope = state.scopes.get(scope_id)
            if scope is not None:
                rows.setdefault(str(scope_id), {})[name] = self.codec.encode(scope.data[name])
        return rows

    def _items(self, state: State) -> dict[str, dict[str, Any]]:
        encode = self.codec.encode
        return {
            str(scope.id): {str(index): encode(value) for index, value in scope.items.items()}
            for scope in state.scopes.values()
            if scope.items
        }

    def _touched_items(self, state: State) -> dict[str, dict[str, Any]]:
        rows: dict[str, dict[str, Any]] = {}
        for scope_id, index in state.touched_items:
            scope = state.scopes.get(scope_id)
            if scope is not None:
                rows.setdefault(str(scope_id), {})[str(index)] = self.codec.encode(scope.items.get(index))
        return rows

    def write_value(self, value: Value) -> bytes:
        """A canonical value alone, as a message's payload is stored."""
        return orjson.dumps(self.codec.encode(value))

    # -------------------------------------------------------------- reading

    def read_value(self, payload: bytes) -> Value:
        """What ``write_value`` wrote."""
        return self.codec.decode(orjson.loads(payload))

    def fold(self, pieces: tuple[bytes, ...], *, instance_id: str) -> State:
        """The state that the pieces make, in slot order; its entities in the order of ids.

        Raises ``CorruptRecord`` naming the instance and what could not be read.
        """
        try:
            return self._fold(pieces, instance_id)
        except Exception as error:  # whatever a document makes a reader raise, it is that document
            message = f"the stored state of instance {instance_id!r} cannot be read: {type(error).__name__}: {error}"
            raise CorruptRecord(message, instance_id=instance_id) from error

    def _fold(self, pieces: tuple[bytes, ...], instance_id: str) -> State:
        merged = _merged(pieces)
        identity = self._structure[Identity](merged["i"], Identity)
        header = self._structure[Header](merged["h"], Header)
        state = State(identity, header)
        for key, (attribute, kinds) in _TABLES.items():
            self._fill(getattr(state, attribute), merged[key], kinds)
        for key, names in merged["d"].items():
            state.scopes[int(key)].data = {name: self.codec.decode(value) for name, value in names.items()}
        for key, items in merged["c"].items():
            rows = ((int(index), self.codec.decode(value)) for index, value in items.items())
            state.scopes[int(key)].items = dict(sorted(rows))
        for key, nodes in merged["e"].items():
            for node, count in nodes.items():
                state.entries[(int(key), node)] = Entry(int(key), node, count)
        state.stored = header.counter
        state.touched_header = state.touched_identity = False
        _check_references(state, instance_id)
        return state

    def _fill(self, table: Table[Any], rows: dict[str, Any], kinds: Mapping[type, _Kind]) -> None:
        by_tag = {kind.tag: cls for cls, kind in kinds.items()}
        for key in sorted(map(int, rows)):
            row = rows[str(key)]
            row["id"] = key
            tag = row.pop("k", "")
            cls = by_tag.get(tag)
            if cls is None:
                raise ValueError(f"entity {key} is of the unknown kind {tag!r}")
            table[key] = self._structure[cls](row, cls)

    # -------------------------------------------------------------- cattrs

    def _writer(self, cls: type, kind: _Kind) -> Callable[[Any], dict[str, Any]]:
        special: dict[str, Any] = {name: override(omit=True) for name in _left_out(cls, kind)}
        special.update({name: override(unstruct_hook=self.codec.encode) for name in kind.values})
        return make_dict_unstructure_fn(cls, self._converter, _cattrs_omit_if_default=True, **special)

    def _reader(self, cls: type, kind: _Kind) -> Callable[[Any, Any], Any]:
        special: dict[str, Any] = {name: override(omit=True) for name in kind.derived}
        special.update({name: override(struct_hook=lambda value, _: self.codec.decode(value)) for name in kind.values})
        return make_dict_structure_fn(
            cls, self._converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=False, **special
        )


def _left_out(cls: type, kind: _Kind) -> frozenset[str]:
    return kind.derived if cls in {Header, Identity} else kind.derived | {"id"}


def _converter() -> Converter:
    converter = Converter(detailed_validation=False)
    converter.register_unstructure_hook(datetime, datetime.isoformat)
    converter.register_structure_hook(datetime, lambda text, _: _moment(text))
    converter.register_unstructure_hook(Enum, lambda member: member.value)
    for scalar in (int, str, bool):
        # By class: a hook by predicate would come after those that cattrs has for them.
        converter.register_structure_hook(scalar, _exactly(scalar))
    return converter


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"the time {text!r} has no zone")
    return moment


def _exactly(scalar: type[T]) -> Callable[[Any, Any], T]:
    """Refuse what is not of the type, where cattrs would convert it: a wrong document must not be read as a right one.

    The hook is asked for the enums over the type too.
    """

    def check(value: Any, cls: type[T]) -> T:
        if type(value) is not scalar:
            raise TypeError(f"expected {scalar.__name__}, found {value!r}")
        return value if cls is scalar else cls(value)  # type: ignore[call-arg]  # an enum takes its member's value

    return check


def _check_references(state: State, instance_id: str) -> None:
    """Refuse pieces of another instance, and ids of entities that are not there: a piece was lost or mixed up."""
    if state.identity.instance_id != instance_id:
        raise ValueError(f"it is the state of {state.identity.instance_id!r}")
    scopes, tracks = state.scopes, state.tracks
    open_incidents = list(state.open_incidents())
    needed: tuple[tuple[str, Iterable[int | None], Table[Any]], ...] = (
        ("scope", (scope.parent for scope in scopes.values()), scopes),
        ("track", (scope.host for scope in scopes.values()), tracks),
        ("scope", (track.scope for track in tracks.values()), scopes),
        ("track", (wait.track or None for wait in state.waits.values()), tracks),
        ("scope", (wait.scope or None for wait in state.waits.values()), scopes),
        ("scope", (arrival.scope for arrival in state.arrivals.values()), scopes),
        ("track", (arrival.track for arrival in state.arrivals.values()), tracks),
        ("scope", (gate.scope for gate in state.gates.values()), scopes),
        ("sweep", (entry.sweep or None for entry in state.ledger.values()), state.sweeps),
        ("entry", (sweep.entry or None for sweep in state.sweeps.values()), state.ledger),
        ("entry", (scope.undoes or None for scope in scopes.values()), state.ledger),
        ("scope", (sweep.scope for sweep in state.sweeps.values()), scopes),
        ("track", (sweep.carrier for sweep in state.sweeps.values()), tracks),
        ("scope", (incident.scope for incident in open_incidents), scopes),
        ("wait", (incident.wait or None for incident in open_incidents), state.waits),
        ("track", (incident.track or None for incident in open_incidents), tracks),
        ("scope", (scope_id for scope_id, _ in state.entries), scopes),
    )
    for kind, keys, table in needed:
        for key in keys:
            if key is not None and key not in table:
                raise ValueError(f"{kind} {key} is missing")


def _tables(state: State) -> dict[str, Table[Any]]:
    return {key: getattr(state, attribute) for key, (attribute, _) in _TABLES.items()}


def _entries(state: State, keys: Any) -> dict[str, dict[str, int | None]]:
    rows: dict[str, dict[str, int | None]] = {}
    for key in keys:
        scope_id, node = key
        if scope_id in state.scopes:
            entry = state.entries.get(key)
            rows.setdefault(str(scope_id), {})[node] = None if entry is None else entry.count
    return rows


_OF_SCOPES = ("d", "c", "e")
"""Parts that stand under the id of their scope, and go with it."""


def _merged(pieces: tuple[bytes, ...]) -> dict[str, Any]:
    """The pieces as one document: later ones replace, null removes."""
    if not pieces:
        raise ValueError("there is no piece")
    merged: dict[str, Any] = {key: {} for key in (*_TABLES, *_OF_SCOPES)}
    for piece in pieces:
        document = _document(piece, merged.keys())
        merged.update({key: document[key] for key in ("i", "h") if key in document})
        for key in _TABLES:
            _replace(merged[key], document.get(key, {}))
        gone = [key for key, row in document.get("s", {}).items() if row is None]
        for part in _OF_SCOPES:
            for key in gone:
                merged[part].pop(key, None)
            _replace_in(merged[part], document.get(part, {}), null_removes=part != "d")
    return merged


def _document(piece: bytes, parts: Collection[str]) -> dict[str, Any]:
    document = orjson.loads(piece)
    if type(document) is not dict:
        raise TypeError(f"a piece is an object, found {document!r}")
    if document.get("v") != SCHEMA:
        raise ValueError(f"document schema {document.get('v')!r}, this version reads {SCHEMA}")
    unknown = document.keys() - {"v", "i", "h"} - set(parts)
    if unknown:
        raise ValueError(f"unknown parts {', '.join(sorted(unknown))}")
    return document


def _replace_in(scopes: dict[str, Any], changes: dict[str, Any], *, null_removes: bool) -> None:
    """Rows of scopes; null is a value of a variable, and the end of anything else."""
    for scope_id, rows in changes.items():
        kept = scopes.setdefault(scope_id, {})
        if null_removes:
            _replace(kept, rows)
        else:
            kept.update(rows)


def _replace(rows: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, row in changes.items():
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row


def _bytes(document: dict[str, Any]) -> bytes:
    return bytes(memoryview(orjson.dumps(document)))
