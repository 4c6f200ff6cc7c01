"""Every code block of every page runs, and prints what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.docs.blocks import ROOT, Block, blocks_of, pages
from tests.docs.running import Page, commands, matches

TUTORIAL = ROOT / "docs" / "tutorial.md"
README = ROOT / "README.md"

RUN = {"python", "console"}
KNOWN = {"python", "console", "xml", "text", "", "sh"}


def named(path: Path) -> str:
    """The page as it appears in the name of a test."""
    return path.relative_to(ROOT).as_posix()


def languages(path: Path) -> set[str]:
    """The languages of the blocks of a page that are no files."""
    return {block.language for block in blocks_of(path) if not block.caption}


PAGES = [path for path in pages() if path not in (README, TUTORIAL)]


@pytest.mark.parametrize("path", [path for path in PAGES if languages(path) & (RUN | {"xml"})], ids=named)
def test_every_block_of_a_page_runs_and_prints_what_it_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From top to bottom, in an empty folder, each block of the page does what is shown behind it."""
    monkeypatch.chdir(tmp_path)

    trio.run(Page(path, tmp_path).run)


def test_the_sample_of_the_readme_prints_what_it_says(tmp_path: Path) -> None:
    """The program in the README runs as it stands, and again after it has ended, and prints what stands behind it."""
    blocks = blocks_of(README)
    [program] = [block for block in blocks if block.language == "python"]
    output = blocks[blocks.index(program) + 1]
    (tmp_path / "sample.py").write_text(program.text, "utf-8")

    for _ in range(2):
        run = [sys.executable, "-W", "error", "sample.py"]
        printed = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        assert matches(output.text, printed)


@pytest.mark.parametrize("path", pages(), ids=named)
def test_no_block_escapes(path: Path) -> None:
    """A block is in a language that is run, checked or output; a file is used by a command or by other code."""
    blocks = blocks_of(path)

    assert languages(path) <= KNOWN
    for file in blocks:
        others = "\n".join(block.text for block in blocks if block is not file)
        stem = Path(file.caption).stem
        assert not file.caption or file.caption in others or re.search(rf"\b(import|from) {stem}\b", others)


# ------------------------------------------------------------------ the convention itself


def block(text: str) -> Block:
    """A console block with that text."""
    return Block(language="console", caption="", text=text, line=1, follows=False)


def test_a_console_block_is_commands_and_what_each_prints() -> None:
    """Behind ``$ `` stands a command, behind ``> `` its next line, and what follows is its output."""
    shown = block("$ echo one\none\n$ echo two \\\n>   three\ntwo three\n")

    assert list(commands(shown)) == [("echo one", "one\n"), ("echo two \\\n  three", "two three\n")]


@pytest.mark.parametrize(
    "expected, printed, same",
    [
        ("done\n", "done  \n", True),
        ("done at ...\n", "done at 12:00\n", True),
        ("first\n...\nlast\n", "first\nsecond\nthird\nlast\n", True),
        ("", "", True),
        ("done\n", "done, too\n", False),
        ("", "something\n", False),
    ],
)
def test_an_output_is_compared_but_for_what_the_dots_stand_for(expected: str, printed: str, *, same: bool) -> None:
    """Dots stand for anything; white space at the ends does not count; all else must be as shown, silence too."""
    assert matches(expected, printed) is same


def test_a_file_has_its_name_in_the_caption(tmp_path: Path) -> None:
    """Options and blank lines in front of the content are no part of the file."""
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```{code-block} python\n:caption: a.py\n\nprint(1)\n```\n\n```text\n1\n```\n", "utf-8")

    file, output = blocks_of(page)

    assert (file.caption, file.text, file.line) == ("a.py", "print(1)\n", 6)
    assert output.follows
    assert not file.follows
