"""INSERT, UPDATE, DELETE and TRUNCATE as signed rows.

Law: a statement on a bag T is a bag of changes Δ with T + Δ the bag that SQL asks for. Every copy of a row is changed
by itself: an update of n equal rows is n rows with ``_count`` -1 and n with +1, and expressions are evaluated once for
each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from operator import or_
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import functions as sf
from sqlglot import exp

from rollview.algebra.definition import relation_name
from rollview.algebra.expressions import column, identifier, named, table
from rollview.algebra.text import place_of
from rollview.algebra.words import forget
from rollview.catalog import Relation
from rollview.core.names import COUNT, RESERVED_PREFIX, same
from rollview.core.schema import Column, Schema
from rollview.errors import SqlError, Unsupported
from rollview.store.multiset import col
from rollview.tables.assignment import assigned, missing
from rollview.types.arrow import arrow_type, holds_float, holds_map, spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

OLD = f"{RESERVED_PREFIX}old_"
NEW = f"{RESERVED_PREFIX}new_"
_GIVEN = f"{RESERVED_PREFIX}given_"


class Scope(Protocol):
    """What a statement may see: the transaction's own view of the warehouse."""

    def table(self, name: str) -> Relation:
        """The table of that name; refused if it is a view."""

    def rows(self, query: exp.Expr) -> DataFrame: ...

    def most_rows(self, relation: Relation) -> int:
        """No more rows than this are in the table."""


@dataclass(frozen=True, slots=True)
class TableChanges:
    """Signed rows for one table. ``at_most``: no more rows than this, if that is known before looking."""

    table: Relation
    rows: DataFrame
    at_most: int | None = None


def insert(tree: exp.Insert, scope: Scope) -> TableChanges:
    refuse(tree, "overwrite", "partition", "where", "conflict", "returning", "ignore", "stored", "settings")
    target = scope.table(relation_name(tree.this, "table"))
    query = _source(tree, _listed(tree, target))
    data = scope.rows(query)
    names = _insert_columns(tree, target, data)
    literal = tree.expression
    at_most = len(literal.expressions) if isinstance(literal, exp.Values) else None
    return TableChanges(target, inserted(data, target.schema, names), at_most)


def inserted(data: DataFrame, schema: Schema, names: Sequence[str]) -> DataFrame:
    """``data``'s columns by position are the values of ``names``; what is not named has its default."""
    if len(data.columns) != len(names):
        raise SqlError(f"The rows have {len(data.columns)} values for {len(names)} columns.")
    given = data.toDF(*(f"{_GIVEN}{place}" for place in range(len(names))))
    places = {name.lower(): f"{_GIVEN}{place}" for place, name in enumerate(names)}
    values = [_value(given, places.get(target.name.lower()), target).alias(target.name) for target in schema]
    return given.select(*values, _count(1).alias(COUNT))


def delete(tree: exp.Delete, scope: Scope) -> TableChanges:
    refuse(tree, "using", "returning", "limit", "order", "cluster", "tables")
    target = scope.table(relation_name(tree.this, "table"))
    rows = scope.rows(_select_from(tree, [named(column(alias(tree), name), name) for name in target.schema.names]))
    return TableChanges(target, rows.withColumn(COUNT, _count(-1)), scope.most_rows(target))


def truncate(tree: exp.TruncateTable, scope: Scope) -> TableChanges:
    if len(tree.expressions) != 1 or tree.args.get("partition"):
        raise Unsupported("TRUNCATE takes one whole table.")
    return delete(exp.Delete(this=tree.expressions[0]), scope)


def update(tree: exp.Update, scope: Scope) -> TableChanges:
    refuse(tree, "from_", "returning", "order", "limit")
    target = scope.table(relation_name(tree.this, "table"))
    values = assignments(tree.expressions, target, alias(tree))
    old = [named(column(alias(tree), name), f"{OLD}{i}") for i, name in enumerate(target.schema.names)]
    new = [named(value, f"{NEW}{i}") for i, value in values.items()]
    data = scope.rows(_select_from(tree, old + new))
    rows = replaced(data, target.schema, {i: f"{NEW}{i}" for i in values})
    return TableChanges(target, rows, 2 * scope.most_rows(target))


def replaced(data: DataFrame, schema: Schema, new: dict[int, str]) -> DataFrame:
    """Old rows out, new rows in; rows that stay as they are are left alone. ``new``: new values by column's place."""
    old = [col(f"{OLD}{i}") for i in range(len(schema))]
    values = [assigned(data, new[i], target) if i in new else old[i] for i, target in enumerate(schema)]
    prepared = data.select(*(o.alias(f"{OLD}{i}") for i, o in enumerate(old)), *_aliased(values, NEW))
    changed = prepared.where(differs(schema, tuple(new)))
    pair = sf.array(signed_struct(OLD, schema, -1), signed_struct(NEW, schema, 1))
    return changed.select(sf.inline(pair)).toDF(*schema.names, COUNT)


def signed_struct(prefix: str, schema: Schema, count: int) -> SparkColumn:
    fields = [col(f"{prefix}{i}").alias(f"{_GIVEN}{i}") for i in range(len(schema))]
    return sf.struct(*fields, _count(count).alias(COUNT))


def assignments(listed: Sequence[exp.Expr], target: Relation, own: str) -> dict[int, exp.Expr]:
    """SET a = 1, …: the new values by the column's place."""
    values: dict[int, exp.Expr] = {}
    for item in listed:
        left = item.this
        if not isinstance(item, exp.EQ) or not isinstance(left, exp.Column) or left.args.get("db"):
            raise Unsupported(f"SET {item.sql('spark')} is not 'column = value'.", **at(item))
        if left.table and not same(left.table, own):
            raise SqlError(f"'{left.table}' is not the table that is changed.", **at(item))
        place = place_in(target, left.name, item)
        if place in values:
            raise SqlError(f"Column '{left.name}' is set twice.", **at(item))
        values[place] = without_default(item.expression, target.schema.columns[place])
    return values


def place_in(target: Relation, name: str, node: exp.Expr) -> int:
    for place, own in enumerate(target.schema.names):
        if same(own, name):
            return place
    hint = f"Columns here: {', '.join(target.schema.names)}."
    raise SqlError(f"Table '{target.name}' has no column '{name}'.", hint=hint, **at(node))


def alias(tree: exp.Expr) -> str:
    return str(tree.this.alias_or_name)


def refuse(tree: exp.Expr, *parts: str) -> None:
    for part in parts:
        if tree.args.get(part):
            word = part.strip("_").upper()
            raise Unsupported(f"{tree.key.upper()} with {word} is not supported.", **at(tree))


def without_default(value: exp.Expr, target: Column | None) -> exp.Expr:
    """The word DEFAULT is the column's constant."""
    bare = isinstance(value, exp.Var) or (isinstance(value, exp.Column) and not value.table and not value.this.quoted)
    if not bare or value.name.upper() != "DEFAULT":
        return value.copy()
    if target is None or target.default is None:
        return exp.null()
    type_ = spark_type(arrow_type(target.type, target.name))
    return exp.cast(exp.Literal.string(target.default), type_, dialect="spark")


def _select_from(tree: exp.Expr, items: Sequence[exp.Expr]) -> exp.Select:
    source = table(tree.this.name, alias(tree))
    query = exp.Select(expressions=list(items), from_=exp.From(this=source))
    for part in ("where", "with_"):
        if tree.args.get(part) is not None:
            query.set(part, tree.args[part].copy())
    return query


def _source(tree: exp.Insert, columns: Sequence[Column]) -> exp.Expr:
    query: Any = tree.expression
    if isinstance(tree.args.get("source"), exp.Table):
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=tree.args["source"].copy()))
    elif isinstance(query, exp.Values):
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=_values(query, columns)))
    if not isinstance(query, exp.Query):
        raise SqlError("INSERT needs VALUES or a query.", **at(tree))
    query = query.copy()
    if tree.args.get("with_") is not None:
        own = query.args.get("with_")
        forget(query)
        ctes = [*tree.args["with_"].expressions, *(own.expressions if own is not None else ())]
        query.set("with_", exp.With(expressions=[cte.copy() for cte in ctes], recursive=tree.args["with_"].recursive))
    made: exp.Expr = query
    return made


def _listed(tree: exp.Insert, target: Relation) -> Sequence[Column]:
    """The columns for which an INSERT brings values, in their order."""
    if not isinstance(tree.this, exp.Schema):
        return target.schema.columns
    return [target.schema.columns[place_in(target, item.name, item)] for item in tree.this.expressions]


def _values(values: exp.Values, columns: Sequence[Column]) -> exp.Values:
    rows = [row if isinstance(row, exp.Tuple) else exp.Tuple(expressions=[row]) for row in values.expressions]
    if len({len(row.expressions) for row in rows}) > 1:
        raise SqlError("The rows of VALUES have different numbers of values.", **at(values))
    # Too many values are refused later, too few as well.
    targets = [*columns, *repeat(None, max(len(row.expressions) for row in rows))]
    listed = [
        exp.Tuple(expressions=[without_default(*pair) for pair in zip(row.expressions, targets, strict=False)])
        for row in rows
    ]
    return exp.Values(expressions=listed, alias=exp.TableAlias(this=identifier(f"{RESERVED_PREFIX}values")))


def _insert_columns(tree: exp.Insert, target: Relation, data: DataFrame) -> tuple[str, ...]:
    if tree.args.get("by_name"):
        listed: list[exp.Expr] = [identifier(name) for name in data.columns]
    elif isinstance(tree.this, exp.Schema):
        listed = tree.this.expressions
    else:
        return target.schema.names
    places = [place_in(target, item.name, item) for item in listed]
    if len(set(places)) < len(places):
        raise SqlError("INSERT names a column twice.", **at(tree))
    return tuple(target.schema.names[place] for place in places)


def _value(given: DataFrame, source: str | None, target: Column) -> SparkColumn:
    return missing(target) if source is None else assigned(given, source, target)


def differs(schema: Schema, places: Iterable[int]) -> SparkColumn:
    """Spark cannot compare maps, so a row whose map is set counts as changed."""
    listed = {place: schema.columns[place] for place in places}
    if any(holds_map(arrow_type(c.type, c.name)) for c in listed.values()):
        return sf.lit(True)
    return reduce(or_, (_is_new(place, column) for place, column in listed.items()))


def _is_new(place: int, column: Column) -> SparkColumn:
    """Spark takes 0.0 for -0.0; a table keeps which one it is."""
    old, new = col(f"{OLD}{place}"), col(f"{NEW}{place}")
    if not holds_float(arrow_type(column.type, column.name)):
        return ~old.eqNullSafe(new)
    return ~old.eqNullSafe(new) | ~old.cast("string").eqNullSafe(new.cast("string"))


def _aliased(values: Sequence[SparkColumn], prefix: str) -> list[SparkColumn]:
    return [value.alias(f"{prefix}{i}") for i, value in enumerate(values)]


def _count(value: int) -> SparkColumn:
    return sf.lit(value).cast("bigint")


def at(node: exp.Expr) -> dict[str, Any]:
    line, column_ = place_of(node)
    return {"line": line, "column": column_}
