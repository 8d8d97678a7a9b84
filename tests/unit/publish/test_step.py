"""The one way to publish, killed and failed at each point: what is pinned is whole, and nothing else is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.unit.maintain.small import HOMES, Small

from rollview.catalog import Part
from rollview.core.faults import STEPS
from rollview.core.interval import Interval
from rollview.publish.recover import discard_abandoned
from rollview.publish.step import NewVersion, RunningStep, publish_together, recorded
from rollview.warehouse import Warehouse

POINTS = ("begun", "computed", "first_logged", "logged")
TOGETHER = ("publish.begun", "publish.pinned", "publish.published")

_PROGRAM = """
import os, sys
from pathlib import Path
from rollview.warehouse import Warehouse
from tests.unit.maintain.small import Small
from tests.unit.publish.test_step import TOGETHER, run_step

for line in sys.stdin:
    root, point = line.rstrip().split("\\t")
    child = os.fork()
    if child == 0:
        os.environ["ROLLVIEW_FAULT"] = point
        with Warehouse.open(Path(root)) as warehouse:
            run_step(Small(warehouse), together=point in TOGETHER)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Everything is loaded once, and one process is forked for each kill."""


class _Failure(Exception):
    pass


def run_step(small: Small, *, together: bool = False, fails_at: str = "") -> None:
    """One row into the table's state and one into its delta, published as one step."""

    def passed(point: str) -> None:
        if point == fails_at:
            raise _Failure

    catalog, relation = small.warehouse.catalog, small.warehouse.snapshot().get("t")
    state, delta = (small.stored("t").folder(part) for part in (Part.STATE, Part.DELTA))
    places = (state.new_folder(), delta.new_folder())
    paths = (f"{HOMES['t']}/{Part.STATE}/{places[0]}", f"{HOMES['t']}/{Part.DELTA}/{places[1]}")
    with (
        catalog.lease("relation:t") as lease,
        recorded(catalog, lease, small.data, "t", "apply", Interval(0, 1), paths) as step,
    ):
        step.begun()
        passed("begun")
        rows = pa.table({"id": [9], "x": ["z"]})
        changes = rows.append_column("_count", pa.array([1])).append_column("_csn", pa.array([1]))
        new = [
            NewVersion("t", Part.STATE, state, relation.pins[Part.STATE], state.stage(rows, places[0])),
            NewVersion("t", Part.DELTA, delta, relation.pins[Part.DELTA], delta.stage(changes, places[1])),
        ]
        step.computed()
        passed("computed")
        logged = step.log(new, {})
        passed("logged")
        done = [(step, {"rows": 2})]
        publish = publish_together(catalog, lease, done) if together else step.publish(lease, {"rows": 2})
        with publish as publishing:
            for one in logged:
                publishing.show(one, 0, 1)
            passed("pinned")
        passed("published")


@pytest.fixture(scope="module")
def killed() -> Iterator[Callable[[Path, str], None]]:
    """Runs a step on a warehouse in a process that dies at a point."""
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], env=environment, text=True, **pipes) as parent:  # type: ignore[call-overload]

        def kill(root: Path, point: str) -> None:
            assert parent.stdin is not None
            assert parent.stdout is not None
            parent.stdin.write(f"{root}\t{point}\n")
            parent.stdin.flush()
            assert parent.stdout.readline() == f"{-signal.SIGKILL}\n"

        yield kill


def check(small: Small, *, is_there: bool) -> None:
    """Pins, newest versions, files and steps tell the same."""
    catalog = small.warehouse.catalog
    for part in (Part.STATE, Part.DELTA):
        folder, pin = small.stored("t").folder(part), small.pin("t", part)
        assert folder.load(folder.files(pin.version)).column("id").to_pylist() == ([9] if is_there else [])
        assert pin.rows == (1 if is_there else 0)
        assert pin.through == (1 if is_there else 0)
        newest = DeltaTable(folder.root).to_pyarrow_table()
        assert newest.column("id").to_pylist() == ([9] if is_there else [])
        staged = [path for path in folder.root.iterdir() if path.name.startswith("s-")]
        assert len(staged) == (1 if is_there else 0)
    assert catalog.steps(status="running") == ()
    assert [step.status for step in catalog.steps(status="done")] == (["done"] if is_there else [])


@pytest.mark.parametrize("point", [*(f"apply.{point}" for point in POINTS), *TOGETHER])
def test_killed_at_a_point_it_is_published_whole_or_not_at_all(
    tmp_path: Path, killed: Callable[[Path, str], None], point: str
) -> None:
    with Small.founded(tmp_path / "shop").warehouse:
        pass
    killed(tmp_path / "shop", point)
    with Warehouse.open(tmp_path / "shop") as warehouse:
        small = Small(warehouse)
        discard_abandoned(warehouse.catalog, small.data)
        is_there = point == "publish.published"
        check(small, is_there=is_there)
        if not is_there:
            run_step(small)
            check(small, is_there=True)


@pytest.mark.parametrize("point", ["begun", "computed", "logged", "pinned"])
def test_failed_at_a_point_nothing_of_it_is_left(tmp_path: Path, point: str) -> None:
    with Small.founded(tmp_path / "shop").warehouse as warehouse:
        small = Small(warehouse)
        with pytest.raises(_Failure):
            run_step(small, fails_at=point)
        check(small, is_there=False)
        (step,) = warehouse.catalog.steps()
        assert step.status == "failed"


def test_what_fails_after_it_was_published_stays(tmp_path: Path) -> None:
    with Small.founded(tmp_path / "shop").warehouse as warehouse:
        small = Small(warehouse)
        with pytest.raises(_Failure):
            run_step(small, fails_at="published")
        check(small, is_there=True)


def test_a_version_that_changes_nothing_is_not_written(tmp_path: Path) -> None:
    with Small.founded(tmp_path / "shop").warehouse as warehouse:
        small = Small(warehouse)
        pin, folder = small.pin("t", Part.STATE), small.stored("t").folder(Part.STATE)
        step = RunningStep(warehouse.catalog, small.data, 1, "apply")
        (logged,) = step.log([NewVersion("t", Part.STATE, folder, pin)], {})
        assert (logged.version, logged.rows) == (pin.version, pin.rows)


@pytest.mark.parametrize("kind", ["commit", "capture", "apply", "create", "copy"])
def test_a_kind_that_writes_several_logs_can_be_killed_between_them(kind: str) -> None:
    assert {f"{kind}.first_logged", f"{kind}.logged"} <= STEPS.keys()
