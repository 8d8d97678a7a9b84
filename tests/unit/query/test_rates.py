"""How many commits came per second to what a view reads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.catalog.samples import add_table, add_view

from rollview.catalog import Catalog, Change, NewUnit, Part, Pin, UnitPart
from rollview.query.status import warehouse_status
from rollview.relations.policies import Policies


def test_a_source_that_was_read_long_ago_makes_the_others_commits_no_more(tmp_path: Path) -> None:
    """Of the last minute that is known of all sources, and not of all that came since."""
    now = datetime.now(UTC)
    with Catalog.create(tmp_path / "catalog.db") as catalog:
        with catalog.write() as writer:
            for name in ("bank", "stock"):
                add_table(writer, name)
                writer.pin(name, Pin(Part.STATE, 0, 0, 0, 0))
                writer.sources.add(name, "sqlite", {"address": "x", "tables": []}, {})
                writer.sources.attach(name, name, name)
            add_view(writer, "v", "bank", "stock")
            for part in (Part.EXTENT, Part.DELTA):
                writer.pin("v", Pin(part, 0, 0, 0, 0))
            ago = [now - timedelta(seconds=10 * number) for number in range(720, 0, -1)]
            writer.commit_units([NewUnit((UnitPart("bank", "p", "t", at),), (Change("bank", 1, 0),), at) for at in ago])
            writer.sources.advance("bank", None, "p", known=now)
            writer.sources.advance("stock", None, "p", known=now - timedelta(hours=1))
        (view,) = warehouse_status(catalog, Policies()).views
    assert view.commits_per_second_in == pytest.approx(0.1, rel=0.2)
