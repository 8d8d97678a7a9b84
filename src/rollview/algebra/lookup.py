"""What a term reads of the input it joins next: all of it, or only what declared keys leave in doubt.

Laws, for a parent P with key k and a child C whose foreign key refers to it; both constraints hold at every csn:

* by key: for k touched in (a, b], P@a[k] is the row that the first change of k deletes, or nothing if that only
  inserts. So P@a is read for untouched keys alone.
* by foreign key: where ΔP starts the term, C@a[k] is empty if the first change of k only inserts; it is −ΔC(a, c][k]
  if the first change, at c, only deletes, because C@c[k] is empty; C@a is read only for keys whose first change is an
  update.

When no key was updated in the interval the second law reads no base rows at all
(Chen et al., *Multiversion Based View Maintenance*, section 5.1).

* within: if ΔP is one unit of work, updates no key, and holds every key that ΔC refers to, then each such key has one
  row in ΔP. A child lives within one life of its parent, so that row is the parent of every change of the child, before
  or after: Δ(C ⋈ P) = ΔC ⋈ |ΔP|, and the term of ΔP adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rollview.algebra.expressions import (
    all_of,
    bag_union,
    big,
    broadcast,
    column,
    gathered,
    named,
    number,
    select,
    table,
)
from rollview.algebra.operator import Input
from rollview.algebra.operators.leaf import Leaf
from rollview.algebra.product import Product
from rollview.algebra.script import Motion, Script
from rollview.algebra.types import compared_one_to_one
from rollview.core.names import COUNT, CSN, same

_FIRST = "_rv_first"


@dataclass(frozen=True, slots=True)
class Partner:
    """The rows to join next. ``timed``: they carry a csn of their own."""

    queries: tuple[exp.Query, ...]
    timed: bool
    reasons: tuple[str, ...] = ()
    name: str | None = None
    only_changes: bool = False
    """No base row is among them."""

    @property
    def empty(self) -> bool:
        return self.name is None and not self.queries

    def rows(self, alias: str) -> exp.Expr:
        if self.name is not None:
            return table(self.name, alias)
        rows = bag_union(self.queries)
        return (gathered(select(exp.Star()).from_(rows.subquery("u"))) if self.only_changes else rows).subquery(alias)


def flat_name(alias: str, name: str) -> str:
    """What ``alias.name`` is called in the rows joined so far."""
    return f"{alias}.{name}"


def plan(script: Script, rel: Product, start: Input, source: Input, ready: Sequence[exp.Expr], so_far: str) -> Partner:
    changed = script.changed(source.rel)
    is_later = rel.sources.index(source) > rel.sources.index(start)
    timed = changed and (is_later or not script.starts(source.rel))
    changes = (_changes(script, source),) if timed else ()
    if isinstance(source.rel, Leaf):
        equalities = _equalities(rel, ready, source.alias)
        # A foreign key holds at one csn, and says nothing of relations at several.
        by_foreign_key = _by_foreign_key(script, start, source, equalities) if script.moving is None else None
        if by_foreign_key is not None:
            queries, reason, reads_no_base = by_foreign_key
            return _partner(queries, changes, timed, reason, reads_no_base)
        key = _key_compared(source.rel, equalities)
        if key and changed:
            queries, reason = _by_key(script, start, source, key, equalities, so_far)
            return _partner(queries, changes, timed, reason, _is_closed(script, start, source.rel, equalities, key))
    if not timed:
        return all_of_it(script, source)
    if script.is_small(source.rel):
        return Partner((), timed, name=script.timed(source.rel))
    state = select(*_columns(source), column(None, COUNT)).from_(table(script.old(source.rel)))
    return Partner((_with_csn(state, timed), *changes), timed)


def _partner(
    queries: tuple[exp.Select, ...], changes: tuple[exp.Query, ...], timed: bool, reason: str, only_changes: bool
) -> Partner:
    known = tuple(_with_csn(query, timed) for query in queries)
    return Partner(known + changes, timed, (reason,), only_changes=only_changes)


def lives_within(
    script: Script, rel: Product, child: Input, parent: Input, conditions: Sequence[exp.Expr]
) -> Partner | None:
    """The parent rows with which the child's changes alone make the join's delta; None if that is not known."""
    if not isinstance(parent.rel, Leaf):
        return None
    equalities = _equalities(rel, conditions, parent.alias)
    key = _key_compared(parent.rel, equalities)
    if not _is_closed(script, child, parent.rel, equalities, key):
        return None
    motion = _motion_of_key(script, parent.rel, key)
    if motion.updates or not motion.one_csn:
        return None
    rows = select(*_columns(parent), named(big(1), COUNT)).from_(table(script.delta(parent.rel)))
    reason = f"{parent.alias} by key, and all keys are in its delta, none updated: no base rows read, no other term"
    return Partner((rows,), False, (reason,), only_changes=True)


def all_of_it(script: Script, source: Input) -> Partner:
    """The old state, whole."""
    return Partner((), False, name=script.old(source.rel))


def _changes(script: Script, source: Input) -> exp.Query:
    return select(*_columns(source), column(None, COUNT), column(None, CSN)).from_(table(script.delta(source.rel)))


def _with_csn(query: exp.Select, timed: bool) -> exp.Select:
    return query.select(named(big(0), CSN), copy=False) if timed else query


def _columns(source: Input, alias: str | None = None) -> list[exp.Expr]:
    return [column(alias, name) for name in source.rel.columns]


Equalities = dict[str, exp.Column]
"""Column of the next input (folded) to the column already there whose value it must be."""


def _equalities(rel: Product, ready: Sequence[exp.Expr], alias: str) -> Equalities:
    found: Equalities = {}
    for condition in ready:
        if not isinstance(condition, exp.EQ):
            continue
        sides = condition.this, condition.expression
        for ours, theirs in (sides, sides[::-1]):
            if not isinstance(ours, exp.Column) or not isinstance(theirs, exp.Column):
                continue
            if ours.table == alias != theirs.table and compared_one_to_one(rel.sources, ours, theirs):
                found.setdefault(ours.name.lower(), theirs)
    return found


def _key_compared(source: Leaf, equalities: Equalities) -> tuple[str, ...]:
    """A declared key all of whose columns the join compares, none if there is none; its columns are never NULL."""
    declared = source.constraints
    not_null = {name.lower() for name in (*declared.not_null, *declared.primary_key)}
    for key in declared.keys:
        folded = [name.lower() for name in key]
        if all(name in equalities for name in folded) and set(folded) <= not_null:
            return key
    return ()


def _by_key(
    script: Script, start: Input, source: Input, key: tuple[str, ...], equalities: Equalities, so_far: str
) -> tuple[tuple[exp.Select, ...], str]:
    assert isinstance(source.rel, Leaf)
    known = (_first_images(script, source, key),) if script.motion_of(source.rel.relation).deletes else ()
    if _is_closed(script, start, source.rel, equalities, key):
        return known, f"{source.alias} by key, and all keys are in its delta: no base rows read"
    untouched = _untouched(script, source, key, equalities, so_far)
    return (*known, untouched), f"{source.alias} by key: base rows only of keys the delta does not touch"


def _is_closed(script: Script, start: Input, source: Leaf, equalities: Equalities, key: tuple[str, ...]) -> bool:
    """Every key this term asks for is touched in the input's own delta, as was seen before planning."""
    if not isinstance(start.rel, Leaf) or (start.rel.relation, source.relation) not in script.closed:
        return False
    asked = {name.lower(): equalities[name.lower()] for name in key}
    for foreign in start.rel.constraints.foreign_keys:
        pairs = dict(zip((name.lower() for name in foreign.referenced), foreign.columns, strict=True))
        if same(foreign.table, source.relation) and pairs.keys() == asked.keys():
            return all(asked[k].table == start.alias and same(asked[k].name, pairs[k]) for k in pairs)
    return False


def _untouched(script: Script, source: Input, key: tuple[str, ...], equalities: Equalities, so_far: str) -> exp.Select:
    delta, old = script.delta(source.rel), script.old(source.rel)
    asked = [equalities[name.lower()] for name in key]
    wanted = [named(column("t", flat_name(ours.table, ours.name)), name) for ours, name in zip(asked, key, strict=True)]
    touched = select(number(1)).from_(table(delta, "d"))
    touched = touched.where(
        *[exp.EQ(this=column("d", name), expression=item.this.copy()) for name, item in zip(key, wanted, strict=True)],
        copy=False,
    )
    missing = select(*wanted).distinct().from_(table(so_far, "t"))
    missing = missing.where(exp.Not(this=exp.Exists(this=touched)), copy=False)
    needed = script.add(f"keys_of_{source.alias}", missing)
    matches = all_of(exp.EQ(this=column("o", name), expression=column("k", name)) for name in key)
    untouched = (
        select(*_columns(source, "o"), column("o", COUNT))
        .from_(table(old, "o"))
        .join(table(needed, "k"), on=matches, copy=False)
    )
    return broadcast(untouched, "k") if script.small else untouched


def _first_images(script: Script, source: Input, key: tuple[str, ...]) -> exp.Select:
    """P@a of the touched keys: what their first change deletes."""
    assert isinstance(source.rel, Leaf)
    deleted = exp.LT(this=column(None, COUNT), expression=number(0))
    if script.motion_of(source.rel.relation).one_csn:
        rows = select(*_columns(source), named(big(1), COUNT)).from_(table(script.delta(source.rel)))
        return rows.where(deleted, copy=False)
    first = exp.Window(this=exp.Min(this=column(None, CSN)), partition_by=[column(None, name) for name in key])
    ranked = select(*_columns(source), column(None, COUNT), column(None, CSN), named(first, _FIRST))
    ranked = ranked.from_(table(script.delta(source.rel)))
    return (
        select(*_columns(source), named(big(1), COUNT))
        .from_(ranked.subquery("f"))
        .where(
            exp.EQ(this=column(None, CSN), expression=column(None, _FIRST)),
            deleted,
            copy=False,
        )
    )


def _by_foreign_key(
    script: Script, start: Input, source: Input, equalities: Equalities
) -> tuple[tuple[exp.Select, ...], str, bool] | None:
    """The old children to join, why these, and whether no base row is among them."""
    assert isinstance(source.rel, Leaf)
    if not isinstance(start.rel, Leaf):
        return None
    pairs = _foreign_key_compared(script, start, source, equalities)
    if pairs is None:
        return None
    motion = _motion_of_key(script, start.rel, [parent for _, parent in pairs])
    what = f"foreign key {source.rel.relation} → {start.rel.relation}"
    queries: list[exp.Select] = []
    if motion.deletes and script.changed(source.rel):
        queries.append(_children_deleted_too(script, start, source, pairs))
    if motion.updates:
        queries.append(_children_of_updated(script, start, source, pairs))
        return tuple(queries), f"{what}: base rows only of keys that were updated", False
    if queries:
        return tuple(queries), f"{what} and no key updated: no base rows read", True
    return (), f"{what} and only new keys: no old row can match", True


def _motion_of_key(script: Script, parent: Leaf, key: Sequence[str]) -> Motion:
    """Updates are told apart by primary key; a row that got another one may have kept this key."""
    motion = script.motion_of(parent.relation)
    primary = {name.lower() for name in parent.constraints.primary_key}
    return motion if {name.lower() for name in key} == primary else replace(motion, updates=motion.deletes)


def _foreign_key_compared(
    script: Script, start: Input, source: Input, equalities: Equalities
) -> list[tuple[str, str]] | None:
    """Pairs (child column, parent key column) if the join compares a whole foreign key to the starting delta."""
    assert isinstance(start.rel, Leaf)
    assert isinstance(source.rel, Leaf)
    for foreign in source.rel.constraints.foreign_keys:
        pairs = list(zip(foreign.columns, foreign.referenced, strict=True))
        if same(foreign.table, start.rel.relation) and all(
            (ours := equalities.get(child.lower())) is not None
            and ours.table == start.alias
            and same(ours.name, parent)
            for child, parent in pairs
        ):
            return pairs
    return None


def _first_changes(script: Script, start: Input, pairs: list[tuple[str, str]]) -> str:
    """Per touched key of the parent: the csn of its first change, and whether that deletes and inserts."""
    key = ("first changes", script.delta(start.rel), *(parent for _, parent in pairs))
    return script.once(key, f"first_changes_of_{start.alias}", lambda: _first_changes_query(script, start, pairs))


def _first_changes_query(script: Script, start: Input, pairs: list[tuple[str, str]]) -> exp.Query:
    assert isinstance(start.rel, Leaf)
    motion = _motion_of_key(script, start.rel, [parent for _, parent in pairs])
    keys, count = [column(None, parent) for _, parent in pairs], column(None, COUNT)
    rows: exp.Expr = table(script.delta(start.rel))
    if not motion.one_csn:
        first = exp.Window(this=exp.Min(this=column(None, CSN)), partition_by=[key.copy() for key in keys])
        ranked = select(*keys, count, column(None, CSN), named(first, _FIRST)).from_(rows)
        is_first = exp.EQ(this=column(None, CSN), expression=column(None, _FIRST))
        rows = (
            select(*keys, count, column(None, CSN))
            .from_(ranked.subquery("r"))
            .where(is_first, copy=False)
            .subquery("f")
        )
    if not motion.updates:
        return select(*keys, column(None, CSN), named(count, "lowest"), named(count, "highest")).from_(rows)
    lowest, highest = exp.Min(this=count.copy()), exp.Max(this=count.copy())
    query = select(*keys, column(None, CSN), named(lowest, "lowest"), named(highest, "highest")).from_(rows)
    return query.group_by(*keys, column(None, CSN), copy=False)


def _children_deleted_too(script: Script, start: Input, source: Input, pairs: list[tuple[str, str]]) -> exp.Select:
    first = _first_changes(script, start, pairs)
    undone = exp.Neg(this=column("c", COUNT))
    return (
        select(*_columns(source, "c"), named(undone, COUNT))
        .from_(table(script.delta(source.rel), "c"))
        .join(table(first, "f"), on=_child_matches("c", "f", pairs), copy=False)
        .where(
            exp.LT(this=column("f", "highest"), expression=number(0)),
            exp.LTE(this=column("c", CSN), expression=column("f", CSN)),
            copy=False,
        )
    )


def _children_of_updated(script: Script, start: Input, source: Input, pairs: list[tuple[str, str]]) -> exp.Select:
    first = _first_changes(script, start, pairs)
    updated = select(*[column(None, parent) for _, parent in pairs]).from_(table(first))
    updated = updated.where(
        exp.LT(this=column(None, "lowest"), expression=number(0)),
        exp.GT(this=column(None, "highest"), expression=number(0)),
        copy=False,
    )
    name = script.add(f"updated_keys_of_{start.alias}", updated)
    query = (
        select(*_columns(source, "c"), column("c", COUNT))
        .from_(table(script.old(source.rel), "c"))
        .join(table(name, "f"), on=_child_matches("c", "f", pairs), copy=False)
    )
    return broadcast(query, "f") if script.small else query


def _child_matches(child: str, parent: str, pairs: list[tuple[str, str]]) -> exp.Expr:
    return all_of(exp.EQ(this=column(child, ours), expression=column(parent, theirs)) for ours, theirs in pairs)
