"""What a rule is: a name, a level, the clause it comes from, and a function that finds what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from attrs import frozen

from trioflow.model.base import BaseElement
from trioflow.model.findings import Finding, Level

__all__ = ["Problem", "Rule", "Table"]

Subject = TypeVar("Subject")


@frozen
class Problem:
    """One place where a rule is broken: the element, what is wrong with it (with values), and what to do."""

    element: BaseElement
    message: str
    remedy: str


@frozen
class Rule(Generic[Subject]):
    """One row of a table of rules.

    ``name`` is stable and appears in findings; ``clause`` is the place in BPMN 2.0.2, or the
    section of the design that decides; ``problems`` yields what breaks the rule, and never raises
    on a broken model.
    """

    name: str
    level: Level
    clause: str
    problems: Callable[[Subject], Iterator[Problem]]

    def findings(self, subject: Subject) -> Iterator[Finding]:
        """The findings of this rule about the subject."""
        for problem in self.problems(subject):
            yield Finding.about(
                problem.element, level=self.level, rule=self.name, message=problem.message, remedy=problem.remedy
            )


Table = tuple[Rule[Subject], ...]
