"""Joins over lives: which lives of both sides meet, and when a life meets none.

Law: two lives meet iff one of them covers the first place of the other. So the pairs are those where the right one
covers the left one's first place, and those where the left one covers the right one's first place and began earlier;
a segment tree finds both. A pair lasts from the later first place up to the earlier end. What is left of a life when
its pairs are taken away follows from a running count of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra import zeroes
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    any_of,
    bag_union,
    big,
    call,
    case,
    column,
    each,
    named,
    not_null,
    number,
    over,
    same_value,
    select,
    table,
)
from rollview.algebra.lives import FIRST
from rollview.algebra.operator import LEFT_SIDE, RIGHT_SIDE, Input, Operator
from rollview.algebra.script import Script
from rollview.algebra.segments import LEVEL, NODE, PARTNER, lies_in, meeting_points
from rollview.algebra.types import compared_one_to_one
from rollview.core.names import COUNT

BEGAN = {LEFT_SIDE: "_rv_left_first", RIGHT_SIDE: "_rv_right_first"}
COPIES = {LEFT_SIDE: "_rv_left_copies", RIGHT_SIDE: "_rv_right_copies"}
ENDS = {LEFT_SIDE: "_rv_left_until", RIGHT_SIDE: "_rv_right_until"}
PARTNERS = "_rv_partners"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a join: its lives (``lives`` or ``presences``), and the columns by which the sides meet."""

    alias: str
    rel: Operator
    keys: tuple[str, ...]
    lives: str

    @property
    def carried(self) -> tuple[str, ...]:
        return (*self.rel.columns, COUNT, FIRST, AT, UNTIL)


def told_by_lives(script: Script, left: Operator, right: Operator, keys: Sequence[tuple[str, str]]) -> bool:
    """Whether a join is better told by lives; rows must be told apart by windows, and equal keys be equal values."""
    sources = (Input(LEFT_SIDE, left), Input(RIGHT_SIDE, right))
    types = [rel.type_of(name) for rel in (left, right) for name in rel.columns]
    return (
        script.many
        and not any(type_ is None or "map<" in type_ for type_ in types)
        and all(
            compared_one_to_one(sources, column(LEFT_SIDE, ours), column(RIGHT_SIDE, theirs)) for ours, theirs in keys
        )
    )


def pairs(script: Script, left: Side, right: Side, on: Sequence[exp.Expr]) -> str:
    """The columns of both sides, ``AT`` and ``UNTIL`` of the pair, and the first place, end and copies of its lives."""
    sides = (left, right)
    points = [meeting_points(script, side.lives, side.carried) for side in sides]
    keys = [
        same_value(column(left.alias, ours), column(right.alias, theirs))
        for ours, theirs in zip(left.keys, right.keys, strict=True)
    ]
    meet = [
        exp.EQ(this=column(left.alias, LEVEL), expression=column(right.alias, LEVEL)),
        exp.EQ(this=column(left.alias, NODE), expression=column(right.alias, PARTNER)),
    ]
    began_earlier = exp.LT(this=column(left.alias, FIRST), expression=column(right.alias, FIRST))
    once = any_of([lies_in(left.alias), began_earlier])
    later = call("greatest", column(left.alias, AT), column(right.alias, AT))
    # NULL is no end, and is passed over where the other life has one
    earlier = call("least", column(left.alias, UNTIL), column(right.alias, UNTIL))
    query = select(
        *[column(side.alias, name) for side in sides for name in side.rel.columns],
        *[named(column(side.alias, FIRST), BEGAN[side.alias]) for side in sides],
        *[named(column(side.alias, UNTIL), ENDS[side.alias]) for side in sides],
        *[named(column(side.alias, COUNT), COPIES[side.alias]) for side in sides],
        named(later, AT),
        named(earlier, UNTIL),
    ).from_(table(points[0], left.alias))
    query = query.join(table(points[1], right.alias), on=all_of([*keys, *meet, exp.Paren(this=once), *on]), copy=False)
    return script.add("pairs", query)


def stretches(script: Script, side: Side, found: str) -> str:
    """Each life of the side cut where its partners come and go: columns, copies, ``AT``, ``UNTIL``, ``PARTNERS``."""
    alias, names = side.alias, [column(None, name) for name in side.rel.columns]
    life = [(FIRST, BEGAN[alias]), (UNTIL, ENDS[alias]), (COUNT, COPIES[alias])]
    kept = [named(column(None, name), ours) for name, ours in life]
    ours = [column(None, name) for _, name in life]
    ends_before = [not_null(column(None, UNTIL)), any_of([_is_null(ENDS[alias]), _before(UNTIL, ENDS[alias])])]
    begun = select(*names, *kept, column(None, AT), named(big(0), COUNT)).from_(table(side.lives))
    turns = select(*names, *ours, column(None, AT), column(None, UNTIL), named(each(big(1), big(-1)), COUNT))
    comes = exp.GT(this=column(None, COUNT), expression=number(0))
    at = case((comes, column(None, AT)), otherwise=column(None, UNTIL))
    turned = select(*names, *ours, named(at, AT), column(None, COUNT)).from_(turns.from_(table(found)).subquery("t"))
    events = bag_union([begun, turned.where(any_of([comes, all_of(ends_before)]), copy=False)])
    netted = zeroes.net(side.rel, select().from_(events.subquery("e")), None, [*ours, column(None, AT)])
    netted_turns = script.add("turns", netted)
    of_a_life = [*zeroes.identity(side.rel), column(None, BEGAN[alias])]
    partners = over(exp.Sum(this=column(None, COUNT)), of_a_life, column(None, AT), running=True)
    until = exp.Coalesce(
        this=over(exp.Lead(this=column(None, AT)), of_a_life, column(None, AT)), expressions=[column(None, ENDS[alias])]
    )
    cut = select(*names, column(None, COPIES[alias]), column(None, AT), named(until, UNTIL), named(partners, PARTNERS))
    return script.add("stretches", cut.from_(table(netted_turns)))


def copies(rows: exp.Select, columns: Sequence[exp.Expr], count: exp.Expr) -> exp.Select:
    """One row for each copy."""
    copy = named(call("explode", call("sequence", big(1), exp.cast(count, "bigint"))), "_rv_copy")
    names = [column(None, item.alias_or_name) for item in columns]
    return select(*names).from_(rows.select(*columns, copy, copy=False).subquery("c"))


def _is_null(name: str) -> exp.Expr:
    return exp.Is(this=column(None, name), expression=exp.null())


def _before(name: str, other: str) -> exp.Expr:
    return exp.LT(this=column(None, name), expression=column(None, other))


def without_partners() -> exp.Expr:
    return exp.EQ(this=column(None, PARTNERS), expression=number(0))


def with_partners() -> exp.Expr:
    return exp.GT(this=column(None, PARTNERS), expression=number(0))
