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
from rollview.algebra.lives import FIRST, LAST, LEVELS, PLACE, bits, power_of_two
from rollview.algebra.script import Script

LEVEL, NODE, PARTNER = "_rv_level", "_rv_node", "_rv_partner"
_LEFT, _RIGHT = "_rv_l", "_rv_r"
_FROM, _TO = "_rv_from", "_rv_to"


def nodes_of_lives(script: Script, lives: str, carried: Sequence[str]) -> str:
    """Each life in each of its nodes: the carried columns, ``LEVEL`` and ``NODE``."""
    length = exp.Sub(this=column(None, LAST), expression=column(None, FIRST))
    found = _exploded(lives, carried, bits(length), _covered())
    nodes = select(*[column(None, name) for name in (*carried, LEVEL, NODE)]).from_(found.subquery("n"))
    return script.add("nodes", nodes.where(not_null(column(None, NODE)), copy=False))


def meeting_points(script: Script, lives: str, carried: Sequence[str]) -> str:
    """Each life in its nodes, and in the nodes above its first place: two lives meet where one's node is the other's
    ``PARTNER`` at the same level.

    A node n is told as 2n where the life covers it, and as 2n + 1 where its first place lies in it.
    """
    twice = [exp.Mul(this=exp.Paren(this=node), expression=number(2)) for node in _covered()]
    above = exp.IntDiv(this=column(None, _FROM), expression=power_of_two(column(None, LEVEL)))
    lies_in = exp.Add(this=exp.Mul(this=exp.Paren(this=above), expression=number(2)), expression=number(1))
    found = _exploded(lives, carried, column(None, LEVELS), [*twice, lies_in])
    node = column(None, NODE)
    partner = exp.Sub(
        this=exp.Add(this=node, expression=number(1)), expression=exp.Mul(this=number(2), expression=_odd(node))
    )
    kept = [column(None, name) for name in (*carried, LEVEL, NODE)]
    points = select(*kept, named(partner, PARTNER)).from_(found.subquery("n"))
    return script.add("points", points.where(not_null(column(None, NODE)), copy=False))


def _exploded(lives: str, carried: Sequence[str], levels: exp.Expr, nodes: Sequence[exp.Expr]) -> exp.Select:
    """A row for each life, level and node. ``nodes``: written over ``_LEFT``, ``_RIGHT``, ``_FROM`` and ``LEVEL``."""
    kept, level = [column(None, name) for name in carried], column(None, LEVEL)
    ends = [named(column(None, FIRST), _FROM), named(column(None, LAST), _TO)]
    at_levels = select(*kept, *ends, named(_up_to(levels), LEVEL)).from_(table(lives))
    width = power_of_two(level)
    rounded_up = exp.Sub(this=exp.Add(this=column(None, _FROM), expression=width), expression=number(1))
    left = exp.IntDiv(this=exp.Paren(this=rounded_up), expression=width.copy())
    right = exp.IntDiv(this=column(None, _TO), expression=width.copy())
    bounds = select(*kept, level, column(None, _FROM), named(left, _LEFT), named(right, _RIGHT))
    return select(*kept, level, named(each(*nodes), NODE)).from_(bounds.from_(at_levels.subquery("v")).subquery("b"))


def _covered() -> list[exp.Expr]:
    """The one or two nodes of a level that belong to a life; NULL where there is none."""
    left, right = column(None, _LEFT), column(None, _RIGHT)
    after_left = exp.Add(this=left.copy(), expression=_odd(left))
    first = case((all_of([_is_odd(left), exp.LT(this=left.copy(), expression=right.copy())]), left.copy()))
    before_right = exp.Sub(this=right.copy(), expression=number(1))
    last = case((all_of([_is_odd(right), exp.LT(this=after_left, expression=right.copy())]), before_right))
    return [first, last]


def nodes_of_places(script: Script, moments: str, carried: Sequence[str]) -> str:
    """Each moment in the node of each level that its place lies in."""
    kept = [column(None, name) for name in carried]
    at_levels = select(*kept, column(None, PLACE), named(_up_to(column(None, LEVELS)), LEVEL)).from_(table(moments))
    node = exp.IntDiv(this=column(None, PLACE), expression=power_of_two(column(None, LEVEL)))
    return script.add("above", select(*kept, column(None, LEVEL), named(node, NODE)).from_(at_levels.subquery("p")))


def same_node(left: str, right: str) -> list[exp.Expr]:
    return [exp.EQ(this=column(left, name), expression=column(right, name)) for name in (LEVEL, NODE)]


def lies_in(alias: str) -> exp.Expr:
    """Whether a meeting point is one above the life's first place."""
    return _is_odd(column(alias, NODE))


def _up_to(levels: exp.Expr) -> exp.Expr:
    return call("explode", call("sequence", cast(number(0), "int"), levels.copy()))


def _odd(place: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Mod(this=place.copy(), expression=number(2)))


def _is_odd(place: exp.Expr) -> exp.Expr:
    return exp.EQ(this=_odd(place), expression=number(1))
