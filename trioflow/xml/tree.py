"""The XML tree as the reader sees it: elements only, names as text.

The parser drops comments and processing instructions, so every node is an element and every name a string; lxml's
own types allow for more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

__all__ = ["Node"]


class Node(Protocol):
    """What is used of an lxml element when reading."""

    @property
    def tag(self) -> str:
        """The Clark name."""

    @property
    def text(self) -> str | None:
        """The text before the first child."""

    @property
    def tail(self) -> str | None:
        """The text after the element, inside its parent."""

    @property
    def sourceline(self) -> int:
        """The line of the start tag, from 1."""

    @property
    def nsmap(self) -> Mapping[str | None, str]:
        """The namespaces in scope, by prefix."""

    def items(self) -> list[tuple[str, str]]:
        """The attributes in document order."""

    def get(self, name: str) -> str | None:
        """The value of an attribute."""

    def iter(self) -> Iterator[Node]:
        """The element and everything in it, in document order."""

    def getparent(self) -> Node | None:
        """The element around."""

    def __iter__(self) -> Iterator[Node]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Node: ...
