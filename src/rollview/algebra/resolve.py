"""Names in a query become what they mean: each table a known relation, each column qualified, each output named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from rollview.algebra import by_name, fields, joins
from rollview.algebra.definition import checked_name
from rollview.algebra.expressions import identifier, named
from rollview.algebra.text import DIALECT, parse_one, place_of, resolution_error
from rollview.algebra.words import Words, words
from rollview.core.schema import Constraints, Schema
from rollview.errors import NotFound, SqlError, Unsupported

ROWS_SUFFIX = "@rows"
_WAS = "rollview_was"
_PLAINLY = "Write SELECT … FROM table."


@dataclass(frozen=True, slots=True)
class Known:
    """A relation that a query may read."""

    name: str
    schema: Schema
    constraints: Constraints = Constraints()
    told_apart_by: tuple[tuple[str, ...], ...] = ()
    """Columns in which no two rows are equal, where a view's definition says so."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A query with nothing left to guess. ``words``: the same as its author wrote it, which is what it means."""

    query: exp.Query
    reads: tuple[Known, ...]
    outputs: tuple[str, ...]
    words: Words


def resolve(text: str, known: Mapping[str, Known], columns: tuple[str, ...] = (), what: str = "The view") -> Resolved:
    """``known`` is keyed by folded name. ``columns`` rename the outputs by position."""
    tree = parse_one(text)
    if not isinstance(tree, exp.Query):
        raise SqlError("Expected a query.")
    references = references_in(tree, known)
    reads = {relation.name.lower(): relation for _, relation in references}
    _refuse_several_names(tree)
    if not columns:
        _demand_names(tree)
    spelled = _spelled_outputs(tree)
    joins.check(tree, [relation.schema for relation in reads.values()])
    fields.refuse_folded(tree)
    plain = fields.named_for_good(_without_hints(tree))
    stored = {name: relation.schema.names for name, relation in reads.items()}
    query = _qualify(by_name.written_out(plain, stored), reads)
    _refuse_stars(query)
    _spell_as_declared(query, reads)
    outputs = _outputs(query, columns, spelled, what)
    _name_ctes_apart(query, reads)
    return Resolved(_rename(query, outputs), tuple(reads.values()), outputs, _words(tree, references))


def references_in(tree: exp.Query, known: Mapping[str, Known]) -> list[tuple[exp.Table, Known]]:
    """Where the query names relations, and which; refuses everything that is not one plain name of ours."""
    found: list[tuple[exp.Table, Known]] = []
    seen: set[int] = set()
    for scope in traverse_scope(tree):
        for table in scope.tables:
            seen.add(id(table))
            if table.name.lower() in {name.lower() for name in scope.cte_sources} and not table.db:
                continue
            found.append((table, _relation(table, known)))
    for table in tree.find_all(exp.Table):
        is_advice = table.find_ancestor(exp.Hint) is not None
        if id(table) not in seen and isinstance(table.this, exp.Identifier) and not is_advice:
            line, column = place_of(table)
            raise Unsupported(f"A table cannot be named here: '{table.name}'.", line=line, column=column)
    return found


def _words(tree: exp.Query, references: list[tuple[exp.Table, Known]]) -> Words:
    found = words(tree, [(table, relation.name) for table, relation in references])
    if found is None:
        line, column = place_of(tree)
        raise Unsupported("This form of query has no place for its tables.", line=line, column=column, hint=_PLAINLY)
    return found


def _relation(table: exp.Table, known: Mapping[str, Known]) -> Known:
    line, column = place_of(table)
    if not isinstance(table.this, exp.Identifier) or table.db or table.catalog:
        raise Unsupported(
            f"'{table.sql('spark')}' is not a table or view of this warehouse.",
            line=line,
            column=column,
            hint="Views read tables and views by their plain names; files and other catalogs come in as tables.",
        )
    if table.args.get("version") or table.args.get("when"):
        raise Unsupported(
            "A view always reads the newest state; time travel has no place in it.", line=line, column=column
        )
    relation = known.get(table.name.lower())
    if relation is None:
        close = get_close_matches(table.name.lower(), known, n=3)
        hint = f"Close names: {', '.join(known[name].name for name in close)}." if close else "Create it first."
        raise NotFound("table or view", table.name, hint=hint, line=line, column=column)
    return relation


def _refuse_several_names(tree: exp.Query) -> None:
    for item in _first_side(tree).selects:
        if isinstance(item, exp.Aliases):
            line, column = place_of(item)
            written, names = item.this.sql("spark"), ", ".join(name.sql("spark") for name in item.aliases)
            raise Unsupported(
                f"{written} gives several columns at once, which a view takes from FROM only.",
                line=line,
                column=column,
                hint=f"Name {names} in SELECT, and write after FROM: LATERAL VIEW {written} AS {names}",
            )


def _demand_names(tree: exp.Query) -> None:
    for item in _first_side(tree).selects:
        if not isinstance(item, exp.Alias | exp.Column | exp.Star | exp.Dot):
            line, column = place_of(item)
            raise SqlError(
                f"The expression {item.sql('spark')} has no name.",
                line=line,
                column=column,
                hint="Write AS name after it.",
            )


def _spelled_outputs(tree: exp.Query) -> dict[str, str]:
    """How the author spelled the outputs; resolving folds them."""
    return {item.alias_or_name.lower(): item.alias_or_name for item in _first_side(tree).selects}


def _first_side(query: exp.Query) -> exp.Query:
    """Of a set operation the side that names the outputs."""
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    return query


def _qualify(tree: exp.Query, reads: Mapping[str, Known]) -> exp.Query:
    columns = {name: {column.name.lower(): "unknown" for column in relation.schema} for name, relation in reads.items()}
    schema = MappingSchema(columns, dialect=DIALECT, normalize=False)  # type: ignore[arg-type]
    try:
        query = qualify(
            _with_aliases(tree), schema=schema, dialect=DIALECT, validate_qualify_columns=True, identify=True
        )
    except SqlglotError as error:
        candidates = [(relation.name, relation.schema.names) for relation in reads.values()]
        raise resolution_error(error, tree, candidates) from error
    assert isinstance(query, exp.Query)
    return query


def _with_aliases(tree: exp.Query) -> exp.Query:
    """Every table under an alias that is an identifier: sqlglot would parse the bare name as text to make one.

    What renames a table's columns becomes a subquery: sqlglot takes their names for the table's own.
    """
    aliased = tree.copy()
    for table in list(aliased.find_all(exp.Table)):
        alias = table.args.get("alias")
        if alias is None or alias.columns:
            table.set("alias", exp.TableAlias(this=identifier(table.name)))
        if alias is not None and alias.columns:
            table.replace(exp.Subquery(this=exp.Select(expressions=[exp.Star()]).from_(table.copy()), alias=alias))
    return aliased


def _without_hints(tree: exp.Query) -> exp.Query:
    """What advises an engine says nothing of the rows, and names tables that are called otherwise here."""
    bare = tree.copy()
    for hint in list(bare.find_all(exp.Hint)):
        hint.pop()
    return bare


def _name_ctes_apart(query: exp.Query, reads: Mapping[str, Known]) -> None:
    """No CTE is called like another or like anything stored, so where it stands no longer matters."""
    taken = {*reads, *(name + ROWS_SUFFIX for name in reads)}
    uses: dict[int, list[exp.Table]] = {}
    for scope in traverse_scope(query):
        for table in scope.tables:
            source = scope.sources.get(table.alias_or_name)
            if isinstance(source, Scope):
                uses.setdefault(id(source.expression.parent), []).append(table)
    for cte in list(query.find_all(exp.CTE)):
        name, n = cte.alias, 1
        while name.lower() in taken:
            n += 1
            name = f"{cte.alias}_{n}"
        taken.add(name.lower())
        cte.args["alias"].set("this", identifier(name))
        for table in uses.get(id(cte), ()):
            table.set("this", identifier(name))


def _spell_as_declared(query: exp.Query, reads: Mapping[str, Known]) -> None:
    """Resolving folds names; a stored column is called as its table calls it."""
    for scope in traverse_scope(query):
        for reference in scope.columns:
            source = scope.sources.get(reference.table)
            relation = reads.get(source.name.lower()) if isinstance(source, exp.Table) else None
            declared = relation.schema.find(reference.name) if relation is not None else None
            if declared is not None:
                # The identifier itself stays: it knows where it stands in the text.
                reference.this.set("this", declared.name)
                reference.this.set("quoted", True)


def _refuse_stars(query: exp.Query) -> None:
    for item in query.selects:
        if item.unalias().is_star:
            line, column = place_of(item)
            raise Unsupported(
                f"The columns that {item.unalias().sql('spark')} stands for are not known here.",
                line=line,
                column=column,
                hint="Write the columns or fields one by one, each with a name.",
            )


def _outputs(query: exp.Query, columns: tuple[str, ...], spelled: Mapping[str, str], what: str) -> tuple[str, ...]:
    names = [item.alias_or_name for item in query.selects]
    if columns and len(columns) != len(names):
        raise SqlError(f"{what} names {len(columns)} columns, but its query has {len(names)}.")
    outputs = columns or tuple(
        spelled.get(name) or _as_stored(item) for name, item in zip(names, query.selects, strict=True)
    )
    seen: set[str] = set()
    for name in outputs:
        checked_name(name, "column")
        if name.lower() in seen:
            raise SqlError(f"{what} has two columns named '{name}'.", hint="Give one of them another name with AS.")
        seen.add(name.lower())
    return outputs


def _as_stored(item: exp.Expr) -> str:
    """What ``*`` stands for is spelled as its table declares it."""
    stored = item.unalias()
    return stored.name if stored.name.lower() == item.alias_or_name else item.alias_or_name


def _rename(query: exp.Query, outputs: tuple[str, ...]) -> exp.Query:
    """With the outputs' final names."""
    first = _first_side(query)
    if isinstance(first, exp.Select):
        items = [_renamed(item, name) for item, name in zip(first.selects, outputs, strict=True)]
        first.set("expressions", items)
    if not any(query.args.get(name) for name in ("limit", "offset", "fetch")):
        query.set("order", None)
    return query


def _renamed(item: exp.Expr, name: str) -> exp.Alias:
    made = named(item.unalias().copy(), name)
    made.meta[_WAS] = item.alias_or_name
    return made


def name_in_text(output: exp.Expr) -> str:
    """What the text itself calls an output, whatever the view's list of columns calls it."""
    return str(output.meta[_WAS]) if output._meta and _WAS in output.meta else output.alias_or_name


def rebind(query: exp.Query, reads: tuple[Known, ...], rename: Mapping[str, str]) -> exp.Query:
    """The query with each relation replaced by another name; what the query calls it stays as it is."""
    bound = query.copy()
    names = {relation.name.lower() for relation in reads}
    for scope in traverse_scope(bound):
        for table in scope.tables:
            if table.name.lower() in names:
                alias = table.alias_or_name
                table.set("this", identifier(rename[table.name.lower()]))
                table.set("alias", exp.TableAlias(this=identifier(alias)))
    return bound
