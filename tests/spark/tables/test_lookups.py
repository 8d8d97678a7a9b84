"""What a commit reads to check its constraints: files that may hold its keys, and each row of a load once."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.spark.tables.local import Local

from rollview.catalog import Part
from rollview.publish import fold
from rollview.tables import probe as asking
from rollview.tables.probe import Count, own_rows, rows_at
from rollview.tables.probe_arrow import ArrowProbe, files_with
from rollview.tables.probe_spark import SparkProbe

pytestmark = pytest.mark.spark


@pytest.fixture
def spread(local: Local, monkeypatch: pytest.MonkeyPatch) -> Local:
    """A table whose state is in several files by key."""
    monkeypatch.setattr(fold, "BUCKET_ROWS", 10)
    local.ddl("CREATE TABLE t (id BIGINT, b INT, v STRING, PRIMARY KEY (id, b))")
    local.run("INSERT INTO t SELECT id, INT(id % 3), 'v' FROM range(100)")
    assert fold.fold(local.spark, local.data, local.catalog, "t")
    return local


def test_few_keys_are_looked_up_in_few_files(spread: Local) -> None:
    table = spread.catalog.snapshot().get("t")
    state, _ = rows_at(spread.data, table, spread.csn)
    assert len(state.files) == 16
    asked = pa.table({"k0": pa.array([17, 1_000_000]), "k1": pa.array([2, 2], pa.int32())})
    assert len(files_with(state, ("id", "b"), asked)) == 1
    assert len(files_with(state, ("id", "b"), asked.slice(1))) == 0
    assert ArrowProbe().having(asked, (state,), ("id", "b"), asking.Test.NONE).to_pylist() == [
        {"k0": 1_000_000, "k1": 2}
    ]


def test_a_load_is_checked_in_one_shuffle(spread: Local, capsys: pytest.CaptureFixture[str]) -> None:
    table = spread.catalog.snapshot().get("t")
    held = rows_at(spread.data, table, spread.csn)
    delta = held[1].folder
    files = delta.files(table.pins[Part.DELTA].version)
    own = own_rows(delta, files, Count.INSERTED)
    probe = SparkProbe(spread.spark, touched=sum(file.rows for file in files))
    keys = probe.touched(own, ("id", "b"))
    found = probe.having(keys, (*held, own_rows(delta, files, Count.SIGNED)), ("id", "b"), asking.Test.SEVERAL)
    capsys.readouterr()
    found.keys.explain("formatted")
    tree = capsys.readouterr().out.partition("\n\n")[0]
    assert tree.count("Exchange") == 1
    assert tree.count("Scan parquet") == 2, "the state and the load, each once"
    assert "Join" not in tree
    assert probe.first(found) is not None, "all rows are in the state already"
