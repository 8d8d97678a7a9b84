"""Batches as files: named by their interval, there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.unit.maintain.small import Small
from tests.unit.maintain.test_maintain import grow
from tests.unit.subscribers.consumer import Consumer, told

from rollview import subscribers
from rollview.errors import EnvironmentFault, UsageError
from rollview.subscribers.files import FileSink


def files(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir())


def batches(folder: Path) -> Iterator[tuple[Path, int, int, bool]]:
    """As another program reads them: the rows, then one interval after the other."""
    newest = sorted(folder.iterdir())[-1]
    (first,) = newest.glob("rows-*.parquet")
    at = int(first.stem.removeprefix("rows-"))
    yield first, at, at, True
    while found := list(newest.glob(f"{at:020d}-*.parquet")):
        (place,) = found
        after, at = at, int(place.stem.split("-")[1])
        yield place, after, at, False


def check(grown: Small, folder: Path) -> Consumer:
    consumer = Consumer()
    for place, after, through, full in batches(folder):
        rows = pq.read_table(place)
        consumer.take(told(rows), after, through, full=full)
        assert consumer.rows == grown.states[through], place
    assert not [place for place in folder.rglob("*") if place.name.startswith(".")]
    return consumer


def test_every_interval_is_a_file_and_tells_what_it_is(grown: Small, tmp_path: Path) -> None:
    grown.warehouse.add_subscriber("x", "v", to=str(tmp_path / "out"))
    (done,) = grown.warehouse.deliver().subscribers
    assert (done.position, done.batches, done.problem) == (12, 2, None)
    assert check(grown, tmp_path / "out").csn == 12
    grow(grown, 2, seed=3)
    grown.warehouse.deliver(["x"])
    assert check(grown, tmp_path / "out").csns == [0, 12, 14]
    (home,) = (tmp_path / "out").iterdir()
    assert files(home) == [f"{0:020d}-{12:020d}.parquet", f"{12:020d}-{14:020d}.parquet", f"rows-{0:020d}.parquet"]
    about = pq.read_schema(home / f"{12:020d}-{14:020d}.parquet").metadata
    assert about[b"rollview.subscriber"] == b"x"
    assert (about[b"rollview.after"], about[b"rollview.through"]) == (b"12", b"14")


def test_what_is_there_is_believed_and_not_written_again(grown: Small, tmp_path: Path) -> None:
    wh, out = grown.warehouse, tmp_path / "out"
    wh.add_subscriber("x", "v", to=str(out))
    sink = FileSink("x", out)
    rows = subscribers.pull(wh._place, "x")
    assert rows is not None
    sink.put(rows)
    (home,) = out.iterdir()
    before = (home / f"rows-{0:020d}.parquet").stat().st_mtime_ns
    assert wh.deliver().subscribers[0].batches == 1
    assert (home / f"rows-{0:020d}.parquet").stat().st_mtime_ns == before
    assert check(grown, out).csn == 12


def test_a_half_written_file_is_nothing(grown: Small, tmp_path: Path) -> None:
    wh, out = grown.warehouse, tmp_path / "out"
    wh.add_subscriber("x", "v", to=str(out))
    home = out / wh.catalog.subscriber("x").token
    home.mkdir(parents=True)
    (home / f".rows-{0:020d}.new").write_bytes(b"half")
    wh.deliver()
    assert check(grown, out).csn == 12


def test_what_is_begun_anew_is_in_a_folder_of_its_own_that_sorts_last(grown: Small, tmp_path: Path) -> None:
    wh, out = grown.warehouse, tmp_path / "out"
    wh.add_subscriber("x", "v", to=str(out))
    wh.deliver()
    (old,) = out.iterdir()
    wh.resync_subscriber("x")
    wh.deliver()
    assert len(list(out.iterdir())) == 2
    assert sorted(out.iterdir())[0] == old
    assert check(grown, out).csns == [12]


def test_a_folder_that_cannot_be_written_is_told_and_tried_again(grown: Small, tmp_path: Path) -> None:
    wh, out = grown.warehouse, tmp_path / "out"
    wh.add_subscriber("x", "v", to=str(out))
    out.write_text("no folder")
    (done,) = wh.deliver().subscribers
    assert done.problem is not None
    assert "Cannot use the disk" in done.problem
    assert wh.subscribers("x")[0].state == "failing"
    out.unlink()
    wh.deliver()
    assert wh.subscribers("x")[0].state == "ok"
    assert check(grown, out).csn == 12


def test_an_address_is_stored_from_anywhere_and_without_a_secret(
    grown: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert grown.warehouse.add_subscriber("x", "v", to="out").to == str(tmp_path / "out")
    with pytest.raises(UsageError, match="holds a secret") as told_why:
        grown.warehouse.add_subscriber("y", "v", to="https://me:hush@example.org/changes")
    assert "hush" not in str(told_why.value.to_json())
    with pytest.raises(UsageError, match="cannot be understood"):
        grown.warehouse.add_subscriber("y", "v", to="ftp://example.org")
    monkeypatch.setenv("PLACE", str(tmp_path / "elsewhere"))
    assert grown.warehouse.add_subscriber("z", "v", to="env:PLACE").to == "env:PLACE"
    grown.warehouse.deliver()
    assert check(grown, tmp_path / "elsewhere").csn == 12


def test_who_pulls_is_not_delivered_to(grown: Small) -> None:
    grown.warehouse.add_subscriber("x", "v")
    assert grown.warehouse.deliver().subscribers == ()
    with pytest.raises(UsageError, match="it pulls"):
        grown.warehouse.deliver(["x"])


def test_the_disk_is_named_when_it_fails(grown: Small) -> None:
    batch_of = FileSink("x", Path("/proc/none"))
    grown.warehouse.add_subscriber("x", "v")
    batch = grown.warehouse.pull("x")
    assert batch is not None
    with pytest.raises(EnvironmentFault, match="/proc/none"):
        batch_of.put(batch)
