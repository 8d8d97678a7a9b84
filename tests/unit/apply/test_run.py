"""Extents brought to a csn and back, in this process: few rows need no Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.maintain.small import Small
from tests.unit.propagate.world import KX

from rollview.apply.plan import ApplyStep, plan_apply
from rollview.apply.run import _buckets, _told, run_apply
from rollview.catalog import Part
from rollview.relations.ahead import Ahead
from rollview.relations.reader import Reader
from rollview.store.buckets import REWRITE_ROWS, Buckets


@pytest.fixture
def small(tmp_path: Path) -> Small:
    """Rows come at every csn but the third, and go at the fourth."""
    small = Small.founded(tmp_path / "w")
    changes = [([], [(1, "a"), (1, "a")]), ([], [(2, "b")]), ([(2, "b")], [(2, "b")]), ([(1, "a")], [])]
    for gone, come in changes:
        small.commit(gone, come)
        small.refresh()
    return small


def roll(small: Small, target: int, **said: Any) -> dict[str, int]:
    """``said``: of every step, whatever was planned."""
    catalog = small.warehouse.catalog
    with catalog.lease("relation:v") as lease:
        snapshot = catalog.snapshot()
        steps = [replace(step, **said) for step in plan_apply(snapshot, small.data, ["v"], target)]
        return run_apply(Reader(None, small.data, snapshot), catalog, lease, steps, {})  # type: ignore[arg-type]


def extent(small: Small) -> Counter[Any]:
    return Counter(small._part("v", "extent"))


def test_an_extent_goes_back_and_forth_by_the_views_delta(small: Small) -> None:
    for target in (1, 4, 2, 0, 3, 4):
        if target != small.pin("v", Part.EXTENT).through:
            assert roll(small, target) == {"v": small.states[target].total()}
        assert extent(small) == small.states[target]
        pin = small.pin("v", Part.EXTENT)
        assert (pin.through, pin.rows) == (target, small.states[target].total())
        small.check()


def test_where_nothing_changed_no_version_is_written(small: Small) -> None:
    roll(small, 3)
    before = small.pin("v", Part.EXTENT)
    roll(small, 2)
    after = small.pin("v", Part.EXTENT)
    assert (after.version, after.rows) == (before.version, before.rows)
    assert after.through == 2


def test_an_extent_that_becomes_empty_is_a_version_like_any_other(small: Small) -> None:
    before = small.pin("v", Part.EXTENT)
    roll(small, 0)
    after = small.pin("v", Part.EXTENT)
    assert after.version > before.version
    assert extent(small) == Counter()


def test_an_extent_that_is_not_in_buckets_yet_is_written_whole(small: Small) -> None:
    roll(small, 2, by_bucket=True)
    assert extent(small) == small.states[2]


def step(after: int, change_rows: int) -> ApplyStep:
    return ApplyStep("v", 0, after, change_rows, by_bucket=False, fold_groups=False)


def test_what_was_told_ahead_counts_only_for_the_same_csn_and_where_something_changed() -> None:
    told = Ahead(5, pa.table({}), pa.table({}))
    assert _told(told, step(5, 1)) is told
    assert _told(told, step(6, 1)) is None
    assert _told(told, step(5, 0)) is None
    assert _told(None, step(5, 1)) is None


@pytest.mark.parametrize(("rows", "count"), [(REWRITE_ROWS, None), (REWRITE_ROWS + 1, 8), (799_999, 8), (800_000, 16)])
def test_beyond_what_is_written_anew_buckets_hold_about_a_hundred_thousand_rows(rows: int, count: int | None) -> None:
    assert _buckets(KX, rows) == (None if count is None else Buckets(("k", "x"), count))
