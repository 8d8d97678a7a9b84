"""What a loss of power leaves in a Delta log."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt
from rollview.store import DataFile, DeltaFolder, repair
from rollview.store.log import DeltaLog


@pytest.fixture
def folder(tmp_path: Path) -> DeltaFolder:
    return DeltaFolder(tmp_path / "delta", Schema((Column("id", "bigint"),)))


def stage(folder: DeltaFolder, value: int) -> tuple[DataFile, ...]:
    return folder.stage(pa.table({"id": [value]}), folder.new_folder())


def cut(path: Path, length: int | None) -> None:
    path.write_bytes(path.read_bytes()[:length] if length is not None else bytes(path.stat().st_size))
    DeltaLog._known.clear()


def log(folder: DeltaFolder, name: str) -> Path:
    return folder.root / "_delta_log" / name


@pytest.mark.parametrize("length", [0, 1, 50, 300, -1, None])
@pytest.mark.parametrize("pinned", [None, 0])
def test_a_cut_commit_that_was_never_pinned_goes_away(
    folder: DeltaFolder, length: int | None, pinned: int | None
) -> None:
    version = -1
    if pinned is not None:
        version = folder.commit(None, stage(folder, 1), (), {})
    torn = folder.commit(pinned, stage(folder, 2), (), {})
    cut(log(folder, f"{torn:020d}.json"), length)
    again = folder.commit(pinned, stage(folder, 3), (), {})
    assert again == version + 1
    values = sorted(DeltaTable(folder.root).to_pyarrow_table()["id"].to_pylist())
    assert values == ([3] if pinned is None else [1, 3])


def test_a_cut_commit_that_was_pinned_stays_and_is_corrupt(folder: DeltaFolder) -> None:
    pinned = folder.commit(None, stage(folder, 1), (), {})
    cut(log(folder, f"{pinned:020d}.json"), 40)
    with pytest.raises(Corrupt):
        folder.commit(pinned, stage(folder, 2), (), {})
    assert log(folder, f"{pinned:020d}.json").exists()


def test_only_commits_above_the_pinned_one_go(tmp_path: Path) -> None:
    for version, text in enumerate(["{", '{"a": 1}', "{", "", '{"b"']):
        (tmp_path / f"{version:020d}.json").write_text(text)
    repair.drop_torn_commits(tmp_path, keep=2)
    assert sorted(int(path.stem) for path in tmp_path.iterdir()) == [0, 1, 2]
    repair.drop_torn_commits(tmp_path, keep=-1)
    assert sorted(int(path.stem) for path in tmp_path.iterdir()) == [0, 1]


@pytest.mark.parametrize("length", [0, 100, None])
@pytest.mark.parametrize("name", ["00000000000000000002.checkpoint.parquet", "_last_checkpoint"])
def test_a_cut_checkpoint_changes_nothing(folder: DeltaFolder, name: str, length: int | None) -> None:
    version: int | None = None
    for value in range(3):
        version = folder.commit(version, stage(folder, value), (), {})
    DeltaTable(folder.root).create_checkpoint()
    version = folder.commit(version, stage(folder, 3), (), {})
    cut(log(folder, name), length)
    assert [len(folder.files(v)) for v in range(4)] == [1, 2, 3, 4]
    version = folder.commit(version, stage(folder, 4), (), {})
    assert len(folder.files(version)) == 5


def test_a_long_log_has_checkpoints_and_keeps_every_version(folder: DeltaFolder) -> None:
    version = folder.commit(None, (), (), {})
    files: tuple[DataFile, ...] = ()
    for value in range(104):
        fresh = stage(folder, value)
        version = folder.commit(version, fresh, files, {})
        files = fresh
    DeltaLog._known.clear()
    assert len(list((folder.root / "_delta_log").glob("*.checkpoint.parquet"))) == 2
    assert [file.stats["id"] for v in (1, 52, 104) for file in folder.files(v)] == [(0, 0), (51, 51), (103, 103)]
