from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.catalog.samples import THEN, add_table, add_view, commit, commit_in

from rollview import errors
from rollview.catalog import NOTHING_MISSED, Catalog, Change, ChangeCount, MissedCommits, Part, Pin
from rollview.core.interval import Interval


def test_csn_are_counted_from_one_without_gaps(catalog: Catalog) -> None:
    assert catalog.snapshot().moment.csn == 0
    assert [commit(catalog).csn for _ in range(3)] == [1, 2, 3]
    with pytest.raises(errors.NotFound), catalog.write() as writer:
        commit_in(writer, [Change("nowhere", 1, 0)])
    assert commit(catalog).csn == 4


def test_several_units_fit_in_one_transaction(catalog: Catalog) -> None:
    with catalog.write() as writer:
        moments = [commit_in(writer) for _ in range(5)]
        assert writer.snapshot().moment == moments[-1]
    assert [entry.csn for entry in catalog.ledger()] == [1, 2, 3, 4, 5]


def test_time_grows_while_the_system_clock_stands_still_or_goes_back(
    url: str,
    reopened: Callable[..., Catalog],
) -> None:
    if not url.startswith("sqlite"):
        pytest.skip("the ledger goes by the server's clock: tests/audit/test_data_lost_catalog.py")
    hour = timedelta(hours=1)
    start = datetime.now(UTC) + 24 * hour
    clocks = [start, start, start - hour, start - 48 * hour, start + hour, start + hour]
    times = [commit(reopened(wall_clock=lambda now=now: now)).time for now in clocks]
    tick = timedelta(microseconds=1)
    assert times == [start, start + tick, start + 2 * tick, start + 3 * tick, start + hour, start + hour + tick]


def test_the_ledger_tells_every_unit_of_work(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "Orders")
        add_table(writer, "lines")
    moment = commit(catalog, [Change("orders", 3, 1, 1), Change("LINES", 7, 0)])
    (entry,) = catalog.ledger()
    assert (entry.csn, entry.ledger_time) == (moment.csn, moment.time)
    assert (entry.source, entry.position, entry.transaction, entry.source_time) == ("local", "p", "t", THEN)
    assert entry.changes == (ChangeCount("Orders", 1, 3, 1, 1), ChangeCount("lines", 1, 7, 0, None))


def test_plain_tuples_are_changes_too(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        commit_in(writer, [("t", 1, 0, None)])  # type: ignore[list-item]
    assert catalog.changes("T", Interval(0, 1)) == (ChangeCount("t", 1, 1, 0, None),)


def test_the_ledger_is_cut_by_interval_and_limit(catalog: Catalog) -> None:
    for _ in range(6):
        commit(catalog)
    assert [entry.csn for entry in catalog.ledger(Interval(1, 4))] == [2, 3, 4]
    assert [entry.csn for entry in catalog.ledger(Interval(1, 4), limit=2)] == [3, 4]
    assert [entry.csn for entry in catalog.ledger(limit=1)] == [6]
    assert catalog.ledger(Interval(6, 6)) == ()


def test_changes_of_a_relation_over_an_interval(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        add_table(writer, "u")
    for name in ("t", "u", "t", "t"):
        commit(catalog, [Change(name, 1, 0)])
    assert [count.csn for count in catalog.changes("t", Interval(1, 4))] == [3, 4]
    with pytest.raises(errors.NotFound):
        catalog.changes("nowhere", Interval(0, 1))


def test_a_dropped_relation_stays_in_the_ledger_and_its_successor_starts_empty(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        commit_in(writer, [Change("t", 5, 0)])
        writer.drop_relation("t")
        add_view(writer, "T")
    assert catalog.ledger()[0].changes == (ChangeCount("t", 1, 5, 0, None),)
    assert catalog.changes("t", Interval(0, 1)) == ()


def test_a_change_of_an_unknown_relation_is_refused(catalog: Catalog) -> None:
    with pytest.raises(errors.NotFound):
        commit(catalog, [Change("nowhere", 1, 0)])
    assert catalog.snapshot().moment.csn == 0


def test_an_expected_csn_that_is_taken_can_be_retried(catalog: Catalog) -> None:
    assert commit(catalog, expect=1).csn == 1
    with pytest.raises(errors.Retryable, match="The next csn is 2, not 1") as caught:
        commit(catalog, expect=1)
    assert caught.value.retryable
    assert commit(catalog, expect=2).csn == 2


def test_a_moment_is_mapped_to_the_newest_csn_by_then(catalog: Catalog) -> None:
    times = [commit(catalog).time for _ in range(3)]
    tick = timedelta(microseconds=1)
    assert [catalog.csn_at(time) for time in times] == [1, 2, 3]
    assert [catalog.csn_at(time - tick) for time in times] == [0, 1, 2]
    assert catalog.csn_at(datetime(9000, 1, 1, tzinfo=UTC)) == 3
    assert catalog.csn_at(datetime(1900, 1, 1, tzinfo=UTC)) == 0
    with pytest.raises(errors.UsageError, match="no time zone"):
        catalog.csn_at(times[0].replace(tzinfo=None))


def test_a_snapshot_is_one_moment_while_others_commit(catalog: Catalog, reopened: Callable[..., Catalog]) -> None:
    """Each transaction moves the clock and pins all tables there; no snapshot may see one without the others."""
    tables = [f"t{n}" for n in range(5)]
    with catalog.write() as writer:
        for name in tables:
            add_table(writer, name)
            writer.pin(name, Pin(Part.STATE, 0, 0, 0, 0))

    def write() -> None:
        for _ in range(60):
            with catalog.write() as writer:
                csn = commit_in(writer, [Change("t0", 1, 0)]).csn
                for name in tables:
                    writer.pin(name, Pin(Part.STATE, csn, csn, csn, csn))

    reader, seen = reopened(), set()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        while not writing.done():
            snapshot = reader.snapshot()
            assert {r.pins[Part.STATE].through for r in snapshot.tables()} == {snapshot.moment.csn}
            seen.add(snapshot.moment.csn)
        writing.result()
    assert len(seen) > 5


def test_a_transaction_is_seen_by_others_only_when_it_ends(catalog: Catalog, reopened: Callable[..., Catalog]) -> None:
    other = reopened()
    with catalog.write() as writer:
        add_table(writer, "t")
        assert writer.snapshot().get("t").name == "t"
        assert other.snapshot().relations == {}
    assert list(other.snapshot().relations) == ["t"]


def test_missed_commits_are_counted_and_not_read(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    with catalog.write() as writer:
        add_table(writer, "t")
        add_table(writer, "u")
        made = [commit_in(writer, [Change(name, 1, 0)]) for name in ("t", "u", "t", "t")]
    monkeypatch.setattr(Catalog, "ledger", None)
    now = made[3].time
    missed = catalog.missed(["t", "u"], Interval(0, 4), made[2].time, now)
    assert missed == MissedCommits(4, made[0].time, 2)
    assert catalog.missed(["T"], Interval(1, 4), now, now) == MissedCommits(2, made[2].time, 1)
    # What was made lately is counted whether or not it is missed.
    assert catalog.missed(["t"], Interval(3, 4), made[0].time, now) == MissedCommits(1, now, 3)
    assert catalog.missed(["t"], Interval(3, 4), made[0].time, made[2].time) == MissedCommits(1, now, 2)
    assert catalog.missed([], Interval(0, 4), now, now) == NOTHING_MISSED


def test_the_oldest_change_is_the_first_of_any_of_the_relations(catalog: Catalog) -> None:
    with catalog.write() as writer:
        for name in ("t", "u", "v"):
            add_table(writer, name)
        made = [commit_in(writer, [Change(name, 1, 0)]) for name in ("t", "u", "t", "v")]
    assert catalog.oldest_change(["T", "u"], Interval(0, 4)) == made[0].time
    assert catalog.oldest_change(["t", "u"], Interval(1, 4)) == made[1].time
    assert catalog.oldest_change(["v", "t"], Interval(1, 4)) == made[2].time
    assert catalog.oldest_change(["v"], Interval(0, 3)) is None
    assert catalog.oldest_change([], Interval(0, 4)) is None
