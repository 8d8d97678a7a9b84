"""Joins over lives: which lives of both sides meet, and when a life meets none.

Law: two lives meet iff one of them covers the first place of the other. So the pairs are those where the right one
covers the left one's first place, and those where the left one covers the right one's first place and began earlier;
a segment tree finds both. A pair lasts from the later first place up to the earlier end. A life is without partners
from the largest end of its pairs so far up to where the next pair begins: its *gaps*.

The points of a preserved side are kept where they meet nothing, so each of its lives is told at least once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra import zeroes
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    any_of,
    big,
    call,
    case,
    column,
    come_and_go,
    each,
    named,
    not_null,
    number,
    over,
    select,
    table,
)
from rollview.algebra.lives import FIRST, PLACES, lives, placed
from rollview.algebra.operator import LEFT_SIDE, RIGHT_SIDE, Input, Operator
from rollview.algebra.script import Script
from rollview.algebra.segments import BEGUN, LEVEL, NODE, PARTNER, lies_in, meeting_points
from rollview.algebra.types import compared_one_to_one
from rollview.core.names import COUNT

Keyed = tuple[Operator, tuple[str, ...]]
"""A side of a join, and the columns by which it meets the other."""

_PART, _SIGN, _COPY = "_rv_part", "_rv_sign", "_rv_copy"
_FOREVER = 2**63 - 1
_NAMES = {LEFT_SIDE: "left", RIGHT_SIDE: "right"}


def _of(alias: str, what: str) -> exp.Column:
    """What is known of the life of a side: ``first``, ``at``, ``until``, ``copies``, ``gap``, ``reached``, ``next``."""
    return column(None, f"_rv_{_NAMES[alias]}_{what}")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Rows that a joined row stands for: ``when`` it does, with the columns of ``sides``, from one csn to another."""

    when: exp.Expr
    sides: tuple[str, ...]
    at: exp.Expr
    until: exp.Expr
    copies: exp.Expr
    sign: int = 1


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


def joined(script: Script, left: Keyed, right: Keyed, on: Sequence[exp.Expr], preserved: Sequence[str]) -> str:
    """The pairs of lives, and each life of a preserved side at least once, with its gaps.

    ``on`` holds the equalities of the keys.
    """
    rels = {LEFT_SIDE: left[0], RIGHT_SIDE: right[0]}
    points = {LEFT_SIDE: _points(script, left, right), RIGHT_SIDE: _points(script, right, left)}
    found = script.add("met", _met(rels, points, on, preserved))
    for alias in preserved:
        found = script.add("gaps", _with_gaps(rels, alias, preserved, found))
    return found


def _points(script: Script, side: Keyed, other: Keyed) -> str:
    lived = lives(script, side[0], placed(script, *side, [other]))
    return meeting_points(script, lived, (*side[0].columns, COUNT, FIRST, AT, UNTIL, PLACES))


def _met(
    rels: Mapping[str, Operator], points: Mapping[str, str], on: Sequence[exp.Expr], preserved: Sequence[str]
) -> exp.Select:
    meet = [
        exp.EQ(this=column(LEFT_SIDE, LEVEL), expression=column(RIGHT_SIDE, LEVEL)),
        exp.EQ(this=column(LEFT_SIDE, NODE), expression=column(RIGHT_SIDE, PARTNER)),
    ]
    began_earlier = exp.LT(this=column(LEFT_SIDE, FIRST), expression=column(RIGHT_SIDE, FIRST))
    once = exp.Paren(this=any_of([lies_in(LEFT_SIDE), began_earlier]))
    is_pair = all_of(not_null(column(alias, FIRST)) for alias in rels)
    later = call("greatest", column(LEFT_SIDE, AT), column(RIGHT_SIDE, AT))
    # NULL is no end, and is passed over where the other life has one
    earlier = call("least", column(LEFT_SIDE, UNTIL), column(RIGHT_SIDE, UNTIL))
    query = select(
        *[column(alias, name) for alias, rel in rels.items() for name in rel.columns],
        *[
            named(column(alias, theirs), _of(alias, ours).name)
            for alias in rels
            for theirs, ours in ((FIRST, "first"), (AT, "at"), (UNTIL, "until"), (COUNT, "copies"))
        ],
        named(case((is_pair, later)), AT),
        named(case((is_pair, earlier)), UNTIL),
    ).from_(table(points[LEFT_SIDE], LEFT_SIDE))
    how = {(LEFT_SIDE,): "LEFT", (RIGHT_SIDE,): "RIGHT", (LEFT_SIDE, RIGHT_SIDE): "FULL"}[tuple(preserved)]
    query = query.join(table(points[RIGHT_SIDE], RIGHT_SIDE), on=all_of([*on, *meet, once]), join_type=how, copy=False)
    return query.where(any_of([exp.Paren(this=is_pair), *[column(alias, BEGUN) for alias in preserved]]), copy=False)


def _with_gaps(rels: Mapping[str, Operator], alias: str, preserved: Sequence[str], found: str) -> exp.Select:
    """How far the pairs of the life reach before this one, how far with it, and when the next one begins."""
    life = [*zeroes.identity(rels[alias]), _of(alias, "first")]
    end = case((is_pair(), exp.Coalesce(this=column(None, UNTIL), expressions=[big(_FOREVER)])))
    at = column(None, AT)
    before = over(exp.Max(this=end.copy()), life, at, before=True)
    with_it = over(exp.Max(this=end), life, at, running=True)
    # a row without a partner has no AT, and comes first
    following = over(exp.Lead(this=exp.Coalesce(this=at, expressions=[big(0)])), life, at)
    kept = [*[column(None, name) for rel in rels.values() for name in rel.columns], at, column(None, UNTIL)]
    for other in rels:
        kept += [_of(other, what) for what in ("first", "at", "until", "copies")]
    for done in preserved[: preserved.index(alias)]:
        kept += [_of(done, what) for what in ("gap", "reached", "next")]
    gaps = [
        named(exp.Coalesce(this=before, expressions=[_of(alias, "at")]), _of(alias, "gap").name),
        named(exp.Coalesce(this=with_it, expressions=[_of(alias, "at")]), _of(alias, "reached").name),
        named(following, _of(alias, "next").name),
    ]
    return select(*kept, *gaps).from_(table(found))


def is_pair() -> exp.Expr:
    return not_null(column(None, AT))


def pair() -> Stretch:
    both = exp.Mul(this=_of(LEFT_SIDE, "copies"), expression=_of(RIGHT_SIDE, "copies"))
    return Stretch(is_pair(), (LEFT_SIDE, RIGHT_SIDE), column(None, AT), column(None, UNTIL), both)


def without_partners(alias: str, sign: int = 1) -> list[Stretch]:
    """The gaps of a life: before a pair, and after the last."""
    gap, at, copies = _of(alias, "gap"), column(None, AT), _of(alias, "copies")
    before = all_of([is_pair(), exp.LT(this=gap, expression=at)])
    reached, until = _of(alias, "reached"), _of(alias, "until")
    end = exp.Coalesce(this=until, expressions=[big(_FOREVER)])
    after = all_of([_is_last(alias), exp.LT(this=reached, expression=end)])
    return [
        Stretch(before, (alias,), gap, at, copies, sign),
        Stretch(after, (alias,), reached, until, copies, sign),
    ]


def life(alias: str) -> Stretch:
    return Stretch(_is_last(alias), (alias,), _of(alias, "at"), _of(alias, "until"), _of(alias, "copies"))


def _known(alias: str) -> exp.Expr:
    return not_null(_of(alias, "first"))


def _is_last(alias: str) -> exp.Expr:
    return all_of([_known(alias), exp.Is(this=_of(alias, "next"), expression=exp.null())])


def told(
    script: Script, rel: Operator, sides: Mapping[str, Operator], found: str, stretches: Sequence[Stretch]
) -> exp.Query:
    """The timed delta of ``rel``: a row for each copy of each stretch of each joined row."""

    def chosen(values: Sequence[exp.Expr]) -> exp.Expr:
        return case(*[(_is_part(i), value) for i, value in enumerate(values)])

    parts = select(exp.Star(), named(each(*[number(i) for i in range(len(stretches))]), _PART)).from_(table(found))
    copies = exp.cast(chosen([one.copies for one in stretches]), "bigint")
    rows = select(
        *[named(_shown(name, sides, stretches), name) for name in rel.columns],
        named(chosen([one.at for one in stretches]), AT),
        named(chosen([one.until for one in stretches]), UNTIL),
        named(chosen([big(one.sign) for one in stretches]), _SIGN),
        named(call("explode", call("sequence", big(1), copies)), _COPY),
    ).from_(parts.subquery("p"))
    is_told = any_of([exp.Paren(this=all_of([_is_part(i), one.when])) for i, one in enumerate(stretches)])
    result = script.add("result", rows.where(is_told, copy=False))
    signed = any(one.sign < 0 for one in stretches)
    return come_and_go(result, rel.columns, AT, UNTIL, sign=column(None, _SIGN) if signed else None)


def _is_part(part: int) -> exp.Expr:
    return exp.EQ(this=column(None, _PART), expression=number(part))


def _shown(name: str, sides: Mapping[str, Operator], stretches: Sequence[Stretch]) -> exp.Expr:
    """A column of a side that a stretch does not have is NULL."""
    alias = next(alias for alias, rel in sides.items() if name in rel.columns)
    parts = [i for i, one in enumerate(stretches) if alias in one.sides]
    value = column(None, name)
    return value if len(parts) == len(stretches) else case((any_of([_is_part(i) for i in parts]), value))
