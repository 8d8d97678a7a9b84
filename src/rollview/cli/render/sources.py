"""How sources read as text."""

from __future__ import annotations

from typing import Any

from rollview import results
from rollview.cli import answers
from rollview.cli.render.dispatch import renders
from rollview.cli.render.words import counted, duration_of, rows_of, size_of, time_of, values
from rollview.cli.text import TextOutput


@renders(results.SourceAdded)
def _(answer: results.SourceAdded, to: TextOutput) -> None:
    if not answer.tables:
        to.say(f"Source '{answer.name}' has its new options.")
        return
    to.say(f"Source '{answer.name}' is captured from position {answer.position}, csn {answer.csn}.")
    to.table(("table", "rows"), values(answer.tables, "name", "rows"), ("rows",))
    for table in answer.tables:
        if table.reading is not None:
            to.note(f"table '{table.name}': {_reading(table.reading)}")


def _reading(reading: results.TableReading) -> str:
    if reading.reason is not None:
        return f"copied, because {reading.reason}"
    kept = f"; {size_of(reading.kept)} of it are at the source no more" if reading.kept else ""
    return f"read in place, {size_of(reading.bytes)} not copied{kept}"


@renders(results.SourceChecked)
def _(answer: results.SourceChecked, to: TextOutput) -> None:
    for finding in answer.findings:
        to.say(f"{'✗' if finding.blocks else '!'} {finding.what}")
        if finding.repair:
            to.say(f"    {finding.repair}")
    to.say(f"Source '{answer.name}' {'can be captured' if answer.ready else 'cannot be captured yet'}.")


@renders(results.Captured)
def _(answer: results.Captured, to: TextOutput) -> None:
    if not answer.sources:
        to.say("No sources yet.")
        return
    rows = [(s.name, s.units, s.rows, s.position or "–", s.problem or "") for s in answer.sources]
    to.table(("source", "commits", "rows", "position", "problem"), rows, ("commits", "rows"))
    for source in answer.sources:
        for note in source.notes:
            to.note(f"{source.name}: {note}")


@renders(results.SourceCaptured)
def _(answer: results.SourceCaptured, to: TextOutput) -> None:
    to.say(f"Source '{answer.name}': {rows_of(answer.rows)} changed, at position {answer.position}.")


@renders(results.SourceQuarantine)
def _(answer: results.SourceQuarantine, to: TextOutput) -> None:
    to.say(f"{rows_of(answer.missing)} of source '{answer.name}' in quarantine.")
    if answer.rows:
        rows = [(r.table, r.position, f"{r.count:+d}", r.row, r.column, r.reason) for r in answer.rows]
        to.table(("table", "position", "count", "row", "column", "reason"), rows, ("count",))


def _asked(told: results.AskedSoFar) -> str:
    problem = f"; could not be asked: {told.problem}" if told.problem else ""
    given = f"{rows_of(told.rows)}, {size_of(told.bytes)}"
    return f"{told.asks} times for {told.keys} keys: {given}; last {time_of(told.last)}{problem}"


@renders(results.SourceStatus)
def _(answer: results.SourceStatus, to: TextOutput) -> None:
    facts = {"kind": answer.kind, "address": answer.address, "state": answer.state, "position": answer.position or "–"}
    facts |= {"last read": time_of(answer.read) if answer.read else "never", "problem": answer.problem or "none"}
    if answer.kept_bytes is not None:
        facts["log"] = f"{size_of(answer.kept_bytes)} kept, {size_of(answer.behind_bytes or 0)} not read, {answer.slot}"
    facts |= {f"table {name}": _reading(reading) for name, reading in answer.readings.items()}
    facts |= {f"table {name}": kept for name, kept in answer.kept.items()}
    facts |= {"asked": _asked(answer.asked)} if answer.asked else {}
    facts |= {"oldest open": _open(answer)} if answer.oldest_open else {}
    facts |= {"alarm": answer.alarm} if answer.alarm else {}
    facts |= {"tried again": time_of(answer.retry_at)} if answer.retry_at else {}
    to.facts(facts)
    to.say("")
    rows = [(one.table, one.csn, one.position, ", ".join(one.columns), one.reason) for one in answer.layouts]
    to.table(("table", "from csn", "after position", "columns", "because"), rows, ("from csn",))


@renders(answers.SourceList)
def _(answer: answers.SourceList, to: TextOutput) -> None:
    if not answer.sources:
        to.say("No sources yet.")
        return
    rows = [_source_line(source) for source in answer.sources]
    to.table(("source", "kind", "state", "position", "last read", "tables", "problem"), rows)


def _source_line(source: results.SourceStatus) -> tuple[Any, ...]:
    read = time_of(source.read) if source.read else "never"
    tables, told = ", ".join(source.tables), source.problem or source.alarm or ""
    told = told or (_open(source) if source.oldest_open else "")
    return (source.name, source.kind, source.state, source.position or "–", read, tables, told)


def _open(source: results.SourceStatus) -> str:
    return f"{source.oldest_open}, open for {duration_of(source.open_seconds or 0)}"


@renders(answers.Positions)
def _(answer: answers.Positions, to: TextOutput) -> None:
    if not answer.sources:
        to.say("No sources yet.")
        return
    to.say(f"csn {answer.csn}")
    rows = [(s.source, s.position or "–", time_of(s.time) if s.time else "–", s.csn or "–") for s in answer.sources]
    to.table(("source", "position", "committed there", "csn"), rows, ("csn",))


@renders(answers.HeldList)
def _(answer: answers.HeldList, to: TextOutput) -> None:
    render_held(answer.held, to)
    if not answer.held:
        to.say("No transaction waits for parts.")


def render_held(held: tuple[results.HeldTransaction, ...], to: TextOutput) -> None:
    if not held:
        return
    rows = [
        (one.global_id, one.source, _missing(one.missing), duration_of(one.seconds), one.decision or "–")
        for one in held
    ]
    to.table(("global transaction", "keeps waiting", "for", "since", "decision"), rows)
    for one in held:
        if one.overdue:
            to.say(f"'{one.global_id}' waits for longer than it may: let it with 'rollview source global wait', or")
            to.say("take what has come with 'rollview source global release'.")


def _held_line(one: results.HeldTransaction) -> tuple[Any, ...]:
    return one.global_id, one.source, _missing(one.missing), duration_of(one.seconds), one.decision or "–"


def _missing(missing: tuple[str, ...]) -> str:
    return ", ".join(f"{counted(int(name), 'part')}" if name.isdecimal() else name for name in missing)


@renders(results.Decided)
def _(answer: results.Decided, to: TextOutput) -> None:
    what = "waits on" if answer.choice == "wait" else "goes without the missing parts from the next capture on"
    to.say(f"Global transaction '{answer.global_id}' {what}.")
