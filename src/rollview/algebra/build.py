"""A qualified query becomes a ``Rel``.

What has no incremental form raises ``NotIncremental`` with the reason and the place; the view is then recomputed whole.
Everything this module accepts means exactly what Spark means by the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from rollview.algebra.expressions import column, conjuncts, identifiers
from rollview.algebra.functions import (
    function_name,
    is_aggregate,
    is_aggregate_call,
    is_generator,
    is_time_window,
)
from rollview.algebra.tree import (
    LEFT_SIDE,
    RIGHT_SIDE,
    Aggregate,
    Block,
    Distinct,
    Input,
    JoinKind,
    Leaf,
    OuterJoin,
    Output,
    Rel,
    Union,
)


class NotIncremental(Exception):
    """No incremental form (yet); carries the operator, the reason and the node."""

    def __init__(self, operator: str, reason: str, node: exp.Expr) -> None:
        super().__init__(reason)
        self.operator = operator
        self.reason = reason
        self.node = node


Schemas = Mapping[str, tuple[str, ...]]
"""Folded relation name to (declared) column names."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a name in FROM may mean: stored relations, and the CTEs in sight."""

    relations: Mapping[str, Leaf]
    ctes: Mapping[str, Rel] = field(default_factory=dict)

    def with_cte(self, name: str, rel: Rel) -> Known:
        return Known(self.relations, {**self.ctes, name: rel})


def build(query: exp.Expr, known: Known) -> Rel:
    """The query's algebra. The query is qualified: every column carries its table's alias, every output its name."""
    for cte in _ctes(query):
        known = known.with_cte(cte.alias.lower(), build(cte.this, known))
    if isinstance(query, exp.Subquery):
        return build(query.this, known)
    if isinstance(query, exp.Union):
        return _union(query, known)
    if isinstance(query, exp.Select):
        return _select(query, known)
    raise NotIncremental(query.key.upper(), "this form of query has no incremental rule yet", query)


def _ctes(query: exp.Expr) -> Iterable[exp.CTE]:
    with_ = query.args.get("with_")
    if with_ is None:
        return ()
    if with_.args.get("recursive"):
        raise NotIncremental("WITH RECURSIVE", "recursion has no incremental rule yet", with_)
    return tuple(with_.expressions)


def _union(query: exp.Union, known: Known) -> Rel:
    _refuse_row_limits(query)
    if query.args.get("by_name"):
        raise NotIncremental("UNION", "columns that meet by name have no incremental rule yet", query)
    left, right = build(query.left, known), build(query.right, known)
    both = Union((left, right))
    return Distinct(both) if query.args.get("distinct") else both


def _select(query: exp.Select, known: Known) -> Rel:
    _refuse_unsupported_clauses(query)
    frame = _Frame(_columns_used(query))
    frame.place_from(query, known)
    where = query.args.get("where")
    if where is not None:
        frame.where.extend(conjuncts(frame.translate(where.this)))
    outputs = [Output(item.alias_or_name, frame.translate(item.unalias())) for item in query.expressions]
    if len({output.name.lower() for output in outputs}) < len(outputs):
        raise NotIncremental("SELECT", "two of its columns have the same name", query)
    group, having = query.args.get("group"), query.args.get("having")
    if group is not None or having is not None or any(is_aggregate(output.expression) for output in outputs):
        rel = _aggregate(frame, outputs, group, frame.translate(having.this) if having else None)
    else:
        rel = frame.block(outputs)
    return Distinct(rel) if query.args.get("distinct") else rel


def _aggregate(frame: _Frame, outputs: list[Output], group: exp.Group | None, having: exp.Expr | None) -> Rel:
    """π(σ_having(γ(π(…)))): key and argument expressions become columns of the input, so γ sees only columns."""
    keys = _group_keys(frame, outputs, group)
    below: list[Output] = [Output(f"k{i}", key) for i, key in enumerate(keys, 1)]
    calls: list[Output] = []

    def argument(expression: exp.Expr) -> exp.Column:
        found = next((o for o in below if o.expression == expression and o.name.startswith("a")), None)
        if found is None:
            found = Output(f"a{len(below) - len(keys) + 1}", expression)
            below.append(found)
        return column(None, found.name)

    def above(expression: exp.Expr) -> exp.Expr:
        for i, key in enumerate(keys, 1):
            if expression == key and expression.find(exp.Column) is not None:
                return column("g", f"k{i}")
        if isinstance(expression, exp.Filter) or is_aggregate_call(expression):
            call = _lift_arguments(expression, argument)
            found = next((o for o in calls if o.expression == call), None)
            if found is None:
                found = Output(f"v{len(calls) + 1}", call)
                calls.append(found)
            return column("g", found.name)
        if isinstance(expression, exp.Column):
            raise NotIncremental(
                "GROUP BY", f"column '{expression.name}' is neither grouped nor aggregated", expression
            )
        copy = expression.copy()
        for child in list(copy.iter_expressions()):
            child.replace(above(child))
        return copy

    finals = tuple(Output(output.name, above(output.expression)) for output in outputs)
    conditions = tuple(conjuncts(above(having))) if having is not None else ()
    if not keys and not calls:
        # the one group of a query that only has HAVING is told by its one row
        calls.append(Output("v1", exp.Count(this=exp.Star())))
    below = below or [Output("row", exp.true())]
    aggregate = Aggregate(frame.block(below), tuple(f"k{i}" for i in range(1, len(keys) + 1)), tuple(calls))
    return Block((Input("g", aggregate),), conditions, finals)


def _lift_arguments(call: exp.Expr, argument: object) -> exp.Expr:
    assert callable(argument)
    copy = call.copy()
    inner = copy.this if isinstance(copy, exp.Filter) else copy
    if isinstance(copy, exp.Filter):
        condition = copy.expression.this
        condition.replace(argument(condition.copy()))
    if isinstance(inner, exp.WithinGroup):
        raise NotIncremental("WITHIN GROUP", "ordered-set aggregates have no incremental rule yet", call)
    for operand in _operands(inner):
        if not isinstance(operand, exp.Star):
            operand.replace(argument(operand.copy()))
    return copy


def _operands(call: exp.Expr) -> list[exp.Expr]:
    """The value arguments of an aggregate call; constants that steer it (an accuracy, a percentage) stay in place."""
    found: list[exp.Expr] = []
    for i, child in enumerate(call.iter_expressions()):
        if isinstance(child, exp.Distinct):
            found.extend(child.expressions)
        elif i > 0 and child.find(exp.Column) is None:
            continue
        else:
            found.append(child)
    return found


def _group_keys(frame: _Frame, outputs: list[Output], group: exp.Group | None) -> list[exp.Expr]:
    if group is None:
        return []
    if group.find(exp.GroupingSets, exp.Cube, exp.Rollup):
        raise NotIncremental("GROUPING SETS", "grouping sets, cube and rollup have no incremental rule yet", group)
    if group.args.get("all"):
        keys = [output.expression for output in outputs if not is_aggregate(output.expression)]
    else:
        keys = [frame.translate(key) for key in group.expressions]
    distinct: list[exp.Expr] = []
    for key in keys:
        if is_aggregate(key):
            raise NotIncremental("GROUP BY", "a grouping key holds an aggregate", key)
        if key not in distinct:
            distinct.append(key)
    return distinct


class _Frame:
    """FROM, read left to right: the inputs placed so far, and where each ``alias.column`` of the text now lives."""

    def __init__(self, used: Mapping[str, set[str]]) -> None:
        self.used = used
        self.inputs: list[Input] = []
        self.where: list[exp.Expr] = []
        self.homes: dict[tuple[str, str], exp.Column] = {}
        self.joins = 0

    def place_from(self, query: exp.Select, known: Known) -> None:
        from_ = query.args.get("from_")
        if from_ is None:
            raise NotIncremental("SELECT", "a query without FROM reads no table", query)
        self._place(from_.this, known)
        for join in query.args.get("joins") or ():
            self._join(join, known)

    def block(self, outputs: Iterable[Output]) -> Block:
        return Block(tuple(self.inputs), tuple(self.where), tuple(outputs))

    def translate(self, expression: exp.Expr) -> exp.Expr:
        _refuse_inner_queries(expression)

        def home(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            found = self.homes.get((node.table.lower(), node.name.lower()))
            if found is None:
                raise NotIncremental("FROM", f"column '{node.sql()}' is out of reach of an incremental rule", node)
            return found.copy()

        return expression.copy().transform(home)

    def _place(self, source: exp.Expr, known: Known) -> str:
        alias, rel = _source(source, known)
        self.inputs.append(Input(alias, rel))
        for name in rel.columns:
            self.homes[(alias, name.lower())] = column(alias, name)
        return alias

    def _join(self, join: exp.Join, known: Known) -> None:
        side, kind, method = (join.side or "").upper(), (join.kind or "").upper(), (join.method or "").upper()
        assert not join.args.get("using"), "resolving writes ON"
        if method or kind in ("SEMI", "ANTI"):
            raise NotIncremental(f"{side} {method} {kind} JOIN".strip(), "this join has no incremental rule yet", join)
        if side or kind == "OUTER":
            self._outer_join(join, JoinKind(side or "FULL"), known)
            return
        self._place(join.this, known)
        on = join.args.get("on")
        if on is not None:
            self.where.extend(conjuncts(self.translate(on)))

    def _outer_join(self, join: exp.Join, kind: JoinKind, known: Known) -> None:
        """Fold what stands so far into the left side; the joined rows become the only input."""
        self.joins += 1
        left_homes, left = self._side(LEFT_SIDE, self)
        right_frame = _Frame(self.used)
        right_frame._place(join.this, known)
        right_homes, right = self._side(RIGHT_SIDE, right_frame)
        sides = {**left_homes, **right_homes}
        on = join.args.get("on")
        conditions = conjuncts(_rehome(on, sides)) if on is not None else []
        left, right, pairs, hidden = _equalities(conditions, left, right)
        if not pairs:
            raise NotIncremental(f"{kind} JOIN", "an outer join without an equality has no keys to recompute by", join)
        alias = f"j{self.joins}"
        self.inputs = [Input(alias, OuterJoin(kind, left, right, tuple(conditions), pairs, hidden))]
        self.where = []
        self.homes = {place: column(alias, home.name) for place, home in sides.items()}

    def _side(self, side: str, frame: _Frame) -> tuple[dict[tuple[str, str], exp.Column], Block]:
        """The frame as one block whose columns are those the query uses, renamed so that both sides' names differ."""
        homes: dict[tuple[str, str], exp.Column] = {}
        outputs: list[Output] = []
        for (alias, name), home in frame.homes.items():
            if name in self.used.get(alias, set()):
                outputs.append(Output(f"{side}{self.joins}_{len(outputs) + 1}_{name}", home))
                homes[(alias, name)] = column(side, outputs[-1].name)
        return homes, frame.block(outputs)


def _rehome(expression: exp.Expr, homes: Mapping[tuple[str, str], exp.Column]) -> exp.Expr:
    frame = _Frame({})
    frame.homes = dict(homes)
    return frame.translate(expression)


def _equalities(
    conditions: list[exp.Expr], left: Block, right: Block
) -> tuple[Block, Block, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The pairs of columns the join compares; an expression that is compared becomes a hidden column of its side."""
    pairs: list[tuple[str, str]] = []
    hidden: list[str] = []
    for i, condition in enumerate(conditions):
        if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
            continue
        sides = (identifiers(condition.this), identifiers(condition.expression))
        if sides == ({RIGHT_SIDE}, {LEFT_SIDE}):
            ours, theirs = condition.expression, condition.this
        elif sides == ({LEFT_SIDE}, {RIGHT_SIDE}):
            ours, theirs = condition.this, condition.expression
        else:
            continue
        left, l_name, l_hidden = _as_column(left, ours, f"lk{i}")
        right, r_name, r_hidden = _as_column(right, theirs, f"rk{i}")
        pairs.append((l_name, r_name))
        hidden.extend(l_hidden + r_hidden)
    return left, right, tuple(pairs), tuple(hidden)


def _as_column(block: Block, expression: exp.Expr, name: str) -> tuple[Block, str, list[str]]:
    if isinstance(expression, exp.Column):
        return block, expression.name, []
    name = f"{name}_{len(block.columns)}"
    below = {output.name: output.expression for output in block.outputs}
    inlined = expression.copy().transform(lambda n: below[n.name].copy() if isinstance(n, exp.Column) else n)
    return Block(block.sources, block.where, (*block.outputs, Output(name, inlined))), name, [name]


def _source(source: exp.Expr, known: Known) -> tuple[str, Rel]:
    if source.args.get("pivots") or source.args.get("laterals"):
        raise NotIncremental("PIVOT", "pivot has no incremental rule yet", source)
    alias = source.alias_or_name.lower()
    if isinstance(source, exp.Subquery):
        return alias, build(source.this, known)
    if isinstance(source, exp.Table):
        name = source.name.lower()
        rel = known.ctes.get(name) or known.relations.get(name)
        if rel is not None:
            return alias, rel
    raise NotIncremental("FROM", "this kind of source has no incremental rule yet", source)


def _columns_used(query: exp.Select) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {}
    for node in query.find_all(exp.Column):
        used.setdefault(node.table.lower(), set()).add(node.name.lower())
    return used


_CLAUSES = {
    "laterals": ("LATERAL VIEW", "generators have no incremental rule yet"),
    "windows": ("WINDOW", "window functions have no incremental rule yet"),
    "qualify": ("QUALIFY", "window functions have no incremental rule yet"),
    "distribute": ("DISTRIBUTE BY", "it orders rows, and a view is a bag"),
    "connect": ("CONNECT BY", "recursion has no incremental rule yet"),
    "match": ("MATCH_RECOGNIZE", "it has no incremental rule yet"),
    "pivots": ("PIVOT", "pivot has no incremental rule yet"),
}


def _refuse_unsupported_clauses(query: exp.Select) -> None:
    _refuse_row_limits(query)
    for name, (operator, reason) in _CLAUSES.items():
        if query.args.get(name):
            raise NotIncremental(operator, reason, query)
    distinct = query.args.get("distinct")
    if distinct is not None and distinct.args.get("on"):
        raise NotIncremental("DISTINCT ON", "it has no incremental rule yet", distinct)


def _refuse_row_limits(query: exp.Expr) -> None:
    for name in ("limit", "offset", "fetch"):
        if query.args.get(name):
            raise NotIncremental("LIMIT", "top-k has no incremental rule yet", query.args[name])


def _names_fields_after_columns(node: exp.Expr) -> bool:
    return function_name(node) == "arrays_zip" and any(isinstance(a, exp.Column) for a in node.iter_expressions())


def _is_star_of_arguments(node: exp.Expr) -> bool:
    return isinstance(node, exp.Star) and not (isinstance(node.parent, exp.Count) and node.arg_key == "this")


_INNER: tuple[tuple[Callable[[exp.Expr], bool], str, str], ...] = (
    (lambda node: isinstance(node, exp.Query), "subquery", "a subquery in an expression has no incremental rule yet"),
    (lambda node: isinstance(node, exp.Window), "window function", "window functions have no incremental rule yet"),
    (is_generator, "generator", "generators have no incremental rule yet"),
    (is_time_window, "time window", "windows over time have no incremental rule yet"),
    (_names_fields_after_columns, "arrays_zip", "it names its fields after the columns it is given"),
    (_is_star_of_arguments, "*", "a star as an argument stands for other columns below an incremental rule"),
)


def _refuse_inner_queries(expression: exp.Expr) -> None:
    for node in expression.walk():
        for applies, operator, reason in _INNER:
            if applies(node):
                raise NotIncremental(operator, reason, node)
