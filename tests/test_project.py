"""The project around the code: what the README promises, what the wheel holds, what CI calls."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent

MINUTES = 60
LONGEST = 8 * MINUTES
"""How long one command of the README may take, with all that it downloads, before it is ended."""

ROUTE = re.compile(r"PIP_\w+|SSL_CERT_\w+|\w+_proxy|TMPDIR", re.IGNORECASE)
"""What of the environment is no part of what is installed: the way to the package index, and the temporary folder."""


def readme_commands() -> list[str]:
    """Return the lines of the README's first code block, as they stand there."""
    block = re.search(r"^```\w*\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert block, "the README has no code block"
    return block[1].splitlines()


def executable(path: Path, script: str) -> Path:
    """Write a shell script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return path


# ------------------------------------------------------------------ the README


def copy_of_the_tree(target: Path) -> Path:
    """Copy what git knows or would take in, and nothing that was built or installed here."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("only a git checkout says which files belong to the project")
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


def empty_environment(home: Path) -> dict[str, str]:
    """Return an environment in which there is a Python and nothing else."""
    python = getattr(sys, "_base_executable", sys.executable)
    executable(home / "bin" / "python3", f'exec "{python}" "$@"')
    route = {name: value for name, value in os.environ.items() if ROUTE.fullmatch(name)}
    # Downloads are shared with whoever runs the tests; they are looked up as by a newcomer.
    cache = route.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip")
    return {**route, "PIP_CACHE_DIR": cache, "HOME": str(home), "PATH": str(home / "bin"), "TRIOFLOW_INNER": "1"}


def run_to_its_end(command: str, *, cwd: Path, env: dict[str, str]) -> str:
    """Run a shell command, fail with its output if it fails, and leave no process of it behind."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=LONGEST)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    assert process.returncode == 0, f"$ {command}\n{output}"
    return output


@pytest.mark.slow
def test_the_commands_of_the_readme_work_on_a_fresh_machine(tmp_path: Path) -> None:
    """With nothing but Python on PATH, the README's two commands run as they stand: the demo, then the tests.

    The variable `TRIOFLOW_INNER` makes the second one run few tests, on one Python: these here
    are run by it, and all of them would begin anew.
    """
    project = copy_of_the_tree(tmp_path / "project")
    env = empty_environment(tmp_path / "home")

    demo, tests = (run_to_its_end(command, cwd=project, env=env) for command in readme_commands())

    assert "Session demo was successful" in demo
    assert re.search(r"^=+ \d+ passed", tests, re.MULTILINE), tests


def test_ci_calls_the_test_command_of_the_readme() -> None:
    """The README begins with two commands, and the one for the tests is what CI runs, letter for letter."""
    _, tests = readme_commands()

    assert re.search(rf"^(part )?{re.escape(tests)}$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)


# ------------------------------------------------------------------ CI

MAKES_THE_ENVIRONMENT = """\
mkdir -p .venv/bin
printf '#!/bin/sh\\n' > .venv/bin/pip
cat > .venv/bin/nox <<'END'
#!/bin/sh
echo "$2 begins"
test "$2" != "$BROKEN" || { echo "$2 is broken" >&2; exit 3; }
echo "$2 ends"
END
chmod +x .venv/bin/*
"""
"""Stands for ``python3 -m venv .venv``: pip does nothing, and of nox one session can be broken."""


def beside() -> list[str]:
    """Return the sessions that CI runs beside the tests."""
    listed = re.search(r"^beside=\((.*)\)$", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    assert listed
    return listed[1].split()


def ci(folder: Path, *, broken: str) -> tuple[int, str]:
    """Run CI in an empty folder, with a nox that only talks; its status, and what it printed."""
    script = folder / ".ci" / "run"
    script.parent.mkdir()
    shutil.copy2(ROOT / ".ci" / "run", script)
    path = f"{executable(folder / 'bin' / 'python3', MAKES_THE_ENVIRONMENT).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "BROKEN": broken}
    done = subprocess.run([script], env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def test_ci_runs_what_nox_runs_by_default(noxfile: ModuleType) -> None:
    """The sessions of a bare ``nox`` are the tests and those beside them: CI finds nothing that this would not find."""
    assert sorted(noxfile.nox.options.sessions) == sorted(["tests", *beside()])


def test_ci_is_green_if_all_parts_pass(tmp_path: Path) -> None:
    """Each part is printed whole with its seconds, and the status is 0."""
    status, said = ci(tmp_path, broken="none")

    assert status == 0, said
    for session in ("tests", *beside()):
        part = rf"^=== \.venv/bin/nox -s {session}\b.*\n{session} begins\n{session} ends\n=== .*: \d+ s, passed$"
        assert re.search(part, said, re.MULTILINE), said
    assert said.endswith("=== all parts passed\n")


@pytest.mark.parametrize("broken", ["tests", "lint", "examples"])
def test_ci_is_red_if_one_part_fails(broken: str, tmp_path: Path) -> None:
    """Whichever part fails, the others run and are printed, the failing one is named, and the status is not 0."""
    status, said = ci(tmp_path, broken=broken)

    assert status == 1, said
    assert f"{broken} is broken" in said
    assert said.splitlines()[-1] == f"=== FAILED: .venv/bin/nox -s {broken}"
    assert [session for session in ("tests", *beside()) if f"{session} ends" not in said] == [broken]


# ------------------------------------------------------------------ the session

CONFTEST = "from tests.conftest import counted, pytest_terminal_summary\n"
COUNTING = """\
import pytest

@pytest.mark.parametrize("number", range(1, 5))
def test_it(number, counted):
    counted("things tried", number)
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_numbers_are_summed_over_the_session(processes: str, tmp_path: Path) -> None:
    """What tests count, such as crash points, is told as one number, in how many processes they ran too."""
    (tmp_path / "conftest.py").write_text(CONFTEST, "utf-8")
    (tmp_path / "test_it.py").write_text(COUNTING, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", processes, "-p", "no:cacheprovider", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    done = subprocess.run(command, cwd=tmp_path, env=env, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "things tried: 10" in done.stdout


# ------------------------------------------------------------------ the sessions


def sessions() -> set[str]:
    """Return the names of the functions that the noxfile registers as sessions."""
    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {function.name for function in functions if "nox.session" in map(decorator, function.decorator_list)}


def decorator(node: ast.expr) -> str:
    """Return the name of a decorator, without its arguments."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", ".ci/run"])
def test_every_session_that_is_called_exists(file: str) -> None:
    """Each `nox -s NAME` in the README, the guide for contributors and the CI script is in the noxfile."""
    called = set(re.findall(r"nox -s \"?(\w+)", (ROOT / file).read_text("utf-8")))

    assert called
    assert called | set(beside()) <= sessions()


@pytest.fixture(scope="session")
def noxfile() -> ModuleType:
    """Return the noxfile as a module of its own, where nothing but this Python is to be found.

    It is loaded once in each process, for nox remembers the sessions.
    """
    spec = importlib.util.spec_from_file_location("noxfile_under_test", ROOT / "noxfile.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        alone(patch)
        spec.loader.exec_module(module)
    return module


def alone(patch: pytest.MonkeyPatch) -> None:
    """Hide every Python but the running one, and that these tests may be run from within themselves."""
    patch.setenv("PATH", "")
    patch.setenv("HOME", "/nonexistent")
    patch.delenv("PYENV_ROOT", raising=False)
    patch.delenv("TRIOFLOW_INNER", raising=False)


def test_a_python_that_does_not_run_is_passed_over(
    noxfile: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shim on PATH that fails, and one of another version, are passed over for the one that pyenv installed."""
    alone(monkeypatch)
    failing = executable(tmp_path / "shims" / "python3.99", "exit 127").parent
    other = executable(tmp_path / "other" / "python3.99", "echo 3.98; echo /other/python").parent
    executable(tmp_path / "pyenv" / "versions" / "3.99.1" / "bin" / "python3.99", "echo 3.99; echo /real/python3.99")
    monkeypatch.setenv("PATH", f"{failing}:{other}")

    assert noxfile.find("3.99") is None
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert noxfile.find("3.99") == "/real/python3.99"


def test_the_running_python_is_found_without_any_path(noxfile: ModuleType) -> None:
    """Where only the Python that runs nox exists, it is the newest one, and the others are given as missing."""
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {version for version, python in noxfile.PYTHONS.items() if python}

    assert found == {this}
    assert this == noxfile.NEWEST
    assert [bool(interpreter.args[0]) for interpreter in noxfile.INTERPRETERS] == [
        version == this for version in noxfile.SUPPORTED
    ]


# ------------------------------------------------------------------ the package


def test_the_wheel_holds_the_whole_package(tmp_path: Path) -> None:
    """Every file of the package is in the wheel, SQL and `py.typed` with it, and the licence; nothing else is."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    files = {path for path in (ROOT / "trioflow").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    package = {path.relative_to(ROOT).as_posix() for path in files}
    assert "trioflow/py.typed" in package
    assert {name for name in names if ".dist-info/" not in name} == package
    assert [name for name in names if name.endswith("/licenses/LICENSE")]


def test_each_supported_python_is_declared_and_tested(noxfile: ModuleType) -> None:
    """The Pythons that the package declares are those that the test session takes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = [match[1] for line in project["classifiers"] if (match := re.search(r":: (3\.\d+)$", line))]

    assert sorted(declared) == sorted(noxfile.SUPPORTED)
    assert project["requires-python"] == f">={min(declared, key=lambda version: int(version[2:]))}"
