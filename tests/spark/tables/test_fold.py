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


def test_a_load_ends_in_a_state_by_key_and_every_csn_stays(grown: Local) -> None:
    grown.run("INSERT INTO t VALUES (-1, 0)")
    grown.run("INSERT INTO t SELECT INT(id), 0 FROM range(40)")
    table = grown.catalog.snapshot().get("t")
    state = table.pins[Part.STATE]
    assert (state.through, state.rows, table.pins[Part.DELTA].after) == (2, 41, 0)
    grown.run("DELETE FROM t WHERE id >= 0")
    assert grown.catalog.snapshot().get("t").pins[Part.STATE].through == 3
    assert [sum(grown.rows("t", csn).values()) for csn in range(4)] == [0, 1, 41, 1]


def test_a_fold_that_fails_does_not_fail_the_commit(grown: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> bool:
        raise errors.EngineFailed("no")

    monkeypatch.setattr(fold, "fold", refuse)
    assert grown.run("INSERT INTO t SELECT INT(id), 0 FROM range(40)").csn == 1
    assert sum(grown.rows("t").values()) == 40
