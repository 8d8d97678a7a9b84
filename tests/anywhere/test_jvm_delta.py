"""The JVM Delta library reads what rollview writes, and rollview captures what that library writes.

Runs where ``ROLLVIEW_DELTA_JARS`` names the library's jars, separated by colons, and ``ROLLVIEW_DELTA_PYTHON`` a Python
whose PySpark they are built for; ``make interop`` sees to both.
"""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rollview import Warehouse
from rollview.catalog import Part
from rollview.engine import java
from rollview.sources import SourceSettings, TableSettings
from tests.sources.harness import capture, stored_at_each

JARS = os.environ.get("ROLLVIEW_DELTA_JARS", "")
PYTHON = os.environ.get("ROLLVIEW_DELTA_PYTHON", "")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(not (JARS and PYTHON), reason="NOT RUN: no JVM Delta library; 'make interop' fetches one"),
]

_SERVICES = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"


class Jvm:
    def __init__(self, folder: Path) -> None:
        # jars that bundle many libraries lose the line by which Spark finds the format
        registered = folder / "delta-format.jar"
        with zipfile.ZipFile(registered, "w") as jar:
            jar.writestr(_SERVICES, "org.apache.spark.sql.delta.sources.DeltaDataSource\n")
        self._jars = ",".join([*JARS.split(":"), str(registered)])
        self._folder = folder

    def ask(self, *tasks: tuple[object, ...]) -> Any:
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": PYTHON}
        java.prepare(environment)
        script = Path(__file__).with_name("jvm_delta.py")
        told = subprocess.run(
            [PYTHON, script, self._jars, *map(json.dumps, tasks)],
            cwd=self._folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert told.returncode == 0, told.stdout[-2000:] + told.stderr[-6000:]
        return json.loads(told.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Jvm:
    return Jvm(tmp_path_factory.mktemp("jvm"))


def spelled(rows: Any) -> list[list[str]]:
    return sorted([str(value) for value in row] for row in rows)


def test_the_jvm_library_reads_what_rollview_writes_and_rollview_captures_what_it_writes(
    jvm: Jvm, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake" / "people")
    (made,) = jvm.ask(("create", lake))
    assert made == [0]
    with Warehouse.create(tmp_path / "w"), Warehouse.open(tmp_path / "w", conf={"master": "local[1]"}) as wh:
        settings = SourceSettings("delta", str(tmp_path / "lake"), (TableSettings("people", "people"),))
        wh.add_source("lake", settings)
        wh.create_view("CREATE MATERIALIZED VIEW rich AS SELECT id, name, amount, at FROM people WHERE amount > 10")
        wh.create_view(
            "CREATE MATERIALIZED VIEW totals AS SELECT at, SUM(amount) AS s, COUNT(*) AS n FROM people GROUP BY at"
        )
        versions, theirs = jvm.ask(("change", lake), ("read", lake, 3))
        assert versions == [4, 3, 2, 1, 0] or versions == [3, 2, 1, 0]
        wh.capture()
        wh.refresh()
        columns = [column.name for column in wh.snapshot().get("people").schema]
        assert columns == ["id", "name", "amount", "at"]
        assert spelled(wh.read("people").collect()) == theirs
        assert all(wh.verify(name).equal for name in ("rich", "totals"))
        for name in ("rich", "totals"):
            view = wh.snapshot().get(name)
            place, pin = str(wh.root / "data" / view.folder / "extent"), view.pins[Part.EXTENT]
            rows, seen = jvm.ask(("read", place, pin.version), ("history", place))
            assert rows == spelled(wh.read(name).collect())
            assert rows
            assert pin.version in seen
        wh.spark.stop()


def test_columns_that_the_jvm_library_maps_are_followed_by_their_ids(jvm: Jvm, tmp_path: Path) -> None:
    """At every csn that belongs to a version, a table has the columns and rows that it had there."""
    lake = str(tmp_path / "lake" / "t")
    jvm.ask(("create_mapped", lake))
    with Warehouse.create(tmp_path / "w") as wh:
        wh.add_source("lake", SourceSettings("delta", str(tmp_path / "lake"), (TableSettings("t", "t"),)))
        born = {one.column: one.id for one in wh.schema_at("t", 1).columns}
        (theirs,) = jvm.ask(("change_mapped", lake))
        capture(wh)
        relation, entries = wh.snapshot().get("t"), wh.catalog.ledger()
        csns = [entry.csn for entry in entries]
        for entry, rows in zip(entries, stored_at_each(wh, "t", csns), strict=True):
            names, told = theirs[entry.position]
            then = {c.stored: names.index(c.name) for c in relation.schema_at(entry.csn)}
            assert sorted(then.values()) == list(range(len(names)))
            kept = [(here, then[c.stored]) for here, c in enumerate(relation.schema) if c.stored in then]
            assert spelled([row[here] for here, _ in kept] for row in rows.elements()) == spelled(
                [row[there] for _, there in kept] for row in told
            )
        assert [entry.position for entry in entries][-1] == max(theirs, key=int)
        last = {one.column: one.id for one in wh.schema_at("t", 5).columns}
        assert (last["title"], last["name"], last["half"]) == (born["name"], born["amount"], born["part"])
