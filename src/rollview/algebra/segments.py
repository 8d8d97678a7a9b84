"""A segment tree over time: what holds at each place of a key, combined from stretches.

Law: node n of level j covers the places from n·2ʲ up to (n+1)·2ʲ. A life [f, t) is the disjoint union of at most two
nodes of each level: with l = ⌈f/2ʲ⌉ and r = ⌊t/2ʲ⌋ these are l, if it is odd and l < r, and r − 1, if r is odd and
l + (l mod 2) < r. A place p lies in node ⌊p/2ʲ⌋ of each level, so exactly one of a life's nodes meets one of p's if
the life covers p, and none if it does not.

Grouping by node and then combining the nodes above each place costs (lives + places) · log(places), where looking at
all rows of a key at each place would cost their product.
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
from rollview.algebra.lives import FIRST, LAST, PLACE, PLACES, bits, power_of_two
from rollview.algebra.script import Script

LEVEL, NODE, PARTNER, BEGUN = "_rv_level", "_rv_node", "_rv_partner", "_rv_begun"
_LEFT, _RIGHT = "_rv_l", "_rv_r"
_FROM, _TO = "_rv_from", "_rv_to"
_START = -1
"""A level of its own for the interval's start, with one node: rows that were there before need no more to meet."""


def nodes_of_lives(script: Script, lives: str, carried: Sequence[str]) -> str:
    """Each life in each of its nodes: the carried columns, ``LEVEL`` and ``NODE``."""
    length = exp.Sub(this=column(None, LAST), expression=column(None, FIRST))
    found = _exploded(lives, carried, _levels(number(0), bits(length)), _covered())
    nodes = select(*[column(None, name) for name in (*carried, LEVEL, NODE)]).from_(found.subquery("n"))
    return script.add("nodes", nodes.where(not_null(column(None, NODE)), copy=False))


def places_of_nodes(nodes: exp.Select, carried: Sequence[exp.Expr]) -> exp.Select:
    """Each node at each of its places: the carried columns and ``PLACE``. A level has each place once at most."""
    width = power_of_two(column(None, LEVEL))
    first = exp.Mul(this=column(None, NODE), expression=width)
    end = exp.Mul(this=exp.Paren(this=exp.Add(this=column(None, NODE), expression=number(1))), expression=width.copy())
    last = exp.Sub(this=call("least", end, column(None, PLACES)), expression=number(1))
    place = call("explode", call("sequence", cast(first, "bigint"), cast(last, "bigint")))
    found = select(*carried, named(place, PLACE)).from_(nodes.subquery("n"))
    # A life that does not end has nodes behind all places; from there Spark's sequence would go back.
    return found.where(exp.LT(this=first.copy(), expression=column(None, PLACES)), copy=False)


def meeting_points(script: Script, lives: str, carried: Sequence[str]) -> str:
    """Each life in its nodes, and in the nodes above its first place: two lives meet where one's node is the other's
    ``PARTNER`` at the same level. One point of each life is ``BEGUN``.

    A node n is told as 2n where the life covers it, and as 2n + 1 where its first place lies in it. Of a life from
    the interval's start only lives from there cover the first place: all of them meet at a level below the others.
    """
    level, start, node = column(None, LEVEL), column(None, _FROM), column(None, NODE)
    at_start = exp.EQ(this=level, expression=number(_START))
    twice = [exp.Mul(this=exp.Paren(this=covered), expression=number(2)) for covered in _covered()]
    above = exp.IntDiv(this=start, expression=_width(level))
    lies_in = exp.Add(this=exp.Mul(this=exp.Paren(this=above), expression=number(2)), expression=number(1))
    later = exp.GT(this=start.copy(), expression=number(0))
    nodes = [
        case((at_start, number(0)), otherwise=twice[0]),
        case((exp.Not(this=exp.Paren(this=at_start)), twice[1])),
        case((at_start, number(1)), (later, lies_in)),
    ]
    lowest = case((exp.EQ(this=column(None, FIRST), expression=number(0)), number(_START)), otherwise=number(0))
    found = _exploded(lives, carried, _levels(lowest, bits(column(None, PLACES))), nodes)
    partner = exp.Sub(
        this=exp.Add(this=node, expression=number(1)), expression=exp.Mul(this=number(2), expression=_odd(node))
    )
    begun = all_of([_is_odd(node), exp.LTE(this=level, expression=number(0))])
    kept = [column(None, name) for name in (*carried, LEVEL, NODE)]
    points = select(*kept, named(partner, PARTNER), named(begun, BEGUN)).from_(found.subquery("n"))
    return script.add("points", points.where(not_null(node), copy=False))


def _exploded(lives: str, carried: Sequence[str], levels: exp.Expr, nodes: Sequence[exp.Expr]) -> exp.Select:
    """A row for each life, level and node. ``nodes``: written over ``_LEFT``, ``_RIGHT``, ``_FROM`` and ``LEVEL``."""
    kept, level = [column(None, name) for name in carried], column(None, LEVEL)
    ends = [named(column(None, FIRST), _FROM), named(column(None, LAST), _TO)]
    at_levels = select(*kept, *ends, named(levels, LEVEL)).from_(table(lives))
    width = _width(level)
    rounded_up = exp.Sub(this=exp.Add(this=column(None, _FROM), expression=width), expression=number(1))
    left = exp.IntDiv(this=exp.Paren(this=rounded_up), expression=width.copy())
    right = exp.IntDiv(this=column(None, _TO), expression=width.copy())
    bounds = select(*kept, level, column(None, _FROM), named(left, _LEFT), named(right, _RIGHT))
    return select(*kept, level, named(each(*nodes), NODE)).from_(bounds.from_(at_levels.subquery("v")).subquery("b"))


def _width(level: exp.Expr) -> exp.Expr:
    return power_of_two(call("greatest", level, number(0)))


def _covered() -> list[exp.Expr]:
    """The one or two nodes of a level that belong to a life; NULL where there is none."""
    left, right = column(None, _LEFT), column(None, _RIGHT)
    after_left = exp.Add(this=left.copy(), expression=_odd(left))
    first = case((all_of([_is_odd(left), exp.LT(this=left.copy(), expression=right.copy())]), left.copy()))
    before_right = exp.Sub(this=right.copy(), expression=number(1))
    last = case((all_of([_is_odd(right), exp.LT(this=after_left, expression=right.copy())]), before_right))
    return [first, last]


def lies_in(alias: str) -> exp.Expr:
    """Whether a meeting point is one above the life's first place."""
    return _is_odd(column(alias, NODE))


def _levels(lowest: exp.Expr, highest: exp.Expr) -> exp.Expr:
    return call("explode", call("sequence", cast(lowest, "int"), cast(highest, "int")))


def _odd(place: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Mod(this=place.copy(), expression=number(2)))


def _is_odd(place: exp.Expr) -> exp.Expr:
    return exp.EQ(this=_odd(place), expression=number(1))
