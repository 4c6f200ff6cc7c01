"""Does much, and prints all of it: ``python -m tests.determinism.script`` must print the same in every process.

Models are written, read, checked and compiled; instances go through what the tests of the machine do with them, with
every transition and every stored document; expressions give values and fail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.checkpoint.histories import HISTORIES
from tests.machine.support import Driver, compiled, seen
from tests.model.models import MODELS
from tests.model.test_checks import CASES
from tests.xml.test_bad_input import FILES
from trioflow.errors import TrioflowError
from trioflow.expressions import Languages
from trioflow.machine.apply import BUDGET
from trioflow.machine.events import Event
from trioflow.machine.explain import explain
from trioflow.machine.program import Program
from trioflow.machine.transition import Transition
from trioflow.model import ProcessBuilder
from trioflow.runtime.definitions import Source, check_document, load_document
from trioflow.values import ValueCodec

MACHINE = Path(__file__).resolve().parent.parent / "machine"
NOW = datetime(2026, 3, 7, 14, 30, tzinfo=UTC)
LARGEST = 200
"""Nodes and flows of a process whose transitions are told."""
WORDS = ["pear", "fig", "quince", "apple", "plum", "cherry", "lime", "date"]

EXPRESSIONS = (
    "[word for word in {word for word in words}]",
    "[str(set(words)), f'{set(words)!r}', list(set(words) | {1, (2, 'a'), None, 2.5})]",
    "sorted(set(words), key=lambda word: len(word))",
    "[min(set(words), key=lambda word: len(word)), max({word for word in words}, key=len)]",
    "[str(x) for x in {float('nan'), 3.0, 1.0, 2.0}]",
    "[str(x) for x in {Decimal('nan'), 3, 'a'}]",
    "{word: len(word) for word in set(words)}",
    "set(words)",
    "set(words) | {1, (2, 'a'), None}",
    "[set(words), {1, 'a'}][9]",
    "set(words).nothing",
    "set(words) + 1",
    "set(words) < 1",
    "sum(set(words))",
    "sorted({'a', 1, (2,)})",
    "len(word for word in words)",
    "no_such_name",
    "wrds",
)
"""With sets of texts and of mixed kinds, in values and in what the failures say."""

SCRIPTS = (
    "result = []\nfor word in set(words):\n    result.append(word)",
    "first = set(words)\nfirst.remove('grape')",
    "a = set(words)\nb = a.union({'grape', 1})\nresult = b",
    "for word in set(words):\n    result = word\n    break",
    "x = {'b': 1, 'a': 2}\nx.update(c=3)\nresult = [x, missing]",
)


def printed() -> Iterator[object]:
    """Everything, part by part."""
    yield from _models()
    yield from _files()
    yield from _languages()
    for name, history in HISTORIES.items():
        yield "history", name, _document(history())
    for path in sorted(MACHINE.glob("test_*.py")):
        yield from _transitions(import_module(f"tests.machine.{path.stem}"))


# ------------------------------------------------------------------ models


def _models() -> Iterator[object]:
    for name, build in MODELS.items():
        yield "model", name, *_checked(build())
    for case in CASES:
        process = ProcessBuilder("p")
        yield "case", case.__name__, *_checked(case(process, broken=True) or process.build())


def _files() -> Iterator[object]:
    for name, (text, _) in FILES.items():
        yield "file", name, *_checked(text.encode())


def _checked(source: Source) -> Iterator[object]:
    document, content = load_document(source)
    checked = check_document(document, content, Languages.default(), ValueCodec())
    yield content
    yield [str(finding) for finding in checked.findings]
    for program in checked.programs:
        yield program.key, program.digest, list(program.nodes), list(program.scopes)


# ------------------------------------------------------------------ expressions


def _languages() -> Iterator[object]:
    languages = Languages.default()
    names = {"words": WORDS}
    for text in EXPRESSIONS:
        yield text, _said(lambda text: languages.expression(text).evaluate(names, NOW), text)
    for text in SCRIPTS:
        yield text, _said(lambda text: languages.script(text).run(names, NOW), text)
    yield _said(lambda text: languages.expression(text, "feel"), "1")


def _said(what: Callable[[str], Any], text: str) -> str:
    try:
        return repr(what(text))
    except TrioflowError as error:
        return str(error)


# ------------------------------------------------------------------ the machine


def _document(run: Driver) -> bytes:
    return run.store.documents.base(run.state)


class _Told(Driver):
    """A driver that tells each transition and the document after it; copies that go on with it are for the tests."""

    told: list[object]

    def __init__(self, program: Program, *, twins: int = 0, **fields: Any) -> None:
        super().__init__(program, twins=min(twins, 0), **fields)

    def apply(self, event: Event, *, budget: int = BUDGET, after: timedelta = timedelta()) -> Transition:
        transition = super().apply(event, budget=budget, after=after)
        told = [str(each.text) for each in explain(self.program, self.state)]
        self.told.append((type(event).__name__, seen(transition), told, _document(self)))
        return transition


def _compiled(built: ProcessBuilder, **options: Any) -> Program:
    """What is large is about time, and compiling it would take most of the script's."""
    size = sum(len(process.flow_elements) for process in built.build().processes)
    assert size <= LARGEST, "too large to be told"
    return compiled(built, **options)


def _transitions(module: ModuleType) -> Iterator[object]:
    """What happens in the tests of a module that take no arguments."""
    if getattr(module, "Driver", None) is not Driver:
        return
    told = _Told.told = list[object]()
    module.Driver = _Told  # type: ignore[attr-defined]  # looked up when a test runs
    module.compiled = _compiled  # type: ignore[attr-defined]  # as above
    for name, test in list(vars(module).items()):
        if name.startswith("test_") and not hasattr(test, "hypothesis") and not signature(test).parameters:
            with suppress(AssertionError):  # it is too large; or the test of the machine fails, and says it better
                test()
            yield f"{module.__name__}::{name}", *told
            told.clear()


if __name__ == "__main__":
    for line in printed():
        sys.stdout.write(f"{line}\n")
