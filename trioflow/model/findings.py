"""Findings: what a reader or a check has to say about a model, all of it in one pass."""

from __future__ import annotations

import enum

from attrs import frozen

from trioflow.model.base import BaseElement, Position

__all__ = ["Finding", "Level", "errors", "report"]


class Level(enum.Enum):
    """How bad a finding is (``docs/explanation/elements.md``)."""

    ERROR = "error"
    """Cannot be executed as drawn: registration refuses it."""
    VIOLATION = "violation"
    """Breaks a rule of the standard, but what to execute is clear: refused only with ``strict=True``."""
    WARNING = "warning"
    """Suspicious, or not sound."""


@frozen(kw_only=True)
class Finding:
    """One finding: which rule, about which element, where, why, and what to do.

    ``rule`` is a stable short name (``flow-target-missing``); ``element_id`` is empty where the element has none.
    """

    level: Level
    rule: str
    message: str
    remedy: str
    element_id: str = ""
    position: Position | None = None

    @classmethod
    def about(cls, element: BaseElement, *, level: Level, rule: str, message: str, remedy: str) -> Finding:
        """A finding about ``element``, at its position."""
        return cls(
            level=level, rule=rule, message=message, remedy=remedy, element_id=element.id, position=element.position
        )

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        who = f" {self.element_id!r}" if self.element_id else ""
        return f"{where}{self.level.value} [{self.rule}]{who}: {self.message} {self.remedy}"


def errors(findings: tuple[Finding, ...] | list[Finding], *, strict: bool = False) -> tuple[Finding, ...]:
    """The findings that refuse a registration: errors, and with ``strict`` violations too."""
    refusing = {Level.ERROR, Level.VIOLATION} if strict else {Level.ERROR}
    return tuple(finding for finding in findings if finding.level in refusing)


def report(findings: tuple[Finding, ...] | list[Finding]) -> str:
    """The findings as text, a line each."""
    return "\n".join(str(finding) for finding in findings)
