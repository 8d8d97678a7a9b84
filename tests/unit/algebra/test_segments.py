"""The segment tree: a life is the disjoint union of its nodes."""

from __future__ import annotations

from collections import Counter

from tests.property.duck import Duck, in_duckdb

from rollview.algebra.expressions import column, select, table
from rollview.algebra.lives import FIRST, LAST
from rollview.algebra.script import Script
from rollview.algebra.segments import LEVEL, NODE, nodes_of_lives


def test_the_nodes_of_a_life_cover_each_of_its_places_once() -> None:
    lives = [(first, last) for first in range(9) for last in range(first + 1, 17)]
    script, duck = Script(), Duck(())
    duck.db.execute(f"CREATE TABLE lives ({FIRST} BIGINT, {LAST} BIGINT)")
    duck.insert("lives", lives)
    nodes = nodes_of_lives(script, "lives", (FIRST, LAST))
    columns = [column(None, name) for name in (FIRST, LAST, LEVEL, NODE)]
    covered: Counter[tuple[int, int, int]] = Counter()
    for first, last, level, node in duck.run(in_duckdb(script.finish(select(*columns).from_(table(nodes))))):
        covered.update((first, last, place) for place in range(node << level, (node + 1) << level))
    assert covered == Counter((first, last, place) for first, last in lives for place in range(first, last))
