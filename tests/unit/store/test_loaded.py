"""Small files are read once, and never instead of what is there now."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt
from rollview.store import DataFile, DeltaFolder, folder
from rollview.store.datafile import safe_places
from rollview.store.loaded import SMALL_FILE, LoadedFiles

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


class Reads:
    def __init__(self, rows: pa.Table = ROWS) -> None:
        self.rows, self.times = rows, 0

    def __call__(self) -> pa.Table:
        self.times += 1
        return self.rows


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    return tmp_path / "a.parquet"


def test_a_small_file_is_read_once(place: Path) -> None:
    kept, read = LoadedFiles(), Reads()
    assert [kept.rows(place, "as it is", read).num_rows for _ in range(3)] == [2, 2, 2]
    assert read.times == 1


def test_other_columns_of_the_same_file_are_read_anew(place: Path) -> None:
    kept, read = LoadedFiles(), Reads()
    kept.rows(place, "as it is", read)
    kept.rows(place, "with one more", read)
    assert read.times == 2


def test_a_large_file_is_read_each_time(tmp_path: Path) -> None:
    large, kept, read = tmp_path / "large", LoadedFiles(), Reads()
    large.write_bytes(bytes(SMALL_FILE + 1))
    for _ in range(2):
        kept.rows(large, None, read)
    assert read.times == 2


def test_no_more_is_kept_than_was_said(tmp_path: Path) -> None:
    kept, read = LoadedFiles(most=3 * 2_100), Reads()
    places = [tmp_path / str(number) for number in range(5)]
    for one in places:
        one.write_bytes(b"x")
        kept.rows(one, None, read)
    assert kept._bytes <= 3 * 2_100
    kept.rows(places[-1], None, read)
    assert read.times == 5
    kept.rows(places[0], None, read)
    assert read.times == 6


def test_a_file_that_was_damaged_or_taken_away_is_told_although_it_was_read_before(tmp_path: Path) -> None:
    folder = DeltaFolder(tmp_path / "state", Schema((Column("id", "bigint"),)))
    (file,) = folder.stage(ROWS, folder.new_folder())
    assert folder.load([file]).num_rows == 2
    (folder.root / file.path).write_bytes(b"PAR1 nothing")
    with pytest.raises(Corrupt):
        folder.load([file])
    (folder.root / file.path).unlink()
    with pytest.raises(Corrupt):
        folder.load([file])


def test_paths_are_proven_where_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = DeltaFolder(tmp_path / "state", Schema((Column("id", "bigint"),)))
    files = [file for _ in range(3) for file in stored.stage(ROWS, stored.new_folder())]
    proven: list[DataFile] = []

    def noting(root: Path, some: tuple[DataFile, ...]) -> list[Path]:
        proven.extend(some)
        return safe_places(root, some)

    monkeypatch.setattr(folder, "safe_places", noting)
    assert stored.load(files[:2]).num_rows == 4
    assert stored.load(files).num_rows == 6
    assert proven == files, "each of them once, before it was read"


def test_a_link_out_of_the_folder_is_refused_although_what_it_names_was_read_before(tmp_path: Path) -> None:
    schema = Schema((Column("id", "bigint"),))
    other, own = DeltaFolder(tmp_path / "other", schema), DeltaFolder(tmp_path / "own", schema)
    place = other.new_folder()
    (file,) = other.stage(ROWS, place)
    other.load([file])
    own.root.mkdir()
    (own.root / place).symlink_to(other.root / place, target_is_directory=True)
    with pytest.raises(Corrupt, match="leads out of its folder"):
        own.load([file])
