"""How a failure is told: the reason, and the place in the text."""

from __future__ import annotations

from decimal import DecimalException

from trioflow.errors import ExpressionError

__all__ = ["Fault", "LocatedError", "explained", "located"]

_EXCERPT = 100
"""Characters of the failing line that a message shows at most."""


class LocatedError(ExpressionError):
    """An `ExpressionError` whose parts a program can read.

    ``text`` is the whole expression or script, ``line`` and ``column`` (from 1) are None where unknown, ``limit`` is
    the field of `Limits` that was exceeded, or None.
    """

    def __init__(
        self, message: str, *, text: str, language: str, line: int | None, column: int | None, limit: str | None
    ) -> None:
        super().__init__(message)
        self.text = text
        self.language = language
        self.line = line
        self.column = column
        self.limit = limit


class Fault(Exception):
    """A failure inside an evaluation, before it is known where in the text it happened.

    Never leaves this floor: the engine turns it into a `LocatedError`.
    """

    def __init__(self, message: str, *, limit: str | None = None) -> None:
        super().__init__(message)
        self.limit = limit


def located(
    message: str,
    *,
    text: str,
    language: str,
    line: int | None = None,
    column: int | None = None,
    width: int = 1,
    limit: str | None = None,
) -> LocatedError:
    """The error to raise; ``width`` is how many characters from ``column`` the caret line marks."""
    place = f"line {line}, column {column}" if line and column else f"line {line}" if line else "place unknown"
    full = f"{message} ({language}, {place}){_excerpt(text, line, column, width)}"
    return LocatedError(full, text=text, language=language, line=line, column=column, limit=limit)


def _excerpt(text: str, line: int | None, column: int | None, width: int) -> str:
    lines = text.splitlines()
    if line is None or not 0 < line <= len(lines):
        first = next((one.strip() for one in lines if one.strip()), "")
        return f"\n    {first[:_EXCERPT]}" if first else ""
    shown_line = lines[line - 1].replace("\t", " ")
    if column is None:
        return f"\n    {shown_line.strip()[:_EXCERPT]}"
    start = max(0, column - 1 - _EXCERPT // 2)
    part = shown_line[start : start + _EXCERPT]
    offset = column - 1 - start
    carets = "^" * max(1, min(width, len(part) - offset))
    return f"\n    {part.rstrip()}\n    {' ' * offset}{carets}"


def explained(error: Exception) -> str:
    """What an exception says; those of decimal arithmetic say nothing that is fit for a message."""
    if isinstance(error, DecimalException):
        return f"decimal arithmetic gives no result ({type(error).__name__})"
    return str(error)
