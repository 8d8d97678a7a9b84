"""Wrong rows: what Spark makes of an author's text is what rollview makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from sqlglot.parsers.spark import SparkParser

from rollview.algebra.levels import parenthesised
from rollview.algebra.resolve import ROWS_SUFFIX
from rollview.algebra.text import DIALECT, parse_one, render
from rollview.engine.session import adopt
from rollview.errors import SqlError
from rollview.propagate.reading import READ_OTHERWISE
from rollview.warehouse import Warehouse
from tests.audit import texts
from tests.audit.operators import pairs
from tests.audit.readings import both, read, rows_of, strikes
from tests.golden import cases
from tests.property.definitions import Definitions
from tests.property.schemas import BAGS, HOSTILE, KEYED
from tests.sizes import times
from tests.spark.oracle.model import frame
from tests.spark.oracle.warehouses import PLAIN, fresh

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def test_every_pair_of_operators_binds_as_in_spark(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()
    seen, otherwise = 0, []
    for text in dict.fromkeys(pairs()):
        meant = _parsed(parser, text)
        if meant is not None:
            tree = parse_one(f"SELECT ({text})").selects[0]
            in_full, written = render(parenthesised(tree.copy(), always=True)), render(tree)
            wrong = [found for found in (in_full, written) if _parsed(parser, found) != meant]
            otherwise += [f"{text} is taken for {found}" for found in wrong]
            seen += 1
    assert not otherwise, "\n".join(otherwise)
    assert seen > 1500


def _parsed(parser: Any, text: str) -> str | None:
    """What Spark's own parser makes of an expression; None if it takes it for none, or for one with a name."""
    try:
        parsed = parser.parseExpression(f"({text})")
    except Exception:
        return None
    return str(parsed.toString()).replace("isnotnull(", "NOT isnull(")


GOLDEN = Path(__file__).parents[1] / "golden"


def test_no_form_that_is_kept_by_deltas_is_read_otherwise_than_by_spark(spark: SparkSession) -> None:
    """What the check at creation would strike: no definition of the golden files, none of the random ones."""
    golden = [(case.text, case.columns) for path in sorted(GOLDEN.glob("*.sql")) for case in cases.read(path)]
    assert not strikes(spark, golden, (*BAGS, *KEYED, *HOSTILE))
    for tables in (BAGS, KEYED):
        drawn = [(Definitions(Random(seed), tables).view(), ()) for seed in range(times(20, full=60))]
        struck = strikes(spark, drawn, tables)
        assert not [text for text in struck if not _kept_apart_by_spark(text)]


def _kept_apart_by_spark(text: str) -> bool:
    """Behind a FULL join by name Spark groups by a column that it has computed before; behind another one it may order
    the sides of an OR in a FILTER otherwise."""
    by_name = "JOIN" in text and "USING" in text
    return by_name and (("FULL JOIN" in text and "GROUP BY" in text) or ("FILTER" in text and " OR " in text))


WANTED, AT_ONCE = times(120, full=500), 40


def test_random_texts_have_the_rows_that_spark_gives_them(spark: SparkSession) -> None:
    """Each text by Spark as it stands, beside rollview's reading of it by Spark, over the same rows."""
    known = {table.name: table for table in texts.TABLES}
    beside = adopt(spark)
    for key, value in PLAIN.items():
        beside.conf.set(key, value)
    frames = {name + ROWS_SUFFIX: frame(beside, known[name], listed) for name, listed in texts.ROWS.items()}
    random, seen, refused, wrong = Random(11), 0, 0, []
    while seen < WANTED:
        drawn: dict[int, tuple[str, DataFrame, DataFrame]] = {}
        while len(drawn) < AT_ONCE:
            text = texts.Texts(random).text()
            made = read(text, known)
            author, ours = both(beside, made, frames) if made is not None else (None, None)
            refused += author is None
            if author is not None and ours is not None:
                drawn[len(drawn)] = (text, author, ours)
            elif author is not None:
                wrong.append(f"{text}\n  is not taken by Spark as it is read here")
        for number, (meant, found) in rows_of({n: (a, o) for n, (_, a, o) in drawn.items()}).items():
            if meant != found:
                wrong.append(f"{drawn[number][0]}\n  is {meant}\n  and not {found}")
        seen += len(drawn)
    assert not wrong, "\n".join(wrong)
    assert refused < 4 * WANTED


BITS = "SELECT k, k & 1 << 2 AS bit FROM r"
MEETING = "SELECT a.x, c.z FROM tr a JOIN ts b USING (k) JOIN tu c USING (k, g)"
GROUPED = "SELECT k | g & 1 AS v, COUNT(*) AS n FROM r GROUP BY k | g, k, g"
CHAINED = "SELECT l.f, r.h FROM l LEFT JOIN r ON l.f = r.f >= r.h"


@pytest.fixture
def warehouse(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with closing(fresh(spark, tmp_path)) as opened:
        yield opened


def test_a_shift_binds_more_tightly_than_and(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE r (k INT)", "INSERT INTO r VALUES (4), (1)")
    assert created(warehouse, BITS) == "incremental"
    assert rows(warehouse) == [(1, 0), (4, 4)]
    warehouse.sql("INSERT INTO r VALUES (5)", "DELETE FROM r WHERE k = 1")
    warehouse.refresh()
    assert rows(warehouse) == [(4, 4), (5, 4)]
    assert warehouse.verify("v").equal


def test_a_column_that_two_tables_hold_unmerged_is_the_first_ones(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE tr (k INT, g INT, x INT)", "INSERT INTO tr VALUES (1, NULL, 7)")
    warehouse.sql("CREATE TABLE ts (k INT, g INT, y INT)", "INSERT INTO ts VALUES (1, 5, 8)")
    warehouse.sql("CREATE TABLE tu (k INT, g INT, z INT)", "INSERT INTO tu VALUES (1, 5, 9)")
    assert created(warehouse, MEETING) == "incremental"
    assert rows(warehouse) == []
    warehouse.sql("INSERT INTO tr VALUES (1, 5, 6)")
    warehouse.refresh()
    assert rows(warehouse) == [(6, 9)]
    assert warehouse.verify("v").equal


def test_or_binds_more_loosely_than_and_of_bits(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE r (k INT, g INT)", "INSERT INTO r VALUES (2, 1)")
    created(warehouse, GROUPED)
    assert rows(warehouse) == [(3, 1)]
    warehouse.sql("INSERT INTO r VALUES (4, 2), (2, 1)")
    warehouse.refresh()
    assert rows(warehouse) == [(3, 2), (4, 1)]
    assert warehouse.verify("v").equal


def test_comparisons_stand_on_one_level_so_this_one_is_refused(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE r (k INT, f BOOLEAN, g INT)")
    with pytest.raises(SqlError, match="Spark does not accept the query of view 'v'"):
        warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT k, f <=> g >= 2 AS a FROM r")


def test_a_chain_of_comparisons_joins_from_left_to_right(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE l (f INT)", "INSERT INTO l VALUES (1), (2)")
    warehouse.sql("CREATE TABLE r (f INT, h BOOLEAN)", "INSERT INTO r VALUES (1, TRUE), (5, TRUE)")
    created(warehouse, CHAINED)
    assert rows(warehouse) == [(1, True), (2, None)]
    warehouse.sql("INSERT INTO r VALUES (7, FALSE)", "DELETE FROM r WHERE f = 1")
    warehouse.refresh()
    assert rows(warehouse) == [(1, False), (2, False)]
    assert warehouse.verify("v").equal


def test_a_group_by_that_spark_calls_ambiguous_is_refused(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE a (k0 INT, x INT)", "CREATE TABLE b (k0 INT, y INT)")
    ambiguous = "SELECT a.k0 AS k0, COUNT(*) AS n FROM a JOIN b ON a.x = b.y GROUP BY k0"
    with pytest.raises(SqlError, match=r"ambiguous|AMBIGUOUS"):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS {ambiguous}")


def test_what_is_read_otherwise_is_computed_from_its_authors_text_and_says_so(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the levels of operators that most engines have, Spark's reading is another one; nothing is wrong for it."""
    for name in ("_parse_bitwise", "_parse_range", "_parse_comparison", "_parse_equality"):
        monkeypatch.setattr(DIALECT.Parser, name, getattr(SparkParser, name))
    warehouse.sql("CREATE TABLE r (k INT)", "INSERT INTO r VALUES (4), (1)")
    made = warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS {BITS}")
    assert (made.mode, made.notes) == ("whole", (f"View 'v': {READ_OTHERWISE}.",))
    assert READ_OTHERWISE in warehouse.explain("v").operators[0].reason
    assert rows(warehouse) == [(1, 0), (4, 4)]
    warehouse.sql("INSERT INTO r VALUES (5)")
    warehouse.refresh()
    assert rows(warehouse) == [(1, 0), (4, 4), (5, 4)]
    assert warehouse.verify("v").equal


def test_statements_and_queries_mean_what_they_say(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is made of their operators here."""
    for name in ("_parse_bitwise", "_parse_range", "_parse_comparison", "_parse_equality"):
        monkeypatch.setattr(DIALECT.Parser, name, getattr(SparkParser, name))
    warehouse.sql("CREATE TABLE r (k INT, b INT)", "INSERT INTO r VALUES (4, 4 & 1 << 2)")
    warehouse.sql("INSERT INTO r SELECT k + 1, 1 | 2 & 1 FROM r WHERE k & 1 << 2 = 4")
    assert answer(warehouse, "SELECT k, b, k | b & 1 AS o FROM r") == [(4, 4, 4), (5, 1, 5)]
    warehouse.sql("UPDATE r SET b = k | b & 3 WHERE k & 1 << 2 = 4 AND b IN (SELECT b FROM r WHERE k = 5)")
    warehouse.sql("DELETE FROM r WHERE k & 1 << 3 = b & 3 << 3 AND k = 9")
    assert answer(warehouse, "SELECT * FROM r") == [(4, 4), (5, 5)]
    warehouse.sql(
        "MERGE INTO r USING (SELECT 4 AS k, 1 & 3 << 0 AS c UNION ALL SELECT 8, 2) s ON r.k = s.k AND s.k & 1 << 2 = 4 "
        "WHEN MATCHED THEN UPDATE SET b = r.b | s.c & 1 WHEN NOT MATCHED THEN INSERT (k, b) VALUES (s.k, s.k | s.c & 1)"
    )
    assert answer(warehouse, "SELECT * FROM r") == [(4, 5), (5, 5), (8, 8)]


def test_an_average_of_long_decimals_is_rounded_once(warehouse: Warehouse) -> None:
    """100 in 2,000,001 rows are 0.00004999997…: rounded to ten digits and then to four they would be 0.0001."""
    warehouse.sql("CREATE TABLE r (x DECIMAL(18,0))")
    warehouse.sql("INSERT INTO r SELECT IF(id < 100, 1, 0) FROM range(2000001)")
    warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT AVG(x) AS a, COUNT(*) AS n FROM r")
    assert rows(warehouse) == [(Decimal("0.0000"), 2_000_001)]
    assert warehouse.verify("v").equal


def answer(warehouse: Warehouse, query: str) -> list[tuple[Any, ...]]:
    (found,) = warehouse.sql(query)
    assert found.rows is not None
    return sorted(map(tuple, found.rows.collect()))


def created(warehouse: Warehouse, query: str) -> str:
    return warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS {query}").mode


def rows(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, warehouse.read("v").collect()), key=repr)
