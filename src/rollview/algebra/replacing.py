"""A definition written anew where something that it names is gone.

Law: a relation that is read otherwise is a subquery that gives its columns the names by which the text knows them, so
all that the author wrote about them means what it meant, ``*`` and USING included. What cannot be had any more is taken
out of the text where it may be left out; of the rest no word changes. Nothing that is gone is named by the new text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from rollview.algebra.by_name import is_by_name
from rollview.algebra.clauses import Clauses, PartKind, Span, TextPart, clauses_of, edited, without
from rollview.algebra.extents import is_monotone
from rollview.algebra.resolve import Known, Resolved, references_in, resolve
from rollview.algebra.text import DIALECT, parse_one
from rollview.core.names import quoted
from rollview.core.schema import Schema
from rollview.core.states import Extent


class CannotRewrite(Exception):
    """Why a definition cannot be written without what is gone."""


class MayLeaveOut(Protocol):
    """What the author can do without."""

    def column(self, name: str) -> bool: ...

    def join(self, names: Iterable[str]) -> bool: ...

    def condition(self, columns: Iterable[str]) -> bool: ...


@dataclass(frozen=True, slots=True)
class Replacement:
    """``columns``: of a relation as a text knows them, each as SQL over relation ``by``; others are gone. Without
    ``by`` the relation is."""

    by: str | None
    columns: Mapping[str, str]

    def has(self, column: str) -> bool:
        return any(column.lower() == name.lower() for name in self.columns)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """``extent``: what becomes of the rows by it, in the columns that are left."""

    kind: PartKind
    what: str
    extent: Extent

    def __str__(self) -> str:
        return f"without {self.kind} {self.what}"


@dataclass(frozen=True, slots=True)
class RewrittenText:
    """``columns``: the view's own list of names. ``monotone``: whether more rows below never take one away."""

    text: str
    columns: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    monotone: bool


def rewritten(
    text: str,
    columns: tuple[str, ...],
    known: Mapping[str, Known],
    replaced: Mapping[str, Replacement],
    may: MayLeaveOut,
) -> RewrittenText:
    """``known``: what the text reads, as it knows it; ``replaced``: how some of that is read from now on. Both by
    folded name."""
    tree = parse_one(text)
    assert isinstance(tree, exp.Query)
    resolved = resolve(text, known, columns)
    leaving = _Leaving(text, tree, resolved, replaced, may)
    leaving.run(references_in(tree, known))
    gone = leaving.gone
    tables = _Tables(tree, resolved, replaced)
    edits = list(_read_otherwise(references_in(tree, known), replaced, tables, gone))
    new = edited(text, [*edits, *without(text, leaving.clauses, gone)]) if edits or gone else text
    left = tuple(name for place, name in enumerate(columns) if place not in leaving.outputs)
    return RewrittenText(new, left, tuple(leaving.left_out), is_monotone(resolved.query))


def _read_otherwise(
    references: Iterable[tuple[exp.Table, Known]],
    replaced: Mapping[str, Replacement],
    tables: _Tables,
    gone: Sequence[TextPart],
) -> Iterator[tuple[Span, str]]:
    for table, relation in references:
        replacement, span = replaced.get(relation.name.lower()), _place(table)
        if replacement is None or any(part.holds(span[0]) for part in gone):
            continue
        new = tables.written(table, replacement)
        if new is not None:
            yield span, new


def _place(table: exp.Table) -> Span:
    meta = table.this.meta
    return int(meta["start"]), int(meta["end"]) + 1


@dataclass(slots=True)
class _Leaving:
    """What has to go from the text, and may."""

    text: str
    tree: exp.Query
    resolved: Resolved
    replaced: Mapping[str, Replacement]
    may: MayLeaveOut
    clauses: Clauses = field(default_factory=lambda: Clauses((), {}))
    gone: list[TextPart] = field(default_factory=list)
    outputs: set[int] = field(default_factory=set)
    left_out: list[LeftOut] = field(default_factory=list)
    aliases: set[str] = field(default_factory=set)

    def run(self, references: Sequence[tuple[exp.Table, Known]]) -> None:
        for table, relation in references:
            replacement = self.replaced.get(relation.name.lower())
            if replacement is not None and replacement.by is None:
                self._leave_at(_place(table)[0], f"table '{relation.name}'")
        found = True
        while found:
            before = len(self.gone), len(self.outputs)
            for column in list(self._lost()):
                self._leave(column)
            found = before != (len(self.gone), len(self.outputs))

    def _lost(self) -> Iterator[exp.Column]:
        """Columns that are named and cannot be had, outside what has been left out."""
        owned: dict[int, exp.Column] = {}
        lost: dict[int, exp.Column] = {}
        for scope in traverse_scope(self.resolved.query):
            for column in scope.columns:
                owner = scope.sources.get(column.table)
                if owner is not None:
                    owned[id(column)] = column
                replacement = self.replaced.get(owner.name.lower()) if isinstance(owner, exp.Table) else None
                if replacement is not None and not replacement.has(column.name):
                    lost[id(column)] = column
                if column.table.lower() in self.aliases:
                    lost[id(column)] = column
                if owner is None and id(column) not in owned and self._nowhere(column):
                    lost[id(column)] = column
        return iter(column for column in lost.values() if not self._is_left_out(column))

    def _nowhere(self, column: exp.Column) -> bool:
        """Of a column whose owner is not sure: whether any relation has lost it."""
        reads = {relation.name.lower(): relation for relation in self.resolved.reads}
        return not column.table and any(
            reads[name].schema.find(column.name) is not None and not replacement.has(column.name)
            for name, replacement in self.replaced.items()
        )

    def _is_left_out(self, column: exp.Column) -> bool:
        place = _start(column)
        if place is None:
            return self._output_of(column) in self.outputs
        return any(part.holds(place) for part in self.gone)

    def _output_of(self, column: exp.Expr) -> int | None:
        """The output that is this column and nothing else."""
        whole = [place for place, item in enumerate(self.resolved.query.selects) if item.unalias() is column]
        return whole[0] if whole else None

    def _leave(self, column: exp.Column) -> None:
        if self._is_left_out(column):
            return
        place, what = _start(column), f"column '{column.name}'"
        if place is not None:
            self._leave_at(place, what)
            return
        output = self._output_of(column)
        if output is None or not isinstance(self.tree, exp.Select):
            raise CannotRewrite(f"it needs {what}")
        self._leave_output(output, what)

    def _leave_at(self, place: int, what: str) -> None:
        self._read_clauses(what)
        part = self.clauses.at(place)
        if part is None:
            raise CannotRewrite(f"it needs {what}{_inside(self.tree, place)}")
        if part in self.gone:
            return
        match part.kind:
            case PartKind.OUTPUT:
                for output in self._outputs_in(part):
                    self._leave_output(output, what)
            case PartKind.JOIN:
                self._leave_join(part, what)
            case _:
                self._leave_condition(part, what)
        self.gone.append(part)

    def _read_clauses(self, what: str) -> None:
        if self.clauses.parts:
            return
        if not isinstance(self.tree, exp.Select):
            raise CannotRewrite(f"it needs {what}, and is not one SELECT of which a part could be left out")
        self.clauses = clauses_of(self.text)
        outputs, joins = self.clauses.of(PartKind.OUTPUT), self.clauses.of(PartKind.JOIN)
        if (len(outputs), len(joins)) != (len(self.tree.expressions), len(self.tree.args.get("joins") or ())):
            raise CannotRewrite(f"it needs {what}")

    def _outputs_in(self, part: TextPart) -> list[int]:
        return [
            place
            for place, item in enumerate(self.resolved.query.selects)
            if any((start := _start(column)) is not None and part.holds(start) for column in item.find_all(exp.Column))
        ]

    def _leave_output(self, output: int, what: str) -> None:
        name = self.resolved.outputs[output]
        if not self.may.column(name):
            raise CannotRewrite(f"it needs {what} for its column '{name}'")
        if len(self.outputs) + 1 == len(self.resolved.outputs):
            raise CannotRewrite(f"without {what} it has no column left")
        if _groups_by_place(self.tree):
            raise CannotRewrite(f"it needs {what}, and groups by the places of its columns")
        self.outputs.add(output)
        extent = Extent.SUBSET if self.tree.args.get("distinct") else Extent.EQUAL
        self.left_out.append(LeftOut(PartKind.OUTPUT, name, extent))

    def _leave_condition(self, part: TextPart, what: str) -> None:
        written = self.text[slice(*part.span)]
        named = {column.name.lower() for column in parse_one(f"SELECT {written} AS c").find_all(exp.Column)}
        if not self.may.condition(named):
            raise CannotRewrite(f"it needs {what} for its condition {written}")
        if part.kind is PartKind.HAVING:
            narrow = not self.tree.args.get("limit") and self.tree.find(exp.Window) is None
        else:
            narrow = is_monotone(self.resolved.query)
        extent = Extent.SUPERSET if narrow else Extent.ANY
        self.left_out.append(LeftOut(part.kind, written, extent))

    def _leave_join(self, part: TextPart, what: str) -> None:
        join = self.tree.args["joins"][part.number]
        names = {join.this.name, join.this.alias_or_name} - {""}
        if not self.may.join(names):
            raise CannotRewrite(f"it needs {what} for its join with '{join.this.alias_or_name}'")
        if is_by_name(join):
            raise CannotRewrite(f"it needs {what} for a join by names")
        extent = _without_join(self.resolved, join)
        self.aliases.add(join.this.alias_or_name.lower())
        self.left_out.append(LeftOut(PartKind.JOIN, join.this.alias_or_name, extent))


def _inside(tree: exp.Expr, place: int) -> str:
    """Why nothing can be left out at a place of the text that is not of its outermost SELECT."""
    named = (one for one in tree.find_all(exp.Identifier) if one._meta and one.meta.get("start") == place)
    found = next(named, None)
    inner = found.find_ancestor(exp.CTE, exp.Subquery) if found is not None else None
    if inner is None:
        return ""
    what = "CTE" if isinstance(inner, exp.CTE) else "subquery"
    called = f" '{inner.alias}'" if inner.alias else ""
    return (
        f" inside its {what}{called}: only columns, joins and conditions of the outermost SELECT can be left out. "
        f"Make the {what} a view of its own, which can leave them out"
    )


def _groups_by_place(tree: exp.Expr) -> bool:
    group = tree.args.get("group")
    return group is not None and (bool(group.args.get("all")) or any(key.is_int for key in group.expressions))


def _start(column: exp.Column) -> int | None:
    return int(column.this.meta["start"]) if column.this._meta and "start" in column.this.meta else None


def _without_join(resolved: Resolved, join: exp.Join) -> Extent:
    """A join by a whole key finds one row at most, so without it no row comes more often, nor less."""
    own = next((one for one in resolved.query.find_all(exp.Join) if _called(one) == _called(join)), None)
    by_key = own is not None and _joins_by_key(resolved, own)
    monotone = is_monotone(resolved.query, ignoring=own)
    if join.side == "LEFT":
        return Extent.EQUAL if by_key else Extent.SUBSET if monotone else Extent.ANY
    if not join.side and join.kind in ("", "INNER"):
        return Extent.SUPERSET if by_key and monotone else Extent.ANY
    return Extent.ANY


def _called(join: exp.Join) -> str:
    return str(join.this.alias_or_name).lower()


def _joins_by_key(resolved: Resolved, join: exp.Join) -> bool:
    relation = next((one for one in resolved.reads if one.name.lower() == join.this.name.lower()), None)
    if relation is None or not isinstance(join.this, exp.Table) or join.args.get("on") is None:
        return False
    own, on = _called(join), join.args["on"]
    equal = [one for one in (on.flatten() if isinstance(on, exp.And) else [on]) if isinstance(one, exp.EQ)]
    pairs = [pair for one in equal for pair in ((one.this, one.expression), (one.expression, one.this))]
    given = {key.name.lower() for key, other in pairs if _is_of(key, own) and _gives(resolved, relation, key, other)}
    return any({name.lower() for name in key} <= given for key in relation.constraints.keys)


def _is_of(side: exp.Expr, alias: str) -> bool:
    return isinstance(side, exp.Column) and side.table.lower() == alias


def _gives(resolved: Resolved, relation: Known, key: exp.Expr, other: exp.Expr) -> bool:
    """Whether the other side is a column of another table, and of the key's type: else two keys may be equal to it."""
    if not isinstance(other, exp.Column) or _is_of(other, key.table.lower()):  # type: ignore[attr-defined]
        return False
    tables = {table.alias_or_name.lower(): table.name.lower() for table in resolved.query.find_all(exp.Table)}
    reads = {one.name.lower(): one for one in resolved.reads}
    owner = reads.get(tables.get(other.table.lower(), ""))
    return owner is not None and _types(relation)[key.name.lower()] == _types(owner).get(other.name.lower())


def _types(relation: Known) -> dict[str, str]:
    return {column.name.lower(): column.type for column in relation.schema}


@dataclass(slots=True)
class _Tables:
    tree: exp.Query
    resolved: Resolved
    replaced: Mapping[str, Replacement]

    def written(self, table: exp.Table, replacement: Replacement) -> str | None:
        """What stands for the table's name; None if it stays."""
        assert replacement.by is not None
        named = f" AS {_spelled(table.name)}" if table.args.get("alias") is None else ""
        columns = self._wanted(table, replacement)
        if self._is_sure_of_names() and all(_is_own_name(name, sql) for name, sql in columns.items()):
            same = replacement.by.lower() == table.name.lower()
            return None if same else _spelled(replacement.by) + named
        listed = ", ".join(_item(name, sql) for name, sql in columns.items()) or "1 AS one"
        return f"(SELECT {listed} FROM {_spelled(replacement.by)}){named}"

    def _wanted(self, table: exp.Table, replacement: Replacement) -> dict[str, str]:
        """Those that the text names; where it says ``*`` of the table, or joins it by names, all that it knows."""
        if any(_takes_all(scope, table.name) for scope in traverse_scope(self.tree)):
            return dict(replacement.columns)
        used = set()
        for scope in traverse_scope(self.resolved.query):
            for column in scope.columns:
                owner = scope.sources.get(column.table)
                if owner is None or (isinstance(owner, exp.Table) and owner.name.lower() == table.name.lower()):
                    used.add(column.name.lower())
        return {name: sql for name, sql in replacement.columns.items() if name.lower() in used}

    def _is_sure_of_names(self) -> bool:
        """Whether a column more of a table could not be meant by any word of the text."""
        by_name = any(map(is_by_name, self.tree.find_all(exp.Join)))
        return not self._has_stars() and not by_name and all(one.table for one in self.tree.find_all(exp.Column))

    def _has_stars(self) -> bool:
        return any(map(_is_of_columns, self.tree.find_all(exp.Star)))


def _takes_all(scope: Scope, table: str) -> bool:
    """Whether a query that reads the table itself, not through another, says ``*`` or joins by names."""
    read = {source.name.lower() for source in scope.sources.values() if isinstance(source, exp.Table)}
    if table.lower() not in read:
        return False
    return any(map(_is_of_columns, scope.find_all(exp.Star))) or any(map(is_by_name, scope.find_all(exp.Join)))


def _is_of_columns(star: exp.Expr) -> bool:
    return not isinstance(star.parent, exp.Count)


def _is_own_name(name: str, sql: str) -> bool:
    return sql == quoted(name)


def _item(name: str, sql: str) -> str:
    if _is_own_name(name, sql):
        return _spelled(name)
    return f"{_unquoted(sql)} AS {_spelled(name)}"


def _unquoted(sql: str) -> str:
    inner = sql[1:-1]
    return _spelled(inner) if sql == quoted(inner) else sql


def _spelled(name: str) -> str:
    """A name as an author would write it."""
    tokens = DIALECT().tokenize(name) if name.isascii() and name.isidentifier() else []
    return name if [token.token_type for token in tokens] == [TokenType.VAR] else quoted(name)


def called(text: str, names: Mapping[str, str]) -> str:
    """The text over relations that are called otherwise by now; ``names``: folded names in it, and those of now."""
    tree = parse_one(text)
    known = {name: Known(name, Schema(())) for name in _tables_in(tree)}
    edits = []
    for table, relation in references_in(tree, known):  # type: ignore[arg-type]
        new = names.get(relation.name.lower())
        if new is not None:
            alias = f" AS {_spelled(table.name)}" if table.args.get("alias") is None else ""
            edits.append((_place(table), quoted(new) + alias))
    return edited(text, edits)


def _tables_in(tree: exp.Expr) -> set[str]:
    return {table.name.lower() for table in tree.find_all(exp.Table)}
