"""The Python engines: compile once to a code object without builtins, evaluate often."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from types import CodeType, FunctionType, MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final

import attrs

from trioflow.errors import TrioflowError
from trioflow.expressions.faults import Fault, LocatedError, explained
from trioflow.expressions.limits import Limits
from trioflow.expressions.python.functions import FUNCTIONS, bpmn_error, record_entries
from trioflow.expressions.python.kinds import SCALARS
from trioflow.expressions.python.members import attribute, method
from trioflow.expressions.python.operators import BINARY, COMPARISONS, UNARY, chain, key, tested
from trioflow.expressions.python.rewrite import ExpressionRewriter
from trioflow.expressions.python.run import Run
from trioflow.expressions.python.scope import Scope
from trioflow.expressions.python.source import Refusal, Source
from trioflow.expressions.python.statements import ScriptRewriter
from trioflow.expressions.python.subscripts import Place, item, part
from trioflow.expressions.python.undefined import undefined
from trioflow.expressions.python.writing import concat, formatted
from trioflow.values.display import shown

if TYPE_CHECKING:
    from trioflow.values import Value

__all__ = ["PythonExpression", "PythonExpressions", "PythonScript", "PythonScripts"]

_LANGUAGES: Final = frozenset({
    "python",
    "python3",
    "py",
    "text/python",
    "text/x-python",
    "application/python",
    "application/x-python",
    "https://www.python.org/",
    "https://www.python.org",
    "http://www.python.org/",
    "http://www.python.org",
})  # fmt: skip

_FILE: Final = "<trioflow python>"
"""The file name in the code objects, by which their frames are known in a traceback."""

_GUARDS: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "__builtins__": {},
        **{f"__{name}": guard for name, guard in (*BINARY.items(), *UNARY.items(), *COMPARISONS.items())},
        **{f"__f_{name}": function for name, function in FUNCTIONS.items()},
        "__Place": Place,
        "__assertion": lambda _run, message: Fault(
            "an assertion failed" + (f": {message}" if message is not None else "")
        ),
        "__attribute": attribute,
        "__bpmn_error": bpmn_error,
        "__chain": chain,
        "__concat": concat,
        "__elements": Run.elements,
        "__formatted": formatted,
        "__item": item,
        "__key": key,
        "__loop": Run.loop,
        "__method": method,
        "__part": part,
        "__record_entries": record_entries,
        "__tested": tested,
        "__turns": Run.turns,
    }
)


@attrs.define(eq=False, repr=False)
class PythonExpression:
    """A compiled expression; it holds no state, so threads may share it."""

    _source: Source
    _function: Callable[[Run, Mapping[str, Any]], Any]
    _names: frozenset[str]
    _is_part: bool

    @property
    def text(self) -> str:
        """The text as it was given."""
        return self._source.text

    @property
    def language(self) -> str:
        """It is ``python``."""
        return self._source.language

    @property
    def names(self) -> frozenset[str]:
        """Exactly the root names that the text reads."""
        return self._names

    def evaluate(self, names: Mapping[str, Value], now: datetime) -> Value:
        """Compute the value.  Every failure is a `LocatedError`, but for those that ``names`` itself raises as ours."""
        limits = self._source.limits
        run = Run(limits, now, limits.max_turns)
        try:
            value = self._function(run, names)
            # A part of the caller's data goes back as it is; only what the expression built needs to be looked at.
            return value if type(value) in SCALARS or self._is_part else run.settled(value)
        except TrioflowError:
            raise
        except Exception as error:
            raise _failure(error, self._source, self._names, names) from error

    def __repr__(self) -> str:
        return f"<python expression {shown(self.text)}>"


@attrs.define(eq=False, repr=False)
class PythonScript:
    """A compiled script; it holds no state, so threads may share it."""

    _source: Source
    _function: Callable[[Run, Mapping[str, Any]], Any]
    _names: frozenset[str]
    _assigns: frozenset[str]

    @property
    def text(self) -> str:
        """The text as it was given."""
        return self._source.text

    @property
    def language(self) -> str:
        """It is ``python``."""
        return self._source.language

    @property
    def names(self) -> frozenset[str]:
        """The root names that a run may read before it has assigned them."""
        return self._names

    @property
    def assigns(self) -> frozenset[str]:
        """The names that the text assigns or changes in place.

        A change through an alias is seen where the text shows it (``for line in order.lines: line.done = True`` changes
        ``order``); what went through other containers shows only in the results of `run`.
        """
        return self._assigns

    @property
    def is_async(self) -> bool:
        """Never: a Python script is bounded, and runs in one piece."""
        return False

    def run(self, names: Mapping[str, Value], now: datetime) -> dict[str, Value]:
        """Run the script; the results are the caller's own.

        A `BpmnError` passes, every other failure is a `LocatedError`.
        """
        limits = self._source.limits
        run = Run(limits, now, limits.max_turns, {})
        scope = Scope(names)
        try:
            self._function(run, scope)
            return scope.results(run)
        except TrioflowError:
            raise
        except Exception as error:
            raise _failure(error, self._source, self._names, names) from error

    def __repr__(self) -> str:
        return f"<python script {shown(self.text)}>"


@attrs.frozen(kw_only=True)
class PythonExpressions:
    """The engine for expressions in a bounded part of Python."""

    limits: Limits = attrs.field(factory=Limits)
    _globals: dict[str, Any] = attrs.field(factory=lambda: dict(_GUARDS), init=False, repr=False, eq=False)

    @property
    def languages(self) -> frozenset[str]:
        """The names, media types and addresses that models use for Python."""
        return _LANGUAGES

    def compile(self, text: str) -> PythonExpression:
        """Check and compile an expression; `LocatedError` for what is not part of the language."""
        source = Source.of_expression(text, language="python", limits=self.limits)
        tree = source.expression()
        rewriter = ExpressionRewriter(self.limits)
        function = _compiled(
            source, self._globals, lambda: [ast.copy_location(ast.Return(rewriter.rewritten(tree)), tree)]
        )
        return PythonExpression(source, function, frozenset(rewriter.names), _is_part(tree))


@attrs.frozen(kw_only=True)
class PythonScripts:
    """The engine for scripts in a bounded part of Python."""

    limits: Limits = attrs.field(factory=Limits)
    _globals: dict[str, Any] = attrs.field(factory=lambda: dict(_GUARDS), init=False, repr=False, eq=False)

    @property
    def languages(self) -> frozenset[str]:
        """The names, media types and addresses that models use for Python."""
        return _LANGUAGES

    def compile(self, text: str) -> PythonScript:
        """Check and compile a script; `LocatedError` for what is not part of the language."""
        source = Source.of_script(text, language="python", limits=self.limits)
        tree = source.statements()
        rewriter = ScriptRewriter(self.limits)
        function = _compiled(source, self._globals, lambda: rewriter.block(tree))
        return PythonScript(source, function, frozenset(rewriter.names), rewriter.assigns)


def _is_part(tree: ast.expr) -> bool:
    """Whether the value is a part of the given data: ``order.lines[0]``, nothing newly made."""
    while isinstance(tree, ast.Attribute | ast.Subscript):
        if isinstance(tree, ast.Subscript) and isinstance(tree.slice, ast.Slice):
            return False
        tree = tree.value
    return isinstance(tree, ast.Name)


def _compiled(
    source: Source, guards: dict[str, Any], build: Callable[[], list[ast.stmt]]
) -> Callable[[Run, Mapping[str, Any]], Any]:
    """The function that evaluates what ``build`` makes; the guards are all that it can reach."""
    module = ast.parse("def evaluation(__run, __names): pass")
    function = module.body[0]
    assert isinstance(function, ast.FunctionDef)
    try:
        function.body = build()
        with warnings.catch_warnings():
            # `1 is None` is odd, but nothing to warn the host program about.
            warnings.simplefilter("ignore")
            code = compile(ast.fix_missing_locations(module), _FILE, "exec", dont_inherit=True)
    except Refusal as refusal:
        raise source.refused(refusal) from None
    except SyntaxError as error:
        raise source.error(f"syntax error: {error.msg}", line=error.lineno) from error
    except (RecursionError, MemoryError) as error:
        raise source.too_deep() from error
    body = next(constant for constant in code.co_consts if isinstance(constant, CodeType))
    return FunctionType(body, guards)


# ------------------------------------------------------------------ failures


def _failure(error: Exception, source: Source, read: frozenset[str], names: Mapping[str, Any]) -> LocatedError:
    """The error to raise for whatever an evaluation raised."""
    limit = error.limit if isinstance(error, Fault) else None
    line, end_line, column, end_column = _position(error.__traceback__)
    return source.error(_reason(error, read, names), line=line, column=column, end=(end_line, end_column), limit=limit)


def _reason(error: Exception, read: frozenset[str], names: Mapping[str, Any]) -> str:
    if isinstance(error, Fault):
        return str(error)
    if isinstance(error, KeyError) and error.args and error.args[0] in read:
        return undefined(error.args[0], names, FUNCTIONS)
    if isinstance(error, RecursionError):
        return "a value is nested too deeply to be worked with"
    if isinstance(error, MemoryError):
        return "there is not enough memory for the evaluation"
    return f"{explained(error)} ({type(error).__name__})"


def _position(trace: TracebackType | None) -> tuple[int | None, int | None, int | None, int | None]:
    """Where in the innermost frame of the user's code the failure happened."""
    found: tuple[int | None, int | None, int | None, int | None] = (None, None, None, None)
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == _FILE:
            found = list(code.co_positions())[trace.tb_lasti // 2]
        trace = trace.tb_next
    return found
