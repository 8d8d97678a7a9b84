"""A moment means that moment at every source; a csn covers each source up to a position."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.unit.catalog.samples import add_table, add_view, commit_in

from rollview import errors
from rollview.catalog import Catalog, Change, NewUnit, UnitPart
from rollview.catalog.moments import read_last_changes, read_next_changes

NOON = datetime(2026, 12, 13, 12, tzinfo=UTC)
A, B = "bank", "stock"


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


@pytest.fixture
def ledger(catalog: Catalog) -> Catalog:
    with catalog.write() as writer:
        for name in (A, B):
            add_table(writer, f"{name}_t")
            writer.sources.add(name, "sqlite", {"address": "x"}, {})
            writer.sources.attach(name, f"{name}_t", "t")
        add_table(writer, "own")
        add_view(writer, "of_bank", f"{A}_t")
        add_view(writer, "of_both", "of_bank", f"{B}_t")
        add_view(writer, "of_own", "own")
    return catalog


def units(catalog: Catalog, *given: tuple[str, int]) -> None:
    with catalog.write() as writer:
        new = [
            NewUnit((UnitPart(name, f"p{s}", "t", at(s)),), (Change(f"{name}_t", 1, 0),), at(s)) for name, s in given
        ]
        writer.commit_units(new)


def known(catalog: Catalog, **seconds: int) -> None:
    with catalog.write() as writer:
        for name, second in seconds.items():
            before = writer.sources.get(name).position
            writer.sources.advance(name, before, "p", known=at(second))


def test_a_moment_is_that_moment_at_every_source(ledger: Catalog) -> None:
    units(ledger, (A, 1), (B, 2), (A, 5), (B, 7))
    known(ledger, bank=8, stock=8)
    assert [ledger.csn_at(at(s)) for s in (0, 1, 2, 4, 5, 6, 7, 8)] == [0, 1, 2, 2, 3, 3, 4, 4]


def test_a_source_that_has_not_passed_it_is_named(ledger: Catalog) -> None:
    units(ledger, (A, 1), (B, 2))
    known(ledger, bank=8, stock=3)
    assert ledger.csn_at(at(3)) == 2
    with pytest.raises(errors.NotPassed, match=r"'stock' is only known to have passed 2026-12-13T12:00:03") as raised:
        ledger.csn_at(at(4))
    assert raised.value.retryable
    assert ledger.csn_at(at(8), ["of_bank"]) == 2
    with pytest.raises(errors.NotPassed, match="'stock'"):
        ledger.csn_at(at(8), ["of_both"])


def test_an_order_without_such_a_csn_is_refused(ledger: Catalog) -> None:
    units(ledger, (A, 1), (A, 5), (B, 2), (B, 9))
    known(ledger, bank=9, stock=9)
    with pytest.raises(errors.OutOfReach, match="csn 2 of source 'bank' was committed after it, but came before csn 3"):
        ledger.csn_at(at(3))
    assert (ledger.csn_at(at(3), ["of_bank"]), ledger.csn_at(at(3), ["stock_t"])) == (1, 3)
    assert ledger.csn_at(at(6)) == 3


def test_what_is_changed_here_counts_when_it_gets_its_csn(ledger: Catalog) -> None:
    with ledger.write() as writer:
        time = commit_in(writer, [Change("own", 1, 0)]).time
    tick = timedelta(microseconds=1)
    assert (ledger.csn_at(time, ["of_own"]), ledger.csn_at(time - tick, ["of_own"])) == (1, 0)
    assert ledger.csn_recorded_by(time) == 1


def test_the_positions_of_every_csn(ledger: Catalog) -> None:
    units(ledger, (A, 1), (B, 2), (A, 5))
    parts = (UnitPart(A, "p6", "t", at(6)), UnitPart(B, "p7", "t", at(7)))
    with ledger.write() as writer:
        writer.commit_units([NewUnit(parts, (Change("bank_t", 1, 1), Change("stock_t", 1, 1)), at(7), "g")])
    vectors = [{p.source: (p.csn, p.position) for p in ledger.positions(csn)} for csn in range(5)]
    assert vectors == [
        {A: (0, None), B: (0, None)},
        {A: (1, "p1"), B: (0, None)},
        {A: (1, "p1"), B: (2, "p2")},
        {A: (3, "p5"), B: (2, "p2")},
        {A: (4, "p6"), B: (4, "p7")},
    ]
    with pytest.raises(errors.OutOfReach):
        ledger.positions(5)
    entry = ledger.ledger()[-1]
    assert (entry.global_id, entry.parts, entry.source) == ("g", parts[1:], A)
    known(ledger, bank=8, stock=8)
    assert (ledger.csn_at(at(6), ["stock_t"]), ledger.csn_at(at(7), ["stock_t"])) == (3, 4)


def test_what_waits_and_what_was_decided(ledger: Catalog) -> None:
    with ledger.write() as writer:
        writer.sources.hold(A, "g", "p9", ("stock",))
    (part,) = ledger.held()
    assert (part.source, part.global_id, part.missing, part.decision) == (A, "g", ("stock",), None)
    with ledger.write() as writer:
        writer.sources.hold(A, "g", "p9", ("third",))
    assert [(one.since, one.missing) for one in ledger.held()] == [(part.since, ("third",))]
    with ledger.write() as writer:
        writer.sources.decide("g", "wait", "me")
        writer.sources.decide("g", "release", "me")
    assert (ledger.held()[0].decision, ledger.released()) == ("release", {"g"})
    with ledger.write() as writer:
        writer.sources.unhold(A)
    assert ledger.held() == ()


def test_the_changes_around_a_csn_are_looked_up_and_not_read_through(tmp_path: Path) -> None:
    """The steps of SQLite's machine do not follow the number of changes."""
    place = f"sqlite:///{tmp_path / 'catalog.db'}"
    steps = []
    with Catalog.create(place) as catalog:
        with catalog.write() as writer:
            add_table(writer, "t")
        for _ in range(2):
            with catalog.write() as writer:
                for _ in range(300):
                    commit_in(writer, [Change("t", 1, 0)])
            steps.append(_steps_of(place, catalog.snapshot().moment.csn // 2))
    assert steps[1] < 1.2 * steps[0]


def _steps_of(place: str, csn: int) -> int:
    count = 0

    def counted() -> int:
        nonlocal count
        count += 1
        return 0

    engine = sa.create_engine(place)
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.set_progress_handler(counted, 1)
        assert [moment.csn for moment in read_last_changes(connection, ["t"], csn)] == [csn]
        assert [moment.csn for moment in read_next_changes(connection, ["t"], csn)] == [csn + 1]
    engine.dispose()
    return count
