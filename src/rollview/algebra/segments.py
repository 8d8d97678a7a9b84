"""A segment tree over time: what holds at each moment of a key, combined from stretches.

Law: node n of level j covers the places from n·2ʲ up to (n+1)·2ʲ. A life [f, t) is the disjoint union of at most two
nodes of each level: with l = ⌈f/2ʲ⌉ and r = ⌊t/2ʲ⌋ these are l, if it is odd and l < r, and r − 1, if r is odd and
l + (l mod 2) < r. A place p lies in node ⌊p/2ʲ⌋ of each level, so exactly one of a life's nodes meets one of p's if
the life covers p, and none if it does not.

Grouping by node and then combining the nodes above each place costs (lives + moments) · log(moments), where looking at
all rows of a key at each moment would cost their product.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rollview.algebra.expressions import (
    all_of,
    big,
    call,
    case,
    cast,
    column,
    each,
    named,
    not_null,
    number,
    select,
    table,
)
from rollview.algebra.lives import FIRST, LAST, LEVELS, PLACE, bits
from rollview.algebra.script import Script

LEVEL, NODE = "_rv_level", "_rv_node"
_LEFT, _RIGHT = "_rv_l", "_rv_r"
_FROM, _TO = "_rv_from", "_rv_to"


def nodes_of_lives(script: Script, lives: str, carried: Sequence[str]) -> str:
    """Each life in each of its nodes: the carried columns, ``LEVEL`` and ``NODE``."""
    kept = [column(None, name) for name in carried]
    length = exp.Sub(this=column(None, LAST), expression=column(None, FIRST))
    lasting = [named(column(None, FIRST), _FROM), named(column(None, LAST), _TO)]
    at_levels = select(*kept, *lasting, named(_up_to(bits(length)), LEVEL)).from_(table(lives))
    level, one = column(None, LEVEL), exp.BitwiseLeftShift(this=big(1), expression=column(None, LEVEL))
    rounded_up = exp.Sub(this=exp.Add(this=column(None, _FROM), expression=one), expression=number(1))
    left = exp.BitwiseRightShift(this=exp.Paren(this=rounded_up), expression=level.copy())
    right = exp.BitwiseRightShift(this=column(None, _TO), expression=level.copy())
    bounds = select(*kept, level, named(left, _LEFT), named(right, _RIGHT)).from_(at_levels.subquery("v"))
    first, last = column(None, _LEFT), column(None, _RIGHT)
    after_first = exp.Add(this=first.copy(), expression=_odd(first))
    begins = case((all_of([_is_odd(first), exp.LT(this=first.copy(), expression=last.copy())]), first.copy()))
    ends = case(
        (
            all_of([_is_odd(last), exp.LT(this=after_first, expression=last.copy())]),
            exp.Sub(this=last.copy(), expression=number(1)),
        )
    )
    found = select(*kept, level, named(each(begins, ends), NODE)).from_(bounds.subquery("b"))
    nodes = select(*kept, level, column(None, NODE)).from_(found.subquery("n"))
    return script.add("nodes", nodes.where(not_null(column(None, NODE)), copy=False))


def nodes_of_places(script: Script, rows: str, carried: Sequence[str], place: str = PLACE) -> str:
    """Each row in the node of each level that its place lies in."""
    kept = [column(None, name) for name in carried]
    levels = _up_to(column(None, LEVELS))
    at_levels = select(*kept, named(column(None, place), PLACE), named(levels, LEVEL)).from_(table(rows))
    node = exp.BitwiseRightShift(this=column(None, PLACE), expression=column(None, LEVEL))
    return script.add("above", select(*kept, column(None, LEVEL), named(node, NODE)).from_(at_levels.subquery("p")))


def same_node(left: str, right: str) -> list[exp.Expr]:
    return [exp.EQ(this=column(left, name), expression=column(right, name)) for name in (LEVEL, NODE)]


def _up_to(levels: exp.Expr) -> exp.Expr:
    return call("explode", call("sequence", cast(number(0), "int"), levels.copy()))


def _odd(place: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Mod(this=place.copy(), expression=number(2)))


def _is_odd(place: exp.Expr) -> exp.Expr:
    return exp.EQ(this=_odd(place), expression=number(1))
