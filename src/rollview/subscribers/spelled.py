"""Signed rows as Spark and Delta spell changes.

Law: inserts and postimages add up, less deletes and preimages, to the same signed rows. In one commit what goes comes
before what comes; a preimage stands right before its postimage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa

from rollview.core.interval import Csn
from rollview.core.names import COUNT, CSN
from rollview.subscribers.batch import CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION
from rollview.subscribers.keys import Key
from rollview.types.arrow import is_atomic
from rollview.types.signed_rows import comparable, net_counts, separate_rows

_TIME = pa.timestamp("us", "UTC")


class ChangeType(StrEnum):
    DELETE = "delete"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    INSERT = "insert"


_ORDER = {ChangeType.DELETE: 0, ChangeType.UPDATE_PREIMAGE: 1, ChangeType.UPDATE_POSTIMAGE: 1, ChangeType.INSERT: 2}


def spell_changes(rows: pa.Table, key: Key, times: Mapping[Csn, datetime]) -> pa.Table:
    """``rows``: a view's columns, ``_count`` and ``_csn``."""
    columns = [name for name in rows.column_names if name not in (COUNT, CSN)]
    arranged = rows.select([*columns, CSN, COUNT])
    if all(is_atomic(field.type) for field in rows.schema):
        # A row of which only what is hidden changed comes and goes in one commit.
        arranged = net_counts(arranged)
    single = separate_rows(arranged)
    csns, signs = single[CSN].to_pylist(), single[COUNT].to_pylist()
    types, order = _types(csns, signs, _key_values(single, key))
    places = pa.array(order, pa.int64())
    taken = single.select(columns).take(places)
    return _with_added(taken, [types[place] for place in order], [csns[place] for place in order], times)


def spell_rows(rows: pa.Table, at: Csn, times: Mapping[Csn, datetime]) -> pa.Table:
    """Plain rows at a csn, as inserts."""
    return _with_added(rows, [ChangeType.INSERT] * rows.num_rows, [at] * rows.num_rows, times)


def _key_values(rows: pa.Table, key: Key) -> list[tuple[Any, ...]] | None:
    if key is None or not all(is_atomic(rows.schema.field(name).type) for name in key):
        return None
    if not key:
        return [()] * rows.num_rows
    return list(zip(*(column.to_pylist() for column in comparable(rows.select(list(key))).columns), strict=True))


def _types(
    csns: Sequence[Csn], signs: Sequence[int], keys: Sequence[tuple[Any, ...]] | None
) -> tuple[list[ChangeType], list[int]]:
    """What each row is, and the order in which they are told."""
    types = [ChangeType.INSERT if sign > 0 else ChangeType.DELETE for sign in signs]
    pair = list(range(len(csns)))
    for gone, come in _pairs(csns, signs, keys or ()):
        types[gone], types[come] = ChangeType.UPDATE_PREIMAGE, ChangeType.UPDATE_POSTIMAGE
        pair[come] = pair[gone]
    order = np.lexsort((signs, pair, [_ORDER[one] for one in types], csns)) if csns else np.array([], np.int64)
    return types, [int(place) for place in order]


def _pairs(csns: Sequence[Csn], signs: Sequence[int], keys: Sequence[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """The rows that go and come with one key in one commit, where there is one of each."""
    found: dict[tuple[Any, ...], tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for place, (csn, key) in enumerate(zip(csns, keys, strict=False)):
        found[csn, *key][signs[place] > 0].append(place)
    return [(gone[0], come[0]) for gone, come in found.values() if len(gone) == len(come) == 1]


def _with_added(rows: pa.Table, types: Sequence[str], csns: Sequence[Csn], times: Mapping[Csn, datetime]) -> pa.Table:
    added: dict[str, pa.Array] = {
        CHANGE_TYPE: pa.array([str(one) for one in types], pa.string()),
        COMMIT_VERSION: pa.array(csns, pa.int64()),
        COMMIT_TIMESTAMP: pa.array([times.get(csn) for csn in csns], _TIME),
    }
    for name, values in added.items():
        rows = rows.append_column(name, values)
    return rows
