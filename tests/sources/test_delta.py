"""What is special about Delta tables: versions, partitions, rewrites, and files that are vacuumed."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import capture, stored


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def settings(lake: Path) -> SourceSettings:
    return SourceSettings("delta", str(lake), (TableSettings("t", "t"),))


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    numbers, words = zip(*pairs, strict=True)
    return pa.table({"n": pa.array(numbers, pa.int64()), "w": pa.array(words, pa.string())})


def test_every_version_of_a_partitioned_table(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a"), (2, "b c/=%")), partition_by=["w"])
    empty_warehouse.add_source("s", settings(lake))
    write_deltalake(lake / "t", rows((3, "a"), (3, None)), mode="append")
    DeltaTable(lake / "t").delete("n = 1")
    DeltaTable(lake / "t").optimize.compact()
    DeltaTable(lake / "t").update(updates={"n": "n + 10"}, predicate="w = 'a'")
    assert capture(empty_warehouse).units == 3
    last = Counter({(2, "b c/=%"): 1, (13, "a"): 1, (3, None): 1})
    assert stored(empty_warehouse, "t") == last
    assert stored(empty_warehouse, "t", 2) == Counter({(1, "a"): 1, (2, "b c/=%"): 1, (3, "a"): 1, (3, None): 1})
    assert stored(empty_warehouse, "t", 3) == Counter({(2, "b c/=%"): 1, (3, "a"): 1, (3, None): 1})
    entries = empty_warehouse.catalog.ledger()
    assert entries[1].transaction == "t@1"
    assert entries[1].source_time <= entries[2].source_time


def test_new_columns_and_wider_types_are_taken(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a")))
    empty_warehouse.add_source("s", settings(lake))
    wider = rows((2, "b")).append_column("x", pa.array([1]))
    write_deltalake(lake / "t", wider, mode="append", schema_mode="merge")
    assert capture(empty_warehouse).notes == ("table 't': x is new; no view is affected",)
    assert stored(empty_warehouse, "t") == Counter({(1, "a", None): 1, (2, "b", 1): 1})
    assert stored(empty_warehouse, "t", 1) == Counter({(1, "a", None): 1})
    narrow = pa.table({"n": ["one"], "w": ["a"], "x": pa.array([3], pa.int32())})
    write_deltalake(lake / "t", narrow, mode="overwrite", schema_mode="overwrite")
    (note,) = capture(empty_warehouse).notes
    assert "n, x; left out here: n, x; no view is affected" in note
    assert stored(empty_warehouse, "t") == Counter({("a", "one", 3): 1})
    # A type that does not hold the old values makes another column.
    assert stored(empty_warehouse, "t", 2) == Counter({("a", None, None): 1, ("b", None, None): 1})


def test_a_type_that_grows_with_all_rows_is_the_same_column(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", pa.table({"n": pa.array([1, 2], pa.int32()), "w": ["a", "b"]}))
    empty_warehouse.add_source("s", settings(lake))
    write_deltalake(lake / "t", pa.table({"n": [1, 2**40], "w": ["a", "c"]}), mode="overwrite", schema_mode="overwrite")
    (note,) = capture(empty_warehouse).notes
    assert "n is bigint now" in note
    assert stored(empty_warehouse, "t") == Counter({(1, "a"): 1, (2**40, "c"): 1})
    assert stored(empty_warehouse, "t", 1) == Counter({(1, "a"): 1, (2, "b"): 1})


def test_values_that_a_table_did_not_show_are_copied(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a")))
    empty_warehouse.add_source("s", settings(lake))
    (file,) = DeltaTable(lake / "t").file_uris()
    path = Path(file.removeprefix("file://"))
    pq.write_table(pq.read_table(path).append_column("x", pa.array([7])), path)
    wider = rows((2, "b")).append_column("x", pa.array([1]))
    write_deltalake(lake / "t", wider, mode="append", schema_mode="merge")
    assert "copied again" in capture(empty_warehouse).notes[0]
    assert stored(empty_warehouse, "t") == Counter({(1, "a", 7): 1, (2, "b", 1): 1})


def test_files_that_were_vacuumed_are_a_lost_position(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a")))
    empty_warehouse.add_source("s", settings(lake))
    write_deltalake(lake / "t", rows((2, "b")), mode="overwrite")
    DeltaTable(lake / "t").vacuum(0, dry_run=False, enforce_retention_duration=False)
    empty_warehouse.capture()
    assert empty_warehouse.sources()[0].state == "lost_position"
    assert empty_warehouse.resnapshot("s").rows == 2
    assert stored(empty_warehouse, "t") == Counter({(2, "b"): 1})


def test_versions_before_one_that_cannot_be_read_are_captured(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a")))
    empty_warehouse.add_source("s", settings(lake))
    write_deltalake(lake / "t", rows((2, "b")), mode="append")
    write_deltalake(lake / "t", rows((3, "c")), mode="append")
    shutil.copytree(lake, lake.parent / "kept")
    write_deltalake(lake / "t", rows((4, "d")), mode="overwrite")
    DeltaTable(lake / "t").vacuum(0, dry_run=False, enforce_retention_duration=False)
    # The files of the two versions are there again; those that the last one wrote are not.
    shutil.copytree(lake.parent / "kept" / "t", lake / "t", dirs_exist_ok=True)
    for added in DeltaTable(lake / "t").file_uris():
        Path(added).unlink()
    empty_warehouse.capture()
    assert empty_warehouse.sources()[0].state == "lost_position"
    assert stored(empty_warehouse, "t") == Counter({(1, "a"): 1, (2, "b"): 1, (3, "c"): 1})


def test_a_table_made_anew_is_its_own_substitute(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a")))
    empty_warehouse.add_source("s", settings(lake))
    shutil.rmtree(lake / "t")
    for number in range(3):
        write_deltalake(lake / "t", rows((number, "z")), mode="append")
    assert "it was made anew" in capture(empty_warehouse).notes[0]
    assert empty_warehouse.sources()[0].state == "active"
    assert stored(empty_warehouse, "t") == Counter({(number, "z"): 1 for number in range(3)})
    assert stored(empty_warehouse, "t", 1) == Counter({(1, "a"): 1})
    write_deltalake(lake / "t", rows((9, "z")), mode="append")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "t")[(9, "z")] == 1


def test_a_table_that_has_gone_back_is_a_lost_position(lake: Path, empty_warehouse: Warehouse) -> None:
    write_deltalake(lake / "t", rows((1, "a")))
    shutil.copytree(lake / "t", lake.parent / "kept")
    write_deltalake(lake / "t", rows((2, "b")), mode="append")
    empty_warehouse.add_source("s", settings(lake))
    shutil.rmtree(lake / "t")
    shutil.copytree(lake.parent / "kept", lake / "t")
    empty_warehouse.capture()
    assert empty_warehouse.sources()[0].state == "lost_position"


def test_what_is_not_read_is_refused(lake: Path, empty_warehouse: Warehouse) -> None:
    settings_of = {"delta.enableDeletionVectors": "true"}
    DeltaTable.create(lake / "t", rows((1, "a")).schema, configuration=settings_of)
    said = [finding.what for finding in empty_warehouse.check_source("s", settings(lake)).findings if finding.blocks]
    assert any("deletionVectors" in what for what in said)
    other = SourceSettings("delta", str(lake), (TableSettings("none", "none"),))
    assert not empty_warehouse.check_source("s", other).ready
