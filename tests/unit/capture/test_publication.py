"""A publication tells how far the sources are, and changes nothing that it was given."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rollview.capture.arrange import Entry
from rollview.capture.commit_stream import Arrived, CommitStream, End, Reached
from rollview.capture.publication import Publication
from rollview.capture.recorded_source import open_recorded
from rollview.catalog import Catalog
from rollview.errors import Retryable
from rollview.sources.kinds import new_memory
from rollview.sources.protocol import UnitOfWork
from rollview.sources.settings import SourceSettings, TableSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    """One source at position 1, none of whose tables is captured: of its units only the position remains."""
    settings = SourceSettings("sqlite", str(tmp_path / "bank.db"), (TableSettings("account", "account"),))
    with closing(sqlite3.connect(tmp_path / "bank.db")) as bank:
        bank.execute("CREATE TABLE account (id INTEGER PRIMARY KEY)")
    with Catalog.create(tmp_path / "catalog.db") as catalog:
        with catalog.write() as writer:
            writer.sources.add("bank", "sqlite", settings.to_json(), new_memory())
            writer.sources.advance("bank", None, "1")
        yield catalog


@pytest.fixture
def publication(catalog: Catalog, tmp_path: Path) -> Iterator[Publication]:
    record = catalog.source("bank")
    with closing(open_recorded(catalog, record)) as source, catalog.lease("source:bank") as lease:
        yield Publication(catalog, tmp_path, [CommitStream(source, record, catalog.snapshot())], lease)


def entry(position: str) -> Entry:
    return Entry((Arrived("bank", UnitOfWork(position, "t", NOW, {}), NOW),), NOW)


def test_where_a_source_is_comes_back_as_a_value(catalog: Catalog, publication: Publication) -> None:
    before = {"bank": Reached("1", None, None)}
    done = publication.publish([entry("2"), entry("3")], {"bank": End("1", "4", known=NOW)}, before)
    assert done.error is None
    assert (done.reached["bank"].position, done.reached["bank"].known) == ("4", NOW)
    assert before == {"bank": Reached("1", None, None)}
    assert catalog.source("bank").position == "4"


def test_what_keeps_it_from_moving_comes_back_as_a_value_too(catalog: Catalog, publication: Publication) -> None:
    done = publication.publish([], {"bank": End("0", "4")}, {"bank": Reached("0", None, None)})
    assert isinstance(done.error, Retryable)
    assert done.reached["bank"].position == "0"
    assert catalog.source("bank").position == "1"
