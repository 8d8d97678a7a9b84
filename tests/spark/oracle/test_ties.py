"""Views whose orders leave ties: the same rows as a text that leaves none, at every csn, and for ``verify`` too."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.oracle.checks import check_view
from tests.spark.oracle.test_operators import HISTORY, build

from rollview import errors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "latest": (
        "SELECT k, g, w FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC) AS n FROM r) WHERE n = 1",
        "SELECT k, g, w FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY g ORDER BY x DESC, k, w) AS n FROM r) "
        "WHERE n = 1",
    ),
    "frames": (
        "SELECT k, LAG(w) OVER (ORDER BY g) AS l, SUM(x) OVER (ORDER BY g ROWS 1 PRECEDING) AS s, "
        "LAST_VALUE(x) OVER (PARTITION BY g ORDER BY w) AS e, FIRST_VALUE(x) OVER (PARTITION BY g) AS f FROM r",
        "SELECT k, LAG(w) OVER (ORDER BY g, k, x, w) AS l, SUM(x) OVER (ORDER BY g, k, x, w ROWS 1 PRECEDING) AS s, "
        "MAX(STRUCT(k, x)) OVER (PARTITION BY g, w).x AS e, FIRST_VALUE(x) OVER (PARTITION BY g ORDER BY k, x, w "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS f FROM r",
    ),
    "top": ("SELECT g, x, w FROM r ORDER BY g DESC LIMIT 2", "SELECT g, x, w FROM r ORDER BY g DESC, x, w LIMIT 2"),
    "picked": (
        "SELECT g, FIRST(k) AS a, LAST(x) AS b, MAX_BY(w, x) AS c, MIN_BY(k, w) AS d, ANY_VALUE(w) IGNORE NULLS AS e "
        "FROM r GROUP BY g",
        "SELECT g, MIN(STRUCT(k, x, w)).k AS a, MAX(STRUCT(k, x, w)).x AS b, MAX(STRUCT(x, k, w)).w AS c, "
        "MIN(STRUCT(w, k, x)) FILTER (WHERE w IS NOT NULL).k AS d, "
        "MIN(STRUCT(k, x, w)) FILTER (WHERE w IS NOT NULL).w AS e FROM r GROUP BY g",
    ),
    "lists": (
        "SELECT k, COLLECT_LIST(x) AS a, ARRAY_AGG(w) AS b, COLLECT_SET(g) AS c, MODE(w) AS d FROM r GROUP BY k",
        "SELECT k, CAST(SORT_ARRAY(COLLECT_LIST(STRUCT(g, x, w))).x AS ARRAY<INT>) AS a, "
        "CAST(SORT_ARRAY(COLLECT_LIST(STRUCT(g, x, w)) FILTER (WHERE w IS NOT NULL)).w AS ARRAY<STRING>) AS b, "
        "CAST(SORT_ARRAY(COLLECT_SET(g)) AS ARRAY<INT>) AS c, MODE(w, TRUE) AS d FROM r GROUP BY k",
    ),
    "texts": (
        "SELECT g, LISTAGG(w, ',') AS t FROM r GROUP BY g",
        "SELECT g, LISTAGG(w, ',') WITHIN GROUP (ORDER BY w) AS t FROM r GROUP BY g",
    ),
}


def test_ties_are_settled_alike_at_every_csn(spark: SparkSession, tmp_path: Path) -> None:
    warehouse, model = build(spark, tmp_path / "warehouse", {name: texts[0] for name, texts in VIEWS.items()})
    for csn in range(2, len(HISTORY) + 1):
        warehouse.refresh(to=csn)
    for name, (_, explicit) in VIEWS.items():
        told = [one for one in warehouse.explain(name).operators if one.how == "settled"]
        assert told, f"{name} says nothing of its ties"
        model.views[name] = explicit
        check_view(warehouse, model, name)
        assert warehouse.verify(name).equal
    modes = {name: warehouse.explain(name).mode for name in VIEWS}
    assert modes["picked"] == modes["lists"] == "incremental"


def test_many_csns_at_once_settle_ties_alike(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollview.propagate.plan.MANY_CSNS", 2)
    warehouse, model = build(spark, tmp_path / "warehouse", {"picked": VIEWS["picked"][0]})
    warehouse.refresh()
    model.views["picked"] = VIEWS["picked"][1]
    check_view(warehouse, model, "picked")


def test_whoever_creates_a_view_is_told_how_ties_are_settled_or_refuses_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse, _ = build(spark, tmp_path / "warehouse", {})
    text = "CREATE MATERIALIZED VIEW v {} AS SELECT k, x FROM r LIMIT 1"
    with pytest.raises(errors.NotDeterministic):
        warehouse.create_view(text.format("TBLPROPERTIES ('rollview.ties' = 'refuse')"))
    created = warehouse.create_view(text.format(""))
    assert created.notes == ("View 'v': LIMIT (line 1): where its order leaves a choice, rows are taken by `k`, `x`.",)
    assert "ORDER BY `k`, `x` LIMIT 1" in warehouse.explain("v").sql
    warehouse.sql("CREATE MATERIALIZED VIEW of_groups AS SELECT g, COUNT(*) AS n FROM r GROUP BY g")
    above = warehouse.create_view("CREATE MATERIALIZED VIEW above AS SELECT g, n FROM of_groups ORDER BY g LIMIT 1")
    assert not above.notes, "a view's groups are its key"


def test_columns_whose_order_only_spark_knows_of_are_refused_with_the_reason(
    spark: SparkSession, tmp_path: Path
) -> None:
    warehouse, _ = build(spark, tmp_path / "warehouse", {})
    with pytest.raises(errors.SqlError) as refusal:
        warehouse.create_view("CREATE MATERIALIZED VIEW v AS SELECT MAP(k, x) AS m FROM r LIMIT 1")
    assert "leaves ties" in str(refusal.value.hint)
