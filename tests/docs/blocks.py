"""The fenced blocks of a documentation page, read from its Markdown.

The convention (``docs/contributing/page.md`` says it to authors):

* A ``code-block`` with a caption is a *file* of that name.
* ``python`` is code for the page's session; ``console`` holds commands and what they print; ``text`` right behind a
  ``python`` block, with nothing in between, is what that code prints.
* ``xml`` without a caption is a fragment of a process.
* ``sh`` is for the checkout of trioflow itself and is not run here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

__all__ = ["ROOT", "Block", "blocks_of", "pages"]

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"(?P<indent> *)(?P<fence>```+)(?P<info>[^`]*)")
_DIRECTIVE = re.compile(r"\{code-block\} *(?P<language>\w+)")
_OPTION = re.compile(r":(?P<name>[\w-]+): *(?P<value>.*)")


@frozen(kw_only=True)
class Block:
    """One fenced block.

    ``line`` is that of its first line of content, from 1.  ``caption`` is the name of the file that it is, empty for
    any other block.  ``follows``: there are only blank lines between the block before and this one.
    """

    language: str
    caption: str
    text: str
    line: int
    follows: bool


def pages() -> list[Path]:
    """Every page of the documentation, and the README."""
    docs = ROOT / "docs"
    found = [path for path in docs.rglob("*.md") if "_build" not in path.relative_to(docs).parts]
    return [ROOT / "README.md", *sorted(found)]


def blocks_of(page: Path) -> tuple[Block, ...]:
    """All fenced blocks of a page that show code, commands or output, in their order."""
    return tuple(_read(page.read_text("utf-8").splitlines(), page))


def _read(lines: list[str], page: Path) -> Iterator[Block]:
    at, last_end = 0, -1
    while at < len(lines):
        opening = _FENCE.fullmatch(lines[at])
        if opening is None:
            at += 1
            continue
        end = _end(lines, at, opening["fence"], page)
        indent = len(opening["indent"])
        body = [line[indent:] for line in lines[at + 1 : end]]
        block = _block(opening["info"].strip(), body, at, follows=not any(lines[last_end + 1 : at]) and last_end >= 0)
        if block is not None:
            yield block
        at, last_end = end + 1, end


def _end(lines: list[str], start: int, fence: str, page: Path) -> int:
    for at in range(start + 1, len(lines)):
        if lines[at].strip() == fence:
            return at
    raise AssertionError(f"{page}:{start + 1}: the block is not closed")


def _block(info: str, body: list[str], start: int, *, follows: bool) -> Block | None:
    """The block, or None for a directive that shows no code (a table of contents, an include, ...)."""
    directive = _DIRECTIVE.fullmatch(info)
    if info.startswith("{") and directive is None:
        return None
    skipped, caption = 0, ""
    while directive is not None and skipped < len(body) and (option := _OPTION.fullmatch(body[skipped])):
        caption = option["value"] if option["name"] == "caption" else caption
        skipped += 1
    while directive is not None and skipped < len(body) and not body[skipped]:
        skipped += 1
    return Block(
        language=directive["language"] if directive else info,
        caption=caption,
        text="".join(f"{line}\n" for line in body[skipped:]),
        line=start + 2 + skipped,
        follows=follows,
    )
