"""Hostile documents: entities, document types, size, depth; and limits that make sense."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from tests.xml.support import document, process, said
from trioflow.model import BPMN_NAMESPACE
from trioflow.xml import Limits, read

ROOT = f'<definitions xmlns="{BPMN_NAMESPACE}" targetNamespace="urn:test">'
REFUSED = (
    "The document has a document type declaration (<!DOCTYPE>); documents with one are refused, since it can define "
    "entities that read other files or grow without bound. "
    "Remove the declaration and write out the entities that it defines; BPMN needs neither."
)
LAUGHS = (
    "<!DOCTYPE definitions [\n<!ENTITY a0 'ha'>\n"
    + "\n".join(f"<!ENTITY a{n} '{f'&a{n - 1};' * 10}'>" for n in range(1, 10))
    + f"\n]>{ROOT}<process id='P' name='&a9;'/></definitions>"
)
HOSTILE = {
    "a billion laughs": (1, LAUGHS),
    "an external entity": (
        2,
        (
            '<?xml version="1.0"?>\n<!DOCTYPE d [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
            f"{ROOT}<documentation>&x;</documentation></definitions>"
        ),
    ),
    "an external parameter entity": (
        1,
        f'<!DOCTYPE d [<!ENTITY % x SYSTEM "http://localhost:9/x.dtd"> %x;]>{ROOT}</definitions>',
    ),
    "an external document type": (1, f'<!DOCTYPE definitions SYSTEM "http://localhost:9/x.dtd">{ROOT}</definitions>'),
    "a harmless document type": (1, f"<!DOCTYPE definitions>{ROOT}</definitions>"),
    "one behind comments": (
        4,
        f"<?xml version='1.0'?>\n<!-- <a> -->\n<?tool x?>\n<!DOCTYPE definitions>{ROOT}</definitions>",
    ),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("line, source", HOSTILE.values(), ids=list(HOSTILE))
def test_a_document_type_is_refused_by_name(line: int, source: str, encoding: str) -> None:
    """Every document type is refused with its line, harmless or not, in every encoding that can hide it."""
    found = read(source.encode(encoding))

    assert said(found) == [f"line {line}: error [xml-doctype]: {REFUSED}"]
    assert found.definitions is None


def test_a_document_type_that_is_hidden_by_its_encoding_is_refused() -> None:
    """What the look at the first bytes cannot see through, the parser's own answer still refuses."""
    hidden = f"<?xml version='1.0' encoding='UTF-7'?>+ADwAIQ-DOCTYPE definitions>{ROOT}</definitions>"

    found = read(hidden.encode("ascii"))

    # Parsers are built with and without the encoding.
    assert [finding.rule for finding in found.findings] in (["xml-doctype"], ["xml-encoding"])
    assert found.definitions is None


def test_the_word_in_a_comment_is_no_document_type() -> None:
    """Only a declaration is refused, not the text of a comment or of a documentation."""
    source = (
        f"<!-- <!DOCTYPE definitions> -->{ROOT}<documentation><![CDATA[<!DOCTYPE html>]]></documentation></definitions>"
    )

    found = read(source)

    assert said(found) == []
    assert found.definitions is not None
    assert found.definitions.documentation == ("<!DOCTYPE html>",)


def test_a_document_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """One byte more than the limit is too much, for content and for a file."""
    data = document("").encode()
    path = tmp_path / "large.bpmn"
    path.write_bytes(data)

    for source in (data, path):
        assert read(source, limits=Limits(max_bytes=len(data))).definitions is not None
        assert said(read(source, name="x", limits=Limits(max_bytes=len(data) - 1))) == [
            (
                f"x:1: error [xml-too-large]: The document has more than {len(data) - 1} bytes. If the file is "
                "meant to "
                "be that large, raise `max_bytes` of the limits; a single text ends at 10 MB."
            )
        ]


def test_a_text_without_bounds_is_refused() -> None:
    """A single text of more than ten million bytes is refused by the parser, and named as too large."""
    (finding,) = read(document(f"<documentation>{'x' * 10_000_001}</documentation>")).findings

    assert finding.rule == "xml-too-large"


@pytest.mark.parametrize("levels", [101, 300, 100_000])
def test_a_document_that_is_too_deep_is_refused(levels: int) -> None:
    """Depth is limited before anything recurses, whether our limit or the parser's own is met first."""
    inner = levels - 1
    found = read(document("\n".join(['<subProcess id="S">'] * inner) + "</subProcess>" * inner))

    assert [(finding.rule, finding.message) for finding in found.findings] == [
        ("xml-too-deep", "Elements are nested more than 100 levels deep.")
    ]


def test_the_depth_that_is_allowed_can_be_read() -> None:
    """A document of the largest depth that can be asked for is read without meeting Python's own limit."""
    inner = 198
    opened = "".join(f'<subProcess id="S{n}">' for n in range(inner))

    found = read(process(opened + "</subProcess>" * inner), limits=Limits(max_depth=200))

    assert said(found) == []


@pytest.mark.parametrize("limits", [{"max_bytes": 0}, {"max_depth": 0}, {"max_depth": 201}])
def test_limits_make_sense(limits: dict[str, int]) -> None:
    """Limits that nothing could meet, or that the parser does not keep, are refused."""
    with pytest.raises(ValueError, match="must be"):
        Limits(**limits)


@pytest.mark.parametrize(
    "data",
    [
        document("<documentation>\u00e9</documentation>").encode("latin-1"),
        b'<?xml version="1.0" encoding="no-such-thing"?><a/>',
    ],
    ids=["bytes of another encoding", "an encoding that nobody knows"],
)
def test_a_document_that_cannot_be_decoded_is_refused(data: bytes) -> None:
    """A wrong or unknown encoding is a finding that says so."""
    (finding,) = read(data).findings

    assert finding.rule == "xml-encoding"
    assert finding.remedy == "Save it as UTF-8, or declare the encoding that it has in its first line."


def test_text_that_is_no_text_is_refused() -> None:
    """Half a surrogate pair in a string is a finding, with its line."""
    assert said(read("<a>\n\ud800</a>")) == [
        (
            "line 2: error [xml-encoding]: The text holds half a surrogate pair at index 4, which no encoding "
            "can express. "
            "Decode the file with its real encoding, or give its bytes."
        )
    ]


@pytest.mark.parametrize(
    "data", [b"\x00", codecs.BOM_UTF8, codecs.BOM_UTF16_LE + b"<", b"<", b"<?", b"<!--", b"PK\x03"]
)
def test_fragments_never_raise(data: bytes) -> None:
    """The first bytes of a document, or of something else, give a finding and nothing else."""
    (finding,) = read(data).findings

    assert finding.rule in {"xml-malformed", "xml-encoding"}
