from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from rollview.catalog import Catalog, Part, Pin, RelationKind, this_process
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.publish import recover
from rollview.publish.recover import discard_abandoned, has_let_go, let_go, this_owner
from rollview.store.folder import DeltaFolder

HOME = "t-" + "0" * 32
GARBAGE, PINNED = "s-" + "1" * 32, "s-" + "2" * 32


def a_dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize("owner", [this_process().owner, this_owner()], ids=["by pid", "by pid and start"])
@pytest.mark.parametrize("alive", [True, False])
def test_only_what_the_dead_left_unpinned_goes(tmp_path: Path, owner: str, alive: bool) -> None:
    import pyarrow as pa

    schema = Schema((Column("a", "int"),))
    folder = DeltaFolder(tmp_path / HOME / Part.STATE, schema)
    rows = pa.table({"a": pa.array([1], pa.int32())})
    kept = folder.stage(rows, PINNED)
    folder.stage(rows, GARBAGE)
    version = folder.commit(None, kept, (), {})
    if not alive:
        owner = owner.replace(f"pid {this_process().pid}", f"pid {a_dead_pid()}")
    paths = [f"{HOME}/{Part.STATE}/{place}" for place in (GARBAGE, PINNED)] + ["../outside"]
    with Catalog.create(tmp_path / "catalog.db") as catalog:
        with catalog.write() as writer:
            writer.add_relation("t", RelationKind.TABLE, schema, Constraints(), None, (), HOME)
            writer.pin("t", Pin(Part.STATE, version, 0, 0, 1))
            writer.begin_step("t", "fold", Interval(0, 0), owner, paths)
        assert len(discard_abandoned(catalog, tmp_path)) == (0 if alive else 1)
        assert len(catalog.steps(status="running")) == (1 if alive else 0)
    assert (folder.root / GARBAGE).exists() == alive
    assert (folder.root / PINNED).exists()


def test_what_this_process_let_go_is_taken_away_by_itself(tmp_path: Path) -> None:
    with Catalog.create(tmp_path / "catalog.db") as catalog:
        with catalog.write() as writer:
            failed, goes_on = (writer.begin_step("t", "commit", Interval(0, 1), this_owner(), []) for _ in range(2))
        let_go(tmp_path, failed)
        assert has_let_go(tmp_path)
        assert not has_let_go(tmp_path / "elsewhere")
        assert [step.id for step in discard_abandoned(catalog, tmp_path)] == [failed]
        assert [step.id for step in catalog.steps(status="running")] == [goes_on]
        assert not has_let_go(tmp_path)


def test_a_step_of_a_warehouse_made_anew_in_the_same_place_is_not_what_was_let_go(tmp_path: Path) -> None:
    let_go(tmp_path, 1)
    with Catalog.create(tmp_path / "catalog.db") as catalog:
        with catalog.write() as writer:
            assert writer.begin_step("t", "commit", Interval(0, 1), this_owner(), []) == 1
        assert discard_abandoned(catalog, tmp_path) == ()
        assert len(catalog.steps(status="running")) == 1


def test_what_is_let_go_during_a_recovery_is_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog.create(tmp_path / "catalog.db") as catalog:
        with catalog.write() as writer:
            first, second = (writer.begin_step("t", "commit", Interval(0, 1), this_owner(), []) for _ in range(2))
        let_go(tmp_path, first)
        monkeypatch.setattr(recover, "reach", lambda point: let_go(tmp_path, second) if "found" in point else None)
        assert [step.id for step in discard_abandoned(catalog, tmp_path)] == [first]
        monkeypatch.undo()
        assert has_let_go(tmp_path)
        assert [step.id for step in discard_abandoned(catalog, tmp_path)] == [second]
        assert not has_let_go(tmp_path)


def test_threads_recover_and_let_go_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = Barrier(4)

    def none_abandoned(*about: object) -> tuple[()]:
        together.wait(20)
        return ()

    monkeypatch.setattr(recover, "_abandoned", none_abandoned)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Catalog.create(tmp_path / "catalog.db") as catalog, ThreadPoolExecutor(5) as threads:
            let_go(tmp_path, *range(20_000))
            tasks = [threads.submit(discard_abandoned, catalog, tmp_path) for _ in range(4)]
            beside = [threads.submit(let_go, tmp_path / "elsewhere", step) for step in range(1_000)]
            while not all(task.done() for task in (*tasks, *beside)):
                has_let_go(tmp_path)
            assert [task.result() for task in tasks] == [()] * 4
    finally:
        sys.setswitchinterval(before)
        recover._let_go.clear()
