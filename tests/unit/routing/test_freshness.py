"""A bound in time counts from what sources are known to have passed; no Spark is started to say so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from rollview.cli.exits import ExitCode, exit_code
from rollview.errors import NotPassed, UsageError
from rollview.routing import freshness
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse

QUERY = "SELECT COUNT(*) AS n FROM account"


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Warehouse]:
    file = tmp_path / "bank.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, money INTEGER)")
        db.execute("INSERT INTO account VALUES (1, 10)")
        db.commit()
    with Warehouse.create(tmp_path / "w") as warehouse:
        tables = (TableSettings("account", "account"),)
        warehouse.add_source("bank", SourceSettings("sqlite", str(file), tables))
        warehouse.capture()
        yield warehouse


def later(monkeypatch: pytest.MonkeyPatch, by: timedelta) -> None:
    class Later(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + by

    monkeypatch.setattr(freshness, "datetime", Later)


def test_an_answer_is_as_fresh_as_its_source_was_read(bank: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    newest = bank.snapshot().moment.csn
    assert bank.query(QUERY, max_staleness="5 minutes", explain=True).csn == newest
    later(monkeypatch, timedelta(minutes=4))
    assert bank.query(QUERY, max_staleness="5 minutes", explain=True).csn == newest


def test_a_source_that_was_stopped_for_longer_is_named_and_asked_for_later(
    bank: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(monkeypatch, timedelta(minutes=10))
    with pytest.raises(NotPassed, match="'bank'") as refused:
        bank.query(QUERY, max_staleness="5 minutes", explain=True)
    assert exit_code(refused.value) is ExitCode.TRY_AGAIN
    assert int(ExitCode.TRY_AGAIN) == 3
    assert refused.value.code == "not_passed"
    newest = bank.snapshot().moment.csn
    assert bank.query(QUERY, max_staleness="11 minutes", explain=True).csn == newest
    assert bank.query(QUERY, max_staleness="1 commits", explain=True).csn == newest, "commits cannot see that"


def test_an_answer_that_takes_long_is_no_older_than_its_bound(bank: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound and age count from the moment of asking, not each from when it is looked at."""
    csn_at = bank.catalog.csn_at

    def slowly(moment: datetime, relations: Iterable[str] | None = None) -> int:
        found = csn_at(moment, relations)
        later(monkeypatch, timedelta(minutes=10))
        return found

    monkeypatch.setattr(bank.catalog, "csn_at", slowly)
    told = bank.query(QUERY, max_staleness="5 minutes", explain=True)
    assert told.staleness_seconds is not None
    assert told.staleness_seconds <= 300


def test_words_that_say_no_bound_are_refused() -> None:
    for words in ("soon", "5 apples", "x commits"):
        with pytest.raises(UsageError, match="does not say how old"):
            freshness.staleness(words)
