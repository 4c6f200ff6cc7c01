"""Conditions over choices: in which runs of a scope something happens.

A condition is a boolean function of the choices that a run makes, kept as a reduced ordered decision diagram (Bryant
1986): equal functions are one number, so that "never" and "always" are seen at once.  Of two choices the *later* one
is nearer to the root of the diagram.  A block of gateways that is well nested makes its choice last and takes it
back first, so that each of its gateways costs a constant number of steps, however deep it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from attrs import define, field

from trioflow.model.soundness.steps import Steps

__all__ = ["ALWAYS", "NEVER", "Conditions"]

NEVER = 0
ALWAYS = 1

_Branch = tuple[int, int, int]
"""If the first holds, the second, else the third; also a node: choice, condition if not taken, condition if taken."""


@define(eq=False)
class Conditions:
    """The conditions of one region: they are numbers, and have meaning only in here.

    Choices are numbers too, from 0, in the order of ``choice()``.  A condition that was made later has a higher
    number than those that it is made of.
    """

    steps: Steps
    _choices: int = 0
    _nodes: list[_Branch] = field(factory=lambda: [(-1, NEVER, NEVER), (-1, ALWAYS, ALWAYS)])
    _numbers: dict[_Branch, int] = field(factory=dict)
    _known: dict[_Branch, int] = field(factory=dict)

    def choice(self) -> int:
        """A new choice, later than all others."""
        self._choices += 1
        return self.latest

    @property
    def latest(self) -> int:
        """The latest choice."""
        return self._choices - 1

    def taken(self, choice: int, condition: int) -> int:
        """The condition, where the choice is taken; the choice is later than all in the condition."""
        return self._node(choice, NEVER, condition)

    def left(self, choice: int, condition: int) -> int:
        """The condition, where the choice is not taken; the choice is later than all in the condition."""
        return self._node(choice, condition, NEVER)

    def both(self, one: int, other: int) -> int:
        """Where both hold."""
        return self._branch((one, other, NEVER))

    def butnot(self, one: int, other: int) -> int:
        """Where the first holds and the second does not."""
        return self._branch((other, NEVER, one))

    def any_of(self, conditions: Iterable[int]) -> int:
        """Where at least one holds."""
        found = NEVER
        # Oldest first: each one then differs from what is found so far near its root only.
        for condition in sorted(set(conditions)):
            found = self._branch((found, ALWAYS, condition))
        return found

    def all_of(self, conditions: Iterable[int]) -> int:
        """Where all hold."""
        found = ALWAYS
        for condition in sorted(set(conditions)):
            found = self.both(found, condition)
        return found

    def overlap(self, conditions: Iterable[int]) -> int:
        """Where at least two of them hold."""
        found, twice = NEVER, NEVER
        for condition in sorted(conditions):
            twice = self._branch((twice, ALWAYS, self.both(found, condition)))
            found = self._branch((found, ALWAYS, condition))
        return twice

    # -------------------------------------------------------------- looking into one

    def choices_in(self, condition: int) -> set[int]:
        """The choices that it depends on."""
        return {self._nodes[number][0] for number in self._below(condition)}

    def without(self, condition: int, choices: AbstractSet[int]) -> int:
        """The condition, as it is where none of these choices is taken."""
        new = {NEVER: NEVER, ALWAYS: ALWAYS}
        for number in self._below(condition):
            choice, low, high = self._nodes[number]
            new[number] = new[low] if choice in choices else self._node(choice, new[low], new[high])
        return new[condition]

    def example(self, condition: int) -> dict[int, bool]:
        """Choices that make it true, as few of them taken as is easily seen; it must not be ``NEVER``."""
        made: dict[int, bool] = {}
        while condition != ALWAYS:
            self.steps.take()
            choice, low, high = self._nodes[condition]
            made[choice] = low == NEVER
            condition = high if low == NEVER else low
        return made

    def holds(self, condition: int, made: Mapping[int, bool]) -> bool:
        """Whether it holds in a run that made these choices, and took no other one."""
        while condition > ALWAYS:
            self.steps.take()
            choice, low, high = self._nodes[condition]
            condition = high if made.get(choice) else low
        return condition == ALWAYS

    def _below(self, condition: int) -> list[int]:
        """The inner nodes of a diagram, each after those that it leads to."""
        found, todo = set[int](), [condition]
        while todo:
            number = todo.pop()
            if number <= ALWAYS or number in found:
                continue
            self.steps.take()
            found.add(number)
            todo.extend(self._nodes[number][1:])
        return sorted(found)

    # -------------------------------------------------------------- making one

    def _node(self, choice: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (choice, low, high)
        number = self._numbers.get(key)
        if number is None:
            self.steps.take()
            number = self._numbers[key] = len(self._nodes)
            self._nodes.append(key)
        return number

    def _branch(self, goal: _Branch) -> int:
        """Combine by cases of the latest choice; with a stack of its own, for diagrams can be thousands deep."""
        todo = [goal]
        while todo:
            question = todo[-1]
            if question in self._known:
                todo.pop()
                continue
            self.steps.take()
            answer = _evident(*question)
            if answer is None:
                answer = self._by_cases(question, todo)
            if answer is not None:
                self._known[question] = answer
                todo.pop()
        return self._known[goal]

    def _by_cases(self, question: _Branch, todo: list[_Branch]) -> int | None:
        """The answer, or None after asking for what is missing for it."""
        latest = max(self._nodes[part][0] for part in question)
        low = self._case(question, latest, side=1)
        high = self._case(question, latest, side=2)
        missing = [case for case in (low, high) if case not in self._known]
        todo.extend(missing)
        return None if missing else self._node(latest, self._known[low], self._known[high])

    def _case(self, question: _Branch, choice: int, *, side: int) -> _Branch:
        if_, then, else_ = (self._nodes[part][side] if self._nodes[part][0] == choice else part for part in question)
        return if_, then, else_


def _evident(if_: int, then: int, else_: int) -> int | None:
    """The answers that need no cases."""
    if if_ == ALWAYS or then == else_:
        return then
    if if_ == NEVER:
        return else_
    if (then, else_) == (ALWAYS, NEVER) or (then == if_ and else_ == NEVER):
        return if_
    return if_ if else_ == if_ and then == ALWAYS else None
