"""Groups are written anew together with the extent once their delta has outgrown them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rollview
from rollview import Warehouse
from rollview.apply import plan as applying
from rollview.catalog import Part
from rollview.propagate import plan as propagating


def test_groups_follow_when_their_delta_has_outgrown_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applying, "FOLD_ROWS", 0)
    monkeypatch.setattr(propagating, "FEW_GROUPS", 0)
    Warehouse.create(tmp_path / "wh").close()
    with rollview.open(tmp_path / "wh", spark=spark) as wh:
        wh.sql("CREATE TABLE t (k BIGINT, x BIGINT)", "INSERT INTO t VALUES (1, 1)")
        wh.create_view("CREATE MATERIALIZED VIEW v AS SELECT k, SUM(x) AS s FROM t GROUP BY k")
        for x in range(3):
            wh.sql(f"INSERT INTO t VALUES (1, {x})")
        newest = wh.refresh().csn
        pins = wh.snapshot().get("v").pins
        assert (pins[Part.GROUPS].through, pins[Part.EXTENT].through) == (newest, newest)
        assert wh.verify("v").equal
