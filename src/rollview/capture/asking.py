"""Rows of tables that are not copied, from their sources, at any csn that their captured changes reach.

Law, for the rows that were asked for:

    R@t = answer − Σ Δ(seen, csn > t) + Σ Δ(unseen, csn ≤ t)

What was seen and has no csn yet is read from the source's log, and left there for capture. While a source is asked it
is held, so nobody captures it meanwhile.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rollview.capture.arrange import Entry
from rollview.capture.commit_stream import Arrived, CommitStream
from rollview.capture.copies import COPIED_AGAIN
from rollview.capture.first_copy import TRANSACTION, pieces
from rollview.capture.health import note_asked
from rollview.capture.plan import lease_name
from rollview.capture.quarantine import sift
from rollview.capture.recorded_source import open_recorded, tables_of
from rollview.capture.sequencer import ROWS_AT_ONCE
from rollview.capture.settled import settle
from rollview.capture.spooling import spool_space
from rollview.catalog import Catalog, Relation, SourceRecord
from rollview.core.interval import Csn, Interval
from rollview.core.names import COUNT, CSN
from rollview.core.schema import SIGNED, Schema
from rollview.core.states import SourceState
from rollview.errors import AskTooLarge, Corrupt, OutOfReach, Retryable, UsageError
from rollview.relations.reader import StandIn, stored_as
from rollview.sources.asking import Ask, AskableSource, SeenUnits
from rollview.sources.protocol import FirstCopy, LayoutChange, Row, Rows, SourceTable
from rollview.sources.settings import SourceSettings
from rollview.store.parquet import write_table
from rollview.store.timed import loaded_changes
from rollview.types.arrow import arrow_schema
from rollview.types.keys import has_keys
from rollview.types.signed_rows import net_rows

_TRIES = 20
_PATIENCE = 10.0
_NEWEST = 2_000
"""A commit that is captured and cannot be seen yet is among so many newest ones: nobody after it waits for less."""
_UNREADY = (SourceState.COPYING, SourceState.WIDENING, SourceState.REMOVING)
_MINUTE = 60.0
_T = TypeVar("_T")

_ASKED: dict[tuple[Path, str], deque[float]] = {}
"""When each source was asked by this process, within the last minute."""

Among = Callable[[pa.Table], pa.Table]
"""Of captured changes those of the rows that were asked for."""


class AskAgainError(Exception):
    """An answer saw a part of a unit of work."""


class SourceLookup:
    """Asks sources, each held from the first question on until ``release``."""

    def __init__(self, catalog: Catalog, root: Path) -> None:
        self._catalog = catalog
        self._root = root
        self._files = ExitStack()
        self._held = ExitStack()
        self._sources: dict[str, HeldSource] = {}
        self._last: str | None = None

    def check(self, relation: Relation, equal: tuple[str, ...]) -> None:
        """Refuse columns by which the source cannot be asked."""
        self._of(relation).check(relation, equal)

    def hold(self, relations: Iterable[Relation]) -> Csn:
        """Nobody captures the sources of these tables from now on; the newest csn that is captured of all."""
        ordered = sorted(relations, key=lambda one: one.source or "")
        return min(self._of(relation).newest for relation in ordered)

    def changed(self, relation: Relation, interval: Interval) -> pa.Table:
        """Captured changes of a table."""
        return self._of(relation).changed(relation, interval)

    def rows(self, relation: Relation, equal: tuple[str, ...], keys: frozenset[Row], at: Csn) -> pa.Table:
        return self._of(relation).rows(relation, equal, keys, at)

    def stream(self, relation: Relation, at: Csn) -> StandIn:
        return self._of(relation).stream_to(relation, at)

    def release(self, problem: str | None = None) -> None:
        """Let the sources go; files of streamed tables stay. ``problem``: why the last of them could not be asked."""
        for name, source in self._sources.items():
            source.note(problem if name == self._last else None)
        if problem is not None and self._last is not None and self._last not in self._sources:
            note_asked(self._catalog, self._last, 0, 0, 0, 0, problem)
        self._held.close()
        self._sources.clear()
        self._last = None

    def close(self) -> None:
        self.release()
        self._files.close()

    def _of(self, relation: Relation) -> HeldSource:
        assert relation.source is not None
        # It is the last one even if it cannot be opened.
        self._last = name = relation.source
        if name not in self._sources:
            self._sources[name] = self._open(name)
        return self._sources[name]

    def _open(self, name: str) -> HeldSource:
        return HeldSource(self._catalog, self._root, name, self._held, self._files)


class HeldSource:
    """One source that nobody captures now: what is in the ledger of it, and what it has beyond."""

    def __init__(self, catalog: Catalog, root: Path, name: str, held: ExitStack, files: ExitStack) -> None:
        lease = held.enter_context(catalog.lease(lease_name(name), wait=_PATIENCE))
        record = catalog.source(name)
        _check_ready(record)
        self._catalog, self._root, self._record, self._lease = catalog, root, record, lease
        self._snapshot = catalog.snapshot()
        self._space = files.enter_context(spool_space(catalog, root, record))
        self._settings = SourceSettings.from_json(record.settings)
        self._limits = self._settings.asking
        opened = held.enter_context(closing(open_recorded(catalog, record, lease, self._space)))
        if not isinstance(opened, AskableSource):
            raise UsageError(
                f"Source '{record.name}' of kind '{record.kind}' cannot be asked for rows as of a known commit.",
                hint="Let its tables be copied.",
            )
        self._source: AskableSource = opened
        self._stream = CommitStream(opened, record, self._snapshot)
        self._tables = tables_of({t.remote: self._snapshot.get(t.relation) for t in record.tables})
        self._reached = self._stream.start
        self._beyond: list[tuple[Arrived, str]] = []
        self._asks = self._keys = self._rows_given = self._bytes = 0

    def note(self, problem: str | None) -> None:
        if self._asks or problem is not None:
            sums = self._asks, self._keys, self._rows_given, self._bytes
            note_asked(self._catalog, self._record.name, *sums, problem)

    @property
    def newest(self) -> Csn:
        return self._snapshot.moment.csn

    def changed(self, relation: Relation, interval: Interval) -> pa.Table:
        own = self._snapshot.get(relation.name)
        self._table(relation)
        if any(csn > interval.after for csn in own.replaced):
            raise meanwhile(relation, "all its rows came anew")
        return self._captured(own, interval)

    def check(self, relation: Relation, equal: tuple[str, ...]) -> None:
        table = self._table(relation)
        self._source.ask([Ask(table.name, table.schema.names, equal, frozenset())])

    def rows(self, relation: Relation, equal: tuple[str, ...], keys: frozenset[Row], at: Csn) -> pa.Table:
        """Every copy by itself. Keys that are too many at once are halved."""
        most = self._limits.keys
        ordered = sorted(keys, key=repr)
        waiting = [ordered[place : place + most] for place in range(0, len(ordered), most)]
        found: list[pa.Table] = [_nothing(relation)]
        while waiting:
            some = waiting.pop()
            try:
                found.append(self._rows(relation, equal, frozenset(some), at))
            except AskTooLarge:
                if len(some) == 1:
                    raise
                waiting += [some[: len(some) // 2], some[len(some) // 2 :]]
        return pa.concat_tables(found)

    def _rows(self, relation: Relation, equal: tuple[str, ...], keys: frozenset[Row], at: Csn) -> pa.Table:
        table = self._table(relation)
        ask = Ask(table.name, table.schema.names, equal, keys)

        def answered() -> pa.Table:
            self._pace()
            with self._source.moment():
                answer = self._source.ask([ask])
                self._read_through(answer.seen)
            found = list(self._fitting(table, lambda _: iter([answer.rows[0]]), answer.seen))
            self._keys += len(keys)
            self._count(*found)
            changes = self._compensation(relation, answer.seen, at, partial(_among, equal=equal, keys=keys))
            return _net(relation, pa.concat_tables([*(_typed(_once(rows), relation) for rows in found), changes]))

        return self._tried(answered)

    def stream_to(self, relation: Relation, at: Csn) -> StandIn:
        table, place = self._table(relation), self._space.new_folder()
        taken: list[int] = []

        def streamed() -> pa.Table:
            self._pace()
            for left in place.iterdir():
                left.unlink()
            self._space.give_back(sum(taken))
            taken.clear()
            with self._source.moment(), self._source.stream() as found:
                for rows in self._fitting(table, found.rows, found.seen):
                    self._count(rows)
                    self._space.take(rows.nbytes)
                    taken.append(rows.nbytes)
                    write_table(rows, place, relation.schema, None, ())
                self._read_through(found.seen)
            return self._compensation(relation, found.seen, at, lambda rows: rows)

        changes = self._tried(streamed)
        return StandIn(at, changes, place if any(place.iterdir()) else None)

    def _pace(self) -> None:
        """Refuse to ask more often than the source allows; the next refresh goes on."""
        now, before = time.monotonic(), _ASKED.setdefault((self._root, self._record.name), deque())
        while before and now - before[0] > _MINUTE:
            before.popleft()
        if len(before) >= self._limits.per_minute:
            raise Retryable(
                f"Source '{self._record.name}' was asked {len(before)} times within a minute, as often as it may be.",
                hint="The next refresh asks again. The source's option asks_per_minute allows more.",
            )
        before.append(now)
        self._asks += 1

    def _count(self, *found: pa.Table) -> None:
        self._rows_given += sum(rows.num_rows for rows in found)
        self._bytes += sum(rows.nbytes for rows in found)

    def _tried(self, asked: Callable[[], _T]) -> _T:
        for _ in range(_TRIES):
            try:
                return asked()
            except AskAgainError:
                continue
        raise Retryable(f"Source '{self._record.name}' was written to whenever it was asked.", hint="Try again later.")

    def _table(self, relation: Relation) -> SourceTable:
        remote = next(table.remote for table in self._record.tables if table.relation == relation.name)
        if set(self._tables[remote].schema) != set(relation.schema):
            raise meanwhile(relation, "its columns have changed")
        return self._tables[remote]

    def _fitting(
        self, table: SourceTable, rows: Callable[[str], Iterator[Rows]], seen: SeenUnits
    ) -> Iterator[pa.Table]:
        """As a copy would have them: selected, and without what has no representation."""
        about = FirstCopy(seen.through, datetime.now(UTC), (table,), rows, {})
        return pieces(self._record.name, self._settings, table, about)

    def _read_through(self, seen: SeenUnits) -> None:
        """The source's log beyond what is captured, as far as an answer saw it."""
        source, limit = self._stream.source, ROWS_AT_ONCE
        while source.order(self._reached.position) < source.order(seen.through):
            before = self._reached.position
            reading = self._stream.read(self._reached, limit)
            if isinstance(reading, LayoutChange):
                raise Retryable(f"Table '{reading.table}' of source '{self._record.name}' changed: {reading.reason}.")
            for arrived in reading.arrived:
                self._beyond.append((arrived, self._reached.position))
                self._reached = replace(self._reached, position=arrived.unit.position)
            self._reached = replace(self._reached, position=reading.position)
            if reading.complete:
                return
            if reading.position == before:
                limit *= 2

    def _compensation(self, relation: Relation, seen: SeenUnits, at: Csn, among: Among) -> pa.Table:
        """Signed rows that bring an answer to a csn."""
        own, newest = self._snapshot.get(relation.name), self._snapshot.moment.csn
        if any(csn > at for csn in own.replaced):
            raise meanwhile(relation, "all its rows came anew")
        missed = self._missed(seen, at)
        changes = among(self._captured(own, Interval(at, newest)))
        back = [_negated(changes.filter(pc.invert(_is_of(changes, missed))))]
        late = [csn for csn in missed if csn <= at]
        if late:
            changes = among(self._captured(own, Interval(min(late) - 1, max(late))))
            back.append(changes.filter(_is_of(changes, late)))
        back += [_negated(among(rows)) for rows in self._seen_beyond(own, seen)]
        return pa.concat_tables([_typed(rows, relation) for rows in back])

    def _captured(self, own: Relation, interval: Interval) -> pa.Table:
        try:
            return loaded_changes(stored_as(self._root, own), interval)
        except OutOfReach as error:
            raise meanwhile(own, "its changes are not all here") from error

    def _missed(self, seen: SeenUnits, at: Csn) -> frozenset[Csn]:
        """Captured csns that an answer did not see."""
        newest = self._snapshot.moment.csn
        parts = [
            *self._catalog.parts(self._record.name, Interval(at, newest)),
            *self._catalog.parts(self._record.name, Interval(0, at), _NEWEST),
        ]
        told: dict[Csn, set[bool]] = {}
        for csn, part in parts:
            if part.transaction in (TRANSACTION, COPIED_AGAIN):
                if csn <= at:
                    break
                continue
            told.setdefault(csn, set()).add(seen.missed(part.position, part.transaction))
        if any(len(both) > 1 for both in told.values()):
            raise AskAgainError
        return frozenset(csn for csn, missed in told.items() if True in missed)

    def _seen_beyond(self, own: Relation, seen: SeenUnits) -> Iterator[pa.Table]:
        """What was seen and has no csn yet."""
        remote = next(table.remote for table in self._record.tables if table.relation == own.name)
        for arrived, after in self._beyond:
            if remote not in arrived.unit.changes:
                continue
            saw = seen.saw(arrived.unit, after)
            if saw is None:
                raise AskAgainError
            if saw:
                yield from self._net_effect(own, remote, arrived)

    def _net_effect(self, own: Relation, remote: str, arrived: Arrived) -> Iterator[pa.Table]:
        unit = replace(arrived.unit, changes={remote: arrived.unit.changes[remote]})
        if unit.changes[remote].replaces:
            raise meanwhile(own, "all its rows came anew")
        if self._settings.quarantines:
            unit = sift(unit, self._tables)
        where, entry = (self._record.name, remote), Entry((replace(arrived, unit=unit),), arrived.effective)
        settled = settle(self._root, {where: own}, [entry], 0)
        if where in settled.tables:
            yield from settled.tables[where].each()


def _check_ready(record: SourceRecord) -> None:
    if record.state in _UNREADY or record.position is None:
        raise Retryable(f"Source '{record.name}' is {record.state}.", hint="Finish that first: rollview capture.")


def meanwhile(relation: Relation, what: str) -> Retryable:
    return Retryable(
        f"Rows of table '{relation.name}' cannot be asked for now: {what}.",
        hint="Run: rollview capture, and then the refresh again.",
        table=relation.name,
    )


def _among(rows: pa.Table, *, equal: tuple[str, ...], keys: frozenset[Row]) -> pa.Table:
    return rows.filter(has_keys(rows, equal, keys))


def _is_of(rows: pa.Table, csns: Collection[Csn]) -> Any:
    return pc.is_in(rows[CSN], pa.array(list(csns), pa.int64()))


def _once(rows: pa.Table) -> pa.Table:
    return rows.append_column(COUNT, pa.array(np.ones(rows.num_rows, dtype=np.int64)))


def _nothing(relation: Relation) -> pa.Table:
    columns = Schema((*relation.schema.columns, SIGNED[0]))
    return arrow_schema(columns).empty_table().rename_columns(list(columns.names))


def _typed(rows: pa.Table, relation: Relation) -> pa.Table:
    columns = Schema((*relation.schema.columns, SIGNED[0]))
    types = pa.schema(list(zip(columns.names, arrow_schema(columns).types, strict=True)))
    return rows.select(types.names).cast(types)


def _negated(rows: pa.Table) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(COUNT), COUNT, pc.negate(rows[COUNT]))


def _net(relation: Relation, rows: pa.Table) -> pa.Table:
    found = net_rows(rows)
    if pc.any(pc.less(found[COUNT], 0)).as_py():
        raise Corrupt(
            f"What source '{relation.source}' told of table '{relation.name}' does not agree with its log.",
            hint=f"Run: rollview source resnapshot {relation.source}",
            table=relation.name,
        )
    return found
