"""What an ALTER TABLE makes of a table, before anything is done.

Law: a column keeps its name in files through every change; a name that returns gets another one there. What cannot be
true of a table is refused here; what its rows must satisfy is written down in ``checks``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import singledispatch

from sqlglot import exp

from rollview.catalog import Relation, Snapshot
from rollview.core.names import RESERVED_PREFIX, free_place, same
from rollview.core.schema import AddedRule, Column, Constraints, ForeignKey, RuleKind, Schema
from rollview.errors import AlreadyExists, InUse, NotFound, SqlError, Unsupported, UsageError
from rollview.tables.altering import (
    AddColumn,
    AddRule,
    Alteration,
    DropColumn,
    DropRule,
    DropTable,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetRequired,
    SetType,
)
from rollview.tables.declaration import DeclaredTable
from rollview.tables.resolving import resolved_key
from rollview.types.arrow import arrow_type, is_atomic
from rollview.types.spelling import widens

TypeOf = Callable[[str, str], Column]
"""A column of a name and a type in its author's spelling, with the type in Spark's."""
ConstantOf = Callable[[Column, exp.Expr], str | None]
"""The text of a constant as a value of a column; None of NULL."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """What only Spark knows. ``declared``: names of columns that its files have or had."""

    type_of: TypeOf
    constant_of: ConstantOf
    declared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Draft:
    """A table as it will be. ``checks``: rules that its rows must satisfy by then."""

    snapshot: Snapshot
    table: Relation
    name: str
    schema: Schema
    constraints: Constraints
    checks: tuple[AddedRule, ...] = ()
    must_be_empty: str | None = None
    """Why."""

    @property
    def added(self) -> tuple[Column, ...]:
        present = {column.stored for column in self.table.schema}
        return tuple(column for column in self.schema if column.stored not in present)

    @property
    def dropped(self) -> tuple[Column, ...]:
        left = {column.stored for column in self.schema}
        return tuple(column for column in self.table.schema if column.stored not in left)

    @property
    def widened(self) -> tuple[Column, ...]:
        return tuple(new for old, new in self._both() if old.type != new.type)

    @property
    def renamed(self) -> dict[str, str]:
        """New names of columns by those that they have now."""
        return {old.name: new.name for old, new in self._both() if old.name != new.name}

    def _both(self) -> Iterable[tuple[Column, Column]]:
        now = {column.stored: column for column in self.schema}
        return [(old, now[old.stored]) for old in self.table.schema if old.stored in now]

    @property
    def changes(self) -> bool:
        return (self.name, self.schema, self.constraints) != (
            self.table.name,
            self.table.schema,
            self.table.constraints,
        )

    def column(self, name: str) -> Column:
        found = self.schema.find(name)
        if found is None:
            hint = f"Columns here: {', '.join(self.schema.names)}."
            raise SqlError(f"Table '{self.name}' has no column '{name}'.", hint=hint)
        return found

    def with_column(self, old: Column, new: Column) -> Draft:
        return replace(self, schema=Schema(tuple(new if one is old else one for one in self.schema)))


def plan_alter(snapshot: Snapshot, table: Relation, alterations: Iterable[Alteration], meanings: Meanings) -> Draft:
    draft = Draft(snapshot, table, table.name, table.schema, table.constraints)
    for one in alterations:
        draft = altered(one, draft, meanings)
    return draft


@singledispatch
def altered(one: object, draft: Draft, meanings: Meanings) -> Draft:
    raise TypeError(one)


@altered.register
def _(one: AddColumn, draft: Draft, meanings: Meanings) -> Draft:
    _check_free(draft, one.name)
    column = replace(meanings.type_of(one.name, one.type), place=_place(draft, one.name, meanings), late=True)
    text = None if one.default is None else meanings.constant_of(column, one.default)
    column = replace(column, fill=text, default=text)
    draft = replace(draft, schema=Schema((*draft.schema.columns, column)))
    if not one.required:
        return draft
    if text is None:
        draft = replace(draft, must_be_empty=f"column '{one.name}' is NOT NULL and has no DEFAULT")
    rule = AddedRule(f"not_null_{one.name}", RuleKind.NOT_NULL, (one.name,))
    return replace(draft, constraints=replace(draft.constraints, added=(*draft.constraints.added, rule)))


@altered.register
def _(one: DropColumn, draft: Draft, meanings: Meanings) -> Draft:
    if one.if_exists and draft.schema.find(one.name) is None:
        return draft
    column = draft.column(one.name)
    if len(draft.schema) == 1:
        raise UsageError(f"'{column.name}' is the only column of table '{draft.name}'.", hint="Write DROP TABLE.")
    _check_in_no_key(draft, column, "be dropped")
    rules, name = draft.constraints, column.name
    kept = replace(
        rules,
        not_null=tuple(other for other in rules.not_null if other != name),
        added=tuple(rule for rule in rules.added if rule.columns != (name,)),
    )
    left = Schema(tuple(other for other in draft.schema if other is not column))
    return replace(draft, schema=left, constraints=kept)


@altered.register
def _(one: RenameColumn, draft: Draft, meanings: Meanings) -> Draft:
    column = draft.column(one.name)
    if not same(column.name, one.new_name):
        _check_free(draft, one.new_name)
    renamed = draft.with_column(column, replace(column, name=one.new_name, place=column.stored))
    own = renamed.constraints.renamed({column.name: one.new_name})
    return replace(renamed, constraints=own.referring(draft.table.name, draft.table.name, {column.name: one.new_name}))


@altered.register
def _(one: SetType, draft: Draft, meanings: Meanings) -> Draft:
    column = draft.column(one.name)
    wider = replace(meanings.type_of(column.name, one.type), place=column.stored, late=True)
    if wider.type == column.type:
        return draft
    if not widens(column.type, wider.type):
        raise Unsupported(
            f"Column '{column.name}' of table '{draft.name}' is {column.type.upper()} and cannot become "
            f"{wider.type.upper()}: not every value would stay what it is.",
            hint="Add a column of the new type, fill it by UPDATE, then drop this one.",
        )
    if column.type == "float" and (column.fill, column.default) != (None, None):
        raise Unsupported(
            f"Column '{column.name}' of table '{draft.name}' is FLOAT with a DEFAULT, which as DOUBLE would be another "
            "number.",
            hint="Add a column of the new type, fill it by UPDATE, then drop this one.",
        )
    _check_in_no_key(draft, column, "get another type")
    return draft.with_column(column, replace(wider, fill=column.fill, default=column.default))


@altered.register
def _(one: SetDefault, draft: Draft, meanings: Meanings) -> Draft:
    column = draft.column(one.name)
    text = None if one.default is None else meanings.constant_of(column, one.default)
    return draft.with_column(column, replace(column, default=text))


@altered.register
def _(one: SetRequired, draft: Draft, meanings: Meanings) -> Draft:
    column, rules = draft.column(one.name), draft.constraints
    if one.required:
        if column.name in rules.checked.not_null:
            return draft
        return _with_rule(draft, AddedRule(f"not_null_{column.name}", RuleKind.NOT_NULL, (column.name,)))
    if column.name in rules.checked.primary_key:
        raise UsageError(f"Column '{column.name}' is part of the primary key of table '{draft.name}'.")
    if column.name in rules.not_null:
        _check_unread(draft, f"NOT NULL of column '{column.name}'")
    kept = tuple(rule for rule in rules.added if (rule.kind, rule.columns) != (RuleKind.NOT_NULL, (column.name,)))
    required = tuple(name for name in rules.not_null if name != column.name)
    return replace(draft, constraints=replace(rules, not_null=required, added=kept))


@altered.register
def _(one: AddRule, draft: Draft, meanings: Meanings) -> Draft:
    match one.declared:
        case exp.PrimaryKey():
            if draft.constraints.checked.primary_key:
                raise SqlError(f"Table '{draft.name}' has a primary key already.", hint="Drop that one first.")
            columns, kind = _listed(draft, one.declared.expressions), RuleKind.PRIMARY_KEY
        case exp.ForeignKey():
            return _with_rule(draft, _foreign_key(draft, one.name, one.declared))
        case _:
            columns, kind = _listed(draft, one.declared.this.expressions), RuleKind.UNIQUE
            if columns in draft.constraints.checked.keys:
                raise SqlError(f"({', '.join(columns)}) is a key of table '{draft.name}' already.")
    return _with_rule(draft, AddedRule(one.name or rule_name(kind, columns), kind, columns))


@altered.register
def _(one: DropRule, draft: Draft, meanings: Meanings) -> Draft:
    rules = draft.constraints
    named = {rule_name(*rule): rule for rule in _promised(rules)} | {
        rule.name: (rule.kind, rule.columns) for rule in rules.added
    }
    name = next((name for name in named if same(name, one.name)), None)
    if name is None:
        hint = f"There are {', '.join(named)}." if named else f"Table '{draft.name}' has none."
        raise NotFound("constraint", one.name, hint=hint)
    kind, columns = named[name]
    if kind in (RuleKind.PRIMARY_KEY, RuleKind.UNIQUE):
        _check_not_referred_to(draft, columns)
    if any(rule.name == name for rule in rules.added):
        return replace(draft, constraints=replace(rules, added=tuple(r for r in rules.added if r.name != name)))
    _check_unread(draft, f"constraint '{name}'")
    if kind is RuleKind.PRIMARY_KEY:
        return replace(draft, constraints=replace(rules, primary_key=()))
    if kind is RuleKind.UNIQUE:
        return replace(draft, constraints=replace(rules, unique=tuple(key for key in rules.unique if key != columns)))
    left = tuple(key for key in rules.foreign_keys if key.columns != columns)
    return replace(draft, constraints=replace(rules, foreign_keys=left))


@altered.register
def _(one: RenameTable, draft: Draft, meanings: Meanings) -> Draft:
    present = draft.snapshot.find(one.new_name)
    if present is not None and present.id != draft.table.id:
        raise AlreadyExists(str(present.kind), present.name)
    own = draft.constraints.referring(draft.table.name, one.new_name, {})
    return replace(draft, name=one.new_name, constraints=own)


@altered.register
def _(one: DropTable, draft: Draft, meanings: Meanings) -> Draft:
    children = tuple(child for child, _ in _referring(draft) if child != draft.table.name)
    if children:
        raise InUse("table", draft.table.name, children)
    return replace(draft, name=f"{RESERVED_PREFIX}dropped_{draft.table.id}", schema=Schema(()))


def rule_name(kind: RuleKind, columns: Iterable[str]) -> str:
    """What a constraint is called that was given no name."""
    word = kind.value.replace(" ", "_")
    return word if kind is RuleKind.PRIMARY_KEY else "_".join((word, *columns))


def _promised(rules: Constraints) -> list[tuple[RuleKind, tuple[str, ...]]]:
    return [
        *([(RuleKind.PRIMARY_KEY, rules.primary_key)] if rules.primary_key else []),
        *((RuleKind.UNIQUE, key) for key in rules.unique),
        *((RuleKind.FOREIGN_KEY, key.columns) for key in rules.foreign_keys),
    ]


def _with_rule(draft: Draft, rule: AddedRule) -> Draft:
    rules = draft.constraints
    taken = [rule_name(*one) for one in _promised(rules)] + [one.name for one in rules.added]
    if any(same(rule.name, name) for name in taken):
        raise AlreadyExists("constraint", rule.name)
    return replace(draft, constraints=replace(rules, added=(*rules.added, rule)), checks=(*draft.checks, rule))


def _foreign_key(draft: Draft, name: str | None, declared: exp.ForeignKey) -> AddedRule:
    table = DeclaredTable(draft.name, draft.schema.names, (), draft.constraints.checked, None, False)
    key = resolved_key(draft.snapshot, table, draft.schema, declared, _listed(draft, declared.expressions))
    about = (key.columns, key.table, key.referenced)
    return AddedRule(name or rule_name(RuleKind.FOREIGN_KEY, key.columns), RuleKind.FOREIGN_KEY, *about)


def _listed(draft: Draft, items: Iterable[exp.Expr]) -> tuple[str, ...]:
    columns = tuple(draft.column(item.name) for item in items)
    for column in columns:
        if not is_atomic(arrow_type(column.type, column.name)):
            raise Unsupported(f"Column '{column.name}' of type {column.type.upper()} cannot be part of a key.")
    names = tuple(column.name for column in columns)
    if len(set(names)) < len(names):
        raise SqlError("A column is twice in one constraint.")
    return names


def _place(draft: Draft, name: str, meanings: Meanings) -> str:
    """A name in files that no column of the table has had."""
    known = (*draft.table.copied, *draft.schema)
    return free_place(name, (*(column.stored for column in known), *meanings.declared))


def _check_free(draft: Draft, name: str) -> None:
    present = draft.schema.find(name)
    if present is not None:
        raise AlreadyExists(f"column of table '{draft.name}' named", present.name)


def _check_in_no_key(draft: Draft, column: Column, what: str) -> None:
    rules = draft.constraints.checked
    for key in rules.keys:
        if column.name in key:
            kind = "primary key" if key == rules.primary_key else "UNIQUE"
            raise _in_key(draft, column, what, f"its {kind} ({', '.join(key)})")
    for foreign in rules.foreign_keys:
        if column.name in foreign.columns:
            raise _in_key(draft, column, what, f"its foreign key ({', '.join(foreign.columns)})")
    for child, foreign in _referring(draft):
        if column.name in foreign.referenced:
            raise _in_key(draft, column, what, f"what a foreign key of '{child}' refers to")


def _in_key(draft: Draft, column: Column, what: str, where: str) -> UsageError:
    return UsageError(
        f"Column '{column.name}' of table '{draft.name}' cannot {what}: it is part of {where}.",
        hint=f"Drop that first: ALTER TABLE {draft.name} DROP CONSTRAINT …",
    )


def _referring(draft: Draft) -> list[tuple[str, ForeignKey]]:
    return [
        (table.name, key)
        for table in draft.snapshot.tables()
        for key in table.constraints.checked.foreign_keys
        if same(key.table, draft.table.name)
    ]


def _check_not_referred_to(draft: Draft, columns: tuple[str, ...]) -> None:
    for child, key in _referring(draft):
        if set(key.referenced) == set(columns):
            raise UsageError(
                f"The key ({', '.join(columns)}) of table '{draft.name}' is what a foreign key of '{child}' refers to.",
                hint=f"Drop that first: ALTER TABLE {child} DROP CONSTRAINT …",
            )


def _check_unread(draft: Draft, what: str) -> None:
    """What was always true of a table may have gone into the way in which its views are kept."""
    readers = [view.name for view in draft.snapshot.readers(draft.table.name)]
    if readers:
        raise UsageError(
            f"{what[0].upper()}{what[1:]} of table '{draft.name}' cannot be dropped: views may rest on it: "
            f"{', '.join(readers)}.",
            hint="Drop them first, and create them again.",
            views=readers,
        )
