"""Spark is asked again unless only names or the order of columns differ, and nothing else in the text means others."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.propagate.world import World

from rollview.algebra.definition import Declared
from rollview.algebra.view import outline
from rollview.propagate.renaming import told_before
from rollview.relations.plans import known_as

PLAIN = "SELECT k, x AS b FROM t"
SORTED = "SELECT k AS a, x AS b FROM t ORDER BY 1 LIMIT 3"
NAMED = "SELECT k AS a, x AS b FROM t ORDER BY b, a LIMIT 3"


def names_told(tmp_path: Path, before: str, after: str) -> tuple[str, ...] | None:
    world = World(tmp_path, 9)
    world.table("t")
    world.view("v", before)
    snapshot = world.snapshot
    made = outline(Declared("v", (), None, {}, after, True), {"t": known_as(snapshot.get("t"))})
    told = told_before(snapshot, snapshot.get("v"), made, after)
    return None if told is None else told[0].names


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (PLAIN, "SELECT k AS c, x AS b FROM t", ("c", "b")),
        (PLAIN, "SELECT x AS c, k FROM t", ("c", "k")),
        (SORTED, "SELECT k AS c, x AS b FROM t ORDER BY 1 LIMIT 3", ("c", "b")),
        (SORTED, "SELECT x AS b, k AS a FROM t ORDER BY 1 LIMIT 3", None),
        (NAMED, "SELECT k AS b, x AS a FROM t ORDER BY b, a LIMIT 3", None),
        (NAMED, "SELECT x AS b, k AS a FROM t ORDER BY b, a LIMIT 3", None),
        (PLAIN, "SELECT k, k AS b FROM t", None),
    ],
)
def test_spark_is_asked_where_a_place_or_a_name_means_another_column(
    tmp_path: Path, before: str, after: str, told: tuple[str, ...] | None
) -> None:
    assert names_told(tmp_path, before, after) == told
