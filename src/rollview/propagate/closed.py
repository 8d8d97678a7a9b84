"""Whether the keys that a child's delta refers to are all touched in its parent's delta.

Law: a pair (child, parent) is closed over an interval iff every foreign key value in the child's delta is a key in
the parent's delta. Then the parent's old rows that a term asks for are all known from its delta, and its base is not
read. New orders that come with their lines, and orders deleted with theirs, are of this kind. Deltas are small files,
so a look at two columns is cheap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from rollview.algebra.script import Motion
from rollview.catalog import Relation, RelationKind
from rollview.core.interval import Interval
from rollview.core.names import CSN, same
from rollview.core.schema import ForeignKey
from rollview.relations.plans import ClosedReferences
from rollview.relations.reader import stored_as
from rollview.store import parquet
from rollview.store.datafile import safe_places
from rollview.store.timed import delta_files

BOUND = 5_000_000
"""Deltas with more rows than this are not looked at."""


def closed_references(
    relations: Sequence[Relation],
    motion: Mapping[str, Motion],
    rows: Mapping[str, int],
    root: Path,
    interval: Interval,
) -> ClosedReferences:
    looked_at = [
        relation
        for relation in relations
        if relation.kind is RelationKind.TABLE and motion[relation.name].changed and rows[relation.name] <= BOUND
    ]
    return frozenset(
        (child.name, parent.name)
        for child in looked_at
        for foreign in child.constraints.foreign_keys
        for parent in looked_at
        if same(foreign.table, parent.name)
        and _only_reference(child, parent)
        and len(foreign.columns) == 1
        and _is_closed(child, parent, foreign, root, interval)
    )


def _only_reference(child: Relation, parent: Relation) -> bool:
    return sum(same(foreign.table, parent.name) for foreign in child.constraints.foreign_keys) == 1


def _is_closed(child: Relation, parent: Relation, foreign: ForeignKey, root: Path, interval: Interval) -> bool:
    asked = _values(child, foreign.columns[0], root, interval)
    touched = _values(parent, foreign.referenced[0], root, interval)
    return asked.type == touched.type and bool(pc.all(pc.is_in(pc.drop_null(asked), touched), min_count=0).as_py())


def _values(relation: Relation, column: str, root: Path, interval: Interval) -> pa.ChunkedArray:
    stored = stored_as(root, relation)
    declared = relation.schema.find(column)
    assert declared is not None
    name = declared.stored
    places = safe_places(stored.folder("delta").root, delta_files(stored, interval))
    tables = [parquet.load(place, [name, CSN]) for place in places]
    table = pa.concat_tables(tables, promote_options="permissive")
    inside = pc.and_(pc.greater(table[CSN], interval.after), pc.less_equal(table[CSN], interval.through))
    return table.filter(inside)[name]
