"""What the tests of expressions share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from trioflow.expressions import Limits, LocatedError, PythonExpressions, PythonScripts

NOW: Final = datetime(2026, 3, 7, 14, 30, tzinfo=UTC)


def value_of(text: str, names: Mapping[str, Any] | None = None, *, limits: Limits | None = None) -> Any:
    """Compile and evaluate an expression."""
    return PythonExpressions(limits=limits or Limits()).compile(text).evaluate({} if names is None else names, NOW)


def results_of(text: str, names: Mapping[str, Any] | None = None, *, limits: Limits | None = None) -> dict[str, Any]:
    """Compile and run a script."""
    return PythonScripts(limits=limits or Limits()).compile(text).run({} if names is None else names, NOW)


def failure_of(text: str, names: Mapping[str, Any] | None = None, *, limits: Limits | None = None) -> LocatedError:
    """The error of an expression, from compiling or evaluating it."""
    with pytest.raises(LocatedError) as caught:
        value_of(text, names, limits=limits)
    return caught.value


def script_failure_of(
    text: str, names: Mapping[str, Any] | None = None, *, limits: Limits | None = None
) -> LocatedError:
    """The error of a script, from compiling or running it."""
    with pytest.raises(LocatedError) as caught:
        results_of(text, names, limits=limits)
    return caught.value
