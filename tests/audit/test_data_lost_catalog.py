"""Data lost: by a catalog that does not belong to the data, by what a dead container left, by clocks, by DROP."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from rollview import errors
from rollview.catalog import Catalog, address
from rollview.catalog import tables as t
from rollview.catalog.clock import Uptime
from rollview.catalog.database import Database
from rollview.catalog.pulse import Pulse
from rollview.cli.output import Form, make_output
from rollview.core import marks
from rollview.core.interval import Interval
from rollview.maintain import sweep
from rollview.maintain.notes import Notes, write_notes
from rollview.publish.belonging import prepare
from rollview.publish.recover import discard_abandoned
from rollview.publish.step import begin, drop, recorded
from rollview.warehouse import Warehouse
from tests.servers.postgres import PostgresServer
from tests.unit.catalog.samples import commit
from tests.unit.maintain.small import HOMES, Small

NOW = timedelta(0)
HOUR = timedelta(hours=1)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def place_for_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Places for new catalogs, in one kind of database."""
    if request.param == "sqlite":
        yield lambda: f"sqlite:///{tmp_path / uuid.uuid4().hex}.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    made: list[str] = []

    def new_schema() -> str:
        made.append(f"s_{uuid.uuid4().hex}")
        server.execute(f"CREATE SCHEMA {made[-1]}")
        return server.url(schema=made[-1])

    yield new_schema
    for name in made:
        server.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture
def url(place_for_catalog: Callable[[], str]) -> str:
    return place_for_catalog()


@pytest.fixture
def small(tmp_path: Path, url: str) -> Iterator[Small]:
    small = Small.founded(tmp_path / "shop", catalog=url)
    grow(small, 2)
    with closing(small.warehouse):
        yield small


def grow(small: Small, commits: int) -> None:
    for number in range(commits):
        small.commit([], [(small.csn, f"row {number}")])
    small.refresh()


def files(small: Small) -> set[str]:
    return {path.relative_to(small.data).as_posix() for path in small.data.rglob("*")}


def kept_away(url: str, target: Path) -> str:
    """A backup of the catalog: all of its rows, as an SQLite file."""
    Catalog.create(target).close()
    replace_rows(f"sqlite:///{target}", rows_of(url))
    return f"sqlite:///{target}"


def put_back(url: str, backup: str) -> None:
    """The catalog as it was then."""
    replace_rows(url, rows_of(backup))


def rows_of(url: str) -> dict[sa.Table, list[dict[str, Any]]]:
    with closing(Database(address.parse(url))) as database, database.read() as connection:
        tables = t.metadata.sorted_tables
        return {table: [dict(row._mapping) for row in connection.execute(sa.select(table))] for table in tables}


def replace_rows(url: str, rows: dict[sa.Table, list[dict[str, Any]]]) -> None:
    with closing(Database(address.parse(url))) as database, database.write() as connection:
        for table in reversed(rows):
            connection.execute(table.delete())
        for table, found in rows.items():
            if found:
                connection.execute(table.insert(), found)


# 1. A wrong catalog deletes a warehouse.


def test_01_a_catalog_of_another_warehouse_is_refused_with_both_ids(
    small: Small, tmp_path: Path, place_for_catalog: Callable[[], str]
) -> None:
    wrong, before = place_for_catalog(), files(small)
    with Warehouse.create(tmp_path / "other", wrong) as other:
        other_id = other.catalog.identity().warehouse
    with pytest.raises(errors.WrongCatalog) as refused:
        Warehouse.open(small.warehouse.root, wrong)
    assert other_id in refused.value.message
    assert small.warehouse.catalog.identity().warehouse in refused.value.message
    with pytest.raises(errors.WrongCatalog):
        Warehouse.recover(small.warehouse.root, wrong, accept_catalog=True)
    assert files(small) == before


def test_01_maintenance_asks_again_whether_the_catalog_is_the_right_one(small: Small, tmp_path: Path) -> None:
    """The folder may be another one by now: a disk that was mounted since."""
    before = files(small)
    with Warehouse.create(tmp_path / "other") as other:
        small.data.rename(tmp_path / "elsewhere")
        (tmp_path / "other" / "data").rename(small.data)
        (tmp_path / "elsewhere").rename(tmp_path / "other" / "data")
        with pytest.raises(errors.WrongCatalog):
            other.maintain(grace=NOW)
    (tmp_path / "other" / "data").rename(tmp_path / "elsewhere")
    small.data.rename(tmp_path / "other" / "data")
    (tmp_path / "elsewhere").rename(small.data)
    assert files(small) == before
    small.check()


def test_01_maintenance_leaves_a_folder_that_carries_another_id(small: Small) -> None:
    foreign, orphan = (small.data / f"t-{digit * 32}" for digit in "ef")
    for home in (foreign, orphan):
        (home / "delta").mkdir(parents=True)
        (home / "delta" / "part-0.parquet").write_bytes(b"x")
    marks.write_id(foreign, "another")
    done = small.warehouse.maintain(grace=NOW)
    assert (foreign / "delta" / "part-0.parquet").exists()
    assert not orphan.exists()
    assert any(action.action == "hold" and foreign.name in action.reason for action in done.actions)


def test_01_a_new_relations_folder_carries_the_id(small: Small) -> None:
    catalog, home = small.warehouse.catalog, f"t-{uuid.uuid4().hex}"
    with recorded(catalog, None, small.data, "new", "create", Interval(0, 0), (home,)) as step:
        assert marks.find_id(small.data / home) == catalog.identity().warehouse
        with step.publish(None):
            pass


def test_01_a_restored_catalog_is_refused_and_accepted_by_command(small: Small, url: str, tmp_path: Path) -> None:
    backup = kept_away(url, tmp_path / "backup.db")
    old_id, csn = small.warehouse.catalog.identity().warehouse, small.csn
    grow(small, 3)
    newer = kept_away(url, tmp_path / "newer.db")
    late = small.data / f"v-{'d' * 32}"
    prepare(small.data, small.warehouse.catalog.identity().begun, [late.name])
    small.warehouse.close()
    put_back(url, backup)

    with pytest.raises(errors.OldCatalog, match="older than the data") as refused:
        Warehouse.open(small.warehouse.root, url)
    assert "rollview recover --accept-catalog" in (refused.value.hint or "")
    seen = Warehouse.recover(small.warehouse.root, url)
    assert (seen.fits, seen.accepted, seen.csn, seen.unreadable) == (False, False, csn, ())
    assert seen.data_steps > seen.catalog_steps

    done = Warehouse.recover(small.warehouse.root, url, accept_catalog=True)
    assert (done.fits, done.accepted, done.unknown_folders) == (True, True, (late.name,))
    assert done.catalog_id == done.data_id != old_id
    small.warehouse = Warehouse.open(small.warehouse.root, url)
    del small.states[csn + 1 :]
    small.check()
    grow(small, 2)
    small.check()
    small.warehouse.maintain(grace=NOW)
    small.check()
    assert late.exists(), "only the newer catalog knew it"
    small.warehouse.close()

    put_back(url, newer)
    with pytest.raises(errors.WrongCatalog):
        Warehouse.open(small.warehouse.root, url)


def test_01_notes_of_maintenance_under_the_newer_catalog_trim_no_log_that_the_restored_one_reads(
    small: Small, url: str, tmp_path: Path
) -> None:
    old = datetime.now(UTC) - timedelta(days=1)
    noted = Notes({}, {f"{HOMES['t']}/{part}": (99, old) for part in ("state", "delta")})
    write_notes(small.data, noted)
    pins = small.warehouse.snapshot().get("t").pins
    trimmed: list[int] = []

    def plan(folder: Path, version: int, before: datetime) -> None:
        trimmed.append(version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "plan_trim", plan)
        patch.setattr(type(small.warehouse.catalog), "settled", lambda catalog, name: None)
        sweep.plan_sweep(small.warehouse.catalog, small.data, None, datetime.now(UTC), timedelta(hours=1))
    assert sorted(trimmed) == sorted(pin.version for pin in pins.values())


def test_01_two_who_open_a_warehouse_without_an_id_together_both_succeed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: marks.write_id(tmp_path, "same"), range(64)))
    assert marks.find_id(tmp_path) == "same"
    assert [path.name for path in tmp_path.iterdir()] == [marks.ID_FILE]


def test_01_an_id_that_was_being_changed_is_changed_at_the_next_opening(small: Small, url: str) -> None:
    catalog = small.warehouse.catalog
    old = catalog.identity()
    with catalog.write() as writer:
        writer.set_identity(type(old)("new", old.warehouse, old.begun))
    with Warehouse.open(small.warehouse.root, url):
        assert marks.find_id(small.data) == "new"
        assert {marks.find_id(small.data / home) for home in HOMES.values()} == {"new"}


def test_01_what_a_kill_leaves_never_locks_anybody_out(small: Small, url: str) -> None:
    """The count is in the catalog before it is beside the data; the data may be behind, never ahead."""
    with small.warehouse.catalog.write() as writer:
        writer.begin_step("t", "commit", Interval(0, 1), "somebody@elsewhere pid 1", ())
    with Warehouse.open(small.warehouse.root, url) as warehouse:
        assert marks.find_steps(small.data) < warehouse.catalog.identity().begun
    noted = marks.find_steps(small.data)
    marks.note_steps(small.data, noted - 1)
    assert marks.find_steps(small.data) == noted > 0, "the slower of two processes does not take it back"
    (small.data / marks.STEPS_FILE).write_bytes(b"")
    with Warehouse.open(small.warehouse.root, url):
        assert marks.find_steps(small.data) == 0


def test_01_a_warehouse_of_an_older_version_gets_its_id_at_opening(small: Small, url: str) -> None:
    for folder in (small.data, *(small.data / home for home in HOMES.values())):
        (folder / marks.ID_FILE).unlink(missing_ok=True)
    (small.data / marks.STEPS_FILE).unlink()
    with Warehouse.open(small.warehouse.root, url) as warehouse:
        warehouse_id = warehouse.catalog.identity().warehouse
    assert {marks.find_id(small.data / home) for home in ("", *HOMES.values())} == {warehouse_id}


def test_01_data_without_an_id_are_not_given_to_a_catalog_that_does_not_know_them(
    small: Small, place_for_catalog: Callable[[], str]
) -> None:
    (small.data / marks.ID_FILE).unlink()
    empty = place_for_catalog()
    Catalog.create(empty).close()
    with pytest.raises(errors.WrongCatalog, match="carry no id"):
        Warehouse.open(small.warehouse.root, empty)
    assert marks.find_id(small.data) is None


# 7. A crashed container is never cleaned up.

IN_A_CONTAINER = ("unshare", "--map-root-user", "--pid", "--fork", "--mount-proc")
DIES = """
import os, signal, sys
from pathlib import Path
from rollview.core.interval import Interval
from rollview.publish.step import begin
from rollview.warehouse import Warehouse

root, url, home, place = sys.argv[1:]
warehouse = Warehouse.open(root, url)
path = f"{home}/delta/{place}"
begin(warehouse.catalog, None, Path(root, "data"), "t", "commit", Interval(2, 3), (path,))
Path(root, "data", path).mkdir()
Path(root, "data", path, "part-0.parquet").write_bytes(b"x")
print("written", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_07_what_a_crashed_container_left_is_taken_away(small: Small, url: str) -> None:
    if subprocess.run([*IN_A_CONTAINER, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let us make a process namespace")
    place = small.data / HOMES["t"] / "delta" / f"s-{'c' * 32}"
    program = [sys.executable, "-c", DIES, str(small.warehouse.root), url, HOMES["t"], place.name]
    ended = subprocess.run([*IN_A_CONTAINER, *program], capture_output=True, text=True, check=False)
    assert ended.stdout == "written\n", ended.stderr
    catalog = small.warehouse.catalog
    assert discard_abandoned(catalog, small.data) == (), "it may be alive, as far as can be seen from here"
    small.warehouse.maintain(grace=NOW)
    assert place.exists()
    silent_for_long(url)
    assert [step.relation for step in discard_abandoned(catalog, small.data)] == ["t"]
    assert not place.exists()
    assert catalog.steps(status="running") == catalog.steps(status="abandoned") == ()


def test_07_a_step_whose_lease_token_moved_on_is_abandoned_and_cannot_be_published(small: Small, url: str) -> None:
    catalog, place = small.warehouse.catalog, f"{HOMES['t']}/delta/s-{'c' * 32}"
    with catalog.lease("relation:t") as lease:
        step = begin(catalog, lease, small.data, "t", "fold", Interval(2, 2), (place,))
        (small.data / place).mkdir()
        assert discard_abandoned(catalog, small.data) == ()
    with Catalog.open(url) as other, other.lease("relation:t"):
        assert [one.id for one in discard_abandoned(other, small.data)] == [step.id]
    assert not (small.data / place).exists()
    with pytest.raises(errors.LostLease), step.publish(None):
        pass


def test_07_a_slow_process_elsewhere_cannot_publish_what_was_taken_away(small: Small, url: str) -> None:
    """No lease is held while a transaction stages its rows; the step itself is what it loses."""
    catalog = small.warehouse.catalog
    step = begin(catalog, None, small.data, "t", "commit", Interval(2, 3), ())
    with closing(Database(address.parse(url))) as database, database.write() as connection:
        connection.execute(
            t.step.update().where(t.step.c.id == step.id).values(owner="ann@elsewhere pid 1 (00000000 1)")
        )
    silent_for_long(url)
    assert [one.id for one in discard_abandoned(catalog, small.data)] == [step.id]
    with pytest.raises(errors.LostLease, match=f"step {step.id}"), step.publish(None):
        pass


def test_07_a_step_that_goes_on_gives_signs_of_life(url: str) -> None:
    with Catalog.create(url) as catalog, closing(Database(address.parse(url))) as database:
        pulse = Pulse(database, every=0.01)
        with catalog.write() as writer:
            step = writer.begin_step("t", "fold", Interval(0, 0), "me@here pid 1", ())
        silent_for_long(url)
        pulse.begun([step])
        while catalog.abandoned(lambda _: True):
            time.sleep(0.01)
        pulse.ended([step])
        pulse.stop()


def silent_for_long(url: str) -> None:
    """As if no running step had been heard of for a day."""
    with closing(Database(address.parse(url))) as database, database.write() as connection:
        expires = database.now(connection) - timedelta(days=1)
        connection.execute(t.step.update().where(t.step.c.status == "running").values(expires=expires))


# 9. Clocks.


def test_09_the_ledger_goes_by_the_servers_clock(postgres_server: PostgresServer) -> None:
    """One machine far ahead, one far behind: neither moves the ledger, nor what a step says of its times."""
    with postgres_server.new_schema() as url:
        Catalog.create(url).close()
        begun = datetime.now(UTC)
        for wrong in (400, -400):
            with Catalog.open(url, wall_clock=lambda wrong=wrong: datetime.now(UTC) + timedelta(days=wrong)) as catalog:
                told = [commit(catalog).time, catalog.now()]
                with catalog.write() as writer:
                    writer.begin_step("t", "fold", Interval(0, 0), "me", ())
                told.append(catalog.steps()[0].started)
                assert all(begun - HOUR < time < begun + HOUR for time in told)


def test_09_a_server_whose_clock_jumps_is_refused(postgres_server: PostgresServer) -> None:
    """The clock of this machine is the other witness."""
    with postgres_server.new_schema() as url:
        Catalog.create(url).close()
        behind = FakeClocks(datetime.now(UTC) - timedelta(days=400))
        # The last commit was then, too: to this machine the server has jumped ahead since.
        with closing(Database(address.parse(url))) as database, database.write() as connection:
            connection.execute(t.clock.update().values(time=behind.wall, wall=None))
        with Catalog.open(url, wall_clock=lambda: behind.wall, uptime=lambda: None) as catalog:
            with pytest.raises(errors.ClockJumped, match="by the clock of this machine"):
                commit(catalog)
            catalog.accept_clock()
            assert commit(catalog).csn == 1


def test_09_a_clock_that_jumps_is_refused_and_accepted_by_command(tmp_path: Path) -> None:
    """The machine has been up for a minute since the last commit, and the clock says a year."""
    root = tmp_path / "shop"
    Warehouse.create(root).close()
    clock = FakeClocks(datetime.now(UTC))
    with clock.open(root) as catalog:
        first = commit(catalog).time
        clock.pass_by(timedelta(minutes=1))
        clock.wall += timedelta(days=365)
        for asked in (lambda: commit(catalog), catalog.now):
            with pytest.raises(errors.ClockJumped, match="by the time since the last commit") as refused:
                asked()
        assert "rollview recover --accept-clock" in (refused.value.hint or "")
        assert catalog.snapshot().moment.csn == 1
        clock.wall -= timedelta(days=365)
        assert commit(catalog).time - first == timedelta(minutes=1), "the clock is set right, and all is well"
        clock.wall += timedelta(days=365)
        assert catalog.accept_clock() == clock.wall
        assert commit(catalog).time == clock.wall, "it was wrong before and is right now"
    assert Warehouse.recover(root, accept_clock=True).accepted_time is not None


def test_09_a_machine_far_ahead_is_refused_on_a_disk_of_another(tmp_path: Path) -> None:
    """It has another boot, so its own uptime tells nothing; the disk's time does."""
    Warehouse.create(tmp_path / "shop").close()
    with FakeClocks(datetime.now(UTC)).open(tmp_path / "shop") as catalog:
        commit(catalog)
    ahead = FakeClocks(datetime.now(UTC) + timedelta(days=400), boot="another")
    with ahead.open(tmp_path / "shop") as catalog, pytest.raises(errors.ClockJumped, match="by the disk"):
        commit(catalog)


def test_09_a_warehouse_that_nobody_used_for_long_simply_works(tmp_path: Path) -> None:
    Warehouse.create(tmp_path / "shop").close()
    clock = FakeClocks(datetime.now(UTC))
    with clock.open(tmp_path / "shop") as catalog:
        first = commit(catalog).time
        clock.pass_by(timedelta(days=70))
        assert catalog.now() - first == timedelta(days=70)
        assert commit(catalog).time - first == timedelta(days=70)
        clock.wall -= timedelta(days=3)
        assert commit(catalog).csn == 3, "a clock behind the ledger does no harm: the ledger's time goes on by itself"


@dataclass
class FakeClocks:
    """The two clocks of one machine."""

    wall: datetime
    boot: str = "one"
    micros: int = 1_000_000

    def pass_by(self, time: timedelta) -> None:
        self.wall += time
        self.micros += time // timedelta(microseconds=1)

    def open(self, root: Path) -> Catalog:
        return Catalog.open(
            root / "catalog.db", wall_clock=lambda: self.wall, uptime=lambda: Uptime(self.boot, self.micros)
        )


# 10. DROP removes files at once.


def test_10_files_of_a_dropped_relation_stay_for_its_readers(small: Small) -> None:
    before = {path for path in files(small) if path.startswith(HOMES["v"])}
    with small.warehouse.catalog.write() as writer:
        drop(writer, writer.snapshot().get("v"))
    small.warehouse.maintain(grace=HOUR)
    assert before <= files(small)
    small.warehouse.maintain(grace=NOW)
    assert not (small.data / HOMES["v"]).exists()


def test_10_the_data_folder_is_synced_when_a_folder_is_made_in_it(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def noting(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    home = f"t-{uuid.uuid4().hex}"
    prepare(small.data, 1, [home])
    assert synced[-1] == str(small.data)
    assert str(small.data / home) in synced


# 11. Ledger, change and step rows grow for ever.


def test_11_status_shows_how_many_rows_the_catalog_has(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    grow(small, 3)
    status = small.warehouse.status()
    assert status.to_json()["catalog"] == {"ledger": 5, "changes": 5, "steps": 2}
    make_output(Form.TEXT).show(status)
    assert "Catalog rows: ledger 5, changes 5, steps 2." in capsys.readouterr().out


# From the notes: an empty staging folder that could not be removed.


def test_an_empty_staging_folder_goes(small: Small) -> None:
    empty, busy = (small.data / HOMES["t"] / "delta" / f"s-{digit * 32}" for digit in "cd")
    empty.mkdir()
    busy.mkdir()
    with small.warehouse.catalog.write() as writer:
        path = busy.relative_to(small.data).as_posix()
        writer.begin_step("t", "commit", Interval(2, 3), "somebody@elsewhere pid 1", (path,))
    small.warehouse.maintain(grace=NOW)
    assert not empty.exists()
    assert busy.exists()
    small.check()
