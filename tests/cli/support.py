"""How the tests of the command line call it: in process, 80 columns wide, without colours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from trioflow.cli.app import app
from trioflow.model import Definitions, ProcessBuilder
from trioflow.model.builder import message, timer
from trioflow.xml import write

ROOT = Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"

ENVIRONMENT = {"COLUMNS": "80", "NO_COLOR": "1", "FORCE_COLOR": None, "TRIOFLOW_STORE": None}


def call(*arguments: str | Path, stdin: str | None = None) -> Result:
    """Run the command line with these arguments; what it raises by accident is raised here too."""
    runner = CliRunner(env=ENVIRONMENT)
    return runner.invoke(app, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def words(text: str) -> str:
    """A text without its line breaks and indentation: what is said, wherever it was wrapped."""
    return " ".join(text.split())


def widest(text: str) -> int:
    """The length of the longest line."""
    return max(map(len, text.splitlines()), default=0)


def saved(folder: Path, model: Definitions, name: str = "model.bpmn") -> Path:
    """Write a built model into a folder."""
    path = folder / name
    path.write_bytes(write(model))
    return path


def answers(folder: Path, document: Any, name: str = "answers.json") -> Path:
    """Write an answers file into a folder."""
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    return path


def shop() -> Definitions:
    """A handler, a user task and a message: each kind of answer once."""
    process = ProcessBuilder("shop", name="Shop")
    caught = message("paid", key="order_id")
    process.start("s").service("charge", handler="charge-card").user("check").catch("paid", on=caught).end("e")
    return process.build()


def greeting() -> Definitions:
    """One service task."""
    process = ProcessBuilder("greeting")
    process.start("s").service("greet").end("e")
    return process.build()


def patience() -> Definitions:
    """A timer that nobody waits for in a test."""
    process = ProcessBuilder("patience")
    process.start("s").catch("later", on=timer(duration="PT1H")).end("e")
    return process.build()
