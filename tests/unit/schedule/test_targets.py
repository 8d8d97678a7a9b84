"""Which csn and which views a request means, and what is refused before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.maintain.small import Small

from rollview.catalog import Part
from rollview.errors import NotFound, OutOfReach, UsageError
from rollview.schedule.refresh import refresh
from rollview.schedule.selection import select_views
from rollview.schedule.view_steps import Refresh


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small.founded(tmp_path / "w")


def test_no_view_goes_beyond_the_newest_csn(small: Small) -> None:
    small.commit([], [(1, "a")])
    spark: Any = None
    work = Refresh(spark, small.data, small.warehouse.catalog, lambda progress: None)
    with pytest.raises(OutOfReach, match="Cannot refresh to csn 2: the newest is 1"):
        refresh(work, ("v",), 2)
    assert small.pin("v", Part.DELTA).through == 0


def test_one_name_is_not_taken_for_its_letters(small: Small) -> None:
    assert select_views(small.warehouse.snapshot(), "v") == ("v",)


def test_to_roll_nothing_does_not_roll_everything(small: Small) -> None:
    with pytest.raises(UsageError, match="No view is named"):
        small.warehouse.roll([], to=0)


def test_text_that_is_no_point_is_told(small: Small) -> None:
    with pytest.raises(UsageError, match="'2026-12-13' is neither a csn nor a moment"):
        small.warehouse.resolve("2026-12-13")  # type: ignore[arg-type]


def test_an_error_says_what_stays_done_before_it(small: Small) -> None:
    with pytest.raises(NotFound) as caught:
        small.warehouse.sql("DROP MATERIALIZED VIEW v; DROP MATERIALIZED VIEW w; DROP TABLE t")
    assert caught.value.facts["done"] == ["drop view v"]
    assert "Done before it, and stays: drop view v." in str(caught.value.hint)
    assert [relation.name for relation in small.warehouse.snapshot().relations.values()] == ["t"]
