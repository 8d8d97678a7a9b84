"""A view whose top is GROUP BY with linear aggregates, or DISTINCT: kept as groups with accumulators.

Law (summary delta, Beyer et al., *Immediate Propagate Deferred Apply*, section 5): a group's
accumulators at csn t are those at a plus the increments of (a, t].
The group is visible iff it has rows (a grand total always is). The view's rows are a projection and selection of the
groups, so:

    Δgroups = Σ_i  [ group at ci at ci ] − [ group at c(i-1) at ci ],     Δview = π(σ_having(Δgroups))

Only the delta of the input and the touched groups are read; never a base row for the group's sake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.algebra.accumulators import ROWS, Accumulated, accumulate
from rollview.algebra.expressions import (
    AT,
    UNTIL,
    all_of,
    any_of,
    bag_union,
    big,
    broadcast,
    case,
    cast,
    column,
    come_and_go,
    gathered,
    named,
    number,
    over,
    same_value,
    select,
    table,
)
from rollview.algebra.operator import Input, Operator, Output
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.operators.block import Block
from rollview.algebra.operators.distinct import Distinct
from rollview.algebra.script import FEW_ROWS, OLD_SUFFIX, Script
from rollview.core.names import COUNT, CSN
from rollview.core.schema import Column, Schema

GROUPS = f"_rv_groups{OLD_SUFFIX}"
FEW_GROUPS = FEW_ROWS
SHOWN = "_rv_shown"
"""Whether a row is a group that the view shows: in ``groups_ahead``, at the end of the interval."""
_SEEN = "_rv_seen"


@dataclass(frozen=True, slots=True)
class Summary:
    """The groups: their keys and accumulators, and how the view's columns are read off them."""

    input: Operator
    keys: tuple[str, ...]
    key_types: tuple[str, ...]
    accumulated: Accumulated
    outputs: tuple[Output, ...]
    having: tuple[exp.Expr, ...]
    types: Mapping[str, str]
    """Spark's, of the input's columns."""

    @property
    def sums(self) -> tuple[tuple[str, str], ...]:
        return ((ROWS, "bigint"), *((a.name, a.type) for a in self.accumulated.accumulators))

    @property
    def schema(self) -> Schema:
        """The hidden columns, as stored."""
        keys = [Column(name, type_) for name, type_ in zip(self.keys, self.key_types, strict=True)]
        return Schema((*keys, *(Column(name, type_) for name, type_ in self.sums)))


def find_aggregate(rel: Operator) -> tuple[Aggregate, tuple[Output, ...], tuple[exp.Expr, ...]] | None:
    """The aggregate at the top of the view, the outputs over it and HAVING; None if the top is something else."""
    if isinstance(rel, Distinct):
        outputs = tuple(Output(name, column("g", name)) for name in rel.columns)
        return Aggregate(rel.input, rel.columns, ()), outputs, ()
    if isinstance(rel, Aggregate):
        return rel, tuple(Output(name, column("g", name)) for name in rel.columns), ()
    if isinstance(rel, Block) and len(rel.sources) == 1 and isinstance(rel.sources[0].rel, Aggregate):
        return rel.sources[0].rel, rel.outputs, rel.where
    return None


def with_types(rel: Operator, types: Mapping[str, str], results: Mapping[str, str]) -> Operator:
    """The same, with what Spark told of the columns that the aggregate at the top reads, and of its results."""
    if isinstance(rel, Aggregate):
        return replace(rel, types=types, results=results)
    if isinstance(rel, Block):
        (source,) = rel.sources
        return replace(rel, sources=(Input(source.alias, with_types(source.rel, types, results)),))
    return rel


def summarise(
    top: tuple[Aggregate, tuple[Output, ...], tuple[exp.Expr, ...]],
    types: Mapping[str, str],
    results: Mapping[str, str],
) -> Summary:
    """Raises NotLinear when an aggregate cannot be kept by adding up."""
    aggregate, outputs, having = top
    accumulated = accumulate(aggregate, types, results)
    key_types = tuple(types[key] for key in aggregate.keys)
    return Summary(aggregate.input, aggregate.keys, key_types, accumulated, outputs, having, types)


def visible(summary: Summary, groups: str, extra: tuple[str, ...] = ()) -> exp.Select:
    """The view's rows over stored groups; ``extra`` columns are carried along."""
    items = [named(_over_groups(summary, output.expression), output.name) for output in summary.outputs]
    query = select(*items, *[column(None, name) for name in extra]).from_(table(groups))
    return query.where(_having(summary), copy=False) if summary.having else query


def _having(summary: Summary) -> exp.Expr:
    return all_of(_over_groups(summary, condition) for condition in summary.having)


def _over_groups(summary: Summary, expression: exp.Expr) -> exp.Expr:
    def value(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        final = summary.accumulated.values.get(node.name)
        return exp.Paren(this=final.copy()) if final is not None else column(None, node.name)

    return expression.copy().transform(value)


def first_groups(summary: Summary, script: Script) -> exp.Query:
    """All groups of the input's old state."""
    query = _increments(summary, table(script.old(summary.input)), ())
    return script.finish(_there(summary, query))


def groups_over(summary: Summary, rows: exp.Query) -> exp.Select:
    """All groups of rows that a query gives, in the input's columns with their count."""
    return _there(summary, _increments(summary, rows.subquery("r"), ()))


def groups_delta(summary: Summary, script: Script) -> exp.Query:
    """The timed delta of the groups. Input ``GROUPS`` holds the groups at a, one row each."""
    running = _running_groups(summary, script)
    return script.finish(_there(summary, come_and_go(running, summary.schema.names, AT, UNTIL)))


def groups_ahead(summary: Summary, script: Script) -> exp.Query:
    """Every group with its csns (``AT``, ``UNTIL``), and the view's row of each that is there at the end.

    The groups' timed delta, the groups at the end and the view's rows at the end can all be read off it.
    """
    running = _running_groups(summary, script)
    last = exp.Is(this=column(None, UNTIL), expression=exp.null())
    conditions = [last, *([_has_rows()] if summary.keys else []), *([_having(summary)] if summary.having else [])]
    stored = [column(None, name) for name in (*summary.schema.names, AT, UNTIL)]
    return script.finish(select(*stored, *_seen(summary, all_of(conditions))).from_(table(running)))


def groups_with_rows(summary: Summary, groups: str) -> exp.Select:
    """Groups, and beside each the view's row of it where the view shows it: both are read off one result."""
    stored = [column(None, name) for name in summary.schema.names]
    condition = _having(summary) if summary.having else exp.true()
    return select(*stored, *_seen(summary, condition)).from_(table(groups))


def _seen(summary: Summary, condition: exp.Expr) -> list[exp.Expr]:
    """Whether the view shows a group, and what: nothing is computed of groups that it does not show."""
    shown = case((condition, exp.true()), otherwise=exp.false())
    seen = [
        named(case((condition.copy(), _over_groups(summary, output.expression))), name)
        for name, output in zip(seen_columns(summary), summary.outputs, strict=True)
    ]
    return [named(shown, SHOWN), *seen]


def seen_columns(summary: Summary) -> tuple[str, ...]:
    """What the view's columns are called beside its groups."""
    return tuple(f"{_SEEN}{place}" for place in range(len(summary.outputs)))


def few_groups(script: Script) -> bool:
    return script.sizes.get(GROUPS, FEW_GROUPS + 1) <= FEW_GROUPS


def _running_groups(summary: Summary, script: Script) -> str:
    totals = script.add("totals", _increments(summary, table(script.gathered_delta(summary.input)), (CSN,)))
    increments = script.add("increments", _that_move(summary, totals))
    held = script.add("held", _held(summary, increments, script))
    in_one_piece = script.small and few_groups(script)
    return script.add("running", _running(summary, increments, held, in_one_piece=in_one_piece))


def _there(summary: Summary, query: exp.Select) -> exp.Select:
    """A group without rows is gone, except the one group of a grand total."""
    if not summary.keys:
        return query
    if query.args.get("group"):
        return query.having(exp.NEQ(this=_rows(), expression=number(0)), copy=False)
    return query.where(_has_rows(), copy=False)


def _has_rows() -> exp.Expr:
    return exp.NEQ(this=column(None, ROWS), expression=number(0))


def _rows() -> exp.Expr:
    return exp.Coalesce(this=exp.Sum(this=column(None, COUNT)), expressions=[big(0)])


def _increments(summary: Summary, rows: exp.Expr, extra: tuple[str, ...]) -> exp.Select:
    groups = [column(None, name) for name in (*summary.keys, *extra)]
    sums = [named(_rows(), ROWS), *(named(a.increment, a.name) for a in summary.accumulated.accumulators)]
    query = select(*groups, *sums).from_(rows)
    return query.group_by(*groups, copy=False) if groups else query


def _that_move(summary: Summary, totals: str) -> exp.Select:
    """Increments that change nothing are no change."""
    columns = [column(None, name) for name in (*summary.schema.names, CSN)]
    moves = any_of(exp.NEQ(this=column(None, name), expression=number(0)) for name, _ in summary.sums)
    return select(*columns).from_(table(totals)).where(moves, copy=False)


def _held(summary: Summary, increments: str, script: Script) -> exp.Select:
    """The touched groups; or all of them where they are few: the others then begin and end nowhere."""
    columns = [column("h", name) for name in summary.schema.names]
    query = select(*columns).from_(table(GROUPS, "h"))
    if not summary.keys or few_groups(script):
        return query
    touched = select(*[column(None, key) for key in summary.keys]).distinct().from_(table(increments))
    matches = all_of(same_value(column("h", key), column("i", key)) for key in summary.keys)
    query = query.join(touched.subquery("i"), on=matches, copy=False)
    return broadcast(query, "i") if script.small else query


def _running(summary: Summary, increments: str, held: str, *, in_one_piece: bool) -> exp.Select:
    """Each touched group at a (csn 0) and after each csn that touched it, and until when that holds."""
    names = [name for name, _ in summary.sums]
    keys = [column(None, key) for key in summary.keys]
    sums = [column(None, name) for name in names]
    union = bag_union(
        [
            select(*keys, *sums, column(None, CSN)).from_(table(increments)),
            select(*keys, *sums, named(big(0), CSN)).from_(table(held)),
        ]
    )
    steps = select(*keys, *sums, column(None, CSN)).from_(union.subquery("u"))
    steps = gathered(steps) if in_one_piece else steps
    totals = [
        named(cast(_over(exp.Sum(this=column(None, name)), summary, frame=True), type_), name)
        for name, type_ in summary.sums
    ]
    until = named(_over(exp.Lead(this=column(None, CSN)), summary), UNTIL)
    return select(*keys, *totals, named(column(None, CSN), AT), until).from_(steps.subquery("s"))


def _over(function: exp.Expr, summary: Summary, *, frame: bool = False) -> exp.Window:
    keys = [column(None, key) for key in summary.keys]
    return over(function, keys, column(None, CSN), running=frame)
