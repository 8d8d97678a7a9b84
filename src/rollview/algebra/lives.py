"""Rows as lives: the stretches of time over which a row is there, and in how many copies.

Law: a row's count at a csn is the sum of its signed rows up to there, so it changes only where one of them lies. A row
that changes c times has at most c + 1 lives; over any number of commits there are no more lives than rows.

Time is counted in *places*: the csns that touched a key are numbered 1, 2 …, and 0 is the interval's start. A life goes
from one place up to, but not including, another; one that does not end goes up to a power of two above all.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rollview.algebra import keyed, zeroes
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    bag_union,
    call,
    case,
    cast,
    column,
    gathered,
    named,
    number,
    over,
    select,
    table,
)
from rollview.algebra.keyed import Keys, key_name
from rollview.algebra.operator import Operator
from rollview.algebra.script import Script
from rollview.core.names import COUNT, CSN

PLACE, PLACES = "_rv_place", "_rv_places"
FIRST, LAST = "_rv_first", "_rv_last"
_NOW = "_rv_now"


def bits(size: exp.Expr) -> exp.Expr:
    """The smallest j with 2ʲ ≥ size."""
    return cast(exp.Ceil(this=exp.Log(this=number(2), expression=cast(size, "double"))), "int")


def power_of_two(exponent: exp.Expr) -> exp.Expr:
    """Without ``<<`` and ``>>``: Spark takes ``>>`` for the end of two types where ``ARRAY`` stands before it."""
    return cast(exp.Pow(this=cast(number(2), "double"), expression=exponent.copy()), "bigint")


def placed(script: Script, side: Operator, keys: Keys, others: Sequence[tuple[Operator, Keys]] = ()) -> str:
    """The rows of the touched keys, netted per csn: columns, ``COUNT``, ``AT``, its place, and how many places the
    key has. ``others``: what else touches keys."""
    timed = keyed.timed_of_touched(script, side, [(side, keys), *others], keys)
    return _in_places(script, side, keys, script.add("timed", timed), others)


def places(script: Script, side: Operator, keys: Keys) -> str:
    """The csns at which the keys are touched by changes of ``side``, with their places; some of them several times."""
    return _in_places(script, side, keys, script.delta(side), ())


def _in_places(script: Script, side: Operator, keys: Keys, timed: str, others: Sequence[tuple[Operator, Keys]]) -> str:
    """By windows over each key. A change of another side is there with no count, to be counted as a place."""
    names = [key_name(i) for i in range(len(keys))]
    columns, partition = [column(None, name) for name in side.columns], [column(None, name) for name in names]
    as_keys = [named(column(None, key), name) for key, name in zip(keys, names, strict=True)]
    net = zeroes.net(side, select().from_(table(timed)), None, [column(None, CSN)])
    if not others:
        # what changes nothing is no place; where others count it as one, it is one here too
        net = net.having(exp.NEQ(this=exp.Sum(this=column(None, COUNT)), expression=number(0)), copy=False)
    netted = script.add("netted", net)
    rows = select(*columns, column(None, COUNT), column(None, CSN), *as_keys).from_(table(netted))
    marks = [_marks(script, side, other, theirs) for other, theirs in others if script.changed(other)]
    together = script.add("together", bag_union([rows, *marks]))
    every = select(*columns, column(None, COUNT), column(None, CSN), *partition).from_(table(together))
    every = gathered(every) if script.reads_little else every
    csn = column(None, CSN)
    first = over(exp.Min(this=csn.copy()), partition, csn, running=True)
    rank = over(call("dense_rank"), partition, csn)
    starts_old = case((exp.EQ(this=first, expression=number(0)), number(1)), otherwise=number(0))
    place = named(cast(exp.Sub(this=rank, expression=starts_old), "bigint"), PLACE)
    carried = [*columns, column(None, COUNT), named(csn, AT), *partition]
    ranked = script.add("ranked", select(*carried, place).from_(every.subquery("e")))
    size = exp.Window(this=exp.Max(this=column(None, PLACE)), partition_by=[key.copy() for key in partition])
    kept = [*columns, *[column(None, name) for name in (COUNT, AT, PLACE)]]
    sized = select(*kept, named(exp.Add(this=size, expression=number(1)), PLACES)).from_(table(ranked))
    touched = exp.GT(this=column(None, PLACES), expression=number(1))
    whole = select(*kept, column(None, PLACES)).from_(sized.subquery("z"))
    changes = exp.NEQ(this=column(None, COUNT), expression=number(0))
    return script.add("placed", whole.where(all_of([touched, changes]), copy=False))


def _marks(script: Script, side: Operator, other: Operator, keys: Keys) -> exp.Select:
    nothing = [named(exp.null(), name) for name in (*side.columns, COUNT)]
    as_keys = [named(column(None, key), key_name(i)) for i, key in enumerate(keys)]
    return select(*nothing, column(None, CSN), *as_keys).from_(table(script.delta(other)))


def lives(script: Script, side: Operator, rows: str) -> str:
    """The lives of rows in their places (``placed``): columns, ``COUNT`` copies, ``PLACES``, and the ends of the life.

    ``FIRST`` and ``LAST`` are its first place and the one after its last; ``AT`` and ``UNTIL`` are their csns: 0 for
    the interval's start, and NULL where the life does not end.
    """
    running = over(exp.Sum(this=column(None, COUNT)), zeroes.identity(side), column(None, PLACE), running=True)
    names = [column(None, name) for name in side.columns]
    ended = select(*names, named(running, COUNT), *_ends(zeroes.identity(side))).from_(table(rows))
    return script.add("lives", _there(ended, names))


def presences(script: Script, columns: Sequence[str], rows: exp.Select) -> str:
    """As ``lives`` of ``rows`` with these columns, but without regard to the number of copies: a life lasts as long as
    there is any. The two zeroes are one value."""
    names = [column(None, name) for name in columns]
    times = [column(None, name) for name in (AT, PLACE, PLACES)]
    netted = rows.select(*names, *times, named(exp.Sum(this=column(None, COUNT)), COUNT), copy=False)
    netted = netted.group_by(*names, *times, copy=False)
    total = over(exp.Sum(this=column(None, COUNT)), names, column(None, PLACE), running=True)
    running = select(*names, *times, column(None, COUNT), named(total, _NOW)).from_(netted.subquery("n"))
    turned = select(*names, *times, named(column(None, _NOW), COUNT)).from_(running.subquery("r"))
    turns = script.add("turns", turned.where(_turns_at(_NOW, COUNT), copy=False))
    ended = select(*names, column(None, COUNT), *_ends(names)).from_(table(turns))
    return script.add("presences", _there(ended, names))


def _turns_at(now: str, change: str) -> exp.Expr:
    """Whether a running count leaves or reaches zero by its last change."""
    before = exp.Paren(this=exp.Sub(this=column(None, now), expression=column(None, change)))
    was_there = exp.Paren(this=exp.GT(this=before, expression=number(0)))
    return exp.NEQ(this=exp.Paren(this=_is_there(now)), expression=was_there)


def _is_there(count: str) -> exp.Expr:
    return exp.GT(this=column(None, count), expression=number(0))


def _ends(row: Sequence[exp.Expr]) -> list[exp.Expr]:
    """From each place up to where the next one of the same row is."""

    def following(name: str) -> exp.Expr:
        return over(exp.Lead(this=column(None, name)), row, column(None, PLACE))

    end = power_of_two(bits(column(None, PLACES)))
    return [
        column(None, PLACES),
        column(None, AT),
        named(column(None, PLACE), FIRST),
        named(exp.Coalesce(this=following(PLACE), expressions=[end]), LAST),
        named(following(AT), UNTIL),
    ]


def _there(ended: exp.Select, names: Sequence[exp.Column]) -> exp.Select:
    kept = [*names, *[column(None, name) for name in (COUNT, PLACES, FIRST, LAST, AT, UNTIL)]]
    return select(*kept).from_(ended.subquery("n")).where(_is_there(COUNT), copy=False)
