"""From bytes to an XML tree, safely: limits, encodings, no document type, no entities, no network.

A document type declaration is refused before the parser sees it: BPMN needs none, and all attacks with entities
begin with one.  What the parser is told besides (no entities, no network, no huge trees) is the second fence.
"""

from __future__ import annotations

import codecs
import re
from typing import cast

from attrs import field, frozen, validators
from lxml import etree

from trioflow.model import Finding, Level, Position
from trioflow.xml.tree import Node

__all__ = ["Limits", "parse"]


@frozen(kw_only=True)
class Limits:
    """How large a document may be: in bytes, and in levels of nested elements (at most 200)."""

    max_bytes: int = field(default=32 * 1024 * 1024, validator=validators.ge(1))
    # libxml2 itself stops at 256 levels, and the reader goes down with two calls a level.
    max_depth: int = field(default=100, validator=[validators.ge(1), validators.le(200)])


def parse(data: bytes, *, limits: Limits, source: str, encoding: str | None = None) -> Node | Finding:
    """The root element of a document, or the finding that says why there is none.

    ``encoding`` overrides what the document says about itself.
    """
    if len(data) > limits.max_bytes:
        return _too_large(source, f"The document has more than {limits.max_bytes} bytes.")
    plain = _ascii_compatible(data)
    if line := _doctype_line(plain):
        return _doctype(source, line)
    if refusal := _no_markup(plain, source):
        return refusal
    try:
        root = etree.fromstring(data, _parser(encoding))
    except etree.XMLSyntaxError as error:
        return _syntax(error, limits, source)
    if root.getroottree().docinfo.internalDTD is not None:  # in an encoding that the scan cannot look through
        return _doctype(source, 1)
    if found := root.xpath("/*" + "/*" * limits.max_depth):
        # One step a level, in C: it ends with the deepest level that the document has.
        return _too_deep(source, cast("list[Node]", found)[0].sourceline, limits)
    return cast("Node", root)


def _parser(encoding: str | None) -> etree.XMLParser:
    # Without comments and processing instructions the parser joins the text around them.
    return etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        no_network=True,
        huge_tree=False,
        recover=False,
        remove_comments=True,
        remove_pis=True,
    )


# ------------------------------------------------------------------ before the parser

_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_SPACE = re.compile(rb"\s*")
_ENDS = ((b"<?", b"?>"), (b"<!--", b"-->"))


def _ascii_compatible(data: bytes) -> bytes:
    """The document in an encoding whose markup is ASCII: itself, unless its first bytes say otherwise."""
    for mark, encoding in _WIDE:
        if data.startswith(mark):
            return data.decode(encoding, "replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)


def _doctype_line(data: bytes) -> int | None:
    """The line of the document type declaration, if the prolog has one."""
    at = 0
    while True:
        at = _SPACE.match(data, at).end()  # type: ignore[union-attr] # it matches nothing at all, too
        if data.startswith(b"<!DOCTYPE", at):
            return data.count(b"\n", 0, at) + 1
        end = next((end for start, end in _ENDS if data.startswith(start, at)), None)
        found = data.find(end, at) if end else -1
        if end is None or found < 0:
            return None
        at = found + len(end)


def _no_markup(data: bytes, source: str) -> Finding | None:
    start = data.lstrip()[:20]
    if start.startswith(b"<"):
        return None
    what = f"it begins with {start.decode('latin-1')!r}" if start else "it is empty"
    return Finding(
        level=Level.ERROR,
        rule="xml-malformed",
        message=f"This is no XML document: {what}.",
        remedy="Give the content of a BPMN 2.0 file; a file's name is given as a pathlib.Path.",
        position=Position(1, source),
    )


# ------------------------------------------------------------------ what the parser says

_ENCODING_ERRORS = frozenset(
    {
        etree.ErrorTypes.ERR_UNKNOWN_ENCODING,
        etree.ErrorTypes.ERR_UNSUPPORTED_ENCODING,
        etree.ErrorTypes.ERR_INVALID_ENCODING,
        etree.ErrorTypes.I18N_CONV_FAILED,
    }
)


def _syntax(error: etree.XMLSyntaxError, limits: Limits, source: str) -> Finding:
    reason = re.sub(r", line \d+, column \d+$", "", error.msg or "no reason given").strip().rstrip(".!")
    line = error.lineno or 1
    if "xcessive depth" in reason:
        return _too_deep(source, line, limits)
    if "huge" in reason.lower() or "resource limit" in reason.lower():
        return _too_large(source, f"The document has a text or name that is too long: {reason}.", line)
    if error.code in _ENCODING_ERRORS or "encoding" in reason:
        return Finding(
            level=Level.ERROR,
            rule="xml-encoding",
            message=f"The document is not written in the encoding that it declares, or in none we know: {reason}.",
            remedy="Save it as UTF-8, or declare the encoding that it has in its first line.",
            position=Position(line, source),
        )
    return Finding(
        level=Level.ERROR,
        rule="xml-malformed",
        message=f"The XML is not well-formed: {reason}.",
        remedy="Repair the markup there, or export the model again; nothing after this line was read.",
        position=Position(line, source),
    )


def _doctype(source: str, line: int) -> Finding:
    return Finding(
        level=Level.ERROR,
        rule="xml-doctype",
        message="The document has a document type declaration (<!DOCTYPE>); documents with one are refused, "
        "since it can define entities that read other files or grow without bound.",
        remedy="Remove the declaration and write out the entities that it defines; BPMN needs neither.",
        position=Position(line, source),
    )


def _too_large(source: str, message: str, line: int = 1) -> Finding:
    return Finding(
        level=Level.ERROR,
        rule="xml-too-large",
        message=message,
        remedy="If the file is meant to be that large, raise `max_bytes` of the limits; a single text ends at 10 MB.",
        position=Position(line, source),
    )


def _too_deep(source: str, line: int, limits: Limits) -> Finding:
    return Finding(
        level=Level.ERROR,
        rule="xml-too-deep",
        message=f"Elements are nested more than {limits.max_depth} levels deep.",
        remedy="Flatten the model (call activities), or raise `max_depth` of the limits, up to 200.",
        position=Position(line, source),
    )
