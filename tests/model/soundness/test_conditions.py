"""Conditions are boolean functions: equal ones are one number, whatever way they were made."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioflow.model.soundness.conditions import ALWAYS, NEVER, Conditions
from trioflow.model.soundness.steps import OutOfSteps, Steps

COUNT = 4
Made = tuple[bool, ...]
Truth = Callable[[Made], bool]


def everything() -> tuple[Conditions, list[tuple[int, Truth]]]:
    """Conditions with four choices, and the choices and constants as conditions, each with what it means."""
    conditions = Conditions(Steps(100_000))
    known: list[tuple[int, Truth]] = [(NEVER, lambda _: False), (ALWAYS, lambda _: True)]
    for _ in range(COUNT):
        choice = conditions.choice()
        known.append((conditions.taken(choice, ALWAYS), lambda made, choice=choice: made[choice]))  # type: ignore[misc]
    return conditions, known


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 20)), max_size=12))
def test_operations_mean_what_they_say(script: list[tuple[int, int, int]]) -> None:
    """Whatever is combined has the truth table of its parts, and two conditions with one table are one number."""
    conditions, known = everything()
    for operation, first, second in script:
        (one, is_one), (other, is_other) = known[first % len(known)], known[second % len(known)]
        known.append(
            (
                (conditions.both(one, other), lambda made, a=is_one, b=is_other: a(made) and b(made)),
                (conditions.butnot(one, other), lambda made, a=is_one, b=is_other: a(made) and not b(made)),
                (conditions.any_of((one, other)), lambda made, a=is_one, b=is_other: a(made) or b(made)),
                (conditions.overlap((one, other)), lambda made, a=is_one, b=is_other: a(made) and b(made)),
            )[operation]
        )

    tables: dict[tuple[bool, ...], int] = {}
    for number, truth in known:
        table = tuple(truth(made) for made in product((False, True), repeat=COUNT))
        held = (conditions.holds(number, dict(enumerate(made))) for made in product((False, True), repeat=COUNT))
        assert tuple(held) == table
        assert tables.setdefault(table, number) == number


def test_an_example_makes_its_condition_true() -> None:
    """The choices of an example are enough, with all other choices left out."""
    conditions, known = everything()
    condition = conditions.both(known[2][0], conditions.butnot(known[5][0], known[3][0]))

    made = conditions.example(condition)

    assert conditions.holds(condition, made)
    assert made == {0: True, 1: False, 3: True}
    assert conditions.choices_in(condition) == {0, 1, 3}


def test_without_a_choice_its_taken_side_is_gone() -> None:
    """A condition that needs a choice is never without it; one that needs its absence loses it."""
    conditions, known = everything()
    one, other = known[2][0], known[3][0]

    assert conditions.without(conditions.both(one, other), {0}) == NEVER
    assert conditions.without(conditions.butnot(one, other), {1}) == one
    assert conditions.without(conditions.any_of((one, other)), {0}) == other


def test_steps_are_limited() -> None:
    """Past its limit the work is given up."""
    steps = Steps(2)
    steps.take(2)

    with pytest.raises(OutOfSteps):
        steps.take()
