"""A qualified query becomes a tree of operators.

The query is taken apart here; each piece is handed to the operator with its words. What has no incremental form raises
``NotIncremental`` with the reason and the place; the view is then recomputed whole. Everything that is accepted means
exactly what Spark means by the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from rollview.algebra.expressions import column, conjuncts, identifiers
from rollview.algebra.functions import function_name, is_aggregate, is_generator, is_time_window
from rollview.algebra.grouping import group_keys, grouped
from rollview.algebra.operator import LEFT_SIDE, RIGHT_SIDE, Input, Operator, Output
from rollview.algebra.operator_table import find_operator
from rollview.algebra.operators.block import Block
from rollview.algebra.pieces import DistinctPiece, GroupPiece, JoinPiece, NotIncremental, SelectPiece, SetPiece
from rollview.algebra.subqueries import SubqueryTest, find_membership, is_never_null
from rollview.algebra.types import compared_one_to_one


@dataclass(frozen=True, slots=True)
class Sources:
    """What a name in FROM may mean: stored relations, and the CTEs in sight."""

    relations: Mapping[str, Operator]
    ctes: Mapping[str, Operator] = field(default_factory=dict)

    def with_cte(self, name: str, rel: Operator) -> Sources:
        return Sources(self.relations, {**self.ctes, name: rel})


def build(query: exp.Expr, known: Sources) -> Operator:
    """The query's algebra. The query is qualified: every column carries its table's alias, every output its name."""
    for cte in _ctes(query):
        known = known.with_cte(cte.alias.lower(), build(cte.this, known))
    if isinstance(query, exp.Subquery):
        return build(query.this, known)
    if isinstance(query, exp.Select):
        return _select(query, known)
    if isinstance(query, exp.SetOperation) and find_operator(query.key.upper()) is not None:
        return _set_operation(query, known)
    raise NotIncremental(query.key.upper(), "this form of query has no incremental rule yet", query)


def _built(words: str, piece: object) -> Operator:
    operator = find_operator(words)
    assert operator is not None, words
    return operator.build(piece)


def _ctes(query: exp.Expr) -> Iterable[exp.CTE]:
    with_ = query.args.get("with_")
    if with_ is None:
        return ()
    if with_.args.get("recursive"):
        raise NotIncremental("WITH RECURSIVE", "recursion has no incremental rule yet", with_)
    return tuple(with_.expressions)


def _set_operation(query: exp.SetOperation, known: Sources) -> Operator:
    _refuse_row_limits(query)
    words = query.key.upper()
    if query.args.get("by_name"):
        raise NotIncremental(words, "columns that meet by name have no incremental rule yet", query)
    both = _built(words, SetPiece(words, query, (build(query.left, known), build(query.right, known))))
    is_distinct_union = isinstance(query, exp.Union) and query.args.get("distinct")
    return _built("DISTINCT", DistinctPiece(both)) if is_distinct_union else both


def _select(query: exp.Select, known: Sources) -> Operator:
    _refuse_unsupported_clauses(query)
    frame = _Frame(_columns_used(query))
    frame.place_from(query, known)
    where = query.args.get("where")
    if where is not None:
        frame.restrict(where.this, known)
    outputs = [Output(item.alias_or_name, frame.translate(item.unalias())) for item in query.expressions]
    if len({output.name.lower() for output in outputs}) < len(outputs):
        raise NotIncremental("SELECT", "two of its columns have the same name", query)
    group, having = query.args.get("group"), query.args.get("having")
    if group is not None or having is not None or any(is_aggregate(output.expression) for output in outputs):
        rel = _grouped(frame, outputs, group, frame.translate(having.this) if having else None)
    else:
        rel = frame.block(outputs)
    return _built("DISTINCT", DistinctPiece(rel)) if query.args.get("distinct") else rel


def _grouped(frame: _Frame, outputs: list[Output], group: exp.Group | None, having: exp.Expr | None) -> Operator:
    """π(σ_having(γ(π(…))))."""
    parts = grouped(group_keys(group, outputs, frame.translate), outputs, having)
    aggregate = _built("GROUP BY", GroupPiece(frame.block(parts.below), parts.keys, parts.calls))
    return _built("SELECT", SelectPiece((Input(parts.alias, aggregate),), parts.having, parts.outputs))


class _Frame:
    """FROM, read left to right: the inputs placed so far, and where each ``alias.column`` of the text now lives."""

    def __init__(self, used: Mapping[str, set[str]]) -> None:
        self.used = used
        self.inputs: list[Input] = []
        self.where: list[exp.Expr] = []
        self.homes: dict[tuple[str, str], exp.Column] = {}
        self.joins = 0

    def place_from(self, query: exp.Select, known: Sources) -> None:
        from_ = query.args.get("from_")
        if from_ is None:
            raise NotIncremental("SELECT", "a query without FROM reads no table", query)
        self._place(from_.this, known)
        for join in query.args.get("joins") or ():
            self._join(join, known)

    def block(self, outputs: Iterable[Output]) -> Block:
        return Block.build(SelectPiece(tuple(self.inputs), tuple(self.where), tuple(outputs)))

    def restrict(self, where: exp.Expr, known: Sources) -> None:
        """WHERE: conditions on rows, and then memberships among those that are left."""
        memberships = []
        for condition in conjuncts(where):
            membership = find_membership(condition)
            if membership is None:
                self.where.extend(conjuncts(self.translate(condition)))
            else:
                memberships.append(membership)
        for membership in memberships:
            self._semi_join(membership, known)

    def _semi_join(self, test: SubqueryTest, known: Sources) -> None:
        """Conditions of the subquery that name columns of this query are those of the join."""
        _refuse_unsupported_clauses(test.query)
        inner = _Frame(self.used)
        inner.place_from(test.query, known)
        where = test.query.args.get("where")
        on: list[exp.Expr] = []
        for condition in conjuncts(where.this) if where is not None else []:
            if inner.knows(condition):
                inner.where.extend(conjuncts(inner.translate(condition)))
            else:
                on.append(condition)
        self.joins += 1
        outer_homes, left = self._side(LEFT_SIDE, self)
        inner_homes, right = self._side(RIGHT_SIDE, inner)
        homes = {**outer_homes, **inner_homes}
        conditions = [part for condition in on for part in conjuncts(_rehome(condition, homes))]
        for ours, theirs in test.compared:
            both = (_rehome(ours, outer_homes), _rehome(theirs, inner_homes))
            if not all(identifiers(side) for side in both):
                raise NotIncremental("IN", "one of its sides is the same for all rows", test.node)
            conditions.append(exp.EQ(this=both[0], expression=both[1]))
        left, right, pairs, hidden = _equalities(conditions, left, right)
        _check_membership(test, left, right, pairs)
        joined = _built(test.words, JoinPiece(test.words, test.node, left, right, tuple(conditions), pairs, hidden))
        self._stand_on(joined, outer_homes)

    def knows(self, expression: exp.Expr) -> bool:
        """Whether all columns that it names are of this FROM."""
        return all((node.table.lower(), node.name.lower()) in self.homes for node in expression.find_all(exp.Column))

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

    def _place(self, source: exp.Expr, known: Sources) -> str:
        alias, rel = _source(source, known)
        own = alias
        while any(own == placed.alias for placed in self.inputs):
            # the author may call a source what joined rows are called here
            own = f"{own}_"
        self.inputs.append(Input(own, rel))
        for name in rel.columns:
            self.homes[(alias, name.lower())] = column(own, name)
        return alias

    def _join(self, join: exp.Join, known: Sources) -> None:
        side, kind, method = (join.side or "").upper(), (join.kind or "").upper(), (join.method or "").upper()
        assert not join.args.get("using"), "resolving writes ON"
        is_inner = not side and kind in ("", "INNER", "CROSS")
        if method or (not is_inner and find_operator(_words(side, kind)) is None):
            raise NotIncremental(
                " ".join(f"{side} {method} {kind} JOIN".split()), "this join has no incremental rule yet", join
            )
        if not is_inner:
            self._join_sides(join, _words(side, kind), known)
            return
        self._place(join.this, known)
        on = join.args.get("on")
        if on is not None:
            self.where.extend(conjuncts(self.translate(on)))

    def _join_sides(self, join: exp.Join, words: str, known: Sources) -> None:
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
        joined = _built(words, JoinPiece(words, join, left, right, tuple(conditions), pairs, hidden))
        self._stand_on(joined, sides)

    def _stand_on(self, joined: Operator, homes: Mapping[tuple[str, str], exp.Column]) -> None:
        """The joined rows are the only input from now on."""
        alias = f"j{self.joins}"
        self.inputs = [Input(alias, joined)]
        self.where = []
        self.homes = {place: column(alias, home.name) for place, home in homes.items() if home.name in joined.columns}

    def _side(self, side: str, frame: _Frame) -> tuple[dict[tuple[str, str], exp.Column], Block]:
        """The frame as one block whose columns are those the query uses, renamed so that both sides' names differ."""
        homes: dict[tuple[str, str], exp.Column] = {}
        outputs: list[Output] = []
        for (alias, name), home in frame.homes.items():
            if name in self.used.get(alias, set()):
                outputs.append(Output(f"{side}{self.joins}_{len(outputs) + 1}_{name}", home))
                homes[(alias, name)] = column(side, outputs[-1].name)
        return homes, frame.block(outputs)


def _check_membership(test: SubqueryTest, left: Block, right: Block, pairs: tuple[tuple[str, str], ...]) -> None:
    """IN gives its sides a common type by rules of its own, and NOT IN minds NULL."""
    if not test.compared:
        return
    sides = (Input(LEFT_SIDE, left), Input(RIGHT_SIDE, right))
    compared = pairs[len(pairs) - len(test.compared) :]
    if len(compared) < len(test.compared) or not all(
        compared_one_to_one(sides, column(LEFT_SIDE, ours), column(RIGHT_SIDE, theirs)) for ours, theirs in compared
    ):
        raise NotIncremental("IN", "its sides are not known to be columns of one type", test.node)
    if test.minds_null and not all(is_never_null(left, o) and is_never_null(right, t) for o, t in compared):
        raise NotIncremental("NOT IN", "keys do not prove that neither side is NULL; NOT EXISTS has a rule", test.node)


def _words(side: str, kind: str) -> str:
    """LEFT OUTER JOIN is LEFT JOIN, OUTER JOIN is FULL JOIN, SEMI JOIN is LEFT SEMI JOIN."""
    if kind in ("", "OUTER"):
        return f"{side or 'FULL'} JOIN"
    return f"{side or 'LEFT'} {kind} JOIN"


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


def _source(source: exp.Expr, known: Sources) -> tuple[str, Operator]:
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
