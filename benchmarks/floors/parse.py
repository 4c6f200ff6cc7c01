"""The floor of `parse`: lxml reads the document, and one walk collects the ids."""

from __future__ import annotations

from lxml import etree


def ids(document: bytes) -> list[str]:
    """The ids of a document's elements, in document order."""
    root = etree.fromstring(document, etree.XMLParser(resolve_entities=False, no_network=True))
    return [found for element in root.iter() if (found := element.get("id")) is not None]
