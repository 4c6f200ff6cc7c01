"""Real files of many tools, and a conformance suite: each is read and survives writing, or is refused with reasons."""

from __future__ import annotations

import json
from pathlib import Path

from trioflow.model import Level, errors
from trioflow.xml import read, write

ILLEGAL = frozenset(
    {
        *("duplicate-id", "unknown-attribute", "unknown-element", "misplaced-element", "bad-value", "missing-id"),
        *("unresolved-reference", "not-bpmn", "xml-malformed"),
    }
)
"""The rules that public models break; each was looked at, and none of these files is right by the standard's letter,
but for ids: the schema lets a node go without one, and nothing can be executed then."""


def files(folder: Path) -> list[Path]:
    """Every BPMN file below a folder, of which there must be some."""
    found = sorted(folder.rglob("*.bpmn"))
    assert found
    return found


def test_every_file_survives_or_is_refused(shared: Path) -> None:
    """No file raises; what is read is written and read again without a difference; findings are complete."""
    for path in files(shared / "models") + files(shared / "conformance" / "betsy" / "bpmn"):
        found = read(path)
        for finding in found.findings:
            assert finding.position is not None, path
            assert finding.position.line > 0, path
            assert finding.message.endswith("."), path
            assert finding.remedy.endswith("."), path
        if found.definitions is None:
            assert errors(found.findings), path
            continue
        data = write(found.definitions)
        again = read(data)
        assert again.definitions == found.definitions, path
        assert write(found.definitions) == data, path


def test_public_models_are_refused_only_where_they_are_wrong(shared: Path) -> None:
    """Of the models of real tools, those that the standard's schema accepts are read, but for what leads nowhere."""
    entries = [json.loads(line) for line in (shared / "models" / "index.jsonl").read_text("utf-8").splitlines()]
    for entry in entries:
        rules = {finding.rule for finding in errors(read(shared / "models" / entry["file"]).findings)}
        assert rules <= ILLEGAL, entry["file"]
        if entry["xsd_valid"]:
            assert rules <= {"unresolved-reference", "missing-id"}, entry["file"]


def test_executable_cases_are_not_refused(shared: Path) -> None:
    """No file of the conformance suite that an engine must execute has an error."""
    suite = shared / "conformance" / "betsy"
    cases = json.loads((suite / "cases.json").read_text("utf-8"))
    executable = {case["file"] for case in cases if case["expect"]["error"] != "ERROR_deployment"}
    assert executable
    for file in sorted(executable):
        assert [str(finding) for finding in read(suite / file).findings if finding.level is Level.ERROR] == []
