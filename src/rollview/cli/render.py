"""One function per kind of answer: how it reads as text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import singledispatch
from pathlib import Path
from typing import Any

from rollview import results
from rollview.cli import answers
from rollview.cli.statements import headline
from rollview.cli.text import TextOutput
from rollview.core.states import ViewMode, ViewState
from rollview.project import ProjectStarted
from rollview.results import Result


@singledispatch
def render(answer: Result, to: TextOutput) -> None:
    for name, value in answer.to_json().items():
        to.say(f"{name}: {value}")


def _renders(kind: type[Any]) -> Callable[[Callable[[Any, TextOutput], None]], Callable[[Any, TextOutput], None]]:
    return render.register(kind)


@_renders(ProjectStarted)
def _(answer: ProjectStarted, to: TextOutput) -> None:
    folder, file, warehouse = (_near(path) for path in (answer.folder, answer.file, answer.warehouse))
    to.say(f"Project in {folder}: settings in {file}, data in {warehouse}.")


@_renders(answers.RowSet)
def _(answer: answers.RowSet, to: TextOutput) -> None:
    to.rows(answer.columns, answer.rows)
    if answer.more:
        to.note("There are more rows. Show them with --limit N, or all with --limit 0.")


@_renders(answers.StatementAnswers)
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


@_renders(results.Answer)
def _(answer: results.Answer, to: TextOutput) -> None:
    to.say(headline(answer))
    to.table(("relation", "used", "csn", "way", "expected", "why"), [_considered(one) for one in answer.considered])


def _considered(one: results.Considered) -> tuple[Any, ...]:
    expected = "" if one.expected_seconds is None else f"{one.expected_seconds:.2f} s"
    return one.relation, "yes" if one.used else "no", one.csn or "", one.way or "", expected, one.why


@_renders(answers.ViewsCreated)
def _(answer: answers.ViewsCreated, to: TextOutput) -> None:
    for view in answer.views:
        verb = "Replaced" if view.replaced else "Created"
        to.say(f"{verb} view '{view.name}': {_rows(view.rows)} at csn {view.csn}, maintained {_how(view.mode)}.")
        for note in view.notes:
            to.note(note)


@_renders(answers.Dropped)
def _(answer: answers.Dropped, to: TextOutput) -> None:
    to.say(f"Dropped {answer.kind} '{answer.name}'.")


@_renders(results.Refreshed)
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
    sizes = (_size(view.bytes_read), _size(view.bytes_written))
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


@_renders(results.Profile)
def _(answer: results.Profile, to: TextOutput) -> None:
    for view in answer.views:
        total = sum(view.phases.values()) or 1.0
        to.say(f"{view.name}: {view.delta_rows} delta rows over {view.interval}, {view.actions} Spark actions")
        spent = sorted(view.phases.items(), key=lambda item: -item[1])
        shares = [(name, f"{seconds * 1000:.0f}", f"{seconds / total:.0%}") for name, seconds in spent]
        to.table(("phase", "milliseconds", "share"), shares, ("milliseconds", "share"))
        files = [
            ("read", view.files_read, _size(view.bytes_read)),
            ("written", view.files_written, _size(view.bytes_written)),
        ]
        to.table(("files", "number", "size"), files, ("number", "size"))
        terms = [(term.relation, "computed" if term.kept else "left out", term.reason) for term in view.terms]
        if terms:
            to.table(("term of", "", "why"), terms)


@_renders(results.Rolled)
def _(answer: results.Rolled, to: TextOutput) -> None:
    to.table(("view", "from csn", "to csn", "rows"), _values(answer.views, "name", "before", "after", "rows"), _ROLLED)


_ROLLED = ("from csn", "to csn", "rows")


@_renders(results.CatalogRecovery)
def _(answer: results.CatalogRecovery, to: TextOutput) -> None:
    to.say(f"Catalog: warehouse {answer.catalog_id}, {_count(answer.catalog_steps, 'step')}, csn {answer.csn}.")
    to.say(f"Data:    warehouse {answer.data_id or '(no id)'}, {_count(answer.data_steps, 'step')}.")
    if answer.accepted:
        to.say(f"The warehouse goes on from csn {answer.csn} at {_time(answer.time)}, under a new id.")
    elif answer.fits:
        to.say("They belong together; there is nothing to recover.")
    else:
        to.say("They do not fit, so every other command refuses them.", style="red")
    if answer.accepted_time is not None:
        to.say(f"The clock is taken to be right: {_time(answer.accepted_time)}.")
    if answer.unreadable:
        to.say(f"Files are gone that the catalog names, so these cannot be read: {', '.join(answer.unreadable)}.")
    if answer.unknown_folders and (answer.accepted or not answer.fits):
        to.say(f"The catalog does not know {_count(len(answer.unknown_folders), 'folder')} in the data; they stay:")
        for folder in answer.unknown_folders:
            to.say(f"  {folder}")


@_renders(results.Maintained)
def _(answer: results.Maintained, to: TextOutput) -> None:
    if not answer.actions:
        to.say(f"Nothing to save at csn {answer.csn}.")
        return
    rows = [
        (
            a.relation or ("(catalog)" if a.action == "forget" else "(gone)"),
            a.part or "",
            a.action,
            str(a.interval or ""),
            a.files,
            _size(a.bytes),
            a.reason,
        )
        for a in answer.actions
    ]
    to.table(("relation", "part", "action", "interval", "files", "saves", "why"), rows, ("files", "saves"))
    if answer.explained:
        to.note("Nothing was changed.")


@_renders(results.Explanation)
def _(answer: results.Explanation, to: TextOutput) -> None:
    to.say(f"View '{answer.name}' is maintained {_how(answer.mode)}.\n")
    to.table(("operator", "how", "why"), _values(answer.operators, "operator", "how", "reason"))
    if answer.terms:
        rows = [(term.relation, "yes" if term.kept else "no", term.reason) for term in answer.terms]
        to.say("")
        to.table(("changes of", "term needed", "why"), rows)
    if answer.asks:
        needs = ", ".join(answer.needs)
        to.say(f"\nRows are asked for by {answer.algorithm}: {answer.promises}; needs {needs}.\n")
        asks = [(a.table, a.source, ", ".join(a.by), "no" if a.now else "yes, and is read") for a in answer.asks]
        to.table(("table", "asked at", "by", "copied"), asks)
        for text in dict.fromkeys(ask.sql for ask in answer.asks):
            to.say(f"\n{text}")
    to.say(f"\n{answer.sql}")


@_renders(answers.Verified)
def _(answer: answers.Verified, to: TextOutput) -> None:
    for view in answer.views:
        render(view, to)


@_renders(results.Verification)
def _(answer: results.Verification, to: TextOutput) -> None:
    if answer.equal:
        to.say(f"View '{answer.name}' at csn {answer.csn}: equal to recomputation, {_rows(answer.rows)}.")
        return
    counts = f"{_rows(answer.missing_count)} missing, {_rows(answer.surplus_count)} too many"
    to.say(f"View '{answer.name}' at csn {answer.csn} differs from recomputation: {counts}.", style="red")
    for title, sample in (("missing", answer.missing), ("too many", answer.surplus)):
        if sample:
            to.say(f"\n{title}:")
            to.table(tuple(sample[0]), [tuple(row.values()) for row in sample])


@_renders(results.Status)
def _(answer: results.Status, to: TextOutput) -> None:
    to.say(f"csn {answer.csn} at {_time(answer.time)}; {_count(len(answer.tables), 'table')}.")
    if answer.catalog is not None:
        rows = answer.catalog
        to.say(f"Catalog rows: ledger {rows.ledger}, changes {rows.changes}, steps {rows.steps}.")
    to.say("")
    if answer.sources:
        render(answers.SourceList(answer.sources), to)
        to.say("")
    if answer.held:
        _held(answer.held, to)
        to.say("")
    if not answer.views:
        to.say("No views yet.")
        return
    headings = ("view", "csn", "high-water mark", "valid", "stale by", "policy", "last refresh", "rows", "problem")
    to.table(headings, [_view_status(view) for view in answer.views], ("csn", "high-water mark", "rows"))


def _view_status(view: results.ViewStatus) -> tuple[Any, ...]:
    stale = f"{_count(view.staleness_commits, 'commit')}, {_duration(view.staleness_seconds)}"
    last = f"{_time(view.last_refresh)} {view.last_mode or ''}".strip() if view.last_refresh else "never"
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
    return f"; {pace}: " + ("falls further behind" if ends is None else f"fresh in {_duration(ends)}")


@_renders(results.ViewSet)
def _(answer: results.ViewSet, to: TextOutput) -> None:
    to.say(f"View '{answer.name}' is {answer.policy}.")
    to.table(("property", "value"), list(answer.properties.items()))


@_renders(results.SourceAdded)
def _(answer: results.SourceAdded, to: TextOutput) -> None:
    if not answer.tables:
        to.say(f"Source '{answer.name}' has its new options.")
        return
    to.say(f"Source '{answer.name}' is captured from position {answer.position}, csn {answer.csn}.")
    to.table(("table", "rows"), _values(answer.tables, "name", "rows"), ("rows",))
    for table in answer.tables:
        if table.reading is not None:
            to.note(f"table '{table.name}': {_reading(table.reading)}")


def _reading(reading: results.TableReading) -> str:
    if reading.reason is not None:
        return f"copied, because {reading.reason}"
    kept = f"; {_size(reading.kept)} of it are at the source no more" if reading.kept else ""
    return f"read in place, {_size(reading.bytes)} not copied{kept}"


@_renders(results.SourceChecked)
def _(answer: results.SourceChecked, to: TextOutput) -> None:
    for finding in answer.findings:
        to.say(f"{'✗' if finding.blocks else '!'} {finding.what}")
        if finding.mend:
            to.say(f"    {finding.mend}")
    to.say(f"Source '{answer.name}' {'can be captured' if answer.ready else 'cannot be captured yet'}.")


@_renders(results.Captured)
def _(answer: results.Captured, to: TextOutput) -> None:
    if not answer.sources:
        to.say("No sources yet.")
        return
    rows = [(s.name, s.units, s.rows, s.position or "–", s.problem or "") for s in answer.sources]
    to.table(("source", "commits", "rows", "position", "problem"), rows, ("commits", "rows"))
    for source in answer.sources:
        for note in source.notes:
            to.note(f"{source.name}: {note}")


@_renders(results.SourceCaptured)
def _(answer: results.SourceCaptured, to: TextOutput) -> None:
    to.say(f"Source '{answer.name}': {_rows(answer.rows)} changed, at position {answer.position}.")


@_renders(results.SourceQuarantine)
def _(answer: results.SourceQuarantine, to: TextOutput) -> None:
    to.say(f"{_rows(answer.missing)} of source '{answer.name}' in quarantine.")
    if answer.rows:
        rows = [(r.table, r.position, f"{r.count:+d}", r.row, r.column, r.reason) for r in answer.rows]
        to.table(("table", "position", "count", "row", "column", "reason"), rows, ("count",))


@_renders(results.SourceStatus)
def _(answer: results.SourceStatus, to: TextOutput) -> None:
    facts = {"kind": answer.kind, "address": answer.address, "state": answer.state, "position": answer.position or "–"}
    facts |= {"last read": _time(answer.read) if answer.read else "never", "problem": answer.problem or "none"}
    if answer.kept_bytes is not None:
        facts["log"] = f"{_size(answer.kept_bytes)} kept, {_size(answer.behind_bytes or 0)} not read, {answer.slot}"
    facts |= {f"table {name}": _reading(reading) for name, reading in answer.readings.items()}
    facts |= {f"table {name}": kept for name, kept in answer.kept.items()}
    facts |= {"oldest open": _open(answer)} if answer.oldest_open else {}
    facts |= {"alarm": answer.alarm} if answer.alarm else {}
    facts |= {"tried again": _time(answer.retry_at)} if answer.retry_at else {}
    width = max(map(len, facts))
    for name, value in facts.items():
        to.say(f"{name.ljust(width)}   {value}")
    to.say("")
    rows = [(one.table, one.csn, one.position, ", ".join(one.columns), one.reason) for one in answer.layouts]
    to.table(("table", "from csn", "after position", "columns", "because"), rows, ("from csn",))


@_renders(answers.SourceList)
def _(answer: answers.SourceList, to: TextOutput) -> None:
    if not answer.sources:
        to.say("No sources yet.")
        return
    rows = [_source_line(source) for source in answer.sources]
    to.table(("source", "kind", "state", "position", "last read", "tables", "problem"), rows)


def _source_line(source: results.SourceStatus) -> tuple[Any, ...]:
    read = _time(source.read) if source.read else "never"
    tables, told = ", ".join(source.tables), source.problem or source.alarm or ""
    told = told or (_open(source) if source.oldest_open else "")
    return (source.name, source.kind, source.state, source.position or "–", read, tables, told)


@_renders(results.SubscriberStatus)
def _(answer: results.SubscriberStatus, to: TextOutput) -> None:
    facts = {"subscriber": answer.name, "view": answer.view, "to": answer.to or "who pulls"}
    facts |= {"position": str(answer.position), "behind": f"{answer.behind} csns", "state": answer.state}
    facts |= {"moved": _time(answer.moved) if answer.moved else "never", "problem": answer.problem or "none"}
    width = max(map(len, facts))
    for name, value in facts.items():
        to.say(f"{name.ljust(width)}   {value}")


@_renders(answers.SubscriberList)
def _(answer: answers.SubscriberList, to: TextOutput) -> None:
    if not answer.subscribers:
        to.say("No subscribers yet.")
        return
    rows = [
        (one.name, one.view, one.position, one.behind, one.to or "who pulls", one.state, one.problem or "")
        for one in answer.subscribers
    ]
    to.table(("subscriber", "view", "position", "behind", "to", "state", "problem"), rows, ("position", "behind"))


@_renders(answers.Pulled)
def _(answer: answers.Pulled, to: TextOutput) -> None:
    if answer.rows is None:
        to.note(f"Nothing changed in view '{answer.view}' after csn {answer.after}.")
        return
    render(answer.rows, to)
    what = f"All rows of view '{answer.view}' at" if answer.full else f"Changes of view '{answer.view}' through"
    full = " --full" if answer.full else ""
    ack = f"rollview subscriber ack {answer.subscriber} {answer.through}{full}"
    to.note(f"{what} csn {answer.through}. When they are stored: {ack}")


@_renders(results.Delivered)
def _(answer: results.Delivered, to: TextOutput) -> None:
    if not answer.subscribers:
        to.say("No subscriber has an address.")
        return
    headings = ("subscriber", "position", "batches", "rows", "problem")
    rows = [(one.name, one.position, one.batches, one.rows, one.problem or "") for one in answer.subscribers]
    to.table(headings, rows, ("position", "batches", "rows"))


@_renders(results.Acknowledged)
def _(answer: results.Acknowledged, to: TextOutput) -> None:
    verb = "is now" if answer.moved else "stays"
    to.say(f"Subscriber '{answer.name}' {verb} at csn {answer.position}.")


def _open(source: results.SourceStatus) -> str:
    return f"{source.oldest_open}, open for {_duration(source.open_seconds or 0)}"


@_renders(answers.Positions)
def _(answer: answers.Positions, to: TextOutput) -> None:
    if not answer.sources:
        to.say("No sources yet.")
        return
    to.say(f"csn {answer.csn}")
    rows = [(s.source, s.position or "–", _time(s.time) if s.time else "–", s.csn or "–") for s in answer.sources]
    to.table(("source", "position", "committed there", "csn"), rows, ("csn",))


@_renders(answers.HeldList)
def _(answer: answers.HeldList, to: TextOutput) -> None:
    _held(answer.held, to)
    if not answer.held:
        to.say("No transaction waits for parts.")


def _held(held: tuple[results.HeldTransaction, ...], to: TextOutput) -> None:
    if not held:
        return
    rows = [
        (one.global_id, one.source, _missing(one.missing), _duration(one.seconds), one.decision or "–") for one in held
    ]
    to.table(("global transaction", "keeps waiting", "for", "since", "decision"), rows)
    for one in held:
        if one.overdue:
            to.say(f"'{one.global_id}' waits for longer than it may: let it with 'rollview source global wait', or")
            to.say("take what has come with 'rollview source global release'.")


def _missing(missing: tuple[str, ...]) -> str:
    return ", ".join(f"{_count(int(name), 'part')}" if name.isdecimal() else name for name in missing)


@_renders(results.Decided)
def _(answer: results.Decided, to: TextOutput) -> None:
    what = "waits on" if answer.choice == "wait" else "goes without the missing parts from the next capture on"
    to.say(f"Global transaction '{answer.global_id}' {what}.")


@_renders(answers.Ledger)
def _(answer: answers.Ledger, to: TextOutput) -> None:
    rows = [(e.csn, _time(e.ledger_time), _sources(e), e.transaction, _changes(e)) for e in answer.entries]
    to.table(("csn", "committed", "source", "transaction", "changes"), rows, ("csn",))


def _sources(entry: Any) -> str:
    return ", ".join(dict.fromkeys([entry.source, *(part.source for part in entry.parts)]))


def _changes(entry: Any) -> str:
    return ", ".join(f"{change.relation} +{change.inserted} −{change.deleted}" for change in entry.changes)


@_renders(answers.RelationList)
def _(answer: answers.RelationList, to: TextOutput) -> None:
    if not answer.relations:
        to.say(f"No {answer.kind}s yet.")
    elif answer.kind == "table":
        to.table(("table", "columns", "rows", "state csn"), _values(answer.relations, *_TABLE), ("rows", "state csn"))
    else:
        rows = [(v.name, v.rows, v.csn, ", ".join(v.reads), v.comment or "") for v in answer.relations]
        to.table(("view", "rows", "csn", "reads", "comment"), rows, ("rows", "csn"))


_TABLE = ("name", "columns", "rows", "csn")


@_renders(answers.RelationDetail)
def _(answer: answers.RelationDetail, to: TextOutput) -> None:
    relation = answer.relation
    to.say(f"{relation.kind.value} {relation.name}\n")
    to.table(("column", "type", "constraints"), [(c.name, c.type, _marks(c.name, relation)) for c in relation.schema])
    for key in relation.constraints.foreign_keys:
        to.say(f"foreign key ({', '.join(key.columns)}) → {key.table} ({', '.join(key.referenced)})")
    to.say("")
    pins = [(p.part.value, p.version, p.through, p.rows) for p in relation.pins.values() if p.is_kept]
    to.table(("part", "Delta version", "through csn", "rows"), pins, ("Delta version", "through csn", "rows"))
    to.say(f"\nfolder   {answer.folder}")
    to.say(f"reads    {', '.join(relation.depends_on) or '–'}")
    to.say(f"read by  {', '.join(answer.read_by) or '–'}")
    to.say(f"valid    {_valid(answer.valid)}")
    if relation.problem:
        to.say(f"problem  {relation.problem}", style="red")
    if relation.definition:
        to.say(f"\n{relation.definition.query}")


def _valid(valid: results.ValidTime) -> str:
    csns = f"csn {valid.first}" if valid.first == valid.through else f"csn {valid.first} to {valid.through}"
    since = f" since {_time(valid.since)}" if valid.since is not None else ""
    until = f" until {_time(valid.until)}" if valid.until is not None else ""
    return f"{csns},{since}{until}" if since or until else csns


@_renders(results.ExperimentList)
def _(answer: results.ExperimentList, to: TextOutput) -> None:
    to.table(("experiment", "what", "from"), _values(answer.experiments, "name", "title", "paper"))


@_renders(results.ExperimentRun)
def _(answer: results.ExperimentRun, to: TextOutput) -> None:
    to.say(f"{answer.title} ({answer.paper})\n")
    for line in answer.lines:
        to.say(line)
    if answer.judged is not None:
        to.say("")
        render(answer.judged, to)


@_renders(results.HistoryJudged)
def _(answer: results.HistoryJudged, to: TextOutput) -> None:
    level = f"at least {answer.level}" if answer.undecided else answer.level
    to.say(f"'{answer.name}' is {level}{' so far' if answer.so_far else ''}.")
    rows = [(one.version, one.rows, one.reflects or "–") for one in answer.versions]
    to.table(("version", "rows", "reflects"), rows, ("version",))
    if answer.undecided:
        to.note("There are more states than are searched: give versions a csn, or units that they go through.")
    if answer.reason is not None:
        to.say(f"Not {answer.breaks}: {answer.reason}.")
        for what, some in (("missing", answer.missing), ("too many", answer.surplus)):
            if some:
                to.say(f"  {what}: {some}")


@_renders(results.FilesWritten)
def _(answer: results.FilesWritten, to: TextOutput) -> None:
    to.say(f"Written into {answer.folder}: {_count(len(answer.files), 'file')}")
    for name in answer.files:
        to.say(f"  {name}")


def _marks(column: str, relation: Any) -> str:
    rules = relation.constraints
    unique = any(column in key for key in rules.unique)
    marks = {"primary key": column in rules.primary_key, "unique": unique, "not null": column in rules.not_null}
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _values(items: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(item, name) for name in names) for item in items]


def _how(mode: ViewMode) -> str:
    return "by recomputing it whole" if mode is ViewMode.WHOLE else "incrementally"


def _rows(count: int) -> str:
    return _count(count, "row")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _time(moment: datetime) -> str:
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def _duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _near(path: str) -> str:
    """As a user who stands here would write it."""
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _size(count: int) -> str:
    if count < 0:
        return f"−{_size(-count)}"
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
