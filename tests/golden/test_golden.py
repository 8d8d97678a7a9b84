"""Each view text gives exactly the plan in the file, and the plan's SQL gives the definition's rows on DuckDB.

``ROLLVIEW_UPDATE_GOLDEN=1`` rewrites the files; what they say is still executed.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from tests.golden.cases import Case, read, write
from tests.property.duck import Duck, View
from tests.property.histories import random_history
from tests.property.schemas import BAGS, HOSTILE, KEYED
from tests.sizes import times

from rollview.algebra.resolve import Known
from rollview.algebra.text import render
from rollview.algebra.view import Mode, ViewPlan
from rollview.errors import RollviewError

FOLDER = Path(__file__).parent
UPDATE = os.environ.get("ROLLVIEW_UPDATE_GOLDEN") == "1"
FILES = sorted(FOLDER.glob("*.sql"))
TABLES = (*BAGS, *KEYED, *HOSTILE)
CASES = [pytest.param(case, id=f"{case.file}: {case.title}") for path in FILES for case in read(path)]
LENGTH = 8
HISTORIES = times(2, full=3)


@cache
def catalog() -> Duck:
    return Duck(TABLES)


@cache
def engine(tables: tuple[Known, ...]) -> Duck:
    return Duck(tables)


def compiled(case: Case) -> ViewPlan:
    return catalog().compile("v", case.text, case.columns)


def described(case: Case) -> str:
    try:
        plan = compiled(case)
    except RollviewError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        return f"refused: {error.code}\n{error.message}{hint}"
    lines = [f"mode: {plan.mode}", f"columns: {', '.join(plan.outline.resolved.outputs)}"]
    lines += [f"operator: {note.operator} | {note.how} | {note.reason}" for note in plan.operators]
    if plan.mode is Mode.WHOLE:
        return "\n".join(lines)
    made = plan.propagation(case.motion)
    lines += [f"term: {t.relation} | {'kept' if t.kept else 'left out'} | {t.reason}" for t in made.terms]
    lines += [f"reads: {', '.join(sorted(f'{name} {part}' for name, part in made.inputs))}"]
    if plan.summary is not None:
        lines += [f"groups: {', '.join(f'{c.name} {c.type}' for c in plan.summary.schema)}"]
    if case.wants_sql:
        lines.append(render(made.query, pretty=True))
    return "\n".join(lines)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_files_say_what_rollview_makes_of_each_view(path: Path) -> None:
    cases = read(path)
    found = [replace(case, expected=described(case)) for case in cases]
    if UPDATE:
        write(path, found)
        return
    for case, now in zip(cases, found, strict=True):
        assert now.expected == case.expected, f"{case.file}: {case.title}"
    assert len({case.title for case in cases}) == len(cases), "titles must differ"


@pytest.mark.parametrize("case", CASES)
def test_the_propagation_gives_the_rows_of_the_definition(case: Case) -> None:
    try:
        plan = compiled(case)
    except RollviewError:
        return
    if plan.mode is not Mode.WHOLE:
        seeds = range(30 if case.motion else HISTORIES)
        found = 0
        for seed in seeds:
            found += check(case, plan, seed)
            if case.motion and found == HISTORIES:
                break
        assert found, "no interval moves as the case says"


def check(case: Case, plan: ViewPlan, seed: int) -> bool:
    """Compare at every csn of some intervals; False if in none of them the tables move as the case says."""
    random = Random(f"{case.title} {seed}")
    duck = committed(random, plan)
    found = False
    for after in range(1, LENGTH - 2, 3):
        through = after + 1 + (after + seed) % 3
        moved = duck.motion(after, through)
        if all(replace(moved[name], one_csn=False) == motion for name, motion in case.motion.items()):
            compare(View(duck, f"v{after}", plan, after), through, case)
            found = True
    return found


def committed(random: Random, plan: ViewPlan) -> Duck:
    names = {known.name for known in plan.reads}
    groups = [group for group in (BAGS, KEYED, HOSTILE) if names & {table.name for table in group}]
    duck = engine(tuple(table for group in groups for table in group))
    duck.reset()
    for group in groups:
        for csn, transaction in enumerate(random_history(random, group, LENGTH), 1):
            duck.commit(csn, transaction)
    return duck


def compare(view: View, through: int, case: Case) -> None:
    after = view.high_water_mark
    view.propagate(through, case.motion)
    for csn in range(after, through + 1):
        expected, found = view.recompute(csn), view.at(csn)
        assert found == expected, f"{case.title}: csn {csn}\nmissing {expected - found}\nsurplus {found - expected}"
