"""Which attrs classes are values, and under which tag they are stored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import attrs

from trioflow.errors import InvalidRequest

__all__ = ["RegisteredType", "register", "value_type"]

_MARK: Final = "__trioflow_value_type__"
_TAG: Final = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)

_Class = TypeVar("_Class", bound=type)


def value_type(tag: str) -> Callable[[_Class], _Class]:
    """Mark an attrs class with the tag under which its instances are stored; subclasses do not inherit it.

    The tag, not the class name, is what stays in the store: a class can be renamed or moved.
    """

    def mark(cls: _Class) -> _Class:
        setattr(cls, _MARK, _checked_tag(tag))
        return cls

    return mark


@attrs.frozen(kw_only=True)
class RegisteredType:
    """An attrs class whose instances are values: its fields are the whole of it."""

    tag: str
    cls: type
    fields: tuple[attrs.Attribute[Any], ...]
    names: tuple[str, ...]
    is_frozen: bool

    def build(self, values: Mapping[str, Any]) -> Any:
        """An instance with these fields, made as `copy` and `pickle` do: without ``__init__``.

        Converters and validators have had their say when the original was made, and a converter need not accept
        what it returned.  A field that is missing takes its default; KeyError names one that has none.
        """
        make: Any = self.cls.__new__
        instance = make(self.cls)
        for field in self.fields:
            value = values[field.name] if field.name in values else _default(field, instance)
            object.__setattr__(instance, field.name, value)
        return instance


def register(types: Iterable[type] | Mapping[str, type]) -> tuple[RegisteredType, ...]:
    """The registered types of a codec; raises InvalidRequest for a class that cannot be one, or a tag used twice."""
    pairs = types.items() if isinstance(types, Mapping) else ((_marked_tag(cls), cls) for cls in types)
    by_tag: dict[str, RegisteredType] = {}
    for tag, cls in pairs:
        known = by_tag.setdefault(tag, _registered(_checked_tag(tag), cls))
        if known.cls is not cls:
            raise InvalidRequest(f"{known.cls!r} and {cls!r} have the same tag {tag!r}: give one of them another")
    return tuple(by_tag.values())


def _registered(tag: str, cls: type) -> RegisteredType:
    if not attrs.has(cls):
        raise InvalidRequest(f"the value type {cls!r} is no attrs class: define it with attrs.define or attrs.frozen")
    traits = attrs.inspect(cls)
    if cls.__eq__ is object.__eq__:
        raise InvalidRequest(
            f"the value type {cls!r} has no equality, so none would equal itself once restored: use eq=True"
        )
    if traits.hashability is attrs.ClassProps.Hashability.HASHABLE_CACHED:
        raise InvalidRequest(f"the value type {cls!r} caches its hash, which cannot be restored: leave cache_hash out")
    fields = attrs.fields(cls)
    return RegisteredType(
        tag=tag, cls=cls, fields=fields, names=tuple(field.name for field in fields), is_frozen=traits.is_frozen
    )


def _marked_tag(cls: type) -> str:
    tag = vars(cls).get(_MARK)
    if tag is None:
        raise InvalidRequest(
            f"the value type {cls!r} has no tag: mark it with @value_type(...), or pass {{tag: class}}"
        )
    return str(tag)


def _checked_tag(tag: object) -> str:
    if not isinstance(tag, str) or not _TAG.fullmatch(tag):
        raise InvalidRequest(f"{tag!r} is no tag of a value type: a letter or _, then letters, digits, '_', '-' or '.'")
    return tag


def _default(field: attrs.Attribute[Any], instance: object) -> Any:
    default: Any = field.default
    if default is attrs.NOTHING:
        raise KeyError(field.name)
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time, a function to the stubs
        return default.factory(instance) if default.takes_self else default.factory()
    return default
