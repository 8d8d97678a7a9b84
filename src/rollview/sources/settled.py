"""Units of work as signed rows with their csns.

Law: a unit of work's rows are its net effect: what goes has ``_count`` -1, what comes +1, and what does both is not
there. A unit whose net effect is nothing has no csn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.catalog import Change, Relation
from rollview.core.interval import Csn
from rollview.core.names import COUNT, CSN
from rollview.errors import BadValue
from rollview.sources.arrange import Entry
from rollview.sources.held import difference
from rollview.sources.protocol import Changes, Row
from rollview.sources.values import UnfitError, as_table, net, updated

Remote = tuple[str, str]
"""A source, and its own name of one of its tables."""


@dataclass(frozen=True, slots=True)
class SettledEntry:
    entry: Entry
    counts: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rows that need not all be in memory."""

    each: Callable[[], Iterable[pa.Table]]
    num_rows: int


@dataclass(frozen=True, slots=True)
class Settled:
    """``tables``: signed rows with csns."""

    entries: tuple[SettledEntry, ...]
    tables: Mapping[Remote, Pieces]
    relations: Mapping[Remote, Relation]

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in self.tables.values())


@dataclass(slots=True)
class _Signed:
    """Rows of one table of several units, with their counts, csns and the positions that they came from."""

    rows: list[Row]
    counts: list[int]
    csns: list[Csn]
    positions: list[str]

    def add(self, rows: Sequence[Row], count: int, csn: Csn, position: str) -> None:
        self.rows.extend(rows)
        self.counts.extend([count] * len(rows))
        self.csns.extend([csn] * len(rows))
        self.positions.extend([position] * len(rows))


def comes_alone(entry: Entry) -> bool:
    """Whether a table is compared with all that came before, or changed by more rows than fit into memory."""
    return any(c.replaces or c.spools for one in entry.arrived for c in one.unit.changes.values())


def settle(root: Path, relations: Mapping[Remote, Relation], entries: Sequence[Entry], first: Csn) -> Settled:
    """``first``: the csn of the first entry that changes something."""
    if any(map(comes_alone, entries)):
        (entry,) = entries
        return _alone(root, relations, entry, first)
    signed = {remote: _Signed([], [], [], []) for remote in relations}
    kept: list[SettledEntry] = []
    for entry in entries:
        counts = _take(signed, relations, entry, first + len(kept))
        if counts:
            kept.append(SettledEntry(entry, counts))
    tables = {remote: _table(remote[0], relations[remote], one) for remote, one in signed.items() if one.rows}
    return Settled(tuple(kept), {remote: _in_memory(table) for remote, table in tables.items()}, relations)


def _in_memory(table: pa.Table) -> Pieces:
    return Pieces(lambda: (table,), table.num_rows)


def _changes(entry: Entry) -> Mapping[Remote, tuple[Changes, str]]:
    """What the entry does to each table, and the last position that it came from."""
    found: dict[Remote, tuple[Changes, str]] = {}
    for one in entry.arrived:
        for name, changes in one.unit.changes.items():
            remote = (one.source, name)
            before = found.get(remote)
            found[remote] = (changes if before is None else _both(before[0], changes), one.unit.position)
    return found


def _both(first: Changes, then: Changes) -> Changes:
    if then.replaces:
        return then
    assert not isinstance(first.after, pa.Table)
    assert not isinstance(then.after, pa.Table)
    spools = (*first.spools, *then.spools)
    return Changes([*first.before, *then.before], [*first.after, *then.after], first.replaces, spools)


def _take(
    signed: Mapping[Remote, _Signed], relations: Mapping[Remote, Relation], entry: Entry, csn: Csn
) -> tuple[Change, ...]:
    counts = []
    for remote, (changes, position) in _changes(entry).items():
        relation = relations[remote]
        assert not isinstance(changes.after, pa.Table)
        gone, come = net(changes.before, changes.after, relation.schema)
        if gone or come:
            signed[remote].add(gone, -1, csn, position)
            signed[remote].add(come, +1, csn, position)
            both = updated(gone, come, relation.schema, relation.constraints.primary_key)
            counts.append(Change(relation.name, len(come), len(gone), both))
    return tuple(counts)


def _alone(root: Path, relations: Mapping[Remote, Relation], entry: Entry, csn: Csn) -> Settled:
    tables: dict[Remote, Pieces] = {}
    counts: list[Change] = []
    for remote, (changes, position) in _changes(entry).items():
        relation = relations[remote]

        def pieces(
            source: str = remote[0], relation: Relation = relation, changes: Changes = changes, at: str = position
        ) -> Iterator[pa.Table]:
            for rows in _signed_pieces(root, source, relation, changes, at):
                yield rows.append_column(CSN, pa.array(np.full(rows.num_rows, csn, dtype=np.int64)))

        if not changes.spools or changes.replaces:
            rows = next(pieces())
            found, whole = [_counted(relation, rows)], _in_memory(rows)
        else:
            # Equal keys are in one piece, so what the pieces count adds up.
            found = [_counted(relation, rows) for rows in pieces()]
            whole = Pieces(pieces, sum(one.inserted + one.deleted for one in found))
        if whole.num_rows:
            tables[remote] = whole
            counts.append(_sum(relation, found))
    return Settled((SettledEntry(entry, tuple(counts)),) if counts else (), tables, relations)


def _signed_pieces(root: Path, source: str, relation: Relation, changes: Changes, position: str) -> Iterator[pa.Table]:
    if changes.replaces and changes.spools:
        come = [rows.filter(pc.greater(rows[COUNT], 0)).drop([COUNT]) for s in changes.spools for rows in s.pieces()]
        assert not isinstance(changes.after, pa.Table)
        whole = pa.concat_tables([as_table(changes.after, relation.schema), *come])
        changes = Changes(after=whole, replaces=True)
    if changes.replaces or changes.before or changes.after or not changes.spools:
        yield _replaced(root, source, relation, changes, position)
    for spool in changes.spools:
        yield from spool.pieces()


def _sum(relation: Relation, counts: Sequence[Change]) -> Change:
    inserted, deleted = sum(one.inserted for one in counts), sum(one.deleted for one in counts)
    updated = sum(one.updated or 0 for one in counts) if relation.constraints.primary_key else None
    return Change(relation.name, inserted, deleted, updated)


def _replaced(root: Path, source: str, relation: Relation, changes: Changes, position: str) -> pa.Table:
    """The signed rows of one table, whether it is replaced or merely changed beside one that is."""
    schema = relation.schema
    try:
        if isinstance(changes.after, pa.Table):
            return difference(root, relation, changes.after)
        gone, come = net(changes.before, changes.after, schema)
        if changes.replaces:
            return difference(root, relation, as_table(come, schema))
        signs = np.repeat(np.array([-1, 1], dtype=np.int64), [len(gone), len(come)])
        return as_table([*gone, *come], schema).append_column(COUNT, pa.array(signs))
    except UnfitError as error:
        raise BadValue(source, relation.name, error.column, error.reason, position) from None


def _counted(relation: Relation, rows: pa.Table) -> Change:
    come = int(pc.sum(pc.greater(rows[COUNT], 0)).as_py() or 0)
    key = relation.constraints.primary_key
    if not key:
        return Change(relation.name, come, rows.num_rows - come)
    places = [f"k{place}" for place in range(len(key))]
    by_key = rows.select([*key, COUNT]).rename_columns([*places, COUNT]).group_by(places)
    ends = by_key.aggregate([(COUNT, "min"), (COUNT, "max")])
    both = pc.and_(pc.less(ends[f"{COUNT}_min"], 0), pc.greater(ends[f"{COUNT}_max"], 0))
    return Change(relation.name, come, rows.num_rows - come, int(pc.sum(both).as_py() or 0))


def _table(source: str, relation: Relation, signed: _Signed) -> pa.Table:
    try:
        rows = as_table(signed.rows, relation.schema)
    except UnfitError as error:
        position = signed.positions[error.place] if error.place is not None else None
        raise BadValue(source, relation.name, error.column, error.reason, position) from None
    counts, csns = np.array(signed.counts, dtype=np.int64), np.array(signed.csns, dtype=np.int64)
    return rows.append_column(COUNT, pa.array(counts)).append_column(CSN, pa.array(csns))
