"""The command line as a whole: its help, its version, and a machine without the extra."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from typing import Any

import pytest

from tests.cli.support import call, widest
from trioflow import cli


@pytest.mark.parametrize("command", [(), ("demo",), ("run",), ("check",), ("instances",), ("show",)])
def test_every_command_has_help_that_fits_the_screen(command: tuple[str, ...]) -> None:
    """`--help` works for each command, within 80 columns."""
    result = call(*command, "--help")

    assert result.exit_code == 0
    assert result.stdout.startswith("Usage:")
    assert widest(result.stdout) <= 80


def test_the_help_of_run_shows_an_answers_file() -> None:
    """The example stands there line by line, as it can be copied."""
    lines = [line.strip() for line in call("run", "--help").stdout.splitlines()]

    assert '"tasks": {"check-order": {"approved": true}},' in lines


def test_the_version_is_the_package_s() -> None:
    """`--version` is what is installed."""
    assert version("trioflow") in call("--version").stdout


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where click or rich is missing, the entry point ends with status 2 and the command that installs them."""
    found = importlib.util.find_spec

    def without_rich(name: str, package: str | None = None) -> Any:
        return None if name == "rich" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_rich)

    with pytest.raises(SystemExit) as caught:
        cli.main()

    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert "needs rich, which this Python does not have" in said
    assert "pip install 'trioflow[cli]'" in said
