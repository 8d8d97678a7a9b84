"""MERGE INTO as signed rows.

Law: target and source are joined once, each copy of a target row by itself. A joined row does what the first clause
that holds for it says. A target row that several source rows would change has no one answer, and fails the statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf
from sqlglot import exp

from rollview.algebra.definition import relation_name
from rollview.algebra.expressions import all_of, case, column, identifier, named, not_null, number, table
from rollview.algebra.words import forget
from rollview.catalog import Relation
from rollview.core.names import COUNT, RESERVED_PREFIX
from rollview.core.schema import Schema
from rollview.errors import SqlError, Unsupported
from rollview.store.multiset import col
from rollview.tables.assignment import assigned, missing
from rollview.tables.failures import AMBIGUOUS
from rollview.tables.statements import (
    NEW,
    OLD,
    Scope,
    TableChanges,
    alias,
    assignments,
    at,
    differs,
    place_in,
    refuse,
    signed_struct,
    without_default,
)

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

_THERE = f"{RESERVED_PREFIX}there"
_GIVEN = f"{RESERVED_PREFIX}source"
_ACTION = f"{RESERVED_PREFIX}action"
_VALUE = f"{RESERVED_PREFIX}value_"


class _Match(StrEnum):
    BOTH = "matched"
    SOURCE = "not matched by target"
    TARGET = "not matched by source"


class _Does(StrEnum):
    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class _Clause:
    """``values``: new values by the column's place."""

    number: int
    match: _Match
    condition: exp.Expr | None
    does: _Does
    values: Mapping[int, exp.Expr]

    def place(self, of_column: int) -> str:
        return f"{_VALUE}{self.number}_{of_column}"


def merge(tree: exp.Merge, scope: Scope) -> TableChanges:
    refuse(tree, "returning", "using_cond")
    target = scope.table(relation_name(tree.this, "table"))
    source = _source(tree)
    sides = alias(tree), source.alias
    given = scope.rows(_with(tree, exp.Select(expressions=[exp.Star()], from_=exp.From(this=source)))).columns
    whens = tree.args["whens"].expressions
    clauses = [_clause(i, when, target, sides, given) for i, when in enumerate(whens, 1)]
    joined = scope.rows(_with(tree, _joined(tree, target, source, sides, clauses)))
    return TableChanges(target, _changes(_unambiguous(joined, target.schema, clauses), target.schema, clauses))


def _source(tree: exp.Merge) -> exp.Expr:
    using: exp.Expr = tree.args["using"].copy()
    if not using.alias_or_name:
        raise SqlError("MERGE needs a name for its source.", hint="Write USING (…) AS s.", **at(tree))
    if not using.alias:
        using.set("alias", exp.TableAlias(this=identifier(using.alias_or_name)))
    return using


def _with(tree: exp.Merge, query: exp.Select) -> exp.Select:
    if tree.args.get("with_") is not None:
        query.set("with_", tree.args["with_"].copy())
    return query


def _clause(number_: int, when: exp.When, target: Relation, sides: tuple[str, str], given: Sequence[str]) -> _Clause:
    match = _Match.BOTH if when.args["matched"] else _Match.TARGET if when.args.get("source") else _Match.SOURCE
    when = _qualified(when, match, sides)
    condition, then = when.args.get("condition"), when.args["then"]
    if isinstance(then, exp.Update) and match is not _Match.SOURCE:
        return _Clause(number_, match, condition, _Does.UPDATE, _updated(then, match, target, sides, given))
    if isinstance(then, exp.Insert) and match is _Match.SOURCE:
        return _Clause(number_, match, condition, _Does.INSERT, _inserted(then, target, sides, given))
    if isinstance(then, exp.Var) and then.name.upper() == "DELETE" and match is not _Match.SOURCE:
        return _Clause(number_, match, condition, _Does.DELETE, {})
    raise Unsupported(f"'{when.sql('spark')}' is not a clause of MERGE.", **at(when))


def _qualified(when: exp.When, match: _Match, sides: tuple[str, str]) -> exp.When:
    """Where only one side has a row, a bare column means that side's."""
    if match is _Match.BOTH:
        return when
    side, made = sides[0] if match is _Match.TARGET else sides[1], when.copy()
    for bare in made.find_all(exp.Column):
        is_read = bare.find_ancestor(exp.Query) is None and not _is_assigned(bare)
        if is_read and not bare.table and bare.name.upper() != "DEFAULT":
            bare.set("table", identifier(side))
            forget(bare)
    return made


def _is_assigned(node: exp.Column) -> bool:
    """Whether this is a column that gets a value, rather than one that is read."""
    parent = node.parent
    if isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Update):
        return parent.this is node
    return isinstance(parent, exp.Tuple) and isinstance(parent.parent, exp.Insert) and parent.arg_key == "this"


def _updated(
    then: exp.Update, match: _Match, target: Relation, sides: tuple[str, str], given: Sequence[str]
) -> Mapping[int, exp.Expr]:
    if isinstance(then.expressions[0], exp.Star) if then.expressions else isinstance(then.this, exp.Star):
        if match is _Match.TARGET:
            raise SqlError("UPDATE SET * needs a source row.", **at(then))
        return _by_name(target, sides, given)
    return assignments(then.expressions, target, sides[0])


def _inserted(
    then: exp.Insert, target: Relation, sides: tuple[str, str], given: Sequence[str]
) -> Mapping[int, exp.Expr]:
    if isinstance(then.this, exp.Star):
        return _by_name(target, sides, given)
    values = then.expression.expressions if isinstance(then.expression, exp.Tuple) else []
    listed = then.this.expressions if isinstance(then.this, exp.Tuple) else []
    places = [place_in(target, item.name, item) for item in listed] or list(range(len(target.schema)))
    if len(places) != len(values) or len(set(places)) != len(places):
        raise SqlError(f"INSERT has {len(values)} values for {len(places)} columns.", **at(then))
    return {
        place: without_default(value, target.schema.columns[place]) for place, value in zip(places, values, strict=True)
    }


def _by_name(target: Relation, sides: tuple[str, str], given: Sequence[str]) -> Mapping[int, exp.Expr]:
    spelled = {name.lower(): name for name in given}
    lacking = [name for name in target.schema.names if name.lower() not in spelled]
    if lacking:
        raise SqlError(f"The source of MERGE has no column '{lacking[0]}', which * needs.")
    return {i: column(sides[1], spelled[name.lower()]) for i, name in enumerate(target.schema.names)}


def _joined(
    tree: exp.Merge, target: Relation, source: exp.Expr, sides: tuple[str, str], clauses: Sequence[_Clause]
) -> exp.Select:
    """One row per pair, with the old values, the number of the clause that applies and that clause's values."""
    own, other = sides
    kinds = {clause.match for clause in clauses}
    side = {(True, True): "FULL", (True, False): "LEFT", (False, True): "RIGHT", (False, False): None}[
        (_Match.TARGET in kinds, _Match.SOURCE in kinds)
    ]
    items: list[exp.Expr] = [
        *(named(column(own, name), f"{OLD}{i}") for i, name in enumerate(target.schema.names)),
        column(own, _THERE),
        column(other, _GIVEN),
        named(case(*((_holds(clause, sides), number(clause.number)) for clause in clauses)), _ACTION),
        *(
            # The value is computed only where its clause applies: elsewhere it may fail.
            named(case((exp.EQ(this=column(None, _ACTION), expression=number(c.number)), value)), c.place(place))
            for c in clauses
            for place, value in c.values.items()
        ),
    ]
    query = exp.Select(expressions=items, from_=exp.From(this=_numbered(table(target.name), own, _THERE)))
    join = exp.Join(this=_numbered(source.copy(), other, _GIVEN), on=tree.args["on"].copy())
    if side is not None:
        join.set("side", side)
    query.append("joins", join)
    return query


def _numbered(source: exp.Expr, name: str, mark: str) -> exp.Subquery:
    """The rows, each copy with a number of its own."""
    place = named(exp.Anonymous(this="monotonically_increasing_id"), mark)
    inner = exp.Select(expressions=[exp.Star(), place], from_=exp.From(this=source))
    return exp.Subquery(this=inner, alias=exp.TableAlias(this=identifier(name)))


def _holds(clause: _Clause, sides: tuple[str, str]) -> exp.Expr:
    there, given = column(sides[0], _THERE), column(sides[1], _GIVEN)
    conditions = [] if clause.match is _Match.SOURCE else [not_null(there)]
    conditions += [] if clause.match is _Match.TARGET else [not_null(given)]
    if clause.match is not _Match.BOTH:
        absent = there if clause.match is _Match.SOURCE else given
        conditions.append(exp.Is(this=absent, expression=exp.null()))
    if clause.condition is not None:
        conditions.append(exp.Paren(this=clause.condition.copy()))
    return all_of(conditions)


def _unambiguous(joined: DataFrame, schema: Schema, clauses: Sequence[_Clause]) -> DataFrame:
    acting = joined.where(col(_ACTION).isNotNull())
    matched = [clause for clause in clauses if clause.match is _Match.BOTH]
    if not matched:
        return acting
    # Rows without a target are each a group of their own.
    group = Window.partitionBy(sf.coalesce(col(_THERE), -1 - col(_GIVEN)))
    if len(matched) == 1 and matched[0].does is _Does.DELETE and matched[0].condition is None:
        ranked = acting.withColumn(COUNT, sf.row_number().over(group.orderBy(col(_GIVEN))))
        return ranked.where(col(COUNT) == 1).drop(COUNT)
    row = sf.to_json(sf.struct(*(col(f"{OLD}{i}").alias(name) for i, name in enumerate(schema.names))))
    refused = sf.raise_error(sf.concat(sf.lit(f"{AMBIGUOUS}: several rows of the source would change "), row))
    counted = acting.withColumn(COUNT, sf.count("*").over(group))
    return counted.where(sf.when(col(COUNT) == 1, True).otherwise(refused.cast("boolean"))).drop(COUNT)


def _changes(data: DataFrame, schema: Schema, clauses: Sequence[_Clause]) -> DataFrame:
    new = [_new_value(data, schema, place, clauses).alias(f"{NEW}{place}") for place in range(len(schema))]
    prepared = data.select(*(col(f"{OLD}{i}") for i in range(len(schema))), col(_ACTION), *new)
    old_row, new_row = signed_struct(OLD, schema, -1), signed_struct(NEW, schema, 1)
    rows = sf.when(_is(clauses, _Does.DELETE), sf.array(old_row)).when(_is(clauses, _Does.INSERT), sf.array(new_row))
    changed = _is(clauses, _Does.UPDATE) & differs(schema, range(len(schema)))
    return prepared.select(sf.inline(rows.when(changed, sf.array(old_row, new_row)))).toDF(*schema.names, COUNT)


def _new_value(data: DataFrame, schema: Schema, place: int, clauses: Sequence[_Clause]) -> SparkColumn:
    target = schema.columns[place]
    value = sf.when(sf.lit(False), missing(target))
    for clause in clauses:
        if place in clause.values:
            value = value.when(col(_ACTION) == clause.number, assigned(data, clause.place(place), target))
        elif clause.does is _Does.UPDATE:
            value = value.when(col(_ACTION) == clause.number, col(f"{OLD}{place}"))
        elif clause.does is _Does.INSERT:
            value = value.when(col(_ACTION) == clause.number, missing(target))
    return value


def _is(clauses: Sequence[_Clause], does: _Does) -> SparkColumn:
    return reduce(or_, (col(_ACTION) == clause.number for clause in clauses if clause.does is does), sf.lit(False))
