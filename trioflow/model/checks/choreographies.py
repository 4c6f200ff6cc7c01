"""Choreographies and conversations: carried as they were written, but not against the standard (clause 9)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trioflow.model.base import BPMN_NAMESPACE, BaseElement, RawElement
from trioflow.model.checks.rule import Problem, Rule, Table
from trioflow.model.findings import Level
from trioflow.model.process import Collaboration, Definitions

__all__ = ["RULES"]

_BPMN = f"{{{BPMN_NAMESPACE}}}"
_ARTIFACTS = frozenset({"association", "group", "textAnnotation"})
_NOT_GLOBAL = _ARTIFACTS | {
    *("conversation", "subConversation", "callConversation", "conversationAssociation"),
    *("participantAssociation", "messageFlowAssociation"),
}


def choreography_referred(definitions: Definitions) -> Iterator[Problem]:
    """A choreography and a global conversation refer to no choreography: only a plain collaboration does (9.2)."""
    for carried in definitions.carried:
        for ref in _choreography_refs(carried.children):
            yield Problem(
                _element(carried),
                f"A {_name(carried)} has the choreographyRef {ref!r}, which only a collaboration may have.",
                "Remove it; a choreography uses another one by a callChoreography.",
            )


def global_conversation_content(definitions: Definitions) -> Iterator[Problem]:
    """A global conversation holds participants, message flows and correlation keys only (9.5.5)."""
    for carried in definitions.carried:
        if _name(carried) != "globalConversation":
            continue
        found = sorted({_name(child) for child in carried.children} & _NOT_GLOBAL)
        if found:
            yield Problem(
                _element(carried),
                f"A globalConversation holds elements that it may not hold: {', '.join(found)}.",
                "Remove them, or make it a collaboration.",
            )


def choreography_closed_otherwise(definitions: Definitions) -> Iterator[Problem]:
    """A collaboration is closed exactly if the choreography that it refers to is (9.2)."""
    choreographies: Mapping[str | None, RawElement] = {
        carried.get("id"): carried for carried in definitions.carried if _name(carried) == "choreography"
    }
    for collaboration in definitions.root_elements:
        if not isinstance(collaboration, Collaboration):
            continue
        for ref in _choreography_refs(collaboration.carried):
            choreography = choreographies.get(ref)
            if choreography is not None and _is_closed(choreography) != collaboration.is_closed:
                yield Problem(
                    collaboration,
                    f"Its isClosed is {_word(closed=collaboration.is_closed)}, that of its choreography {ref!r} is "
                    f"{_word(closed=_is_closed(choreography))}.",
                    "Use the same value in both.",
                )


def _choreography_refs(elements: tuple[RawElement, ...]) -> Iterator[str]:
    """The ids in the choreography references among these elements; a prefix of the document's own is left out."""
    for element in elements:
        if _name(element) == "choreographyRef":
            yield element.text.strip().rpartition(":")[2]


def _name(element: RawElement) -> str:
    """The local name of an element of BPMN, nothing for another."""
    return element.tag.removeprefix(_BPMN) if element.tag.startswith(_BPMN) else ""


def _is_closed(choreography: RawElement) -> bool:
    return (choreography.get("isClosed") or "").strip() in {"true", "1"}


def _word(*, closed: bool) -> str:
    return "true" if closed else "false"


def _element(carried: RawElement) -> BaseElement:
    """What a finding about a carried element names."""
    return BaseElement(id=carried.get("id") or "", position=carried.position)


RULES: Table[Definitions] = (
    Rule("choreography-referred", Level.VIOLATION, "9.2", choreography_referred),
    Rule("global-conversation-content", Level.VIOLATION, "9.5.5", global_conversation_content),
    Rule("choreography-closed-otherwise", Level.VIOLATION, "9.2", choreography_closed_otherwise),
)
"""Rules about what is carried of choreographies and conversations, over the whole document."""
