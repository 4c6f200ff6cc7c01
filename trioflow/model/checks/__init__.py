"""The checks at registration: every finding about a model in one pass, from tables of small rules."""

from __future__ import annotations

from collections.abc import Iterator

from trioflow.model import soundness
from trioflow.model.checks import (
    activities,
    choreographies,
    collaboration,
    compensation,
    contracts,
    data,
    events,
    gateways,
    links,
    references,
    structure,
    syntax,
)
from trioflow.model.checks.rule import Problem, Rule
from trioflow.model.findings import Finding
from trioflow.model.graph import Graph
from trioflow.model.process import Definitions, Process

__all__ = ["DOCUMENT_RULES", "PROCESS_RULES", "Problem", "Rule", "check"]

DOCUMENT_RULES = (*collaboration.RULES, *choreographies.RULES, *references.RULES, *syntax.RULES)
"""Rules over the whole document."""

PROCESS_RULES = (
    *structure.RULES,
    *events.RULES,
    *links.RULES,
    *gateways.RULES,
    *activities.RULES,
    *compensation.RULES,
    *data.RULES,
    *contracts.RULES,
)
"""Rules over one process."""


def check(model: Graph | Definitions, process: Process | None = None) -> tuple[Finding, ...]:
    """All findings about a document and one of its processes, or all of them, in document order.

    A graph is its process; definitions are the ``process`` given, or every process.  Expressions are
    checked where their languages are known, not here.
    """
    definitions = model.definitions if isinstance(model, Graph) else model
    found = [*_document_findings(definitions)]
    for graph in _graphs(model, process):
        for rule in PROCESS_RULES:
            found.extend(rule.findings(graph))
        found.extend(soundness.findings(graph))
    return tuple(sorted(found, key=_line))


def _document_findings(definitions: Definitions) -> Iterator[Finding]:
    for rule in DOCUMENT_RULES:
        yield from rule.findings(definitions)


def _graphs(model: Graph | Definitions, process: Process | None) -> Iterator[Graph]:
    if isinstance(model, Graph):
        yield model
        return
    for each in model.processes if process is None else (process,):
        yield Graph.of(model, each)


def _line(finding: Finding) -> int:
    return finding.position.line if finding.position else 0
