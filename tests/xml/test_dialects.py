"""Which dialect a document is written in."""

from __future__ import annotations

import pytest

from trioflow.model import Definitions
from trioflow.xml.dialects import DIALECTS, dialect_of


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_dialect_is_known_by_its_namespace(dialect: object) -> None:
    """A document that declares a vendor's namespace is of that vendor's dialect."""
    known = next(each for each in DIALECTS if each is dialect)

    assert dialect_of(Definitions(namespaces=(("v", known.namespaces[0]),))) == known.name


@pytest.mark.parametrize(
    "exporter, name",
    [
        ("jBPM Process Modeler", "jbpm"),
        ("Signavio Process Editor, http://www.signavio.com", "signavio"),
        ("", "standard"),
    ],
)
def test_a_dialect_is_known_by_its_tool(exporter: str, name: str) -> None:
    """Without a vendor's namespace, the name of the tool decides."""
    assert dialect_of(Definitions(exporter=exporter)) == name


def test_an_engine_comes_before_an_editor() -> None:
    """With namespaces of two vendors, the one whose extensions change execution most decides."""
    namespaces = (("s", "http://www.signavio.com"), ("z", "http://camunda.org/schema/zeebe/1.0"))

    assert dialect_of(Definitions(namespaces=namespaces)) == "zeebe"
