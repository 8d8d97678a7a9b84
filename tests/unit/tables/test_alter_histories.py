"""Random histories of commits and of changes of columns, read at every csn without Spark.

The oracle knows rows by the ids that columns were born with: what a column is called, and what it is called in files,
does not matter to it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp
from tests.sizes import times

from rollview.algebra.resolve import resolve
from rollview.algebra.text import parse_one
from rollview.catalog import Catalog, Part, Pin, RelationKind
from rollview.core.names import COUNT, CSN
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import OutOfReach, SqlError, UsageError
from rollview.publish.following import NobodyFollows
from rollview.publish.merge import merge
from rollview.relations.former import check_kept, tables_at
from rollview.relations.plans import known_as
from rollview.relations.reader import stored_as
from rollview.sql.former_names import telling_new_names
from rollview.store.timed import Stored, few_rows
from rollview.tables.alter import alter_table
from rollview.tables.alter_plan import Meanings, plan_alter
from rollview.tables.altering import declare_alter

NAMES = ("a", "b", "c", "d", "e f")


class World:
    """A table in a catalog and on disk, and the same in plain Python: rows by column ids, a list for each csn."""

    def __init__(self, root: Path) -> None:
        self.root, self.catalog = root, Catalog.create(root / "catalog.db")
        schema = Schema((Column("a", "int"), Column("b", "string")))
        held = Stored("t", schema, root / "t-0", {})
        versions = {part: held.folder(part).commit(None, (), (), {}) for part in (Part.STATE, Part.DELTA)}
        with self.catalog.write() as writer:
            writer.add_relation("t", RelationKind.TABLE, schema, Constraints(), None, (), "t-0")
            for part, version in versions.items():
                writer.pin("t", Pin(part, version, 0, 0, 0))
        self.columns = [(0, "a", "int"), (1, "b", "string")]
        self.rows: list[dict[int, Any]] = []
        self.born = 2
        self.seen: list[tuple[list[tuple[int, str, str]], list[dict[int, Any]]]] = [(list(self.columns), [])]

    @property
    def table(self) -> Any:
        return self.catalog.snapshot().get("t")

    def commit(self, random: Random) -> None:
        gone = [
            self.rows.pop(random.randrange(len(self.rows))) for _ in range(min(len(self.rows), random.randrange(2)))
        ]
        come = [
            {
                id_: random.choice((None, random.randrange(3) if type_ != "string" else "x"))
                for id_, _, type_ in self.columns
            }
            for _ in range(random.randrange(3))
        ]
        self.rows += come
        table, csn = self.table, self.catalog.snapshot().moment.csn + 1
        ids = [id_ for id_, _, _ in self.columns]
        signed = [*((row, -1) for row in gone), *((row, 1) for row in come)]
        folder = stored_as(self.root, table).folder(Part.DELTA)
        data = {c.name: [row[i] for row, _ in signed] for c, i in zip(table.schema, ids, strict=True)}
        data |= {COUNT: [count for _, count in signed], CSN: [csn] * len(signed)}
        files = folder.stage(pa.table(data), folder.new_folder()) if signed else ()
        version = folder.commit(table.pins[Part.DELTA].version, files, (), {})
        with self.catalog.write() as writer:
            self._unit(writer, csn)
            writer.pin("t", Pin(Part.DELTA, version, 0, csn, table.pins[Part.DELTA].rows + len(signed)))
        self.note()

    def alter(self, text: str, fill: Any = None) -> None:
        tree = parse_one(f"ALTER TABLE t {text}")
        assert isinstance(tree, exp.Alter)
        snapshot = self.catalog.snapshot()
        stored = stored_as(self.root, self.table)
        declared = stored.folder(Part.DELTA).declared()
        meanings = Meanings(lambda name, type_: Column(name, type_.lower()), lambda _, given: given.name, declared)
        draft = plan_alter(snapshot, self.table, declare_alter(tree).alterations, meanings)
        for part in (Part.STATE, Part.DELTA):
            folder = replace(stored, schema=draft.schema).folder(part)
            folder.declare(draft.added)
            folder.retype(draft.widened)
        with self.catalog.write() as writer:
            csn = snapshot.moment.csn + 1
            self._unit(writer, csn)
            writer.alter_table("t", "t", draft.schema, draft.constraints, csn, text)
        for column in draft.added:
            self.columns.append((self.born, column.name, column.type))
            for row in self.rows:
                row[self.born] = fill
            self.born += 1

    def change(self, random: Random) -> None:
        place = random.randrange(len(self.columns))
        id_, name, type_ = self.columns[place]
        free = [other for other in NAMES if other not in {one[1] for one in self.columns}]
        match random.choice(("rename", "add", "add", "drop", "widen")):
            case "rename" if free:
                new = random.choice(free)
                self.columns[place] = (id_, new, type_)
                self.alter(f"RENAME COLUMN `{name}` TO `{new}`")
            case "add" if free:
                fill = random.choice((None, 5))
                self.alter(f"ADD COLUMN `{random.choice(free)}` INT" + (" DEFAULT 5" if fill else ""), fill)
            case "drop" if len(self.columns) > 1:
                del self.columns[place]
                self.rows = [{key: value for key, value in row.items() if key != id_} for row in self.rows]
                self.alter(f"DROP COLUMN `{name}`")
            case "widen" if type_ == "int":
                self.columns[place] = (id_, name, "bigint")
                self.alter(f"ALTER COLUMN `{name}` TYPE BIGINT")
            case _:
                return
        self.note()

    def note(self) -> None:
        self.seen.append((list(self.columns), [dict(row) for row in self.rows]))

    def _unit(self, writer: Any, csn: int) -> None:
        about = {"source": "local", "position": str(csn), "transaction": "", "source_time": datetime.now(UTC)}
        writer.commit_unit(**about, changes=[], expect=csn)

    def fold(self) -> None:
        """The table's state at the newest csn, in its present columns."""
        table, csn = self.table, self.catalog.snapshot().moment.csn
        held = stored_as(self.root, table)
        rows = few_rows(held, csn, 10_000)
        assert rows is not None
        folder = held.folder(Part.STATE)
        files = folder.stage(rows, folder.new_folder()) if rows.num_rows else ()
        version = folder.commit(table.pins[Part.STATE].version, files, held.files(Part.STATE), {})
        with self.catalog.write() as writer:
            writer.pin("t", Pin(Part.STATE, version, csn, csn, rows.num_rows))

    def check(self) -> int:
        """Every csn, in the columns of then; how many were refused."""
        snapshot, columns, refused = self.catalog.snapshot(), self.catalog.columns(), 0
        for csn, (expected, rows) in enumerate(self.seen):
            then = tables_at(snapshot, columns, csn).get("t")
            try:
                check_kept(then, csn)
            except OutOfReach:
                refused += 1
                continue
            found = few_rows(stored_as(self.root, then), csn, 10_000)
            assert found is not None
            assert [(c.name, c.type) for c in then.schema] == [(name, type_) for _, name, type_ in expected]
            wanted = [tuple(row[id_] for id_, _, _ in expected) for row in rows]
            assert sorted(zip(*found.to_pydict().values(), strict=True), key=str) == sorted(wanted, key=str), csn
        return refused


@pytest.mark.parametrize("seed", range(times(4, 400)))
def test_every_csn_has_its_own_columns_and_no_value_in_a_wrong_one(tmp_path: Path, seed: int) -> None:
    random, world = Random(seed), World(tmp_path)
    for number in range(24):
        if random.random() < 0.35:
            world.change(random)
        else:
            world.commit(random)
        if number == 12 and random.random() < 0.3:
            world.fold()
    before = world.check()
    with world.catalog.lease("relation:t") as lease:
        merge(world.root, world.catalog, lease, "t", Part.DELTA)
    assert world.check() == before, "files that are merged keep what older csns had"
    if before == 0:
        world.fold()
        dropped = [at for _, at in world.table.former]
        assert world.check() == max(dropped, default=0), "below the last drop nothing is told wrong"


def test_a_name_that_returns_has_another_name_in_files(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.alter("RENAME COLUMN a TO z")
    assert world.table.schema.names == ("z", "b")
    assert world.table.schema.columns[0].stored == "a"
    world.alter("ADD COLUMN a INT")
    assert world.table.schema.columns[2].stored.startswith("a%_")


def test_a_captured_table_is_altered_at_its_source(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.catalog.write() as writer:
        writer.sources.add("bank", "sqlite", {}, {})
        writer.sources.attach("bank", "t", "t")
    tree = parse_one("ALTER TABLE t ADD COLUMN c INT")
    with pytest.raises(UsageError, match="captured from source 'bank'; it cannot be altered here"):
        alter_table(_no_spark, tmp_path, world.catalog, NobodyFollows(), tree)


def test_a_new_name_needs_no_spark_and_is_in_the_ledger(tmp_path: Path) -> None:
    world = World(tmp_path)
    for text in ("ALTER TABLE t RENAME COLUMN a TO z", "ALTER TABLE t DROP COLUMN b", "ALTER TABLE t RENAME TO u"):
        alter_table(_no_spark, tmp_path, world.catalog, NobodyFollows(), parse_one(text))
    assert [entry.schema for entry in world.catalog.ledger()] == [
        ("t: RENAME COLUMN a TO z",),
        ("t: DROP COLUMN b",),
        ("t: RENAME TO u", "u: RENAME TO u"),
    ]
    assert world.catalog.snapshot().get("u").schema.names == ("z",)


def _no_spark() -> Any:
    raise AssertionError("nothing has to be understood by Spark")


def test_a_text_that_names_a_former_name_is_told_the_present_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    for text in ("RENAME COLUMN a TO y", "RENAME COLUMN y TO z", "ADD COLUMN y INT", "DROP COLUMN y"):
        world.alter(text)
    known = {"t": known_as(world.table)}
    for name, hint in (
        ("a", "Column 'a' of 't' is called 'z' since csn 2."),
        ("Y", "'y' of 't' is called 'z'"),
        ("q", ""),
    ):
        with pytest.raises(SqlError) as refused, telling_new_names(world.catalog):
            resolve(f"SELECT x.{name} FROM t AS x", known)
        assert hint in (refused.value.hint or "")
        assert (refused.value.hint or "").endswith("Columns here: b, z.")
        assert ("called" in (refused.value.hint or "")) == bool(hint)
