"""The language of expressions: which syntax it has, and what each piece is compiled to.

A tree of the user's is never compiled itself.  Each node that the language has is built anew from its parts, operators
as calls of guards, names as look-ups in the given mapping; a node that has no method here is refused.  What comes out
uses names with two leading underscores, which a text cannot contain, and no builtins.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

from trioflow.expressions.limits import Limits
from trioflow.expressions.python.functions import FUNCTIONS, KEYED, LAZY
from trioflow.expressions.python.mutators import MUTATING
from trioflow.expressions.python.source import Refusal

__all__ = ["ExpressionRewriter", "bound_names", "weight_of"]

_Comprehension: TypeAlias = "ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp"

_NODES_PER_TURN: Final = 32
"""A loop turn over a body of more nodes counts for several, so that a long body is no way around the bound."""

_REFUSED: Final = {
    "Lambda": "a lambda may stand only after key= in sorted(), min(), max() and .sort()",
    "NamedExpr": "an assignment cannot stand inside an expression",
    "Await": "nothing can be awaited here",
    "Yield": "there are no generators here",
    "YieldFrom": "there are no generators here",
    "Starred": "* may stand only inside a list, tuple or set",
    "GeneratorExp": f"a generator expression may stand only alone in {', '.join(sorted(LAZY))} or .join",
    "MatMult": "there is no operator @ here",
    "TemplateStr": "there are no template strings here",
}


class ExpressionRewriter:
    """Builds the tree to compile; ``names`` are the root names that it reads, known once `rewritten` has run."""

    mutating = False
    """Whether methods that change a collection may be called."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.names: set[str] = set()
        self.defined: set[str] = set()
        self._local: list[set[str]] = []

    def rewritten(self, node: ast.expr) -> ast.expr:
        """The tree to compile for one expression of the user's; raises Refusal."""
        handler = getattr(self, f"_on_{type(node).__name__.lower()}", None)
        if handler is None:
            raise refusal(node)
        result: ast.expr = handler(node)
        return ast.copy_location(result, node)

    def guard(self, guard: str, at: ast.AST, *arguments: ast.expr, options: Sequence[ast.keyword] = ()) -> ast.expr:
        """A call of a guard, which gets the run first."""
        function, run = ast.Name(f"__{guard}", ast.Load()), ast.Name("__run", ast.Load())
        return ast.copy_location(ast.Call(function, [run, *arguments], list(options)), at)

    # -------------------------------------------------------------- names and constants

    def _on_name(self, node: ast.Name) -> ast.expr:
        check_name(node.id, node)
        if any(node.id in scope for scope in self._local):
            return ast.Name(node.id, ast.Load())
        if node.id not in self.defined:
            self.names.add(node.id)
        return ast.Subscript(ast.Name("__names", ast.Load()), ast.Constant(node.id), ast.Load())

    def _on_constant(self, node: ast.Constant) -> ast.expr:
        kind = type(node.value)
        if node.value is not None and kind not in (bool, int, float, str, bytes):
            raise Refusal(f"there are no constants of the type {kind.__name__} here", node)
        if type(node.value) is int and node.value.bit_length() > self.limits.max_int_bits:
            raise Refusal(f"the number is larger than the limit max_int_bits = {self.limits.max_int_bits} allows", node)
        return ast.Constant(node.value)

    # -------------------------------------------------------------- operators

    def _on_binop(self, node: ast.BinOp) -> ast.expr:
        return self.operation(node.op, node, self.rewritten(node.left), self.rewritten(node.right))

    def operation(self, operator: ast.operator, at: ast.AST, left: ast.expr, right: ast.expr) -> ast.expr:
        """A call of the guard of a binary operator."""
        if isinstance(operator, ast.MatMult):
            raise Refusal(_REFUSED["MatMult"], at)
        return self.guard(type(operator).__name__, at, left, right)

    def _on_unaryop(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(ast.Not(), self.rewritten(node.operand))
        operand = self.rewritten(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant) and type(operand.value) in (int, float):
            return ast.Constant(-operand.value)  # type: ignore[operator]  # a number, as just tested
        return self.guard(type(node.op).__name__, node, operand)

    def _on_boolop(self, node: ast.BoolOp) -> ast.expr:
        return ast.BoolOp(node.op, [self.rewritten(value) for value in node.values])

    def _on_ifexp(self, node: ast.IfExp) -> ast.expr:
        return ast.IfExp(self.rewritten(node.test), self.rewritten(node.body), self.rewritten(node.orelse))

    def _on_compare(self, node: ast.Compare) -> ast.expr:
        if any(isinstance(test, ast.Is | ast.IsNot) for test in node.ops):
            return self._identity(node)
        operands = [self.rewritten(operand) for operand in (node.left, *node.comparators)]
        if len(node.ops) == 1:
            return self.guard(type(node.ops[0]).__name__, node, *operands)
        tests = ast.Tuple([ast.Name(f"__{type(test).__name__}", ast.Load()) for test in node.ops], ast.Load())
        rest = ast.Tuple([ast.Lambda(_no_parameters(), operand) for operand in operands[1:]], ast.Load())
        return self.guard("chain", node, operands[0], tests, rest)

    def _identity(self, node: ast.Compare) -> ast.expr:
        sides = (node.left, *node.comparators)
        named = any(isinstance(side, ast.Constant) and side.value in (None, True, False) for side in sides)
        if len(sides) != 2 or not named:
            raise Refusal("`is` compares with None, True or False only: write == for values", node)
        return ast.Compare(self.rewritten(node.left), node.ops, [self.rewritten(node.comparators[0])])

    # -------------------------------------------------------------- parts of values

    def _on_subscript(self, node: ast.Subscript) -> ast.expr:
        subject = self.rewritten(node.value)
        if not isinstance(node.slice, ast.Slice):
            return self.guard("item", node, subject, self.rewritten(node.slice))
        bounds = (node.slice.lower, node.slice.upper, node.slice.step)
        return self.guard(
            "part", node, subject, *(ast.Constant(None) if one is None else self.rewritten(one) for one in bounds)
        )

    def _on_attribute(self, node: ast.Attribute) -> ast.expr:
        check_attribute(node)
        return self.guard("attribute", node, self.rewritten(node.value), ast.Constant(node.attr))

    # -------------------------------------------------------------- calls

    def _on_call(self, node: ast.Call) -> ast.expr:
        for argument in (*node.args, *node.keywords):
            if isinstance(argument, ast.Starred) or (isinstance(argument, ast.keyword) and argument.arg is None):
                raise Refusal("* and ** cannot stand in a call", argument)
        if isinstance(node.func, ast.Attribute):
            return self._method_call(node, node.func)
        if isinstance(node.func, ast.Name):
            return self._function_call(node, node.func.id)
        raise Refusal("only functions and methods can be called, by their names", node)

    def _function_call(self, node: ast.Call, name: str) -> ast.expr:
        function = FUNCTIONS.get(name)
        if function is None:
            raise Refusal(f"there is no function {name!r} here; there are {', '.join(FUNCTIONS)}", node.func)
        arguments = self._arguments(node, lazy=name in LAZY)
        options = self._options(node, keyed=name in KEYED)
        try:
            inspect.signature(function).bind(None, *arguments, **{str(option.arg): None for option in options})
        except TypeError as error:
            raise Refusal(f"{name}(): {error}", node) from error
        return self.guard(f"f_{name}", node, *arguments, options=options)

    def _method_call(self, node: ast.Call, function: ast.Attribute) -> ast.expr:
        check_attribute(function)
        if function.attr in MUTATING and not self.mutating:
            raise Refusal(f".{function.attr}() would change data, which an expression cannot", function)
        if function.attr in ("format", "format_map"):
            raise Refusal('.format() is not offered: write an f-string, such as f"{amount:.2f}"', function)
        arguments = self._arguments(node, lazy=function.attr in ("join", "extend"))
        options = self._options(node, keyed=function.attr == "sort")
        subject = self.rewritten(function.value)
        return self.guard("method", node, subject, ast.Constant(function.attr), *arguments, options=options)

    def _arguments(self, node: ast.Call, *, lazy: bool) -> list[ast.expr]:
        if lazy and len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            return [ast.copy_location(self._comprehension(node.args[0]), node.args[0])]
        return [self.rewritten(argument) for argument in node.args]

    def _options(self, node: ast.Call, *, keyed: bool) -> list[ast.keyword]:
        options = []
        for option in node.keywords:
            name = str(option.arg)
            if name.startswith("_"):
                raise Refusal(f"an argument cannot be named {name!r}", option)
            value = self._rule(option.value) if keyed and name == "key" else self.rewritten(option.value)
            options.append(ast.copy_location(ast.keyword(name, value), option))
        return options

    def _rule(self, node: ast.expr) -> ast.expr:
        """What ``key=`` takes: a lambda of one parameter, or None."""
        if isinstance(node, ast.Constant) and node.value is None:
            return ast.copy_location(ast.Constant(None), node)
        if not isinstance(node, ast.Lambda):
            raise Refusal("key= takes a lambda, such as key=lambda item: item.price", node)
        given = node.args
        others = (*given.posonlyargs, *given.kwonlyargs, given.vararg, given.kwarg, *given.defaults)
        if len(given.args) != 1 or any(others):
            raise Refusal("the lambda of key= takes exactly one parameter, without default", node)
        parameter = given.args[0].arg
        check_name(parameter, node)
        self._local.append({parameter})
        body = self.rewritten(node.body)
        self._local.pop()
        parameters = _no_parameters()
        parameters.args = [ast.arg(parameter)]
        return ast.copy_location(ast.Lambda(parameters, body), node)

    # -------------------------------------------------------------- displays and comprehensions

    def _on_list(self, node: ast.List) -> ast.expr:
        return self._display(node, ast.List(self._members(node.elts), ast.Load()))

    def _on_tuple(self, node: ast.Tuple) -> ast.expr:
        return self._display(node, ast.Tuple(self._members(node.elts), ast.Load()))

    def _on_set(self, node: ast.Set) -> ast.expr:
        members = [
            one if isinstance(one, ast.Starred) else self.guard("key", one, one) for one in self._members(node.elts)
        ]
        return self._display(node, ast.Set(members))

    def _on_dict(self, node: ast.Dict) -> ast.expr:
        keys: list[ast.expr | None] = []
        values = []
        for name, value in zip(node.keys, node.values, strict=True):
            entry = self.rewritten(value)
            keys.append(None if name is None else self._key(name))
            values.append(entry if name is not None else self.guard("record_entries", value, entry))
        result = ast.Dict(keys, values)
        return self.guard("tested", node, result) if None in keys else result

    def _key(self, node: ast.expr) -> ast.expr:
        name = self.rewritten(node)
        return name if isinstance(name, ast.Constant) else self.guard("key", node, name)

    def _members(self, nodes: list[ast.expr]) -> list[ast.expr]:
        return [self._spread(node) if isinstance(node, ast.Starred) else self.rewritten(node) for node in nodes]

    def _spread(self, node: ast.Starred) -> ast.expr:
        elements = self.guard("elements", node, self.rewritten(node.value))
        return ast.copy_location(ast.Starred(elements, ast.Load()), node)

    def _display(self, node: ast.List | ast.Tuple | ast.Set, result: ast.expr) -> ast.expr:
        spread = any(isinstance(member, ast.Starred) for member in node.elts)
        return self.guard("tested", node, result) if spread else result

    def _on_listcomp(self, node: ast.ListComp) -> ast.expr:
        return self.guard("tested", node, ast.copy_location(self._comprehension(node), node))

    _on_setcomp = _on_dictcomp = _on_listcomp

    def _comprehension(self, node: _Comprehension) -> ast.expr:
        """The first collection belongs to the scope around; everything else sees all of the loop variables."""
        weight = ast.Constant(weight_of(node))
        first = self.rewritten(node.generators[0].iter)
        self._local.append({name for one in node.generators for name in self._targets(one.target)})
        generators = []
        for position, one in enumerate(node.generators):
            if one.is_async:
                raise Refusal("there are no asynchronous loops here", node)
            source = self.rewritten(one.iter) if position else first
            tests = [self.rewritten(test) for test in one.ifs]
            elements = self.guard("elements", one.iter, source, weight)
            generators.append(ast.comprehension(one.target, elements, tests, 0))
        result = self._collected(node, generators)
        self._local.pop()
        return result

    def _collected(self, node: _Comprehension, generators: list[ast.comprehension]) -> ast.expr:
        if isinstance(node, ast.DictComp):
            return ast.DictComp(self._key(node.key), self.rewritten(node.value), generators)
        if isinstance(node, ast.SetComp):
            return ast.SetComp(self._key(node.elt), generators)
        return type(node)(self.rewritten(node.elt), generators)

    def _targets(self, target: ast.expr) -> Iterator[str]:
        for node in ast.walk(target):
            if not isinstance(node, ast.Name | ast.Tuple | ast.List | ast.Starred | ast.expr_context):
                raise Refusal("the variable of a comprehension is a name, or several", node)
        for name in bound_names(target):
            check_name(name, target)
            yield name

    # -------------------------------------------------------------- f-strings

    def _on_joinedstr(self, node: ast.JoinedStr) -> ast.expr:
        return self.guard("concat", node, *(self._formatted_part(value) for value in node.values))

    def _formatted_part(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.FormattedValue):
            return self.rewritten(node)
        conversion = "" if node.conversion < 0 else chr(node.conversion)
        if conversion == "a":
            raise Refusal("!a is not offered in an f-string; !r and !s are", node)
        spec = ast.Constant("") if node.format_spec is None else self.rewritten(node.format_spec)
        return self.guard("formatted", node, self.rewritten(node.value), ast.Constant(conversion), spec)


def refusal(node: ast.AST) -> Refusal:
    """The Refusal of a node that the language does not have."""
    kind = type(node).__name__
    return Refusal(_REFUSED.get(kind, f"this is not part of the language ({kind})"), node)


def check_name(name: str, node: ast.AST) -> None:
    """Names with two leading underscores are our own."""
    if name.startswith("__"):
        raise Refusal(f"a variable cannot be named {name!r}: two leading underscores are reserved", node)


def check_attribute(node: ast.Attribute) -> None:
    """Whatever starts with an underscore belongs to Python, not to the data."""
    if node.attr.startswith("_"):
        raise Refusal(
            f".{node.attr} cannot be used: it starts with an underscore. An entry of a record of that name is read as "
            f'["{node.attr}"]',
            node,
        )


def bound_names(target: ast.expr) -> Iterator[str]:
    """The names that an assignment to the target binds."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def weight_of(*nodes: Any) -> int:
    """How many turns one pass over the nodes counts for."""
    return 1 + sum(1 for node in nodes for _ in ast.walk(node)) // _NODES_PER_TURN


def _no_parameters() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])
