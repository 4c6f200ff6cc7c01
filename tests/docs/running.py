"""Runs a documentation page as its reader would: the files are written, the commands run, the code typed in.

One page is one empty folder and one session: its ``python`` blocks run one after the other in one namespace, inside
Trio, with ``await`` at the top level, as in the prompt of ``python -m trio``.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from tests.conftest import PATIENCE
from tests.docs.blocks import ROOT, Block, blocks_of
from trioflow.model import Level
from trioflow.xml import read

__all__ = ["LONGEST", "Page", "commands", "matches"]

LONGEST = 2 * PATIENCE
"""Seconds of real time that one command may take."""

_FRAGMENT = """\
<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:trioflow="https://trioflow.dev/schema/bpmn"
             xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" targetNamespace="https://example.com/docs">
{roots}<process id="fragment">
{elements}</process></definitions>
"""
_LOOSE = {"unresolved-reference", "empty-reference"}
"""What a fragment may lack: the elements that it refers to."""


class Page:
    """One page on its way.  ``assumed``: commands that are taken as done (they set up the environment)."""

    def __init__(self, path: Path, folder: Path, *, assumed: Collection[str] = ()) -> None:
        self.path = path
        self.folder = folder
        self.assumed = frozenset(assumed)
        self.ran: list[str] = []
        self._namespace: dict[str, Any] = {"__name__": "__main__"}

    async def run(self) -> None:
        """Go through the page from top to bottom."""
        blocks = blocks_of(self.path)
        for position, block in enumerate(blocks):
            behind = blocks[position + 1] if position + 1 < len(blocks) else None
            if block.caption:
                self._write(block)
            elif block.language == "python":
                await self._type_in(block, behind)
            elif block.language == "console":
                self._run_commands(block)
            elif block.language == "xml":
                self._check_fragment(block)

    def place(self, block: Block) -> str:
        """Where a block stands, for messages."""
        return f"{self.path.relative_to(ROOT)}:{block.line}"

    # ---------------------------------------------------------------- files and fragments

    def _write(self, block: Block) -> None:
        target = self.folder / block.caption
        assert target.resolve().is_relative_to(self.folder.resolve()), f"{self.place(block)} leaves the page's folder"
        target.write_text(block.text, "utf-8")

    def _check_fragment(self, block: Block) -> None:
        """A fragment has only elements and attributes that are read; what it refers to may be elsewhere."""
        is_root = re.match(r"\s*<(message|error|signal|itemDefinition|interface)\b", block.text) is not None
        text = _FRAGMENT.format(roots=block.text if is_root else "", elements="" if is_root else block.text)
        found = [each for each in read(text.encode()).findings if each.level is Level.ERROR and each.rule not in _LOOSE]
        assert not found, f"{self.place(block)}: {found}"

    # ---------------------------------------------------------------- code

    async def _type_in(self, block: Block, behind: Block | None) -> None:
        # Blank lines in front, so that a traceback names the line of the page.
        text = "\n" * (block.line - 1) + block.text
        code = compile(text, str(self.path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            result = eval(code, self._namespace)
            if inspect.iscoroutine(result):
                await result
        is_output = behind is not None and behind.follows and behind.language == "text" and not behind.caption
        expected = behind.text if behind is not None and is_output else ""
        assert matches(expected, printed.getvalue()), _differs(self.place(block), expected, printed.getvalue())

    # ---------------------------------------------------------------- commands

    def _run_commands(self, block: Block) -> None:
        for command, expected in commands(block):
            self.ran.append(command)
            if command in self.assumed:
                continue
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LONGEST,
                check=False,
            )
            where = f"{self.place(block)}: $ {command}"
            assert done.returncode == 0, f"{where}: exit status {done.returncode}\n{done.stdout}"
            assert matches(expected, done.stdout), _differs(where, expected, done.stdout)


def environment() -> dict[str, str]:
    """That of a reader who has activated the virtual environment of the tests, in a plain terminal of 80 columns."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRIOFLOW_", "PYTEST_"))}
    programs = str(Path(sys.executable).parent)
    return kept | {"PATH": f"{programs}{os.pathsep}{kept.get('PATH', os.defpath)}", "COLUMNS": "80", "NO_COLOR": "1"}


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Each command of a ``console`` block, behind ``$ `` and (continued) ``> ``, with what it prints."""
    command, expected = "", ""
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, expected
            command, expected = line.removeprefix("$ "), ""
        elif line.startswith("> ") and not expected:
            command += "\n" + line.removeprefix("> ")
        else:
            expected += line + "\n"
    if command:
        yield command, expected


# ------------------------------------------------------------------ comparing


def matches(expected: str, printed: str) -> bool:
    """Whether the output is as shown: white space at the ends of lines does not count, ``...`` is anything."""
    pattern = ".*".join(re.escape(part) for part in _trimmed(expected).split("..."))
    return re.fullmatch(pattern, _trimmed(printed), re.DOTALL) is not None


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _differs(where: str, expected: str, printed: str) -> str:
    return f"{where}\n----- the page says\n{expected}\n----- printed was\n{printed}"
