"""Mutation of source code: the classical operators, applied at every place of a function where they fit.

A mechanism's sampler and its exact law share the code that computes scales, weights, answers and staircases. Rewriting
that code changes both, so that every rewritten mechanism comes with its exact law.
"""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

_STRICTER: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_SWAPPED = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "ceil": "floor", "floor": "ceil"}
_DROPPED = {"min", "max", "clip", "abs", "round", "rint", "sorted", "set", "exp"}
_SIDES = {"left": "right", "right": "left"}


Replacement: TypeAlias = tuple[str, Callable[[Any], ast.AST]]


@dataclass(frozen=True, slots=True)
class Target:
    """Code to rewrite: ``chain[0]`` is rewritten (only ``methods`` of a class), the others are compiled anew to use it.

    The last one is what makes the mechanism, and each is called by name by the next.
    """

    chain: tuple[Any, ...]
    methods: tuple[str, ...] = ()


def rewritten(target: Target) -> Iterator[tuple[str, Any]]:
    """Yield a description, and the last link of the chain as it is after one rewriting of the first."""
    return _each(target, _replacements)


def truncated(target: Target) -> Iterator[tuple[str, Any]]:
    """The same with integer truncation as the only rewriting: a quotient without its fraction."""
    return _each(target, _without_fraction)


def _each(target: Target, replacements: Callable[[ast.AST], list[Replacement]]) -> Iterator[tuple[str, Any]]:
    tree = _tree(target.chain[0])
    for place, (node, inside) in enumerate(_nodes(tree, target.methods)):
        for text, make in replacements(node):
            changed = copy.deepcopy(tree)
            old = list(_nodes(changed, target.methods))[place][0]
            _Swap(old, make(old)).visit(changed)
            yield f"{inside}: {text}", _chained(target.chain, changed)


def _chained(chain: tuple[Any, ...], first: ast.Module) -> Any:
    made: dict[str, Any] = {}
    for place, link in enumerate(chain):
        made[link.__name__] = _compiled(link, first if place == 0 else _tree(link), made)
    return made[chain[-1].__name__]


def _tree(source: Any) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(source)))


def _compiled(original: Any, tree: ast.Module, replaced: dict[str, Any]) -> Any:
    namespace = {**vars(sys.modules[original.__module__]), **replaced}
    ast.fix_missing_locations(tree)
    # This module's own ``from __future__ import annotations`` holds for what it compiles.
    exec(compile(tree, f"<rewritten {original.__name__}>", "exec"), namespace)
    return namespace[original.__name__]


def _nodes(tree: ast.Module, methods: tuple[str, ...]) -> Iterator[tuple[ast.AST, str]]:
    """Nodes of the code proper, in a fixed order: no docstrings, annotations, decorators or default values."""
    top = tree.body[0]
    functions = [top] if isinstance(top, ast.FunctionDef) else [
        item for item in ast.walk(top) if isinstance(item, ast.FunctionDef) and item.name in methods
    ]  # fmt: skip
    for function in functions:
        for statement in function.body:
            if isinstance(statement, ast.Expr):  # docstrings, and checks of the input
                continue
            for node in ast.walk(statement):
                yield node, function.name


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _becomes(node: ast.AST, make: Callable[[Any], ast.AST]) -> Replacement:
    def shown(code: ast.AST) -> str:
        text = ast.unparse(code) if isinstance(code, ast.expr | ast.stmt) else ""
        return text if len(text) <= 40 else text[:37] + "..."

    return f"{shown(node)} -> {shown(ast.fix_missing_locations(make(copy.deepcopy(node))))}", make


def _without_fraction(node: ast.AST) -> list[Replacement]:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div):
        return []
    return [_becomes(node, lambda n: ast.BinOp(n.left, ast.FloorDiv(), n.right))]


def _replacements(node: ast.AST) -> list[Replacement]:
    becomes = partial(_becomes, node)
    match node:
        case ast.Constant(value=bool() | None):
            return []
        case ast.Constant(value=str() as side):
            return [becomes(lambda _: ast.Constant(_SIDES[side]))] if side in _SIDES else []
        case ast.Constant(value=int() as number):
            return [becomes(partial(_constant, number + step)) for step in (1, -1)]
        case ast.Constant(value=float() as number):
            return [becomes(partial(_constant, number * by)) for by in (0.5, 2.0) if number]
        case ast.BinOp(op=ast.Mult()):
            return [becomes(lambda n: n.left), becomes(lambda n: n.right)]
        case ast.BinOp(op=ast.Div()):
            return [becomes(lambda n: n.left), becomes(lambda n: ast.BinOp(n.left, ast.Mult(), n.right))]
        case ast.BinOp(op=ast.Add() | ast.Sub() as op):
            other = ast.Sub() if isinstance(op, ast.Add) else ast.Add()
            return [becomes(lambda n: n.left), becomes(lambda n: ast.BinOp(n.left, other, n.right))]
        case ast.UnaryOp(op=ast.USub()):
            return [becomes(lambda n: n.operand)]
        case ast.Compare(ops=[op]) if type(op) in _STRICTER:
            return [becomes(partial(_compared, table[type(op)])) for table in (_STRICTER, _OPPOSITE)]
        case ast.IfExp():
            return [
                becomes(lambda n: ast.IfExp(n.test, n.orelse, n.body)),
                becomes(lambda n: n.body),
                becomes(lambda n: n.orelse),
            ]
        case ast.If(orelse=[_, *_]):
            return [(f"branches of 'if {ast.unparse(node.test)}' swapped", lambda n: ast.If(n.test, n.orelse, n.body))]
        case ast.For() | ast.comprehension():
            over = ast.unparse(node.iter)
            return [
                (f"loop over {over} without its {end}", partial(_looped, cut))
                for end, cut in (
                    ("first", ast.Slice(lower=ast.Constant(1))),
                    ("last", ast.Slice(upper=ast.Constant(-1))),
                )
            ]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, *_]):
            swapped = [becomes(lambda n: _renamed(n, _SWAPPED[name]))] if name in _SWAPPED else []
            return swapped + ([becomes(lambda n: n.args[0])] if name in _DROPPED else [])
    return []


def _constant(value: float, _old: Any) -> ast.Constant:
    return ast.Constant(value)


def _compared(operator: type[ast.cmpop], old: ast.Compare) -> ast.Compare:
    return ast.Compare(old.left, [operator()], old.comparators)


def _renamed(call: ast.Call, name: str) -> ast.Call:
    function = ast.Name(name, ast.Load()) if isinstance(call.func, ast.Name) else copy.copy(call.func)
    if isinstance(function, ast.Attribute):
        function.attr = name
    return ast.Call(function, call.args, call.keywords)


def _looped(cut: ast.Slice, loop: Any) -> Any:
    """The loop over a part of what it ran over."""
    new = copy.copy(loop)
    listed = ast.Call(ast.Name("list", ast.Load()), [loop.iter], [])
    new.iter = ast.Subscript(listed, cut, ast.Load())
    return new
