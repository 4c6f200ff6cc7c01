"""Asking a person: one question at a time, and never in a thread that could not be left."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import trio
from attrs import frozen
from rich.console import Console
from rich.text import Text

from trioflow.cli.run.listener import Listener

__all__ = ["Given", "Lines", "Prompt"]

CHUNK = 65_536


class Lines:
    """The standard input, line by line, as something that can be cancelled.

    It waits until there is something to read instead of reading in a thread: a thread that waits for a person cannot be
    ended.  What has no readiness (a file, a test's input) is read at once.
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line without its end; None: there are no more."""
        await trio.lowlevel.checkpoint()
        try:
            descriptor = sys.stdin.fileno()
        except (OSError, ValueError, io.UnsupportedOperation):
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        while b"\n" not in self._buffer and not self._ended:
            await _readable(descriptor)
            chunk = os.read(descriptor, CHUNK)
            self._ended = not chunk
            self._buffer += chunk
        taken, newline, self._buffer = self._buffer.partition(b"\n")
        if not taken and not newline:
            return None
        return taken.decode(errors="replace").rstrip("\r")


async def _readable(descriptor: int) -> None:
    try:
        await trio.lowlevel.wait_readable(descriptor)
    except PermissionError:  # a file on the disk: always readable, and nothing that could be waited for
        await trio.lowlevel.checkpoint()


@frozen
class Given:
    """What a person gave; it may be null."""

    value: Any


class Prompt:
    """Asks for JSON, until it gets some; questions of several tokens are asked one after the other.

    While a question stands on the screen, progress is kept back.
    """

    def __init__(self, out: Console, listener: Listener) -> None:
        self._out = out
        self._listener = listener
        self._lines = Lines()
        self._turn = trio.Lock()
        self._is_over = False

    async def outputs(self, question: str) -> dict[str, Any] | None:
        """An object of outputs by name; an empty line means none.  None: the input has ended, nobody answers."""
        given = await self._ask(question, "its outputs as JSON (Enter: none)", _outputs)
        return None if given is None else given.value

    async def value(self, question: str) -> Given | None:
        """Any value; an empty line means null.  None: the input has ended, nobody answers."""
        return await self._ask(question, "its payload as JSON (Enter: none)", _value)

    async def _ask(self, question: str, hint: str, parse: Callable[[str], Any]) -> Given | None:
        async with self._turn:
            await self._listener.caught_up()
            narrator = self._listener.narrator
            with nullcontext() if narrator is None else narrator.held():
                return None if self._is_over else await self._answer(question, hint, parse)

    async def _answer(self, question: str, hint: str, parse: Callable[[str], Any]) -> Given | None:
        self._out.print(Text(question, style="bold"))
        while True:
            self._out.print(Text(f"{hint} > ", style="cyan"), end="")
            line = await self._lines.next()
            if line is None:
                self._is_over = True
                self._out.print()
                return None
            if not sys.stdin.isatty():
                self._out.print(Text(line))  # a terminal shows what is typed; of other input nothing is seen
            try:
                return Given(parse(line))
            except ValueError as error:
                self._out.print(Text(str(error), style="red"))


def _value(line: str) -> Any:
    if not line.strip():
        return None
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(f"That is no JSON: {error}. A text stands in double quotes.") from error


def _outputs(line: str) -> dict[str, Any]:
    value = _value(line)
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise ValueError('Expected are outputs by name, such as {"approved": true}.')
