"""Small wrong changes to the source: signs, bounds, null-safety, missing terms. Each is one place in one file.

A change that no result can show is not made: of a type, of an assertion, of a default after ``or``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.mutants.reached import outermost

_SQL = {"GT": "GTE", "GTE": "GT", "LT": "LTE", "LTE": "LT", "NullSafeEQ": "EQ", "NEQ": "EQ"}
_PYTHON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SUMS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "plus": "minus", "minus": "plus"}
_TERMS = {"bag_union", "all_of", "any_of"}

Change = tuple[str, Callable[[], None]]
"""What it does, and the doing of it, in place."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function, which has this qualified name; ``place`` and ``choice`` say which."""

    path: Path
    function: str
    line: int
    what: str
    place: int
    choice: int

    @property
    def named(self) -> str:
        """Without its line, which changes more often than it does."""
        return f"{self.path.parent.name}/{self.path.name}: {self.function}: {self.what}"

    def tree(self) -> ast.Module:
        """The whole file as changed; what is not changed stays on its lines."""
        tree = ast.parse(self.path.read_text(encoding="utf-8"))
        node = next(islice(ast.walk(dict(outermost(tree))[self.function]), self.place, None))
        _, do = list(_changes(node))[self.choice]
        do()
        return ast.fix_missing_locations(tree)


def mutants(path: Path) -> Iterator[Mutant]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    unseen = _unseen(tree)
    for name, function in outermost(tree):
        for place, node in enumerate(ast.walk(function)):
            for choice, (what, _) in enumerate(() if id(node) in unseen else _changes(node)):
                line = getattr(node, "lineno", None) or node.target.lineno  # type: ignore[attr-defined]
                yield Mutant(path, name, line, what, place, choice)


def _unseen(tree: ast.Module) -> set[int]:
    """Nodes whose change no test could notice, with all below them."""
    roots: list[ast.AST | None] = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    roots += [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg | ast.AnnAssign)]
    roots += [node.returns for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {id(below) for root in roots if root is not None for below in ast.walk(root)}


def _changes(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Attribute(value=ast.Name("exp"), attr=attr) if attr in _SQL:
            yield f"exp.{attr} becomes exp.{_SQL[attr]}", lambda: setattr(node, "attr", _SQL[attr])
        case ast.Call():
            yield from _of_call(node)
        case ast.Compare(ops=[op]) if type(op) in _PYTHON:
            other = _PYTHON[type(op)]
            yield f"{type(op).__name__} becomes {other.__name__}", lambda: setattr(node, "ops", [other()])
        case ast.BinOp(op=op) if type(op) in _SUMS and not _has_text(node):
            opposite = _SUMS[type(op)]
            yield f"{type(op).__name__} becomes {opposite.__name__}", lambda: setattr(node, "op", opposite())
        # a default after ``or`` is no term
        case ast.BoolOp(values=[*_, last] as values) if not isinstance(last, ast.Constant):
            for place, value in enumerate(values):
                yield f"a condition without {_spelled(value)}", lambda place=place: _hide(values, place)  # type: ignore[misc]
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield (
                f"no longer negated: {_spelled(operand)}",
                lambda: setattr(node, "operand", ast.UnaryOp(node.op, operand)),
            )
        case ast.comprehension(ifs=ifs):
            for place, condition in enumerate(ifs):
                yield f"not only where {_spelled(condition)}", lambda place=place: _drop(ifs, place)  # type: ignore[misc]


def _has_text(node: ast.BinOp) -> bool:
    return any(isinstance(one, ast.JoinedStr) or isinstance(getattr(one, "value", None), str) for one in ast.walk(node))


def _of_call(node: ast.Call) -> Iterator[Change]:
    name = _name(node.func)
    match node:
        case ast.Call(func=ast.Name("same_value"), args=[left, right]):
            equal = ast.Call(_sqlglot("EQ"), [], [ast.keyword("this", left), ast.keyword("expression", right)])
            yield "same_value becomes =", lambda: node.__dict__.update(equal.__dict__)
        case ast.Call(func=ast.Name("big"), args=[ast.Constant(1)]):
            yield "big(1) becomes big(-1)", lambda: setattr(node, "args", [ast.UnaryOp(ast.USub(), ast.Constant(1))])
        case ast.Call(func=ast.Name("not_null")):
            yield (
                "not_null becomes true",
                lambda: setattr(node, "func", ast.parse("lambda _: exp.true()", mode="eval").body),
            )
        case ast.Call(func=ast.Attribute(attr="Neg"), keywords=[ast.keyword(arg="this")]):
            yield "a minus is gone", lambda: setattr(node, "func", _sqlglot("Paren"))
        case ast.Call(func=ast.Name(id=plain)) if plain in _CALLS:
            yield f"{plain} becomes {_CALLS[plain]}", lambda: setattr(node.func, "id", _CALLS[plain])
    if name in _TERMS and len(node.args) == 1 and isinstance(node.args[0], ast.List) and len(node.args[0].elts) > 1:
        terms = node.args[0].elts
        for place, term in enumerate(terms):
            yield f"{name} without {_spelled(term)}", lambda place=place: _drop(terms, place)  # type: ignore[misc]


def _sqlglot(name: str) -> ast.Attribute:
    return ast.Attribute(ast.Name("exp", ast.Load()), name, ast.Load())


def _drop(nodes: list[ast.expr], place: int) -> None:
    del nodes[place]


def _hide(conditions: list[ast.expr], place: int) -> None:
    """Its neighbour is there twice: a tree needs two of them."""
    conditions[place] = conditions[place - 1 if place else 1]


def _spelled(node: ast.expr) -> str:
    return ast.unparse(node)[:60]


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""
