"""Units of work as signed rows with their csns.

Law: a unit of work's rows are its net effect: what goes has ``_count`` -1, what comes +1, and what does both is not
there. A unit whose net effect is nothing has no csn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.capture.arrange import Entry
from rollview.capture.counted import Numbers, counted, numbers_of
from rollview.capture.stored_rows import difference, stored_pieces
from rollview.catalog import Change, Relation
from rollview.core.interval import Csn
from rollview.core.names import COUNT, CSN
from rollview.errors import BadValue
from rollview.sources.protocol import Changes, Rows, Spooled
from rollview.sources.sections import Section, joined
from rollview.sources.values import UnfitError, as_one, as_rows
from rollview.types.signed_rows import net_rows

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
    """``tables``: signed rows with csns. ``states``: all rows of tables that are replaced, and of which none were kept;
    nobody can say what changed in those."""

    entries: tuple[SettledEntry, ...]
    tables: Mapping[Remote, Pieces]
    relations: Mapping[Remote, Relation]
    states: Mapping[Remote, Pieces] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(table.num_rows for table in (*self.tables.values(), *self.states.values()))


@dataclass(slots=True)
class _Gathered:
    """Rows of one table that go, or that come, by several entries, each known by its number."""

    pieces: list[Rows] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)

    def add(self, rows: Rows, number: int, position: str) -> None:
        if len(rows):
            self.pieces.append(rows)
            self.numbers.append(number)
            self.positions.append(position)

    def table(self, source: str, relation: Relation, count: int) -> pa.Table:
        """The rows with the numbers of their entries in place of csns, and with ``_count``."""
        ends = np.cumsum([len(rows) for rows in self.pieces], dtype=np.int64)
        try:
            rows = as_one(self.pieces, relation.schema)
        except UnfitError as error:
            at = self.positions[int(np.searchsorted(ends, error.place or 0, "right"))]
            raise BadValue(source, relation.name, error.column, error.reason, at) from None
        numbers = np.repeat(np.array(self.numbers, dtype=np.int64), np.diff(ends, prepend=0))
        counts = pa.array(np.full(rows.num_rows, count, dtype=np.int64))
        return rows.append_column(CSN, pa.array(numbers)).append_column(COUNT, counts)


def comes_alone(entry: Entry) -> bool:
    """Whether a table is compared with all that came before, or changed by more rows than fit into memory."""
    return any(c.replaces or c.spools for one in entry.arrived for c in one.unit.changes.values())


def settle(root: Path, relations: Mapping[Remote, Relation], entries: Sequence[Entry], first: Csn) -> Settled:
    """``first``: the csn of the first entry that changes something."""
    if any(map(comes_alone, entries)):
        (entry,) = entries
        return _alone(root, relations, entry, first)
    tables = _net_effects(relations, entries)
    kept = np.unique(np.concatenate([np.empty(0, np.int64), *(numbers_of(rows) for rows in tables.values())]))
    changes = {remote: counted(relations[remote], rows) for remote, rows in tables.items()}
    settled = [
        SettledEntry(entries[number], tuple(one[number] for one in changes.values() if number in one))
        for number in kept.tolist()
    ]
    pieces = {remote: _in_memory(_with_csns(rows, kept, first)) for remote, rows in tables.items()}
    return Settled(tuple(settled), pieces, relations)


def _in_memory(table: pa.Table) -> Pieces:
    return Pieces(lambda: (table,), table.num_rows)


def _with_csns(rows: pa.Table, kept: Numbers, first: Csn) -> pa.Table:
    """``kept``: the numbers of the entries that change something, which have csns from ``first`` on."""
    csns = pa.array(np.searchsorted(kept, numbers_of(rows)) + first)
    return rows.set_column(rows.schema.get_field_index(CSN), CSN, csns)


def _net_effects(relations: Mapping[Remote, Relation], entries: Sequence[Entry]) -> dict[Remote, pa.Table]:
    """Signed rows with the numbers of their entries, of the tables that have any."""
    gone: dict[Remote, _Gathered] = defaultdict(_Gathered)
    come: dict[Remote, _Gathered] = defaultdict(_Gathered)
    for number, entry in enumerate(entries):
        for one in entry.arrived:
            for name, changes in one.unit.changes.items():
                gone[one.source, name].add(changes.before, number, one.unit.position)
                come[one.source, name].add(changes.after, number, one.unit.position)
    found: dict[Remote, pa.Table] = {}
    for remote, relation in relations.items():
        both = [one[remote].table(remote[0], relation, count) for one, count in ((gone, -1), (come, +1))]
        rows = pa.concat_tables(both)
        if not set(gone[remote].numbers).isdisjoint(come[remote].numbers):
            rows = net_rows(rows)
        if rows.num_rows:
            found[remote] = rows
    return found


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
    before, after = _all(first.before, then.before), _all(first.after, then.after)
    return Changes(before, after, first.replaces, (*first.spools, *then.spools))


def _all(first: Rows, then: Rows) -> Rows:
    if isinstance(first, Section) and isinstance(then, Section):
        return joined([first, then])
    return [*as_rows(first), *as_rows(then)] if len(first) and len(then) else first or then


def _alone(root: Path, relations: Mapping[Remote, Relation], entry: Entry, csn: Csn) -> Settled:
    tables: dict[Remote, Pieces] = {}
    states: dict[Remote, Pieces] = {}
    counts: list[Change] = []
    for remote, (changes, position) in _changes(entry).items():
        relation = relations[remote]
        if changes.replaces and not relation.is_kept:
            states[remote] = _whole_state(remote[0], relation, changes, position)
            counts.append(Change(relation.name, states[remote].num_rows, 0))
            continue
        if changes.replaces and changes.spools:
            changes = _compared(root, remote[0], relation, changes, position)

        def pieces(
            source: str = remote[0], relation: Relation = relation, changes: Changes = changes, at: str = position
        ) -> Iterator[pa.Table]:
            for rows in _signed_pieces(root, source, relation, changes, at):
                yield rows.append_column(CSN, pa.array(np.full(rows.num_rows, csn, dtype=np.int64)))

        if not changes.spools:
            rows = next(pieces())
            found, whole = list(counted(relation, rows).values()), _in_memory(rows)
        else:
            # Equal keys are in one piece, so what the pieces count adds up.
            found = [one for rows in pieces() for one in counted(relation, rows).values()]
            whole = Pieces(pieces, sum(one.inserted + one.deleted for one in found))
        if whole.num_rows:
            tables[remote] = whole
            counts.append(_sum(relation, found))
    return Settled((SettledEntry(entry, tuple(counts)),) if counts else (), tables, relations, states)


def _signed_pieces(root: Path, source: str, relation: Relation, changes: Changes, position: str) -> Iterator[pa.Table]:
    if changes.replaces:
        yield difference(root, relation, _all_rows(source, relation, changes, position))
        return
    if not changes.spools:
        yield _net_effect(source, relation, changes, position)
    elif len(changes.spools) == 1 and not len(changes.before) and not len(changes.after):
        yield from changes.spools[0].pieces()
    else:
        # What one part brings another may take away again, and a csn has the net effect of all.
        yield from _poured(source, relation, changes, position).pieces()


def _compared(root: Path, source: str, relation: Relation, changes: Changes, position: str) -> Changes:
    """How a table that is replaced by rows on disk differs from what is held: the net effect of both, on disk too."""
    both = _poured(source, relation, changes, position)
    for rows in stored_pieces(root, relation):
        both.add_counted(rows.set_column(rows.num_columns - 1, COUNT, pc.negate(rows[COUNT])))
    return Changes(spools=(both,))


def _poured(source: str, relation: Relation, changes: Changes, position: str) -> Spooled:
    """All rows that came and went, in one spool of their own."""
    poured = changes.spools[0].empty_copy()
    if len(changes.before) or len(changes.after):
        poured.add_counted(_net_effect(source, relation, changes, position))
    for spool in changes.spools:
        for rows in spool.pieces():
            poured.add_counted(rows)
    return poured


def _whole_state(source: str, relation: Relation, changes: Changes, position: str) -> Pieces:
    """All that a table holds after it was replaced."""
    if not changes.spools:
        return _in_memory(_all_rows(source, relation, changes, position))
    poured = _poured(source, relation, changes, position)

    def pieces() -> Iterator[pa.Table]:
        for rows in poured.pieces():
            yield rows.filter(pc.greater(rows[COUNT], 0)).drop([COUNT])

    return Pieces(pieces, sum(rows.num_rows for rows in pieces()))


def _sum(relation: Relation, counts: Sequence[Change]) -> Change:
    inserted, deleted = sum(one.inserted for one in counts), sum(one.deleted for one in counts)
    updated = sum(one.updated or 0 for one in counts) if relation.constraints.primary_key else None
    return Change(relation.name, inserted, deleted, updated)


def _all_rows(source: str, relation: Relation, changes: Changes, position: str) -> pa.Table:
    """What a table holds after it was replaced."""
    if isinstance(changes.after, pa.Table):
        return changes.after
    rows = _net_effect(source, relation, changes, position)
    return rows.filter(pc.greater(rows[COUNT], 0)).drop([COUNT])


def _net_effect(source: str, relation: Relation, changes: Changes, position: str) -> pa.Table:
    gone, come = _Gathered(), _Gathered()
    gone.add(changes.before, 0, position)
    come.add(changes.after, 0, position)
    both = [gone.table(source, relation, -1), come.table(source, relation, +1)]
    return net_rows(pa.concat_tables(both).drop([CSN]))
