"""The executable cases of the conformance suite, one test for each; ``python -m tests.conformance`` prints a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.conformance.betsy import Outcome, Result, run
from tests.conformance.cases import Case, absence, executable_cases, folder

# How many cases pass today.  A case whose file is refused because something in it is not executed yet is skipped, and
# only this number keeps such cases from coming back.  `test_floor` says when more pass: write the number that it tells
# here, in the commit that made them pass.  When all pass, it asks for its own end: delete this constant, `test_floor`
# and the skip in `test_case`; from then on a case that cannot be executed fails like any other.
FLOOR = 202

WHERE = folder()
ABSENT = absence(WHERE)
CASES: tuple[Case, ...] = () if ABSENT else executable_cases(WHERE)

pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)


class Runs:
    """What became of the cases; each is run once in a session, when it is first asked for."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}

    def __call__(self, case: Case) -> Result:
        """The result of the case."""
        if case.id not in self._results:
            self._results[case.id] = run(case)
        return self._results[case.id]


@pytest.fixture(scope="session")
def runs() -> Runs:
    """One set of results for all tests."""
    return Runs()


@pytest.mark.parametrize("case", CASES or [None], ids=lambda case: case.id if case else "absent")
def test_case(case: Case, runs: Runs) -> None:
    """What the case leaves behind, and the state that it ends in, are what the standard asks for."""
    result = runs(case)
    if result.outcome is Outcome.NOT_YET:
        pytest.skip("its file holds something that is not executed yet (FLOOR counts the cases that pass)")
    assert result.outcome is Outcome.PASSED, result.why


def test_floor(runs: Runs, counted: Callable[[str, int], None]) -> None:
    """As many cases pass as ever did."""
    outcomes = Counter(runs(case).outcome for case in CASES)
    for outcome in Outcome:
        counted(f"conformance cases {outcome.value}", outcomes[outcome])
    passed = outcomes[Outcome.PASSED]
    assert passed < len(CASES), "every case passes: FLOOR has done its work, do what is written there"
    assert passed >= FLOOR, f"only {passed} cases pass, {FLOOR} did: `python -m tests.conformance` tells which fail"
    assert passed == FLOOR, f"{passed} cases pass, more than ever: raise FLOOR in {__name__} from {FLOOR} to {passed}"
