"""A verdict in words."""

from __future__ import annotations

from rollview.consistency.bags import shown
from rollview.consistency.history import History
from rollview.consistency.judge import judge
from rollview.consistency.record import read_history
from rollview.consistency.states import Lattice
from rollview.consistency.verdict import Verdict
from rollview.results import HistoryJudged, JudgedVersion


def judged(name: str, history: History, verdict: Verdict) -> HistoryJudged:
    states, wrong = Lattice(history), verdict.counterexample
    versions = tuple(
        JudgedVersion(place, shown(version.rows), None if at is None else states.named(at))
        for place, (version, at) in enumerate(zip(history.versions, verdict.mapping, strict=True))
    )
    facts = (name, str(verdict.level), verdict.so_far, verdict.undecided, versions)
    if wrong is None:
        return HistoryJudged(*facts)
    missing = shown(wrong.missing) if wrong.missing else None
    surplus = shown(wrong.surplus) if wrong.surplus else None
    near = f"; nearest: {states.named(wrong.nearest)}" if wrong.nearest is not None else ""
    return HistoryJudged(*facts, str(wrong.breaks), wrong.reason + near, missing, surplus)


def check_text(name: str, text: str) -> HistoryJudged:
    """The verdict on a history that somebody recorded."""
    history = read_history(text)
    return judged(name, history, judge(history))
