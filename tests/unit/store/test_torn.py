"""The newest Delta commit, of which a loss of power left a part: cut at every length, zeroed from there on, or gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt
from rollview.store import DataFile, DeltaFolder
from rollview.store.log import DeltaLog

Damage = Callable[[bytes, int], bytes]

DAMAGES: dict[str, Damage] = {
    "cut": lambda text, length: text[:length],
    "zeroed": lambda text, length: text[:length] + bytes(len(text) - length),
}


@pytest.fixture
def folder(tmp_path: Path) -> DeltaFolder:
    return DeltaFolder(tmp_path / "extent", Schema((Column("id", "bigint"),)))


def stage(folder: DeltaFolder, *values: int) -> tuple[DataFile, ...]:
    return tuple(file for value in values for file in folder.stage(pa.table({"id": [value]}), folder.new_folder()))


def commits(folder: DeltaFolder) -> tuple[int, int]:
    """Two versions with as many rows as each other: a replacement that is lost leaves nothing that looks odd."""
    first = stage(folder, 1, 2)
    before = folder.commit(None, first, (), {})
    return before, folder.commit(before, stage(folder, 3, 4), first, {"csn": "2"})


def place(folder: DeltaFolder, version: int) -> Path:
    return folder.root / "_delta_log" / f"{version:020d}.json"


def forget() -> None:
    DeltaLog._known.clear()
    DeltaLog._seen.clear()


def lengths(text: bytes) -> Iterator[int]:
    """Of every class: nothing, around the end of each line, here and there in between."""
    ends = [place for place in range(len(text)) if text[place : place + 1] == b"\n"]
    near = {end + off for end in ends for off in (-1, 0, 1, 2)}
    yield from sorted({0, 1, *near, *range(0, len(text), 60), len(text) - 1} & set(range(len(text))))


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_published_commit_that_is_not_whole_is_never_read(folder: DeltaFolder, kind: str) -> None:
    _, version = commits(folder)
    whole, right = place(folder, version).read_bytes(), {file.path for file in folder.files(version)}
    refused: list[Corrupt] = []
    for length in lengths(whole):
        place(folder, version).write_bytes(DAMAGES[kind](whole, length))
        forget()
        try:
            assert {file.path for file in folder.files(version)} == right, f"{kind} at {length} of {len(whole)}"
        except Corrupt as error:
            refused.append(error)
    assert len(refused) >= len(list(lengths(whole))) - 2, "only the end of the last line can be done without"
    assert all(str(folder.root) in error.message and error.hint for error in refused)


@pytest.mark.parametrize("kind", [*DAMAGES, "missing"])
def test_nothing_is_built_on_a_published_commit_that_is_not_whole(folder: DeltaFolder, kind: str) -> None:
    _, version = commits(folder)
    whole, fresh = place(folder, version).read_bytes(), stage(folder, 5)
    for length in (0,) if kind == "missing" else lengths(whole[:-1]):
        if kind == "missing":
            place(folder, version).unlink()
        else:
            place(folder, version).write_bytes(DAMAGES[kind](whole[:-1], length))
        left = sorted(path.name for path in place(folder, version).parent.iterdir())
        forget()
        with pytest.raises(Corrupt):
            folder.commit(version, fresh, (), {})
        assert sorted(path.name for path in place(folder, version).parent.iterdir()) == left


@pytest.mark.parametrize("kind", [*DAMAGES, "missing"])
def test_a_commit_that_was_never_published_is_written_over(folder: DeltaFolder, kind: str) -> None:
    pinned, torn = commits(folder)
    whole, old = place(folder, torn).read_bytes(), {file.path for file in folder.files(pinned)}
    for length in (0,) if kind == "missing" else lengths(whole):
        for later in range(torn, torn + 3):
            place(folder, later).unlink(missing_ok=True)
        if kind != "missing":
            place(folder, torn).write_bytes(DAMAGES[kind](whole, length))
        forget()
        fresh = stage(folder, 5)
        version = folder.commit(pinned, fresh, (), {})
        forget()
        right = old | {file.path for file in fresh}
        assert {file.path for file in folder.files(version)} == right, f"{kind} at {length} of {len(whole)}"
        assert {file.path for file in folder.files(pinned)} == old
        assert sorted(DeltaTable(folder.root).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 5]


def test_a_checkpoint_that_stands_for_commits_that_are_gone_stays(folder: DeltaFolder) -> None:
    """Torn or not: without it nothing is left, and somebody may still mend it."""
    before, version = commits(folder)
    DeltaTable(folder.root).create_checkpoint()
    checkpoint = place(folder, version).with_suffix(".checkpoint.parquet")
    place(folder, before).unlink()
    forget()
    assert len(folder.files(version)) == 2
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    forget()
    with pytest.raises(Corrupt):
        folder.files(version)
    assert checkpoint.exists()
    checkpoint.write_bytes(whole)
    forget()
    assert len(folder.files(version)) == 2


def test_a_log_that_an_older_rollview_wrote_is_read(folder: DeltaFolder) -> None:
    _, version = commits(folder)
    text = place(folder, version).read_text()
    place(folder, version).write_text(text.replace("rollview.files", "rollview.other"))
    forget()
    assert len(folder.files(version)) == 2
