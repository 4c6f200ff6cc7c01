"""What the tests of the model share: how a rule's case is written, and how it is judged."""

from __future__ import annotations

from typing import Any, Protocol

from attrs import evolve

from trioflow.model import (
    BaseElement,
    Definitions,
    Finding,
    FlowElement,
    Graph,
    Process,
    ProcessBuilder,
    check,
)


class Case(Protocol):
    """A rule's case, named for the rule: builds a model that breaks it, and one that differs only in keeping it.

    The culprit has the id ``bad`` (or none, where the vocabulary gives it none).
    """

    __name__: str

    def __call__(self, process: ProcessBuilder, *, broken: bool) -> Definitions | None:
        """Fill the process, or return definitions made from it."""


def rule_of(case: Case) -> str:
    """The name of the rule that a case is about."""
    return case.__name__.replace("_", "-")


def findings(case: Case, *, broken: bool) -> tuple[Finding, ...]:
    """What the case's rule finds in the case's model."""
    process = ProcessBuilder("p")
    definitions = case(process, broken=broken) or process.build()
    return tuple(finding for finding in check(definitions) if finding.rule == rule_of(case))


def assert_case(case: Case) -> None:
    """The broken model has a finding about the culprit, with a remedy; the other has none of this rule."""
    found = findings(case, broken=True)
    assert found, f"nothing found by {rule_of(case)}"
    assert {finding.element_id for finding in found} <= {"bad", ""}
    assert all(finding.message and finding.remedy for finding in found)
    assert findings(case, broken=False) == ()


def graph_of(definitions: Definitions) -> Graph:
    """The graph of the first process."""
    return Graph.of(definitions, next(definitions.processes))


def changed(definitions: Definitions, element_id: str, **fields: Any) -> Definitions:
    """The same definitions with other fields in one flow element, at any depth, or in a root element."""
    roots = tuple(_changed(element, element_id, fields) for element in definitions.root_elements)
    return evolve(definitions, root_elements=roots)


def _changed(element: BaseElement, element_id: str, fields: dict[str, Any]) -> BaseElement:
    if element.id == element_id:
        return evolve(element, **fields)
    children: tuple[FlowElement, ...] | None = getattr(element, "flow_elements", None)
    if not children:
        return element
    replaced: Any = {"flow_elements": tuple(_changed(child, element_id, fields) for child in children)}
    return evolve(element, **replaced)


def process_of(definitions: Definitions) -> Process:
    """The first process."""
    return next(definitions.processes)
