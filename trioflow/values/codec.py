"""The codec of an engine: which values its instances can hold, and how they are copied and stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from trioflow.errors import UnstorableValue
from trioflow.values._canonical import Canonicaliser, copied
from trioflow.values._kinds import LEAVES, PLAIN, Refusal, Value
from trioflow.values._registry import register
from trioflow.values._tagged import Reader, Writer
from trioflow.values._typed import TypedValues
from trioflow.values.paths import extended

__all__ = ["ValueCodec"]

_T = TypeVar("_T")


class ValueCodec:
    """Canonical values in, out and to the store, with the attrs classes that one engine has registered.

    ``types`` are attrs classes marked with `value_type`, or a mapping of tags to classes.  Raises InvalidRequest for a
    class that cannot be restored faithfully and for a tag used twice.
    """

    def __init__(self, types: Iterable[type] | Mapping[str, type] = ()) -> None:
        registered = register(types)
        self._types = {one.cls: one for one in registered}
        self._writer = Writer(registered)
        self._reader = Reader(registered)
        self._typed = TypedValues()

    def canonical(self, value: Any, path: str) -> Value:
        """The canonical form of a value, its containers copied, so that its owner can no longer reach it.

        Tuples become lists (in a field of a registered class they stay), OrderedDict, defaultdict and Counter become
        records, and an instance of a scalar's subclass becomes the builtin that it equals.  Raises UnstorableValue
        with the path of the part that has no canonical form, its type, and what to store instead.
        """
        kind = type(value)
        if kind in PLAIN or (kind is str and value.isascii()):
            return value
        try:
            return Canonicaliser(self._types).value(value, 0)
        except Refusal as refusal:
            raise _unstorable(refusal, path) from refusal.__cause__

    def copy(self, value: Value) -> Value:
        """A deep copy of a canonical value to give away; what is immutable is returned as it is."""
        return value if type(value) in LEAVES else copied(value, self._types)

    def encode(self, value: Value) -> Any:
        """The JSON-able form of a canonical value, for orjson; `decode` gives an equal value of equal types."""
        return self._writer.write(value)

    def decode(self, json: Any) -> Value:
        """The value that `encode` wrote; raises CorruptRecord for an unknown tag or broken content."""
        return self._reader.read(json)

    def structure(self, value: Value, cls: type[_T], path: str = "inputs") -> _T:
        """An instance of ``cls`` (an attrs class, or any type that cattrs knows) from a canonical value.

        Kinds are strict: an int is no str, a bool no int.  Allowed are what loses nothing, int to float or Decimal,
        and texts for the kinds that JSON lacks (Decimal, datetime with offset, date, time, UUID, durations).  Names
        that the class lacks are ignored.  Raises InvalidRequest that lists each wrong part with its path.
        """
        return self._typed.structure(self.copy(value), cls, path)

    def unstructure(self, obj: Any, path: str = "outputs") -> Value:
        """The canonical value of an attrs instance and all in it: attrs instances become records, enums their values.

        Raises UnstorableValue for parts that have no canonical form, InvalidRequest for what cattrs cannot take apart.
        """
        return self.canonical(self._typed.unstructure(obj, path), path)


def _unstorable(refusal: Refusal, path: str) -> UnstorableValue:
    if len(set(refusal.containers)) < len(refusal.containers):
        return UnstorableValue(f"{path} contains itself, which cannot be stored: leave that out", path=path)
    where = extended(path, reversed(refusal.steps))
    return UnstorableValue(f"{where}: {refusal.reason}", path=where)
