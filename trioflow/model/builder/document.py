"""The document under construction: its ids and its root elements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve

from trioflow.errors import ModelError
from trioflow.model.base import BaseElement
from trioflow.model.builder.parts import check_id
from trioflow.model.builder.triggers import Trigger
from trioflow.model.common import Error, Escalation, Message, Signal
from trioflow.model.data import DataStore, ItemDefinition
from trioflow.model.events import EventDefinition

__all__ = ["Document"]

_Root = TypeVar("_Root", bound=BaseElement)
_IDENTITY: Mapping[type[BaseElement], str] = {Error: "error_code", Escalation: "escalation_code"}
"""What makes two root elements the same thing; for all others it is the name."""


class Document:
    """Root elements in order of first use, and every id that is taken."""

    def __init__(self) -> None:
        self.roots: list[BaseElement] = []
        self._taken: dict[str, str] = {}

    def take(self, element_id: str, what: str) -> None:
        """Reserve an id for ``what``, a description such as ``service task``."""
        check_id(element_id)
        if element_id in self._taken:
            raise ModelError(
                f"The id {element_id!r} of this {what} is already taken ({self._taken[element_id]}); "
                f"ids are unique in the whole document, choose another."
            )
        self._taken[element_id] = what

    def free_id(self, wanted: str, what: str) -> str:
        """Reserve ``wanted``, or with the first free counter behind it."""
        candidate, count = wanted, 1
        while candidate in self._taken:
            count += 1
            candidate = f"{wanted}_{count}"
        self.take(candidate, what)
        return candidate

    def add(self, element: _Root) -> _Root:
        """Add a ready root element: a resource, an interface, a correlation property, an event definition, ..."""
        self.take(element.id, element.tag)
        self.roots.append(element)
        return element

    def message(self, name: str, *, root_id: str = "", item: str | None = None) -> Message:
        """Declare a message; ``item`` is the id of its item definition."""
        return self._declare(Message(id=root_id, name=name, item_ref=item))

    def signal(self, name: str, *, root_id: str = "", item: str | None = None) -> Signal:
        """Declare a signal."""
        return self._declare(Signal(id=root_id, name=name, structure_ref=item))

    def error(self, code: str, *, root_id: str = "", name: str | None = None, item: str | None = None) -> Error:
        """Declare an error by its code."""
        return self._declare(Error(id=root_id, name=name or code, error_code=code, structure_ref=item))

    def escalation(
        self, code: str, *, root_id: str = "", name: str | None = None, item: str | None = None
    ) -> Escalation:
        """Declare an escalation by its code."""
        return self._declare(Escalation(id=root_id, name=name or code, escalation_code=code, structure_ref=item))

    def item(self, item_id: str, *, structure: str | None = None, collection: bool = False) -> ItemDefinition:
        """Declare the structure of data."""
        return self.add(ItemDefinition(id=item_id, structure_ref=structure, is_collection=collection))

    def data_store(self, store_id: str, *, name: str | None = None, item: str | None = None) -> DataStore:
        """Declare a data store, which outlives the process."""
        return self.add(DataStore(id=store_id, name=name, item_subject_ref=item))

    def resolve(self, trigger: Trigger | EventDefinition) -> EventDefinition:
        """The event definition of a trigger, with what it refers to declared."""
        if isinstance(trigger, EventDefinition):
            return trigger
        if trigger.root is None:
            return trigger.definition
        root = self._known(trigger.root) or self._declare(trigger.root)
        reference: dict[str, Any] = {trigger.reference: root.id}
        return evolve(trigger.definition, **reference)

    def _declare(self, root: _Root) -> _Root:
        known = self._known(root)
        if known is not None:
            raise ModelError(
                f"The {root.tag} {_identity(root)!r} is already declared as {known.id!r}; "
                f"declare it once, before its first use."
            )
        if root.id:
            return self.add(root)
        label = re.sub(r"[^\w.\-]+", "_", _identity(root) or "any")
        named = evolve(root, id=self.free_id(f"{root.tag}_{label}", root.tag))
        self.roots.append(named)
        return named

    def _known(self, root: BaseElement) -> BaseElement | None:
        same = (each for each in self.roots if type(each) is type(root) and _identity(each) == _identity(root))
        return next(same, None)


def _identity(root: BaseElement) -> str | None:
    value: str | None = getattr(root, _IDENTITY.get(type(root), "name"))
    return value
