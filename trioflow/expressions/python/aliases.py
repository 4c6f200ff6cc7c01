"""Which names an expression may be a part of: what the text alone tells about shared data."""

from __future__ import annotations

import ast

__all__ = ["root_name", "source_names"]

_PART_OF = frozenset({"get", "pop", "setdefault"})
"""Methods whose result is a part of what they are called on."""


def root_name(node: ast.expr) -> str | None:
    """``order`` for ``order.items[0]``: the variable of which the value is a part."""
    while True:
        match node:
            case ast.Attribute(value=inner) | ast.Subscript(value=inner):
                node = inner
            case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _PART_OF:
                node = inner
            case _:
                return node.id if isinstance(node, ast.Name) else None


def source_names(node: ast.expr, *, through_calls: bool) -> set[str]:
    """The variables of which the value may be a part.

    A loop over ``sorted(order.items)`` goes over the parts of ``order``; the list that it is assigned to is a new one.
    That difference is ``through_calls``.
    """
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            parts: list[ast.expr] = [body, orelse]
        case ast.BoolOp(values=values):
            parts = values
        case ast.Call(func=ast.Attribute(value=subject), args=arguments) if through_calls:
            parts = [subject, *arguments]
        case ast.Call(args=arguments) if through_calls:
            parts = arguments
        case ast.Tuple(elts=members) | ast.List(elts=members):
            parts = members
        case _:
            name = root_name(node)
            return set() if name is None else {name}
    return {name for part in parts for name in source_names(part, through_calls=through_calls)}
