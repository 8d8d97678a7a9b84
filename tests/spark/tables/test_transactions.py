from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.tables.local import Local

from rollview import errors
from rollview.publish.recover import discard_abandoned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def bank(local: Local) -> Local:
    local.ddl("CREATE TABLE account (id INT PRIMARY KEY, amount INT)", "CREATE TABLE log (what STRING)")
    local.run("INSERT INTO account VALUES (1, 10), (2, 20)", "INSERT INTO log VALUES ('a'), ('a')")
    return local


def test_two_tables_change_at_one_csn_or_not_at_all(bank: Local) -> None:
    done = bank.run("UPDATE account SET amount = amount - 5 WHERE id = 1", "INSERT INTO log VALUES ('moved')")
    assert {change.relation for change in done.changes} == {"account", "log"}
    assert bank.rows("account", at=done.csn - 1) == {(1, 10): 1, (2, 20): 1}
    entry = bank.catalog.ledger()[-1]
    assert (entry.csn, entry.source, entry.position, len(entry.changes)) == (done.csn, "local", str(done.csn), 2)
    with pytest.raises(errors.ConstraintViolated):
        bank.run("INSERT INTO log VALUES ('lost')", "INSERT INTO account VALUES (1, 1)")
    assert bank.rows("log") == {("a",): 2, ("moved",): 1}


def test_a_transaction_sees_one_snapshot_and_its_own_changes(bank: Local) -> None:
    reader, writer = bank.begin(), bank.begin()
    writer.sql("UPDATE account SET amount = 0 WHERE id = 2")
    assert reader.query("SELECT sum(amount) AS s FROM account").head()["s"] == 30  # type: ignore[index]
    assert writer.query("SELECT sum(amount) AS s FROM account").head()["s"] == 10  # type: ignore[index]
    writer.commit()
    assert reader.query("SELECT sum(amount) AS s FROM account").head()["s"] == 30  # type: ignore[index]
    reader.rollback()
    with pytest.raises(errors.UsageError, match="ended"):
        reader.sql("DELETE FROM log")


def test_the_first_committer_of_a_key_wins(bank: Local) -> None:
    first, second, third = bank.begin(), bank.begin(), bank.begin()
    first.sql("UPDATE account SET amount = 11 WHERE id = 1")
    second.sql("UPDATE account SET amount = 12 WHERE id = 1")
    third.sql("UPDATE account SET amount = 13 WHERE id = 2", "INSERT INTO account VALUES (3, 1)")
    assert first.commit().csn == 2
    with pytest.raises(errors.Conflict, match="id = 1") as conflict:
        second.commit()
    assert conflict.value.retryable
    assert third.commit().csn == 3
    assert bank.rows("account") == {(1, 11): 1, (2, 13): 1, (3, 1): 1}
    assert bank.rows("account", at=2) == {(1, 11): 1, (2, 20): 1}


def test_the_first_committer_of_a_deleted_row_wins_without_a_key(bank: Local) -> None:
    first, second, third = bank.begin(), bank.begin(), bank.begin()
    one = bank.spark.createDataFrame([("a",)], "what string")
    first.delete("log", one)
    second.delete("log", one)
    third.sql("INSERT INTO log VALUES ('a'), (NULL)")
    first.commit()
    with pytest.raises(errors.Conflict, match="what = a"):
        second.commit()
    third.commit()
    assert bank.rows("log") == {("a",): 2, (None,): 1}


def test_the_same_new_key_is_a_conflict_and_a_dropped_table_too(bank: Local) -> None:
    first, second, third = bank.begin(), bank.begin(), bank.begin()
    for transaction in (first, second):
        transaction.sql("INSERT INTO account VALUES (9, 9)")
    third.sql("INSERT INTO log VALUES ('x')")
    first.commit()
    with pytest.raises(errors.Conflict):
        second.commit()
    bank.ddl("DROP TABLE log")
    with pytest.raises(errors.Conflict, match="dropped"):
        third.commit()


def test_nothing_is_left_of_what_was_not_committed(bank: Local) -> None:
    before = bank.staging("account")
    rolled_back, refused = bank.begin(), bank.begin()
    rolled_back.sql("INSERT INTO account VALUES (3, 3)")
    rolled_back.rollback()
    refused.sql("INSERT INTO account VALUES (1, 3)")
    with pytest.raises(errors.ConstraintViolated):
        refused.commit()
    assert bank.staging("account") == before
    assert bank.catalog.steps(status="running") == ()


def test_a_commit_of_nothing_and_one_that_cannot_begin_leave_nothing(
    bank: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = bank.staging("log")
    assert bank.run("DELETE FROM log WHERE what = 'nobody'").changes == ()
    late = bank.begin()
    late.sql("INSERT INTO log VALUES ('late')")

    def busy(*_: str) -> None:
        raise errors.Busy("'commit'", "another", "now")

    monkeypatch.setattr(bank.catalog, "lease", busy)
    with pytest.raises(errors.Busy):
        late.commit()
    assert bank.staging("log") == before
    assert bank.catalog.steps(status="running") == ()


def test_netted_changes_leave_only_their_own_files(bank: Local) -> None:
    before = bank.staging("account")
    bank.run("INSERT INTO account VALUES (3, 3)", "UPDATE account SET amount = 4 WHERE id = 3")
    assert len(bank.staging("account") - before) == 1


def test_recovery_leaves_the_living_alone(bank: Local) -> None:
    transaction = bank.begin()
    transaction.sql("INSERT INTO account VALUES (3, 3)")
    assert discard_abandoned(bank.catalog, bank.data) == ()
    assert transaction.commit().csn == 2
    assert bank.rows("account")[(3, 3)] == 1


def test_the_clock_never_goes_back(spark: SparkSession, tmp_path: Path) -> None:
    times = iter([datetime(2026, 1, 2, tzinfo=UTC) - timedelta(hours=hour) for hour in range(1000)])
    local = Local(spark, tmp_path, wall_clock=lambda: next(times))
    local.ddl("CREATE TABLE t (a INT)")
    moments = [local.run(f"INSERT INTO t VALUES ({n})") for n in range(3)]
    assert [moment.csn for moment in moments] == [1, 2, 3]
    assert sorted({moment.time for moment in moments}) == [moment.time for moment in moments]
    local.catalog.close()
