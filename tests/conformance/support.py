"""Tools of the tests of the conformance runner: cases and suites of our own, made in a moment."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.cases import Case, Start
from trioflow.model import Definitions
from trioflow.xml import write

__all__ = ["a_case", "a_suite", "an_entry"]


def a_case(file: Path | None = None, **fields: Any) -> Case:
    """A case of the process ``p``, in which task 1 is logged and which completes; ``fields`` say otherwise."""
    usual: dict[str, Any] = {
        "id": "p#1",
        "group": "basics",
        "file": file or Path("absent.bpmn"),
        "process": "p",
        "starts": (Start(process="p", variables={}),),
        "delay": 0.0,
        "admitted": (("SCRIPT_task1",),),
        "final_state": "completed",
        "verdict": "sound",
    }
    return Case(**(usual | fields))


def an_entry(name: str, *trace: str, error: str | None = None, **review: Any) -> dict[str, Any]:
    """What the suite's file says of a case, as far as it is read: one instance of the process ``p``."""
    return {
        "id": f"{name}#1",
        "group": "basics",
        "file": f"{name}.bpmn",
        "process": "p",
        "start": [{"process": "p", "variables": ["n"]}],
        "input": [{"name": "n", "type": "Integer", "value": 7}, {"name": "other", "type": "Integer", "value": 8}],
        "delay_ms": 1500,
        "expect": {"trace": list(trace), "error": error},
        "review": {"verdict": "sound", "final_state": "completed", "spec_trace": None} | review,
    }


def a_suite(folder: Path, entries: Sequence[Mapping[str, Any]], models: Mapping[str, Definitions]) -> Path:
    """A suite in that folder, with a file for each model."""
    (folder / "cases.json").write_text(json.dumps(entries), "utf-8")
    for name, model in models.items():
        (folder / f"{name}.bpmn").write_bytes(write(model))
    return folder
