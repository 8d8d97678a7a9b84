"""The oracle: at every csn in reach a view is its definition there, and each state plus its delta is the next."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from tests.spark.oracle.bags import Bag, assert_same, canonical
from tests.spark.oracle.model import Model, by_csn
from tests.spark.oracle.warehouses import extent

from rollview import errors
from rollview.catalog import Part, Relation
from rollview.warehouse import Warehouse


def check_view(warehouse: Warehouse, model: Model, name: str, about: str = "") -> None:
    view = warehouse.snapshot().get(name)
    csns = reachable(view)
    told = f"{about} view {name}: {model.views[name]}"
    types, expected = model.rows(name, csns)
    frames = {csn: warehouse.read(name, as_of=csn) for csn in csns}
    assert [(f.name, f.dataType) for f in frames[csns[0]].schema] == [(f.name, f.dataType) for f in types], told
    found = by_csn(frames)
    for csn in csns:
        assert_same(found[csn], expected[csn], f"{told} at csn {csn} of {csns}")
    check_delta(warehouse, name, expected, told)
    at = view.pins[Part.EXTENT].through
    assert_same(extent(warehouse, name), expected[at], f"{told}, extent at csn {at}")


def check_delta(warehouse: Warehouse, name: str, states: dict[int, Bag], told: str) -> None:
    csns = sorted(states)
    rows = [canonical(tuple(row)) for row in warehouse.delta(name, csns[0], csns[-1]).collect()]
    for before, after in pairwise(csns):
        state = Counter(states[before])
        for *row, count, csn in rows:
            if before < csn <= after:
                state[tuple(row)] += count
        assert_same(Counter({row: n for row, n in state.items() if n}), states[after], f"{told} at {before} + delta")


def reachable(view: Relation) -> tuple[int, ...]:
    delta = view.pins[Part.DELTA]
    csns = range(delta.after, delta.through + 1)
    return tuple(csn for csn in csns if not any(stretch.strictly_inside(csn) for stretch in view.coarse))


def check_refusals(warehouse: Warehouse, name: str) -> int:
    """Strictly inside a recomputed stretch reads and rolls are refused, with the nearest csns. Returns how many."""
    view, refused = warehouse.snapshot().get(name), 0
    for stretch in view.coarse:
        for csn in range(stretch.after + 1, stretch.through):
            for ask in (lambda at: warehouse.read(name, as_of=at), lambda at: warehouse.roll([name], at)):
                with pytest.raises(errors.OutOfReach) as refusal:
                    ask(csn)
                assert refusal.value.facts["nearest"] == (stretch.after, stretch.through)
            refused += 1
    return refused
