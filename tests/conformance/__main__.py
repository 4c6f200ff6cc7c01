"""Runs the executable cases of the conformance suite and prints the report: ``python -m tests.conformance``.

Exit status: 0 if nothing that executes ends wrong, 1 if something does, 2 if there is nothing to run.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from tests.conformance.betsy import Outcome, run
from tests.conformance.cases import absence, executable_cases, folder
from tests.conformance.report import report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases, all or those named; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description="Run the executable cases.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of the ids of the cases to run; all if none")
    names = parser.parse_args(arguments).names
    where = folder()
    if missing := absence(where):
        return _refused(missing)
    cases = [case for case in executable_cases(where) if not names or any(name in case.id for name in names)]
    if not cases:
        return _refused(f"no case has {' or '.join(names)} in its id")
    results = [run(case) for case in cases]
    sys.stdout.write(report(results))
    return int(any(result.outcome is Outcome.FAILED for result in results))


def _refused(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return 2


if __name__ == "__main__":
    # Incidents are what some cases ask for; the report tells those that nobody asked for.
    logging.getLogger("trioflow").setLevel(logging.CRITICAL)
    sys.exit(main())
