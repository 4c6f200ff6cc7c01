"""Dialects: which tool's extensions a document is written with.

A dialect knows its files by the namespaces they declare or by the name of the tool that exported them.  The more a
vendor's engine adds to execution, the earlier it stands in `DIALECTS`: a file with extensions of two vendors has the
dialect of the first.
"""

from __future__ import annotations

from trioflow.model import Definitions
from trioflow.xml.dialects.known import DIALECTS, Dialect

__all__ = ["DIALECTS", "Dialect", "dialect_of"]


def dialect_of(definitions: Definitions) -> str:
    """The name of the dialect that a document is written in; ``standard`` if it is in none that is known."""
    namespaces = frozenset(uri for _, uri in definitions.namespaces)
    exporter = definitions.exporter or ""
    by_namespace = (dialect.name for dialect in DIALECTS if dialect.declared_in(namespaces))
    by_exporter = (dialect.name for dialect in DIALECTS if dialect.exported_by(exporter))
    return next(by_namespace, None) or next(by_exporter, "standard")
