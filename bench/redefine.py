"""What another definition costs beside computing the view from nothing: ``python -m bench.redefine``.

One table of sales and two views: totals by shop and day, and the rows of large sales. Each is renamed, then narrowed or
coarsened, and created anew under another name with the same text, which is what recomputation costs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rollview.engine import session
from rollview.warehouse import Warehouse

ROWS = 2_000_000
TOTALS = "SELECT shop, day, SUM(amount) AS total, COUNT(*) AS n FROM sale GROUP BY shop, day"
LARGE = "SELECT id, shop, day, amount FROM sale WHERE amount > 500"
CHANGES = {
    "totals renamed": (
        "totals",
        "SELECT shop, day, SUM(amount) AS revenue, COUNT(*) AS n FROM sale GROUP BY shop, day",
    ),
    "totals coarsened": ("totals", "SELECT shop, SUM(amount) AS revenue, COUNT(*) AS n FROM sale GROUP BY shop"),
    "totals with AVG": ("totals", "SELECT shop, SUM(amount) AS revenue, AVG(amount) AS mean FROM sale GROUP BY shop"),
    "large renamed": ("large", "SELECT id, shop AS store, day, amount FROM sale WHERE amount > 500"),
    "large narrowed": ("large", "SELECT id, shop AS store, amount FROM sale WHERE amount > 500 AND day < 100"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, default=ROWS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        show(measure(Path(folder) / "warehouse", options.rows))


def measure(root: Path, rows: int) -> dict[str, tuple[float, float, int]]:
    """Seconds of the change and of a recomputation, and steps that the change took, by change."""
    Warehouse.create(root).close()
    found = {}
    with Warehouse.open(root, spark=session.start()) as warehouse:
        warehouse.sql("CREATE TABLE sale (id BIGINT, shop INT, day INT, amount BIGINT)")
        values = "SELECT id, CAST(id % 500 AS INT), CAST(id % 365 AS INT), id * 7919 % 1000"
        warehouse.sql(f"INSERT INTO sale {values} FROM range({rows})")
        for name, text in (("totals", TOTALS), ("large", LARGE)):
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {text}")
        for number, (what, (name, text)) in enumerate(CHANGES.items()):
            steps = len(warehouse.catalog.steps(limit=None))
            changed = timed(warehouse, f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {text}")
            steps = len(warehouse.catalog.steps(limit=None)) - steps
            found[what] = changed, timed(warehouse, f"CREATE MATERIALIZED VIEW anew{number} AS {text}"), steps
    return found


def timed(warehouse: Warehouse, statement: str) -> float:
    began = time.perf_counter()
    warehouse.create_view(statement)
    return time.perf_counter() - began


def show(found: dict[str, tuple[float, float, int]]) -> None:
    table = Table("change", "seconds", "recomputed", "share", "steps")
    for what, (changed, anew, steps) in found.items():
        table.add_row(what, f"{changed:.2f}", f"{anew:.2f}", f"{changed / anew:.2f}", str(steps))
    Console().print(table)


if __name__ == "__main__":
    main()
