"""Only rows that the delta names are looked at: random histories at every csn, and what Spark plans to do."""

from __future__ import annotations

import random
from collections import Counter
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.clientserver import ClientServerConnection
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from tests.sizes import times
from tests.spark.store.test_timed import SCHEMA, Pin, Row, committed, same
from tests.spark.store.test_timed import SIGNED as SIGNED_SCHEMA

from rollview.core.lent import Lent
from rollview.core.schema import Column, Schema
from rollview.store import DeltaFolder, lifetimes, timed
from rollview.store.folder import read_together

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LARGE = 10_000_000
"""What a pin says of the rows, so that they are not added up in one task."""
NAN = float("nan")
HISTORIES = times(1, full=20)
CSNS = (0, 1, 3, 5, 8)


class Lives:
    """A table at csn 0..n. Its key is a pair: numbers, NULL among them, and floats as GROUP BY compares them."""

    def __init__(self, seed: int, *, keyed: bool) -> None:
        self.random, self.keyed = random.Random(seed), keyed
        self.states: list[list[Row]] = [[self._row() for _ in range(3)]]
        self.changes: list[Row] = []
        if keyed:
            self.states[0] = self._unique(self.states[0])
        for csn in range(1, 9):
            self._commit(csn)

    def _row(self) -> Row:
        pick = self.random.choice
        return (pick([1, 2, None]), pick(["p", None, "", "q"]), pick([0.0, -0.0, NAN, None, 1.5]))

    def _key(self, row: Row) -> Row:
        return row[0], str(row[2]).replace("-0.0", "0.0")

    def _unique(self, rows: list[Row]) -> list[Row]:
        return list({self._key(row): row for row in rows}.values())

    def _commit(self, csn: int) -> None:
        new = list(self.states[-1])
        self.random.shuffle(new)
        gone = [new.pop() for _ in range(self.random.randint(0, len(new)))]
        come = [self._row() for _ in range(self.random.randint(0, 4))]
        # The same row may go and come again, at one csn or later.
        come += self.random.sample(gone, k=self.random.randint(0, len(gone)))
        if self.keyed:
            held = {self._key(row) for row in new}
            come = [row for row in self._unique(come) if self._key(row) not in held]
        self.changes += [(*row, -1, csn) for row in gone] + [(*row, 1, csn) for row in come]
        self.states.append(new + come)

    def stored(self, root: Path, part: str, at: int) -> timed.Stored:
        files = [[c for c in self.changes if c[-1] in csns] for csns in ((1,), (2, 3, 4), (5, 6), (7, 8))]
        pins = {
            part: Pin(committed(root / part, SCHEMA, [self.states[at][:2], self.states[at][2:]]), at, at, LARGE),
            "delta": Pin(committed(root / "delta", SIGNED_SCHEMA, files), 0, 8),
        }
        return timed.Stored("t", SCHEMA, root, pins)


def found_at(frames: dict[int, DataFrame]) -> dict[int, Counter[Row]]:
    """The rows of all csns, by one query."""
    every = reduce(DataFrame.unionAll, (rows.withColumn("_at", sf.lit(at)) for at, rows in frames.items()))
    found: dict[int, Counter[Row]] = {at: Counter() for at in frames}
    for row in every.collect():
        found[row["_at"]][tuple(map(same, row[:-1]))] += 1
    return found


@pytest.mark.parametrize("at", [0, 4, 8])
@pytest.mark.parametrize("told_by", ["hash", "key", "bits"])
def test_every_csn_has_the_rows_of_the_history(
    spark: SparkSession, tmp_path: Path, told_by: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed = told_by != "hash"
    if told_by == "bits":
        monkeypatch.setattr(lifetimes, "_MANY_ROWS", 0)
    for seed in range(HISTORIES):
        history = Lives(100 * at + seed, keyed=keyed)
        stored = history.stored(tmp_path / str(seed), "state", at)
        key = ("ID", "x") if keyed else ()
        found = found_at({csn: timed.rows(spark, stored, csn, key) for csn in CSNS})
        for csn in CSNS:
            assert found[csn] == Counter(tuple(map(same, row)) for row in history.states[csn]), (seed, csn)


def test_views_take_both_zeroes_for_one(spark: SparkSession, tmp_path: Path) -> None:
    history = Lives(7, keyed=False)
    stored = history.stored(tmp_path, "extent", 4)
    found = found_at({csn: timed.rows(spark, stored, csn) for csn in (1, 8)})
    for csn, rows in found.items():
        assert _one_zero(rows.elements()) == _one_zero(tuple(map(same, row)) for row in history.states[csn]), csn


def _one_zero(rows: Any) -> Counter[Row]:
    return Counter(tuple("0.0" if value == "-0.0" else value for value in row) for row in rows)


def test_a_column_that_came_later_is_null_in_older_files(spark: SparkSession, tmp_path: Path) -> None:
    pins = {
        "state": Pin(committed(tmp_path / "state", SCHEMA, [[(1, "p", None), (2, "q", 1.5)]]), 1, 1, LARGE),
        "delta": Pin(committed(tmp_path / "delta", SIGNED_SCHEMA, [[(1, "p", None, -1, 2)]]), 0, 2),
    }
    wider = Schema((*SCHEMA, Column("new", "int")))
    found = timed.rows(spark, timed.Stored("t", wider, tmp_path, pins), 2, ("id",))
    assert [tuple(row) for row in found.collect()] == [(2, "q", 1.5, None)]


def test_a_row_that_comes_and_goes_in_a_transaction_under_way_is_not_there(spark: SparkSession, tmp_path: Path) -> None:
    own = [(7, "p", None, 1, 3), (7, "p", None, -1, 3), (7, "q", None, 1, 3), (1, "p", None, -1, 3)]
    pins = {
        "state": Pin(committed(tmp_path / "state", SCHEMA, [[(1, "o", None), (2, "q", 1.5)]]), 1, 1, LARGE),
        "delta": Pin(
            committed(tmp_path / "delta", SIGNED_SCHEMA, [[(1, "o", None, -1, 2), (1, "p", None, 1, 2)], own]), 0, 3
        ),
    }
    stored = timed.Stored("t", SCHEMA, tmp_path, pins)
    found = timed.rows(spark, stored, 3, ("id",), settled=False)
    assert sorted(map(tuple, found.collect())) == [(2, "q", 1.5), (7, "q", None)]


def plan_of(data: DataFrame, capsys: pytest.CaptureFixture[str]) -> str:
    data.explain("formatted")
    return capsys.readouterr().out


def large_table(tmp_path: Path, *, deletes: bool = True) -> timed.Stored:
    rows = [(number, "p", 1.5) for number in range(50)]
    changes = [(3, "p", 1.5, -1, 2), (3, "q", 1.5, 1, 2)] if deletes else [(99, "q", 1.5, 1, 2)]
    pins = {
        "state": Pin(committed(tmp_path / "state", SCHEMA, [rows[:25], rows[25:]]), 1, 1, LARGE),
        "delta": Pin(committed(tmp_path / "delta", SIGNED_SCHEMA, [changes]), 0, 2),
    }
    return timed.Stored("t", SCHEMA, tmp_path, pins)


def test_a_table_with_a_key_is_read_in_one_scan(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = timed.rows(spark, large_table(tmp_path), 2, ("id",))
    plan = plan_of(rows.where("`a b` > 'o'").select("a b"), capsys)
    tree = plan.partition("\n\n")[0]
    assert tree.count("Scan parquet") == 2, "the rows, and the few changes that end some"
    assert tree.count("Exchange") == tree.count("BroadcastExchange") == 1
    assert not any(word in tree for word in ("Aggregate", "Union", "Generate"))
    own = plan[plan.index("(1) Scan parquet") : plan.index("(2) ")]
    assert "GreaterThan(" in own.partition("PushedFilters")[2]
    assert "ReadSchema: struct<id:bigint,a%20b:string,_count:bigint,_csn:bigint>" in own
    assert "Left keys [1]: [xxhash64(" in plan, "one number is looked up for each row"


def test_among_many_rows_only_keys_with_the_bit_of_an_ending_one_are_looked_up(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, "_MANY_ROWS", 50)
    rows = timed.rows(spark, large_table(tmp_path), 2, ("id",))
    plan = plan_of(rows.where("`a b` > 'o'").select("a b"), capsys)
    assert "Left keys [1]: [CASE WHEN (getbit(Subquery" in plan
    tree = plan.partition("\n\n")[0]
    assert tree.count("Scan parquet") == 2, "the bits are made without Spark"
    assert Counter(map(tuple, rows.collect())) == Counter(
        [(number, "q" if number == 3 else "p", 1.5) for number in range(50)]
    )


def test_insertions_alone_are_a_plain_scan(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = timed.rows(spark, large_table(tmp_path, deletes=False), 2, ("id",))
    tree = plan_of(rows.select("x"), capsys).partition("\n\n")[0]
    assert tree.count("Scan parquet") == 1
    assert not any(word in tree for word in ("Exchange", "Join", "Union", "Aggregate"))
    assert rows.count() == 51


def test_without_a_key_rows_are_told_by_one_number(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = timed.rows(spark, large_table(tmp_path), 2)
    plan = plan_of(rows, capsys)
    assert plan.count("Left keys [1]: [xxhash64(") == 2
    assert rows.count() == 50


def test_folders_are_read_together_only_where_they_are_ours(spark: SparkSession, tmp_path: Path) -> None:
    stored = large_table(tmp_path)
    parts = [(stored.folder(part), stored.files(part)) for part in ("state", "delta")]
    whole = DeltaFolder(tmp_path / "state", SIGNED_SCHEMA)
    assert len(stored.files("state")) == 2
    assert read_together(spark, whole.schema, parts).count() == 52
    assert read_together(spark, whole.schema, ()).count() == 0


def test_a_column_of_others_is_never_taken_for_our_count(spark: SparkSession, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.parquet"
    pq.write_table(pa.table({"id": [1, 2], "_count": [-1, -1], "_csn": [2, 2]}), theirs)
    schema = Schema((Column("id", "bigint"),))
    state, delta = (
        DeltaFolder(tmp_path / "state", schema),
        DeltaFolder(tmp_path / "delta", Schema((*schema, *SIGNED_SCHEMA.columns[3:]))),
    )
    gone = pa.table({"id": [1], "_count": [-1], "_csn": [2]})
    pins = {
        "state": Pin(state.commit(None, state.link([Lent(theirs)], state.new_folder()), (), {}), 1, 1, LARGE),
        "delta": Pin(delta.commit(None, delta.stage(gone, delta.new_folder()), (), {}), 0, 2),
    }
    stored = timed.Stored("t", schema, tmp_path, pins)
    assert [tuple(row) for row in timed.rows(spark, stored, 2, ("id",)).collect()] == [(2,)]


def test_rows_at_a_csn_take_few_messages_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, "_MANY_ROWS", 0)
    stored, sent = large_table(tmp_path), 0
    told = ClientServerConnection.send_command

    def counted(*command: Any) -> Any:
        nonlocal sent
        sent += 1
        return told(*command)

    timed.rows(spark, stored, 2, ("id",))
    monkeypatch.setattr(ClientServerConnection, "send_command", counted)
    timed.rows(spark, stored, 2, ("id",))
    assert 0 < sent < 400
