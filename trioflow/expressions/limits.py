"""The bounds that every evaluation keeps."""

from __future__ import annotations

import attrs
from attrs import validators

__all__ = ["Limits"]

_positive = (validators.instance_of(int), validators.ge(1))


@attrs.frozen(kw_only=True)
class Limits:
    """How much one expression or script may ask for; a violation is an `ExpressionError` that names the field.

    ``max_source``: characters of the text.  ``max_nesting``: levels of the syntax tree, and of a result.
    ``max_size``: characters of a text, entries of a list, record or set, nodes of a tree of values.
    ``max_int_bits``: bits of an integer, and characters of a text that is read as a number.
    ``max_turns``: turns of all loops and comprehensions of one evaluation together; a turn over a long body counts for
    several, and so does an operation that goes through a large collection, so this bounds time and total allocation.
    ``max_width``: width and precision of a format.
    """

    max_source: int = attrs.field(default=65_536, validator=_positive)
    max_nesting: int = attrs.field(default=100, validator=_positive)
    max_size: int = attrs.field(default=1_000_000, validator=_positive)
    max_int_bits: int = attrs.field(default=4_096, validator=_positive)
    max_turns: int = attrs.field(default=100_000, validator=_positive)
    max_width: int = attrs.field(default=1_000, validator=_positive)
