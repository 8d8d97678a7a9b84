"""Every operator with a rule of its own, over NULL keys, duplicates and groups that empty, at every csn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.property.schemas import BAGS
from tests.sizes import FULL
from tests.spark.oracle.checks import check_refusals, check_view
from tests.spark.oracle.model import Model, frame
from tests.spark.oracle.warehouses import fresh
from tests.spark.oracle.writers import create_tables

from rollview import errors
from rollview.propagate import choice
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = BAGS[:2]
HISTORY = (
    {
        "r": [((1, 1, 5, "a"), 1), ((1, 1, 5, "a"), 1), ((None, 2, 3, None), 1), ((2, None, 1, "b"), 1)],
        "s": [((1, None, "x"), 1), ((None, None, "n"), 1)],
    },
    {"r": [((1, 1, 5, "a"), -1), ((3, 1, 9, "a"), 1)], "s": [((1, None, "x"), 1), ((3, None, "z"), 1)]},
    {"r": [((1, 1, 5, "a"), -1), ((2, None, 1, "b"), -1), ((None, 2, 3, None), 1)], "s": [((1, None, "x"), -1)]},
    {"r": [((1, 1, 7, "a"), 1), ((2, None, 4, "c"), 1)], "s": [((1, None, "x"), -1), ((2, None, None), 1)]},
)

SETS = {
    "outer joins": {
        "left_": "SELECT r.k, r.x, s.w FROM r LEFT JOIN s ON r.k = s.k",
        "right_": "SELECT r.x, s.k, s.w FROM r RIGHT JOIN s ON r.k = s.k AND r.x > 3",
        "full_": "SELECT r.k AS rk, s.k AS sk, r.w AS rw, s.w AS sw FROM r FULL JOIN s ON r.k = s.k",
        "null_safe": "SELECT r.x, s.w FROM r FULL JOIN s ON r.k <=> s.k",
    },
    "semi joins": {
        "semi": "SELECT r.k, r.x FROM r LEFT SEMI JOIN s ON r.k = s.k",
        "anti": "SELECT r.* FROM r LEFT ANTI JOIN s ON r.k = s.k AND r.x < 9",
        "null_safe_anti": "SELECT s.k, COUNT(*) AS n FROM s ANTI JOIN r ON s.k <=> r.k GROUP BY s.k",
    },
    "groups": {
        "distinct_": "SELECT DISTINCT g, w FROM r",
        "extremes": "SELECT g, MIN(x) AS l, MAX(x) AS h, COUNT(DISTINCT k) AS d FROM r GROUP BY g",
        "totals": "SELECT COUNT(*) AS n, SUM(x) AS s, MIN(k) AS l, AVG(x) AS a FROM r WHERE k = 1",
        "nested": "SELECT n, COUNT(*) AS m, MAX(t) AS t FROM "
        "(SELECT k, COUNT(*) AS n, SUM(x) AS t FROM r GROUP BY k) q GROUP BY n",
        "filtered": "SELECT g, SUM(x) FILTER (WHERE k = 1) AS s, COUNT(*) FILTER (WHERE w = 'a') AS n "
        "FROM r GROUP BY g HAVING COUNT(*) > 1",
    },
    "sets": {
        "except_": "SELECT k, w FROM r EXCEPT SELECT k, w FROM s",
        "except_all": "SELECT k FROM r EXCEPT ALL SELECT k FROM s",
        "intersect_": "SELECT k, w FROM r INTERSECT SELECT k, w FROM s",
        "intersect_all": "SELECT k FROM r INTERSECT ALL SELECT k FROM s",
        "exists_": "SELECT r.k, r.x FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k AND s.w = r.w)",
        "not_exists": "SELECT * FROM r WHERE x > 3 AND NOT EXISTS (SELECT * FROM s WHERE s.k = r.k)",
        "in_": "SELECT w, COUNT(*) AS n FROM r WHERE k IN (SELECT k FROM s WHERE w IS NOT NULL) GROUP BY w",
    },
    "combined groups": {
        "averages": "SELECT g, MAX(x) AS h, AVG(x) AS a, AVG(CAST(x AS DECIMAL(8,2))) AS d, "
        "SUM(CAST(x AS BIGINT)) AS b, SUM(CAST(x AS DECIMAL(27,3))) AS t FROM r GROUP BY g",
        "truths": "SELECT g, EVERY(x > 3) AS e, ANY(x > 3) AS a, SOME(x > 8) AS s, BOOL_AND(w = 'a') AS b, "
        "BIT_OR(x) AS o, BIT_AND(k) AS n, COUNT_IF(x > 3) AS c FROM r GROUP BY g",
        "once": "SELECT g, COUNT(DISTINCT w) AS n, SUM(DISTINCT x) AS s, AVG(DISTINCT x) FILTER (WHERE k = 1) AS a "
        "FROM r GROUP BY g",
        "computed": "SELECT k + g AS q, MAX(struct(x, w)).w AS w, COUNT(DISTINCT x % 3, w) AS n FROM r GROUP BY k + g",
    },
    "views over views": {
        "one": "SELECT r.k, r.g, r.x, s.w FROM r JOIN s ON r.k = s.k",
        "two": "SELECT g, SUM(x) AS x, COUNT(*) AS n FROM one GROUP BY g",
        "three": "SELECT r.w, two.n, two.x FROM r LEFT JOIN two ON r.g = two.g",
        "beside": "SELECT w, COUNT(*) AS n FROM one GROUP BY w UNION ALL SELECT 'all', COUNT(*) FROM two",
    },
}


def build(spark: SparkSession, root: Path, views: dict[str, str], said: str = "") -> tuple[Warehouse, Model]:
    """Views are created after the first commit, with what is ``said`` of them; all of the history is committed."""
    warehouse, model = fresh(spark, root), Model(spark, TABLES)
    create_tables(warehouse, TABLES)
    commit(warehouse, model, 0)
    for name, query in views.items():
        model.views[name] = query
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} {said} AS {query}")
    for place in range(1, len(HISTORY)):
        commit(warehouse, model, place)
    return warehouse, model


def commit(warehouse: Warehouse, model: Model, place: int) -> None:
    with warehouse.transaction() as transaction:
        for table in TABLES:
            rows = HISTORY[place].get(table.name, [])
            for sign, change in ((-1, transaction.delete), (1, transaction.insert)):
                chosen = [row for row, count in rows if count == sign]
                if chosen:
                    change(table.name, frame(warehouse.spark, table, chosen))
    model.commit(HISTORY[place])


MARKS = {"commit by commit": (2, 3, 4), "at once": (4,)} if FULL else {"one commit, then two at once": (2, 4)}
"""Up to which csn each refresh goes."""


@pytest.mark.parametrize("marks", MARKS.values(), ids=MARKS)
@pytest.mark.parametrize("chosen", [chosen for chosen in SETS if chosen != "combined groups"])
def test_each_operator_is_exact_at_every_csn(
    spark: SparkSession, tmp_path: Path, chosen: str, marks: tuple[int, ...]
) -> None:
    warehouse, model = build(spark, tmp_path / "warehouse", SETS[chosen])
    for csn in marks:
        warehouse.refresh(to=csn)
    for name in model.views:
        assert warehouse.explain(name).mode == "incremental"
        check_view(warehouse, model, name)


@pytest.mark.parametrize("chosen", ["outer joins", "semi joins", "groups", "combined groups", "sets"])
def test_many_csns_at_once_are_exact_too(
    spark: SparkSession, tmp_path: Path, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As queries are written for many commits; the history has few."""
    monkeypatch.setattr("rollview.propagate.plan.MANY_CSNS", 2)
    warehouse, model = build(spark, tmp_path / "warehouse", SETS[chosen])
    warehouse.refresh()
    for name in model.views:
        check_view(warehouse, model, name)


def test_select_is_computed_for_rows_that_are_there_alone(spark: SparkSession, tmp_path: Path) -> None:
    """Over a table whose first rows are changes beside an empty state, and later both."""
    views = {
        "newest": "SELECT k, (SELECT MAX(w) FROM s WHERE s.k = r.k) AS w FROM r",
        "mapped": "SELECT k, MAP(w, x)[w] AS x FROM r WHERE w IS NOT NULL",
    }
    warehouse, model = build(spark, tmp_path / "warehouse", views)
    warehouse.refresh()
    for name in views:
        check_view(warehouse, model, name)


def test_views_over_views_roll_together_and_apart(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, model = build(spark, tmp_path / "warehouse", SETS["views over views"])
    warehouse.propagate(["three"])
    warehouse.propagate(["beside"], to=3)
    assert warehouse.roll(["+three"], 3).csn == 3
    warehouse.roll(["two"], 1)
    for name in model.views:
        check_view(warehouse, model, name)


def test_a_wide_summary_is_planned_as_quickly_as_a_narrow_one(spark: SparkSession, tmp_path: Path) -> None:
    sums = ", ".join(f"SUM(x + {n}) AS s{n}, AVG(k * {n}) AS a{n}" for n in range(20))
    warehouse, model = build(spark, tmp_path / "warehouse", {"wide": f"SELECT g, {sums} FROM r GROUP BY g"})
    warehouse.refresh()
    check_view(warehouse, model, "wide")


def test_a_view_that_spark_cannot_analyse_stops_alone(spark: SparkSession, tmp_path: Path) -> None:
    maps = "SELECT n, COUNT(*) AS c FROM (SELECT COUNT(*) AS n FROM r GROUP BY MAP('a', g)) AS q GROUP BY n"
    warehouse, model = build(spark, tmp_path / "warehouse", {"maps": maps, "fine": "SELECT k FROM r"})
    with pytest.raises(errors.EngineFailed, match="'maps': Spark failed to compute the view's changes"):
        warehouse.refresh()
    check_view(warehouse, model, "fine")


WHOLE = {
    "ranked": "SELECT k, x, RANK() OVER (PARTITION BY g ORDER BY x) AS place FROM r",
    "best": "SELECT place, COUNT(*) AS n FROM ranked GROUP BY place",
}


def test_a_recomputed_view_is_refused_strictly_inside_its_stretches(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, model = build(spark, tmp_path / "warehouse", WHOLE)
    assert warehouse.explain("ranked").mode == "whole"
    warehouse.refresh(to=2)
    refreshed = warehouse.refresh()
    assert {view.name: view.mode for view in refreshed.views} == {"ranked": "whole", "best": "incremental"}
    for name in WHOLE:
        assert check_refusals(warehouse, name) == 1
        check_view(warehouse, model, name)
    warehouse.roll(list(WHOLE), 2)
    for name in WHOLE:
        check_view(warehouse, model, name)


RECOMPUTED = {"left_": SETS["outer joins"]["left_"], "two": "SELECT g, SUM(x) AS x FROM r GROUP BY g"}


def test_asked_for_recomputation_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, model = build(spark, tmp_path / "warehouse", RECOMPUTED)
    refreshed = warehouse.refresh(mode="recompute")
    assert [(view.mode, view.reason) for view in refreshed.views] == [("whole", "asked for")] * 2
    for name in RECOMPUTED:
        assert check_refusals(warehouse, name) > 0
        check_view(warehouse, model, name)


def test_recomputing_unasked_loses_no_csn(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LITTLE_DATA": -1, "FEW_CHANGES": -1, "MUCH_CHEAPER": 1e9, "WORTH_SECONDS": -1e9}.items():
        monkeypatch.setattr(choice, name, value)
    warehouse, model = build(spark, tmp_path / "warehouse", RECOMPUTED)
    newest = warehouse.snapshot().moment.csn
    modes = {view.mode for csn in range(1, newest) for view in warehouse.refresh(to=csn).views}
    assert modes == {"whole", "incremental"}
    assert {view.mode for view in warehouse.refresh(mode="incremental").views} == {"incremental"}
    for name in RECOMPUTED:
        assert not warehouse.snapshot().get(name).coarse
        check_view(warehouse, model, name)


def test_a_view_that_must_be_incremental_is_refused_where_it_cannot_be(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, _ = build(spark, tmp_path / "warehouse", {"fine": "SELECT k FROM r"})
    strict = "TBLPROPERTIES ('rollview.refresh_mode' = 'incremental')"
    with pytest.raises(errors.UsageError, match="no incremental form"):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v {strict} AS {WHOLE['ranked']}")
    always = strict.replace("incremental", "recompute")
    warehouse.create_view(f"CREATE MATERIALIZED VIEW v {always} AS SELECT g, COUNT(*) AS n FROM r GROUP BY g")
    warehouse.sql("INSERT INTO r (k, g) VALUES (1000, 1)")
    assert {view.name: view.mode for view in warehouse.refresh().views} == {"fine": "incremental", "v": "whole"}
