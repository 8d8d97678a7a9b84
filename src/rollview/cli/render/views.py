"""How what is done with views reads as text."""

from __future__ import annotations

from typing import Any

from rollview import results
from rollview.cli import answers
from rollview.cli.render.dispatch import render, renders
from rollview.cli.render.words import places_in_words, rows_of, size_of, time_of, values
from rollview.cli.text import TextOutput
from rollview.core.states import ViewMode


@renders(answers.ViewsCreated)
def _(answer: answers.ViewsCreated, to: TextOutput) -> None:
    for view in answer.views:
        verb = "Replaced" if view.replaced else "Created"
        to.say(f"{verb} view '{view.name}': {rows_of(view.rows)} at csn {view.csn}, maintained {_how(view.mode)}.")
        for note in view.notes:
            to.note(note)


@renders(results.Refreshed)
def _(answer: results.Refreshed, to: TextOutput) -> None:
    if not answer.views:
        to.say(f"Nothing to refresh at csn {answer.csn}.")
        return
    headings = ("view", "interval", "how", "delta rows", "rows", "jobs", "read", "written", "seconds")
    right = ("delta rows", "rows", "jobs", "read", "written", "seconds")
    to.table(headings, [_refreshed(view) for view in answer.views], right)
    for view in answer.views:
        if view.mode is ViewMode.WHOLE:
            to.note(f"{view.name}: {view.reason}")


def _refreshed(view: results.ViewRefreshed) -> tuple[Any, ...]:
    sizes = (size_of(view.bytes_read), size_of(view.bytes_written))
    return (
        view.name,
        str(view.interval),
        view.mode,
        view.delta_rows,
        view.rows,
        view.actions,
        *sizes,
        f"{view.seconds:.2f}",
    )


@renders(results.Profile)
def _(answer: results.Profile, to: TextOutput) -> None:
    for view in answer.views:
        total = sum(view.phases.values()) or 1.0
        expected = "" if view.expected_seconds is None else f", {view.expected_seconds:.2f} s expected"
        took = f"{view.actions} Spark actions: {view.seconds:.2f} s{expected}"
        to.say(f"{view.name}: {view.delta_rows} delta rows over {view.interval}, {took}")
        spent = sorted(view.phases.items(), key=lambda item: -item[1])
        shares = [(name, f"{seconds * 1000:.0f}", f"{seconds / total:.0%}") for name, seconds in spent]
        to.table(("phase", "milliseconds", "share"), shares, ("milliseconds", "share"))
        files = [
            ("read", view.files_read, size_of(view.bytes_read)),
            ("written", view.files_written, size_of(view.bytes_written)),
        ]
        to.table(("files", "number", "size"), files, ("number", "size"))
        terms = [(term.relation, "computed" if term.kept else "left out", term.reason) for term in view.terms]
        if terms:
            to.table(("term of", "", "why"), terms)


@renders(results.Rolled)
def _(answer: results.Rolled, to: TextOutput) -> None:
    to.table(("view", "from csn", "to csn", "rows"), values(answer.views, "name", "before", "after", "rows"), _ROLLED)


_ROLLED = ("from csn", "to csn", "rows")


@renders(results.Explanation)
def _(answer: results.Explanation, to: TextOutput) -> None:
    to.say(f"View '{answer.name}' is maintained {_how(answer.mode)}.\n")
    to.table(("operator", "how", "why"), values(answer.operators, "operator", "how", "reason"))
    if answer.terms:
        rows = [(term.relation, "yes" if term.kept else "no", term.reason) for term in answer.terms]
        to.say("")
        to.table(("changes of", "term needed", "why"), rows)
    if answer.asks:
        to.say(f"\nRows are asked for by {answer.algorithm}: {answer.promises}; needs {', '.join(answer.needs)}.\n")
        asks = [(a.table, a.source, ", ".join(a.by), "no" if a.now else "yes, and is read") for a in answer.asks]
        to.table(("table", "asked at", "by", "copied"), asks)
        for text in dict.fromkeys(ask.sql for ask in answer.asks):
            to.say(f"\n{text}")
    if answer.places:
        to.say("\nChanges of its tables are propagated one by one; the high-water mark is the lowest place.\n")
        if answer.promises == "weak":
            to.say("It is published weakly consistent: readers get each table at its place.\n")
        to.table(("table", "place (csn)", "has its turn"), values(answer.places, "table", "csn", "cadence"))
    if answer.ways:
        to.say("")
        to.table(("to have it at", "csn", "expected", "last expected", "last took"), [_way(one) for one in answer.ways])
    to.say(f"\n{answer.sql}")


def _way(one: results.ExpectedWay) -> tuple[Any, ...]:
    seconds = (one.expected_seconds, one.last_expected_seconds, one.last_seconds)
    return one.way, one.csn, *("" if told is None else f"{told:.2f} s" for told in seconds)


@renders(results.ReplacementPlan)
def _(answer: results.ReplacementPlan, to: TextOutput) -> None:
    to.say(f"View '{answer.name}' would be {_REPLACED[answer.how]}: {answer.why}.")
    to.say(f"columns  {', '.join(answer.columns)}")
    if answer.reads:
        to.table(("reads", "rows"), list(answer.reads.items()), ("rows",))
    else:
        to.say("No rows are read, and no file is written.")


_REPLACED = {
    "unchanged": "as it is",
    "renamed": "as it is under other names",
    "stored rows": "computed from what it stores",
    "in part": "computed from what it stores and a part of what it reads",
    "recomputed": "recomputed, and the difference stored",
}


@renders(answers.Verified)
def _(answer: answers.Verified, to: TextOutput) -> None:
    for view in answer.views:
        render(view, to)


@renders(results.Verification)
def _(answer: results.Verification, to: TextOutput) -> None:
    at = f"with {places_in_words(answer.places)}" if answer.places else f"at csn {answer.csn}"
    if answer.equal:
        to.say(f"View '{answer.name}' {at}: equal to recomputation, {rows_of(answer.rows)}.")
        return
    counts = f"{rows_of(answer.missing_count)} missing, {rows_of(answer.surplus_count)} too many"
    to.say(f"View '{answer.name}' {at} differs from recomputation: {counts}.", style="red")
    for title, sample in (("missing", answer.missing), ("too many", answer.surplus)):
        if sample:
            to.say(f"\n{title}:")
            to.table(tuple(sample[0]), [tuple(row.values()) for row in sample])


@renders(results.ViewSet)
def _(answer: results.ViewSet, to: TextOutput) -> None:
    to.say(f"View '{answer.name}' is {answer.policy}.")
    to.table(("property", "value"), list(answer.properties.items()))


@renders(results.ViewLog)
def _(answer: results.ViewLog, to: TextOutput) -> None:
    for one in answer.definitions:
        waiting = ", no rows of it yet" if one.pending else ""
        to.say(f"from csn {one.csn}: {one.why}, {time_of(one.recorded)}{waiting}")
        to.say(f"{one.query}\n")


def _how(mode: ViewMode) -> str:
    return "by recomputing it whole" if mode is ViewMode.WHOLE else "incrementally"


@renders(results.ViewChanges)
def _(answer: results.ViewChanges, to: TextOutput) -> None:
    if answer.csn is None:
        to.say(f"View '{answer.name}' is not stopped: there is nothing to decide.")
        return
    lost = f": it names what is gone, {', '.join(answer.lost)}" if answer.lost else ""
    to.say(f"View '{answer.name}' waits at csn {answer.csn - 1} for a decision about csn {answer.csn}{lost}.")
    for one in answer.proposals:
        read = ", ".join(f"{name} ({rows_of(rows)})" for name, rows in one.reads.items()) or "nothing"
        to.say(f"\n{one.number}. {', '.join(one.steps)}")
        to.say(f"   rows: {one.extent}; columns: {', '.join(one.columns)}")
        to.say(f"   cost: {one.how}, because {one.why}; reads {read}")
        to.say("\n".join(f"   {line}" for line in one.query.strip().splitlines()))
    if answer.refused:
        to.say("\nNot possible:")
        for reason in answer.refused:
            to.say(f"   {reason}")
    if answer.proposals:
        to.note(f"Take one: rollview view decide {answer.name} NUMBER")
    else:
        to.note(
            "Declare substitutes in rollview.yaml, set rollview.dispensable or rollview.extent, or replace the view."
        )


@renders(results.ViewDecided)
def _(answer: results.ViewDecided, to: TextOutput) -> None:
    to.say(f"View '{answer.name}' is defined anew from csn {answer.csn} on: {', '.join(answer.steps)}.")
    if answer.above:
        to.say(f"With it go on: {', '.join(answer.above)}.")
    to.note(f"Bring it up to date: rollview refresh --select {answer.name}")
