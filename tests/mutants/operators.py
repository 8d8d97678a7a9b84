"""Small wrong changes to the source: signs, bounds, null-safety, missing terms. Each is one place in one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

_BOUNDS = {"GT": "GTE", "GTE": "GT", "LT": "LTE", "LTE": "LT", "NullSafeEQ": "EQ", "NEQ": "EQ"}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_TERMS = {"bag_union", "all_of", "any_of"}


@dataclass(frozen=True, slots=True)
class Mutant:
    path: Path
    line: int
    what: str
    source: str


def mutants(path: Path) -> Iterator[Mutant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for place, node in enumerate(ast.walk(tree)):
        if not isinstance(node, ast.Call | ast.Attribute | ast.Compare):
            continue
        for choice in range(4):
            what = _change(deepcopy(node), choice)
            if what is not None:
                yield Mutant(path, node.lineno, what, _changed(tree, place, choice))


def _changed(tree: ast.Module, place: int, choice: int) -> str:
    changed = deepcopy(tree)
    _change(next(islice(ast.walk(changed), place, None)), choice)
    return ast.unparse(changed)


def _change(node: ast.AST, choice: int) -> str | None:
    """Change the node in place; what was done, or None if there is no such choice."""
    if isinstance(node, ast.Call) and _name(node.func) in _TERMS:
        return _without_term(node, choice)
    if choice > 0:
        return None
    match node:
        case ast.Attribute(value=ast.Name("exp"), attr=attr) if attr in _BOUNDS:
            node.attr = _BOUNDS[attr]
            return f"exp.{attr} becomes exp.{node.attr}"
        case ast.Call(func=ast.Name("same_value"), args=[left, right]):
            node.func = ast.Attribute(ast.Name("exp"), "EQ")
            node.args, node.keywords = [], [ast.keyword("this", left), ast.keyword("expression", right)]
            return "same_value becomes ="
        case ast.Call(func=ast.Name("big"), args=[ast.Constant(1)]):
            node.args = [ast.UnaryOp(ast.USub(), ast.Constant(1))]
            return "big(1) becomes big(-1)"
        case ast.Call(func=ast.Attribute(attr="Neg"), keywords=[ast.keyword(arg="this")]):
            node.func = ast.Attribute(ast.Name("exp"), "Paren")
            return "a minus is gone"
        case ast.Compare(ops=[op]) if type(op) in _COMPARISONS:
            node.ops = [_COMPARISONS[type(op)]()]
            return f"{type(op).__name__} becomes {type(node.ops[0]).__name__}"
    return None


def _without_term(node: ast.Call, choice: int) -> str | None:
    if len(node.args) != 1 or not isinstance(node.args[0], ast.List) or len(node.args[0].elts) < 2:
        return None
    if choice >= len(node.args[0].elts):
        return None
    gone = node.args[0].elts.pop(choice)
    return f"{_name(node.func)} without {ast.unparse(gone)[:60]}"


def _name(function: ast.expr) -> str:
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )
