"""A view's rows follow from the rows it reads: what does not is refused, with the reason and the place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.property.duck import Duck, declare_query
from tests.property.schemas import BAGS

from rollview.algebra.functions import builtin, is_aggregate_call
from rollview.algebra.resolve import Known
from rollview.algebra.text import parse_one
from rollview.algebra.view import outline
from rollview.core.schema import Column, Schema
from rollview.errors import NotDeterministic, SqlError, Unsupported

CALLS = """
rand() randn() random() uuid() current_timestamp() current_timestamp now() current_date current_date() curdate()
localtimestamp() current_time() localtime() unix_timestamp() input_file_name()
input_file_block_start() input_file_block_length() monotonically_increasing_id() spark_partition_id()
current_user() current_user user() session_user() current_catalog() current_database() current_schema()
current_timezone() version() java_method('java.util.UUID','randomUUID') reflect('java.lang.Math','random')
shuffle(array(k)) randstr(5) uniform(1,2) raise_error('x') aes_encrypt(w,'0000111122223333')
""".split()  # noqa: SIM905 - a list to read

AGGREGATES = """
first(x) first_value(x) last(x) last_value(x) any_value(x) collect_list(x) collect_set(x) array_agg(x) max_by(x,k)
min_by(x,k) mode(x) listagg(w) string_agg(w) approx_percentile(x,0.5) percentile_approx(x,0.5)
histogram_numeric(x,3) kll_sketch_agg_bigint(x) hll_sketch_agg(x) theta_sketch_agg(x) approx_top_k(x)
array_sort(collect_list(x),(a,b)->0) sort_array(first(array(x)))
""".split()  # noqa: SIM905 - a list to read

WINDOWED = ["row_number()", "ntile(2)", "lag(x)", "lead(x)", "nth_value(x,2)", "first_value(x)"]


def refused(query: str) -> SqlError:
    """By whoever wants no choice to be made."""
    declared = replace(declare_query("v", query), properties={"rollview.ties": "refuse"})
    with pytest.raises((NotDeterministic, Unsupported)) as caught:
        outline(declared, {table.name: table for table in BAGS})
    return caught.value  # type: ignore[return-value]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_that_the_row_does_not_determine(call: str) -> None:
    error = refused(f"SELECT k,\n  {call} AS v FROM r")
    assert (error.facts["line"], error.facts["column"]) == (2, 3)
    assert call.split("(")[0] in error.message


@pytest.mark.parametrize("call", AGGREGATES)
def test_an_aggregate_that_depends_on_the_order_of_rows(call: str) -> None:
    error = refused(f"SELECT g,\n\n {call} AS v FROM r GROUP BY g")
    assert error.facts["line"] == 3


@pytest.mark.parametrize("call", WINDOWED)
def test_a_window_function_that_depends_on_the_order_of_equal_rows(call: str) -> None:
    assert refused(f"SELECT w, {call} OVER (ORDER BY k) AS v FROM r").facts["line"] == 1


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM r LIMIT 1",
        "SELECT k, g FROM r ORDER BY k LIMIT 1",
        "SELECT k FROM r ORDER BY g LIMIT 1",
        "SELECT k FROM (SELECT k, x FROM r ORDER BY k LIMIT 2) AS q",
        "SELECT k FROM r WHERE k IN (SELECT k FROM s LIMIT 1)",
        "SELECT k FROM r UNION ALL SELECT k FROM s LIMIT 3",
        "SELECT k FROM r OFFSET 2",
        "SELECT k FROM r TABLESAMPLE (5 ROWS)",
        "SELECT k FROM r TABLESAMPLE (50 PERCENT)",
        "SELECT MY_UDF(k) AS v FROM r",
        "SELECT db.my_udf(k) AS v FROM r",
        "SELECT SUM(x) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v FROM r",
        "SELECT SUM(x) OVER (ORDER BY k ROWS UNBOUNDED PRECEDING) AS v FROM r",
        "SELECT SUM(x) OVER (ORDER BY k ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING) AS v FROM r",
        "SELECT TRANSFORM(k) USING 'cat' AS v FROM r",
        "SELECT w COLLATE UTF8_LCASE AS v FROM r",
        "SELECT COLLATE(w, 'UTF8_LCASE') AS v FROM r",
        "SELECT k FROM r WHERE x > RAND()",
        "SELECT k FROM r GROUP BY k HAVING MAX(x) > RAND()",
        "SELECT r.k FROM r JOIN s ON r.k = s.k AND RAND() > 0.5",
        "SELECT CASE WHEN k > 1 THEN UUID() END AS v FROM r",
        "WITH c AS (SELECT UUID() AS u FROM r) SELECT u FROM c",
        "SELECT :p AS v FROM r",
        "SELECT ? AS v FROM r",
    ],
)
def test_a_query_whose_rows_are_chance(query: str) -> None:
    error = refused(query)
    assert error.message.startswith("A view cannot use")
    assert error.facts["line"] == 1 or not query.startswith("SELECT SUM")


def test_a_collation_is_refused_for_the_strings_that_it_takes_for_equal() -> None:
    assert "takes for equal" in refused("SELECT w COLLATE UTF8_LCASE AS v FROM r").message


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, g FROM r ORDER BY g, k LIMIT 3",
        "SELECT k + 1 AS v FROM r ORDER BY k + 1 LIMIT 3",
        "SELECT k + 1 AS v FROM r ORDER BY v LIMIT 3",
        "SELECT k, g FROM r ORDER BY 2, 1 LIMIT 3",
        "SELECT k, g FROM r UNION ALL SELECT k, g FROM t ORDER BY k, g LIMIT 3",
    ],
)
def test_a_total_order_decides_which_rows_are_first(query: str) -> None:
    Duck(BAGS).compile("v", query)


@pytest.mark.parametrize(
    "item",
    [
        "SORT_ARRAY(COLLECT_LIST(x))",
        "SORT_ARRAY(COLLECT_LIST(x) FILTER (WHERE k > 1))",
        "ARRAY_SORT(COLLECT_SET(x))",
        "PERCENTILE(x, ARRAY(0.5, 0.9))",
        "APPROX_COUNT_DISTINCT(x, 0.05)",
        "ANY(x > 1)",
        "BOOL_AND(x > 1)",
        "COUNT_IF(x > 1)",
        "MEDIAN(x)",
        "CORR(x, k)",
    ],
)
def test_an_aggregate_of_the_set_of_rows_is_taken(item: str) -> None:
    known = {table.name: table for table in BAGS}
    assert outline(declare_query("v", f"SELECT g, {item} AS v FROM r GROUP BY g"), known).rel is not None


@pytest.mark.parametrize(
    "item",
    [
        "UNIX_TIMESTAMP(w)",
        "TRANSFORM(ARRAY(k), y -> y + x)",
        "AGGREGATE(ARRAY(1, 2), 0, (a, v) -> a + v + k)",
        "DATEADD(MONTH, k, DATE '2024-01-01')",
        "TO_JSON(STRUCT(k, x))",
        "w COLLATE UTF8_LCASE = 'A'",
        "RANK() OVER (ORDER BY k)",
        "SUM(x) OVER (PARTITION BY g ORDER BY k)",
        "SUM(x) OVER (ORDER BY k RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SUM(x) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "PI()",
        "TRY_DIVIDE(x, k)",
        "IF(k > 1, 'a', \"it's\")",
        "CAST(w AS TIMESTAMP_NTZ)",
        "EXTRACT(WEEK FROM DATE '2024-01-01')",
        "XXHASH64(k, w)",
        "k DIV 2 + x % 3",
        "w LIKE ANY ('a%', '%b')",
        "w RLIKE '\\\\d+'",
    ],
)
def test_an_expression_of_the_row_is_taken(item: str) -> None:
    Duck(BAGS).compile("v", f"SELECT {item} AS v FROM r")


def test_only_a_call_aggregates() -> None:
    names, calls = parse_one("SELECT `bool_or`, `max` FROM r"), parse_one("SELECT BOOL_OR(a), MAX(b) FROM r")
    assert [is_aggregate_call(item) for item in names.selects] == [False, False]
    assert [is_aggregate_call(item) for item in calls.selects] == [True, True]


def test_the_names_of_sparks_functions_are_known() -> None:
    assert {"abs", "transform", "xxhash64", "dateadd"} <= builtin()


def test_a_refusal_names_what_to_write_instead() -> None:
    assert "rank()" in str(refused("SELECT x, row_number() OVER (ORDER BY k) AS v FROM r").hint)
    assert "max(struct(y, x)).x" in str(refused("SELECT max_by(x, k) AS v FROM r").hint)


TIMES = {"e": Known("e", Schema((Column("d", "date"), Column("t", "timestamp"), Column("w", "string"))))}


@pytest.mark.parametrize(
    "item",
    [
        *("DATE 'today'", "TIMESTAMP 'now UTC'", "CAST(' Yesterday ' AS DATE)", "'today'::DATE", "TO_DATE('today')"),
        *("d <= 'today'", "('now') > t", "d BETWEEN '2024-01-01' AND 'tomorrow'", "d IN ('today')"),
        *("COALESCE(d, 'today')", "DATE_ADD('now', 1)", "d + INTERVAL 1 DAY = 'today'", "CAST(w AS DATE) = 'today'"),
    ],
)
def test_a_word_that_means_the_time_at_which_it_is_read(item: str) -> None:
    with pytest.raises(NotDeterministic, match="as a time"):
        outline(declare_query("v", f"SELECT {item} AS v FROM e"), TIMES)


def test_a_word_beside_something_that_may_be_a_time() -> None:
    with pytest.raises(NotDeterministic, match="'today' as a time"):
        outline(declare_query("v", "SELECT q.d FROM (SELECT d FROM e) AS q WHERE q.d = 'today'"), TIMES)


@pytest.mark.parametrize(
    "item",
    [
        *("'today'", "w = 'today'", "LOWER(w) IN ('today', 'now')", "COALESCE(w, 'now')", "CONCAT(w, 'now')"),
        *("CASE WHEN d > DATE 'epoch' THEN 'today' ELSE 'later' END", "CAST('nowhere' AS STRING)", "w = 'nowhere'"),
    ],
)
def test_a_word_that_is_only_a_word(item: str) -> None:
    assert outline(declare_query("v", f"SELECT {item} AS v FROM e"), TIMES).rel is not None
