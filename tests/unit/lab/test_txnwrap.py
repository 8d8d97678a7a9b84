"""Figures 12 to 21: exact views, the shapes of the prose, and what breaks when a rule is changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from rollview.errors import NotFound, UsageError
from rollview.lab import find_experiment, txnwrap, write_figures
from rollview.lab.maintenance import SweptWorld, TestBed, VersionedWorld, run_locked, run_schema_changes, run_versioned
from rollview.lab.service_times import RECORDED, ServiceTimes
from rollview.lab.txnwrap import NUMBERS, measure_figure
from rollview.lab.virtual_clock import HostRequest, InTurn, Opened, Steps, TimedTransaction, simulate
from rollview.lab.wrappers import TupleVersion, Wrapper, random_updates, view_change

PUBLISHED = Path(__file__).parents[3] / "docs" / "lab"
KEYS = 3


@pytest.mark.parametrize("number", NUMBERS)
def test_the_numbers_show_what_the_prose_says(number: int) -> None:
    figure = measure_figure(number)
    assert [one.text for one in figure.findings if not one.holds] == []
    assert (PUBLISHED / f"txnwrap-{number}.svg").read_text(encoding="utf-8") == figure.draw()


def test_the_published_page_has_the_bytes_that_are_measured(tmp_path: Path) -> None:
    done = write_figures(tmp_path)
    assert len(done.files) == len(NUMBERS) + 1
    for name in done.files:
        assert (tmp_path / name).read_bytes() == (PUBLISHED / name).read_bytes(), f"run make experiments: {name}"


def failing(number: int, times: ServiceTimes) -> list[str]:
    return [one.text for one in measure_figure(number, times).findings if not one.holds]


def test_sweep_that_compensates_for_nothing_does_not_grow() -> None:
    assert failing(12, replace(RECORDED, compensate=0.0)) == ["SWEEP's cost grows with every concurrent update"]


def test_versions_that_cost_nothing_are_not_dearer_and_cross_nobody() -> None:
    free = replace(RECORDED, versioned=RECORDED.plain)
    assert failing(12, free) == ["without concurrent updates TxnWrap is dearer"]
    assert failing(14, free) == ["TxnWrap crosses DyDa once"]
    assert failing(21, free) == ["in one engine locks take less time than versions"]


def test_threads_that_cost_much_are_no_better_than_none() -> None:
    assert "one thread takes about as long as the serial scheduler" in failing(16, replace(RECORDED, hand_over=3.0))


def test_a_schema_change_that_costs_nothing_leaves_all_to_gain() -> None:
    free = replace(RECORDED, adapt=0.0, whole_versioned=0.0)
    assert any("leave less to gain" in text for text in failing(19, free))


def shown_by_txnwrap(seed: int, threads: int, number: int = 60) -> tuple[Counter[tuple[int, ...]], VersionedWorld]:
    world = VersionedWorld(TestBed(seed=seed), random_updates(Random(seed), number, KEYS))
    simulate([TimedTransaction(partial(world.versioned, place)) for place in range(number)], threads)
    return Counter({row: count for row, count in world.shown.items() if count}), world


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_txnwrap_is_exact_with_any_number_of_threads(threads: int) -> None:
    for seed in range(20):
        shown, world = shown_by_txnwrap(seed, threads)
        assert shown == view_change(world.updates)
        assert [wrapper.size for wrapper in world.wrappers] == [wrapper.rows for wrapper in world.wrappers], (
            "cleaned up"
        )


def test_a_version_that_is_read_too_late_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def newest(wrapper: Wrapper, key: int, at: int) -> int:
        return wrapper.versions.get(key, [TupleVersion(0, 0)])[-1].value

    monkeypatch.setattr(Wrapper, "read", newest)
    wrong = 0
    for seed in range(5):
        shown, world = shown_by_txnwrap(seed, 2)
        wrong += shown != view_change(world.updates)
    assert wrong == 5


def test_versions_that_are_cleaned_up_too_early_are_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    clean_up = Wrapper.clean_up
    monkeypatch.setattr(Wrapper, "clean_up", lambda wrapper, key, oldest: clean_up(wrapper, key, oldest + 20))
    with pytest.raises(ValueError, match="not enough values"):
        shown_by_txnwrap(1, 1)


@pytest.mark.parametrize("compensates", [True, False])
def test_sweep_is_exact_only_if_it_compensates(compensates: bool) -> None:
    right = 0
    for seed in range(10):
        bed = TestBed(seed=seed)
        world = SweptWorld(bed, random_updates(Random(seed), 40, KEYS, bed.times.plain), compensates)
        work = [TimedTransaction(partial(world.swept, n), one.at) for n, one in enumerate(world.updates)]
        simulate(work, 1)
        shown = Counter({row: count for row, count in world.shown.items() if count})
        right += shown == view_change(world.updates)
    assert right == (10 if compensates else 0)


def test_dyda_throws_away_what_a_schema_change_broke_and_txnwrap_nothing() -> None:
    bed = TestBed()
    one = run_schema_changes(bed, 1, 0.0, redone=True).total
    broken = [run_schema_changes(replace(bed, seed=seed), 20, 0.3 * one, redone=True) for seed in range(8)]
    assert sum(run.aborts for run in broken) > 8
    assert all(run.aborted == 0 for run in broken if run.aborts == 0)
    assert run_schema_changes(bed, 20, 0.0, redone=True).aborts == 0, "all are known before the first begins"
    assert run_schema_changes(bed, 20, 0.3 * one, redone=False).aborts == 0


def test_deadlocks_end() -> None:
    alone, several = (run_locked(TestBed(hosts=0), 100, threads) for threads in (1, 6))
    assert alone.restarts == 0
    assert several.restarts > 10
    assert len(several.ended) == 100


def test_a_host_serves_one_after_another_and_travel_keeps_nobody_waiting() -> None:
    def steps(travel: float) -> Steps:
        yield HostRequest("h", 10.0, travel)

    done = simulate([TimedTransaction(partial(steps, travel)) for travel in (100.0, 0.0)], 2)
    assert done.ended == {0: 110.0, 1: 20.0}


def test_commits_are_in_order_and_a_schema_change_begins_alone() -> None:
    def update(service: float) -> Steps:
        yield HostRequest(f"h{service}", service)
        yield InTurn()

    def change() -> Steps:
        yield HostRequest("view", 5.0)
        yield Opened()
        yield HostRequest("view", 50.0)
        yield InTurn()

    work = [
        *(TimedTransaction(partial(update, service)) for service in (20.0, 1.0)),
        TimedTransaction(change, alone=True),
    ]
    done = simulate([*work, TimedTransaction(partial(update, 2.0))], 4)
    assert done.ended == {0: 20.0, 1: 20.0, 2: 75.0, 3: 75.0}
    assert (done.began[2], done.began[3]) == (20.0, 25.0)


def test_more_threads_never_change_what_one_update_reads() -> None:
    bed = TestBed(hosts=3)
    assert run_versioned(bed, 50, 4).total < run_versioned(bed, 50, 1).total


def test_an_experiment_is_found_by_its_figure() -> None:
    assert find_experiment("txnwrap", 12).line.name == "txnwrap-12"
    assert find_experiment("txnwrap-21").line.paper == txnwrap.PAPER
    with pytest.raises(NotFound, match="txnwrap") as told:
        find_experiment("txnwrap")
    assert "--figure" in str(told.value.hint)
    with pytest.raises(UsageError, match="no experiment for figure 3"):
        find_experiment("txnwrap", 3)
