"""What is special about SQLite: REPLACE, rows of any type, and layouts that change."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rollview.capture.recorded_source import open_recorded
from rollview.errors import BadValue, NotFound, UsageError
from rollview.sources import SourceSettings, TableSettings
from rollview.sources.protocol import LayoutChange, Opening, SourceTable, TableChanged
from rollview.sources.sqlite.source import SqliteSource
from rollview.warehouse import Warehouse
from tests.sources.harness import Bag, Write, account, capture, stored
from tests.sources.sqlite_harness import SqliteHarness

SHAPES = {
    "number": "CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, v INTEGER)",
    "text key": "CREATE TABLE t (id TEXT PRIMARY KEY, u INTEGER UNIQUE, v INTEGER)",
    "without rowid": "CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, v INTEGER) WITHOUT ROWID",
    "two columns": "CREATE TABLE t (id INTEGER, u INTEGER, v INTEGER, PRIMARY KEY (id, u)) WITHOUT ROWID",
    "no key": "CREATE TABLE t (id INTEGER, u INTEGER, v INTEGER)",
    "any case": "CREATE TABLE t (id TEXT COLLATE NOCASE PRIMARY KEY, u INTEGER UNIQUE, v INTEGER)",
    "rowid is a column": "CREATE TABLE t (rowid INTEGER, u INTEGER UNIQUE, v INTEGER, id TEXT UNIQUE)",
    "quoted": 'CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, v INTEGER, "a ""b"" c" TEXT UNIQUE)',
}


@contextmanager
def opened(path: Path, *tables: str, types: dict[str, str] | None = None) -> Iterator[SqliteSource]:
    """A source that knows its tables."""
    settings = SourceSettings("sqlite", str(path), tuple(TableSettings(t, t, types or {}) for t in tables))
    known: dict[str, SourceTable] = {}
    source = SqliteSource(Opening("s", settings, str(path), {"tag": "x"}, known))
    known.update({table.name: table for table in source.tables()})
    try:
        yield source
    finally:
        source.close()


def copied(source: SqliteSource, table: str) -> tuple[str, Bag]:
    with source.first_copy() as copy:
        return copy.position, Counter(row for rows in copy.rows(table) for row in rows)


@pytest.mark.parametrize("recursive", ["OFF", "ON"])
@pytest.mark.parametrize("shape", SHAPES)
def test_replace_upsert_and_ignore(tmp_path: Path, shape: str, recursive: str) -> None:
    chance = random.Random(f"{shape}{recursive}")
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute(SHAPES[shape])
        db.execute(f"PRAGMA recursive_triggers = {recursive}")
        with opened(tmp_path / "s.db", "t") as source:
            position, bag = copied(source, "t")
            for _ in range(200):
                for _ in range(chance.randint(1, 4)):
                    _random_statement(db, chance, shape)
                for unit in (batch := source.read(position, 1)).units:
                    bag.subtract(Counter(unit.changes["t"].before))
                    bag.update(unit.changes["t"].after)
                position = batch.position
                source.acknowledge(position)
                assert min(bag.values(), default=0) >= 0
                assert +bag == Counter(db.execute("SELECT * FROM t").fetchall())


def _random_statement(db: sqlite3.Connection, chance: random.Random, shape: str) -> None:
    key = chance.choice([None, -1, 1, 2, 3]) if shape in ("number", "no key") else chance.choice([1, 2, 3])
    if shape in ("text key", "any case", "rowid is a column"):
        key = chance.choice(["a", "A", "b"])
    u, v = chance.choice([None, 1, 2, 3]), chance.randint(0, 9)
    u = u or 0 if shape == "two columns" else u
    clause = chance.choice(["", " OR REPLACE", " OR IGNORE", " OR ABORT", " OR FAIL", " OR ROLLBACK"])
    target = {"two columns": "(id, u)"}.get(shape, "(u)" if shape != "no key" else "")
    upsert = f" ON CONFLICT {target} DO UPDATE SET v = excluded.v + 1" if target and chance.random() < 0.3 else ""
    statement, values = chance.choice(
        [
            (f"INSERT{'' if upsert else clause} INTO t (id, u, v) VALUES (?, ?, ?){upsert}", (key, u, v)),
            (f"INSERT{clause} INTO t (id, u, v) SELECT id, u, v + 1 FROM t LIMIT 3", ()),
            (f"UPDATE{clause} t SET u = ?, v = ? WHERE id = ?", (u, v, key)),
            (f"UPDATE{clause} t SET id = ? WHERE v = ?", (key, v)),
            ("DELETE FROM t WHERE v = ?", (v,)),
        ]
    )
    try:
        db.execute(statement, values)
    except sqlite3.IntegrityError:
        if db.in_transaction:
            db.execute("ROLLBACK")


def test_what_is_rolled_back_is_not_seen(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute(SHAPES["number"])
        with opened(tmp_path / "s.db", "t") as source:
            position, _ = copied(source, "t")
            for statement in (
                "BEGIN",
                "INSERT INTO t VALUES (1, 1, 1)",
                "SAVEPOINT s",
                "INSERT INTO t VALUES (2, 2, 2)",
                "ROLLBACK TO s",
            ):
                db.execute(statement)
            assert source.read(position, 1).units == ()
            db.execute("COMMIT")
            (unit,) = source.read(position, 1).units
            assert list(unit.changes["t"].after) == [(1, 1, 1)]
            db.executescript("BEGIN; DELETE FROM t; ROLLBACK;")
            assert source.read(unit.position, 1).units == ()


def test_a_cascade_is_seen(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.executescript(
            "PRAGMA foreign_keys = ON; CREATE TABLE p (id INTEGER PRIMARY KEY);"
            "CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p ON DELETE CASCADE);"
            "INSERT INTO p VALUES (1); INSERT INTO c VALUES (7, 1);"
        )
        with opened(tmp_path / "s.db", "p", "c") as source:
            position, _ = copied(source, "p")
            db.execute("REPLACE INTO p VALUES (1)")
            (unit,) = source.read(position, 1).units
            assert list(unit.changes["c"].before) == [(7, 1)]
            assert [*unit.changes["p"].before, *unit.changes["p"].after] == [(1,), (1,)]


VALUES: list[tuple[str, Any, Any]] = [
    ("INTEGER", 2**63 - 1, 2**63 - 1),
    ("BIGINT", -(2**63), -(2**63)),
    ("BOOLEAN", 1, True),
    ("DECIMAL(12,2)", "1234567890.10", Decimal("1234567890.10")),
    ("NUMERIC(5)", 7, Decimal(7)),
    ("REAL", 0.1 + 0.2, 0.1 + 0.2),
    ("REAL", 1e308 * 10, float("inf")),
    ("REAL", -0.0, 0.0),
    ("VARCHAR(3)", "a\0b", "a\0b"),
    ("TEXT", "", ""),
    ("BLOB", b"\x00\xff", b"\x00\xff"),
    ("DATE", "0001-01-01", date(1, 1, 1)),
    ("DATETIME", "2026-03-29 02:30:00.123456", datetime(2026, 3, 29, 2, 30, 0, 123456)),
    ("TEXT", None, None),
]


@pytest.mark.parametrize(("declared", "given", "expected"), VALUES)
def test_values_come_as_they_are(tmp_path: Path, declared: str, given: Any, expected: Any) -> None:
    """By copy and by log alike."""
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute(f"CREATE TABLE t (v {declared})")
        db.execute("INSERT INTO t VALUES (?)", (given,))
        settings = SourceSettings("sqlite", str(tmp_path / "s.db"), (TableSettings("t", "t"),))
        with Warehouse.create(tmp_path / "w") as warehouse:
            warehouse.add_source("s", settings)
            assert repr(stored(warehouse, "t")) == repr(Counter({(expected,): 1}))
            db.execute("INSERT INTO t VALUES (?)", (given,))
            capture(warehouse)
            assert repr(stored(warehouse, "t")) == repr(Counter({(expected,): 2}))
            db.execute("DELETE FROM t")
            capture(warehouse)
            assert stored(warehouse, "t") == Counter()


REFUSED = [
    ("INTEGER", "text"),
    ("INTEGER", 1.5),
    ("BOOLEAN", 2),
    ("DECIMAL(4,2)", 1.005),
    ("DECIMAL(4,2)", 100),
    ("DECIMAL(4,2)", float("inf")),
    ("TEXT", b"blob"),
    ("BLOB", "text"),
    ("DATE", "31.12.2026"),
    ("DATE", "20261231"),
    ("DATETIME", "2026-01-01T00:00:00Z"),
    ("DATETIME", 1767225600),
]


@pytest.mark.parametrize(("declared", "given"), REFUSED)
def test_a_value_of_another_kind_stops_the_source(tmp_path: Path, declared: str, given: Any) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {declared})")
        settings = SourceSettings("sqlite", str(tmp_path / "s.db"), (TableSettings("t", "t"),))
        with Warehouse.create(tmp_path / "w") as warehouse:
            warehouse.add_source("s", settings)
            db.execute("INSERT INTO t VALUES (1, ?)", (given,))
            (done,) = warehouse.capture().sources
            assert done.problem is not None
            assert "column 'v'" in done.problem
            assert warehouse.sources()[0].state == "bad_value"
            assert stored(warehouse, "t") == Counter()


def test_a_bad_value_in_the_first_copy_is_told(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute("CREATE TABLE t (v TEXT)")
        db.execute("INSERT INTO t VALUES (CAST(x'ff' AS TEXT))")
        settings = SourceSettings("sqlite", str(tmp_path / "s.db"), (TableSettings("t", "t"),))
        with Warehouse.create(tmp_path / "w") as warehouse:
            with pytest.raises(BadValue, match="column 'v'"):
                warehouse.add_source("s", settings)
            (source,) = warehouse.sources()
            assert source.state == "copying"
            assert "column 'v'" in (source.problem or "")
            # Nobody may come for the changes, so none are kept.
            assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%rollview%'").fetchone() == (0,)
            db.execute("UPDATE t SET v = 'well'")
            capture(warehouse)
            assert stored(warehouse, "t") == Counter({("well",): 1})


def test_what_is_missing_is_told_before_anything_is_changed(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, anything, v INTEGER)")
        db.execute("CREATE UNIQUE INDEX sometimes ON t (v) WHERE v > 0")
        tables = (TableSettings("t", "t"), TableSettings("no", "no"))
        settings = SourceSettings("sqlite", str(tmp_path / "s.db"), tables)
        checked = empty_warehouse.check_source("s", settings)
        assert not checked.ready
        said = " ".join(finding.what for finding in checked.findings)
        assert all(part in said for part in ("'anything'", "'sometimes'", "no table 'no'"))
        with pytest.raises(UsageError, match="cannot be captured yet"):
            empty_warehouse.add_source("s", settings)
        assert empty_warehouse.sources() == ()
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%rollview%'").fetchone() == (0,)


def test_there_must_be_a_database(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    settings = SourceSettings("sqlite", str(tmp_path / "none.db"), (TableSettings("t", "t"),))
    with pytest.raises(NotFound):
        empty_warehouse.check_source("s", settings)
    assert not (tmp_path / "none.db").exists()


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[SqliteHarness]:
    with closing(SqliteHarness(tmp_path)) as harness:
        yield harness


def test_a_column_without_a_type_is_left_out_and_a_renamed_one_followed(
    empty_warehouse: Warehouse, bank: SqliteHarness
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    bank.connection.execute("ALTER TABLE note ADD COLUMN more")
    bank.connection.execute("INSERT INTO note VALUES ('x', 1)")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note")[("x",)] == 1
    before = empty_warehouse.snapshot().moment.csn
    bank.connection.execute("ALTER TABLE note RENAME COLUMN text TO words")
    bank.connection.execute("INSERT INTO note VALUES ('y', 1)")
    capture(empty_warehouse)
    assert empty_warehouse.sources()[0].state == "active"
    assert empty_warehouse.snapshot().get("note").schema.names == ("words",)
    assert stored(empty_warehouse, "note") == Counter(bank.connection.execute("SELECT words FROM note").fetchall())
    was, now = (empty_warehouse.schema_at("note", csn).columns[0] for csn in (before, before + 1))
    assert (was.id, was.column, was.new_name, was.until) == (now.id, "text", "words", before + 1)
    assert empty_warehouse.catalog.ledger()[-1].schema == ("note: text is words now",)


def test_names_that_change_places_are_followed_by_place(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    bank.connection.executescript("CREATE TABLE pair (a TEXT, b TEXT, c TEXT); INSERT INTO pair VALUES ('a', 'b', 'c')")
    settings = SourceSettings("sqlite", bank.settings().address, (TableSettings("pair", "pair"),))
    empty_warehouse.add_source("bank", settings)
    for _ in range(2):
        bank.connection.executescript(
            "ALTER TABLE pair RENAME COLUMN a TO t; ALTER TABLE pair RENAME COLUMN b TO a;"
            "ALTER TABLE pair RENAME COLUMN t TO b; ALTER TABLE pair RENAME COLUMN c TO d;"
            "ALTER TABLE pair RENAME COLUMN d TO c; INSERT INTO pair (a, b, c) VALUES ('A', 'B', 'C')"
        )
        capture(empty_warehouse)
        names = empty_warehouse.snapshot().get("pair").schema.names
        rows = bank.connection.execute(f"SELECT {', '.join(names)} FROM pair").fetchall()
        assert stored(empty_warehouse, "pair") == Counter(rows)
    assert names == ("a", "b", "c")
    empty_warehouse.resnapshot("bank")
    assert stored(empty_warehouse, "pair") == Counter(rows)


def test_a_table_made_anew_is_copied(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    before = bank.rows("note")
    csn = empty_warehouse.snapshot().moment.csn
    bank.connection.executescript("DROP TABLE note; CREATE TABLE note (text TEXT); INSERT INTO note VALUES ('z');")
    capture(empty_warehouse)
    assert empty_warehouse.sources()[0].state == "active"
    assert stored(empty_warehouse, "note", csn) == before
    assert stored(empty_warehouse, "note") == Counter({("z",): 1})
    bank.write(Write("note", None, ("zz",)))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")


def test_a_column_that_comes_with_values_is_one_change(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    """Also of rows that were written before anybody knew of the column."""
    empty_warehouse.add_source("bank", bank.settings())
    csn = empty_warehouse.snapshot().moment.csn
    bank.connection.executescript(
        "ALTER TABLE note ADD COLUMN kind TEXT COLLATE NOCASE DEFAULT 'a';"
        "ALTER TABLE note ADD COLUMN n INT DEFAULT '7';"
        "INSERT INTO note VALUES ('x', 'A', 1), ('y', NULL, NULL); INSERT INTO note (text) VALUES ('z');"
        "UPDATE note SET n = 9 WHERE text = ''; DELETE FROM note WHERE text = 'same'"
    )
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().moment.csn == csn + 1
    assert stored(empty_warehouse, "note") == bank.rows("note")
    assert stored(empty_warehouse, "note", csn) == Counter({("same", "a", 7): 2, ("", "a", 7): 1})
    bank.connection.execute("UPDATE note SET kind = 'b'")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")


def test_a_kill_after_a_column_got_its_slot_changes_nothing(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    bank.connection.executescript("ALTER TABLE note ADD COLUMN n INT DEFAULT 7; INSERT INTO note VALUES ('x', 1)")
    record = empty_warehouse.catalog.source("bank")
    catalog = empty_warehouse.catalog
    with catalog.lease("source:bank") as lease, closing(open_recorded(catalog, record, lease)) as source:
        assert isinstance(source.read(record.position or "", 100), LayoutChange)
    bank.connection.execute("INSERT INTO note VALUES ('y', 2)")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")


def test_what_triggers_block_is_run_by_a_command(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    """In order with rows: what was written before it has a csn of its own."""
    empty_warehouse.add_source("bank", bank.settings())
    first = empty_warehouse.snapshot().moment.csn
    with closing(sqlite3.connect(bank.path)) as other, pytest.raises(sqlite3.OperationalError, match="in trigger"):
        other.execute("ALTER TABLE account DROP COLUMN owner")
    bank.write(Write("account", None, account(8, "eve", "1.00")))
    before = bank.rows("account")
    done = empty_warehouse.alter_source("bank", "ALTER TABLE account DROP COLUMN owner")
    assert (done.problem, done.units) == (None, 1)
    assert bank.connection.execute("SELECT count(*) FROM account").fetchone() == (4,)
    bank.connection.execute("INSERT INTO account VALUES (9, 2.5)")
    bank.connection.execute("REPLACE INTO account VALUES (8, 3)")
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().get("account").schema.names == ("id", "balance")
    rows = [stored(empty_warehouse, "account", csn) for csn in (first + 1, first + 2, first + 3)]
    less = Counter({(id_, balance): 1 for id_, _, balance in before})
    now = Counter((id_, Decimal(str(b))) if b is not None else (id_, b) for id_, b in bank.rows("account"))
    assert rows == [less, less, now]
    assert [column.column for column in empty_warehouse.schema_at("account", first + 1).columns] == [
        "id",
        "owner",
        "balance",
    ]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DROP TABLE note", "Only an ALTER TABLE"),
        ("ALTER TABLE note DROP COLUMN absent", "no such column"),
        ("ALTER TABLE note ADD COLUMN x INT; DELETE FROM note", "one statement"),
    ],
)
def test_a_statement_that_fails_leaves_all_as_it_was(
    empty_warehouse: Warehouse, bank: SqliteHarness, statement: str, reason: str
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    there = bank.leftovers()
    with pytest.raises(UsageError, match=reason):
        empty_warehouse.alter_source("bank", statement)
    assert bank.leftovers() == there
    bank.write(Write("note", None, ("zz",)))
    capture(empty_warehouse)
    assert stored(empty_warehouse, "note") == bank.rows("note")


def test_a_type_that_a_table_made_anew_gives_a_column(empty_warehouse: Warehouse, bank: SqliteHarness) -> None:
    """A wider one keeps the column; another one is another column, with the values of the table."""
    empty_warehouse.add_source("bank", bank.settings())
    csn = empty_warehouse.snapshot().moment.csn
    bank.connection.executescript(
        "CREATE TABLE new (id INTEGER PRIMARY KEY, owner BLOB, balance DECIMAL(14,3)); "
        "INSERT INTO new SELECT id, CAST(owner AS BLOB), balance FROM account;"
        "DROP TABLE account; ALTER TABLE new RENAME TO account"
    )
    capture(empty_warehouse)
    entries = {one.column: one for one in empty_warehouse.schema_at("account", csn).columns}
    now = {one.column: one for one in empty_warehouse.schema_at("account", csn + 1).columns}
    assert (now["balance"].type, now["balance"].id) == ("decimal(14,3)", entries["balance"].id)
    assert (now["owner"].type, now["owner"].id == entries["owner"].id) == ("binary", False)
    assert {row[2] for row in stored(empty_warehouse, "account")} == {b"ann", b"bob", None}


_UNIQUE = "CREATE UNIQUE INDEX one_each ON account (owner)"


@pytest.mark.parametrize("also", ["", "ALTER TABLE account ADD COLUMN n INT", "ALTER TABLE account RENAME owner TO o"])
def test_what_became_unique_is_copied_because_replace_goes_by_it(
    empty_warehouse: Warehouse, bank: SqliteHarness, also: str
) -> None:
    """Triggers that do not know the index do not see the row that REPLACE takes away by it."""
    empty_warehouse.add_source("bank", bank.settings())
    bank.connection.executescript(f"{_UNIQUE}; REPLACE INTO account VALUES (8, 'ann', 1); {also}")
    assert 1 not in {row[0] for row in bank.rows("account")}
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account")
    bank.connection.execute("UPDATE OR REPLACE account SET balance = 5 WHERE id = 8")
    bank.connection.execute("REPLACE INTO account SELECT * FROM account WHERE id = 2")
    bank.connection.execute(f"UPDATE OR REPLACE account SET {'o' if 'RENAME' in also else 'owner'} = 'ann'")
    csn = empty_warehouse.snapshot().moment.csn
    assert capture(empty_warehouse).units == 1
    assert stored(empty_warehouse, "account") == bank.rows("account")
    assert len(bank.rows("account")) == 1
    capture(empty_warehouse)
    assert empty_warehouse.snapshot().moment.csn == csn + 1


def test_an_index_that_replace_would_use_unseen_stops_and_then_copies(
    empty_warehouse: Warehouse, bank: SqliteHarness
) -> None:
    empty_warehouse.add_source("bank", bank.settings())
    before, there = bank.rows("account"), bank.leftovers()
    bank.connection.execute(f"{_UNIQUE} WHERE owner = 'ann'")
    bank.connection.execute("REPLACE INTO account VALUES (8, 'ann', 1)")
    for _ in range(2):
        (done,) = empty_warehouse.capture().sources
        assert "UNIQUE index 'one_each'" in str(done.problem)
    assert (stored(empty_warehouse, "account"), bank.leftovers()) == (before, there)
    bank.connection.execute("DROP INDEX one_each")
    capture(empty_warehouse)
    assert stored(empty_warehouse, "account") == bank.rows("account") != before


def test_what_is_unique_no_more_takes_no_row_away(tmp_path: Path) -> None:
    """A table that has no numbers for its rows cannot be asked for one that was put aside."""
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER) WITHOUT ROWID")
        db.execute("CREATE UNIQUE INDEX one_each ON t (u)")
        db.execute("INSERT INTO t VALUES (1, 1)")
        with opened(tmp_path / "s.db", "t") as source:
            position, _ = copied(source, "t")
            db.execute("DROP INDEX one_each")
            db.execute("INSERT INTO t VALUES (2, 1)")
            with pytest.raises(TableChanged, match="unique") as raised:
                source.read(position, 1)
            assert raised.value.change.copy
