"""Groups over many csns: each row counts in the few nodes of its life, and a place combines the nodes above it.

Law: the rows of a group at a place are the disjoint union of the rows of the nodes above it (``segments``), so an
aggregate that can be combined is the combination of their parts. What is DISTINCT counts the lives of values instead of
rows. A group is there where a node is; one without keys always is.

Costs (rows + places) · log(places), without a join: nodes are written out at the places that they cover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollview.algebra.combining import Combined, DistinctRows, TypeOf, combined, distinct_rows, of_distinct
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    bag_union,
    big,
    case,
    column,
    each,
    gathered,
    named,
    not_null,
    number,
    over,
    select,
    table,
)
from rollview.algebra.lives import FIRST, LAST, PLACE, PLACES, lives, placed, places, presences
from rollview.algebra.operator import Operator, Output
from rollview.algebra.script import Script
from rollview.algebra.segments import LEVEL, NODE, nodes_of_lives, places_of_nodes
from rollview.core.names import COUNT

_PRESENT, _ONCE = "_rv_present", "_rv_once"


@dataclass(frozen=True, slots=True)
class _Calls:
    """The aggregates' parts by column, their values over those, and the values that are taken once."""

    parts: Mapping[str, exp.Expr]
    values: Mapping[str, exp.Expr]
    once: tuple[DistinctRows, ...]
    of_rows: bool
    """Whether one of them takes rows, and not only values that are taken once."""


def can_combine(
    rel: Operator, aggregates: Sequence[Output], types: Mapping[str, str], results: Mapping[str, str]
) -> bool:
    """Whether the groups over an interval cost what its rows and commits cost, and not their product."""
    return _calls(rel, aggregates, types, results) is not None


def combined_groups(
    script: Script,
    rel: Operator,
    keys: tuple[str, ...],
    aggregates: Sequence[Output],
    types: Mapping[str, str],
    results: Mapping[str, str],
) -> str | None:
    """The groups at each csn that touched them: keys, aggregates, ``AT`` and ``UNTIL``. None if one of the aggregates
    cannot be combined. ``types``, ``results``: what Spark told of the columns of ``rel`` and of the aggregates."""
    calls = _calls(rel, aggregates, types, results)
    if calls is None:
        return None
    lived, columns = _lives(script, rel, keys, calls)
    nodes = nodes_of_lives(script, lived, (*columns, PLACES))
    names = [column(None, name) for name in keys]
    groups = [*names, column(None, LEVEL), column(None, NODE)]
    parts = [named(part.copy(), name) for name, part in calls.parts.items()]
    size = named(exp.Max(this=column(None, PLACES)), PLACES)
    grouped = select(*groups, size, *parts).from_(table(nodes)).group_by(*groups, copy=False)
    at_places = script.add("at_places", _at_places(script, rel, keys, tuple(calls.parts), grouped))
    moment = case(
        (exp.EQ(this=column(None, PLACE), expression=number(0)), big(0)), otherwise=exp.Max(this=column(None, AT))
    )
    present = named(exp.Count(this=column(None, _PRESENT)), _PRESENT)
    values = [named(value.copy(), name) for name, value in calls.values.items()]
    whole = select(*names, *values, named(moment, AT), present).from_(table(at_places))
    whole = whole.group_by(*names, column(None, PLACE), copy=False)
    outputs = [*names, *[column(None, name) for name in calls.values]]
    until = over(exp.Lead(this=column(None, AT)), names, column(None, AT))
    timed = select(*outputs, column(None, AT), named(until, UNTIL), column(None, _PRESENT)).from_(whole.subquery("w"))
    result = select(*outputs, column(None, AT), column(None, UNTIL)).from_(timed.subquery("t"))
    there = exp.GT(this=column(None, _PRESENT), expression=number(0))
    return script.add("result", result.where(there, copy=False) if keys else result)


def _calls(
    rel: Operator, aggregates: Sequence[Output], types: Mapping[str, str], results: Mapping[str, str]
) -> _Calls | None:
    parts: dict[str, exp.Expr] = {}
    values: dict[str, exp.Expr] = {}
    once: list[DistinctRows] = []

    def type_of(name: str) -> str | None:
        return rel.type_of(name) or types.get(name)

    of_rows = False
    for output in aggregates:
        rows = distinct_rows(output.expression)
        if rows is None:
            of_rows = True
            found = combined(output.expression, type_of, results.get(output.name))
        else:
            if rows not in once:
                once.append(rows)
            found = _combined_once(output, rows, once.index(rows), type_of, results)
        if found is None:
            return None
        names = [f"_rv_part{len(parts) + i}" for i in range(len(found.parts))]
        parts.update(zip(names, found.parts, strict=True))
        values[output.name] = found.whole([column(None, name) for name in names])
    return _Calls(parts, values, tuple(once), of_rows)


def _combined_once(
    output: Output, rows: DistinctRows, place: int, type_of: TypeOf, results: Mapping[str, str]
) -> Combined | None:
    types = {_once_name(place, i): type_of(name) for i, name in enumerate(rows.operands)}
    if any(type_ is None or "map<" in type_ for type_ in types.values()):
        return None
    call = of_distinct(output.expression, [column(None, name) for name in types])
    return combined(call, types.get, results.get(output.name), _ONCE)


def _once_name(place: int, operand: int) -> str:
    return f"_rv_once{place}_{operand}"


def _lives(script: Script, rel: Operator, keys: tuple[str, ...], calls: _Calls) -> tuple[str, tuple[str, ...]]:
    """The lives of the rows, or of the keys alone where nothing asks for rows, and those of values that are taken once;
    and which columns they have."""
    rows = placed(script, rel, keys)
    if calls.of_rows or not calls.once:
        own, first = rel.columns, lives(script, rel, rows)
    else:
        own, first = keys, presences(script, keys, select().from_(table(rows)))
    if not calls.once:
        return first, (*own, COUNT)
    extra = tuple(_once_name(i, j) for i, one in enumerate(calls.once) for j in range(len(one.operands)))
    columns = (*own, COUNT, *extra, _ONCE)
    ends = [column(None, name) for name in (PLACES, FIRST, LAST)]

    def taken(lived: str, found: Mapping[str, exp.Expr]) -> exp.Select:
        items = [named(found.get(name, exp.null()).copy(), name) for name in columns]
        return select(*items, *ends).from_(table(lived))

    sides = [taken(first, {name: column(None, name) for name in (*own, COUNT)})]
    for i, one in enumerate(calls.once):
        given = [
            *([] if one.condition is None else [one.condition]),
            *[not_null(column(None, o)) for o in one.operands],
        ]
        chosen = dict.fromkeys((*keys, *one.operands))
        lived = presences(script, tuple(chosen), select().from_(table(rows)).where(all_of(given), copy=False))
        values = {_once_name(i, j): column(None, name) for j, name in enumerate(one.operands)}
        # such a life is no row, so that it counts for nothing else
        sides.append(taken(lived, {**{key: column(None, key) for key in keys}, COUNT: big(0), _ONCE: big(1), **values}))
    return script.add("all_lives", bag_union(sides)), columns


def _at_places(
    script: Script, rel: Operator, keys: tuple[str, ...], parts: Sequence[str], grouped: exp.Select
) -> exp.Select:
    """The parts of nodes at all of their places, and the csns of the places."""
    names, held = [column(None, key) for key in keys], [column(None, part) for part in parts]
    nodes = script.add("parts", grouped)
    spread = places_of_nodes(select(exp.Star()).from_(table(nodes)), [*names, *held])
    shown = select(*names, *held, named(exp.null(), AT), named(big(1), _PRESENT), column(None, PLACE))
    times = select(*names, column(None, AT), column(None, PLACE)).from_(table(places(script, rel, keys)))
    if not keys:
        # the one group is there from the start
        times = select(column(None, AT), named(each(column(None, PLACE), big(0)), PLACE)).from_(times.subquery("m"))
    nothing = [named(exp.null(), part) for part in parts]
    moments = select(*names, *nothing, column(None, AT), named(exp.null(), _PRESENT), column(None, PLACE))
    both = bag_union([shown.from_(spread.subquery("s")), moments.from_(times.subquery("t"))])
    every = [*names, *held, *[column(None, name) for name in (AT, _PRESENT, PLACE)]]
    together = select(*every).from_(both.subquery("b"))
    return gathered(together) if script.reads_little else together
