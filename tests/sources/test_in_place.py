"""Delta tables that are read where they are: nothing is copied, and nothing that their owner does changes an answer."""

from __future__ import annotations

import datetime
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from rollview.catalog import Part
from rollview.relations.folders import state_folder
from rollview.results import TableReading
from rollview.sources import SourceSettings, TableSettings
from rollview.store.datafile import DataFile
from rollview.warehouse import Warehouse
from tests.sources.harness import Bag, capture, stored

FEED = {"delta.enableChangeDataFeed": "true"}
NOW = timedelta(0)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def settings(lake: Path, **options: str) -> SourceSettings:
    return SourceSettings("delta", str(lake), (TableSettings("t", "t"),), options)


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    numbers, words = zip(*pairs, strict=True)
    return pa.table({"n": pa.array(numbers, pa.int64()), "w": pa.array(words, pa.string())})


def vacuum(lake: Path) -> None:
    DeltaTable(lake / "t").vacuum(0, dry_run=False, enforce_retention_duration=False)


def state(warehouse: Warehouse) -> tuple[Path, tuple[DataFile, ...]]:
    relation = warehouse.snapshot().get("t")
    folder = state_folder(warehouse.root / "data", relation)
    return folder.root, folder.files(relation.pins[Part.STATE].version)


def reading(warehouse: Warehouse) -> TableReading:
    return warehouse.sources()[0].readings["t"]


def is_in_place(warehouse: Warehouse) -> bool:
    files = state(warehouse)[1]
    return bool(files) and all(file.linked for file in files)


def data_files(lake: Path) -> dict[int, Path]:
    return {path.stat().st_ino: path for path in (lake / "t").rglob("*.parquet")}


def held_by(lake: Path) -> Bag:
    table = pa.table(DeltaTable(lake / "t").to_pyarrow_table()).select(["n", "w"])
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_the_state_is_the_files_of_the_source(lake: Path, empty_warehouse: Warehouse) -> None:
    for number in range(3):
        write_deltalake(lake / "t", rows((number, "a")), mode="append")
    added = empty_warehouse.add_source("s", settings(lake))
    root, files = state(empty_warehouse)
    theirs = data_files(lake)
    assert len(files) == 3
    assert {(root / file.path).stat().st_ino for file in files} == set(theirs)
    size = sum(path.stat().st_size for path in theirs.values())
    assert added.tables[0].reading == reading(empty_warehouse) == TableReading(bytes=size)
    assert stored(empty_warehouse, "t") == held_by(lake)
    empty_warehouse.remove_source("s")
    empty_warehouse.maintain(grace=timedelta(0))
    empty_warehouse.maintain(grace=timedelta(0))
    assert not root.exists()
    assert held_by(lake) == Counter({(0, "a"): 1, (1, "a"): 1, (2, "a"): 1})


def test_vacuum_takes_nothing_away_that_can_be_returned_to(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a"), (2, None), (2, None)))
    empty_warehouse.add_source("s", settings(lake))
    history = [held_by(lake)]
    for number in range(3, 6):
        write_deltalake(lake / "t", rows((number, "x"), (2, None)), mode="overwrite")
        history.append(held_by(lake))
        capture(empty_warehouse)
    assert empty_warehouse.snapshot().get("t").pins[Part.STATE].through == 1
    vacuum(lake)
    assert [stored(empty_warehouse, "t", csn) for csn in range(1, 5)] == history
    write_deltalake(lake / "t", rows((9, "y")), mode="append")
    history.append(held_by(lake))
    capture(empty_warehouse)
    # The files of the first version were ours alone, so the state is now that of the newest.
    assert empty_warehouse.snapshot().get("t").pins[Part.STATE].through == 5
    assert is_in_place(empty_warehouse)
    assert reading(empty_warehouse).kept == 0
    assert [stored(empty_warehouse, "t", csn) for csn in range(1, 6)] == history


def test_pruning_moves_the_state_without_a_copy(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a"), (2, "b")))
    empty_warehouse.add_source("s", settings(lake))
    for number in range(3):
        DeltaTable(lake / "t").update(updates={"n": "n + 1"}, predicate="w = 'a'")
        write_deltalake(lake / "t", rows((number, "c")), mode="append")
        capture(empty_warehouse)
    before = data_files(lake)
    empty_warehouse.maintain(prune_before=7, grace=NOW)
    assert is_in_place(empty_warehouse)
    assert stored(empty_warehouse, "t") == held_by(lake)
    home = empty_warehouse.root / "data" / empty_warehouse.snapshot().get("t").folder / "state"
    root, files = state(empty_warehouse)
    assert {path for path in home.rglob("*.parquet") if "_delta_log" not in path.parts} == {
        root / file.path for file in files
    }
    assert data_files(lake) == before


def test_the_change_data_feed_is_read_where_there_is_one(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a"), (2, "b"), (3, "b c/=%")), partition_by=["w"], configuration=FEED)
    empty_warehouse.add_source("s", settings(lake))
    DeltaTable(lake / "t").update(updates={"n": "n + 10"}, predicate="w <> 'a'")
    DeltaTable(lake / "t").delete("n = 12")
    # Without the files that were removed only the feed can tell.
    for path in set(data_files(lake).values()) - {Path(uri) for uri in DeltaTable(lake / "t").file_uris()}:
        if "_change_data" not in path.parts:
            path.unlink()
    assert capture(empty_warehouse).units == 2
    assert stored(empty_warehouse, "t", 2) == Counter({(1, "a"): 1, (12, "b"): 1, (13, "b c/=%"): 1})
    assert stored(empty_warehouse, "t", 3) == held_by(lake)


@pytest.mark.parametrize("damage", ["gone", "short"])
def test_a_feed_that_does_not_tell_all_is_not_believed(lake: Path, empty_warehouse: Warehouse, damage: str) -> None:
    write_deltalake(lake / "t", rows((1, "a"), (2, "a"), (3, "b")), configuration=FEED)
    empty_warehouse.add_source("s", settings(lake))
    DeltaTable(lake / "t").delete("w = 'a'")
    for path in (lake / "t" / "_change_data").rglob("*.parquet"):
        if damage == "short":
            pq.write_table(pq.ParquetFile(path).read().slice(0, 1), path)
        else:
            path.unlink()
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter({(3, "b"): 1})


def test_a_version_that_only_moves_rows_is_not_read(lake: Path, empty_warehouse: Warehouse) -> None:
    for number in range(3):
        write_deltalake(lake / "t", rows((number, "a")), mode="append")
    empty_warehouse.add_source("s", settings(lake))
    DeltaTable(lake / "t").optimize.compact()
    vacuum(lake)
    assert capture(empty_warehouse).units == 0
    assert reading(empty_warehouse).kept == 0
    assert len(state(empty_warehouse)[1]) == 1
    assert stored(empty_warehouse, "t") == held_by(lake)


def test_partitions_are_read_by_what_the_log_says(lake: Path, empty_warehouse: Warehouse) -> None:
    day = datetime.date(2026, 11, 15)
    values: dict[str, Any] = {
        "n": pa.array([1, 2, 3, 4], pa.int64()),
        "s": ["a.b", "é / %20", None, "a.b"],
        "d": pa.array([day, None, day, day], pa.date32()),
        "b": [True, False, None, True],
        "x": pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal("1.50")], pa.decimal128(5, 2)),
        "i": pa.array([7, None, -7, 7], pa.int16()),
    }
    write_deltalake(lake / "t", pa.table(values), partition_by=["s", "d", "b", "x", "i"])
    empty_warehouse.add_source("s", settings(lake))
    assert is_in_place(empty_warehouse)
    whole = Counter(zip(*(pa.table(values)[name].to_pylist() for name in values), strict=True))
    assert stored(empty_warehouse, "t") == whole
    DeltaTable(lake / "t").delete("n = 1")
    capture(empty_warehouse)
    vacuum(lake)
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t", 1) == whole
    assert stored(empty_warehouse, "t") == whole - Counter([next(iter(whole))])


def test_what_cannot_be_read_in_place_is_copied_and_says_why(lake: Path, empty_warehouse: Warehouse) -> None:
    moment = pa.array([datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC)], pa.timestamp("us", "UTC"))
    write_deltalake(lake / "t", pa.table({"n": [1], "at": moment}), partition_by=["at"])
    write_deltalake(lake / "u", rows((1, "a")))
    write_deltalake(lake / "odd", pa.table({"a b": [1]}))
    tables = (TableSettings("t", "t"), TableSettings("u", "u"), TableSettings("odd", "odd"))
    empty_warehouse.add_source("s", replace(settings(lake), tables=tables))
    read = empty_warehouse.sources()[0].readings
    assert "partitioned by 'at'" in (read["t"].reason or "")
    assert "'a b'" in (read["odd"].reason or "")
    assert read["u"].reason is None
    assert stored(empty_warehouse, "odd") == Counter({(1,): 1})
    write_deltalake(lake / "t", pa.table({"n": [2], "at": moment}), mode="append")
    capture(empty_warehouse)
    assert sum(stored(empty_warehouse, "t").values()) == 2
    assert empty_warehouse.sources()[0].readings["t"] == read["t"]


def test_a_copy_can_be_asked_for(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a")))
    empty_warehouse.add_source("s", settings(lake, in_place="false"))
    assert reading(empty_warehouse) == TableReading(reason="its settings say so")
    assert not is_in_place(empty_warehouse)


@pytest.fixture
def other_lake(tmp_path: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system here")
    folder = Path(mkdtemp(dir=memory))
    yield folder
    shutil.rmtree(folder)


def test_a_table_on_another_file_system_is_copied(other_lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(other_lake / "t", rows((1, "a")))
    empty_warehouse.add_source("s", settings(other_lake))
    assert reading(empty_warehouse).reason == "it is on another file system than the warehouse"
    assert stored(empty_warehouse, "t") == Counter({(1, "a"): 1})


def test_files_named_by_an_absolute_address(lake: Path, empty_warehouse: Warehouse) -> None:
    """As a shallow clone has them."""
    write_deltalake(lake / "of", rows((1, "a"), (2, "b")))
    log = lake / "of" / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = (lake / "of" / action["add"]["path"]).as_uri()
    (lake / "t" / "_delta_log").mkdir(parents=True)
    (lake / "t" / "_delta_log" / log.name).write_text("\n".join(map(json.dumps, actions)))
    empty_warehouse.add_source("s", settings(lake))
    assert is_in_place(empty_warehouse)
    assert stored(empty_warehouse, "t") == Counter({(1, "a"): 1, (2, "b"): 1})


def test_columns_that_come_later_are_null_before(lake: Path, empty_warehouse: Warehouse) -> None:
    """The linked files have the column all along, but the table here had it not."""
    write_deltalake(lake / "t", rows((1, "a"), (2, "b")))
    some = (TableSettings("t", "t", columns=("n",)),)
    empty_warehouse.add_source("s", replace(settings(lake), tables=some))
    empty_warehouse.resnapshot("s", widen=True, settings=settings(lake))
    assert stored(empty_warehouse, "t", 1) == Counter({(1, None): 1, (2, None): 1})
    assert stored(empty_warehouse, "t") == held_by(lake)
    assert reading(empty_warehouse).reason == "it has gained columns here"


def test_an_old_version_is_told_before_it_is_lost(lake: Path, empty_warehouse: Warehouse) -> None:
    kept = {"delta.deletedFileRetentionDuration": "interval 2 hours"}
    write_deltalake(lake / "t", rows((1, "a")), configuration=kept)
    assert any("2:00:00" in found.what for found in empty_warehouse.check_source("s", settings(lake)).findings)
    empty_warehouse.add_source("s", settings(lake))
    write_deltalake(lake / "t", rows((2, "b")), mode="append")
    log = lake / "t" / "_delta_log" / f"{1:020d}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "commitInfo" in action:
            action["commitInfo"]["timestamp"] -= 90 * 60 * 1000
    log.write_text("\n".join(map(json.dumps, actions)))
    os.utime(log, (log.stat().st_mtime - 5400,) * 2)
    (note,) = capture(empty_warehouse).notes
    assert "version 1 of table 't' was read 1:30" in note
    assert "vacuumed after 2:00:00" in note
