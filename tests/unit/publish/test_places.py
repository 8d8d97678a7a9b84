"""A transaction that is given up after its first Delta log was written leaves nothing that a reader would look for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.unit.maintain.small import HOMES, Small

from rollview.catalog import Part
from rollview.errors import EnvironmentFault
from rollview.publish import recover
from rollview.publish.places import Places


def logged(small: Small) -> tuple[Places, Path]:
    """A transaction whose rows are in a version that nobody pinned."""
    places = Places(small.warehouse.catalog, small.data, small.csn)
    place = places.reserve(small.warehouse.snapshot().get("t"))
    folder = small.stored("t").folder(Part.DELTA)
    rows = pa.table({"id": [9], "x": ["z"], "_count": [1], "_csn": [small.csn + 1]})
    folder.commit(small.pin("t", Part.DELTA).version, folder.stage(rows, place), (), {})
    return places, folder.root / place


def test_who_reads_the_newest_version_finds_its_files(tmp_path: Path) -> None:
    small = Small.founded(tmp_path / "shop")
    small.commit([], [(1, "a")])
    places, place = logged(small)
    places.give_up()
    assert not place.exists()
    newest = DeltaTable(small.data / HOMES["t"] / Part.DELTA).to_pyarrow_table()
    assert newest["id"].to_pylist() == [1]
    assert small.warehouse.catalog.steps(status="running") == ()


def test_what_cannot_be_taken_away_keeps_its_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Small.founded(tmp_path / "shop")
    small.commit([], [(1, "a")])
    places, place = logged(small)

    def fail(*_: object) -> None:
        raise EnvironmentFault("The disk is gone.")

    with monkeypatch.context() as patch:
        patch.setattr(recover, "discard", fail)
        places.give_up()
    assert place.exists()
    (step,) = small.warehouse.catalog.steps(status="running")
    assert any(place.name in folder for folder in step.folders)
    places.give_up()
    assert not place.exists()
    assert small.warehouse.catalog.steps(status="running") == ()
