"""Tables that move one by one: up to the mark, the sum of all boxes is the view's timed delta."""

from __future__ import annotations

import os
from functools import cache
from random import Random

import pytest

from rollview.algebra.resolve import Known
from rollview.algebra.script import AT_ONCE_ROWS
from rollview.algebra.view import ViewPlan
from rollview.core.interval import Interval
from rollview.propagate.boxes import read_over
from rollview.relations.rolling import not_linear
from tests.property.definitions import Definitions
from tests.property.duck import Duck, View, canonical, in_duckdb
from tests.property.histories import random_history
from tests.property.schemas import BAGS, KEYED
from tests.property.test_timed_delta import equal_at_every_csn
from tests.sizes import times

HISTORIES = int(os.environ.get("ROLLVIEW_HISTORIES", times(48, full=2000)))
EACH = 4
CHUNKS = 4


@cache
def engine(tables: tuple[Known, ...]) -> Duck:
    return Duck(tables)


def linear_join(duck: Duck, random: Random, tables: tuple[Known, ...]) -> tuple[str, ViewPlan]:
    while True:
        query = Definitions(random, tables).view()
        plan = duck.compile("v", query)
        if not list(not_linear(plan)) and len(plan.moved_by) > 1:
            return query, plan


class Rolled(View):
    """A view whose tables move one by one."""

    def begin(self) -> None:
        self.places = dict.fromkeys(sorted(self.plan.moved_by), self.started)

    def move(self, table: str, through: int, few: bool) -> None:
        intervals = read_over(self.places, table, Interval(self.places[table], through))
        motion = {name: self.duck._motion(name, over.after, over.through) for name, over in intervals.items()}
        self.places[table] = through
        self.high_water_mark = min(self.places.values())
        if not motion[table].changed:
            return
        self.duck.read_over(intervals)
        sizes = dict.fromkeys(intervals, AT_ONCE_ROWS) if few else {}
        text = in_duckdb(self.plan.propagation(motion, sizes=sizes, moving=table).query)
        self.deltas += [(canonical(row[:-2]), row[-2], row[-1]) for row in self.duck.run(text)]
        self.duck.read_over({})

    def at(self, csn: int) -> object:  # type: ignore[override]
        assert csn <= self.high_water_mark
        return super().at(csn)


def check_definition(seed: int) -> None:
    random = Random(seed)
    tables = KEYED if seed % 2 == 0 else BAGS
    duck = engine(tables)
    query, plan = linear_join(duck, random, tables)
    for _ in range(EACH):
        duck.reset()
        length, start = random.randint(4, 9), random.randint(0, 3)
        for csn, transaction in enumerate(random_history(random, tables, length), 1):
            duck.commit(csn, transaction)
        view = Rolled(duck, "v", plan, start)
        view.begin()
        for _ in range(random.randint(2, 8)):
            table = random.choice(sorted(view.places))
            view.move(table, random.randint(view.places[table], length), random.random() < 0.5)
        equal_at_every_csn(view, start, view.high_water_mark, f"seed {seed}, places {view.places}, {query}")
        for table in sorted(view.places, key=lambda _: random.random()):
            view.move(table, length, random.random() < 0.5)
        equal_at_every_csn(view, start, length, f"seed {seed}, at the end, {query}")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_up_to_the_mark_the_boxes_of_all_tables_are_the_timed_delta(chunk: int) -> None:
    for seed in range(chunk, HISTORIES // EACH, CHUNKS):
        check_definition(seed)
