"""Typed values: attrs classes of the user from canonical values and back, through cattrs."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Collection, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, TypeVar
from uuid import UUID

import attrs
from cattrs import BaseConverter, Converter, transform_error
from cattrs.gen import make_dict_structure_fn

from trioflow.errors import InvalidRequest
from trioflow.values.display import shown
from trioflow.values.durations import Duration
from trioflow.values.moments import parse_moment

__all__ = ["TypedValues"]

_T = TypeVar("_T")
_Hook = Callable[[Any, Any], Any]


class TypedValues:
    """One cattrs converter with the rules of `ValueCodec.structure`."""

    def __init__(self) -> None:
        self._converter = Converter()
        self._unguarded: set[Any] = set()
        self._converter.register_structure_hook_factory(self._is_guarded, self._guarded)
        self._converter.register_structure_hook_factory(_is_record_class, _record_hook)
        self._converter.register_structure_hook_factory(_is_scalar_union, _union_hook)
        for kind, sources in _SCALARS.items():
            self._converter.register_structure_hook(kind, _scalar_hook(kind, sources))
            self._converter.register_unstructure_hook(kind, _same)

    def structure(self, value: Any, cls: type[_T], path: str) -> _T:
        """See `ValueCodec.structure`."""
        try:
            return self._converter.structure(value, cls)
        except Exception as error:  # converters and validators of the user run in there, and raise what they like
            reasons = transform_error(error, path=path, format_exception=_reason)
            raise InvalidRequest(f"no {_type_name(cls)} can be made of {path}: {'; '.join(reasons)}") from error

    def unstructure(self, obj: Any, path: str) -> Any:
        """See `ValueCodec.unstructure`."""
        try:
            return self._converter.unstructure(obj)
        except (*_WRONG, RecursionError) as error:
            raise InvalidRequest(f"{path}: a {type(obj).__qualname__} cannot be taken apart: {error!r}") from error

    def _is_guarded(self, cls: Any) -> bool:
        return cls not in self._unguarded and _container(cls) is not None

    def _guarded(self, cls: Any, converter: BaseConverter) -> _Hook:
        """The hook that cattrs has for a container, which would take a text for a list of its letters."""
        self._unguarded.add(cls)
        try:
            inner = converter.get_structure_hook(cls, cache_result=False)
        finally:
            self._unguarded.discard(cls)
        sources: tuple[type, ...] = (dict,) if _container(cls) is dict else (list, tuple, set, frozenset)

        def hook(value: Any, to: Any) -> Any:
            if not isinstance(value, sources):
                raise _unfit("a record" if dict in sources else "a list", value)
            return inner(value, to)

        return hook


def _record_hook(cls: Any, converter: BaseConverter) -> _Hook:
    inner = make_dict_structure_fn(cls, converter)

    def hook(value: Any, to: Any) -> Any:
        if type(value) is cls:
            return value
        if type(value) is not dict:
            raise _unfit(f"a record for {cls.__qualname__}", value)
        return inner(value, to)

    return hook


def _scalar_hook(kind: type, sources: Mapping[type, Callable[[Any], Any]]) -> _Hook:
    sources = {kind: _same, **sources}

    def hook(value: Any, to: Any) -> Any:
        convert = sources.get(type(value))
        if convert is None:
            raise _unfit(f"a {kind.__name__}", value)
        try:
            plain = convert(value)
        except (ArithmeticError, *_WRONG) as error:
            raise _unfit(f"a {kind.__name__}", value) from error
        # cattrs sends subclasses here too: an IntEnum, a StrEnum, a class of str.
        return to(plain) if isinstance(to, type) and to is not kind else plain

    return hook


def _union_hook(union: Any, converter: BaseConverter) -> _Hook:
    """A union with scalars in it: the member that is the value's own kind, else the first that takes it."""
    members = typing.get_args(union)

    def hook(value: Any, _to: Any) -> Any:
        if value is None and types.NoneType in members:
            return None
        if type(value) in members:
            return value
        for member in members:
            try:
                return converter.structure(value, member)
            except Exception:  # noqa: BLE001, S112  # as above; the next member may take it
                continue
        raise _unfit(f"one of {_type_name(union)}", value)

    return hook


def _same(value: Any) -> Any:
    return value


def _is_record_class(cls: Any) -> bool:
    return isinstance(cls, type) and attrs.has(cls) and cls is not Duration


def _is_scalar_union(cls: Any) -> bool:
    return typing.get_origin(cls) in (typing.Union, types.UnionType) and any(
        member in _SCALARS for member in typing.get_args(cls)
    )


def _container(cls: Any) -> type | None:
    """Say dict or list for a collection type, None for everything else."""
    origin = typing.get_origin(cls) or cls
    if not isinstance(origin, type) or issubclass(origin, str | bytes):
        return None
    if issubclass(origin, Mapping):
        return dict
    return list if issubclass(origin, Collection) and not _is_record_class(origin) else None


def _unfit(expected: str, value: Any) -> ValueError:
    return ValueError(f"expected {expected}, not {shown(value)} ({type(value).__name__})")


def _reason(error: BaseException, _type: Any) -> str:
    return "required field missing" if isinstance(error, KeyError) else str(error)


def _type_name(cls: Any) -> str:
    return cls.__qualname__ if isinstance(cls, type) else str(cls)


def _float(value: int) -> float:
    if int(float(value)) != value:
        raise ValueError("not exact")
    return float(value)


def _moment(text: str) -> datetime:
    moment = parse_moment(text, None)
    if moment is None:
        raise ValueError("not ISO 8601")
    return moment


_WRONG: Final = (ValueError, TypeError, LookupError, AttributeError, InvalidRequest)

_SCALARS: Final[Mapping[type, Mapping[type, Callable[[Any], Any]]]] = {
    bool: {},
    int: {},
    float: {int: _float},
    str: {},
    bytes: {},
    Decimal: {int: Decimal, str: Decimal},
    datetime: {str: _moment},
    date: {str: date.fromisoformat},
    time: {str: time.fromisoformat},
    timedelta: {str: lambda text: Duration.parse(text).as_timedelta(), Duration: Duration.as_timedelta},
    Duration: {str: Duration.parse, timedelta: Duration.of},
    UUID: {str: UUID},
}
