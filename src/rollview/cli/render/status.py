"""How the status reads as text."""

from __future__ import annotations

from typing import Any

from rollview import results
from rollview.cli import answers
from rollview.cli.render.dispatch import render, renders
from rollview.cli.render.sources import render_held
from rollview.cli.render.words import counted, duration_of, places_in_words, time_of
from rollview.cli.text import TextOutput
from rollview.core.states import ViewState


@renders(results.Status)
def _(answer: results.Status, to: TextOutput) -> None:
    to.say(f"csn {answer.csn} at {time_of(answer.time)}; {counted(len(answer.tables), 'table')}.")
    if answer.catalog is not None:
        rows = answer.catalog
        to.say(f"Catalog rows: ledger {rows.ledger}, changes {rows.changes}, steps {rows.steps}.")
    to.say("")
    if answer.sources:
        render(answers.SourceList(answer.sources), to)
        to.say("")
    if answer.held:
        render_held(answer.held, to)
        to.say("")
    if not answer.views:
        to.say("No views yet.")
        return
    headings = ("view", "csn", "high-water mark", "valid", "stale by", "policy", "last refresh", "rows", "problem")
    to.table(headings, [_view_status(view) for view in answer.views], ("csn", "high-water mark", "rows"))
    for view in answer.views:
        if view.places:
            how = "table by table" if view.consistency is None else "weakly consistent, table by table"
            to.say(f"{view.name}, {how}: {places_in_words(view.places)}.")


def _view_status(view: results.ViewStatus) -> tuple[Any, ...]:
    stale = f"{counted(view.staleness_commits, 'commit')}, {duration_of(view.staleness_seconds)}"
    last = f"{time_of(view.last_refresh)} {view.last_mode or ''}".strip() if view.last_refresh else "never"
    shown = f"{stale}{_catches_up(view)}" if view.staleness_commits else "fresh"
    problem = view.problem or ""
    told = problem if view.state in (ViewState.OK, ViewState.STOPPED) else f"{view.state}: {problem}"
    valid = "" if view.valid is None else f"{view.valid.first}–{view.valid.through}"
    return (view.name, view.csn, view.high_water_mark, valid, shown, view.policy, last, view.rows, told)


def _catches_up(view: results.ViewStatus) -> str:
    """Only where the view's last steps tell how fast it is."""
    came, done = view.commits_per_second_in, view.commits_per_second_done
    if came is None or done is None:
        return ""
    pace = f"{came:.0f}/s in, {done:.0f}/s done"
    ends = view.catches_up_in_seconds
    return f"; {pace}: " + ("falls further behind" if ends is None else f"fresh in {duration_of(ends)}")
