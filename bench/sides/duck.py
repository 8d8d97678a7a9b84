"""DuckDB: the view from nothing, tables in memory. It also tells what every view must be."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from bench.workload import TABLES, VIEWS, Batch, data

_OF = {"orders": "o_orderkey", "lineitem": "l_orderkey"}


class Duck:
    name = "DuckDB full"

    def __init__(self, scale: float) -> None:
        self.db = duckdb.connect()
        for table in TABLES:
            self.db.execute(f"CREATE TABLE {table} AS FROM read_parquet('{data(scale) / f'{table}.parquet'}')")

    def change(self, batch: Batch) -> None:
        for table, key in _OF.items():
            gone, come = batch.deleted[table].select([key]), batch.inserted[table]
            self.db.register("gone", gone)
            self.db.register("come", come)
            self.db.execute(f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM gone)")
            self.db.execute(f"INSERT INTO {table} SELECT * FROM come")

    def refresh(self, view: str) -> None:
        self.db.execute(f"CREATE OR REPLACE TABLE {view} AS {VIEWS[view]}")

    def rows(self, view: str) -> pa.Table:
        return self.db.sql(f"FROM {view}").to_arrow_table()

    def close(self) -> None:
        self.db.close()
