"""The lists and tables of the documentation are those of the code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

import trioflow
from tests.docs import rules
from tests.docs.blocks import ROOT
from trioflow.expressions import Limits
from trioflow.expressions.python.functions import FUNCTIONS
from trioflow.facts import Status
from trioflow.machine.behaviours import COMPILERS
from trioflow.machine.state import IncidentKind
from trioflow.model import FlowNode

DOCS = ROOT / "docs"


def text_of(name: str) -> str:
    """The text of a page."""
    return (DOCS / name).read_text("utf-8")


def first_column(text: str) -> set[str]:
    """The code words in the first cells of all tables in a text."""
    rows = re.findall(r"^\| (`[^|]+?) \|", text, re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def source(*folders: str) -> str:
    """The code of packages, as one text."""
    files = (path for folder in folders for path in sorted((ROOT / "trioflow" / folder).rglob("*.py")))
    return "\n".join(path.read_text("utf-8") for path in files)


# ------------------------------------------------------------------ rules, facts, incidents


def test_the_table_of_the_checks_is_that_of_the_code() -> None:
    """Each rule is in the page with level, clause and demand; `python -m tests.docs.rules` writes it anew."""
    assert rules.table_in_the_page() == rules.generated_table()


def test_the_other_rules_are_those_that_the_code_reports() -> None:
    """The tables for reading, compiling and the command line name each rule once, and none that does not exist."""
    listed = rules.hand_written_names()

    assert sorted(listed) == sorted(rules.named_in_the_code())


def fact_kinds() -> Iterator[str]:
    """Every kind of fact that the machine or the runtime makes."""
    code = source("machine", "runtime")
    yield from re.findall(r'\bfact\("([a-z-]+)"', code)
    yield from re.findall(r'facts\.append\(\("([a-z-]+)"', code)
    yield from re.findall(r'_fact\([^,]+, "([a-z-]+)"\)', code)
    yield from re.findall(r'_task_changed\(\w+, \w+, "([a-z-]+)"\)', code)
    for status in Status:
        if re.search(rf"(set_status|finish)\(Status\.{status.name}\b", code):
            yield f"instance-{status.value}"


def test_every_kind_of_fact_is_listed() -> None:
    """The table of facts has each kind that is made, and none that is not."""
    assert first_column(text_of("reference/facts.md")) == set(fact_kinds())


def test_every_kind_of_incident_is_listed() -> None:
    """The guide for incidents has a row for each kind."""
    kinds = text_of("howto/incidents.md").partition("## The kinds")[2].partition("\n## ")[0]

    assert first_column(kinds) == {kind.value for kind in IncidentKind}


# ------------------------------------------------------------------ elements and attributes


def tags_below(kind: type[FlowNode]) -> Iterator[str]:
    """The tags of all concrete elements that are of a kind."""
    for below in kind.__subclasses__():
        if "tag" in vars(below):
            yield below.tag
        yield from tags_below(below)


def test_what_is_executed_and_what_is_refused_is_listed() -> None:
    """The page has each element that has a behaviour as executed, and each other one as refused."""
    page = text_of("executed.md")
    executed = first_column(page.partition("## Executed")[2].partition("\n## ")[0]) - {"sequenceFlow"}
    refused = first_column(page.partition("## Refused")[2].partition("\n## ")[0])
    known = set(tags_below(FlowNode)) - {"implicitThrowEvent"}  # it appears inside multi-instance markers only

    assert executed == {kind.tag for kind in COMPILERS}
    assert known - executed <= refused
    assert not refused & executed


def test_every_attribute_of_our_namespace_is_listed() -> None:
    """The table has each extension attribute that the code reads, and none that nobody reads."""
    code = source("machine", "model/checks")
    read = set(re.findall(r'\bown(?:_expression|_value|_number)?\([^"()]*"(\w+)"\)', code))

    assert first_column(text_of("reference/attributes.md")) == read


# ------------------------------------------------------------------ expressions


def test_the_functions_and_limits_of_expressions_are_listed() -> None:
    """The page names every function that can be called, and every limit with its number."""
    page = text_of("reference/expressions.md")
    listed = re.search(r"\*\*Functions\*\*: `([^`]+)`", page)
    limits = dict(re.findall(r"^\| `(max_\w+)` \| [^|]+ \| ([\d,]+) \|$", page, re.MULTILINE))

    assert listed
    assert listed[1].split() == sorted(FUNCTIONS, key=str.casefold)
    assert {name: int(number.replace(",", "")) for name, number in limits.items()} == attrs.asdict(Limits())


# ------------------------------------------------------------------ the public names


def reference() -> str:
    """All pages of the reference, as one text."""
    return "\n".join(path.read_text("utf-8") for path in sorted((DOCS / "reference").glob("*.md")))


def is_named(name: str, text: str) -> bool:
    """Whether a directive documents the name, by itself or with its module."""
    found = getattr(trioflow, name)
    return re.search(rf"auto\w+:: (trioflow\.)?{name}(\(\))?$", text, re.MULTILINE) is not None or (
        f"automodule:: {found.__module__}\n" in text
    )


def test_every_public_name_is_in_the_reference() -> None:
    """Whatever `trioflow` exports has a directive in the reference."""
    text = reference()

    assert [name for name in trioflow.__all__ if not is_named(name, text)] == []


def undocumented(name: str) -> Iterator[str]:
    """The name itself, and what can be called of it, where there is no docstring of its own."""
    found = getattr(trioflow, name)
    if not inspect.getdoc(found):
        yield name
    for member, value in vars(found).items() if inspect.isclass(found) else ():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if not member.startswith("_") and inspect.isfunction(function) and not function.__doc__:
            yield f"{name}.{member}"


def test_every_public_name_has_a_docstring() -> None:
    """Each exported name, and each public method and property of an exported class, says what it is."""
    assert [missing for name in trioflow.__all__ for missing in undocumented(name)] == []


# ------------------------------------------------------------------ the README


def test_every_file_that_the_readme_links_to_exists() -> None:
    """Links of the README to files of the project lead somewhere."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text("utf-8"))

    assert links
    assert [link for link in links if not Path(ROOT / link).exists()] == []
