"""The worker as the coordinator has it: started, heard, told, killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from trioflow.errors import TrioflowError

__all__ = ["DemoFailed", "Worker", "start_worker"]


class DemoFailed(TrioflowError):
    """The demo did not go as it should."""


class Worker:
    """A running worker: iterate over what it tells, one dict for each line, until its output ends."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._buffer = b""

    def __aiter__(self) -> Worker:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            chunk = await self._stdout.receive_some()
            if not chunk:
                raise StopAsyncIteration
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told

    async def tell(self, do: str, **details: Any) -> None:
        """Tell it to do something."""
        await self._stdin.send_all(json.dumps({"do": do, **details}).encode() + b"\n")

    async def kill(self) -> int:
        """End it with SIGKILL, which no program can catch; returns when it is gone, with its status."""
        self._process.kill()
        return await self._process.wait()

    async def ended(self) -> int:
        """Wait until it has ended by itself."""
        return await self._process.wait()


@asynccontextmanager
async def start_worker(store: str, ledger: Path, log: Path) -> AsyncIterator[Worker]:
    """A worker that does not outlive the block; what it writes to its error output goes to ``log``."""
    command = [sys.executable, "-m", "trioflow.cli.demo.worker", store, str(ledger)]
    with log.open("ab") as errors:
        process = await trio.lowlevel.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,  # Ctrl-C is for the coordinator alone, which then ends the worker
        )
    try:
        yield Worker(process)
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with trio.CancelScope(shield=True):
                    await stream.aclose()
