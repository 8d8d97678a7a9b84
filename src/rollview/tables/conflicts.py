"""First committer wins.

Law: two transactions that overlap in time and change the same row of a table cannot both commit. The same row means the
same primary key; in a table without one, a row that both delete.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollview.catalog import Part, Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.errors import Conflict
from rollview.tables.ask import ask
from rollview.tables.constraints import Written, told
from rollview.tables.probe import Count, Key, Probe, Test, changes_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_conflict(spark: SparkSession, root: Path, written: Written, began: Snapshot, now: Snapshot) -> None:
    """Raise Conflict if a commit after ``began`` changed a row that this transaction changed too."""
    table = written.relation
    meanwhile = Interval(began.moment.csn, now.moment.csn)
    if table.pins[Part.DELTA].through <= meanwhile.after:
        return
    _check_told(table, meanwhile.after)
    key = table.constraints.checked.primary_key
    columns = key or table.schema.names
    counts = (Count.INSERTED, Count.DELETED) if key else (Count.DELETED,)

    def question(probe: Probe[Any]) -> Key | None:
        theirs = [changes_in(root, table, meanwhile, count) for count in counts]
        for count in counts:
            mine = probe.touched(written.rows(count), columns, with_null=True)
            found = probe.first(probe.having(mine, theirs, columns, Test.SOME))
            if found is not None:
                return found
        return None

    found = ask(spark, written.staged.rows, table.schema, columns, question)
    if found is not None:
        raise Conflict(table.name, told(columns, found))


def _check_told(table: Relation, began: Csn) -> None:
    """What happened meanwhile must still be told commit by commit."""
    if began < table.pins[Part.DELTA].after or any(stretch.strictly_inside(began) for stretch in table.coarse):
        raise Conflict(table.name, f"its changes since csn {began} were pruned or compressed meanwhile")
