"""What it costs: asks and compensating queries, by the number of tables and of updates that come meanwhile.

One insert into the first of n tables; before its first answer K deletes come, in turn from the other tables. What is
counted is for the insert alone. The paper's bounds K^(n−2) and (n−1)! count the deepest level of compensation only; all
levels together are Σ K^k, and grouped by table Σ (n−1)!/(n−1−k)!, for k = 1…n−2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import factorial

from rollview.compensate.c_strobe import CStrobe
from rollview.compensate.maintainer import Maintainer
from rollview.compensate.strobe import Strobe
from rollview.compensate.sweep import SweepMaintainer
from rollview.consistency.bags import bag
from rollview.consistency.history import HistoryUnit, Update
from rollview.consistency.join_view import JoinView
from rollview.lab.simulator import Simulation
from rollview.lab.svg import BLUE, GREEN, INK, PALE, RED, Drawing
from rollview.lab.worlds import Scenario, chain_view

TABLES = range(2, 6)
UPDATES = range(9)


@dataclass(frozen=True, slots=True)
class Cost:
    """``compensating``: queries for deletes, asked one by one; ``grouped``: by table."""

    tables: int
    updates: int
    strobe_asks: int
    compensating: int
    grouped: int
    sweep_asks: int

    @property
    def bound(self) -> int:
        return sum(self.updates**level for level in range(1, self.tables - 1))

    @property
    def grouped_bound(self) -> int:
        n = self.tables
        return sum(factorial(n - 1) // factorial(n - 1 - level) for level in range(1, n - 1))


def measure_costs(tables: Iterable[int] = TABLES, updates: Sequence[int] = UPDATES) -> tuple[Cost, ...]:
    return tuple(measure_cost(n, k) for n in tables for k in updates)


def measure_cost(tables: int, updates: int) -> Cost:
    view = chain_view(tables, Scenario.SINGLE)
    strobe, _ = _run(view, updates, Strobe(view))
    _, single = _run(view, updates, CStrobe(view, grouped=False))
    _, grouped = _run(view, updates, CStrobe(view))
    sweep, _ = _run(view, updates, SweepMaintainer(view))
    return Cost(tables, updates, strobe, single - 1, grouped - 1, sweep)


def _run(view: JoinView, updates: int, maintainer: Maintainer) -> tuple[int, int]:
    """Asks, and queries that had any, until the insert is in the view."""
    names = [one.table for one in view.occurrences]
    # In every table one row that stays, beside those that will be deleted.
    keys = {place: range(place - 1, updates, len(names) - 1) for place in range(1, len(names))}
    initial = {names[place]: bag([(key, 0, 0) for key in (*own, updates)]) for place, own in keys.items()}
    insert = (HistoryUnit(view.occurrences[0].source, (Update(names[0], (0, 0, 0), 1),)),)
    deletes = [_delete(view, 1 + k % (len(names) - 1), k) for k in range(updates)]
    simulation = Simulation(view, initial, [insert, *deletes], maintainer)
    simulation.commit()
    simulation.deliver(view.occurrences[0].source)
    queries = _first_asks(simulation, 0)
    for transaction in deletes:
        simulation.commit()
        simulation.deliver(transaction[0].source)
    while len(simulation.versions) == 1:
        before = simulation.asks_sent
        waiting = next((source for source, asks in simulation.asks.items() if asks), None)
        if waiting is not None:
            simulation.answer(waiting)
        for (source, channel), box in simulation.mail.items():
            if box:
                simulation.deliver(source, channel)
        queries += _first_asks(simulation, before)
    # Whatever is asked when the insert has been published is for what came behind it.
    return simulation.asks_sent - _for_later(simulation), queries


def _delete(view: JoinView, place: int, key: int) -> tuple[HistoryUnit, ...]:
    one = view.occurrences[place]
    return (HistoryUnit(one.source, (Update(one.table, (key, 0, 0), -1),)),)


def _first_asks(simulation: Simulation, before: int) -> int:
    """How many of the asks since then began a query."""
    running = getattr(simulation.state, "unanswered", {})
    new = [one.query for number, one in running.items() if number > before]
    return sum(1 for query in new if query.terms == query.formed)


def _for_later(simulation: Simulation) -> int:
    return sum(len(asks) for asks in simulation.asks.values())


def draw_costs(costs: Iterable[Cost]) -> str:
    """Compensating queries over K, a curve for each n; dashed where they are grouped by table."""
    costs = list(costs)
    width, height, left, top = 560, 320, 70, 50
    most = max(cost.compensating for cost in costs)
    drawing = Drawing(left + width + 120, top + height + 60)
    drawing.text(16, 24, "Compensating queries of C-Strobe for one insert", size=15)
    drawing.line(left, top + height, left + width, top + height)
    drawing.line(left, top, left, top + height)
    ks = sorted({cost.updates for cost in costs})
    for k in ks:
        drawing.text(left + width * k / max(ks), top + height + 18, str(k), anchor="middle")
    drawing.text(left + width, top + height + 38, "updates that come meanwhile", anchor="end")
    for level in range(5):
        y = top + height - height * level / 4
        drawing.line(left, y, left + width, y, PALE, dashed=True)
        drawing.text(left - 8, y + 4, f"{most * level / 4:g}", anchor="end")
    for colour, n in zip((INK, BLUE, GREEN, RED), sorted({cost.tables for cost in costs}), strict=False):
        own = [cost for cost in costs if cost.tables == n]
        for values, dashed in (([c.compensating for c in own], False), ([c.grouped for c in own], True)):
            points = [
                (left + width * c.updates / max(ks), top + height - height * v / most)
                for c, v in zip(own, values, strict=True)
            ]
            for (x1, y1), (x2, y2) in pairwise(points):
                drawing.line(x1, y1, x2, y2, colour, dashed=dashed)
        drawing.text(left + width + 10, points[-1][1] - 8 * n + 16, f"{n} tables", colour)
    return drawing.to_svg()
