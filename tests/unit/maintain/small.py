"""A warehouse of one table and one view that copies it, changed without Spark.

Rows are ``(id, x)``; each commit deletes some and inserts some, in one or both of table and view. What must be there at
every csn is kept in Python.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from rollview.catalog import Definition, Part, Pin, RelationKind, Snapshot
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.publish.step import recorded
from rollview.store.log import DeltaLog
from rollview.store.timed import Stored
from rollview.warehouse import Warehouse

SCHEMA = Schema((Column("id", "bigint"), Column("x", "string")))
HOMES = {"t": "t-" + "a" * 32, "v": "v-" + "b" * 32}

Row = tuple[int, str]
Bag = Counter[Row]


def no_spark() -> Any:
    raise AssertionError("this needs no Spark")


@dataclass
class Small:
    warehouse: Warehouse
    states: list[Bag] = field(default_factory=lambda: [Counter()])

    @classmethod
    def founded(cls, root: Path, properties: dict[str, str] | None = None, catalog: str | None = None) -> Small:
        warehouse = Warehouse.create(root, catalog)
        small = cls(warehouse)
        with warehouse.catalog.write() as writer:
            writer.add_relation("t", RelationKind.TABLE, SCHEMA, Constraints(), None, (), HOMES["t"])
            definition = Definition("SELECT id, x FROM t", (), None, properties or {}, {})
            writer.add_relation("v", RelationKind.VIEW, SCHEMA, Constraints(), definition, ("t",), HOMES["v"])
            for name, first in (("t", Part.STATE), ("v", Part.EXTENT)):
                for part in (first, Part.DELTA):
                    version = small.stored(name).folder(part).commit(None, (), (), {})
                    writer.pin(name, Pin(part, version, 0, 0, 0))
        return small

    def copied(self, root: Path) -> Small:
        """The same warehouse once more, in another place."""
        self.warehouse.close()
        shutil.copytree(self.warehouse.root, root)
        return Small(Warehouse.open(root), list(self.states))

    @property
    def data(self) -> Path:
        return self.warehouse.root / "data"

    @property
    def csn(self) -> int:
        return len(self.states) - 1

    def stored(self, name: str, snapshot: Snapshot | None = None) -> Stored:
        found = (snapshot or self.warehouse.snapshot()).find(name)
        pins = {} if found is None else {part.value: pin for part, pin in found.pins.items()}
        return Stored(name, SCHEMA, self.data / HOMES[name], pins)

    def pin(self, name: str, part: Part) -> Pin:
        return self.warehouse.snapshot().get(name).pins[part]

    def commit(self, gone: Iterable[Row], come: Iterable[Row]) -> None:
        """A transaction on the table."""
        rows = [(*row, -1) for row in gone] + [(*row, 1) for row in come]
        csn, catalog = self.csn + 1, self.warehouse.catalog
        with catalog.lease("commit", "relation:t") as lease:
            pin = self._append(catalog.snapshot(), "t", [(*row, csn) for row in rows], csn)
            with catalog.write(lease) as writer:
                at = datetime.now(UTC)
                counts = ("t", sum(r[2] > 0 for r in rows), sum(r[2] < 0 for r in rows), None)
                writer.commit_unit(
                    source="local",
                    position=str(csn),
                    transaction=str(csn),
                    source_time=at,
                    changes=[counts],
                    expect=csn,
                )
                writer.pin("t", pin)
        after = Counter(self.states[-1])
        for *row, count in rows:
            after[tuple(row)] += count  # type: ignore[index]
        self.states.append(+after)

    def refresh(self) -> None:
        """The view to the newest csn: its delta by one file, its extent by another."""
        catalog, now = self.warehouse.catalog, self.warehouse.snapshot()
        mark = now.get("v").pins[Part.DELTA].through
        changes = [
            (*row, count, csn)
            for csn in range(mark + 1, self.csn + 1)
            for row, count in _difference(self.states[csn - 1], self.states[csn])
        ]
        with catalog.lease("relation:v") as lease:
            folder = self.stored("v", now).folder(Part.EXTENT)
            names = (folder.new_folder(), folder.new_folder())
            paths = (f"{HOMES['v']}/delta/{names[0]}", f"{HOMES['v']}/extent/{names[1]}")
            interval = Interval(mark, self.csn)
            with recorded(catalog, lease, self.data, "v", "apply", interval, paths) as step:
                delta = self._append(now, "v", changes, self.csn, names[0])
                old = now.get("v").pins[Part.EXTENT]
                fresh = folder.stage(_table(list(self.states[-1].elements()), SCHEMA.names), names[1])
                version = folder.commit(old.version, fresh, folder.files(old.version), {})
                extent = Pin(Part.EXTENT, version, self.csn, self.csn, sum(file.rows for file in fresh))
                with catalog.write(lease) as writer:
                    writer.pin("v", delta)
                    writer.pin("v", extent)
                    writer.finish_step(step.id, "done")

    def live(self, name: str, part: Part) -> int:
        return len(self.stored(name).files(part))

    def check(self) -> None:
        """Both relations at every csn in reach, by state and delta added up in Python."""
        DeltaLog._known.clear()
        for name in ("t", "v"):
            csns = self.reachable(name)
            for csn, rows in zip(csns, self.rows(name, *csns), strict=True):
                assert rows == self.states[csn], (name, csn)

    def reachable(self, name: str) -> list[int]:
        relation = self.warehouse.snapshot().get(name)
        end = self.csn if name == "t" else relation.pins[Part.DELTA].through
        csns = range(relation.pins[Part.DELTA].after, end + 1)
        return [csn for csn in csns if not any(stretch.strictly_inside(csn) for stretch in relation.coarse)]

    def rows(self, name: str, *csns: int) -> list[Bag]:
        stored, after = self.stored(name), self.pin(name, Part.DELTA).after
        state, delta = self._part(name, stored.snapshot_part), self._part(name, "delta")
        assert name == "v" or all(abs(row[-2]) == 1 for row in delta), "a table's changes are one row for each copy"
        kept = [row for row in delta if row[-1] > after]
        return [_rows_at(state, stored.snapshot_csn, kept, csn) for csn in csns]

    def _part(self, name: str, part: str) -> list[Any]:
        """As any Delta reader sees the pinned version."""
        stored = self.stored(name)
        data = DeltaTable(stored.root / part, version=stored.pins[part].version).to_pyarrow_table()
        return list(zip(*(column.to_pylist() for column in data.columns), strict=True))

    def _append(self, now: Snapshot, name: str, rows: list[Any], through: int, place: str | None = None) -> Pin:
        folder, pin = self.stored(name, now).folder("delta"), now.get(name).pins[Part.DELTA]
        files = folder.stage(_table(rows, folder.schema.names), place or folder.new_folder()) if rows else ()
        version = folder.commit(pin.version, files, (), {})
        return Pin(Part.DELTA, version, pin.after, through, pin.rows + len(rows))


def _rows_at(state: list[Any], at: int, delta: list[Any], csn: int) -> Bag:
    rows: Bag = Counter(state)
    for *row, count, when in delta:
        rows[tuple(row)] += count if at < when <= csn else -count if csn < when <= at else 0  # type: ignore[index]
    assert all(count >= 0 for count in rows.values()), (csn, rows)
    return +rows


def _table(rows: list[Any], names: tuple[str, ...]) -> pa.Table:
    types = {"x": pa.string()}
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    return pa.table([pa.array(c, types.get(n, pa.int64())) for c, n in zip(columns, names, strict=True)], list(names))


def _difference(before: Bag, after: Bag) -> list[tuple[Row, int]]:
    return [(row, after[row] - before[row]) for row in {**before, **after} if after[row] != before[row]]
