"""How tightly Spark's operators bind, and parentheses wherever a tree needs them to be read as it is built.

Law: what is written binds for Spark as it does in the tree, however the tree came about. The levels are those of
Spark's own grammar: comparisons stand on one level, left to right; below them ``|``, ``^``, ``&``, shifts, then ``+``
and ``||``, then ``*``; a predicate such as ``IN`` takes a whole comparison for its operand.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


class UnsignedShift(exp.Expression, exp.Binary):
    """``a >>> b``."""


class Plus(exp.Unary):
    """``+a``, which makes a number of a text."""


_OR, _AND, _NOT, _PREDICATE, _COMPARISON, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _SIGN, _PRIMARY = range(
    13
)

_LEVELS: dict[type[exp.Expr], int] = {
    exp.Or: _OR,
    exp.And: _AND,
    exp.Not: _NOT,
    **dict.fromkeys(
        (
            exp.Between,
            exp.Escape,
            exp.ILike,
            exp.In,
            exp.Is,
            exp.Like,
            exp.NullSafeEQ,
            exp.NullSafeNEQ,
            exp.RegexpLike,
        ),
        _PREDICATE,
    ),
    **dict.fromkeys((exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NEQ), _COMPARISON),
    exp.BitwiseOr: _BIT_OR,
    exp.BitwiseXor: _BIT_XOR,
    exp.BitwiseAnd: _BIT_AND,
    **dict.fromkeys((exp.BitwiseLeftShift, exp.BitwiseRightShift, UnsignedShift), _SHIFT),
    **dict.fromkeys((exp.Add, exp.DPipe, exp.Sub), _SUM),
    **dict.fromkeys((exp.Div, exp.IntDiv, exp.Mod, exp.Mul), _PRODUCT),
    **dict.fromkeys((exp.BitwiseNot, exp.Neg, Plus), _SIGN),
}
"""``<=>`` is written IS NOT DISTINCT FROM, a predicate."""

_OF_A_WHOLE = (exp.Bracket, exp.Collate, exp.Dot)
"""What follows its operand immediately."""


def parenthesised(tree: exp.Expr, *, always: bool = False) -> exp.Expr:
    """The tree itself, with parentheses around operands that would be read otherwise; ``always``: around all."""
    for node in list(tree.walk()):
        for operand, least in list(_operands(node)):
            level = _LEVELS.get(type(operand), _PRIMARY)
            if level < least or (always and level < _PRIMARY):
                around = exp.Paren()
                operand.replace(around)
                around.set("this", operand)
    return tree


def _operands(node: exp.Expr) -> Iterator[tuple[exp.Expr, int]]:
    """An operator's operands, each with the loosest level that needs no parentheses there."""
    level = _LEVELS.get(type(node))
    if isinstance(node, _OF_A_WHOLE):
        yield node.this, _PRIMARY
    elif level is None:
        return
    elif level in (_OR, _AND):
        yield from ((node.args[side], level) for side in ("this", "expression"))
    elif level in (_NOT, _SIGN):
        yield node.this, level
    elif isinstance(node, exp.Escape):
        # LIKE … ESCAPE is one predicate, and its pattern is looked at with LIKE.
        return
    elif level == _PREDICATE:
        yield from (
            (part, _COMPARISON) for name in ("this", "expression", "low", "high") if (part := _part(node, name))
        )
    else:
        yield from ((node.this, level), (node.expression, level + 1))


def _part(node: exp.Expr, name: str) -> exp.Expr | None:
    part = node.args.get(name)
    return part if isinstance(part, exp.Expr) else None
