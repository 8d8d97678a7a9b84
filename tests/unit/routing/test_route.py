"""The weighing of ways, by what the catalog tells."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.costs.test_costs import CREATED, REFRESHED, TIMED, sized
from tests.unit.propagate.world import World

from rollview.catalog import ChangeCount
from rollview.costs.reading import Costs
from rollview.routing.route import _Choice


def test_a_query_takes_from_tables_what_the_view_that_answers_took_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollview.costs.reading.shown_size", sized)
    world = World(tmp_path, 9)
    world.table("t", *TIMED)
    world.view("v", "SELECT k, x FROM t", *TIMED, mark=5)
    world.counts = [ChangeCount("t", 5, 2, 0, None), ChangeCount("t", 8, 1, 0, None)]
    costs = Costs(world.snapshot, world.root, world.changes_of, lambda name: (REFRESHED, CREATED))
    answering: list[Any] = [SimpleNamespace(name="v")]

    def seconds(*names: str, found: list[Any] = answering) -> list[float]:
        choice = _Choice(world.snapshot, datetime.now(UTC), costs, names, (9,))
        return [one.seconds for one in choice._plain(found)]

    (alone,), (beside,) = seconds("t", found=[]), seconds("t")
    assert alone < float(CREATED.profile["seconds"]) <= beside
    # What names the view reads the view.
    assert seconds("v") == seconds("v", found=[])
    # What it joins beside the query's tables is no work of the query.
    world.table("u", *TIMED)
    world.view("v", "SELECT t.k, t.x FROM t JOIN u ON t.k = u.k", *TIMED, mark=5, reads=("t", "u"))
    costs = Costs(world.snapshot, world.root, world.changes_of, lambda name: (REFRESHED, CREATED))
    assert seconds("t") == [alone]
