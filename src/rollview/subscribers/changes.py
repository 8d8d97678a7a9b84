"""A view's rows and changes in this process.

Law: the changes over an interval are the same whoever asks, and however often. An interval ends after a commit, never
inside one, and never strictly inside a compressed stretch.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from rollview.catalog import Relation, Snapshot
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.publish.workplace import Workplace
from rollview.relations.plans import high_water_mark, plan_of
from rollview.relations.reader import stored_as
from rollview.relations.shared import changes_from
from rollview.store import timed
from rollview.store.datafile import DataFile
from rollview.store.timed import Stored, csns_of, delta_files
from rollview.store.writing import BOUND
from rollview.subscribers.keys import Key
from rollview.subscribers.spelled import spell_changes, spell_rows


def find_end(place: Workplace, snapshot: Snapshot, view: Relation, after: Csn, most_rows: int) -> Csn | None:
    """Where a batch ends that begins there: after the commit with which there are so many rows, or at the high-water
    mark. None if nothing changed."""
    mark = high_water_mark(snapshot, view)
    stored = _stored(place, snapshot, view)
    files = sorted(delta_files(stored, Interval(after, mark)), key=csns_of) if mark > after else []
    counts: Counter[Csn] = Counter()
    for at, file in enumerate(files):
        counts.update(_rows_by_csn(stored, file, Interval(after, mark)))
        complete = csns_of(files[at + 1])[0] - 1 if at + 1 < len(files) else mark
        end = _cut(counts, complete, most_rows)
        if end is not None:
            return end
    return mark if counts else None


def read_changes(place: Workplace, snapshot: Snapshot, view: Relation, interval: Interval, key: Key) -> pa.Table:
    stored = _stored(place, snapshot, view)
    # What a csn changed may have come table by table: only its net effect counts.
    if stored.hidden is None and not changes_from(snapshot, view).places:
        rows = stored.folder("delta").load(delta_files(stored, interval), interval)
    else:
        rows = place.reader().changes(view.name, interval).toArrow()
    csns = set(rows[CSN].unique().to_pylist())
    times = {csn: time for csn, time in place.catalog.commit_times(interval).items() if csn in csns}
    return spell_changes(rows, key, times)


def read_rows(place: Workplace, snapshot: Snapshot, view: Relation, at: Csn) -> pa.Table:
    """All rows at a csn in reach."""
    shown = _stored(place, snapshot, view, visible=True)
    stored = _stored(place, snapshot, view)
    plain = shown.snapshot_csn == at or (stored.hidden is None and stored.root == shown.root)
    rows = timed.few_rows(shown, at, BOUND) if plain else None
    if rows is None:
        rows = place.reader().rows(view.name, at).toArrow()
    times = place.catalog.commit_times(Interval(max(0, at - 1), at))
    return spell_rows(rows.select(list(view.schema.names)), at, times)


def _stored(place: Workplace, snapshot: Snapshot, view: Relation, *, visible: bool = False) -> Stored:
    if visible:
        return stored_as(place.data, view)
    told_by = changes_from(snapshot, view)
    return stored_as(place.data, told_by, plan_of(snapshot, told_by).hidden)


def _rows_by_csn(stored: Stored, file: DataFile, interval: Interval) -> dict[Csn, int]:
    rows = stored.folder("delta").load_counts(file, interval)
    csns, where = np.unique(rows[CSN].to_numpy(), return_inverse=True)
    counts = np.bincount(where, np.abs(rows[COUNT].to_numpy()), len(csns))
    return dict(zip(csns.tolist(), counts.astype(int).tolist(), strict=True))


def _cut(counts: Counter[Csn], complete: Csn, most_rows: int) -> Csn | None:
    """The first csn with which there are enough rows, if all up to there are counted."""
    total = 0
    for csn in sorted(counts):
        total += counts[csn]
        if total >= most_rows:
            return csn if csn <= complete else None
    return None
