"""How a view gets the rows of its next definition, told from the two plans alone.

Law: all ways give the same rows. Where the new definition is proven to be a query over what is stored by the old one
(see ``rollview.matching``), that alone is read; where it is one over that and a part of what the view reads, the part
is; where it is neither, the view is computed from what it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from sqlglot import exp

from rollview.algebra.expressions import column, identifier, named, select, table
from rollview.algebra.operator import Operator
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.operators.union import Union
from rollview.algebra.pieces import TablePiece
from rollview.algebra.script import InputForm
from rollview.algebra.text import render
from rollview.algebra.view import ROWS_SUFFIX, ViewPlan
from rollview.catalog import Part, Relation, Snapshot
from rollview.core.schema import Column, Constraints, Schema
from rollview.matching import Answering, Flat, NoMatch, NotFlat, flatten, rewritings, written
from rollview.matching.branches import branches, change
from rollview.matching.derived import derived_groups
from rollview.relations.former import means_others
from rollview.relations.plans import plan_of
from rollview.store.buckets import REWRITE_ROWS

_LOOKED_FOR = 5
"""How many rows could be read while one is looked for among others."""

OLD_ROWS, OLD_GROUPS = "_rv_old_rows", "_rv_old_groups"


class AdaptMode(StrEnum):
    RENAMED = "renamed"
    STORED = "stored rows"
    PARTLY = "in part"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True, slots=True)
class Derivation:
    """``columns``: for ``renamed``, the old column that each new one is. ``rows``, ``groups``: a query over OLD_ROWS,
    or over OLD_GROUPS, and for ``in part`` over ``inputs``, relations and their form, as ``name@form``."""

    mode: AdaptMode
    why: str
    columns: Mapping[str, str] = field(default_factory=dict)
    rows: exp.Select | None = None
    groups: exp.Select | None = None
    inputs: frozenset[tuple[str, InputForm]] = frozenset()

    @property
    def reads(self) -> tuple[str, ...]:
        """Relations that are read beside what is stored."""
        return tuple(sorted({name for name, _ in self.inputs}))


def derivation_of(snapshot: Snapshot, old: Relation, new: tuple[ViewPlan, Schema]) -> Derivation:
    """Of a view as it is, and the plan and columns that it is to have. Plans are compared by names of columns, so both
    have to mean the same columns by them."""
    if means_others(snapshot, old):
        return Derivation(AdaptMode.RECOMPUTED, "columns that it reads have other names by now")
    # A large extent is in buckets by all of its columns, in their order.
    keeps_order = old.pins[Part.EXTENT].rows > REWRITE_ROWS
    found = plan_derivation((plan_of(snapshot, old), old.schema), new, keeps_order=keeps_order)
    return _cheaper(snapshot, old, new[0], found) if found.mode is AdaptMode.PARTLY else found


def _cheaper(snapshot: Snapshot, old: Relation, new: ViewPlan, found: Derivation) -> Derivation:
    """A part of the rows, or all of them, whichever is less work. Rows of the view cost the same read as computed, more
    where what goes is looked for among them."""
    held = old.pins[Part.EXTENT if found.groups is None else Part.GROUPS].rows
    takes_away = found.rows is not None and found.rows.find(exp.Except) is not None
    partly = _read(snapshot, found.reads) + held * (_LOOKED_FOR if takes_away else 1)
    anew = _read(snapshot, (relation.name for relation in new.reads)) + held
    if partly <= anew:
        return found
    return Derivation(AdaptMode.RECOMPUTED, f"that takes about {anew} rows, and a part of them {partly}")


def _read(snapshot: Snapshot, names: Iterable[str]) -> int:
    return sum(pin.rows for name in names for pin in snapshot.get(name).pins.values())


def plan_derivation(
    old: tuple[ViewPlan, Schema], new: tuple[ViewPlan, Schema], *, keeps_order: bool = False
) -> Derivation:
    """Of one view's old and new plan, each with the view's columns. ``keeps_order``: columns in another order need rows
    of their own."""
    try:
        if old[0].summary is not None and new[0].summary is not None:
            return _of_groups(old, new, keeps_order)
        return _of_rows(old, new, keeps_order)
    except NoMatch as refusal:
        return Derivation(AdaptMode.RECOMPUTED, str(refusal))


def _of_groups(old: tuple[ViewPlan, Schema], new: tuple[ViewPlan, Schema], keeps_order: bool) -> Derivation:
    before, after = old[0].summary, new[0].summary
    assert before is not None
    assert after is not None
    found = derived_groups(before, after, OLD_GROUPS)
    same_groups = before.schema == after.schema and _text(old[0]) == _text(new[0])
    shown, wanted = (plan.visible(OLD_GROUPS) for plan in (old[0], new[0]))
    if same_groups and shown.args.get("where") == wanted.args.get("where"):
        # Aggregates are numbered, each in its own definition: only what they are over the groups can be compared.
        values = [[item.this for item in query.expressions] for query in (shown, wanted)]
        renamed = _renamed(values[0], values[1], old[1], new[1])
        if renamed is not None and not (keeps_order and _reorders(renamed, old[1])):
            return Derivation(AdaptMode.RENAMED, "only names or the order of columns differ", renamed)
    mode = AdaptMode.PARTLY if found.inputs else AdaptMode.STORED
    return Derivation(mode, found.why, groups=found.query, inputs=found.inputs)


@lru_cache(maxsize=16)
def _text(plan: ViewPlan) -> str:
    """Asked for when a definition is given and when its rows are computed, each time of the same old plan."""
    return render(plan.first_groups().query)


def _of_rows(old: tuple[ViewPlan, Schema], new: tuple[ViewPlan, Schema], keeps_order: bool) -> Derivation:
    before, after = old[0].outline.rel, new[0].outline.rel
    if before is None or after is None:
        raise NoMatch("it is computed whole from its text")
    if old[0].summary is not None or new[0].summary is not None:
        raise NoMatch("one is kept in groups and the other is not")
    try:
        if isinstance(before, Union) or isinstance(after, Union):
            return _of_branches((before, old[1]), (after, new[1]))
        flat, query = flatten(before), flatten(after)
    except NotFlat as operator:
        raise NoMatch(f"{operator} is not compared") from None
    if flat.groups is not None or query.groups is not None:
        raise NoMatch("groups that are not kept as sums are not compared")
    return _of_flat((flat, old[1]), (query, new[1]), keeps_order)


def _of_flat(old: tuple[Flat, Schema], new: tuple[Flat, Schema], keeps_order: bool) -> Derivation:
    (flat, columns), (query, wanted) = old, new
    leaf = Leaf.build(TablePiece(OLD_ROWS, columns, Constraints()))
    names = dict(zip(flat.outputs, columns.names, strict=True))
    found = next(rewritings(query, Answering(OLD_ROWS, flat, leaf, None, names)))
    made = found.flat
    if found.reads != (OLD_ROWS,):
        why = "its rows are joined with what they lack" if found.rest is None else "only rows that it left out are read"
        return _partly(why, found.query)
    values = list(made.outputs.values())
    if not made.where and all(isinstance(value, exp.Column) for value in values):
        own = [exp.column(name) for name in columns.names]
        renamed = _renamed(own, [exp.column(value.name) for value in values], columns, wanted)
        if renamed is not None and not (keeps_order and _reorders(renamed, columns)):
            return Derivation(AdaptMode.RENAMED, "only names or the order of columns differ", renamed)
    return Derivation(AdaptMode.STORED, "its rows tell the new ones", rows=written(made))


def _of_branches(old: tuple[Operator, Schema], new: tuple[Operator, Schema]) -> Derivation:
    """Rows of sides of a UNION ALL that come are added, of those that go are taken away."""
    (before, columns), (after, wanted) = old, new
    if [column.type for column in columns] != [column.type for column in wanted]:
        raise NoMatch("sides of a UNION ALL are compared where types stay")
    if any("map<" in column.type or "collate" in column.type for column in columns):
        raise NoMatch("rows are not told apart by their columns alone")
    found = change(branches(before), branches(after))
    query: exp.Query = select(*(column(None, name) for name in columns.names)).from_(table(OLD_ROWS))
    for side in found.removed:
        query = exp.except_(query, written(side.flat), distinct=False, copy=False)
    for side in found.added:
        query = exp.union(query, written(side.flat), distinct=False, copy=False)
    pairs = zip(columns.names, wanted.names, strict=True)
    listed = select(*(named(column(None, name), now) for name, now in pairs)).from_(query.subquery("u"))
    if not found.added and not found.removed:
        return Derivation(AdaptMode.STORED, "its rows tell the new ones", rows=listed)
    return _partly("only sides that come or go are computed", listed)


def _partly(why: str, query: exp.Select) -> Derivation:
    """``query``: over OLD_ROWS, and over relations by their names."""
    beside = [one for one in query.find_all(exp.Table) if one.name != OLD_ROWS]
    inputs: frozenset[tuple[str, InputForm]] = frozenset((one.name, "rows") for one in beside)
    for one in beside:
        one.set("this", identifier(one.name + ROWS_SUFFIX))
    return Derivation(AdaptMode.PARTLY, why, rows=query, inputs=inputs)


def _renamed(old: Sequence[exp.Expr], new: Sequence[exp.Expr], before: Schema, after: Schema) -> dict[str, str] | None:
    """The old column of each new one, if each is there once and of its type. A name that stays means what it meant:
    who reads the view reads by names."""
    each_once = len(set(old)) == len(old) == len(new)
    if not each_once or set(old) != set(new):
        return None
    origin = {name: before.columns[old.index(one)] for name, one in zip(after.names, new, strict=True)}
    typed = all(origin[column.name].type == column.type for column in after)
    if any(before.find(name) is not None and before.find(name) != column for name, column in origin.items()):
        return None
    return {name: column.name for name, column in origin.items()} if typed else None


def _reorders(renamed: Mapping[str, str], before: Schema) -> bool:
    return tuple(renamed.values()) != tuple(before.names)


def renamed_schema(before: Schema, after: Schema, columns: Mapping[str, str]) -> Schema:
    """The new columns, in files under the names that they have there."""
    found = {column.name: column for column in before}
    return Schema(tuple(_placed(column, found[columns[column.name]]) for column in after))


def _placed(new: Column, old: Column) -> Column:
    plain = Column(new.name, new.type)
    return plain if plain.stored == old.stored else Column(new.name, new.type, place=old.stored)
