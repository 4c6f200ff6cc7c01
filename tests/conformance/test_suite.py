"""The suite as files: where it is looked for, how a case is read, the report, and what happens where it is absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance.betsy import Outcome, Result
from tests.conformance.cases import READINGS, ROOT, Start, absence, executable_cases, folder
from tests.conformance.report import WIDTH, report
from tests.conformance.support import a_case, a_suite, an_entry
from trioflow import ProcessBuilder
from trioflow.model import Definitions


def model(word: str) -> Definitions:
    """One script."""
    built = ProcessBuilder("p")
    built.start("s").script("t", word).end("e")
    return built.build()


# ------------------------------------------------------------------ reading


def test_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The suite is where its variable says, else in the shared folder that the other variable names, else beside the
    project.
    """
    monkeypatch.setenv("TRIOFLOW_CONFORMANCE", str(tmp_path / "own"))
    monkeypatch.setenv("TRIOFLOW_SHARED", str(tmp_path))
    assert folder() == tmp_path / "own"
    monkeypatch.delenv("TRIOFLOW_CONFORMANCE")
    assert folder() == tmp_path / "conformance" / "betsy"
    monkeypatch.delenv("TRIOFLOW_SHARED")
    assert folder() == ROOT.parent / "shared" / "conformance" / "betsy"


def test_a_case(tmp_path: Path) -> None:
    """A case has the variables that its start names, its delay in seconds, and its error among the labels."""
    (case,) = executable_cases(a_suite(tmp_path, [an_entry("one", "SCRIPT_task1", error="ERROR_runtime")], {}))
    assert case == a_case(
        tmp_path / "one.bpmn",
        id="one#1",
        starts=(Start(process="p", variables={"n": 7}),),
        delay=1.5,
        admitted=(("SCRIPT_task1", "ERROR_runtime"),),
    )


def test_readings(tmp_path: Path) -> None:
    """Our reading of the standard goes before what the suite expects: that of the file, else one of our own."""
    (disputed,) = READINGS
    own = an_entry("one", "SCRIPT_task2") | {"id": disputed}
    entries = [an_entry("two", "SCRIPT_task2", spec_trace=["SCRIPT_task3"]), own, an_entry("three", "SCRIPT_task2")]
    cases = executable_cases(a_suite(tmp_path, entries, {}))
    assert [case.admitted for case in cases] == [(("SCRIPT_task3",),), READINGS[disputed], (("SCRIPT_task2",),)]


def test_only_what_is_executed(tmp_path: Path) -> None:
    """Cases that only ask for a refusal at deployment are none of these."""
    entries = [an_entry("refused", error="ERROR_deployment"), an_entry("any", error="ERROR")]
    assert [case.id for case in executable_cases(a_suite(tmp_path, entries, {}))] == ["any#1"]


# ------------------------------------------------------------------ the report


def test_report() -> None:
    """A row for each verdict of each group, in order, with the sums; defective files apart; what failed, and why; the
    reasons of what cannot be executed, with how often.
    """
    long = "The reason is a long one, " * 8
    results = [
        Result(case=a_case(id=f"c#{number}", group=group, verdict=verdict), outcome=outcome, why=why)
        for number, (group, verdict, outcome, why) in enumerate(
            [
                ("events", "sound", Outcome.PASSED, ""),
                ("basics", "sound", Outcome.NOT_YET, "An x is not executed."),
                ("events", "disputed", Outcome.FAILED, long),
                ("events", "sound", Outcome.NOT_YET, "An x is not executed."),
                ("events", "fixture-defect", Outcome.PASSED, ""),
            ]
        )
    ]
    text = report(results)
    assert [line.split() for line in text.splitlines()[:10] if line] == [
        ["group", "verdict", "cases", "passed", "failed", "not", "executable", "yet"],
        ["-" * WIDTH],
        ["events", "sound", "2", "1", ".", "1"],
        ["events", "disputed", "1", ".", "1", "."],
        ["basics", "sound", "1", ".", ".", "1"],
        ["-" * WIDTH],
        ["all", "4", "1", "1", "2"],
        ["apart:", "the", "files", "of", "these", "cases", "contradict", "what", "they", "expect"],
        ["events", "fixture-defect", "1", "1", ".", "."],
    ]
    assert max(map(len, text.splitlines())) == WIDTH == 80
    assert f"FAILED c#2 (disputed): {long.strip()}" in " ".join(text.split())
    assert text.endswith("not executable yet:\n   2  An x is not executed.\n")


@pytest.mark.parametrize("word, status", [("SCRIPT_task1", 0), ("SCRIPT_task2", 1)])
def test_exit_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str, status: int
) -> None:
    """The command runs the suite, prints the report, and says by its status whether something failed."""
    suite = a_suite(tmp_path, [an_entry("c", "SCRIPT_task1")], {"c": model(word)})
    monkeypatch.setenv("TRIOFLOW_CONFORMANCE", str(suite))
    assert main([]) == status
    printed = capsys.readouterr().out
    assert ("FAILED c#1" in printed) is bool(status)
    assert "basics" in printed


def test_some_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command runs the cases with a given part in their ids; none of them is a mistake, not a success."""
    entries = [an_entry("good", "SCRIPT_task1"), an_entry("bad", "SCRIPT_task2")]
    models = dict.fromkeys(("good", "bad"), model("SCRIPT_task1"))
    monkeypatch.setenv("TRIOFLOW_CONFORMANCE", str(a_suite(tmp_path, entries, models)))
    assert (main(["good"]), main(["bad"]), main(["goo", "ba"])) == (0, 1, 1)
    capsys.readouterr()
    assert main(["ugly"]) == 2
    assert capsys.readouterr().err == "no case has ugly in its id\n"


# ------------------------------------------------------------------ without the suite


def test_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the suite the command says where it was looked for and what to do, and is no success."""
    monkeypatch.setenv("TRIOFLOW_CONFORMANCE", str(tmp_path))
    assert main([]) == 2
    assert capsys.readouterr().err == f"{absence(tmp_path)}\n"
    assert str(tmp_path) in absence(tmp_path)
    assert "TRIOFLOW_CONFORMANCE" in absence(tmp_path)


def test_absent_skips(tmp_path: Path) -> None:
    """Without the suite its tests are skipped, with that reason."""
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance/test_betsy.py"],
        cwd=ROOT,
        env=os.environ | {"TRIOFLOW_CONFORMANCE": str(tmp_path), "COLUMNS": "1000"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout
    assert "2 skipped" in told.stdout
    assert absence(tmp_path) in told.stdout
