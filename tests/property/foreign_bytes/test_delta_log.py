"""Logs of Delta tables, changed a little: a named state, or no wrong row."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from rollview.core.schema import Column, Schema
from rollview.errors import RollviewError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.boundary import named
from rollview.sources.delta.source import DeltaSource
from rollview.sources.protocol import Opening, SourceTable, UnitOfWork
from rollview.sources.values import as_rows
from tests.property.foreign import chances, changed, parts


@parts("delta")
def test_delta_log(part: int, tmp_path: Path) -> None:
    lake, fresh = tmp_path / "lake", tmp_path / "fresh"
    write_deltalake(fresh / "t", pa.table({"id": pa.array([1, 2], pa.int32()), "w": ["a", "b"]}))
    write_deltalake(fresh / "t", pa.table({"id": pa.array([3], pa.int32()), "w": ["c"]}), mode="append")
    table = SourceTable("t", Schema((Column("id", "int"), Column("w", "string"))))
    settings = SourceSettings("delta", str(lake), (TableSettings("t", "t"),))
    shutil.copytree(fresh, lake)
    log = lake / "t" / "_delta_log" / f"{1:020d}.json"
    good = log.read_bytes()
    with DeltaIds(settings, lake, table) as ids:
        for chance in chances("delta", part):
            data = changed(chance, good)
            log.write_bytes(data)
            units: Sequence[UnitOfWork] = ()
            with suppress(RollviewError), named("s"):
                source = DeltaSource(Opening("s", settings, str(lake), {"tag": "t", "ids": ids}, {"t": table}))
                units = source.read("0", 100).units
            for unit in units:
                for change in unit.changes.values():
                    assert set(as_rows(change.after)) <= {(3, "c")}, data
                    assert set(as_rows(change.before)) <= {(1, "a"), (2, "b")}, data


class DeltaIds:
    """What a source remembers of its tables."""

    def __init__(self, settings: SourceSettings, lake: Path, table: SourceTable) -> None:
        source = DeltaSource(Opening("s", settings, str(lake), {"tag": "t"}, {"t": table}))
        with source.first_copy() as copy:
            self.ids = copy.memory["ids"]

    def __enter__(self) -> Mapping[str, str]:
        return self.ids

    def __exit__(self, *_: object) -> None: ...
