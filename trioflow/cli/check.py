"""``trioflow check``: everything there is to say about models, without running them."""

from __future__ import annotations

import glob
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from trioflow.cli.output import FAILED, OK, console, print_finding, print_json
from trioflow.errors import ModelError
from trioflow.expressions import Languages
from trioflow.model import Finding, Level, Position, errors
from trioflow.runtime.definitions import check_document, load_document
from trioflow.values import ValueCodec
from trioflow.xml import Document, read

__all__ = ["CheckedFile", "check", "check_content", "check_file"]

STDIN = "-"
SUFFIXES = ("*.bpmn", "*.bpmn2", "*.bpmn20.xml")
"""What is taken from a folder."""


@frozen(kw_only=True)
class CheckedFile:
    """One file: its findings in the order of lines, and the processes that can be run."""

    name: str
    findings: tuple[Finding, ...]
    processes: tuple[str, ...] = ()

    def is_refused(self, *, strict: bool) -> bool:
        """Whether a deployment would refuse it."""
        return bool(errors(self.findings, strict=strict))


def check_file(path: str) -> CheckedFile:
    """Check one file; one that cannot be read is a finding too."""
    try:
        document, content = load_document(path)
    except ModelError as error:
        return _unreadable(path, str(error))
    return _checked(path, document, content)


def check_content(name: str, content: bytes) -> CheckedFile:
    """Check a document that has been read already; ``name`` stands for it."""
    return _checked(name, read(content, name=name), content)


def _checked(name: str, document: Document, content: bytes) -> CheckedFile:
    try:
        checked = check_document(document, content, Languages.default(), ValueCodec())
    except Exception as error:  # noqa: BLE001 - one file that we fail on must not hide what is wrong with the others
        return _of_ours(name, error)
    findings = list(checked.findings)
    if not checked.programs and not errors(findings):
        findings.append(_nothing_to_run(name, document))
    findings.sort(key=lambda finding: finding.position.line if finding.position else 0)
    return CheckedFile(
        name=name, findings=tuple(findings), processes=tuple(program.key for program in checked.programs)
    )


def _unreadable(name: str, message: str) -> CheckedFile:
    finding = Finding(
        level=Level.ERROR, rule="unreadable", message=f"{message}.", remedy="Check the path and who may read it."
    )
    return CheckedFile(name=name, findings=(finding,))


def _of_ours(name: str, error: Exception) -> CheckedFile:
    finding = Finding(
        level=Level.ERROR,
        rule="internal-error",
        message=f"trioflow itself failed on this file: {type(error).__name__}: {error}.",
        remedy="Please report it, with the file.",
    )
    return CheckedFile(name=name, findings=(finding,))


def _nothing_to_run(name: str, document: Document) -> Finding:
    top = document.definitions
    return Finding(
        position=(top.position if top is not None else None) or Position(1, name),
        level=Level.ERROR,
        rule="nothing-executable",
        message="The document holds no process that is to be executed, so there is nothing to deploy.",
        remedy='Add a process, or remove isExecutable="false" from the one to run.',
    )


# ------------------------------------------------------------------ which files


def _expand(names: Iterable[str]) -> Iterator[str]:
    """The files that arguments mean: a folder is searched, a pattern that the shell left alone is matched."""
    for name in names:
        path = Path(name)
        if name != STDIN and path.is_dir():
            found = sorted({str(each) for suffix in SUFFIXES for each in path.rglob(suffix) if each.is_file()})
        elif name != STDIN and glob.has_magic(name) and not path.exists():
            found = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
        else:
            found = [name]
        yield from found or [name]


def _check(name: str) -> CheckedFile:
    if name == STDIN:
        return check_content("<stdin>", sys.stdin.buffer.read())
    path = Path(name)
    if path.is_dir():
        return _unreadable(name, f"the folder {name!r} holds no file named {', '.join(SUFFIXES)}")
    if glob.has_magic(name) and not path.exists():
        return _unreadable(name, f"the pattern {name!r} matches no file")
    return check_file(name)


# ------------------------------------------------------------------ the command


@click.command(short_help="Check models without running them.")
@click.argument("files", nargs=-1, required=True)
@click.option("--strict", is_flag=True, help="Refuse violations of the standard too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def check(*, files: tuple[str, ...], strict: bool, as_json: bool) -> None:
    """Check BPMN files without running them.

    FILES are files, folders (searched for *.bpmn) or - for the standard input.  Exit status: 1 if one of them would be
    refused at deployment, else 0.
    """
    checked: list[CheckedFile] = []
    out = console()
    for name in dict.fromkeys(_expand(files)):
        file = _check(name)
        checked.append(file)
        if not as_json:
            for finding in file.findings:
                print_finding(out, finding, source=file.name)
    refused = sum(file.is_refused(strict=strict) for file in checked)
    if as_json:
        print_json(_document(checked, strict=strict))
    else:
        out.print(_summary(checked, refused))
    raise SystemExit(FAILED if refused else OK)


def _counts(files: Iterable[CheckedFile]) -> dict[str, int]:
    counted = Counter(finding.level for file in files for finding in file.findings)
    return {level.value: counted[level] for level in Level}


def _summary(files: list[CheckedFile], refused: int) -> str:
    counts = ", ".join(
        f"{count} {level}{'' if count == 1 else 's'}" for level, count in _counts(files).items() if count
    )
    what = (
        f"{len(files)} file{'' if len(files) == 1 else 's'}: {len(files) - refused} can be deployed, {refused} refused"
    )
    return f"{what} ({counts or 'no findings'})."


def _document(files: list[CheckedFile], *, strict: bool) -> dict[str, Any]:
    return {
        "files": [
            {
                "file": file.name,
                "refused": file.is_refused(strict=strict),
                "processes": list(file.processes),
                "findings": [_finding(finding) for finding in file.findings],
            }
            for file in files
        ],
        "refused": sum(file.is_refused(strict=strict) for file in files),
        "findings": _counts(files),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "line": finding.position.line if finding.position else None,
        "level": finding.level.value,
        "rule": finding.rule,
        "element": finding.element_id,
        "message": finding.message,
        "remedy": finding.remedy,
    }
