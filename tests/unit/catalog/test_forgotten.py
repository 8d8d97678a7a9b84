"""Behind the horizon nothing can be asked for; from it on every answer is as before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.catalog.samples import add_table

from rollview import errors
from rollview.catalog import Catalog, Change, NewUnit, UnitPart
from rollview.catalog.forgotten import NEWEST_STEPS
from rollview.core.interval import Interval

NOON = datetime(2026, 12, 13, 12, tzinfo=UTC)
UNITS = (("bank", 1), ("stock", 2), ("bank", 3), ("bank", 4), ("bank", 5), ("stock", 6), ("bank", 7))


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def ledger(catalog: Catalog) -> Catalog:
    """Csn n was committed at second n."""
    with catalog.write() as writer:
        for name in ("bank", "stock"):
            add_table(writer, f"{name}_t")
            writer.sources.add(name, "sqlite", {"address": "x"}, {})
            writer.sources.attach(name, f"{name}_t", "t")
        units = [
            NewUnit((UnitPart(name, f"p{s}", "t", at(s)),), (Change(f"{name}_t", 1, 0),), at(s)) for name, s in UNITS
        ]
        writer.commit_units(units)
        for name in ("bank", "stock"):
            writer.sources.advance(name, None, "p", known=at(9))
    return catalog


def forget(catalog: Catalog, csn: int) -> tuple[int, int, int]:
    with catalog.write() as writer:
        return writer.forget_before(csn)


def test_each_sources_last_row_stays_and_what_is_before_the_horizon_is_refused(ledger: Catalog) -> None:
    tables = ("bank_t", "stock_t")
    before = {
        csn: (ledger.positions(csn), ledger.last_changes(tables, csn), ledger.next_changes(tables, csn))
        for csn in range(5, 8)
    }
    moments = {s: ledger.csn_at(at(s)) for s in (5, 5.5, 6, 7, 8)}
    assert forget(ledger, 5) == (3, 3, 0)
    assert [entry.csn for entry in ledger.ledger()] == [2, 5, 6, 7]
    assert (ledger.horizon().csn, ledger.horizon().time) == (5, at(5))
    after = {
        csn: (ledger.positions(csn), ledger.last_changes(tables, csn), ledger.next_changes(tables, csn))
        for csn in range(5, 8)
    }
    assert after == before
    assert {s: ledger.csn_at(at(s)) for s in moments} == moments
    for second in (0, 3, 4.999):
        with pytest.raises(errors.OutOfReach, match="lies before csn 5 of 2026-12-13T12:00:05"):
            ledger.csn_at(at(second))
    with pytest.raises(errors.OutOfReach, match="Csn 4 lies before csn 5"):
        ledger.positions(4)


def test_the_horizon_never_goes_back_and_the_next_csn_is_what_it_was(ledger: Catalog) -> None:
    forget(ledger, 7)
    assert forget(ledger, 3) == (0, 0, 0)
    assert ledger.horizon().csn == 7
    assert [entry.csn for entry in ledger.ledger()] == [6, 7]
    with ledger.write() as writer:
        assert writer.commit_units([NewUnit((UnitPart("bank", "p8", "t", at(8)),), (), at(8))]).csn == 8


def test_nothing_is_refused_before_anything_is_forgotten(ledger: Catalog) -> None:
    assert ledger.horizon().csn == 0
    assert ledger.csn_at(at(0)) == 0


def test_of_steps_the_newest_the_running_and_drops_stay(ledger: Catalog) -> None:
    with ledger.write() as writer:
        done = [writer.begin_step("bank_t", "merge", Interval(0, 1), "me") for _ in range(NEWEST_STEPS + 5)]
        for step in done:
            writer.finish_step(step, "done")
        compress = writer.begin_step("stock_t", "compress", Interval(0, 2), "me")
        writer.finish_step(compress, "done")
        drops = [writer.begin_step("stock_t", "drop", Interval(0, 1), "me") for _ in range(2)]
        for step in drops:
            writer.finish_step(step, "done")
        running = writer.begin_step("bank_t", "merge", Interval(0, 1), "me")
        for _ in range(NEWEST_STEPS):
            writer.finish_step(writer.begin_step("stock_t", "merge", Interval(5, 7), "me"), "done")
    assert forget(ledger, 5)[2] == 6
    left = {step.id for step in ledger.steps(limit=None)}
    assert {running, compress, *drops} <= left
    assert left.issuperset(done[6:])
    assert left.isdisjoint(done[:6])
