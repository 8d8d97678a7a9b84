"""Workers side by side: the same deltas, marks and extents as one worker, whatever pauses there are."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.faults.crew import Place, crew_on
from tests.sizes import by_request, times
from tests.spark.oracle.bags import Bag, bag
from tests.spark.oracle.warehouses import assert_verified, extent, fresh

from rollview.catalog import Catalog, Part, Relation
from rollview.core.interval import Interval
from rollview.errors import Busy, EngineFailed, Retryable
from rollview.propagate import bounds, plan
from rollview.publish import step as steps
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

STEP, COMMITS = 3, 9
VIEWS = {
    "joined": "SELECT r.k, r.x, s.g FROM r JOIN s ON r.k = s.k",
    "again": "SELECT r.k, r.x, s.g FROM r JOIN s ON r.k = s.k",
    "outer_joined": "SELECT r.x, s.g FROM r LEFT JOIN s ON r.k = s.k",
    "total": "SELECT g, SUM(x) AS x, COUNT(*) AS n FROM r JOIN s ON r.k = s.k GROUP BY g",
    "largest": "SELECT k, MAX(x) AS x FROM r GROUP BY k",
    "whole": "SELECT k, x FROM r ORDER BY x, k LIMIT 3",
    "upper": "SELECT g, SUM(x) AS x FROM joined GROUP BY g",
    "top": "SELECT u.g, u.x, t.n FROM upper u JOIN total t ON u.g = t.g",
}


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("side_by_side") / "written"
    with fresh(spark, root) as warehouse:
        warehouse.sql("CREATE TABLE r (k BIGINT, x BIGINT)", "CREATE TABLE s (k BIGINT, g STRING)")
        for name, query in VIEWS.items():
            warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        write(warehouse, COMMITS)
    return root


@pytest.fixture
def behind(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A warehouse whose views are several steps behind."""
    for place, name in ((bounds, "FIRST_COMMITS"), (bounds, "FIRST_COMMITS_AGAIN"), (bounds, "FEWEST_COMMITS")):
        monkeypatch.setattr(place, name, STEP)
    monkeypatch.setattr(plan, "FEWEST_COMMITS", STEP)
    monkeypatch.setattr(bounds, "TARGET_SECONDS", 0.0)
    return shutil.copytree(written, tmp_path / "behind")


def write(warehouse: Warehouse, commits: int, seed: int = 1) -> None:
    random = Random(seed)
    for _ in range(commits):
        key, value = random.randrange(5), random.randrange(100)
        match random.randrange(4):
            case 0:
                warehouse.sql(f"INSERT INTO s VALUES ({key}, 'g{value % 3}')")
            case 1:
                warehouse.sql(f"DELETE FROM r WHERE k = {key} AND x > {value}")
            case _:
                warehouse.sql(f"INSERT INTO r VALUES ({key}, {value}), ({key + 1}, {value})")


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Random:
    """At every point at which a process may be killed, steps of all threads wait for a random while."""
    random, lock = Random(), threading.Lock()

    def pause(point: str) -> None:
        with lock:
            seconds = random.random() * 0.04
        time.sleep(seconds)

    monkeypatch.setattr(steps, "reach", pause)
    return random


def told(warehouse: Warehouse) -> dict[str, Any]:
    """Of every view: its stored delta, its extent, its marks, and where it cannot be read."""
    return {view.name: _told(warehouse, view) for view in warehouse.snapshot().views()}


def _told(warehouse: Warehouse, view: Relation) -> tuple[Bag, Bag, object]:
    delta, shown = view.pins[Part.DELTA], view.pins[Part.EXTENT]
    stored = DeltaTable(warehouse.root / "data" / view.folder / Part.DELTA, version=delta.version).to_pyarrow_table()
    changes = bag(tuple(row.values()) for row in stored.to_pylist())
    marks = (delta.after, delta.through, shown.through, view.coarse, view.problem)
    return changes, extent(warehouse, view.name), marks


def refreshed(spark: SparkSession, behind: Path, root: Path, workers: int) -> dict[str, Any]:
    shutil.copytree(behind, root)
    with Warehouse.open(root, spark=spark) as warehouse:
        warehouse.refresh(workers=workers)
        assert warehouse.catalog.steps(status="running") == ()
        return told(warehouse)


def test_deltas_marks_and_extents_do_not_depend_on_the_number_of_workers(
    spark: SparkSession, behind: Path, tmp_path: Path, pauses: Random
) -> None:
    pauses.seed(0)
    alone = refreshed(spark, behind, tmp_path / "1", 1)
    for number in range(times(1, 20)):
        for workers in (2, 4, 8):
            pauses.seed(f"{number} {workers}")
            assert refreshed(spark, behind, tmp_path / f"{number} {workers}", workers) == alone, (number, workers)


def test_steps_of_a_view_are_computed_side_by_side_and_published_in_order(
    spark: SparkSession, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []
    together = threading.Barrier(2)

    def reach(point: str) -> None:
        seen.append((point, threading.current_thread().name))
        if point == "propagate.begun":
            together.wait(60)

    monkeypatch.setattr(steps, "reach", reach)
    with Warehouse.open(behind, spark=spark, parallel=2) as warehouse:
        before = warehouse.snapshot().get("again").pins[Part.DELTA].through
        through = before + 2 * STEP
        warehouse.refresh(["again"], to=through)
        assert warehouse.snapshot().get("again").pins[Part.DELTA].through == through
        done = [step for step in warehouse.catalog.steps("again", None) if step.kind == "propagate"]
        assert sorted((step.interval for step in done), key=lambda one: one.after) == [
            Interval(before, before + STEP),
            Interval(before + STEP, through),
        ]
        assert_verified(warehouse, "again")
    assert len({thread for point, thread in seen if point == "propagate.begun"}) == 2


def test_what_fails_stops_alone_with_what_reads_it_and_nothing_computed_ahead_stays(
    spark: SparkSession, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Warehouse.open(behind, spark=spark, parallel=4) as warehouse:
        before = warehouse.snapshot().get("joined").pins[Part.DELTA].through
        original = steps.RunningStep.log

        def log(running: steps.RunningStep, versions: Any, note: Any) -> Any:
            if running.kind == "propagate" and note["view"] == "joined" and f"({before + STEP}," in note["interval"]:
                raise EngineFailed("no more of it")
            return original(running, versions, note)

        monkeypatch.setattr(steps.RunningStep, "log", log)
        with pytest.raises(EngineFailed, match="'joined': no more of it"):
            warehouse.refresh()
        assert warehouse.catalog.steps(status="running") == ()
        marks = {view.name: view.pins[Part.DELTA].through for view in warehouse.snapshot().views()}
        newest = warehouse.snapshot().moment.csn
        assert {name for name, mark in marks.items() if mark < newest} == {"joined", "upper", "top"}
        assert marks["joined"] == before + STEP
        monkeypatch.undo()
        warehouse.refresh()
        assert_verified(warehouse, "joined", "top")


PROCESS = """
import sys, threading
from rollview.catalog import Part
from rollview.propagate import bounds, plan
from rollview.warehouse import Warehouse

root, step = sys.argv[1], int(sys.argv[2])
bounds.FIRST_COMMITS = bounds.FIRST_COMMITS_AGAIN = bounds.FEWEST_COMMITS = plan.FEWEST_COMMITS = step
with Warehouse.open(root, conf={"spark.master": "local[1]", "spark.driver.memory": "1g"}, parallel=2) as warehouse:
    stop, idle = threading.Event(), threading.Event()

    def watch():
        while not idle.wait(0.2):
            now = warehouse.snapshot()
            if all(view.pins[Part.EXTENT].through == now.moment.csn for view in now.views()):
                stop.set()

    watching = threading.Thread(target=watch)
    watching.start()
    for event in warehouse.run(0.1, stop, schedule="continuous"):
        if isinstance(event, Exception):
            print(event, file=sys.stderr)
    idle.set()
    watching.join()
"""


@by_request
def test_three_processes_share_the_views_and_come_to_the_same(
    spark: SparkSession, behind: Path, tmp_path: Path
) -> None:
    alone, shared = refreshed(spark, behind, tmp_path / "alone", 1), shutil.copytree(behind, tmp_path / "shared")
    for _ in range(times(1, 5)):
        command = [sys.executable, "-c", PROCESS, str(shared), str(STEP)]
        processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
        said = [process.communicate(timeout=300)[1] for process in processes]
        assert [process.returncode for process in processes] == [0, 0, 0], said
        with Warehouse.open(shared, spark=spark) as warehouse:
            assert told(warehouse) == alone
        shutil.rmtree(shared)
        shutil.copytree(behind, shared)


def take_turns(warehouse: Warehouse, step: int, seed: int) -> None:
    """A process that refreshes one view after another until all are at the newest csn, with random pauses."""
    random = Random(seed)
    for place, name in ((bounds, "FIRST_COMMITS"), (bounds, "FIRST_COMMITS_AGAIN"), (bounds, "FEWEST_COMMITS")):
        setattr(place, name, step)
    plan.FEWEST_COMMITS, bounds.TARGET_SECONDS = step, 0.0
    steps.reach = lambda point: time.sleep(random.random() * 0.04)  # type: ignore[assignment]
    names = list(VIEWS)
    while _is_behind(warehouse):
        random.shuffle(names)
        for name in names:
            with suppress(Busy, Retryable):
                warehouse.refresh([name])


def _is_behind(warehouse: Warehouse) -> bool:
    now = warehouse.snapshot()
    return any(view.pins[Part.EXTENT].through < now.moment.csn for view in now.views())


def test_three_processes_with_pauses_share_the_views_and_come_to_the_same(
    spark: SparkSession, behind: Path, tmp_path: Path
) -> None:
    alone = refreshed(spark, behind, tmp_path / "alone", 1)
    for number in range(times(1, 10)):
        shared = shutil.copytree(behind, tmp_path / f"shared {number}")
        with crew_on(spark) as crew:
            workers = [crew.start(Place(shared), take_turns, STEP, 10 * number + one) for one in range(3)]
            ended = [worker.end() for worker in workers]
        assert [one.error for one in ended] == [None] * 3, ended
        with Warehouse.open(shared, spark=spark) as warehouse:
            assert told(warehouse) == alone
            refreshed_by = {step.owner for name in VIEWS for step in warehouse.catalog.steps(name, None)}
            assert len(refreshed_by) > 1, "one process did everything"


@pytest.fixture
def redefined(spark: SparkSession, behind: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, int]:
    """The same with a view that is to get another definition at a csn in the middle, and the csn."""
    with Warehouse.open(behind, spark=spark) as warehouse:
        with monkeypatch.context() as patch:
            patch.setattr("rollview.sql.redefine._carried_on", _interrupted)
            with pytest.raises(KeyboardInterrupt):
                warehouse.sql(f"CREATE OR REPLACE MATERIALIZED VIEW again AS {VIEWS['again']} WHERE r.x > 20")
        csn = warehouse.snapshot().moment.csn
        write(warehouse, COMMITS, seed=2)
    return behind, csn


def _interrupted(*_: object) -> bool:
    raise KeyboardInterrupt


def test_changes_after_a_definition_are_computed_beside_the_rows_that_it_gives(
    spark: SparkSession, redefined: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, csn = redefined
    computed = threading.Event()
    original = steps.RunningStep.log

    def log(running: steps.RunningStep, versions: Any, note: Any) -> Any:
        if running.kind == "adapt":
            assert computed.wait(60), "nothing is computed beside it"
        return original(running, versions, note)

    def reach(point: str) -> None:
        if point == "propagate.computed" and "adapt" in {step.kind for step in going.catalog.steps(status="running")}:
            computed.set()

    monkeypatch.setattr(steps.RunningStep, "log", log)
    monkeypatch.setattr(steps, "reach", reach)
    with Warehouse.open(root, spark=spark, parallel=3) as going:
        going.refresh(["again"])
        marks = [step.interval for step in going.catalog.steps("again", None) if step.kind in ("propagate", "adapt")]
        ordered = sorted(marks, key=lambda one: one.after)
        assert all(one.through == other.after for one, other in pairwise(ordered)), "published one after another"
        assert Interval(csn - 1, csn) in ordered
        assert_verified(going, "again")
        assert all(going.verify("again", at=at).equal for at in (csn - 1, csn, csn + 1))


def test_what_was_computed_beyond_a_definition_that_fails_is_thrown_away_and_done_again(
    spark: SparkSession, redefined: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, csn = redefined
    original = steps.RunningStep.log

    def log(running: steps.RunningStep, versions: Any, note: Any) -> Any:
        if running.kind == "adapt":
            raise EngineFailed("no rows of it")
        return original(running, versions, note)

    with Warehouse.open(root, spark=spark, parallel=3) as warehouse:
        with monkeypatch.context() as patch:
            patch.setattr(steps.RunningStep, "log", log)
            with pytest.raises(EngineFailed, match="no rows of it"):
                warehouse.refresh(["again"])
        assert warehouse.catalog.steps(status="running") == ()
        assert warehouse.snapshot().get("again").pins[Part.DELTA].through == csn - 1
        assert warehouse.read("again", as_of=csn - 1).columns == ["k", "x", "g"]
        warehouse.refresh(["again"])
        assert_verified(warehouse, "again")


def test_what_a_table_called_otherwise_meanwhile_makes_stale_is_done_again(
    spark: SparkSession, redefined: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, csn = redefined
    beyond, done = threading.Event(), threading.Event()
    original = steps.RunningStep.log

    def log(running: steps.RunningStep, versions: Any, note: Any) -> Any:
        if running.kind == "adapt" and not done.is_set():
            assert beyond.wait(60), "nothing is computed beyond it"
            going.sql("ALTER TABLE r RENAME TO orders")
            done.set()
        return original(running, versions, note)

    def reach(point: str) -> None:
        if point == "propagate.computed" and "adapt" in {step.kind for step in going.catalog.steps(status="running")}:
            beyond.set()

    monkeypatch.setattr(steps.RunningStep, "log", log)
    monkeypatch.setattr(steps, "reach", reach)
    with Warehouse.open(root, spark=spark, parallel=3) as going:
        going.refresh(["again"])
        assert done.is_set()
        adapted = [step.status for step in going.catalog.steps("again", None) if step.kind == "adapt"]
        assert sorted(adapted) == ["done", "failed"]
        assert going.snapshot().get("again").pins[Part.DELTA].through >= csn
        going.refresh(["again"])
        assert_verified(going, "again")
        assert all(going.verify("again", at=at).equal for at in (csn - 1, csn, csn + 1))


def test_a_step_that_another_published_meanwhile_is_done_again_from_there(
    spark: SparkSession, behind: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = refreshed(spark, behind, tmp_path / "alone", 1)
    held: list[Any] = []
    original, first = Catalog.lease, threading.Event()

    @contextmanager
    def shared(catalog: Catalog, *names: str, **about: Any) -> Iterator[Any]:
        """The other one has the lease that this one has."""
        if first.is_set():
            yield held[0]
            return
        with original(catalog, *names, **about) as lease:
            held.append(lease)
            yield lease

    def reach(point: str) -> None:
        if point == "propagate.computed" and not first.is_set():
            first.set()
            newest = other.snapshot().get("again").pins[Part.DELTA].through + STEP
            other.refresh(["again"], to=newest)

    monkeypatch.setattr(Catalog, "lease", shared)
    with Warehouse.open(behind, spark=spark) as going, Warehouse.open(behind, spark=spark) as other:
        monkeypatch.setattr(steps, "reach", reach)
        going.refresh(["again"])
        assert first.is_set()
        assert told(going)["again"] == alone["again"]
        assert "failed" in {step.status for step in going.catalog.steps("again", None)}
        assert going.catalog.steps(status="running") == ()
