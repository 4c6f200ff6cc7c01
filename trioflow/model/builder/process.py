"""The builders that users make: one process, or a document of several."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from trioflow.model.base import BaseElement
from trioflow.model.builder.document import Document
from trioflow.model.builder.scope import Scope
from trioflow.model.common import CorrelationSubscription, ResourceRole
from trioflow.model.data import InputOutputSpecification
from trioflow.model.process import Definitions, Process

__all__ = ["DefinitionsBuilder", "ProcessBuilder"]

TARGET_NAMESPACE = "https://trioflow.dev/models"


class DefinitionsBuilder(Document):
    """Builds a document of several processes that share messages, signals, errors and data stores."""

    def __init__(
        self,
        definitions_id: str = "definitions",
        *,
        name: str | None = None,
        target_namespace: str = TARGET_NAMESPACE,
        expression_language: str | None = None,
        type_language: str | None = None,
    ) -> None:
        super().__init__()
        self.take(definitions_id, "definitions")
        self._id = definitions_id
        self._name = name
        self._target_namespace = target_namespace
        self._expression_language = expression_language
        self._type_language = type_language
        self.processes: list[ProcessBuilder] = []

    def process(
        self,
        process_id: str,
        *,
        name: str | None = None,
        documentation: str | None = None,
        executable: bool = True,
        process_type: str = "None",
        io_specification: InputOutputSpecification | None = None,
        resources: Iterable[ResourceRole] = (),
        correlation_subscriptions: Iterable[CorrelationSubscription] = (),
    ) -> ProcessBuilder:
        """A process of this document; the options are those of ``ProcessBuilder``."""
        return ProcessBuilder(
            process_id,
            within=self,
            name=name,
            documentation=documentation,
            executable=executable,
            process_type=process_type,
            io_specification=io_specification,
            resources=resources,
            correlation_subscriptions=correlation_subscriptions,
        )

    def build(self) -> Definitions:
        """The document as frozen definitions: what processes refer to first, then the processes.

        The builder stays usable: build again after adding more.
        """
        processes: tuple[BaseElement, ...] = tuple(process.definition() for process in self.processes)
        return Definitions(
            id=self._id,
            name=self._name,
            target_namespace=self._target_namespace,
            expression_language=self._expression_language,
            type_language=self._type_language,
            root_elements=(*self.roots, *processes),
        )


class ProcessBuilder(Scope):
    """Builds a process in code that reads like its diagram.

    Example::

        order = ProcessBuilder("order", name="Order")
        paid = order.start("received").service("charge", handler="charge-card").exclusive("paid")
        paid.when("amount > 100").user("check", candidate_groups=["sales"]).end("checked")
        paid.otherwise().end("done")
        definitions = order.build()

    ``process_id`` is the process key.  ``within`` is the document that the process belongs to; without it, it gets one
    of its own.
    """

    def __init__(
        self,
        process_id: str,
        *,
        within: DefinitionsBuilder | None = None,
        name: str | None = None,
        documentation: str | None = None,
        executable: bool = True,
        process_type: str = "None",
        io_specification: InputOutputSpecification | None = None,
        resources: Iterable[ResourceRole] = (),
        correlation_subscriptions: Iterable[CorrelationSubscription] = (),
    ) -> None:
        self._owner = DefinitionsBuilder(f"definitions_{process_id}") if within is None else within
        self._owner.take(process_id, "process")
        super().__init__(process_id, self._owner)
        self._template = Process(
            id=process_id,
            name=name,
            documentation=() if documentation is None else (documentation,),
            is_executable=executable,
            process_type=process_type,
            io_specification=io_specification,
            resources=tuple(resources),
            correlation_subscriptions=tuple(correlation_subscriptions),
        )
        self._owner.processes.append(self)

    @property
    def document(self) -> DefinitionsBuilder:
        """The document that the process belongs to: its messages, signals and items, and its other processes."""
        return self._owner

    def definition(self) -> Process:
        """The process alone, as it stands now."""
        return evolve(self._template, properties=tuple(self.declared_properties), **self.content())

    def build(self) -> Definitions:
        """The whole document; its messages, signals, errors and so on are root elements before the processes."""
        return self._owner.build()
