"""Python, the part of it that can be evaluated safely: a whitelist of syntax, methods and functions, all bounded."""

from __future__ import annotations

from trioflow.expressions.python.engine import PythonExpression, PythonExpressions, PythonScript, PythonScripts

__all__ = ["PythonExpression", "PythonExpressions", "PythonScript", "PythonScripts"]
