"""Values in messages: short, and the same in every process."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest

from trioflow.values.display import in_order, shown


class Plain:
    """Has no repr of its own, so that it shows its address."""


class Failing:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


class Wordy:
    """Has an address in a long repr."""

    def __repr__(self) -> str:
        return f"<{'very ' * 20}wordy at {id(self):#x}>"


@pytest.mark.parametrize(
    "value, text",
    [
        ({"b", "a"}, "{'a', 'b'}"),
        ({"a", 1, (2, "x")}, "{1, 'a', (2, 'x')}"),
        (frozenset({"b", None}), "frozenset({None, 'b'})"),
        ({"names": [{"z", 1}]}, "{'names': [{1, 'z'}]}"),
        (set(), "set()"),
        (10**5_000, "<int>"),
        (Failing(), "<Failing>"),
        (Plain(), "<tests.values.test_display.Plain object>"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, ...]"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_shown(value: Any, text: str) -> None:
    """Sets are in order at every depth, addresses are left out, and nothing is long or fails."""
    assert shown(value) == text


def test_no_part_of_an_address_is_left_where_a_text_is_cut() -> None:
    """The address goes before the text is cut in the middle."""
    assert shown(Wordy()).endswith("wordy>")
    assert len(shown(Wordy())) <= 60
    assert "0x" not in shown(Wordy())


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "c"],
        [1, "a", None, 2.5],
        [math.nan, 2.0, 1.0],
        [Decimal("NaN"), Decimal(1), 3],
        [(1, "a"), (1, 2), (0, 0)],
        [10**5_000, -(10**5_000), True],
    ],
    ids=["texts", "mixed", "nan", "decimal nan", "tuples", "huge"],
)
def test_the_order_does_not_depend_on_the_order_before(values: list[Any]) -> None:
    """Whatever order a set had, its elements come out in one and the same."""
    orders = {tuple(map(id, in_order(given))) for given in permutations(values)}
    assert len(orders) == 1


def test_what_can_be_sorted_is_sorted() -> None:
    """Numbers of several kinds are sorted as numbers."""
    assert in_order({3, 1.5, Decimal(2), True}) == [True, 1.5, Decimal(2), 3]
