"""Many commits at once, without Spark: as capture publishes them, with one refresh."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

from tests.unit.maintain.small import Row, Small

from rollview.catalog import Change, NewUnit, UnitPart


def grow_at_once(small: Small, commits: int, seed: int = 0) -> None:
    """Every commit inserts a row, and every other deletes one."""
    chance, first = random.Random(seed), small.csn + 1
    rows: list[tuple[int, str, int, int]] = []
    units = []
    for csn in range(first, first + commits):
        come: Row = (chance.randint(0, 9), chance.choice("abc"))
        state = Counter(small.states[-1])
        gone = chance.choice(list(state)) if state and csn % 2 else None
        for row, count in ((come, 1), *([(gone, -1)] if gone else [])):
            state[row] += count
            rows.append((*row, count, csn))
        small.states.append(+state)
        part = UnitPart("local", str(csn), str(csn), datetime.now(UTC))
        units.append(NewUnit((part,), (Change("t", 1, int(gone is not None)),)))
    catalog = small.warehouse.catalog
    with catalog.lease("commit", "relation:t") as lease:
        pin = small._append(catalog.snapshot(), "t", rows, small.csn)
        with catalog.write(lease) as writer:
            writer.commit_units(units, expect=first)
            writer.pin("t", pin)
    small.refresh()
