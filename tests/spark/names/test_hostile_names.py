"""Any name is a name: of a table, of its columns and of a view. It stays what it is and goes nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sizes import times
from tests.spark.names.hostile import HOSTILE, REFUSED, quoted
from tests.spark.oracle.bags import bag
from tests.spark.oracle.warehouses import copied, extent, fresh, rows

from rollview import errors
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH = 10
BATCHES = [HOSTILE[start : start + BATCH] for start in range(0, len(HOSTILE), BATCH)]
TURNS = [(batch, (batch + turn) % 2 == 1) for batch in range(len(BATCHES)) for turn in range(times(1, full=2))]
"""Which batches, and whether its tables and views change their names."""
OWN_WORDS = {"state", "delta", "extent", "groups", "_delta_log"}


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written") / "warehouse"
    with fresh(spark, root) as made:
        made.sql("CREATE TABLE canary (a INT)", "INSERT INTO canary VALUES (1)")
    return root


@pytest.fixture
def warehouse(
    spark: SparkSession, written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Warehouse]:
    """In a folder whose neighbours, and whose working folder, must stay as they are."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    with copied(spark, written, tmp_path / "warehouse") as made:
        yield made
        assert rows(made, "canary") == bag([(1,)])
    assert {path.name for path in tmp_path.iterdir()} == {"work", "warehouse"}
    assert not list(work.iterdir())


def test_there_are_enough_names_and_all_are_different() -> None:
    assert len(HOSTILE) >= 100
    assert len({name.lower() for name in HOSTILE}) == len(HOSTILE)


@pytest.mark.parametrize(("batch", "swapped"), TURNS)
def test_a_name_is_a_table_a_column_and_a_view(warehouse: Warehouse, batch: int, swapped: bool) -> None:
    """Half of the batch are tables and half are views, or the other way round; all are columns, two in each table
    beside one that is called like the table itself.
    """
    names = BATCHES[batch]
    half = len(names) // 2
    tables, views = (names[half:], names[:half]) if swapped else (names[:half], names[half:])
    columns = {
        table: tuple(dict.fromkeys((*names[2 * place : 2 * place + 2], table))) for place, table in enumerate(tables)
    }
    make_tables(warehouse, columns)
    for place, (view, table) in enumerate(zip(views, tables, strict=True)):
        make_view(warehouse, view, table, columns[table], grouped=(place + batch) % 2 == 1)
    change_tables(warehouse, columns)
    warehouse.refresh()
    for view in views:
        check_view(warehouse, view)
    status = warehouse.status()
    assert {table.name for table in status.tables} == {*tables, "canary"}
    assert {view.name for view in status.views} == set(views)
    check_paths(warehouse.root, names)
    for name in (*views, *tables):
        warehouse.drop_view(name) if name in views else warehouse.drop_table(name)
    assert set(warehouse.snapshot().relations) == {"canary"}


def make_tables(warehouse: Warehouse, columns: Mapping[str, Sequence[str]]) -> None:
    for name, own in columns.items():
        warehouse.sql(f"CREATE TABLE {quoted(name)} ({', '.join(f'{quoted(column)} INT' for column in own)})")
        assert warehouse.snapshot().get(name).schema.names == tuple(own)
    warehouse.sql(*map(insertion, columns, columns.values()))


def insertion(table: str, columns: Sequence[str]) -> str:
    values = ", ".join(map(str, range(len(columns))))
    return f"INSERT INTO {quoted(table)} ({', '.join(map(quoted, columns))}) VALUES ({values})"


def make_view(warehouse: Warehouse, view: str, table: str, columns: Sequence[str], *, grouped: bool) -> None:
    listed = [quoted(column) for column in columns]
    query = f"SELECT {', '.join(listed)} FROM {quoted(table)} WHERE {listed[0]} >= 0"
    if grouped:
        sums = [f"SUM({quoted(table)}.{column}) AS {column}" for column in listed[1:]]
        query = f"SELECT {', '.join([listed[0], *sums])} FROM {quoted(table)} GROUP BY {listed[0]}"
    warehouse.create_view(f"CREATE MATERIALIZED VIEW {quoted(view)} AS {query}")


def change_tables(warehouse: Warehouse, columns: Mapping[str, Sequence[str]]) -> None:
    """New rows everywhere; one table's rows are updated by SQL and doubled as a DataFrame."""
    with warehouse.transaction() as transaction:
        transaction.sql(*map(insertion, columns, columns.values()))
        name, own = next(iter(columns.items()))
        first, last = quoted(own[0]), quoted(own[-1])
        transaction.sql(f"UPDATE {quoted(name)} SET {last} = {last} + 1 WHERE {quoted(name)}.{first} = 0")
        transaction.insert(name, warehouse.read(name))


def check_view(warehouse: Warehouse, view: str) -> None:
    assert warehouse.explain(view).name == view
    verification = warehouse.verify(view)
    assert verification.equal, verification
    found = warehouse.read(view)
    assert tuple(found.columns) == warehouse.snapshot().get(view).schema.names
    assert bag(found.collect()) == extent(warehouse, view)


def check_paths(root: Path, names: Sequence[str]) -> None:
    parts = {part for path in root.rglob("*") for part in path.relative_to(root).parts} - OWN_WORDS
    assert all(part.isascii() for part in parts)
    assert not parts & set(names)
    assert not [(name, part) for name in names for part in parts if len(name) > 4 and name in part]


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_name_that_cannot_be_is_refused(warehouse: Warehouse, name: str) -> None:
    own = (errors.InvalidName, errors.SqlError)
    with pytest.raises(own):
        warehouse.sql(f"CREATE TABLE {quoted(name)} (a INT)")
    with pytest.raises(own):
        warehouse.sql(f"CREATE TABLE t (a INT, {quoted(name)} INT)")
    with pytest.raises(own):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {quoted(name)} AS SELECT a FROM canary")
    with pytest.raises(own):
        warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS SELECT a AS {quoted(name)} FROM canary")
    assert set(warehouse.snapshot().relations) == {"canary"}


@pytest.mark.parametrize(
    ("one", "other"), [("a", "A"), ("i", "ı"), ("i", "İ"), ("s", "ſ"), ("ß", "ẞ"), ("k", "\u212a")]
)
def test_names_that_spark_takes_for_one_are_not_two_columns(warehouse: Warehouse, one: str, other: str) -> None:
    """Two columns that Spark cannot tell apart are refused; those that it can are both there."""
    resolver = warehouse.spark.createDataFrame([(1, 2)], "a int, b int").toDF(one, other)
    try:
        resolver.select(quoted(one)).schema  # noqa: B018
        distinct = True
    except Exception:
        distinct = False
    text = f"CREATE TABLE t ({quoted(one)} INT, {quoted(other)} INT)"
    if not distinct:
        with pytest.raises(errors.UsageError):
            warehouse.sql(text)
        return
    warehouse.sql(text, "INSERT INTO t VALUES (1, 2)")
    warehouse.create_view(f"CREATE MATERIALIZED VIEW v AS SELECT {quoted(one)}, {quoted(other)} FROM t")
    assert extent(warehouse, "v") == bag([(1, 2)])
