"""What another definition costs beside computing the view from nothing: ``python -m bench.redefine``.

Views of the workload, over keyed tables. Each is renamed or changed, and created anew under another name with the same
text, which is what recomputation costs. What both show is compared. Each is done three times, with the definition
before in between; the figures are the medians.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.sides.rollview import Rollview
from bench.workload import VIEWS
from rollview import Warehouse
from rollview.engine import session

V1, V2, V3 = VIEWS["v1"], VIEWS["v2"], VIEWS["v3"]
TURNS = 3
REVENUE = "l_extendedprice * (1 - l_discount)"


def by_letter(text: str) -> str:
    return text.replace("n_name,", "SUBSTR(n_name, 1, 1) AS letter,").replace("BY n_name", "BY SUBSTR(n_name, 1, 1)")


@dataclass(frozen=True, slots=True)
class Change:
    """``goal``: at most so much of a recomputation; or so many ``seconds``."""

    what: str
    view: str
    text: str
    goal: float | None = None
    seconds: float | None = None


CHANGES = (
    Change("v1 renamed", "v1", V1.replace("AS revenue", "AS income"), seconds=0.1),
    Change("v1 coarsened", "v1", by_letter(V1), goal=0.1),
    Change("v1 with AVG", "v1", by_letter(V1).replace("COUNT(*)", f"AVG({REVENUE}) AS mean, COUNT(*)"), goal=0.1),
    Change("v3 with AVG", "v3", V3.replace("COUNT(*)", "AVG(l_quantity) AS mean, COUNT(*)")),
    Change("v2 renamed", "v2", V2.replace("AS revenue", "AS income"), seconds=0.1),
    Change("v2 narrowed", "v2", V2 + " AND o_orderdate < DATE '1995-01-01'", goal=0.2),
    Change("v2 widened", "v2", V2.replace("o_orderdate < DATE '1995-03-15'", "o_orderdate < DATE '1995-04-15'")),
)


WARM_UPS = (
    Change("warm up", "v4", VIEWS["v4"].replace("AS revenue", "AS income")),
    Change("warm up", "v4", by_letter(VIEWS["v4"])),
)


@dataclass(frozen=True, slots=True)
class Figure:
    change: Change
    seconds: float
    recomputed: float
    how: str

    @property
    def verdict(self) -> str:
        if self.change.seconds is not None:
            return "met" if self.seconds <= self.change.seconds and self.how == "no job" else "missed"
        if self.change.goal is None:
            return ""
        return "met" if self.seconds <= self.change.goal * self.recomputed else "missed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        show(measure(Path(folder) / "warehouse", options.scale))


def measure(root: Path, scale: float) -> list[Figure]:
    side = Rollview(session.start(), scale, root, keys=True)
    try:
        # What a session does for the first time is not what a definition costs.
        for number, change in enumerate(WARM_UPS, len(CHANGES)):
            _measured(side.warehouse, number, change)
        return [_measured(side.warehouse, number, change) for number, change in enumerate(CHANGES)]
    finally:
        side.close()


def _measured(warehouse: Warehouse, number: int, change: Change) -> Figure:
    before = warehouse.view_log(change.view).definitions[-1].query
    seconds, recomputed, how = [], [], ""
    for turn in range(TURNS):
        if turn:
            warehouse.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW {change.view} AS {before}")
        last = warehouse.catalog.last_step(change.view, "adapt")
        seconds.append(_timed(warehouse, f"CREATE OR REPLACE MATERIALIZED VIEW {change.view} AS {change.text}"))
        step = warehouse.catalog.last_step(change.view, "adapt")
        how = "no job" if step == last else str(step and step.profile["mode"])
        anew = f"anew{number}"
        recomputed.append(_timed(warehouse, f"CREATE MATERIALIZED VIEW {anew} AS {change.text}"))
        _check_equal(warehouse, change.view, anew)
        warehouse.drop_view(anew)
    return Figure(change, median(seconds), median(recomputed), how)


def _timed(warehouse: Warehouse, statement: str) -> float:
    began = time.perf_counter()
    warehouse.create_view(statement)
    return time.perf_counter() - began


def _check_equal(warehouse: Warehouse, one: str, other: str) -> None:
    rows = [warehouse.read(name) for name in (one, other)]
    if rows[0].exceptAll(rows[1]).count() or rows[1].exceptAll(rows[0]).count():
        raise SystemExit(f"'{one}' differs from '{other}', which has the same definition")


def show(found: list[Figure]) -> None:
    table = Table("change", "seconds", "recomputed", "share", "how", "goal")
    for one in found:
        share = f"{one.seconds / one.recomputed:.3f}"
        table.add_row(one.change.what, f"{one.seconds:.2f}", f"{one.recomputed:.2f}", share, one.how, one.verdict)
    Console().print(table)


if __name__ == "__main__":
    main()
