"""The suite's files that break a rule of the standard are refused, and the right rule is named; the others are not."""

from __future__ import annotations

import pytest

from tests.conformance.cases import Case, absence, executable_cases, folder
from tests.conformance.constraints import EXPECTED, Constraint, constraints, expected, findings_of, refusing
from tests.docs.rules import hand_written_names
from trioflow.model import errors
from trioflow.model.checks import DOCUMENT_RULES, PROCESS_RULES

WHERE = folder()
ABSENT = absence(WHERE)
CONSTRAINTS: tuple[Constraint, ...] = () if ABSENT else constraints(WHERE)
EXECUTABLE: tuple[Case, ...] = () if ABSENT else executable_cases(WHERE)

needs_suite = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)


@needs_suite
@pytest.mark.parametrize("constraint", CONSTRAINTS or [None], ids=lambda each: each.name if each else "absent")
def test_refused(constraint: Constraint) -> None:
    """A strict registration refuses the file for the rule that it was made to break."""
    wanted = expected(constraint)
    found = refusing(constraint.file)
    assert wanted, f"{constraint.rule} is not in the table"
    assert wanted & {finding.rule for finding in found}, "\n".join(map(str, found)) or "nothing refuses it"


@needs_suite
@pytest.mark.parametrize("case", EXECUTABLE or [None], ids=lambda each: each.id if each else "absent")
def test_not_refused(case: Case) -> None:
    """What is to be executed has no error, except where the case itself asks for a refusal or a failure."""
    asked = any("ERROR" in trace for trace in case.admitted)
    found = errors(findings_of(case.file))
    assert asked or not found, "\n".join(map(str, found))


@needs_suite
def test_the_table_is_of_this_suite() -> None:
    """All 301 cases that ask for a refusal are there, and each row of the table is about one of them."""
    used = {next(key for key in constraint.keys if key in EXPECTED) for constraint in CONSTRAINTS}
    assert len(CONSTRAINTS) == 301
    assert used == set(EXPECTED)


def test_the_table_names_rules_of_ours() -> None:
    """Every expected name is one of our rules, listed in the documentation of the rules."""
    known = {rule.name for rule in DOCUMENT_RULES} | {rule.name for rule in PROCESS_RULES} | set(hand_written_names())
    assert set().union(*EXPECTED.values()) <= known


def test_names_before_numbers() -> None:
    """Where a case has a row of its own, that counts, else the row of its rule; without either nothing is expected."""
    own, other, unknown = (
        Constraint(name=name, rule=rule, file=WHERE / "x.bpmn")
        for name, rule in (
            ("EXT062_2_failure_chorActivity", "EXT.062"),
            ("EXT062_1_failure_EndEvent", "EXT.062"),
            ("y", "y"),
        )
    )
    assert expected(own) == {"not-executable"}
    assert expected(other) == {"ad-hoc-start-or-end"}
    assert expected(unknown) == frozenset()
