"""Which engine an expression or script goes to (data clause of the semantics: its own language, else the default)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol, TypeVar

from trioflow.errors import ExpressionError, InvalidRequest
from trioflow.expressions.limits import Limits
from trioflow.expressions.ports import Expression, ExpressionEngine, Script, ScriptEngine
from trioflow.expressions.python import PythonExpressions, PythonScripts

__all__ = ["Languages"]

_CACHED_TEXTS = 4_096
"""Compiled texts kept for each kind: several large definitions; the least recently used goes first."""


class _Claims(Protocol):
    @property
    def languages(self) -> frozenset[str]: ...


_Engine = TypeVar("_Engine", bound=_Claims)


class Languages:
    """Routes expressions and scripts to the engine that claims their language, and keeps what it compiled.

    Two engines of the same kind that claim one language are an `InvalidRequest`: the outcome would depend on their
    order.
    """

    def __init__(
        self,
        *,
        expressions: Iterable[ExpressionEngine] = (),
        scripts: Iterable[ScriptEngine] = (),
        default_expression: str = "python",
        default_script: str = "python",
    ) -> None:
        self._expressions = _claimed("expression", expressions)
        self._scripts = _claimed("script", scripts)
        self._default_expression = default_expression
        self._default_script = default_script
        self._compile_expression: Callable[[str, str], Expression] = lru_cache(_CACHED_TEXTS)(self._new_expression)
        self._compile_script: Callable[[str, str], Script] = lru_cache(_CACHED_TEXTS)(self._new_script)

    @classmethod
    def default(cls, *, limits: Limits | None = None) -> Languages:
        """Python for expressions and for scripts, within ``limits``."""
        bounds = limits or Limits()
        return cls(expressions=(PythonExpressions(limits=bounds),), scripts=(PythonScripts(limits=bounds),))

    @property
    def expression_languages(self) -> frozenset[str]:
        """What an expression's ``language`` may say, in lower case."""
        return frozenset(self._expressions)

    @property
    def script_languages(self) -> frozenset[str]:
        """What a script's ``scriptFormat`` may say, in lower case."""
        return frozenset(self._scripts)

    def expression(self, text: str, language: str | None = None) -> Expression:
        """The compiled expression; an unclaimed language or a text that does not compile is an `ExpressionError`."""
        return self._compile_expression(_folded(language or self._default_expression), text)

    def script(self, text: str, language: str | None = None) -> Script:
        """The compiled script; an unclaimed language or a text that does not compile is an `ExpressionError`."""
        return self._compile_script(_folded(language or self._default_script), text)

    def _new_expression(self, language: str, text: str) -> Expression:
        return _engine("expression", self._expressions, language).compile(text)

    def _new_script(self, language: str, text: str) -> Script:
        return _engine("script", self._scripts, language).compile(text)


def _folded(language: str) -> str:
    return language.strip().casefold()


def _claimed(kind: str, engines: Iterable[_Engine]) -> dict[str, _Engine]:
    claims: dict[str, _Engine] = {}
    for engine in engines:
        for language in sorted(engine.languages):  # a set's order differs between runs, a message must not
            if claims.setdefault(_folded(language), engine) is not engine:
                raise InvalidRequest(
                    f"two {kind} engines claim the language {language!r}: {claims[_folded(language)]!r} and "
                    f"{engine!r}; give only one of them"
                )
    return claims


def _engine(kind: str, claims: dict[str, _Engine], language: str) -> _Engine:
    engine = claims.get(language)
    if engine is None:
        claimed = ", ".join(sorted(claims)) or "none"
        raise ExpressionError(
            f"no {kind} engine claims the language {language!r}; claimed are: {claimed}. "
            f"Change the model's language, or open the engine with a language engine for it ({kind})"
        )
    return engine
