"""Workload W: TPC-H tables, four views, and batches of new and deleted orders with their lines.

Every side gets the same batches, as Arrow tables.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TABLES = ("region", "nation", "supplier", "customer", "orders", "lineitem")

ALL_TABLES = (*TABLES[:3], "part", "partsupp", *TABLES[3:])
"""Those of all queries of TPC-H, each after the ones that it refers to."""

KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "part": ("p_partkey",),
    "partsupp": ("ps_partkey", "ps_suppkey"),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}

REFERENCES = {
    "nation": {"n_regionkey": "region"},
    "supplier": {"s_nationkey": "nation"},
    "partsupp": {"ps_partkey": "part", "ps_suppkey": "supplier"},
    "customer": {"c_nationkey": "nation"},
    "orders": {"o_custkey": "customer"},
    "lineitem": {"l_orderkey": "orders"},
}

VIEWS = {
    "v1": """
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, COUNT(*) AS sold
FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
JOIN nation ON n_nationkey = c_nationkey
GROUP BY n_name
""",
    "v2": """
SELECT l_orderkey, l_linenumber, o_orderdate, o_shippriority, l_extendedprice * (1 - l_discount) AS revenue
FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
WHERE c_mktsegment = 'BUILDING' AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
""",
    "v3": """
SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
  SUM(l_extendedprice * (1 - l_discount)) AS sum_disc_price,
  SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge, COUNT(*) AS count_order
FROM lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus
""",
    "v4": """
SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer JOIN orders ON o_custkey = c_custkey JOIN lineitem ON l_orderkey = o_orderkey
JOIN supplier ON s_suppkey = l_suppkey AND s_nationkey = c_nationkey
JOIN nation ON n_nationkey = s_nationkey JOIN region ON r_regionkey = n_regionkey
WHERE r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name
""",
}


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rollview" / "bench"


def data(scale: float, tables: tuple[str, ...] = TABLES) -> Path:
    """The tables as Parquet, made once and kept outside the project."""
    place = cache() / f"{'w' if tables == TABLES else 'h'}-sf{scale:g}"
    if not place.exists():
        staging = place.with_suffix(".part")
        shutil.rmtree(staging, ignore_errors=True)
        generator = Path(sys.executable).with_name("tpchgen-cli")
        asked = f"--tables={','.join(tables)}"
        subprocess.run([generator, "parquet", "-s", f"{scale:g}", asked, f"--output-dir={staging}"], check=True)
        staging.rename(place)
    return place


@once
def table(source: Path, name: str) -> pa.Table:
    read = pq.read_table(source / f"{name}.parquet")
    plain = [pa.field(f.name, pa.string() if "string" in str(f.type) else f.type) for f in read.schema]
    return read.cast(pa.schema(plain))


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows by table that go and rows that come, in one transaction."""

    deleted: dict[str, pa.Table]
    inserted: dict[str, pa.Table]


def batches(source: Path, size: int, seed: int = 1, after: int = 0) -> Iterator[Batch]:
    """Each deletes ``size`` orders and brings ``size`` new ones, with their lines; keys are spread at random.

    ``after``: so many orders in that random order are left to batches before.
    """
    orders, lines = table(source, "orders"), table(source, "lineitem")
    keys = orders["o_orderkey"].to_numpy()
    chosen = np.random.default_rng(seed).permutation(len(keys))
    step = int(keys.max()) + 1
    for number, start in enumerate(range(after, len(keys) - 2 * size, 2 * size), 1):
        gone, copied = keys[chosen[start : start + size]], keys[chosen[start + size : start + 2 * size]]
        deleted = {"orders": _of(orders, "o_orderkey", gone), "lineitem": _of(lines, "l_orderkey", gone)}
        new = {"orders": _of(orders, "o_orderkey", copied), "lineitem": _of(lines, "l_orderkey", copied)}
        inserted = {
            "orders": _shifted(new["orders"], "o_orderkey", number * step),
            "lineitem": _shifted(new["lineitem"], "l_orderkey", number * step),
        }
        yield Batch(deleted, inserted)


def _of(rows: pa.Table, column: str, keys: np.ndarray) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], pa.array(keys)))


def _shifted(rows: pa.Table, column: str, by: int) -> pa.Table:
    place = rows.schema.get_field_index(column)
    return rows.set_column(place, column, pc.add(rows[column], pa.scalar(by, pa.int64())))
