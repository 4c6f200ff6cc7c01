"""From a text to a checked syntax tree, and from a position in either back to the text."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from trioflow.expressions.faults import LocatedError, located
from trioflow.expressions.limits import Limits

__all__ = ["Refusal", "Source"]

_Tree = TypeVar("_Tree")

_TOO_DEEP: Final = (RecursionError, MemoryError)
"""What Python's own parser and compiler raise for a text that is nested too deeply."""


class Refusal(Exception):
    """A node that the language does not have; the engine turns it into a `LocatedError`."""

    def __init__(self, message: str, node: ast.AST) -> None:
        super().__init__(message)
        self.node = node


@attrs.frozen(kw_only=True)
class Source:
    """A text and how it was wrapped for the parser: ``shift`` lines were put before it."""

    text: str
    language: str
    limits: Limits
    shift: int

    @classmethod
    def of_expression(cls, text: str, *, language: str, limits: Limits) -> Source:
        """An expression may span lines and be indented, as it is in a file: it is parsed in brackets of its own."""
        return cls(text=text, language=language, limits=limits, shift=1)

    @classmethod
    def of_script(cls, text: str, *, language: str, limits: Limits) -> Source:
        """A script may be indented as a whole: then it is parsed as the body of a statement of its own."""
        first = next((line for line in text.splitlines() if line.strip()), "")
        return cls(text=text, language=language, limits=limits, shift=1 if first[:1] in (" ", "\t") else 0)

    def expression(self) -> ast.expr:
        """The tree of an expression."""
        self._check_length()
        tree = self._parsed(self._bracketed)
        self._check_nesting(tree)
        return tree

    def statements(self) -> list[ast.stmt]:
        """The trees of a script's statements."""
        self._check_length()
        module = self._parsed(lambda: ast.parse(f"if 1:\n{self.text}" if self.shift else self.text))
        self._check_nesting(module)
        if not module.body:
            raise self.error("the text is empty")
        if not self.shift:
            return module.body
        wrapper = module.body[0]
        if len(module.body) > 1 or not isinstance(wrapper, ast.If) or wrapper.orelse:
            raise self.error("the indentation of the script does not fit that of its first line")
        return wrapper.body

    def error(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        end: tuple[int | None, int | None] = (None, None),
        limit: str | None = None,
    ) -> LocatedError:
        """An error at a position of the tree: ``column`` and the end column are offsets in bytes, from 0."""
        line = self._line(line)
        start = self._characters(line, column)
        stop = self._characters(line, end[1]) if self._line(end[0]) == line else None
        return located(
            message,
            text=self.text,
            language=self.language,
            line=line,
            column=None if start is None else start + 1,
            width=1 if start is None or stop is None else max(1, stop - start),
            limit=limit,
        )

    def refused(self, refusal: Refusal) -> LocatedError:
        """The error for a refused node."""
        node = refusal.node
        return self.error(
            str(refusal),
            line=getattr(node, "lineno", None),
            column=getattr(node, "col_offset", None),
            end=(getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)),
        )

    def too_deep(self) -> LocatedError:
        """The error for a text that is nested too deeply."""
        return self.error(
            f"the text is nested deeper than the limit max_nesting = {self.limits.max_nesting} allows",
            limit="max_nesting",
        )

    def _line(self, line: int | None) -> int | None:
        count = self.text.count("\n") + 1
        return None if line is None or not self.shift < line <= count + self.shift else line - self.shift

    def _characters(self, line: int | None, offset: int | None) -> int | None:
        if line is None or offset is None:
            return None
        return len(self.text.split("\n")[line - 1].encode()[:offset].decode(errors="ignore"))

    def _check_length(self) -> None:
        if len(self.text) > self.limits.max_source:
            raise self.error(
                f"the text has {len(self.text)} characters, more than the limit max_source = {self.limits.max_source} "
                "allows",
                limit="max_source",
            )
        if not self.text.strip():
            raise self.error("the text is empty")

    def _check_nesting(self, tree: ast.AST) -> None:
        level: list[ast.AST] = [tree]
        for _ in range(self.limits.max_nesting):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
            if not level:
                return
        raise self.too_deep()

    def _bracketed(self) -> ast.expr:
        try:
            body = ast.parse(f"(\n{self.text}\n)", mode="eval").body
        except SyntaxError as error:
            if self._line(error.lineno) is None or "\n" not in self.text.strip():
                self._check_unbracketed()
            raise
        if body.lineno == 1:
            # Our brackets have become a part of it: `a, b` is good without them, `1) + (2` is not.
            self._check_unbracketed()
        return body

    def _check_unbracketed(self) -> None:
        """Raise what Python says about the text without our brackets, if it does not like it."""
        head = self.text[: len(self.text) - len(self.text.lstrip())]
        blank_lines, indent = head.count("\n"), len(head) - head.rfind("\n") - 1
        try:
            ast.parse("\n" * blank_lines + self.text.strip(), mode="eval")
        except SyntaxError as error:
            first = error.lineno == blank_lines + 1
            raise self._syntax_error(error, shift=0, indent=indent if first else 0) from error

    def _parsed(self, parse: Callable[[], _Tree]) -> _Tree:
        try:
            with warnings.catch_warnings():
                # A doubtful escape in a text is the modeller's, not the host program's, to be warned about.
                warnings.simplefilter("ignore")
                return parse()
        except SyntaxError as error:
            raise self._syntax_error(error, shift=self.shift) from error
        except _TOO_DEEP as error:
            raise self.too_deep() from error
        except ValueError as error:
            raise self.error(f"the text cannot be read: {error}") from error

    def _syntax_error(self, error: SyntaxError, *, shift: int, indent: int = 0) -> LocatedError:
        """Positions of syntax errors count characters, from 1; 0 and None mean that the parser knows none."""
        line = (error.lineno or 0) - shift
        lines = self.text.split("\n")
        known = 0 < line <= len(lines)
        # The parser points nowhere when the text just ends.
        column = error.offset or len(lines[line - 1].rstrip()) + 1 - indent if known else None
        return located(
            f"syntax error: {error.msg}",
            text=self.text,
            language=self.language,
            line=line if known else None,
            column=None if column is None else column + indent,
        )
