"""Maintenance of a warehouse without Spark: nothing that stays in reach changes, and what goes was given up."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.sizes import times
from tests.unit.maintain.small import HOMES, Small, no_spark

from rollview.catalog import Part
from rollview.core.interval import Interval
from rollview.errors import Corrupt, OutOfReach, UsageError
from rollview.maintain import Keep, Maintenance, maintain
from rollview.maintain.settings import Period, check_properties, parse_period
from rollview.publish.merge import merge_if_many
from rollview.relations.plans import check_reachable
from rollview.relations.reader import stored_as
from rollview.results import Maintained

pytestmark = pytest.mark.slow

NOW = timedelta(0)


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """Thirty commits, each followed by a refresh. Copied, never changed."""
    made = Small.founded(tmp_path_factory.mktemp("pattern") / "w")
    grow(made, 30)
    return made


@pytest.fixture
def grown(pattern: Small, tmp_path: Path) -> Small:
    return pattern.copied(tmp_path / "w")


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small.founded(tmp_path / "w")


def grow(small: Small, commits: int, seed: int = 0, refresh: bool = True) -> None:
    chance = random.Random(seed)
    for _ in range(commits):
        held = list(small.states[-1].elements())
        gone = chance.sample(held, min(len(held), chance.randint(0, 2)))
        small.commit(gone, [(chance.randint(0, 4), chance.choice("ab")) for _ in range(chance.randint(1, 3))])
        if refresh:
            small.refresh()


def run(small: Small, grace: timedelta = NOW, explain: bool = False, only: Any = None, **keep: Any) -> Maintained:
    work = Maintenance(small.data, small.warehouse.catalog, no_spark, Keep(**keep), grace)
    return maintain(work, only, explain=explain)


def told(done: Maintained, action: str) -> list[tuple[str | None, str | None]]:
    return [(one.relation, one.part) for one in done.actions if one.action == action]


def disk(small: Small) -> dict[str, bytes]:
    return {str(p.relative_to(small.data)): p.read_bytes() for p in small.data.rglob("*") if p.is_file()}


def test_small_files_become_one_and_every_csn_stays(grown: Small) -> None:
    done = run(grown)
    assert told(done, "merge") == [("t", "delta"), ("v", "delta")]
    assert [grown.live(name, Part.DELTA) for name in ("t", "v")] == [1, 1]
    (file,) = grown.stored("t").files("delta")
    assert file.bounds("_csn") == (1, 30)
    assert file.bounds("_count") == (-1, 1)
    assert grown.reachable("t") == grown.reachable("v") == list(range(31))
    grown.check()


def test_files_are_not_merged_across_a_csn_from_which_a_view_reads_on(small: Small) -> None:
    grow(small, 20)
    grow(small, 20, seed=1, refresh=False)
    run(small)
    assert sorted(file.bounds("_csn") for file in small.stored("t").files("delta")) == [(1, 20), (21, 40)]
    small.check()


def test_explain_changes_nothing_and_says_what_would_be_done(grown: Small) -> None:
    before = disk(grown)
    said = run(grown, explain=True, prune_before=10, compress_before=20)
    assert disk(grown) == before
    assert said.explained
    done = run(grown, prune_before=10, compress_before=20)
    explained = {(one.relation, one.part, one.action) for one in said.actions}
    assert explained >= {("t", "delta", "prune"), ("t", "delta", "compress"), ("v", "delta", "prune")}
    assert {key for key in explained if key[2] in ("prune", "compress")} == {
        (one.relation, one.part, one.action) for one in done.actions if one.action in ("prune", "compress")
    }
    assert said.to_json()["actions"][0]["relation"] == "t"


def test_what_nobody_can_read_goes_and_the_rest_stays(grown: Small) -> None:
    run(grown)
    homes = [grown.data / home for home in HOMES.values()]
    kept = [path for home in homes for path in home.rglob("part-*.parquet")]
    assert len(kept) == 3, "one delta each, and the extent"
    assert all(path.exists() for path in kept)
    grown.check()


def test_files_stay_through_the_grace_period(grown: Small) -> None:
    before = set(disk(grown))
    hour = timedelta(hours=1)
    done = run(grown, grace=hour)
    assert told(done, "remove") == []
    assert before <= set(disk(grown))
    held = grown.warehouse.snapshot()
    said = run(grown, grace=hour, explain=True)
    assert set(told(said, "hold")) == {("t", None), ("v", None)}
    assert told(run(grown), "remove") == [("t", None), ("v", None)]
    assert held.get("v").pins == grown.warehouse.snapshot().get("v").pins
    grown.check()


def test_a_relation_that_was_left_alone_is_swept_at_once(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pins have not moved for the grace period, so no note is needed."""
    grow(small, 3)
    grace = timedelta(milliseconds=300)
    import time

    time.sleep(0.4)
    assert told(run(small, grace=grace), "remove") == [("v", None)]
    small.check()


def test_folders_of_running_steps_stay_and_orphans_go(small: Small) -> None:
    grow(small, 2)
    catalog, places = small.warehouse.catalog, [f"{HOMES['t']}/delta/s-{c * 32}" for c in "cd"]
    for place in (*places, "v-" + "e" * 32 + "/delta/_delta_log"):
        (small.data / place).mkdir(parents=True)
        (small.data / place / "part-0.parquet").write_bytes(b"x")
    with catalog.write() as writer:
        step = writer.begin_step("t", "commit", Interval(2, 3), "somebody@elsewhere pid 1", (places[0],))
    done = run(small)
    assert (small.data / places[0]).exists()
    assert not (small.data / places[1]).exists()
    assert not (small.data / ("v-" + "e" * 32)).exists()
    assert (None, None) in told(done, "remove")
    with catalog.write() as writer:
        writer.finish_step(step, "failed")
    run(small)
    assert not (small.data / places[0]).exists()


def test_pruned_csns_are_refused_and_the_others_stay(grown: Small) -> None:
    done = run(grown, prune_before=12)
    assert ("t", "state") in told(done, "fold") or grown.pin("t", Part.STATE).through >= 12
    snapshot = grown.warehouse.snapshot()
    for name in ("t", "v"):
        assert snapshot.get(name).pins[Part.DELTA].after == 12
        with pytest.raises(OutOfReach, match="stored from csn 12"):
            check_reachable(snapshot, snapshot.get(name), 11)
    grown.check()


def test_compressed_csns_are_refused_by_name_of_the_nearest(grown: Small) -> None:
    run(grown, compress_before=20)
    snapshot = grown.warehouse.snapshot()
    for name in ("t", "v"):
        assert snapshot.get(name).coarse == (Interval(0, 20),)
        assert grown.reachable(name) == [0, *range(20, 31)]
        for csn in (1, 19):
            with pytest.raises(OutOfReach, match="stored as one") as refusal:
                check_reachable(snapshot, snapshot.get(name), csn, rolling=True)
            assert refusal.value.facts["nearest"] == (0, 20)
            assert refusal.value.hint is not None
            assert "0 and 20" in refusal.value.hint
    assert sum(file.rows for file in grown.stored("v").files("delta")) == grown.pin("v", Part.DELTA).rows
    grown.check()


def test_compression_goes_on_where_it_stopped_and_leaves_its_ends_in_reach(grown: Small) -> None:
    for csn in (10, 20, 20, 25):
        run(grown, compress_before=csn)
        grown.check()
    assert grown.warehouse.snapshot().get("t").coarse == (Interval(0, 10), Interval(10, 20), Interval(20, 25))
    assert grown.reachable("v") == [0, 10, 20, *range(25, 31)]
    run(grown, prune_before=15)
    assert grown.reachable("v") == [10, 20, *range(25, 31)], "pruned to a csn that can be read"
    grown.check()


@pytest.mark.parametrize("what", ["prune_before", "compress_before"])
def test_nothing_goes_that_a_view_still_has_to_read(small: Small, what: str) -> None:
    grow(small, 10)
    grow(small, 20, seed=2, refresh=False)
    done = run(small, **{what: 25})
    held = [one for one in done.actions if one.action == "hold"]
    assert {one.relation for one in held} == {"t", "v"}
    assert all("stops at 10" in one.reason and "view 'v'" in one.reason for one in held)
    assert small.reachable("t")[-21:] == list(range(10, 31))
    small.check()
    small.refresh()
    small.check()


def test_retention_by_commits_by_name_and_by_property(tmp_path: Path) -> None:
    small = Small.founded(tmp_path / "w", {"rollview.retention": "forever"})
    grow(small, 30)
    run(small, retention={"default": "20 commits", "T": "5 commits"})
    assert small.pin("t", Part.DELTA).after == 25
    assert small.pin("v", Part.DELTA).after == 0
    small.check()


def test_retention_by_time_keeps_what_is_younger(small: Small) -> None:
    grow(small, 20)
    assert told(run(small, retention="1 hour"), "prune") == []
    run(small, retention="0 minutes")
    assert small.pin("v", Part.DELTA).after == 20
    small.check()


@pytest.mark.parametrize("text", ["30", "days", "-1 days", "30 d", ""])
def test_a_period_that_is_none_is_refused(small: Small, text: str) -> None:
    with pytest.raises(UsageError, match="how long changes are kept"):
        run(small, retention=text)


def test_periods_read_as_they_are_said() -> None:
    assert parse_period("30 days") == Period(timedelta(days=30))
    assert parse_period("1 Commit") == Period(commits=1)
    assert parse_period("forever") is None


def test_a_property_that_says_nothing_is_named_with_what_it_may_say() -> None:
    with pytest.raises(UsageError, match=r"'rollview\.detail': 'fortnight' does not say") as refused:
        check_properties({"rollview.detail": "fortnight"})
    assert str(refused.value.hint).startswith("Write 'commit', 'refresh', or for example '30 days'")
    check_properties({"rollview.detail": "refresh", "rollview.retention": "3 weeks"})


def test_only_what_is_chosen_is_touched(grown: Small) -> None:
    run(grown, only=("v",))
    assert (grown.live("t", Part.DELTA), grown.live("v", Part.DELTA)) == (30, 1)


def test_a_relation_that_somebody_holds_is_left(grown: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.maintain.run.PATIENCE", 0.1)
    with grown.warehouse.catalog.lease("relation:t"):
        done = run(grown)
    assert told(done, "wait") == [("t", None)]
    assert told(done, "merge") == [("v", "delta")]


def test_many_files_are_merged_without_being_asked(small: Small) -> None:
    grow(small, 101, refresh=False)
    merge_if_many(small.data, small.warehouse.catalog, ["t", "v", "gone"])
    assert small.live("t", Part.DELTA) == 1
    small.check()


def test_old_commits_of_a_log_go_and_its_versions_still_open(small: Small) -> None:
    grow(small, 105, refresh=False)
    log = small.data / HOMES["t"] / "delta" / "_delta_log"
    before = len(list(log.iterdir()))
    done = run(small)
    assert ("t", "delta") in told(done, "trim")
    assert len(list(log.iterdir())) < before - 50
    small.check()
    grow(small, 5, seed=7)
    small.check()


@pytest.mark.parametrize("seed", range(times(1, full=16)))
def test_random_maintenance_between_random_commits(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.maintain.plan.FEW", 3)
    monkeypatch.setattr("rollview.maintain.plan.LEAST_ROWS", 1)
    chance, small = random.Random(seed), Small.founded(tmp_path / "w")
    for turn in range(12):
        grow(small, chance.randint(1, 6), seed=100 * seed + turn, refresh=chance.random() < 0.5)
        if chance.random() < 0.3:
            small.refresh()
        wishes: dict[str, Any] = {}
        if chance.random() < 0.3:
            wishes["prune_before"] = chance.randint(0, small.csn)
        if chance.random() < 0.5:
            wishes["compress_before"] = chance.randint(0, small.csn)
        if chance.random() < 0.3:
            wishes["detail"] = f"{chance.randint(0, 10)} commits"
        run(small, grace=chance.choice([NOW, timedelta(hours=1)]), **wishes)
        small.check()


def test_rows_that_no_view_reads_go_and_are_never_taken_for_none(small: Small) -> None:
    grow(small, 5)
    assert told(run(small), "release") == []
    needed = frozenset({"t"})
    explained = run(small, explain=True, needed=needed)
    assert told(explained, "release") == [("t", "state")]
    assert small.pin("t", Part.STATE).is_kept
    assert told(run(small, needed=needed), "release") == [("t", "state")]
    for prune in (5, 15):
        relation = small.warehouse.snapshot().get("t")
        assert not relation.is_kept
        with pytest.raises(OutOfReach, match="No rows of table 't' are kept"):
            stored_as(small.data, relation).files(Part.STATE)
        with pytest.raises(Corrupt, match="No rows are kept"):
            stored_as(small.data, relation).folder(Part.STATE).files(relation.pins[Part.STATE].version)
        assert not list((small.data / HOMES["t"] / "state").glob("s-*"))
        grow(small, 10, seed=prune)
        done = run(small, needed=needed, prune_before=prune, compress_before=prune + 5)
        assert told(done, "release") == told(done, "fold") == []
        assert ("t", "delta") in told(done, "prune")


def test_rows_stay_where_a_view_is_recomputed_or_was_not_there_when_they_came(tmp_path: Path) -> None:
    needed = frozenset({"t"})
    recomputed = Small.founded(tmp_path / "r", {"rollview.refresh_mode": "recompute"})
    grow(recomputed, 2)
    assert told(run(recomputed, needed=needed), "release") == []
    late = Small.founded(tmp_path / "w")
    grow(late, 2, refresh=False)
    with late.warehouse.catalog.write() as writer:
        writer.add_replaced("t", 2)
    assert told(run(late, needed=needed), "release") == []
    late.refresh()
    assert told(run(late, needed=needed), "release") == [("t", "state")]


def test_a_ledger_that_somebody_holds_is_left_for_the_next_time(grown: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """A view that is being created may take long, and all the rest is done by then."""
    monkeypatch.setattr("rollview.maintain.run.PATIENCE", 0.0)
    with grown.warehouse.catalog.lease("definitions"):
        done = run(grown)
    assert [one.reason for one in done.actions if one.action == "wait" and one.relation is None] != []
    assert grown.warehouse.catalog.horizon().csn == 0
