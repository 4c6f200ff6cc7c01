"""`trioflow check`: every finding with its place and its remedy, for people and for machines."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.support import EXAMPLES, call, greeting, saved, widest, words

HEAD = (
    '<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d" targetNamespace="t">\n'
    '<process id="p" isExecutable="true">\n'
)
TAIL = "</process>\n</definitions>\n"


def model(folder: Path, body: str, name: str = "model.bpmn") -> Path:
    """Write a document whose process has this content, from line 3 on."""
    path = folder / name
    path.write_text(f"{HEAD}{body}{TAIL}", "utf-8")
    return path


def test_the_example_has_nothing_to_complain_about() -> None:
    """The order process of the examples passes, also strictly, and the summary says so."""
    result = call("check", "--strict", EXAMPLES / "order.bpmn")

    assert result.exit_code == 0
    assert result.stdout == "1 file: 1 can be deployed, 0 refused (no findings).\n"


def test_a_finding_has_file_line_level_rule_element_message_and_remedy(tmp_path: Path) -> None:
    """The first line is for editors and grep, unwrapped; message and remedy follow, wrapped to the screen."""
    path = model(tmp_path, '<startEvent id="s"/>\n<sequenceFlow id="f" sourceRef="s" targetRef="nowhere"/>\n')

    result = call("check", path)

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    at = next(index for index, line in enumerate(lines) if "nowhere" in line)
    assert f"{path}:4: error [unresolved-reference] f" in lines
    assert lines[at].startswith("    ")
    assert "Correct the reference, or add the element." in words(result.stdout)
    assert widest("\n".join(line for line in lines if not line.startswith(str(path)))) <= 80


BAD = {
    "a malformed file": ("<definitions><process>", "xml-malformed", 1),
    "an empty file": ("", "xml-malformed", 1),
    "a file of another kind": ("<svg xmlns='http://www.w3.org/2000/svg'/>", "not-bpmn", 1),
    "an unknown element": (f'{HEAD}<serviceTusk id="x"/>\n{TAIL}', "unknown-element", 3),
    "a duplicate id": (f'{HEAD}<task id="x"/>\n<task id="x"/>\n{TAIL}', "duplicate-id", 4),
    "a doctype": (f"<!DOCTYPE a>\n{HEAD}{TAIL}", "xml-doctype", 1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_its_rule_and_line(tmp_path: Path, name: str) -> None:
    """What is wrong with a file comes as a finding with a line, never as a traceback."""
    content, rule, line = BAD[name]
    path = tmp_path / "bad.bpmn"
    path.write_text(content, "utf-8")

    result = call("check", path)

    assert result.exit_code == 1
    assert re.search(rf"^{re.escape(str(path))}:{line}: error \[{rule}\]", result.stdout, re.MULTILINE), result.stdout


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    """A path that is not there is one finding; the next file is checked all the same."""
    good = saved(tmp_path, greeting())

    result = call("check", tmp_path / "none.bpmn", good)

    assert result.exit_code == 1
    assert "none.bpmn: error [unreadable]" in result.stdout
    assert "No such file or directory" in words(result.stdout)
    assert "2 files: 1 can be deployed, 1 refused" in result.stdout


def test_a_folder_is_searched_and_a_pattern_is_matched(tmp_path: Path) -> None:
    """A folder means all models below it; a pattern that no shell matched is matched here; a file counts once."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    saved(tmp_path, greeting(), "one.bpmn")
    saved(tmp_path / "deep" / "er", greeting(), "two.bpmn")
    (tmp_path / "notes.txt").write_text("no model", "utf-8")

    assert "2 files: 2 can be deployed" in call("check", tmp_path).stdout
    assert "2 files: 2 can be deployed" in call("check", tmp_path / "**" / "*.bpmn", tmp_path).stdout


def test_a_folder_without_models_is_a_finding(tmp_path: Path) -> None:
    """Nothing to check is not the same as all is well."""
    result = call("check", tmp_path)

    assert result.exit_code == 1
    assert "holds no file named" in words(result.stdout)


def test_standard_input_can_be_checked() -> None:
    """`-` reads the document from the standard input."""
    result = call("check", "-", stdin=(EXAMPLES / "order.bpmn").read_text("utf-8"))

    assert result.exit_code == 0
    assert "1 file: 1 can be deployed" in result.stdout


def test_a_document_without_a_process_to_execute_is_refused(tmp_path: Path) -> None:
    """What a deployment would refuse for want of a process, the check refuses too."""
    path = tmp_path / "drawing.bpmn"
    path.write_text(f"{HEAD}{TAIL}".replace('"true"', '"false"'), "utf-8")

    result = call("check", path)

    assert result.exit_code == 1
    assert "[nothing-executable]" in result.stdout


def test_violations_refuse_only_strictly(tmp_path: Path) -> None:
    """A flow that its ends do not list is a violation: the exit status is 1 only with --strict."""
    path = model(
        tmp_path,
        '<startEvent id="s"/><endEvent id="e"/><sequenceFlow id="f" sourceRef="s" targetRef="e"/>\n',
    )

    assert call("check", path).exit_code == 0
    assert call("check", "--strict", path).exit_code == 1


def test_json_holds_all_that_is_said(tmp_path: Path) -> None:
    """One document: for each file its processes and findings, and the counts."""
    good = saved(tmp_path, greeting())
    bad = model(tmp_path, '<task id="x"/><task id="x"/>\n', "bad.bpmn")

    result = call("check", "--json", good, bad)
    document = json.loads(result.stdout)

    assert result.exit_code == 1
    assert [file["refused"] for file in document["files"]] == [False, True]
    assert document["files"][0]["processes"] == ["greeting"]
    found = next(each for each in document["files"][1]["findings"] if each["rule"] == "duplicate-id")
    assert (found["line"], found["level"], found["element"]) == (3, "error", "x")
    assert found["message"]
    assert found["remedy"]
    assert document["refused"] == 1


def test_every_shared_model_is_checked_and_every_refusal_named(shared: Path) -> None:
    """All models of the shared collection are read without a traceback; each refused one has an error that says why."""
    paths = sorted((shared / "models").rglob("*.bpmn"))
    assert paths

    document = json.loads(call("check", "--json", *paths).stdout)

    assert len(document["files"]) == len(paths)
    for file in document["files"]:
        errors = [finding for finding in file["findings"] if finding["level"] == "error"]
        assert file["refused"] == bool(errors), file["file"]
        assert file["refused"] or file["processes"], file["file"]
        for finding in errors:
            assert finding["rule"] != "internal-error", file["file"]
            assert all(finding[part] for part in ("message", "remedy", "line")), (file["file"], finding)
