"""All experiments at once: numbers, pictures, and where ours differ from the papers.

Law: the same numbers of schedules give the same bytes of every file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from rollview.compensate.algorithms import ALGORITHMS
from rollview.consistency.levels import Level
from rollview.lab.catalogue import experiments
from rollview.lab.contention import RECORDED as CONTENTION
from rollview.lab.contention import contention_rows
from rollview.lab.curves import Cost, draw_costs, measure_costs
from rollview.lab.differences import differences_page
from rollview.lab.figures import QueryCount, SkewedCount, count_queries, count_skewed
from rollview.lab.service_times import RECORDED, measure_service_times
from rollview.lab.spectrum import STATED, Cell, draw_map, measure_cell
from rollview.lab.txnwrap import NUMBERS, measure_figure, txnwrap_page
from rollview.lab.variants import TRIALS, Variant, measure_trial
from rollview.lab.worlds import Scenario
from rollview.results import FilesWritten, plain

Tell = Callable[[str], None]


def write_all(folder: Path, schedules: int, tell: Tell = lambda _: None) -> FilesWritten:
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}.svg": one.draw() for name, one in experiments().items()}
    cells = []
    for name in ALGORITHMS:
        tell(f"{name}: {schedules} schedules in each scenario")
        cells += [measure_cell(name, scenario, range(schedules)) for scenario in Scenario]
    tell("what must not be done, and what must hold when messages and processes fail")
    variants = tuple(measure_trial(trial, schedules) for trial in TRIALS)
    tell("curves")
    costs = measure_costs()
    counts = tuple(map(count_queries, range(2, 6)))
    skewed = tuple(map(count_skewed, (2, 3)))
    files |= {"map.svg": draw_map(cells), "curves.svg": draw_costs(costs)}
    files["results.json"] = _json(schedules, cells, variants, costs, counts, skewed)
    files["results.md"] = _page(schedules, cells, variants, costs, counts, skewed)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return FilesWritten(str(folder), tuple(sorted(files)))


def write_figures(folder: Path, *, measure: bool = False) -> FilesWritten:
    """Figures 12 to 21 of the paper on versions: a page, and the pictures beside it."""
    times = measure_service_times() if measure else RECORDED
    figures = [measure_figure(number, times) for number in NUMBERS]
    files = {f"txnwrap-{one.number}.svg": one.draw() for one in figures} | {"txnwrap.md": txnwrap_page(figures)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return FilesWritten(str(folder), tuple(files))


def _json(
    schedules: int,
    cells: Iterable[Cell],
    variants: Iterable[Variant],
    costs: Iterable[Cost],
    counts: Iterable[QueryCount],
    skewed: Iterable[SkewedCount],
) -> str:
    told = {
        "schedules": schedules,
        "map": [
            {
                "algorithm": one.algorithm,
                "scenario": one.scenario.value,
                "level": str(one.level),
                "found": {str(level): count for level, count in one.found.items()},
                "asks": one.asks,
            }
            for one in cells
        ],
        "variants": [
            {"name": one.name, "found": {str(level): count for level, count in one.found.items()}} for one in variants
        ],
        "costs": plain(tuple(costs)),
        "queries": plain(tuple(counts)),
        "skewed": plain(tuple(skewed)),
    }
    return json.dumps(told, ensure_ascii=False, indent=1) + "\n"


def _page(
    schedules: int,
    cells: Iterable[Cell],
    variants: Iterable[Variant],
    costs: Iterable[Cost],
    counts: Iterable[QueryCount],
    skewed: Iterable[SkewedCount],
) -> str:
    cells = list(cells)
    parts = [
        "# What the lab measured\n",
        f"Written by `rollview lab all --schedules {schedules}`; the same command writes the same bytes.\n",
        "## Levels of consistency\n",
        "The lowest level of all schedules of a cell; in brackets how many schedules were no better than that.\n",
        _map(cells),
        "![The same as a map](map.svg)\n",
        "## Stated and measured\n",
        _table(("algorithm", "scenario", "stated", "measured"), map(_stated, [c for c in cells if _is_stated(c)])),
        "## What must not be done, and what must hold\n",
        _table(
            ("variant", "expected", "measured"), ((one.name, str(one.expected), _found(one.found)) for one in variants)
        ),
        "## Asks and compensating queries\n",
        "For one insert into the first of n tables, while K deletes come from the others. Bounds: Σ Kᵏ and\n"
        "Σ (n−1)!/(n−1−k)!, k = 1…n−2.\n",
        _table(
            ("n", "K", "Strobe: asks", "C-Strobe: compensating", "bound", "grouped", "bound grouped", "sweep: asks"),
            (
                (c.tables, c.updates, c.strobe_asks, c.compensating, c.bound, c.grouped, c.grouped_bound, c.sweep_asks)
                for c in costs
            ),
        ),
        "![Compensating queries over K](curves.svg)\n",
        "## Queries of rolling propagation\n",
        _table(
            ("n", "equation 1", "equation 2", "ComputeDelta"),
            ((c.tables, c.combinations, c.one_each, c.compute_delta) for c in counts),
        ),
        "One table changes twenty times as often as the others, 60 commits; Propagate in steps of 5, rolling in steps\n"
        "of 5 and 30. Needed: queries in which no interval is empty of changes.\n",
        _table(
            ("n", "Propagate", "needed", "rolling", "needed"),
            ((c.tables, c.propagate, c.propagate_needed, c.rolling, c.rolling_needed) for c in skewed),
        ),
        "## Writers beside those who keep a view\n",
        "On PostgreSQL: two tables of 200,000 rows, four writers that pause for two milliseconds after each commit.\n"
        "Measured once, by `rollview lab contention`. Snapshot: the age of the oldest.\n",
        _table(*_split(contention_rows(CONTENTION))),
        differences_page(),
    ]
    return "\n".join(parts)


def _split(rows: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    headings, *rest = rows
    return headings, rest


def _map(cells: list[Cell]) -> str:
    by_place = {(one.algorithm, one.scenario): one for one in cells}
    rows = (
        (name, *(_cell(by_place[name, scenario]) for scenario in Scenario))
        for name in dict.fromkeys(c.algorithm for c in cells)
    )
    return _table(("", *(scenario.value for scenario in Scenario)), rows)


def _cell(cell: Cell) -> str:
    return f"{cell.level} ({cell.found[cell.level]})"


def _is_stated(cell: Cell) -> bool:
    return (cell.algorithm, cell.scenario) in STATED


def _stated(cell: Cell) -> tuple[str, ...]:
    stated = STATED[cell.algorithm, cell.scenario]
    return (cell.algorithm, cell.scenario.value, str(stated), str(cell.level))


def _found(found: Mapping[Level, int]) -> str:
    return ", ".join(f"{level} {count}" for level, count in sorted(found.items()))


def _table(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(map(str, cells)) + " |"

    headings = list(headings)
    return "\n".join([line(headings), "|" + "---|" * len(headings), *map(line, rows)]) + "\n"
