"""The way in: from bytes, text or a file to definitions and findings."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from trioflow.errors import ModelError
from trioflow.model import Definitions, Finding, Level, Position
from trioflow.xml.diagnostics import Diagnostics
from trioflow.xml.dialects import dialect_of
from trioflow.xml.reader import Reader
from trioflow.xml.safety import Limits, parse
from trioflow.xml.schema import bpmn_schema
from trioflow.xml.vocabulary import clark

__all__ = ["Document", "read"]


@frozen(kw_only=True)
class Document:
    """What was read: the definitions, everything there is to say about them, and the dialect they are written in.

    ``definitions`` is None where no BPMN was found.  With findings that are errors it holds what could be read,
    for the checks; it is not to be executed.
    """

    definitions: Definitions | None
    findings: tuple[Finding, ...]
    dialect: str = "standard"


def read(source: bytes | str | Path, *, name: str = "", limits: Limits = Limits()) -> Document:  # noqa: B008 - frozen
    """Read a BPMN 2.0 document: its bytes, its text, or the path of its file.

    Content never raises: whatever is wrong with it is a finding, with its line and what to do.  ``name`` stands in
    the positions; a path's own name is the default.  A file that cannot be read raises `ModelError`.
    """
    if isinstance(source, Path):
        name = name or str(source)
        return _read_bytes(_file(source, limits), name=name, limits=limits)
    if isinstance(source, bytes):
        return _read_bytes(source, name=name, limits=limits)
    try:
        data = source.removeprefix("\ufeff").encode()
    except UnicodeEncodeError as error:
        finding = Finding(
            level=Level.ERROR,
            rule="xml-encoding",
            message=f"The text holds half a surrogate pair at index {error.start}, which no encoding can express.",
            remedy="Decode the file with its real encoding, or give its bytes.",
            position=Position(source.count("\n", 0, error.start) + 1, name),
        )
        return Document(definitions=None, findings=(finding,))
    # Text is decoded already: what its declaration says about an encoding was true of the bytes it came from.
    return _read_bytes(data, name=name, limits=limits, encoding="utf-8")


def _file(path: Path, limits: Limits) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(limits.max_bytes + 1)
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"cannot read the BPMN file {str(path)!r}: {reason}; check the path and its access") from error


def _read_bytes(data: bytes, *, name: str, limits: Limits, encoding: str | None = None) -> Document:
    root = parse(data, limits=limits, source=name, encoding=encoding)
    if isinstance(root, Finding):
        return Document(definitions=None, findings=(root,))
    diagnostics = Diagnostics(name)
    if root.tag != clark(Definitions.tag):
        diagnostics.not_bpmn(root)
        return Document(definitions=None, findings=diagnostics.sorted())
    definitions = Reader.of(root, bpmn_schema(), diagnostics).document(root)
    return Document(definitions=definitions, findings=diagnostics.sorted(), dialect=dialect_of(definitions))
