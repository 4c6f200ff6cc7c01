"""The tutorial leads from an empty folder to a process of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.docs.blocks import ROOT, blocks_of
from tests.docs.running import LONGEST, Page, commands

TUTORIAL = ROOT / "docs" / "tutorial.md"

SETUP = ("python3 -m venv .venv", ". .venv/bin/activate", 'pip install "../trioflow[cli]"')
"""Makes the environment that the tests already run in; the slow test does it for real."""


def test_the_tutorial_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is written and every command run, in order, in an empty folder; each prints what the page shows.

    The first three commands, which set the environment up, are taken as done.
    """
    monkeypatch.chdir(tmp_path)
    page = Page(TUTORIAL, tmp_path, assumed=SETUP)

    trio.run(page.run)

    assert tuple(page.ran[: len(SETUP)]) == SETUP
    assert len(page.ran) > len(SETUP)


def test_the_tutorial_shows_no_code_that_is_not_run() -> None:
    """Every block is a file that a command uses, commands, or (once) the picture of the process."""
    loose = [block.language for block in blocks_of(TUTORIAL) if not block.caption]

    assert loose.count("text") == 1
    assert set(loose) == {"console", "text"}


@pytest.mark.slow
def test_the_first_step_installs_trioflow(tmp_path: Path) -> None:
    """The first block, as it stands, makes an environment in which there are the library and its command."""
    first = next(block for block in blocks_of(TUTORIAL) if block.language == "console")
    script = "\n".join(("set -e", *(command for command, _ in commands(first)), "which trioflow", "trioflow --version"))
    (tmp_path / "trioflow").symlink_to(ROOT)
    folder = tmp_path / "claims"
    folder.mkdir()
    base = Path(getattr(sys, "_base_executable", sys.executable)).parent
    env = {**os.environ, "PATH": f"{base}{os.pathsep}{os.defpath}"}
    env.pop("VIRTUAL_ENV", None)

    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=env, capture_output=True, text=True, timeout=4 * LONGEST, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2] == str(folder / ".venv" / "bin" / "trioflow")
