"""Which answers are kept for the next time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rollview.core.states import Rewrite
from rollview.costs.reading import RelationCost, WayToRead
from rollview.routing import kept


@pytest.mark.parametrize(
    ("way", "rows", "is_kept"),
    [
        (WayToRead.WITH_RESIDUAL, 100, True),
        (WayToRead.WITH_RESIDUAL, 100_000, False),
        (WayToRead.EXTENT, 100_000, True),
    ],
)
def test_an_answer_that_may_hold_many_rows_is_not_kept(
    way: WayToRead, rows: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Place:
        pass

    monkeypatch.setattr(kept, "Analysed", lambda data: data)
    readings, snapshot = (RelationCost("v", way, 1.0, rows),), object()
    found: Any = SimpleNamespace(rewritten="…", readings=readings, snapshot=snapshot)
    place: Any = Place()
    data: Any = SimpleNamespace(sparkSession=object())
    key = ("SELECT 1", Rewrite.AUTO)
    kept.keep(place, key, found, snapshot, data)  # type: ignore[arg-type]
    assert (kept.find_kept(place, key) is not None) is is_kept
