"""PostgreSQL from its wheel: REFRESH MATERIALIZED VIEW over tables with the same keys."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv as csv
from tests.servers.postgres import running_postgres

from bench.workload import KEYS, TABLES, VIEWS, Batch, data

SETTINGS = {"shared_buffers": "2GB", "work_mem": "256MB", "max_wal_size": "8GB", "fsync": "off"}
_TYPES = {"int64": "bigint", "int32": "integer", "string": "text", "date32[day]": "date"}


class Postgres:
    name = "PostgreSQL REFRESH"

    def __init__(self, scale: float, scratch: Path) -> None:
        self.stack = ExitStack()
        server = self.stack.enter_context(running_postgres(settings=SETTINGS))
        self.tables = self.stack.enter_context(Tables(server.url(), scale, scratch))
        for name, query in VIEWS.items():
            self.tables.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def change(self, batch: Batch) -> None:
        self.tables.change(batch)

    def refresh(self, view: str) -> None:
        self.tables.execute(f"REFRESH MATERIALIZED VIEW {view}")

    def rows(self, view: str) -> pa.Table | None:
        return None

    def close(self) -> None:
        self.stack.close()


class Tables:
    """The workload's tables in a database."""

    def __init__(self, url: str, scale: float, scratch: Path) -> None:
        self.scratch = scratch
        self.db = psycopg.connect(url, autocommit=True)
        for table in TABLES:
            self._load(table, data(scale) / f"{table}.parquet")

    def __enter__(self) -> Tables:
        return self

    def __exit__(self, *failure: object) -> None:
        self.db.close()

    def execute(self, statement: str, *values: str) -> psycopg.Cursor[tuple[object, ...]]:
        return self.db.execute(statement.encode(), values)

    def change(self, batch: Batch) -> None:
        with self.db.transaction():
            for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
                keys = batch.deleted[table][key].unique().to_pylist()
                self.db.execute(f"DELETE FROM {table} WHERE {key} = ANY(%s)".encode(), [keys])
            for table in ("orders", "lineitem"):
                self._copy(table, batch.inserted[table])

    def _load(self, table: str, source: Path) -> None:
        schema = duckdb.sql(f"FROM read_parquet('{source}') LIMIT 0").to_arrow_table().schema
        columns = ", ".join(f"{f.name} {_TYPES.get(str(f.type), 'numeric(15,2)')}" for f in schema)
        self.db.execute(f"CREATE TABLE {table} ({columns})".encode())
        target = self.scratch / f"{table}.csv"
        duckdb.sql(f"COPY (FROM read_parquet('{source}')) TO '{target}' (HEADER false)")
        with target.open("rb") as rows, self.db.cursor().copy(f"COPY {table} FROM STDIN CSV".encode()) as copy:
            while block := rows.read(1 << 20):
                copy.write(block)
        target.unlink()
        self.db.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({', '.join(KEYS[table])})".encode())
        self.db.execute(f"ANALYZE {table}".encode())

    def _copy(self, table: str, rows: pa.Table) -> None:
        sink = pa.BufferOutputStream()
        csv.write_csv(rows, sink, csv.WriteOptions(include_header=False))
        with self.db.cursor().copy(f"COPY {table} FROM STDIN CSV".encode()) as copy:
            copy.write(sink.getvalue().to_pybytes())
