"""How SQL statements, queries and the ledger read as text."""

from __future__ import annotations

from typing import Any

from rollview import results
from rollview.cli import answers
from rollview.cli.render.dispatch import render, renders
from rollview.cli.render.words import places_in_words, time_of
from rollview.cli.statements import headline
from rollview.cli.text import TextOutput


@renders(answers.RowSet)
def _(answer: answers.RowSet, to: TextOutput) -> None:
    to.rows(answer.columns, answer.rows)
    if answer.places:
        to.note(f"Weakly consistent: {places_in_words(answer.places)}.")
    if answer.more:
        to.note("There are more rows. Show them with --limit N, or all with --limit 0.")


@renders(answers.LayoutDeltas)
def _(answer: answers.LayoutDeltas, to: TextOutput) -> None:
    for layout in answer.layouts:
        to.say(f"({layout.after}, {layout.through}]")
        render(layout.changes, to)


@renders(answers.StatementAnswers)
def _(answer: answers.StatementAnswers, to: TextOutput) -> None:
    for statement in answer.statements:
        if statement.rows is not None:
            render(statement.rows, to)
        else:
            to.say(_effect(statement))


def _effect(statement: answers.StatementAnswer) -> str:
    subject = " ".join(filter(None, (statement.kind, statement.table)))
    # A key that is both deleted and inserted is told once, as updated.
    both = statement.updated or 0
    counts = {"inserted": statement.inserted - both, "deleted": statement.deleted - both, "updated": both}
    changed = ", ".join(f"{count} {verb}" for verb, count in counts.items() if count)
    commit = f"csn {statement.csn}" if statement.csn is not None else "nothing committed"
    return f"{subject}: {', '.join(filter(None, (changed, commit)))}"


@renders(results.Answer)
def _(answer: results.Answer, to: TextOutput) -> None:
    to.say(headline(answer))
    to.table(("relation", "used", "csn", "way", "expected", "why"), [_considered(one) for one in answer.considered])


def _considered(one: results.Considered) -> tuple[Any, ...]:
    expected = "" if one.expected_seconds is None else f"{one.expected_seconds:.2f} s"
    csn = "" if one.csn is None else one.csn
    return one.relation, "yes" if one.used else "no", csn, one.way or "", expected, one.why


@renders(answers.Ledger)
def _(answer: answers.Ledger, to: TextOutput) -> None:
    rows = [(e.csn, time_of(e.ledger_time), _sources(e), e.transaction, _changes(e)) for e in answer.entries]
    to.table(("csn", "committed", "source", "transaction", "changes"), rows, ("csn",))


def _sources(entry: Any) -> str:
    return ", ".join(dict.fromkeys([entry.source, *(part.source for part in entry.parts)]))


def _changes(entry: Any) -> str:
    changes = (f"{change.relation} +{change.inserted} −{change.deleted}" for change in entry.changes)
    return ", ".join((*changes, *entry.schema))
