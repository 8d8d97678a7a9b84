"""A relation read at every csn, in both directions, against the history it was made from."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rollview.core.interval import Interval
from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt, OutOfReach
from rollview.store import DeltaFolder, timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = Schema((Column("id", "bigint"), Column("a b", "string"), Column("x", "double")))
SIGNED = Schema((*SCHEMA, Column("_count", "bigint"), Column("_csn", "bigint")))
ARROW = [pa.int64(), pa.string(), pa.float64(), pa.int64(), pa.int64()]

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pin:
    version: int
    after: int
    through: int
    rows: int = 0


def table(schema: Schema, rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(c, t) for c, t in zip(columns, ARROW, strict=False)], names=list(schema.names))


def committed(root: Path, schema: Schema, pieces: list[list[Row]]) -> int:
    folder = DeltaFolder(root, schema)
    files = [file for rows in pieces for file in folder.stage(table(schema, rows), folder.new_folder())]
    return folder.commit(None, files, (), {})


def same(value: Any) -> Any:
    """As a table keeps it: NaN is one value, and a zero has its sign."""
    return str(value).replace("nan", "NaN") if isinstance(value, float) else value


def bag(data: DataFrame) -> Counter[Row]:
    return Counter(tuple(map(same, row)) for row in data.collect())


class History:
    """States at csn 0..n and the signed changes between them, some netting out, some crossing files."""

    def __init__(self, seed: int, keyed: bool, length: int = 6) -> None:
        self.random, self.keyed = random.Random(seed), keyed
        self.states: list[Counter[Row]] = [Counter()]
        self.changes: list[Row] = []
        for csn in range(1, length + 1):
            self.states.append(self._changed(self.states[-1], csn))

    def _row(self) -> Row:
        pick = self.random.choice
        return (pick([1, 2, 3, None]), pick(["p", None, ""]), pick([0.0, -0.0, float("nan"), None, 1.5]))

    def _changed(self, state: Counter[Row], csn: int) -> Counter[Row]:
        new = Counter(state)
        for row in self.random.sample(list(new.elements()), k=min(new.total(), self.random.randint(0, 3))):
            new[row] -= 1
            self.changes.append((*self._spelled(row), -1, csn))
        for row in [self._row() for _ in range(self.random.randint(0, 4))]:
            if not (self.keyed and any(seen[0] == row[0] for seen in new.elements())):
                new[tuple(map(same, row))] += 1
                self.changes.append((*row, 1, csn))
        return Counter(dict(new + Counter()))

    def _spelled(self, row: Row) -> Row:
        return (*row[:-1], None if row[-1] is None else float(row[-1]))

    def stored(self, root: Path, at: int) -> timed.Stored:
        plain = [self._spelled(row) for row in self.states[at].elements()]
        pieces = [[c for c in self.changes if c[-1] <= 2], [c for c in self.changes if c[-1] > 2]]
        pins = {
            "state": Pin(committed(root / "state", SCHEMA, [plain]), at, at),
            "delta": Pin(committed(root / "delta", SIGNED, pieces), 0, len(self.states) - 1),
        }
        return timed.Stored("t", SCHEMA, root, pins)


@pytest.mark.parametrize(
    ("seed", "keyed", "start"), [(1, False, 0), (2, False, 3), (3, True, 3), (4, True, 6), (5, False, 6)]
)
def test_rows_at_every_csn_are_those_of_the_history(
    spark: SparkSession, tmp_path: Path, seed: int, keyed: bool, start: int
) -> None:
    history = History(seed, keyed)
    stored = history.stored(tmp_path, start)
    for csn, expected in enumerate(history.states):
        assert bag(timed.rows(spark, stored, csn)) == expected, csn
        if keyed:
            assert bag(timed.rows(spark, stored, csn, key=("ID",))) == expected, csn


def test_the_signed_state_adds_up_to_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    history = History(11, False)
    stored = history.stored(tmp_path, 3)
    for csn in (0, 2, 3, 6):
        summed: Counter[Row] = Counter()
        for row in timed.signed_state(spark, stored, csn).collect():
            summed[tuple(map(same, row))[:-1]] += row["_count"]
        assert {row: n for row, n in summed.items() if n} == dict(history.states[csn])


def test_changes_are_those_of_the_interval(spark: SparkSession, tmp_path: Path) -> None:
    history = History(21, False)
    stored = history.stored(tmp_path, 0)
    for after, through in ((0, 6), (0, 2), (2, 6), (1, 4), (3, 3)):
        found = Counter(
            tuple(map(same, row)) for row in timed.changes(spark, stored, Interval(after, through)).collect()
        )
        assert found == Counter(tuple(map(same, c)) for c in history.changes if after < c[-1] <= through)


def test_files_outside_the_interval_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(1, "p", 1.0, 1, csn) for csn in range(1, 6)]
    pins = {"delta": Pin(committed(tmp_path / "delta", SIGNED, [[row] for row in rows]), 0, 5)}
    stored = timed.Stored("v", SCHEMA, tmp_path, {**pins, "extent": Pin(0, 0, 0)})
    assert len(timed.delta_files(stored, Interval(2, 4))) == 2
    assert len(timed.changes(spark, stored, Interval(2, 4)).inputFiles()) == 2


def test_a_row_deleted_more_often_than_it_was_there_is_corrupt(spark: SparkSession, tmp_path: Path) -> None:
    pins = {
        "extent": Pin(committed(tmp_path / "extent", SCHEMA, [[(1, "is there", None)]]), 0, 0),
        "delta": Pin(committed(tmp_path / "delta", SIGNED, [[(1, "is not", None, -1, 1)]]), 0, 1),
    }
    rows = timed.rows(spark, timed.Stored("v", SCHEMA, tmp_path, pins), 1)
    target = DeltaFolder(tmp_path / "new", SCHEMA)
    with pytest.raises(Corrupt, match=r"more often than it was there: \{.id.:1"):
        target.stage(rows, target.new_folder())
    with pytest.raises(Exception, match="negative multiplicity") as caught:
        rows.collect()
    assert timed.negative_multiplicity(caught.value) is not None
    assert timed.negative_multiplicity(ValueError("else")) is None


def test_a_view_is_read_only_where_its_delta_covers(spark: SparkSession, tmp_path: Path) -> None:
    pins = {
        "extent": Pin(committed(tmp_path / "extent", SCHEMA, []), 5, 5),
        "delta": Pin(committed(tmp_path / "delta", SIGNED, []), 3, 8),
    }
    view = timed.Stored("v", SCHEMA, tmp_path, pins)
    assert [timed.rows(spark, view, at).count() for at in (3, 5, 8)] == [0, 0, 0]
    for at in (2, 9):
        with pytest.raises(OutOfReach, match="covers \\(3, 8\\]"):
            timed.rows(spark, view, at)
    with pytest.raises(OutOfReach):
        timed.changes(spark, view, Interval(2, 5))


def test_a_table_without_later_changes_is_the_same_later(spark: SparkSession, tmp_path: Path) -> None:
    pins = {"state": Pin(committed(tmp_path / "state", SCHEMA, [[(1, "p", None)]]), 5, 5)}
    stored = timed.Stored("t", SCHEMA, tmp_path, pins)
    assert timed.rows(spark, stored, 99).count() == 1
    with pytest.raises(OutOfReach):
        timed.rows(spark, stored, 4)


def test_a_summary_view_is_read_in_its_hidden_columns(spark: SparkSession, tmp_path: Path) -> None:
    pins = {
        "extent": Pin(0, 0, 0),
        "groups": Pin(committed(tmp_path / "groups", SCHEMA, [[(1, "p", None)]]), 1, 1),
        "delta": Pin(committed(tmp_path / "delta", SIGNED, [[(1, "p", None, -1, 2), (1, "q", None, 1, 2)]]), 0, 2),
    }
    visible = Schema((Column("id", "bigint"),))
    stored = timed.Stored("v", visible, tmp_path, pins, hidden=SCHEMA)
    assert bag(timed.rows(spark, stored, 2)) == Counter([(1, "q", None)])


def test_rows_with_maps_are_added_up(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((Column("m", "map<string,int>"),))
    state, delta = (
        DeltaFolder(tmp_path / "state", schema),
        DeltaFolder(tmp_path / "delta", Schema((*schema, *SIGNED.columns[3:]))),
    )
    plain = spark.sql("SELECT map('a', 1, 'b', 2) AS m UNION ALL SELECT map('a', 1, 'b', 2) UNION ALL SELECT NULL")
    less = spark.sql("SELECT map('b', 2, 'a', 1) AS m, -1 AS _count, 2 AS _csn")
    pins = {
        "state": Pin(state.commit(None, state.stage(plain, state.new_folder()), (), {}), 1, 1),
        "delta": Pin(delta.commit(None, delta.stage(less, delta.new_folder()), (), {}), 0, 2),
    }
    found = timed.rows(spark, timed.Stored("t", schema, tmp_path, pins), 2).collect()
    assert sorted(str(row.m) for row in found) == ["None", "{'a': 1, 'b': 2}"]
