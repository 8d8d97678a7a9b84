"""A view whose definition changed: what its rows and changes mean across the csn at which it did.

Law: where a definition of its own rows begins at csn s, the part ``bridge`` is V_new@s - π(V_old@(s-1)), and π maps
columns: one of the new definition has the values of the old column that it goes on from, or NULL. So for a < s <= b the
changes over (a, b], in the columns of b, are π(changes over (a, s-1]), the bridge, and the changes over (s, b].
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from rollview.catalog import Part, Relation, Snapshot
from rollview.core.interval import Csn
from rollview.core.lazy import lazy_module
from rollview.core.names import quoted
from rollview.core.schema import Column, Schema
from rollview.errors import OutOfReach
from rollview.relations.marks import high_water_mark

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as sf
else:
    sf = lazy_module("pyspark.sql.functions")

GOES_ON_FROM = "goes_on_from"
"""The fact of a definition that names the old column of each new one; what it does not name is NULL before."""


def began_anew(relation: Relation) -> Csn | None:
    """The csn from which a view has the rows of its present definition, where an earlier one had others."""
    pin = relation.pins.get(Part.BRIDGE)
    return None if pin is None else pin.through


def same_columns_since(view: Relation) -> Csn:
    """The csn from which a view has the rows and the columns that it has here. Its extent is not brought below it."""
    held = [one for one in view.versions if not one.pending and (view.until is None or one.csn < view.until)]
    renamed = (then.csn for before, then in pairwise(held) if before.schema != then.schema)
    return max([began_anew(view) or 0, *renamed])


def earlier(snapshot: Snapshot, relation: Relation) -> tuple[Snapshot, Relation] | None:
    """The catalog and the view as they are just below the csn at which its definition's rows began; None if the view
    cannot be read there."""
    since = began_anew(relation)
    if since is None or relation.pins[Part.DELTA].after > since:
        return None
    then = snapshot.at(since - 1)
    before = then.get(relation.name)
    return None if before.folder == relation.folder else (then, before)


def before_next_step(snapshot: Snapshot, name: str) -> Snapshot:
    """The catalog with all views as they are defined where a view's next changes lie."""
    return snapshot.at(high_water_mark(snapshot, snapshot.get(name)) + 1)


def check_defined(view: Relation, at: Csn) -> None:
    """Refuse a csn from which on a view has a definition of which it has no rows yet."""
    waiting = view.pending
    if waiting is not None and at >= waiting.csn:
        raise OutOfReach(
            f"View '{view.name}' has another definition from csn {waiting.csn} on, and no rows of it yet.",
            hint=f"Run: rollview refresh --select {view.name}",
            name=view.name,
            csn=at,
            newest=waiting.csn - 1,
        )


def redefined(snapshot: Snapshot, relation: Relation) -> tuple[Csn, ...]:
    """The csns at which the relation, or a view below it, got another definition."""
    below = (relation, *snapshot.below(relation.name))
    return tuple(sorted({version.csn for one in below for version in one.versions[1:]}))


def columns_going_on(old: Schema, new: Schema) -> dict[str, str]:
    """Columns of one name and type are one column."""
    known = {(column.name, column.type) for column in old}
    return {column.name: column.name for column in new if (column.name, column.type) in known}


def carried(data: DataFrame, new: Relation, *more: str) -> DataFrame:
    """π: rows or changes of the definition before, in the columns of the new one. ``more``: columns to keep."""
    assert new.definition is not None
    origin = new.definition.facts.get(GOES_ON_FROM, {})
    return data.select(*(_carried(column, origin) for column in new.schema), *more)


def _carried(column: Column, origin: Mapping[str, str]) -> SparkColumn:
    old = origin.get(column.name)
    value = sf.lit(None) if old is None else sf.col(quoted(old))
    return value.cast(column.type).alias(column.name)
