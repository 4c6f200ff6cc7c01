"""The checks as a whole: every rule has its case, findings are complete, and no model makes a rule fail."""

from __future__ import annotations

import re
from typing import Any

import attrs
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.model import (
    test_checks_activities,
    test_checks_data,
    test_checks_events,
    test_checks_structure,
    test_checks_texts,
)
from tests.model.models import MODELS
from tests.model.support import graph_of, process_of, rule_of
from trioflow.model import BaseElement, Definitions, Graph, Level, Position, ProcessBuilder, Task, check
from trioflow.model.checks import DOCUMENT_RULES, PROCESS_RULES, Rule

RULES: tuple[Rule[Any], ...] = (*DOCUMENT_RULES, *PROCESS_RULES)
CASES = (
    *test_checks_structure.CASES,
    *test_checks_events.CASES,
    *test_checks_activities.CASES,
    *test_checks_data.CASES,
    *test_checks_texts.CASES,
)


def test_every_rule_has_its_case() -> None:
    """No rule is without a model that breaks it and one that keeps it."""
    assert sorted(map(rule_of, CASES)) == sorted(rule.name for rule in RULES)


def test_rule_names_are_stable_words() -> None:
    """Names are unique and kebab-case, and every rule cites where it comes from."""
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)
    assert all(rule.clause == "choice" or re.search(r"\d", rule.clause) for rule in RULES)


def test_all_findings_in_one_pass() -> None:
    """Several mistakes give several findings, in the order of their lines, each with its position."""
    process = ProcessBuilder("p")
    process.start("s").to(process.task("t", start_quantity=0)).end("e")
    process.add(Task(id="late", completion_quantity=0, position=Position(9, "f.bpmn")))
    process.add(Task(id="early", start_quantity=-1, position=Position(3, "f.bpmn")))
    found = [finding for finding in check(process.build()) if finding.level is Level.ERROR]
    assert [(finding.rule, finding.element_id, str(finding.position)) for finding in found] == [
        ("start-quantity", "t", "None"),
        ("start-quantity", "early", "f.bpmn:3"),
        ("completion-quantity", "late", "f.bpmn:9"),
    ]


def test_graph_definitions_and_one_process_agree() -> None:
    """A graph, its document, and the document with that process named give the same findings."""
    process = ProcessBuilder("p")
    process.start("s").task("t", start_quantity=0).end("e")
    definitions = process.build()
    found = check(definitions)
    assert [finding.rule for finding in found] == ["start-quantity"]
    assert check(graph_of(definitions)) == found
    assert check(definitions, process_of(definitions)) == found


def test_sound_models_have_no_errors() -> None:
    """The models that the digests are pinned for can all be executed as drawn."""
    for name, build in MODELS.items():
        refusing = [str(finding) for finding in check(build()) if finding.level is Level.ERROR]
        assert refusing == [], name


# ------------------------------------------------------------------ damaged models

_REFS = re.compile(r".*(_ref|_refs|default|called_element|incoming|outgoing|sources|target)")


@st.composite
def damaged(draw: st.DrawFn) -> Definitions:
    """A model with a few elements removed, ids blanked or doubled, and references turned elsewhere."""
    definitions = draw(st.sampled_from(sorted(MODELS.items())))[1]()
    ids = [element.id for element in Graph.of(definitions, process_of(definitions)).nodes.values()]
    victims = draw(st.sets(st.sampled_from(ids), max_size=3))
    other = draw(st.sampled_from([*ids, "ghost", ""]))
    how = draw(st.sampled_from(["remove", "rename", "redirect"]))
    damaged_model = _damage(definitions, victims, other, how)
    assert isinstance(damaged_model, Definitions)
    return damaged_model


def _damage(element: BaseElement, victims: set[str], other: str, how: str) -> BaseElement:
    fields: dict[str, Any] = {}
    for attribute in attrs.fields(type(element)):
        value = getattr(element, attribute.name)
        if isinstance(value, tuple) and value and isinstance(value[0], BaseElement):
            kept = (part for part in value if not (how == "remove" and part.id in victims))
            fields[attribute.name] = tuple(_damage(part, victims, other, how) for part in kept)
        elif how == "redirect" and _REFS.fullmatch(attribute.name) and value:
            fields[attribute.name] = _redirected(value, victims, other)
    if how == "rename" and element.id in victims:
        fields["id"] = other
    return evolve(element, **fields)


def _redirected(value: Any, victims: set[str], other: str) -> Any:
    if isinstance(value, tuple):
        return tuple(other if ref in victims else ref for ref in value)
    return other if value in victims else value


@given(damaged())
def test_no_model_makes_a_rule_fail(definitions: Definitions) -> None:
    """Whatever is missing or misdirected, the checks answer, and each finding says what and what to do."""
    for finding in check(definitions):
        assert finding.message
        assert finding.remedy
        assert str(finding).startswith((finding.level.value, "line"))
