"""The timed delta property: at every csn, first rows and the view delta up to it are the definition evaluated there."""

from __future__ import annotations

import os
from functools import cache
from random import Random

import pytest

from rollview.algebra.resolve import Known
from rollview.algebra.view import Mode, ViewPlan
from tests.property.definitions import Definitions
from tests.property.duck import Duck, Texts, View
from tests.property.histories import random_history
from tests.property.schemas import BAGS, KEYED
from tests.sizes import times

HISTORIES = int(os.environ.get("ROLLVIEW_HISTORIES", times(200, full=4000)))
EACH = 4
"""Histories per definition: a definition is compiled once."""
CHUNKS = 40


@cache
def engine(tables: tuple[Known, ...]) -> Duck:
    return Duck(tables)


def incremental_view(duck: Duck, random: Random, tables: tuple[Known, ...]) -> tuple[str, ViewPlan]:
    """A random definition that is not recomputed whole: those are equal by construction."""
    while True:
        query = Definitions(random, tables).view()
        plan = duck.compile("v", query)
        if plan.mode is not Mode.WHOLE:
            return query, plan


def equal_at_every_csn(view: View, start: int, through: int, what: str) -> None:
    for csn in range(start, through + 1):
        expected, found = view.recompute(csn), view.at(csn)
        assert found == expected, (
            f"{what}, csn {csn} of {start}..{through}\nmissing: {expected - found}\nsurplus: {found - expected}"
        )


def check_definition(seed: int) -> None:
    random = Random(seed)
    tables = KEYED if seed % 3 == 0 else BAGS
    duck = engine(tables)
    query, plan = incremental_view(duck, random, tables)
    texts: Texts = {}
    for _ in range(EACH):
        duck.reset()
        length, start = random.randint(4, 9), random.randint(0, 3)
        for csn, transaction in enumerate(random_history(random, tables, length), 1):
            duck.commit(csn, transaction)
        view = View(duck, "v", plan, start, texts)
        while view.high_water_mark < length:
            view.propagate(min(length, view.high_water_mark + random.randint(1, 4)))
        equal_at_every_csn(view, start, length, f"seed {seed}, {query}")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_state_plus_delta_is_the_definition_at_every_csn(chunk: int) -> None:
    for seed in range(chunk, HISTORIES // EACH, CHUNKS):
        check_definition(seed)
