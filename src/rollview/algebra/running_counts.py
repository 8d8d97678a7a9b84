"""What follows from how often a row is there: running counts, started at the old ones.

Law: let f give the copies of a row in the result from the row's copies in each input. The result changes at a csn where
f of the counts up to it differs from f of the counts before it. Costs the touched rows and their changes, at any number
of csns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from rollview.algebra import keyed
from rollview.algebra.expressions import (
    bag_union,
    big,
    call,
    case,
    cast,
    column,
    named,
    number,
    over,
    select,
    table,
)
from rollview.algebra.operator import Operator
from rollview.algebra.script import Script
from rollview.algebra.timed import old_and_changes
from rollview.core.names import COUNT, CSN

Copies = Callable[[Sequence[exp.Expr]], exp.Expr]
"""How often a row is in the result, over how often it is in each input."""

_CHANGE, _COPY = "_rv_change", "_rv_copy"


def delta(script: Script, sides: Sequence[Operator], copies: Copies) -> exp.Query:
    """Columns meet by position, and are called as those of the first side. Equal rows are one, zeroes included."""
    columns = [column(None, name) for name in sides[0].columns]
    counts = [f"_rv_count{i}" for i in range(len(sides))]
    events = bag_union([_events(script, sides, i, counts) for i in range(len(sides))])
    sums = [named(exp.Sum(this=column(None, count)), count) for count in counts]
    netted = select(*columns, *sums, column(None, CSN)).from_(events.subquery("e"))
    netted = netted.group_by(*columns, column(None, CSN), copy=False)
    now = [over(exp.Sum(this=column(None, count)), columns, column(None, CSN), running=True) for count in counts]
    totals = [named(total, f"_rv_now{i}") for i, total in enumerate(now)]
    running = select(*columns, *[column(None, count) for count in counts], column(None, CSN), *totals)
    counted = script.add("running", running.from_(netted.subquery("n")))
    after = [column(None, f"_rv_now{i}") for i in range(len(sides))]
    before = [
        exp.Paren(this=exp.Sub(this=total, expression=column(None, count)))
        for total, count in zip(after, counts, strict=True)
    ]
    change = exp.Sub(this=copies(after), expression=copies(before))
    changed = select(*columns, column(None, CSN), named(change, _CHANGE)).from_(table(counted))
    changed = changed.where(exp.GT(this=column(None, CSN), expression=number(0)), copy=False)
    size = cast(exp.Abs(this=column(None, _CHANGE)), "bigint")
    sign = case((exp.GT(this=column(None, _CHANGE), expression=number(0)), big(1)), otherwise=big(-1))
    every = select(*columns, named(sign, COUNT), column(None, CSN), _each_copy(size)).from_(changed.subquery("c"))
    moves = exp.NEQ(this=column(None, _CHANGE), expression=number(0))
    told = select(*columns, column(None, COUNT), column(None, CSN))
    return told.from_(every.where(moves, copy=False).subquery("d"))


def old(script: Script, sides: Sequence[Operator], copies: Copies) -> exp.Query:
    columns = [column(None, name) for name in sides[0].columns]
    counts = [f"_rv_count{i}" for i in range(len(sides))]
    states = bag_union([_counted(sides, i, counts).from_(table(script.old(side))) for i, side in enumerate(sides)])
    sums = [exp.Sum(this=column(None, count)) for count in counts]
    grouped = select(*columns, named(copies(sums), _CHANGE)).from_(states.subquery("e"))
    grouped = grouped.group_by(*columns, copy=False)
    there = exp.GT(this=column(None, _CHANGE), expression=number(0))
    every = select(*columns, _each_copy(cast(column(None, _CHANGE), "bigint"))).from_(grouped.subquery("g"))
    return select(*columns, named(big(1), COUNT)).from_(every.where(there, copy=False).subquery("c"))


def _each_copy(size: exp.Expr) -> exp.Alias:
    return named(call("explode", call("sequence", big(1), size)), _COPY)


def _events(script: Script, sides: Sequence[Operator], place: int, counts: Sequence[str]) -> exp.Select:
    side = sides[place]
    inputs = [(one, one.columns) for one in sides]
    # rows of other types are compared as the union of both makes them
    same = all(_types(one) == _types(side) and None not in _types(one) for one in sides)
    of_touched = len(sides) == 1 or same
    rows = keyed.timed_of_touched(script, side, inputs, side.columns) if of_touched else old_and_changes(script, side)
    return _counted(sides, place, counts).select(column(None, CSN), copy=False).from_(rows.subquery("t"))


def _types(rel: Operator) -> list[str | None]:
    return [rel.type_of(name) for name in rel.columns]


def _counted(sides: Sequence[Operator], place: int, counts: Sequence[str]) -> exp.Select:
    names = zip(sides[place].columns, sides[0].columns, strict=True)
    ours = [named(column(None, name), first) for name, first in names]
    values = [named(column(None, COUNT) if i == place else big(0), count) for i, count in enumerate(counts)]
    return select(*ours, *values)
