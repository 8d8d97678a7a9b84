"""What a refresh told of groups on the way is written together with the extent."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.propagate.world import FACTS, KX, SUMMED

from rollview.apply.plan import ApplyStep
from rollview.apply.run import log_apply
from rollview.catalog import Definition, Part, Pin, RelationKind
from rollview.core.schema import Column, Constraints, Schema
from rollview.engine.meter import Meter
from rollview.relations.ahead import Ahead
from rollview.relations.reader import Reader
from rollview.types.arrow import arrow_type
from rollview.warehouse import Warehouse


@pytest.mark.parametrize(("csn", "parts"), [(1, [Part.EXTENT, Part.GROUPS]), (2, [Part.EXTENT])])
def test_groups_that_were_told_ahead_are_written_with_the_extent(tmp_path: Path, csn: int, parts: list[Part]) -> None:
    warehouse, sums = Warehouse.create(tmp_path / "w"), Schema((Column("k", "bigint"), Column("s", "bigint")))
    with warehouse.catalog.write() as writer:
        writer.add_relation("t", RelationKind.TABLE, KX, Constraints(), None, (), "t-" + "a" * 32)
        definition = Definition(SUMMED, (), None, {}, FACTS)
        writer.add_relation("sums", RelationKind.VIEW, sums, Constraints(), definition, ("t",), "v-" + "b" * 32)
    reader = Reader(None, warehouse.root / "data", warehouse.snapshot())  # type: ignore[arg-type]
    stored = reader.stored("sums")
    with warehouse.catalog.write() as writer:
        for part in (Part.EXTENT, Part.DELTA, Part.GROUPS):
            writer.pin("sums", Pin(part, stored.folder(part).commit(None, (), (), {}), 0, 0, 0))
    reader = Reader(None, warehouse.root / "data", warehouse.snapshot())  # type: ignore[arg-type]

    def one_row(schema: Schema) -> pa.Table:
        return pa.table({column.name: pa.array([1], arrow_type(column.type, column.name)) for column in schema})

    hidden = reader.plan("sums").hidden
    assert hidden is not None
    ahead = Ahead(1, one_row(hidden), one_row(sums))
    step = ApplyStep("sums", 0, csn, 2 - csn, by_bucket=False, fold_groups=False)
    with warehouse.catalog.lease("relation:sums") as lease:
        opened = log_apply(reader, warehouse.catalog, lease, step, Meter(), ahead)
        opened.running.give_up()
    assert [shown.logged.part for shown in opened.shown] == parts
