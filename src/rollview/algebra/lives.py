"""Rows as lives: the stretches of time over which a row is there, and in how many copies.

Law: a row's count at a csn is the sum of its signed rows up to there, so it changes only where one of them lies. A row
that changes c times has at most c + 1 lives; over any number of commits there are no more lives than rows.

Time is counted in *places*: the moments of a key are numbered 0, 1, 2 …, where 0 is the interval's start. A life goes
from one place up to, but not including, another; one that does not end goes up to ``END``, a power of two above all.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rollview.algebra import keyed, zeroes
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    big,
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

PLACE, END, LEVELS = "_rv_place", "_rv_end", "_rv_levels"
FIRST, LAST = "_rv_first", "_rv_last"
_BEFORE = "_rv_before"


def numbered(script: Script, inputs: Sequence[tuple[Operator, keyed.Keys]]) -> str:
    """The moments (``keyed``) of the touched keys with their places, and the bits that places of that key have."""
    moments = keyed.moments(script, inputs)
    keys = [column(None, keyed.key_name(i)) for i in range(len(inputs[0][1]))]
    place = exp.Sub(this=over(call("row_number"), keys, column(None, AT)), expression=number(1))
    size = exp.Window(this=exp.Count(this=exp.Star()), partition_by=[key.copy() for key in keys])
    levels = cast(exp.Ceil(this=exp.Log(this=number(2), expression=cast(size, "double"))), "int")
    times = [column(None, AT), column(None, UNTIL)]
    query = select(*keys, *times, named(cast(place, "bigint"), PLACE), named(levels, LEVELS)).from_(table(moments))
    end = exp.BitwiseLeftShift(this=big(1), expression=column(None, LEVELS))
    places = script.add("places", query)
    carried = [*keys, *times, column(None, PLACE), column(None, LEVELS)]
    return script.add("numbered", select(*carried, named(end, END)).from_(table(places)))


def lives(script: Script, side: Operator, keys: keyed.Keys, moments: str) -> str:
    """The rows of the touched keys: columns, ``_count`` copies, and the life's ends.

    ``FIRST`` and ``LAST`` are its first place and the one after its last; ``AT`` and ``UNTIL`` are their csns, as in
    ``keyed``: 0 for the interval's start, and NULL where the life does not end.
    """
    changed = script.add("changed", _changes(script, side, keys, moments))
    running = script.add("running", _running(side, changed, zeroes.identity(side)))
    columns = [column(None, name) for name in (*side.columns, COUNT, FIRST, LAST, AT, UNTIL)]
    return script.add("lives", select(*columns).from_(table(running)).where(_is_there(COUNT), copy=False))


def presences(script: Script, side: Operator, keys: keyed.Keys, moments: str) -> str:
    """As ``lives``, but without regard to the number of copies: a life lasts as long as there is any.

    Rows that are equal are one row here, as they are for DISTINCT.
    """
    changed = script.add("changed", _changes(script, side, keys, moments, apart=False))
    row = [column(None, name) for name in side.columns]
    running = script.add("running", _running(side, changed, row))
    before = over(exp.Lag(this=column(None, COUNT)), row, column(None, FIRST))
    places = [column(None, name) for name in (COUNT, FIRST, AT, END)]
    turns = script.add("turns", select(*row, *places, named(before, _BEFORE)).from_(table(running)))
    was_there = exp.Coalesce(this=_is_there(_BEFORE), expressions=[exp.false()])
    turned = exp.NEQ(this=exp.Paren(this=_is_there(COUNT)), expression=was_there)
    kept = select(*row, *places).from_(table(turns)).where(turned, copy=False)
    ends = [_next(FIRST, row, FIRST, END, LAST), _next(AT, row, FIRST, None, UNTIL)]
    stretches = select(*row, *places[:-1], *ends).from_(kept.subquery("k"))
    columns = [column(None, name) for name in (*side.columns, FIRST, LAST, AT, UNTIL)]
    there = select(*columns).from_(stretches.subquery("p")).where(_is_there(COUNT), copy=False)
    return script.add("presences", there)


def _changes(script: Script, side: Operator, keys: keyed.Keys, moments: str, *, apart: bool = True) -> exp.Select:
    """The changes of the touched keys' rows, netted per moment. ``apart``: the two zeroes are two values."""
    timed = script.add("timed", keyed.timed(script, side))
    matches = [same_value(column("s", name), column("m", keyed.key_name(i))) for i, name in enumerate(keys)]
    same_time = exp.EQ(this=column("s", CSN), expression=column("m", AT))
    joined = select().from_(table(timed, "s")).join(table(moments, "m"), on=all_of([*matches, same_time]), copy=False)
    times = [column("m", name) for name in (AT, PLACE, END)]
    net = zeroes.net if apart else zeroes.net_of_equals
    query = net(side, joined, "s", times)
    return broadcast(query, "m") if script.small else query


def _running(side: Operator, changed: str, row: Sequence[exp.Expr]) -> exp.Select:
    """After each change of a row: how many there are, and until when."""
    total = over(exp.Sum(this=column(None, COUNT)), row, column(None, PLACE), running=True)
    return select(
        *[column(None, name) for name in side.columns],
        named(total, COUNT),
        named(column(None, PLACE), FIRST),
        _next(PLACE, row, PLACE, END, LAST),
        column(None, AT),
        _next(AT, row, PLACE, None, UNTIL),
        column(None, END),
    ).from_(table(changed))


def _next(what: str, row: Sequence[exp.Expr], order: str, otherwise: str | None, name: str) -> exp.Alias:
    following: exp.Expr = over(exp.Lead(this=column(None, what)), row, column(None, order))
    if otherwise is not None:
        following = exp.Coalesce(this=following, expressions=[column(None, otherwise)])
    return named(following, name)


def _is_there(count: str) -> exp.Expr:
    return exp.GT(this=column(None, count), expression=number(0))
