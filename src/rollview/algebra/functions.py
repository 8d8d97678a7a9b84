"""Which functions a view may call: Spark's own, whose value the arguments determine.

Law: recomputing a view on the same rows must give the same rows. A function that reads a clock, a random generator,
the place of a row or the order in which rows arrive breaks that, and is refused at the definition with the reason.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from sqlglot import exp

from rollview.algebra.text import place_of
from rollview.errors import NotDeterministic, Unsupported

_CLOCK = "its value is the time at which it runs"
_CHANCE = "its value is random"
_PLACE = "its value depends on where a row is stored or processed"
ARRIVAL = "its value depends on the order in which rows arrive"
_ANY_OF_EQUALS = "which of the different strings that a collation takes for equal a group shows is chance"
_SESSION = "its value depends on who runs it"
_OUTSIDE = "it runs code or reads state that rollview cannot see"

_REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ["current_timestamp", "now", "current_date", "curdate", "localtimestamp", "current_time", "localtime"], _CLOCK
    ),
    **dict.fromkeys(["rand", "randn", "random", "uuid", "randstr", "uniform", "shuffle"], _CHANCE),
    **dict.fromkeys(
        ["input_file_name", "input_file_block_start", "input_file_block_length", "monotonically_increasing_id"], _PLACE
    ),
    "spark_partition_id": _PLACE,
    **dict.fromkeys(["collect_union", "approx_top_k", "histogram_numeric", "counter_diff"], ARRIVAL),
    **dict.fromkeys(
        [f"kll_{what}_agg_{of}" for what in ("sketch", "merge") for of in ("bigint", "double", "float")], _CHANCE
    ),
    **dict.fromkeys(["hll_sketch_agg", "hll_union_agg", "theta_sketch_agg", "theta_union_agg"], ARRIVAL),
    **dict.fromkeys(["theta_intersection_agg", "approx_top_k_accumulate", "approx_top_k_combine"], ARRIVAL),
    **dict.fromkeys(
        [f"tuple_{what}_agg_{of}" for what in ("sketch", "union", "intersection") for of in ("double", "integer")],
        ARRIVAL,
    ),
    "aes_encrypt": _CHANCE,
    **dict.fromkeys(["approx_percentile", "percentile_approx", "schema_of_variant_agg"], ARRIVAL),
    **dict.fromkeys(["current_user", "user", "session_user", "current_catalog", "current_database"], _SESSION),
    **dict.fromkeys(["current_schema", "current_path", "current_timezone", "version"], _SESSION),
    **dict.fromkeys(["java_method", "reflect", "try_reflect", "python_worker_logs", "raise_error"], _OUTSIDE),
}

SETTLED = frozenset(
    """
    any_value array_agg collect_list collect_set first first_value lag last last_value lead listagg max_by min_by mode
    nth_value ntile row_number string_agg
    """.split()  # noqa: SIM905 - a list to read
)
"""Functions whose value depends on the order in which rows arrive, unless the order of columns decides it."""

_AGGREGATES = frozenset(
    """
    any any_value array_agg collect_list collect_set first first_value last last_value listagg max_by min_by mode
    string_agg
    approx_count_distinct approx_top_k_accumulate approx_top_k_combine avg bit_and bit_or bit_xor
    bitmap_and_agg bitmap_construct_agg bitmap_or_agg bool_and bool_or corr count count_if count_min_sketch
    covar_pop covar_samp every grouping grouping_id hll_sketch_agg hll_union_agg kll_merge_agg_bigint
    kll_merge_agg_double kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kurtosis max mean measure median min percentile percentile_cont percentile_disc regr_avgx regr_avgy
    regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop
    stddev_samp sum theta_intersection_agg theta_sketch_agg theta_union_agg try_avg try_sum
    tuple_intersection_agg_double tuple_intersection_agg_integer tuple_sketch_agg_double
    tuple_sketch_agg_integer tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance vector_avg
    vector_sum
    """.split()  # noqa: SIM905 - a list to read
)
_GENERATORS = frozenset(
    """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer stack variant_explode
    variant_explode_outer
    """.split()  # noqa: SIM905 - a list to read
)
_TIME_WINDOWS = ("window", "session_window", "window_time")
_SORTED = ("sort_array", "array_sort")
_ORDERED_BY_CONTENT = ("collect_list", "collect_set", "array_agg")
INSTEAD = {
    **dict.fromkeys(_ORDERED_BY_CONTENT, "Write sort_array(collect_list(x))."),
    **dict.fromkeys(("listagg", "string_agg"), "Write array_join(sort_array(collect_list(x)), ',')."),
    **dict.fromkeys(("first", "first_value", "any_value"), "Write min(x)."),
    **dict.fromkeys(("last", "last_value"), "Write max(x)."),
    "max_by": "Write max(struct(y, x)).x for max_by(x, y): where y is equal, the largest x counts.",
    "min_by": "Write min(struct(y, x)).x for min_by(x, y): where y is equal, the smallest x counts.",
    "row_number": "Write rank(): where the order leaves no ties, both are the same.",
}


@cache
def builtin() -> frozenset[str]:
    """The names of Spark's built-in functions."""
    return frozenset((files("rollview.algebra") / "spark_functions.txt").read_text().split())


def function_name(node: exp.Expr) -> str | None:
    """The Spark name of a function call, folded; None if the node is no call."""
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return str(node.name).lower()
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    return None


def is_aggregate_call(node: exp.Expr) -> bool:
    if isinstance(node, exp.AggFunc | exp.WithinGroup):
        return True
    return isinstance(node, exp.Anonymous) and str(node.name).lower() in _AGGREGATES


def is_generator(node: exp.Expr) -> bool:
    """Whether it makes several rows of one."""
    return function_name(node) in _GENERATORS


def is_time_window(node: exp.Expr) -> bool:
    return function_name(node) in _TIME_WINDOWS


def is_aggregate(expression: exp.Expr) -> bool:
    """Whether an aggregate is called here; what has a window is refused before."""
    return any(is_aggregate_call(node) for node in expression.walk())


def check_determined(query: exp.Expr) -> None:
    """Refuse what the rows do not determine, with the reason and the place."""
    for node in query.walk():
        name = function_name(node)
        if name is not None:
            _check_call(node, name)
        elif isinstance(node, exp.TableSample):
            raise refusal(NotDeterministic, node, "TABLESAMPLE", "which rows it takes is random")
        elif isinstance(node, exp.QueryTransform):
            raise refusal(NotDeterministic, node, "TRANSFORM … USING", _OUTSIDE)
        elif isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
            raise refusal(Unsupported, node, f"the parameter {node.sql('spark')}", "nothing gives it a value")
        if name == "collate":
            _check_collation(node)


def _check_call(node: exp.Expr, name: str) -> None:
    reason = _REFUSED.get(name)
    if name == "unix_timestamp" and not list(node.iter_expressions()):
        reason = _CLOCK
    if reason is not None:
        raise refusal(NotDeterministic, node, name, reason, INSTEAD.get(name))
    if isinstance(node, exp.Anonymous) and name not in builtin():
        raise refusal(
            Unsupported, node, name, "it is not one of Spark's own functions, so nothing is known of its value"
        )


def is_sorted(node: exp.Expr) -> bool:
    """A list that is put in an order of its own; an order that a lambda gives may leave ties."""
    above = node.parent
    while isinstance(above, exp.Filter | exp.Paren | exp.Window):
        above = above.parent
    if above is None or function_name(node) not in _ORDERED_BY_CONTENT:
        return False
    return function_name(above) in _SORTED and above.find(exp.Lambda) is None


def _check_collation(node: exp.Expr) -> None:
    if not isinstance(node.find_ancestor(exp.Predicate, exp.Query), exp.Predicate):
        hint = "Compare with COLLATE, and show lower(x)."
        raise refusal(NotDeterministic, node, "COLLATE in its result", _ANY_OF_EQUALS, hint)


def refusal(
    kind: type[NotDeterministic] | type[Unsupported],
    node: exp.Expr,
    name: str,
    reason: str,
    hint: str | None = None,
) -> NotDeterministic | Unsupported:
    line, column = place_of(node)
    return kind(f"A view cannot use {name}: {reason}.", line=line, column=column, hint=hint, function=name)
