from __future__ import annotations

import pytest
from tests.spark.tables.local import Local

from rollview import errors
from rollview.catalog import Part
from rollview.publish import fold


@pytest.fixture
def grown(local: Local, monkeypatch: pytest.MonkeyPatch) -> Local:
    monkeypatch.setattr(fold, "LEAST", 10)
    monkeypatch.setattr(fold, "BUCKET_ROWS", 10)
    local.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    return local


def test_a_load_is_written_once_and_what_goes_from_it_is_folded_in(grown: Local) -> None:
    grown.run("INSERT INTO t VALUES (-1, 0)")
    grown.run("INSERT INTO t SELECT INT(id), 0 FROM range(40)")
    table = grown.catalog.snapshot().get("t")
    assert (table.pins[Part.STATE].through, table.pins[Part.STATE].rows) == (0, 0), "its delta is read in the same scan"
    grown.run("DELETE FROM t WHERE id >= 0")
    table = grown.catalog.snapshot().get("t")
    assert (table.pins[Part.STATE].through, table.pins[Part.STATE].rows, table.pins[Part.DELTA].after) == (3, 1, 0)
    assert [sum(grown.rows("t", csn).values()) for csn in range(4)] == [0, 1, 41, 1]


def test_a_table_without_a_key_is_folded_after_a_load(grown: Local) -> None:
    grown.ddl("CREATE TABLE u (v INT)")
    grown.run("INSERT INTO u SELECT INT(id % 3) FROM range(40)")
    state = grown.catalog.snapshot().get("u").pins[Part.STATE]
    assert (state.through, state.rows) == (1, 40)


def test_a_fold_that_fails_does_not_fail_the_commit(grown: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise errors.EngineFailed("no")

    monkeypatch.setattr(fold, "fold", refuse)
    assert grown.run("INSERT INTO t SELECT INT(id), 0 FROM range(40)").csn == 1
    assert grown.run("UPDATE t SET v = 1").csn == 2
    assert grown.rows("t") == {(id, 1): 1 for id in range(40)}
