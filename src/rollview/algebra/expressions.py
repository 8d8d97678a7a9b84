"""The few words in which propagation SQL is written: quoted columns, conjunctions, unions, casts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from sqlglot import exp

from rollview.core import names

AT = f"{names.RESERVED_PREFIX}at"
UNTIL = f"{names.RESERVED_PREFIX}until"
_SIGN = f"{names.RESERVED_PREFIX}sign"


def identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def column(table: str | None, name: str) -> exp.Column:
    return exp.Column(this=identifier(name), table=identifier(table) if table else None)


def table(name: str, alias: str | None = None) -> exp.Table:
    reference = exp.Table(this=identifier(name))
    if alias:
        reference.set("alias", exp.TableAlias(this=identifier(alias)))
    return reference


def named(expression: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=expression, alias=identifier(name))


def number(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))


def big(value: int) -> exp.Expr:
    """A BIGINT constant."""
    return cast(number(value), "bigint")


def cast(expression: exp.Expr, type_: str) -> exp.Expr:
    return exp.cast(expression.copy(), _type(type_).copy(), copy=False, dialect="spark")


@lru_cache(maxsize=1024)
def _type(text: str) -> exp.DataType:
    return exp.DataType.build(text, dialect="spark")


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.func(name, *arguments, dialect="spark")


def case(*branches: tuple[exp.Expr, exp.Expr], otherwise: exp.Expr | None = None) -> exp.Case:
    made = exp.Case(ifs=[exp.If(this=condition, true=value) for condition, value in branches])
    if otherwise is not None:
        made.set("default", otherwise)
    return made


def not_null(expression: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=expression.copy(), expression=exp.null()))


def all_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    """Conjunction; true of nothing."""
    listed = [condition.copy() for condition in conditions]
    return exp.and_(*listed, copy=False) if listed else exp.true()


def any_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    return exp.or_(*[condition.copy() for condition in conditions], copy=False)


def same_value(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """NULL equals NULL: the only equality that internal matching may use."""
    return exp.NullSafeEQ(this=left.copy(), expression=right.copy())


def conjuncts(expression: exp.Expr) -> list[exp.Expr]:
    bare = expression.unnest()
    return [part for side in bare.flatten() for part in conjuncts(side)] if isinstance(bare, exp.And) else [bare]


def identifiers(expression: exp.Expr) -> set[str]:
    """The table aliases that an expression names."""
    return {node.table for node in expression.find_all(exp.Column)}


def columns_in(expressions: Iterable[exp.Expr]) -> set[tuple[str, str]]:
    """(alias, name) of every column that the expressions use."""
    return {(node.table, node.name) for expression in expressions for node in expression.find_all(exp.Column)}


def bag_union(queries: Sequence[exp.Query]) -> exp.Query:
    first, *rest = queries
    for query in rest:
        first = exp.union(first, query, distinct=False, copy=False)
    return first


def select(*items: exp.Expr) -> exp.Select:
    return exp.Select(expressions=[item.copy() for item in items])


def each(*values: exp.Expr) -> exp.Expr:
    """A row for each of the values."""
    return call("explode", exp.Array(expressions=[value.copy() for value in values]))


def come_and_go(rows: str, columns: Iterable[str], at: str, until: str, *, sign: exp.Expr | None = None) -> exp.Select:
    """As a timed delta: each row comes at the csn ``at`` and goes at ``until``, except at csn 0 and at none.

    ``sign``: 1, or -1 of a row that is taken away from another meanwhile.
    """
    kept = [column(None, name) for name in columns]
    carried = [] if sign is None else [named(sign, _SIGN)]
    twice = select(*kept, *carried, column(None, at), column(None, until), named(each(big(1), big(-1)), names.COUNT))
    twice = twice.from_(table(rows))
    comes = exp.GT(this=column(None, names.COUNT), expression=number(0))
    csn = case((comes, column(None, at)), otherwise=column(None, until))
    count: exp.Expr = column(None, names.COUNT)
    if sign is not None:
        count = named(exp.Mul(this=count, expression=column(None, _SIGN)), names.COUNT)
    timed = select(*kept, count, named(csn, names.CSN)).from_(twice.subquery("t"))
    return timed.where(exp.GT(this=csn.copy(), expression=number(0)), copy=False)


def over(
    function: exp.Expr,
    partition: Iterable[exp.Expr],
    order: exp.Expr,
    *,
    running: bool = False,
    before: bool = False,
) -> exp.Window:
    """A window function; ``running``: over the rows up to this one; ``before``: over those before this one."""
    window = exp.Window(
        this=function,
        partition_by=[part.copy() for part in partition],
        order=exp.Order(expressions=[exp.Ordered(this=order.copy(), nulls_first=True)]),
    )
    if running or before:
        spec = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
        if before:
            spec.set("end", number(1))
            spec.set("end_side", "PRECEDING")
        window.set("spec", spec)
    return window


def broadcast(query: exp.Select, alias: str) -> exp.Select:
    """Ask Spark to send the small side to the large one; other engines do not see it."""
    return _hinted(query, "BROADCAST", exp.to_identifier(alias))


def hash_join(query: exp.Select, *aliases: str) -> exp.Select:
    """Ask Spark to join in place: small sides that are each in one piece need no exchange."""
    return _hinted(query, "SHUFFLE_HASH", *(identifier(alias) for alias in aliases))


def gathered(query: exp.Select) -> exp.Select:
    """Ask Spark to bring a small result into one piece, so that what follows needs no exchange."""
    return _hinted(query, "COALESCE", number(1))


def _hinted(query: exp.Select, hint: str, *arguments: exp.Expr) -> exp.Select:
    """With one more hint."""
    before = query.args["hint"].expressions if query.args.get("hint") else []
    query.set("hint", exp.Hint(expressions=[*before, exp.Anonymous(this=hint, expressions=list(arguments))]))
    return query
