"""Laws of view deltas: intervals compose, views do not disturb each other, one view's delta feeds the next."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from rollview.algebra.resolve import Known
from tests.property.definitions import Definitions
from tests.property.duck import Duck, View
from tests.property.histories import random_history
from tests.property.schemas import BAGS, KEYED
from tests.property.test_timed_delta import engine, equal_at_every_csn, incremental_view
from tests.sizes import times

SEEDS = times(8, full=120)
LENGTH = 7
START = 2


def committed(random: Random, tables: tuple[Known, ...]) -> Duck:
    duck = engine(tables)
    duck.reset()
    for csn, transaction in enumerate(random_history(random, tables, LENGTH), 1):
        duck.commit(csn, transaction)
    return duck


def propagate_all(view: View, random: Random, longest: int) -> None:
    while view.high_water_mark < LENGTH:
        view.propagate(min(LENGTH, view.high_water_mark + random.randint(1, longest)))


def net(view: View) -> Counter[object]:
    total: Counter[object] = Counter()
    for row, count, csn in view.deltas:
        total[(row, csn)] += count
    return Counter({change: count for change, count in total.items() if count})


@pytest.mark.parametrize("chunk", range(4))
def test_an_interval_in_pieces_gives_the_same_net_delta(chunk: int) -> None:
    for seed in range(chunk, SEEDS, 4):
        random = Random(f"pieces {seed}")
        tables = KEYED if seed % 3 == 0 else BAGS
        duck = committed(random, tables)
        query, plan = incremental_view(duck, random, tables)
        deltas = []
        for longest in (LENGTH, 1, 3):
            view = View(duck, "v", plan, START)
            propagate_all(view, random, longest)
            deltas.append(net(view))
        assert deltas[0] == deltas[1] == deltas[2], f"seed {seed}, {query}"


@pytest.mark.parametrize("chunk", range(4))
def test_two_views_propagated_in_any_order_are_both_right(chunk: int) -> None:
    for seed in range(chunk, SEEDS, 4):
        random = Random(f"order {seed}")
        tables = KEYED if seed % 3 == 0 else BAGS
        duck = committed(random, tables)
        made = [incremental_view(duck, random, tables) for _ in range(2)]
        views = [View(duck, f"v{i}", plan, random.randint(0, START)) for i, (_, plan) in enumerate(made)]
        starts = [view.high_water_mark for view in views]
        while behind := [view for view in views if view.high_water_mark < LENGTH]:
            view = random.choice(behind)
            view.propagate(min(LENGTH, view.high_water_mark + random.randint(1, 4)))
        for (query, _), view, start in zip(made, views, starts, strict=True):
            equal_at_every_csn(view, start, LENGTH, f"seed {seed}, {query}")


def lower_view(duck: Duck, random: Random, tables: tuple[Known, ...]) -> tuple[str, View]:
    """A view whose values are exact in every engine, so that what it deletes is what it inserted."""
    while True:
        query, plan = incremental_view(duck, random, tables)
        view = View(duck, "low", plan, START)
        if not any(column.type == "double" for column in view.schema):
            return query, view


@pytest.mark.parametrize("chunk", range(8))
def test_a_view_over_a_view_is_kept_by_the_lower_ones_delta(chunk: int) -> None:
    for seed in range(chunk, 2 * SEEDS, 8):
        random = Random(f"over {seed}")
        tables = KEYED if seed % 3 == 0 else BAGS
        duck = committed(random, tables)
        below, low = lower_view(duck, random, tables)
        propagate_all(low, random, 3)
        known = low.stored()
        while True:
            query = Definitions(random, (known, *tables)).view()
            plan = duck.compile("high", query)
            if plan.outline.rel is not None and "low" in {relation.name for relation in plan.reads}:
                break
        high = View(duck, "high", plan, START)
        propagate_all(high, random, 3)
        equal_at_every_csn(high, START, LENGTH, f"seed {seed}, {query}\nover {below}")
