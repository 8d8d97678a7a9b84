"""Law (003 Def. 4.2): at every csn, first rows plus the view delta up to it equal the definition evaluated there."""

from __future__ import annotations

import os
from random import Random

import pytest

from rollview.algebra.resolve import Known
from rollview.algebra.view import Mode, ViewPlan
from tests.property.definitions import Definitions
from tests.property.duck import Duck, View
from tests.property.histories import random_history
from tests.property.schemas import BAGS, KEYED

HISTORIES = int(os.environ.get("ROLLVIEW_HISTORIES", "2000"))
CHUNKS = 40


def incremental_view(duck: Duck, random: Random, tables: tuple[Known, ...]) -> tuple[str, ViewPlan]:
    """A random definition that is not recomputed whole: those are equal by construction."""
    while True:
        query = Definitions(random, tables).view()
        plan = duck.compile("v", query)
        if plan.mode is not Mode.WHOLE:
            return query, plan


def check_history(seed: int) -> None:
    random = Random(seed)
    tables = KEYED if seed % 3 == 0 else BAGS
    length = random.randint(4, 9)
    history = random_history(random, tables, length)
    duck = Duck(tables)
    start = random.randint(0, 3)
    for csn, transaction in enumerate(history[:start], 1):
        duck.commit(csn, transaction)
    query, plan = incremental_view(duck, random, tables)
    view = View(duck, "v", plan, start)
    for csn, transaction in enumerate(history[start:], start + 1):
        duck.commit(csn, transaction)
    while view.high_water_mark < length:
        view.propagate(min(length, view.high_water_mark + random.randint(1, 4)))
    for csn in range(start, length + 1):
        expected, found = view.recompute(csn), view.at(csn)
        assert found == expected, (
            f"seed {seed}, csn {csn} of {start}..{length}, {query}\n"
            f"missing: {expected - found}\nsurplus: {found - expected}"
        )


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_state_plus_delta_is_the_definition_at_every_csn(chunk: int) -> None:
    for seed in range(chunk, HISTORIES, CHUNKS):
        check_history(seed)
