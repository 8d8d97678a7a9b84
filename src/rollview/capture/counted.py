"""How many rows of a table each entry inserts, deletes and updates.

Law: an updated row is a key that both goes and comes; without a key nobody can say.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.catalog import Change, Relation
from rollview.core.names import COUNT, CSN

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


def numbers_of(rows: pa.Table) -> Numbers:
    """The csn of each row, or the number of its entry."""
    return cast(Numbers, rows[CSN].to_numpy())


def counted(relation: Relation, rows: pa.Table) -> dict[int, Change]:
    """What each csn, or entry by its number, does to the table, by signed rows that are its net effect."""
    known, places = np.unique(numbers_of(rows), return_inverse=True)
    is_new, key = rows[COUNT].to_numpy() > 0, relation.constraints.primary_key
    come = np.bincount(places[is_new], minlength=len(known)).tolist()
    gone = np.bincount(places[~is_new], minlength=len(known)).tolist()
    both = _updated(rows, key) if key and is_new.any() and not is_new.all() else Counter[int]()
    return {
        number: Change(relation.name, come[at], gone[at], both[number] if key else None)
        for at, number in enumerate(known.tolist())
    }


def _updated(rows: pa.Table, key: tuple[str, ...]) -> Counter[int]:
    places = [f"k{place}" for place in range(len(key))]
    by_key = rows.select([*key, CSN, COUNT]).rename_columns([*places, CSN, COUNT]).group_by([*places, CSN])
    ends = by_key.aggregate([(COUNT, "min"), (COUNT, "max")])
    both = pc.and_(pc.less(ends[f"{COUNT}_min"], 0), pc.greater(ends[f"{COUNT}_max"], 0))
    return Counter(ends.filter(both)[CSN].to_pylist())
