"""The shape digest: pinned for a set of models, blind to what does not matter, alert to each covered fact."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.model.models import MODELS
from tests.model.support import changed, graph_of, process_of
from trioflow.model import (
    DIGEST_ALGORITHM,
    Association,
    BaseElement,
    CompensateEventDefinition,
    Definitions,
    ErrorEventDefinition,
    EscalationEventDefinition,
    Expression,
    LinkEventDefinition,
    MessageEventDefinition,
    Process,
    ProcessBuilder,
    SignalEventDefinition,
    Task,
    TimerEventDefinition,
    Transaction,
    UserTask,
    shape_digest,
)
from trioflow.model.builder import compensate, condition, error, link, loop, message, signal, timer, times
from trioflow.model.checks.view import walk


def digest(definitions: Definitions) -> str:
    """The digest of the first process."""
    return shape_digest(graph_of(definitions))


# ------------------------------------------------------------------ what it is

GOLDEN = {
    "every_event": "c7cae4f3b14d",
    "every_gateway": "cddc016d5270",
    "every_task": "49a2d196a9ae",
    "order": "a09378bf5eae",
    "repeated": "06721955d768",
    "travel": "cb0cd2de0944",
    "two_processes": "de06ce52b138",
}
"""Pinned: a change here means that every stored instance drifts, and needs a new DIGEST_ALGORITHM."""


@pytest.mark.parametrize("name", sorted(MODELS))
def test_golden_digests(name: str) -> None:
    """The digests of known models never change under one algorithm number."""
    assert DIGEST_ALGORITHM == 1
    assert digest(MODELS[name]()) == GOLDEN[name]


def test_what_is_hashed() -> None:
    """Sorted facts, a line of JSON each, under a head of algorithm and process key: computed here by hand."""
    process = ProcessBuilder("p", name="any")
    process.start("s").task("t", loop=times(3)).end("e")
    facts = [
        ["flow", "flow_s_t", "s", "t"],
        ["flow", "flow_t_e", "t", "e"],
        ["iteration", "t", "parallel"],
        ["node", "e", "endEvent", "p"],
        ["node", "s", "startEvent", "p"],
        ["node", "t", "task", "p"],
    ]
    lines = [json.dumps(line, separators=(",", ":")) for line in [["shape", "1", "p"], *facts]]
    assert digest(process.build()) == hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


# ------------------------------------------------------------------ what does not matter


def _shuffled(element: BaseElement, order: Callable[[list[BaseElement]], list[BaseElement]]) -> BaseElement:
    """The same element with the children of every container in another order."""
    fields: dict[str, Any] = {}
    for attribute in attrs.fields(type(element)):
        value = getattr(element, attribute.name)
        if isinstance(value, tuple) and value and isinstance(value[0], BaseElement):
            fields[attribute.name] = tuple(order([_shuffled(part, order) for part in value]))
    return evolve(element, **fields)


@given(st.sampled_from(sorted(MODELS)), st.randoms(use_true_random=False))
def test_order_does_not_matter(name: str, random: object) -> None:
    """The order of elements in the document, at any depth, is not part of the shape."""

    def order(elements: list[BaseElement]) -> list[BaseElement]:
        random.shuffle(elements)  # type: ignore[attr-defined]  # a Random of Hypothesis
        return elements

    process = process_of(MODELS[name]())
    definitions = evolve(MODELS[name](), root_elements=(_checked(_shuffled(process, order)),))
    original = evolve(MODELS[name](), root_elements=(process,))
    assert digest(definitions) == digest(original)


def _checked(element: BaseElement) -> Process:
    assert isinstance(element, Process)
    return element


def _other_texts(element: BaseElement, text: str) -> BaseElement:
    """The same element with other names, documentation, scripts and expression texts, at any depth."""
    if isinstance(element, Expression):
        return evolve(element, text=text)
    fields: dict[str, Any] = {"documentation": (text,)}
    for attribute in attrs.fields(type(element)):
        value = getattr(element, attribute.name)
        if isinstance(value, BaseElement):
            fields[attribute.name] = _other_texts(value, text)
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseElement):
            fields[attribute.name] = tuple(_other_texts(part, text) for part in value)
        elif attribute.name in ("script", "implementation") or _is_plain_name(element, attribute.name):
            fields[attribute.name] = text
    return evolve(element, **fields)


def _is_plain_name(element: BaseElement, attribute: str) -> bool:
    # A link's name is how links find each other: that one is shape.
    return attribute == "name" and element.tag != "linkEventDefinition"


@given(st.sampled_from(sorted(MODELS)), st.text(max_size=5))
def test_texts_do_not_matter(name: str, text: str) -> None:
    """Names, documentation, conditions, scripts, handler names and timer expressions are not part of the shape."""
    definitions = MODELS[name]()
    other = _other_texts(definitions, text)
    assert isinstance(other, Definitions)
    assert digest(other) == digest(definitions)


def test_kind_of_timer_text_does_not_matter() -> None:
    """A duration in place of a date is another timer expression, no other shape."""
    definitions = base()
    cyclic = TimerEventDefinition(time_cycle=Expression(text="R/PT1H"))
    assert digest(changed(definitions, "late", event_definitions=(cyclic,))) == digest(definitions)


def test_computed_call_targets_are_opaque() -> None:
    """What is computed cannot be known: one expression is as good as another, but it is not a fixed target."""
    definitions = base()
    first = changed(definitions, "call", called_element="${pick(a)}")
    second = changed(definitions, "call", called_element="= b")
    assert digest(first) == digest(second) != digest(definitions)


def test_other_processes_of_the_document_do_not_matter() -> None:
    """The digest is of one process."""
    definitions = base()
    more = evolve(definitions, root_elements=(*definitions.root_elements, Process(id="other")))
    assert digest(more) == digest(definitions)


# ------------------------------------------------------------------ what matters


def base() -> Definitions:
    """A model with one of everything that the digest covers."""
    process = ProcessBuilder("p")
    booked = process.start("s").service("book", loop=loop("again"))
    booked.boundary("undo", on=compensate()).undone_by(process.task("unbook", for_compensation=True))
    booked.boundary("late", on=timer(duration="PT1H")).end("gone", on=error("E"))
    process.task("unbook2", for_compensation=True)
    gate = booked.exclusive("gate")
    gate.when("x").catch("wait", on=[message("m"), signal("n")]).throw("jump", on=link("L"))
    gate.otherwise().call("call", process="other").subprocess("sub").end("e")
    process.catch("land", on=link("L")).to("sub")
    process.event_gateway("first").catch("c", on=condition("y")).to("e")
    with process.at("sub").subprocess("inner") as inside:
        inside.start("is").task("it").end("ie")
    with process.event_subprocess("handler") as handler:
        handler.start("hs", on=signal("h")).end("he")
    process.document.message("m2", root_id="m2")
    process.document.error("E2", root_id="E2")
    process.ad_hoc("free")
    return process.build()


def with_element(definitions: Definitions, container: str, element: BaseElement) -> Definitions:
    """The same definitions with one more flow element in a container."""
    holder = next(each for each in walk(definitions) if each.id == container)
    elements: tuple[BaseElement, ...] = holder.flow_elements  # type: ignore[attr-defined]  # a process or sub-process
    return changed(definitions, container, flow_elements=(*elements, element))


def without_element(definitions: Definitions, element_id: str) -> Definitions:
    """The same definitions without one flow element of the process."""
    kept = tuple(each for each in process_of(definitions).flow_elements if each.id != element_id)
    return changed(definitions, "p", flow_elements=kept)


def moved(definitions: Definitions, element_id: str, container: str) -> Definitions:
    """The same definitions with one flow element of the process in another container."""
    element = next(each for each in process_of(definitions).flow_elements if each.id == element_id)
    return with_element(without_element(definitions, element_id), container, element)


def as_kind(definitions: Definitions, element_id: str, kind: type[BaseElement], **fields: Any) -> Definitions:
    """The same definitions with one flow element of the process made another kind of element."""
    element = next(each for each in process_of(definitions).flow_elements if each.id == element_id)
    common = {each.name for each in attrs.fields(kind)} & {each.name for each in attrs.fields(type(element))}
    other = kind(**({name: getattr(element, name) for name in common} | fields))
    return with_element(without_element(definitions, element_id), "p", other)


def associated(definitions: Definitions, source: str, target: str) -> Definitions:
    """The same definitions with this association alone."""
    return changed(definitions, "p", artifacts=(Association(id="a", source_ref=source, target_ref=target),))


CHANGES: dict[str, Callable[[Definitions], Definitions]] = {
    "process key": lambda it: changed(it, "p", id="p2"),
    "node id": lambda it: changed(it, "land", id="land2"),
    "node added": lambda it: with_element(it, "inner", Task(id="new")),
    "node removed": lambda it: without_element(it, "land"),
    "node kind": lambda it: as_kind(it, "unbook2", UserTask),
    "sub-process kind": lambda it: as_kind(it, "sub", Transaction),
    "nesting": lambda it: moved(it, "handler", "inner"),
    "flow id": lambda it: changed(it, "flow_s_book", id="f"),
    "flow source": lambda it: changed(it, "flow_land_sub", source_ref="c"),
    "flow target": lambda it: changed(it, "flow_land_sub", target_ref="e"),
    "flow removed": lambda it: without_element(it, "flow_land_sub"),
    "default": lambda it: changed(it, "gate", default="flow_gate_wait"),
    "no default": lambda it: changed(it, "gate", default=None),
    "attachment": lambda it: changed(it, "late", attached_to_ref="sub"),
    "boundary interrupting": lambda it: changed(it, "late", cancel_activity=False),
    "boundary kind": lambda it: changed(it, "late", event_definitions=(SignalEventDefinition(signal_ref="signal_n"),)),
    "handler interrupting": lambda it: changed(it, "hs", is_interrupting=False),
    "handler to sub-process": lambda it: changed(it, "handler", triggered_by_event=False),
    "message": lambda it: changed(it, "wait", event_definitions=(MessageEventDefinition(message_ref="m2"),)),
    "error": lambda it: changed(it, "gone", event_definitions=(ErrorEventDefinition(error_ref="E2"),)),
    "signal": lambda it: changed(it, "hs", event_definitions=(SignalEventDefinition(signal_ref="signal_n"),)),
    "escalation": lambda it: changed(it, "gone", event_definitions=(EscalationEventDefinition(),)),
    "compensated": lambda it: changed(it, "gone", event_definitions=(CompensateEventDefinition(activity_ref="book"),)),
    "link name": lambda it: changed(it, "land", event_definitions=(LinkEventDefinition(name="M"),)),
    "parallel multiple": lambda it: changed(it, "wait", parallel_multiple=True),
    "event gateway": lambda it: changed(it, "first", event_gateway_type="Parallel"),
    "iteration gone": lambda it: changed(it, "book", loop_characteristics=None),
    "iteration kind": lambda it: changed(it, "book", loop_characteristics=times(3)),
    "call target": lambda it: changed(it, "call", called_element="another"),
    "compensation handler": lambda it: associated(it, "undo", "unbook2"),
    "compensation link gone": lambda it: changed(it, "p", artifacts=()),
}


@pytest.mark.parametrize("fact", CHANGES)
def test_each_covered_fact_matters(fact: str) -> None:
    """Each fact that a checkpoint relies on changes the digest."""
    definitions = base()
    other = CHANGES[fact](definitions)
    assert other != definitions
    assert digest(other) != digest(definitions)


def test_no_two_changes_look_alike() -> None:
    """Different shapes have different digests."""
    digests = [digest(change(base())) for change in CHANGES.values()]
    assert len(set(digests)) == len(digests)


def test_sequential_and_parallel_multi_instance_differ() -> None:
    """The order of instances is part of the iteration kind; their number is not."""
    definitions = base()
    parallel, sequential, more = (
        digest(changed(definitions, "book", loop_characteristics=each))
        for each in (times(3), times(3, sequential=True), times(9))
    )
    assert parallel == more != sequential


def test_direction_of_the_association_does_not_matter() -> None:
    """A compensation link counts whichever way its line is drawn; a line to a note does not count at all."""
    definitions = base()
    assert digest(associated(definitions, "unbook", "undo")) == digest(definitions)
    assert digest(associated(definitions, "e", "undo")) == digest(changed(definitions, "p", artifacts=()))


def test_a_definition_by_reference_is_the_same_shape() -> None:
    """An event definition counts the same inside the event and as a root element."""
    definitions = base()
    root = SignalEventDefinition(id="ring", signal_ref="signal_h")
    shared = evolve(definitions, root_elements=(root, *definitions.root_elements))
    assert digest(changed(shared, "hs", event_definitions=(), event_definition_refs=("ring",))) == digest(definitions)
