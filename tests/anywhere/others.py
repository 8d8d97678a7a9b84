"""Tables and views as programs read them that know nothing of rollview: deltalake, and DuckDB as the oracle.

DuckDB reads Delta tables by an extension that it fetches over the network; where that is not there it is given the
Parquet files that the Delta log names.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
from deltalake import DeltaTable

from rollview import Warehouse
from rollview.catalog import Part, Relation

Bag = Counter[tuple[Any, ...]]


def check_with_others(root: Path) -> None:
    """Every view's extent, as the others read it, is what DuckDB makes of the tables' changes at the view's csn."""
    with Warehouse.open(root) as wh:
        snapshot = wh.snapshot()
    views = [relation for relation in snapshot.relations.values() if relation.definition is not None]
    assert len(views) == 3
    for view in views:
        database = duckdb.connect()
        for relation in snapshot.relations.values():
            if relation is not view:
                _stand_in(database, root, relation, view.pins[Part.EXTENT].through)
        assert view.definition is not None
        expected = Counter(database.execute(view.definition.query).fetchall())
        assert expected
        assert read_by_deltalake(root, view) == expected
        assert read_by_duckdb(database, root, view) == expected


def read_by_deltalake(root: Path, view: Relation) -> Bag:
    columns = _pinned(root, view, Part.EXTENT).to_pyarrow_table().to_pydict()
    return Counter(zip(*columns.values(), strict=True))


def read_by_duckdb(database: duckdb.DuckDBPyConnection, root: Path, view: Relation) -> Bag:
    names = ", ".join(f'"{name}"' for name in view.schema.names)
    return Counter(database.execute(f"SELECT {names} FROM {_scan(database, root, view, Part.EXTENT)}").fetchall())


def _stand_in(database: duckdb.DuckDBPyConnection, root: Path, relation: Relation, csn: int) -> None:
    """The relation at a csn: a view's extent as it is, a table's changes added up."""
    names = ", ".join(f'"{name}"' for name in relation.schema.names)
    if relation.definition is not None:
        rows = f"SELECT {names} FROM {_scan(database, root, relation, Part.EXTENT)}"
    else:
        delta = _scan(database, root, relation, Part.DELTA)
        summed = f"SELECT {names}, CAST(SUM(_count) AS BIGINT) AS n FROM {delta} WHERE _csn <= {csn} GROUP BY ALL"
        rows = f"SELECT {names} FROM (SELECT {names}, UNNEST(GENERATE_SERIES(1, n)) FROM ({summed}) WHERE n > 0)"
    database.execute(f'CREATE TABLE "{relation.name}" AS {rows}')


def _scan(database: duckdb.DuckDBPyConnection, root: Path, relation: Relation, part: Part) -> str:
    table = _pinned(root, relation, part)
    if can_read_delta(database):
        place = str(root / "data" / relation.folder / part).replace("'", "''")
        return f"delta_scan('{place}', version => {table.version()})"
    return f"read_parquet({[uri.removeprefix('file://') for uri in table.file_uris()]})"


def can_read_delta(database: duckdb.DuckDBPyConnection) -> bool:
    try:
        database.execute("LOAD delta")
    except duckdb.Error:
        return False
    return True


def _pinned(root: Path, relation: Relation, part: Part) -> DeltaTable:
    return DeltaTable(root / "data" / relation.folder / part, version=relation.pins[part].version)
