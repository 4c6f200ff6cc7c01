"""Language-routed expressions and scripts.

An engine is asked for a language, compiles a text once, and evaluates it as often as needed against a read-only view
of the data.  Nothing here reads a clock: ``now`` is given.
"""

from __future__ import annotations

from trioflow.expressions.faults import LocatedError
from trioflow.expressions.languages import Languages
from trioflow.expressions.limits import Limits
from trioflow.expressions.ports import Expression, ExpressionEngine, Script, ScriptEngine
from trioflow.expressions.python import PythonExpressions, PythonScripts

__all__ = [
    "Expression",
    "ExpressionEngine",
    "Languages",
    "Limits",
    "LocatedError",
    "PythonExpressions",
    "PythonScripts",
    "Script",
    "ScriptEngine",
]
