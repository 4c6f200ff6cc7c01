"""What a message says about a name that does not exist."""

from __future__ import annotations

from collections.abc import Container, Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

__all__ = ["undefined"]

_LISTED: Final = 10
_SEARCHED: Final = 1_000
"""Names that are looked through for one that was meant."""


def undefined(name: str, there: Iterable[str], functions: Container[str]) -> str:
    """The message: the name, the one that was probably meant, and up to ten of those that exist."""
    known = list(islice(there, _SEARCHED))
    meant = get_close_matches(name, known, n=1)
    guess = f" (did you mean {meant[0]!r}?)" if meant else ""
    call = f". There is a function of that name: write {name}(...)" if name in functions else ""
    if not known:
        return f"the variable {name!r} is not defined; there are no variables at all{call}"
    more = ", ..." if len(known) > _LISTED else ""
    return f"the variable {name!r} is not defined{guess}; there are: {', '.join(known[:_LISTED])}{more}{call}"
