"""The methods that change a collection in place, for scripts; an expression that names one does not compile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from trioflow.expressions.faults import Fault
from trioflow.expressions.python.operators import key
from trioflow.expressions.python.ordering import sort
from trioflow.expressions.python.run import Run
from trioflow.expressions.python.subscripts import entries_of
from trioflow.values.display import shown

__all__ = ["LIST_MUTATORS", "MUTATING", "RECORD_MUTATORS", "SET_MUTATORS"]

# Values are typed Any in this module: the table of methods has decided by exact type.
Method = Callable[..., Any]


def _grown(run: Run, subject: Any) -> None:
    run.admit(len(subject), f"the {'record' if type(subject) is dict else type(subject).__name__}")


def _append(run: Run, subject: list[Any], value: Any, /) -> None:
    run.touch(subject)
    subject.append(value)
    _grown(run, subject)


def _extend(run: Run, subject: list[Any], values: Any, /) -> None:
    run.touch(subject)
    # A list of its own first: `xs.extend(x for x in xs)` would never end.
    subject.extend(list(run.elements(values)))
    _grown(run, subject)


def _insert(run: Run, subject: list[Any], index: int, value: Any, /) -> None:
    run.touch(subject)
    subject.insert(index, value)
    _grown(run, subject)


def _list_pop(run: Run, subject: list[Any], index: int = -1, /) -> Any:
    run.touch(subject)
    return subject.pop(index)


def _list_remove(run: Run, subject: list[Any], value: Any, /) -> None:
    run.touch(subject)
    run.weigh(subject, value)
    subject.remove(value)


def _clear(run: Run, subject: Any, /) -> None:
    run.touch(subject)
    subject.clear()


def _reverse(run: Run, subject: list[Any], /) -> None:
    run.touch(subject)
    subject.reverse()


def _sort(run: Run, subject: list[Any], /, *, key: Callable[[Any], Any] | None = None, reverse: bool = False) -> None:
    run.touch(subject)
    subject[:] = sort(run, subject, by=key, reverse=bool(reverse))


LIST_MUTATORS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "append": _append,
        "extend": _extend,
        "insert": _insert,
        "pop": _list_pop,
        "remove": _list_remove,
        "clear": _clear,
        "reverse": _reverse,
        "sort": _sort,
    }
)


def _record_pop(run: Run, subject: dict[Any, Any], name: Any, /, *default: Any) -> Any:
    run.touch(subject)
    if not default and key(run, name) not in subject:
        raise Fault(f"the record has no entry {shown(name)}; {entries_of(subject)}")
    return subject.pop(key(run, name), *default)


def _setdefault(run: Run, subject: dict[Any, Any], name: Any, default: Any = None, /) -> Any:
    run.touch(subject)
    value = subject.setdefault(key(run, name), default)
    _grown(run, subject)
    return value


def _record_update(run: Run, subject: dict[Any, Any], other: Any = None, /, **entries: Any) -> None:
    run.touch(subject)
    if other is not None:
        if type(other) is not dict:
            raise TypeError(f"a record is needed, not {shown(other)}")
        run.pay(other)
        subject.update(other)
    subject.update(entries)
    _grown(run, subject)


RECORD_MUTATORS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "pop": _record_pop,
        "setdefault": _setdefault,
        "update": _record_update,
        "clear": _clear,
    }
)


def _set_add(run: Run, subject: set[Any], value: Any, /) -> None:
    run.touch(subject)
    subject.add(key(run, value))
    _grown(run, subject)


def _set_discard(run: Run, subject: set[Any], value: Any, /) -> None:
    run.touch(subject)
    subject.discard(key(run, value))


def _set_remove(run: Run, subject: set[Any], value: Any, /) -> None:
    run.touch(subject)
    if key(run, value) not in subject:
        raise Fault(f"the set has no element {shown(value)}")
    subject.remove(value)


def _set_update(run: Run, subject: set[Any], values: Any, /) -> None:
    run.touch(subject)
    subject.update([key(run, value) for value in run.elements(values)])
    _grown(run, subject)


SET_MUTATORS: Final[Mapping[str, Method]] = MappingProxyType(
    {
        "add": _set_add,
        "discard": _set_discard,
        "remove": _set_remove,
        "update": _set_update,
        "clear": _clear,
    }
)

MUTATING: Final = frozenset({*LIST_MUTATORS, *RECORD_MUTATORS, *SET_MUTATORS})
