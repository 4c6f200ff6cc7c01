"""BPMN 2.0 XML: read a document into definitions and findings, write definitions as a document.

    document = read(Path("order.bpmn"))
    print(report(document.findings))
    data = write(document.definitions)

Reading takes any prefix, any encoding whose markup is ASCII or Unicode, and the whole vocabulary of processes and
collaborations; it looks at everything in one pass and raises for nothing that a document can contain.  Entities,
document types and the network are off, size and depth are limited.  What is written reads back as equal
definitions: extensions, diagrams and other vocabularies included.
"""

from __future__ import annotations

from trioflow.xml.document import Document, read
from trioflow.xml.safety import Limits
from trioflow.xml.writer import write

__all__ = ["Document", "Limits", "read", "write"]
