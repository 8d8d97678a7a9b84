"""Commits over Arrow data, read back by a plain Delta reader."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt, EnvironmentFault
from rollview.store import BUCKET, Buckets, DataFile, DeltaFolder
from rollview.store.log import DeltaLog

SCHEMA = Schema((Column("id", "bigint"), Column("a b", "string")))


@pytest.fixture
def folder(tmp_path: Path) -> DeltaFolder:
    return DeltaFolder(tmp_path / "state", SCHEMA)


def stage(folder: DeltaFolder, *ids: int) -> tuple[DataFile, ...]:
    return folder.stage(pa.table({"id": pa.array(ids, pa.int64()), "a b": [f"x{i}" for i in ids]}), folder.new_folder())


def seen(folder: DeltaFolder, version: int | None = None) -> list[int]:
    """What a Delta reader that knows nothing of rollview finds."""
    return sorted(DeltaTable(folder.root, version=version).to_pyarrow_table()["id"].to_pylist())


def forget() -> None:
    DeltaLog._known.clear()


def test_staged_rows_are_in_no_version_until_they_are_committed(folder: DeltaFolder) -> None:
    first = folder.commit(None, stage(folder, 1, 2), (), {})
    stage(folder, 3)
    assert seen(folder) == [1, 2]
    assert [file.rows for file in folder.files(first)] == [2]


def test_a_commit_adds_and_removes_files_in_one_version(folder: DeltaFolder) -> None:
    old, kept = stage(folder, 1), stage(folder, 2)
    first = folder.commit(None, old + kept, (), {})
    second = folder.commit(first, stage(folder, 3), old, {})
    assert (first, second) == (0, 1)
    assert (seen(folder, first), seen(folder, second)) == ([1, 2], [2, 3])


def test_a_table_may_start_empty_and_become_empty(folder: DeltaFolder) -> None:
    first = folder.commit(None, (), (), {})
    assert (folder.files(first), seen(folder)) == ((), [])
    files = stage(folder, 1)
    second = folder.commit(first, files, (), {})
    third = folder.commit(second, (), files, {})
    assert (seen(folder, second), seen(folder, third)) == ([1], [])


def test_files_are_listed_from_the_log_as_they_were_staged(folder: DeltaFolder) -> None:
    files = stage(folder, 5, 3)
    version = folder.commit(None, files, (), {})
    forget()
    assert folder.files(version) == files
    assert files[0].stats == {"id": (3, 5), "a%20b": ("x3", "x5")}
    assert files[0].nulls == {"id": 0, "a%20b": 0}


def test_a_version_that_was_never_pinned_is_undone_by_the_next_commit(folder: DeltaFolder) -> None:
    kept = stage(folder, 1)
    pinned = folder.commit(None, kept, (), {})
    folder.commit(pinned, stage(folder, 2), kept, {})
    folder.commit(pinned, stage(folder, 3), (), {})
    forget()
    version = folder.commit(pinned, stage(folder, 4), (), {})
    assert seen(folder, version) == [1, 4]
    assert seen(folder, pinned) == [1]


def test_a_table_whose_creation_was_never_pinned_is_taken_over(folder: DeltaFolder) -> None:
    folder.commit(None, stage(folder, 1), (), {})
    version = folder.commit(None, stage(folder, 2), (), {})
    assert seen(folder, version) == [2]


def test_a_commit_without_a_difference_returns_a_version_that_has_these_files(folder: DeltaFolder) -> None:
    pinned = folder.commit(None, stage(folder, 1), (), {})
    assert folder.commit(pinned, (), (), {}) == pinned
    folder.commit(pinned, stage(folder, 2), (), {})
    again = folder.commit(pinned, (), (), {})
    assert seen(folder, again) == [1]


def test_the_same_files_committed_twice_are_there_once(folder: DeltaFolder) -> None:
    base = folder.commit(None, (), (), {})
    files = stage(folder, 1)
    folder.commit(base, files, (), {})
    assert seen(folder, folder.commit(base, files, (), {})) == [1]


def test_a_file_that_the_base_does_not_have_cannot_be_removed(folder: DeltaFolder) -> None:
    base = folder.commit(None, stage(folder, 1), (), {})
    with pytest.raises(Corrupt, match="no file"):
        folder.commit(base, (), stage(folder, 2), {})


def test_concurrent_committers_each_get_a_version_with_exactly_their_files(folder: DeltaFolder) -> None:
    base = folder.commit(None, stage(folder, 0), (), {})
    staged = [stage(folder, i) for i in range(1, 9)]
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda files: folder.commit(base, files, (), {}), staged))
    assert len(set(versions)) == len(versions)
    forget()
    assert [seen(folder, v) for v in versions] == [[0, i] for i in range(1, 9)]


def test_concurrent_creators_of_one_table_each_get_a_version(folder: DeltaFolder) -> None:
    staged = [stage(folder, i) for i in range(4)]
    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(lambda files: folder.commit(None, files, (), {}), staged))
    assert [seen(folder, v) for v in versions] == [[i] for i in range(4)]


def test_rows_that_are_none_leave_no_file(folder: DeltaFolder) -> None:
    assert stage(folder) == ()
    assert [path.name for path in folder.root.iterdir()] == []


def test_the_note_is_in_the_history(folder: DeltaFolder) -> None:
    folder.commit(None, stage(folder, 1), (), {"interval": "(3, 4]"})
    assert DeltaTable(folder.root).history()[0]["rollview.interval"] == "(3, 4]"


def test_discarded_files_are_gone(folder: DeltaFolder) -> None:
    name = folder.new_folder()
    folder.stage(pa.table({"id": [1], "a b": ["x"]}), name)
    folder.discard(name)
    assert not (folder.root / name).exists()


@pytest.mark.parametrize("name", ["", "..", "s-1", "../s-" + "0" * 32, "s-" + "0" * 32 + "/..", "_delta_log"])
def test_only_a_staging_folder_can_be_discarded(folder: DeltaFolder, name: str) -> None:
    with pytest.raises(ValueError, match="not a staging folder"):
        folder.discard(name)


def test_a_table_that_knows_its_buckets_is_split_into_one_file_each(folder: DeltaFolder) -> None:
    table = pa.table({"id": [3, 1, 2], "a b": ["x", "y", None], BUCKET: pa.array([1, 0, 1], pa.int32())})
    files = folder.stage(table, folder.new_folder(), buckets=Buckets(("id",), 2), sort=("id",))
    assert {file.bucket: file.rows for file in files} == {0: 1, 1: 2}
    version = folder.commit(None, files, (), {})
    assert seen(folder, version) == [1, 2, 3]


def test_bounds_that_would_not_be_true_are_absent(tmp_path: Path) -> None:
    schema = Schema(tuple(Column(t, t) for t in ("double", "string", "decimal(38,2)", "binary", "int", "date")))
    table = pa.table(
        {
            "double": [float("nan"), 1.0],
            "string": ["a" * 33, "b"],
            "decimal(38,2)": pa.array([1, 2], pa.decimal128(38, 2)),
            "binary": [b"a", b"\xff"],
            "int": pa.array([None, None], pa.int32()),
            "date": pa.array([0, None], pa.date32()),
        }
    )
    folder = DeltaFolder(tmp_path, schema)
    (file,) = folder.stage(table, folder.new_folder())
    assert set(file.stats) == {"date"}
    assert file.nulls["int"] == 2
    version = folder.commit(None, (file,), (), {})
    forget()
    assert folder.files(version) == (file,)


@pytest.mark.parametrize(
    "path",
    [
        "../x.parquet", "/etc/passwd", "a/../../x.parquet", "./x", "a//b", "file:///etc/passwd", "s3://b/k", "a%2Fb",
        "%2e%2e/x", "a b", "x\n", "..", "", "a\\b", ".hidden", "é.parquet",
    ],
)  # fmt: skip
def test_a_log_that_names_a_file_elsewhere_is_corrupt(folder: DeltaFolder, path: str) -> None:
    version = folder.commit(None, stage(folder, 1), (), {})
    edit_added(folder, version, {"path": path})
    forget()
    with pytest.raises(Corrupt):
        folder.files(version)


def test_a_symbolic_link_out_of_the_folder_is_corrupt(folder: DeltaFolder, tmp_path: Path) -> None:
    (file,) = stage(folder, 1)
    place = folder.root / file.path
    place.rename(tmp_path / "outside.parquet")
    place.symlink_to(tmp_path / "outside.parquet")
    with pytest.raises(Corrupt, match="leads out"):
        folder.read(None, (file,))  # type: ignore[arg-type]


def test_a_missing_version_is_corrupt(folder: DeltaFolder) -> None:
    folder.commit(None, stage(folder, 1), (), {})
    with pytest.raises(Corrupt, match="no readable version 7"):
        folder.files(7)


def test_a_root_that_delta_readers_would_decode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="Delta readers"):
        DeltaFolder(tmp_path / "my%20folder", SCHEMA)


@pytest.mark.parametrize("name", ["sp ace", "quo'te\"", "[a]{b}*?", "ünï#code", "a:b", "100%"])
def test_a_warehouse_may_be_in_an_oddly_named_folder(tmp_path: Path, name: str) -> None:
    folder = DeltaFolder(tmp_path / name, SCHEMA)
    first = folder.commit(None, stage(folder, 1), (), {})
    version = folder.commit(first, stage(folder, 2), (), {})
    forget()
    assert sum(file.rows for file in folder.files(version)) == 2


def test_a_full_disk_is_an_error_that_says_so(folder: DeltaFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rollview.store.parquet.pq.write_table", full)
    with pytest.raises(EnvironmentFault, match="No space left"):
        stage(folder, 1)


def edit_added(folder: DeltaFolder, version: int, changed: dict[str, Any]) -> None:
    log = folder.root / "_delta_log" / f"{version:020d}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).update(changed if "add" in line else {})
    log.write_text("\n".join(json.dumps(line) for line in lines))
