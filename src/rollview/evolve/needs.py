"""Tables of which only what views need is copied.

Law: what is captured of such a table is at least what every view that was ever created over it needs, with its key; it
grows and never shrinks, so what a view reads is there at every csn from the one at which it began.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from rollview.algebra.definition import Declared
from rollview.algebra.expressions import named
from rollview.algebra.needed import EVERY_ROW, NO_ROW, Need, either, is_covered, names_in, needs, rows_of, rows_text
from rollview.algebra.resolve import Known, resolve
from rollview.algebra.text import parse_one, render
from rollview.catalog import Catalog, Snapshot
from rollview.core.names import same
from rollview.errors import SqlError, UsageError
from rollview.relations.plans import known_as
from rollview.sources.protocol import SourceTable
from rollview.sources.settings import SourceSettings, TableSettings


def grown(
    settings: SourceSettings,
    tables: Sequence[SourceTable],
    views: Iterable[Declared],
    snapshot: Snapshot,
    *,
    is_there: bool = False,
) -> SourceSettings:
    """The settings, with what the views need taken as well.

    ``tables``: with all columns that the source has. ``is_there``: all that the views read is known, so one that cannot
    be understood is wrong.
    """
    known = {name.lower(): known_as(relation) for name, relation in snapshot.relations.items()}
    own = {settings.table(table.name).relation: table for table in tables}
    known |= {name.lower(): Known(name, table.schema, table.constraints) for name, table in own.items()}
    wanted = [_needs(view, known) if is_there else _mentions(view, known) for view in views]
    whole = {table.name: table for table in tables}
    grown = (_grown(settings, one, whole[one.remote], wanted) if one.needed else one for one in settings.tables)
    return replace(settings, tables=tuple(grown))


def whole(settings: SourceSettings) -> SourceSettings:
    """The same source, before anything was said of what views need."""
    tables = (replace(table, columns=(), rows="") if table.needed else table for table in settings.tables)
    return replace(settings, tables=tuple(tables))


def reads_needed(settings: SourceSettings, view: Declared) -> bool:
    """Whether the view names a table of which not all may be here."""
    there = _tables(parse_one(view.query))
    return any(table.needed and table.relation.lower() in there for table in settings.tables)


def has_rows(settings: SourceSettings, view: Declared, snapshot: Snapshot) -> bool:
    """Whether the rows of what the view reads are here, and not only changes; or are asked for."""
    there = _tables(parse_one(view.query))
    read = (table for table in settings.tables if table.relation.lower() in there)
    return all(table.asked or snapshot.get(table.relation).is_kept for table in read)


def names_any(view: Declared, tables: Collection[str]) -> bool:
    """Whether the view's text names one of the tables."""
    return not _tables(parse_one(view.query)).isdisjoint(table.lower() for table in tables)


def explain_missing_columns(source: str, settings: SourceSettings, view: Declared, snapshot: Snapshot) -> None:
    """A view that names a column that may be at the source, and was not asked for, is refused with what helps."""
    there = _tables(parse_one(view.query))
    chosen = [t.relation for t in settings.tables if t.columns and not t.needed and t.relation.lower() in there]
    if not chosen:
        return
    try:
        _needs(view, {name.lower(): known_as(relation) for name, relation in snapshot.relations.items()})
    except SqlError as error:
        if "no column" in error.message:
            only = f"Of table '{chosen[0]}' only the columns are captured that rollview.yaml names; add what is missing"
            error.hint = f"{error.hint} {only}, and run: rollview source resnapshot {source} --widen"
        raise


def refuse_missing(catalog: Catalog, statement: exp.Expr) -> None:
    """A statement must not be answered from fewer rows than it means."""
    there = _tables(statement)
    settings = (SourceSettings.from_json(record.settings) for record in catalog.sources())
    tables = [table for one in settings for table in one.tables if table.needed and table.rows]
    tables = [table for table in tables if table.relation.lower() in there]
    wanted = _asked(statement, catalog.snapshot()) if tables else {}
    for table in tables:
        name = table.relation.lower()
        if name not in wanted or not is_covered(wanted[name].rows, rows_of(table.rows)):
            raise UsageError(
                f"Of table '{table.relation}' only rows that views need are here: {table.rows}.",
                hint="Ask for no more than those, create a view of what you need, or say copy: all.",
            )


def _asked(statement: exp.Expr, snapshot: Snapshot) -> Mapping[str, Need]:
    query = statement if isinstance(statement, exp.Query) else statement.args.get("expression")
    if not isinstance(query, exp.Query) or _tables(statement) != _tables(query):
        return {}
    text = render(_with_names(query.copy()))
    known = {name.lower(): known_as(relation) for name, relation in snapshot.relations.items()}
    return _mentions(Declared("", (), None, {}, text, False), known)


def _with_names(query: exp.Query) -> exp.Query:
    """Every output has a name; which one does not matter."""
    for place, item in enumerate(query.selects):
        if not isinstance(item, exp.Alias | exp.Column | exp.Star):
            item.replace(named(item.copy(), f"unnamed {place}"))
    return query


def _tables(tree: exp.Expr) -> set[str]:
    return {table.name.lower() for table in tree.find_all(exp.Table)}


def _needs(view: Declared, known: Mapping[str, Known]) -> Mapping[str, Need]:
    return needs(resolve(view.query, known, view.columns))


def _mentions(view: Declared, known: Mapping[str, Known]) -> Mapping[str, Need]:
    """Of a view that cannot be understood yet, because not all is here that it reads, everything that it mentions."""
    try:
        return _needs(view, known)
    except UsageError:
        names = names_in(view.query)
        tables = _tables(parse_one(view.query)) & known.keys()
        return {table: Need(_folded(known[table]) if names is None else names, EVERY_ROW) for table in tables}


def _folded(relation: Known) -> frozenset[str]:
    return frozenset(name.lower() for name in relation.schema.names)


def _grown(
    settings: SourceSettings, table: TableSettings, there: SourceTable, wanted: Sequence[Mapping[str, Need]]
) -> TableSettings:
    found = [need for one in wanted if (need := one.get(table.relation.lower())) is not None]
    names = {name.lower() for name in _always(settings, table, there)}.union(*(need.columns for need in found))
    columns = tuple(c.name for c in there.schema if c.name.lower() in names) or there.schema.names[:1]
    rows = rows_of(table.rows) if table.columns else NO_ROW
    for need in found:
        rows = either(rows, need.rows)
    return replace(table, columns=columns, rows=rows_text(rows))


def _always(settings: SourceSettings, table: TableSettings, there: SourceTable) -> tuple[str, ...]:
    """What is here already, the key, and what global transactions are known by."""
    marks = settings.global_transactions
    is_marker = marks is not None and marks.table is not None and same(marks.table, table.remote)
    marked = (marks.id or "", marks.parts or "") if marks is not None and is_marker else ()
    return (*table.columns, *there.constraints.primary_key, *table.key, *marked)
