"""Rows as lives: the stretches of time over which a row is there, and in how many copies.

Law: a row's count at a csn is the sum of its signed rows up to there, so it changes only where one of them lies. A row
that changes c times has at most c + 1 lives; over any number of commits there are no more lives than rows.

Time is counted in *places*: the moments of a key are numbered 0, 1, 2 …, where 0 is the interval's start. A life goes
from one place up to, but not including, another; one that does not end goes up to a power of two above all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from rollview.algebra import keyed, zeroes
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    broadcast,
    call,
    cast,
    column,
    named,
    number,
    over,
    same_value,
    select,
    table,
)
from rollview.algebra.operator import Operator
from rollview.algebra.script import Script
from rollview.core.names import COUNT, CSN

PLACE, LEVELS = "_rv_place", "_rv_levels"
FIRST, LAST = "_rv_first", "_rv_last"
_BEFORE = "_rv_before"


def numbered(script: Script, inputs: Sequence[tuple[Operator, keyed.Keys]]) -> str:
    """The moments (``keyed``) of the touched keys with their places, and how many bits the places of that key have."""
    moments = keyed.moments(script, inputs)
    keys = [column(None, keyed.key_name(i)) for i in range(len(inputs[0][1]))]
    place = exp.Sub(this=over(call("row_number"), keys, column(None, AT)), expression=number(1))
    size = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[key.copy() for key in keys])
    times = [column(None, AT), column(None, UNTIL)]
    query = select(*keys, *times, named(cast(place, "bigint"), PLACE), named(bits(size), LEVELS))
    return script.add("numbered", query.from_(table(moments)))


def bits(size: exp.Expr) -> exp.Expr:
    """The smallest j with 2ʲ ≥ size."""
    return cast(exp.Ceil(this=exp.Log(this=number(2), expression=cast(size, "double"))), "int")


def power_of_two(exponent: exp.Expr) -> exp.Expr:
    """Without ``<<`` and ``>>``: Spark takes ``>>`` for the end of two types where ``ARRAY`` stands before it."""
    return cast(exp.Pow(this=cast(number(2), "double"), expression=exponent.copy()), "bigint")


def lives(script: Script, side: Operator, keys: keyed.Keys, moments: str) -> str:
    """The rows of the touched keys: columns, ``_count`` copies, and the ends of the life.

    ``FIRST`` and ``LAST`` are its first place and the one after its last; ``AT`` and ``UNTIL`` are their csns, as in
    ``keyed``: 0 for the interval's start, and NULL where the life does not end.
    """
    row = zeroes.identity(side)
    running = _running(script, side, row, _changes(script, side, keys, moments, zeroes.net))
    return script.add("lives", _there(side, _with_ends(side, row, running)))


def presences(script: Script, side: Operator, keys: keyed.Keys, moments: str, *, apart: bool) -> str:
    """As ``lives``, but without regard to the number of copies: a life lasts as long as there is any.

    ``apart``: the two zeroes are two values, and not one as they are for DISTINCT.
    """
    row = zeroes.identity(side) if apart else [column(None, name) for name in side.columns]
    changes = _changes(script, side, keys, moments, zeroes.net if apart else zeroes.net_of_equals)
    running = _running(script, side, row, changes)
    before = over(exp.Lag(this=column(None, COUNT)), row, column(None, PLACE))
    kept = [column(None, name) for name in (*side.columns, COUNT, PLACE, AT, LEVELS)]
    compared = script.add("compared", select(*kept, named(before, _BEFORE)).from_(table(running)))
    was_there = exp.Coalesce(this=_is_there(_BEFORE), expressions=[exp.false()])
    turns = exp.NEQ(this=exp.Paren(this=_is_there(COUNT)), expression=was_there)
    turned = script.add("turned", select(*kept).from_(table(compared)).where(turns, copy=False))
    return script.add("presences", _there(side, _with_ends(side, row, turned)))


Net = Callable[[Operator, exp.Select, str | None, Sequence[exp.Column]], exp.Select]


def _changes(script: Script, side: Operator, keys: keyed.Keys, moments: str, net: Net) -> str:
    """The changes of the touched keys' rows, netted per moment."""
    timed = script.timed(side)
    matches = [same_value(column("s", name), column("m", keyed.key_name(i))) for i, name in enumerate(keys)]
    same_time = exp.EQ(this=column("s", CSN), expression=column("m", AT))
    joined = select().from_(table(timed, "s")).join(table(moments, "m"), on=all_of([*matches, same_time]), copy=False)
    query = net(side, joined, "s", [column("m", name) for name in (AT, PLACE, LEVELS)])
    return script.add("changed", broadcast(query, "m") if script.small else query)


def _running(script: Script, side: Operator, row: Sequence[exp.Expr], changes: str) -> str:
    """How many copies of a row there are after each of its changes."""
    total = over(exp.Sum(this=column(None, COUNT)), row, column(None, PLACE), running=True)
    columns = [column(None, name) for name in side.columns]
    times = [column(None, name) for name in (PLACE, AT, LEVELS)]
    return script.add("running", select(*columns, named(total, COUNT), *times).from_(table(changes)))


def _with_ends(side: Operator, row: Sequence[exp.Expr], rows: str) -> exp.Select:
    """Each row up to where the next one of its kind begins."""

    def following(name: str) -> exp.Expr:
        return over(exp.Lead(this=column(None, name)), row, column(None, PLACE))

    end = power_of_two(column(None, LEVELS))
    return select(
        *[column(None, name) for name in (*side.columns, COUNT, LEVELS, AT)],
        named(column(None, PLACE), FIRST),
        named(exp.Coalesce(this=following(PLACE), expressions=[end]), LAST),
        named(following(AT), UNTIL),
    ).from_(table(rows))


def _there(side: Operator, ended: exp.Select) -> exp.Select:
    columns = [column(None, name) for name in (*side.columns, COUNT, LEVELS, FIRST, LAST, AT, UNTIL)]
    return select(*columns).from_(ended.subquery("n")).where(_is_there(COUNT), copy=False)


def _is_there(count: str) -> exp.Expr:
    return exp.GT(this=column(None, count), expression=number(0))
