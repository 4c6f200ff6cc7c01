"""The house and its floors: imports go downward only, and what must stay pure stays pure.

`FLOORS` is the table of the architecture, `KEPT` names the libraries that have one home.  Both
are read here by eye and by the tests; every import counts, also one inside a function, one
under `TYPE_CHECKING`, and one by `import_module` with a literal name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).resolve().parent.parent

# A name with brackets is a call, everything else a module with all that is below it.
CLOCK = ("time", "sched", "datetime.now()", "datetime.utcnow()", "datetime.today()", "date.today()")
RANDOM = ("random", "secrets", "uuid")
LOOPS = ("trio", "trio_asyncio", "asyncio")
IO = (
    *("os", "io", "pathlib", "shutil", "tempfile", "fcntl", "mmap", "socket", "ssl", "select", "selectors"),
    *("http", "urllib.request", "subprocess", "multiprocessing", "threading", "concurrent", "queue", "signal"),
    *("sqlite3", "logging", "open()", "print()", "input()"),
)


@attrs.frozen(kw_only=True)
class Floor:
    """One row: what lives there, what it never imports, and which of its own floor it may look at."""

    number: int
    holds: str
    never: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


FLOORS = (
    Floor(number=0, holds="trioflow.errors"),
    Floor(number=0, holds="trioflow.facts"),
    Floor(number=1, holds="trioflow.model", never=(*LOOPS, "lxml", *CLOCK, *RANDOM)),
    Floor(number=1, holds="trioflow.values", never=LOOPS),
    Floor(number=2, holds="trioflow.expressions", never=LOOPS),
    Floor(number=2, holds="trioflow.xml"),
    Floor(number=3, holds="trioflow.machine", never=(*LOOPS, *CLOCK, *RANDOM, *IO)),
    Floor(number=4, holds="trioflow.checkpoint", never=LOOPS),
    Floor(number=5, holds="trioflow.stores", never=("trioflow.machine",)),
    Floor(number=6, holds="trioflow.runtime", never=("lxml",)),
    Floor(number=7, holds="trioflow"),
    Floor(number=7, holds="trioflow.testing", beside=("trioflow",)),
    Floor(number=7, holds="trioflow.cli", beside=("trioflow",)),
)

# Libraries that have one home: an import from anywhere else is an offence.
KEPT = {
    "lxml": ("trioflow.xml", "trioflow.expressions.xpath"),
    "sqlite3": ("trioflow.stores",),
    "trio_asyncio": ("trioflow.stores",),
    "asyncio": ("trioflow.stores",),
    "click": ("trioflow.cli",),
    "rich": ("trioflow.cli",),
}


# ------------------------------------------------------------------ reading a module


def is_within(name: str, home: str) -> bool:
    """Say whether a dotted name is that module or lies below it; a call is only ever itself."""
    return name == home or (name.startswith(f"{home}.") and not name.endswith("()"))


def is_named(use: str, names: tuple[str, ...]) -> bool:
    """Say whether a use is of one of those modules, or one of those calls."""
    return any(is_within(use, name) for name in names)


def floor_of(name: str) -> Floor | None:
    """Return the row of a module, or of a name in one; the face holds every name without a row of its own."""
    rows = [row for row in FLOORS if is_within(name, row.holds)]
    return max(rows, key=lambda row: len(row.holds), default=None)


def absolute(node: ast.ImportFrom, package: str) -> str:
    """Return the full name of what an `import from` looks into."""
    if not node.level:
        return node.module or ""
    base = package.rsplit(".", node.level - 1)[0]
    return f"{base}.{node.module}" if node.module else base


def called(node: ast.Call) -> str:
    """Return the last two parts of a called name, with brackets: `datetime.now()`, `open()`."""
    return ".".join(ast.unparse(node.func).split(".")[-2:]) + "()"


def loaded_by_name(node: ast.Call) -> str | None:
    """Return the module that `import_module` or `__import__` is given as a literal."""
    if called(node) not in {"importlib.import_module()", "import_module()", "__import__()"}:
        return None
    match node.args:
        case [ast.Constant(value=str(name)), *_]:
            return name
    return None


def uses(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of every import and every call in a module."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                base = absolute(node, package)
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
            case ast.Call():
                yield node.lineno, loaded_by_name(node) or called(node)


# ------------------------------------------------------------------ the rule


def objection(module: str, use: str) -> str | None:
    """Return why that module must not use that name; None if it may."""
    own = floor_of(module)
    if own is None or (own.holds == "trioflow" and module != "trioflow"):
        return "the module has no floor: give it a row in the table, here and in the architecture"
    if is_named(use, own.never):
        return f"{own.holds} never uses that"
    homes = next((homes for library, homes in KEPT.items() if is_within(use, library)), None)
    if homes and not is_named(module, homes):
        return f"only {' and '.join(homes)} may"
    other = floor_of(use) if is_within(use, "trioflow") else None
    if other is None or other is own or other.number < own.number or other.holds in own.beside:
        return None
    return f"{own.holds} is on floor {own.number}, {other.holds} on floor {other.number}; imports go downward only"


def offences(module: str, source: str, *, package: str) -> list[str]:
    """Return every offence of a module, as `module:line: name: reason`."""
    found = ((line, use, objection(module, use)) for line, use in uses(source, package))
    return [f"{module}:{line}: {use}: {reason}" for line, use, reason in sorted(set(found)) if reason]


def modules() -> Mapping[str, Path]:
    """Return every module of trioflow and its file."""
    files = sorted((ROOT / "trioflow").rglob("*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files]
    return dict(zip(names, files, strict=True))


def package_of(module: str, file: Path) -> str:
    """Return the package that a module's relative imports start from."""
    return module if file.name == "__init__.py" else module.rpartition(".")[0]


# ------------------------------------------------------------------ the tests


@pytest.mark.parametrize("module, file", modules().items(), ids=list(modules()))
def test_imports_go_downward_only(module: str, file: Path) -> None:
    """No module of trioflow imports upward, sideways, or what its floor never imports."""
    assert offences(module, file.read_text("utf-8"), package=package_of(module, file)) == []


def test_every_floor_is_inhabited_once() -> None:
    """The table names each package once, so that a module has one floor."""
    holds = [row.holds for row in FLOORS]

    assert len(set(holds)) == len(holds)
    assert [row.number for row in FLOORS] == sorted(row.number for row in FLOORS)


def test_the_face_only_re_exports() -> None:
    """`trioflow/__init__.py` holds imports and dunder names, and no code."""
    body = ast.parse((ROOT / "trioflow" / "__init__.py").read_text("utf-8")).body
    code = [
        ast.unparse(node)
        for node in body
        if not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__"))
    ]

    assert code == []


BAD = {
    "upward": ("trioflow.model.graph", "from trioflow.machine import state", "imports go downward only"),
    "upward, relative": ("trioflow.machine.apply", "from ..runtime.host import Host", "imports go downward only"),
    "upward, for types": (
        "trioflow.machine.apply",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import trioflow.checkpoint",
        "imports go downward only",
    ),
    "upward, in a function": (
        "trioflow.xml.reader",
        "def read():\n    from trioflow.machine.state import State",
        "imports go downward only",
    ),
    "upward, by name": (
        "trioflow.machine.apply",
        "import importlib\nimportlib.import_module('trioflow.stores.sqlite')",
        "imports go downward only",
    ),
    "sideways": ("trioflow.model.graph", "import trioflow.values", "imports go downward only"),
    "the face from below": ("trioflow.runtime.engine", "from trioflow import Work", "imports go downward only"),
    "the cli from the face": ("trioflow", "from trioflow.cli import main", "imports go downward only"),
    "floor 0 imports ours": ("trioflow.facts", "from trioflow.errors import TrioflowError", "downward only"),
    "trio in the machine": ("trioflow.machine.apply", "import trio", "never uses that"),
    "a clock in the machine": ("trioflow.machine.apply", "from time import monotonic", "never uses that"),
    "a clock by a call": (
        "trioflow.machine.apply",
        "import datetime as dt\ndt.datetime.now(dt.UTC)",
        "datetime.now(): trioflow.machine never uses that",
    ),
    "chance in the machine": ("trioflow.machine.apply", "import uuid", "never uses that"),
    "files in the machine": ("trioflow.machine.apply", "import os.path", "never uses that"),
    "a file by a call": ("trioflow.machine.apply", "def f():\n    open('x')", "open(): trioflow.machine never"),
    "lxml in the model": ("trioflow.model.graph", "from lxml import etree", "never uses that"),
    "lxml in the runtime": ("trioflow.runtime.engine", "import lxml.etree", "never uses that"),
    "lxml in the command line": ("trioflow.cli.check", "from lxml import etree", "only trioflow.xml and"),
    "the machine in a store": ("trioflow.stores.memory", "from trioflow.machine import state", "never uses that"),
    "the runtime in a store": ("trioflow.stores.memory", "from ..runtime import host", "downward only"),
    "no floor": ("trioflow.attic.box", "import json", "has no floor"),
}

GOOD = {
    "downward": ("trioflow.machine.apply", "from trioflow.model import Process\nfrom ..values import paths"),
    "its own package": ("trioflow.machine.apply", "from . import state\nfrom .behaviours.tasks import enter"),
    "the face from the command line": ("trioflow.cli.run", "import trioflow\nfrom rich.table import Table"),
    "dates without a clock": (
        "trioflow.machine.apply",
        "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)",
    ),
    "a method that is called open": ("trioflow.machine.apply", "from .scopes import book\nbook.open('x')"),
    "a variable named like a module": ("trioflow.machine.joins", "def f(queue):\n    queue.popleft()"),
    "a name that only begins alike": ("trioflow.machine.apply", "import timeless, osmosis"),
}


@pytest.mark.parametrize("module, source, reason", BAD.values(), ids=list(BAD))
def test_the_rule_can_fail(module: str, source: str, reason: str) -> None:
    """Each way to break the rule is found, in a module made up for it, and the reason is given."""
    found = offences(module, source, package=module.rpartition(".")[0] or module)

    assert [offence for offence in found if reason in offence], found


@pytest.mark.parametrize("module, source", GOOD.values(), ids=list(GOOD))
def test_the_rule_can_pass(module: str, source: str) -> None:
    """What the table allows is no offence."""
    assert offences(module, source, package=module.rpartition(".")[0]) == []
