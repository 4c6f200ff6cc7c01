"""The rules of the checks as the tables of ``docs/reference/rules.md``.

``python -m tests.docs.rules`` writes the generated table into the page anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from tests.docs.blocks import ROOT
from trioflow.model.checks import DOCUMENT_RULES, PROCESS_RULES
from trioflow.model.checks.rule import Rule

__all__ = ["PAGE", "generated_table", "hand_written_names", "named_in_the_code", "table_in_the_page"]

PAGE = ROOT / "docs" / "reference" / "rules.md"
_TABLE = re.compile(r"(?<=<!-- generated -->\n).*?(?=<!-- end -->)", re.DOTALL)

_AT = {"_add": 1, "fault": 1}
"""Functions that report a finding, and which argument names the rule."""


def generated_table() -> str:
    """One row for each rule of the tables in ``trioflow.model.checks``, by name."""
    rules: list[Rule[Any]] = sorted((*DOCUMENT_RULES, *PROCESS_RULES), key=lambda rule: rule.name)
    rows = ["| rule | level | clause | demands |", "| --- | --- | --- | --- |"]
    rows += [f"| `{rule.name}` | {rule.level.value} | {_clause(rule)} | {_demand(rule)} |" for rule in rules]
    return "\n" + "\n".join(rows) + "\n\n"


def _clause(rule: Rule[Any]) -> str:
    """The clause of the standard; trioflow's own where that leaves it open."""
    clauses = [clause.strip() for clause in rule.clause.split(",")]
    return ", ".join(clause for clause in clauses if clause[:1].isdigit()) or "trioflow"


def _demand(rule: Rule[Any]) -> str:
    """The first paragraph of the function's docstring, without the clauses at its end."""
    text = " ".join((rule.problems.__doc__ or "").split("\n\n")[0].split())
    text = re.sub(r" \([^()]*(\d+\.\d+|semantics\.md|durability\.md)[^()]*\)(?=\.$)", "", text)
    return text.replace("|", "\\|").replace("``", "`")


def table_in_the_page() -> str:
    """What the page has between its marks."""
    found = _TABLE.search(PAGE.read_text("utf-8"))
    assert found, f"{PAGE} has no marks around the generated table"
    return found[0]


def hand_written_names() -> list[str]:
    """The rules in the other tables of the page."""
    text = _TABLE.sub("", PAGE.read_text("utf-8"))
    return re.findall(r"^\| `([a-z-]+)` \|", text, re.MULTILINE)


def named_in_the_code() -> set[str]:
    """The rules that the reader, the compiler and the command line report by a name in their code."""
    folders = ("xml", "machine", "cli")
    files = chain.from_iterable((ROOT / "trioflow" / folder).rglob("*.py") for folder in folders)
    return set(chain.from_iterable(_names(path) for path in files))


def _names(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _constants(_rule_argument(node))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NOT_EXECUTED":
            yield from _constants(node.value)


def _rule_argument(call: ast.Call) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "rule":
            return keyword.value
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    at = _AT.get(name)
    return call.args[at] if at is not None and len(call.args) > at else None


def _constants(value: ast.expr | None) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.IfExp):
        yield from _constants(value.body)
        yield from _constants(value.orelse)


if __name__ == "__main__":
    PAGE.write_text(_TABLE.sub(lambda _: generated_table(), PAGE.read_text("utf-8")), "utf-8")
