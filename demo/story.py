"""A shop's day, told in the terminal. Everything shown is computed while you watch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from demo.others import second_act
from demo.telling import chapter, console, say, show_sql, show_table, timed
from pyspark.sql import DataFrame
from rich.table import Table

import rollview
from rollview import Warehouse
from rollview.engine import session
from rollview.errors import Conflict
from rollview.results import Refreshed

CUSTOMERS, ORDERS, LINES = 20_000, 150_000, 450_000

TABLES = """
CREATE TABLE customers (id BIGINT PRIMARY KEY, name STRING, state STRING NOT NULL);
CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT REFERENCES customers (id), day DATE);
CREATE TABLE lines (order_id BIGINT REFERENCES orders (id), product STRING, amount DECIMAL(12,2));
"""

VIEWS = (
    """
CREATE MATERIALIZED VIEW revenue_by_state AS
SELECT c.state, SUM(l.amount) AS revenue, COUNT(*) AS lines
FROM customers c JOIN orders o ON o.customer = c.id JOIN lines l ON l.order_id = o.id
GROUP BY c.state
""",
    """
CREATE MATERIALIZED VIEW sales AS
SELECT o.id AS order_id, c.state, l.product, l.amount
FROM customers c JOIN orders o ON o.customer = c.id JOIN lines l ON l.order_id = o.id
WHERE l.amount > 990
""",
    """
CREATE MATERIALIZED VIEW large_sales_by_state AS
SELECT state, COUNT(*) AS sales, MAX(amount) AS largest FROM sales GROUP BY state
""",
)


def main() -> None:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="rollview-demo-") as folder:
        root = Path(folder) / "shop"
        chapter("A warehouse, three tables, three views")
        with timed("Spark starts"):
            spark = session.start()
        Warehouse.create(root).close()
        with rollview.open(root, spark=spark) as wh:
            fill(wh)
            create_views(wh)
            change_things_at_once(wh)
            refresh_beside_recomputation(wh)
            roll_back_in_time(wh)
            die_and_recover(wh, root)
            prove_it(wh)
        second_act(Path(folder), spark)
    console.print(
        f"\n[bold green]That took {time.perf_counter() - began:.0f} seconds.[/] Now try it: rollview init shop"
    )


def fill(wh: Warehouse) -> None:
    show_sql(TABLES.strip())
    wh.sql(TABLES)
    states = "element_at(array('CA', 'NY', 'TX', 'WA', 'WI'), CAST(id % 5 + 1 AS INT))"
    with (
        timed(f"{CUSTOMERS:,} customers, {ORDERS:,} orders, {LINES:,} lines in one transaction"),
        wh.transaction() as tx,
    ):
        tx.insert("customers", rows(wh, CUSTOMERS, "id", "concat('customer ', id) AS name", f"{states} AS state"))
        tx.insert("orders", rows(wh, ORDERS, "id", f"id * 7919 % {CUSTOMERS} AS customer", "DATE'2026-11-15' AS day"))
        tx.insert(
            "lines",
            rows(
                wh,
                LINES,
                f"id % {ORDERS} AS order_id",
                "concat('product ', id % 97) AS product",
                "CAST(id * 31 % 100000 / 100 AS DECIMAL(12,2)) AS amount",
            ),
        )
    say(f"All of it is commit [bold]{tx.csn}[/]: one csn, one row in the ledger.")


def rows(wh: Warehouse, count: int, *expressions: str) -> DataFrame:
    return wh.spark.range(count).selectExpr(*expressions)


def create_views(wh: Warehouse) -> None:
    for text in VIEWS:
        show_sql(text.strip())
        with timed("created and filled"):
            created = wh.create_view(text)
        notes = "; ".join(f"{note.operator}: {note.how}" for note in wh.explain(created.name).operators)
        say(f"[bold]{created.name}[/] has {created.rows:,} rows. {notes}.")


def change_things_at_once(wh: Warehouse) -> None:
    chapter("Transactions that run at the same time")
    first, second = wh.transaction(), wh.transaction()
    with first as one:
        one.sql("UPDATE customers SET state = 'WI' WHERE id = 7")
        try:
            with second as two:
                two.sql("DELETE FROM lines WHERE order_id = 7", "UPDATE customers SET state = 'NY' WHERE id = 7")
                one.commit()
        except Conflict as conflict:
            say(f"[yellow]{conflict.message}[/] {conflict.hint}")
    failures: list[BaseException] = []
    clerks = [threading.Thread(target=clerk, args=(wh, i, failures)) for i in range(3)]
    for thread in clerks:
        thread.start()
    for thread in clerks:
        thread.join()
    if failures:
        raise failures[0]
    say(f"Three clerks wrote at once; the newest commit is [bold]{wh.snapshot().moment.csn}[/].")
    wh.sql("DELETE FROM lines WHERE order_id IN (11, 12, 13)", "DELETE FROM orders WHERE id IN (11, 12, 13)")
    say("Three orders were deleted with their lines, in one transaction.")


def clerk(wh: Warehouse, number: int, failures: list[BaseException]) -> None:
    """One order with two lines; again, if another clerk was first."""
    order = 1_000_000 + number
    while True:
        try:
            wh.sql(
                f"INSERT INTO orders VALUES ({order}, {number * 5}, DATE'2026-11-15')",
                f"INSERT INTO lines VALUES ({order}, 'product 1', 9999.00), ({order}, 'product 2', 0.99)",
            )
            return
        except Conflict:
            continue
        except BaseException as error:
            failures.append(error)
            return


def refresh_beside_recomputation(wh: Warehouse) -> None:
    chapter("Refresh: only what changed, beside what recomputation needs")
    with timed("the first refresh of this process, while Spark still loads its code"):
        wh.refresh()
    wh.sql("DELETE FROM lines WHERE order_id IN (21, 22, 23)", "UPDATE customers SET state = 'TX' WHERE id = 8")
    stale = {view.name: view.staleness_commits for view in wh.status().views}
    began = time.perf_counter()
    refreshed = wh.refresh()
    total = time.perf_counter() - began
    base = sum(table.rows or 0 for table in wh.status().tables)
    console.print(compared(refreshed, stale, {view.name: recomputation(wh, view.name) for view in refreshed.views}))
    say(f"All three views were published at csn {refreshed.csn} in one step, {total:.2f} s in all.")
    say(f"Recomputing reads {base:,} rows. Both were done once before, so that neither loads code.")


def compared(refreshed: Refreshed, stale: Mapping[str, int], recomputed: Mapping[str, float]) -> Table:
    """Each view's refresh beside its recomputation, both warm; it fits 80 columns."""
    table = Table("view", "behind", "changes", "read", "refresh", "recompute", title=f"refresh to csn {refreshed.csn}")
    for view in refreshed.views:
        table.add_row(
            view.name,
            str(stale[view.name]),
            f"{view.delta_rows:,}",
            f"{view.bytes_read / 1024:,.0f} KiB",
            f"{view.seconds:.2f} s",
            f"{recomputed[view.name]:.2f} s",
        )
    return table


def recomputation(wh: Warehouse, name: str) -> float:
    """Seconds, the second time."""
    from rollview.relations.reader import Reader

    reader, seconds = Reader(wh.spark, wh.root / "data", wh.snapshot()), 0.0
    for _ in range(2):
        began = time.perf_counter()
        reader.recompute(name, wh.snapshot().moment.csn).toArrow()
        seconds = time.perf_counter() - began
    return seconds


def roll_back_in_time(wh: Warehouse) -> None:
    chapter("Two views, rolled together to a moment in the past")
    past = wh.catalog.ledger()[0]
    names = ["revenue_by_state", "sales"]
    show_table(wh.read("revenue_by_state").orderBy("state"), "revenue_by_state now")
    with timed(f"rolled to {past.ledger_time:%H:%M:%S}"):
        rolled = wh.roll(names, past.ledger_time)
    for view in rolled.views:
        say(f"[bold]{view.name}[/]: csn {view.before} → {view.after}, {view.rows:,} rows")
    show_table(wh.read("revenue_by_state").orderBy("state"), f"revenue_by_state at csn {rolled.csn}")
    show_table(wh.delta("revenue_by_state", 1, 3).orderBy("_csn", "state", "_count"), "its delta over (1, 3]")
    wh.roll(names, "latest")


def die_and_recover(wh: Warehouse, root: Path) -> None:
    chapter("Killed in the middle")
    wh.sql("UPDATE lines SET amount = amount + 1 WHERE order_id = 20")
    newest = wh.snapshot().moment.csn
    with timed("another process refreshes, and is killed when its new extents are written but not published"):
        code = in_another_process(root, fault="apply.computed")
    say(f"It died of signal {-code} ({signal.Signals(-code).name}).")
    before = wh.status().views[0].csn
    say(f"Readers still see csn [bold]{before}[/], whole.")
    with timed("the next refresh finishes the work by itself"):
        wh.refresh()
    say(f"Now they see csn [bold]{wh.status().views[0].csn}[/] of {newest}. Nothing was lost, nothing counted twice:")


def in_another_process(root: Path, fault: str) -> int:
    code = f"import rollview; rollview.open({str(root)!r}).refresh()"
    environment = {**os.environ, "ROLLVIEW_FAULT": fault}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the other process ended with {done.returncode}: {done.stderr}")
    return done.returncode


def prove_it(wh: Warehouse) -> None:
    table = Table("view", "csn", "rows", "recomputed from the base tables")
    for view in wh.status().views:
        answer = wh.verify(view.name)
        table.add_row(view.name, str(answer.csn), f"{answer.rows:,}", "equal" if answer.equal else "DIFFERENT")
        if not answer.equal:
            raise SystemExit(f"{view.name} differs: {answer.missing} {answer.surplus}")
    console.print(table)


if __name__ == "__main__":
    main()
