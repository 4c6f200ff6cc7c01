"""The language of scripts: the statements around the expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from trioflow.expressions.limits import Limits
from trioflow.expressions.python.aliases import root_name, source_names
from trioflow.expressions.python.mutators import MUTATING
from trioflow.expressions.python.rewrite import (
    ExpressionRewriter,
    bound_names,
    check_attribute,
    check_name,
    refusal,
    weight_of,
)
from trioflow.expressions.python.source import Refusal

__all__ = ["ScriptRewriter"]

_REFUSED: Final = {
    "AnnAssign": "a variable takes no annotation here",
    "Try": "a script cannot catch errors: the model does, with an error boundary event",
    "TryStar": "a script cannot catch errors: the model does, with an error boundary event",
    "Import": "a script cannot import anything",
    "ImportFrom": "a script cannot import anything",
    "FunctionDef": "a script cannot define functions",
    "AsyncFunctionDef": "a script cannot define functions",
    "ClassDef": "a script cannot define classes",
    "Return": "a script does not return: it assigns variables",
    "With": "there is no `with` here",
    "Match": "there is no `match` here: write if and elif",
}

_ENDS: Final = (ast.Raise, ast.Break, ast.Continue)


class ScriptRewriter(ExpressionRewriter):
    """Builds the statements to compile.

    ``bound`` are the names that are assigned somewhere, ``changed`` those whose values the text changes in place,
    ``aliases`` which names' values may be reached through which other name.
    """

    mutating = True

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self.bound: set[str] = set()
        self.changed: set[str] = set()
        self.aliases: dict[str, set[str]] = {}

    @property
    def assigns(self) -> frozenset[str]:
        """The names that a run may assign, directly or through an alias."""
        reached = set(self.changed)
        pending = list(reached)
        while pending:
            new = self.aliases.get(pending.pop(), set()) - reached
            reached |= new
            pending.extend(new)
        return frozenset(self.bound | (reached & self.names))

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The statements to compile; raises Refusal."""
        return [built for statement in statements for built in self._statement(statement)]

    def _statement(self, node: ast.stmt) -> Iterator[ast.stmt]:
        handler = getattr(self, f"_do_{type(node).__name__.lower()}", None)
        if handler is None:
            message = _REFUSED.get(type(node).__name__)
            raise Refusal(message, node) if message else refusal(node)
        for built in handler(node):
            yield ast.copy_location(built, node)

    def _method_call(self, node: ast.Call, function: ast.Attribute) -> ast.expr:
        if function.attr in MUTATING:
            self._change(function.value)
        return super()._method_call(node, function)

    # -------------------------------------------------------------- assignments

    def _do_assign(self, node: ast.Assign) -> Iterator[ast.stmt]:
        value = self.rewritten(node.value)
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            value = self.guard("elements", node.value, value)
        targets = [self._target(target) for target in node.targets]
        self._alias(node.targets, source_names(node.value, through_calls=False))
        yield ast.Assign(targets, value)

    def _do_augassign(self, node: ast.AugAssign) -> Iterator[ast.stmt]:
        """``a += b`` is ``a = a + b``: a list that others see too is not extended behind their backs."""
        if isinstance(node.target, ast.Name):
            current = self.rewritten(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            value = self.operation(node.op, node, current, self.rewritten(node.value))
            yield ast.Assign([self._target(node.target)], value)
            return
        place = ast.Name("__place", ast.Store())
        yield ast.Assign([place], self._place(node.target))
        current = ast.Attribute(ast.Name("__place", ast.Load()), "value", ast.Load())
        value = self.operation(node.op, node, current, self.rewritten(node.value))
        yield ast.Assign([ast.Attribute(ast.Name("__place", ast.Load()), "value", ast.Store())], value)

    def _do_delete(self, node: ast.Delete) -> Iterator[ast.stmt]:
        for target in node.targets:
            if not isinstance(target, ast.Subscript | ast.Attribute):
                raise Refusal("only an entry of a record or list can be deleted; set a variable to None", target)
        yield ast.Delete([ast.Attribute(self._place(target), "value", ast.Del()) for target in node.targets])

    def _target(self, target: ast.expr) -> ast.expr:
        return ast.copy_location(self._new_target(target), target)

    def _new_target(self, target: ast.expr) -> ast.expr:
        match target:
            case ast.Name(id=name):
                check_name(name, target)
                self.bound.add(name)
                self.defined.add(name)
                return ast.Subscript(ast.Name("__names", ast.Load()), ast.Constant(name), ast.Store())
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return ast.Tuple([self._target(part) for part in parts], ast.Store())
            case ast.Starred(value=part):
                return ast.Starred(self._target(part), ast.Store())
            case _:
                return ast.Attribute(self._place(target), "value", ast.Store())

    def _place(self, target: ast.expr) -> ast.expr:
        """The `Place` that a subscript or a dotted name stands for."""
        match target:
            case ast.Attribute(value=subject, attr=name):
                check_attribute(target)
                index: ast.expr = ast.Constant(name)
            case ast.Subscript(value=subject, slice=ast.expr() as given) if not isinstance(given, ast.Slice):
                index = self.rewritten(given)
            case _:
                raise Refusal("this cannot be assigned to: a variable, an entry of a record or of a list can", target)
        self._change(subject)
        dotted = ast.Constant(isinstance(target, ast.Attribute))
        return self.guard("Place", target, self.rewritten(subject), index, dotted)

    def _change(self, subject: ast.expr) -> None:
        name = root_name(subject)
        if name is not None:
            self.changed.add(name)

    def _alias(self, targets: list[ast.expr], sources: set[str]) -> None:
        for target in targets:
            for name in bound_names(target):
                self.aliases.setdefault(name, set()).update(sources)

    # -------------------------------------------------------------- control flow

    def _do_expr(self, node: ast.Expr) -> Iterator[ast.stmt]:
        yield ast.Expr(self.rewritten(node.value))

    def _do_pass(self, _node: ast.Pass) -> Iterator[ast.stmt]:
        yield ast.Pass()

    def _do_break(self, _node: ast.Break) -> Iterator[ast.stmt]:
        yield ast.Break()

    def _do_continue(self, _node: ast.Continue) -> Iterator[ast.stmt]:
        yield ast.Continue()

    def _do_if(self, node: ast.If) -> Iterator[ast.stmt]:
        test = self.rewritten(node.test)
        before = set(self.defined)
        body, after_body = self._branch(node.body, before)
        orelse, after_orelse = self._branch(node.orelse, before)
        # A name is defined afterwards if every branch that comes so far has defined it.
        if after_body is None or after_orelse is None:
            self.defined = after_body or after_orelse or before
        else:
            self.defined = after_body & after_orelse
        yield ast.If(test, body, orelse)

    def _branch(self, statements: list[ast.stmt], before: set[str]) -> tuple[list[ast.stmt], set[str] | None]:
        """The statements to compile, and what is defined after them; None if control never comes there."""
        self.defined = set(before)
        built = self.block(statements)
        ends = bool(statements) and isinstance(statements[-1], _ENDS)
        return built, None if ends else self.defined

    def _do_while(self, node: ast.While) -> Iterator[ast.stmt]:
        test = self.rewritten(node.test)
        before = set(self.defined)
        body, _ = self._branch(node.body, before)
        orelse, _ = self._branch(node.orelse, before)
        self.defined = before
        yield ast.While(test, [self._turn(node), *body], orelse)

    def _do_for(self, node: ast.For) -> Iterator[ast.stmt]:
        elements = self.guard("loop", node.iter, self.rewritten(node.iter))
        before = set(self.defined)
        target = self._target(node.target)
        self._alias([node.target], source_names(node.iter, through_calls=True))
        body, _ = self._branch(node.body, self.defined)
        orelse, _ = self._branch(node.orelse, before)
        self.defined = before
        yield ast.For(target, elements, [self._turn(node), *body], orelse)

    def _turn(self, node: ast.While | ast.For) -> ast.stmt:
        """The statement that pays for a turn; it stands first, so that `continue` cannot pass it by."""
        weight = ast.Constant(weight_of(*node.body))
        return ast.copy_location(ast.Expr(self.guard("turns", node, weight)), node)

    # -------------------------------------------------------------- errors

    def _do_assert(self, node: ast.Assert) -> Iterator[ast.stmt]:
        """Not a Python assert, which an optimising interpreter leaves out."""
        test = self.rewritten(node.test)
        message = ast.Constant(None) if node.msg is None else self.rewritten(node.msg)
        failed = ast.Raise(self.guard("assertion", node, message), None)
        yield ast.If(ast.UnaryOp(ast.Not(), test), [ast.copy_location(failed, node)], [])

    def _do_raise(self, node: ast.Raise) -> Iterator[ast.stmt]:
        match node:
            case ast.Raise(exc=ast.Call(func=ast.Name(id="BpmnError"), args=args, keywords=[]), cause=None) if (
                1 <= len(args) <= 3
            ):
                yield ast.Raise(self.guard("bpmn_error", node, *(self.rewritten(one) for one in args)), None)
            case _:
                raise Refusal("a script can only raise BpmnError(code, message, variables)", node)
