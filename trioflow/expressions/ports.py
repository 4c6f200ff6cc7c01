"""What a language engine must offer: the two ports of this floor."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from trioflow.values import Value

__all__ = ["Expression", "ExpressionEngine", "Script", "ScriptEngine"]


class Expression(Protocol):
    """A compiled expression: immutable, reusable, and free of side effects."""

    @property
    def text(self) -> str:
        """The text as the model has it."""
        ...

    @property
    def language(self) -> str:
        """The engine's own name of its language."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The root names that an evaluation may read."""
        ...

    def evaluate(self, names: Mapping[str, Value], now: datetime) -> Value:
        """Compute the value; the same names and the same ``now`` give the same value.

        ``names`` may be a lazy view: only what the expression reaches is read.  The result may share structure with it.
        Every failure is an `ExpressionError`.
        """
        ...


class ExpressionEngine(Protocol):
    """Compiles the expressions of one language."""

    @property
    def languages(self) -> frozenset[str]:
        """Every name and URI that models use for the language; compared without case."""
        ...

    def compile(self, text: str) -> Expression:
        """Check and compile a text; what cannot run is an `ExpressionError` here, not at the first evaluation."""
        ...


class Script(Protocol):
    """A compiled script: it reads names and tells which names it assigned; it never touches the caller's data."""

    @property
    def text(self) -> str:
        """The text as the model has it."""
        ...

    @property
    def language(self) -> str:
        """The engine's own name of its language."""
        ...

    @property
    def names(self) -> frozenset[str]:
        """The root names that a run may read from the caller."""
        ...

    @property
    def assigns(self) -> frozenset[str]:
        """The names that a run may assign, as far as the engine can know them from the text."""
        ...

    @property
    def is_async(self) -> bool:
        """Whether `run` returns an awaitable."""
        ...

    def run(self, names: Mapping[str, Value], now: datetime) -> dict[str, Value] | Awaitable[dict[str, Value]]:
        """Run the script; returns the names that it assigned, and only those.

        A `BpmnError` that the script raises passes through; every other failure is an `ExpressionError`.

        An asynchronous engine returns an awaitable, so it may as well write ``async def run``.  It is awaited in a Trio
        task of the token's own; cancelling it abandons the run, and nothing is assigned.  ``names`` may change after
        the first await, where others commit meanwhile: what has to fit together is read before it.  A run that the end
        of its engine cuts short is run again from its beginning.
        """
        ...


class ScriptEngine(Protocol):
    """Compiles the scripts of one language."""

    @property
    def languages(self) -> frozenset[str]:
        """Every name and media type that models use for the language; compared without case."""
        ...

    def compile(self, text: str) -> Script:
        """Check and compile a text; what cannot run is an `ExpressionError` here, not at the first run."""
        ...
