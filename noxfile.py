"""The sessions of the project: what developers and CI run, each in an environment of its own.

A session takes the newest Python that works here; `tests` takes every supported one.  More
arguments go behind a double dash: `nox -s "tests(3.12)" -- tests/machine -k join`.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "typing", "tests", "docs", "examples"]

PYPROJECT = nox.project.load_toml("pyproject.toml")
SUPPORTED = ("3.13", "3.12", "3.11")

# Set where the tests run the README's commands: the session is then only to show that it works.
INNER = bool(os.environ.get("TRIOFLOW_INNER"))

# As many processes as there are cores; one that has nothing left takes tests from another.  `-- -n0` undoes it.
IN_PARALLEL = ("-n", "auto", "--dist", "worksteal")

# What runs tasks at the same time: its tests have another order of them with each TRIOFLOW_SEED.
BY_SEED = ("tests/crash", "tests/runtime", "tests/stores")

# A virtual environment on PATH answers with the Python that it was made from.
WHO_ARE_YOU = """
import sys
print("%d.%d" % sys.version_info[:2])
print(getattr(sys, "_base_executable", sys.executable))
"""


# ------------------------------------------------------------------ which interpreters work here


def candidates(version: str) -> Iterator[Path]:
    """Yield every place where a Python of that version may be: the running one, PATH, pyenv."""
    yield Path(sys.executable)
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        for name in (f"python{version}", "python3"):
            if found := shutil.which(name, path=folder):
                yield Path(found)
    roots = {Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser(), Path.home() / ".pyenv"}
    for root in sorted(roots):
        yield from sorted((root / "versions").glob(f"{version}[.-]*/bin/python{version}"), reverse=True)


@cache
def identify(python: Path) -> tuple[str, str] | None:
    """Ask a Python for its version and its own path; None if it does not run, as a pyenv shim may."""
    try:
        answer = subprocess.run(
            [python, "-c", WHO_ARE_YOU], capture_output=True, check=True, text=True, timeout=30
        ).stdout.splitlines()
    except (OSError, subprocess.SubprocessError):
        return None
    return (answer[0], answer[1]) if len(answer) == 2 else None


def find(version: str) -> str | None:
    """Return the path of a Python of that version that really runs."""
    answers = (identify(python) for python in candidates(version))
    return next((answer[1] for answer in answers if answer and answer[0] == version), None)


PYTHONS = {version: find(version) for version in SUPPORTED}
NEWEST = next((version for version in SUPPORTED if PYTHONS[version]), SUPPORTED[0])
# `False` makes nox build no environment: such a session only says that it is skipped.
WANTED = (NEWEST,) if INNER else SUPPORTED
INTERPRETERS = [nox.param(PYTHONS[version] or False, id=version) for version in WANTED]


# ------------------------------------------------------------------ the sessions


def install(session: nox.Session, *groups: str) -> None:
    """Install the project, as a link to this folder, and the dependency groups: one call of pip."""
    requirements = nox.project.dependency_groups(PYPROJECT, *groups) if groups else ()
    session.install("--editable", ".[cli]", *requirements, log=False)


@nox.session(python=PYTHONS[NEWEST])
def demo(session: nox.Session) -> None:
    """Kill an order process in the middle, start it again, and see it go on."""
    install(session)
    session.run("trioflow", "demo", *session.posargs, log=False)


@nox.session
@nox.parametrize("python", INTERPRETERS)
def tests(session: nox.Session) -> None:
    """Run the whole suite on the newest Python; all but the crashes, the properties and what is slow on the others."""
    if not session.python:
        session.skip("no working Python of this version on PATH or under pyenv")
    install(session, "tests")
    if INNER:
        arguments = ["tests/test_imports.py"]
    elif session.python == PYTHONS[NEWEST]:
        arguments = [*IN_PARALLEL]
    else:
        older = "not slow and not stress"
        arguments = [*IN_PARALLEL, "--ignore=tests/crash", "--ignore=tests/properties", "-m", older]
    session.run("pytest", *arguments, *session.posargs)


@nox.session(python=PYTHONS[NEWEST])
def lint(session: nox.Session) -> None:
    """Check format and style; flake8 only brings the rules for async code that ruff does not have."""
    session.install(*nox.project.dependency_groups(PYPROJECT, "lint"), log=False)
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    sources = [name for name in ("trioflow", "tests", "examples", "benchmarks", "noxfile.py") if Path(name).exists()]
    # The optional nine hundreds contradict each other; 124 does not know of the contract of handlers; tests do on
    # purpose what a program should not (swallow a cancellation, return out of a nursery).
    options = ["--select=ASYNC1,ASYNC2", "--ignore=ASYNC124", "--startable-in-context-manager=_serve,_work"]
    session.run(
        "flake8", *options, "--per-file-ignores=tests/*:ASYNC103,ASYNC104,ASYNC111,ASYNC114,ASYNC116,ASYNC121", *sources
    )


@nox.session(python=PYTHONS[NEWEST])
def typing(session: nox.Session) -> None:
    """Check the types, strictly."""
    install(session, "typing")
    session.run("mypy", *session.posargs)


@nox.session(python=PYTHONS[NEWEST])
def docs(session: nox.Session) -> None:
    """Build the documentation, and the next changelog entry as a draft; a warning is an error."""
    install(session, "docs")
    session.run("towncrier", "build", "--draft", "--version=next", silent=True)
    strict = ("--fail-on-warning", "--keep-going", "--fresh-env", "--quiet")
    session.run("sphinx-build", *strict, "docs", "docs/_build/html")


@nox.session(python=PYTHONS[NEWEST])
def examples(session: nox.Session) -> None:
    """Run every example, each in a folder of its own."""
    programs = sorted(path.resolve() for path in Path("examples").glob("*.py"))
    if not programs:
        session.error("there is no program under examples/")
    install(session)
    for program in programs:
        with session.chdir(session.create_tmp()):
            session.run("python", "-W", "error", program)


@nox.session(python=PYTHONS[NEWEST])
def crash(session: nox.Session) -> None:
    """Kill processes with SIGKILL at many more moments than the suite does; TRIOFLOW_SIGKILL_RUNS says how many."""
    install(session, "tests")
    runs = os.environ.get("TRIOFLOW_SIGKILL_RUNS", "50")
    session.run("pytest", "tests/crash", "-m", "sigkill", *session.posargs, env={"TRIOFLOW_SIGKILL_RUNS": runs})


@nox.session(python=PYTHONS[NEWEST])
def conformance(session: nox.Session) -> None:
    """Run the conformance suite, print what came of each case, and test what it stands on."""
    suite = Path(os.environ.get("TRIOFLOW_SHARED") or "../shared") / "conformance" / "betsy"
    if not suite.is_dir():
        session.skip(f"the cases are not at {suite}: set TRIOFLOW_SHARED to the folder with the shared test input")
    install(session, "tests")
    session.run("python", "-m", "tests.conformance", *session.posargs)
    session.run("pytest", *IN_PARALLEL, "tests/conformance", "tests/model")


@nox.session(python=PYTHONS[NEWEST])
def stress(session: nox.Session) -> None:
    """Run the stress tests, and the runtime under many orders of its tasks; TRIOFLOW_SEEDS says which, or how many."""
    install(session, "tests")
    for seed in seeds():
        chosen = {"TRIOFLOW_SEED": str(seed)}
        session.log(f"TRIOFLOW_SEED={seed}")
        # Status 5: nothing is marked so.
        session.run("pytest", *IN_PARALLEL, "-m", "stress", *session.posargs, env=chosen, success_codes=[0, 5])
        session.run("pytest", *IN_PARALLEL, *BY_SEED, "-m", "not sigkill and not stress", *session.posargs, env=chosen)


def seeds() -> list[int]:
    """Return the seeds of a stress session: those that TRIOFLOW_SEEDS lists (``17,4711``), or so many random ones."""
    wanted = os.environ.get("TRIOFLOW_SEEDS", "10")
    if "," in wanted:
        return [int(seed) for seed in wanted.split(",") if seed]
    return random.SystemRandom().sample(range(10**6), int(wanted))


@nox.session(python=PYTHONS[NEWEST])
def bench(session: nox.Session) -> None:
    """Measure; the figures are printed, and compared with nothing."""
    install(session)
    session.run("python", "-m", "benchmarks", *session.posargs)
