"""Answers of sources as they are, for algorithms that compensate by themselves.

Law: while sources are held, units of work of each have an order that only grows: those with csns, then those of its log
beyond. An answer is the rows of one snapshot, with which of these units it saw; nothing is added or taken away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa

from rollview.capture.asking import AskAgainError, HeldSource, SourceLookup
from rollview.capture.taking import UnitsRead, take
from rollview.catalog import Relation
from rollview.core.interval import Csn, Interval
from rollview.errors import AskTooLarge
from rollview.relations.answers import KeyRequest, RawAnswer
from rollview.sources.asking import Ask, SeenUnits
from rollview.sources.protocol import Rows


class RawLookup(SourceLookup):
    """Asks sources that are all held before the first question: a ``Telling``."""

    def captured(self, relation: Relation, after: Csn) -> pa.Table:
        return self._raw(relation).captured(relation, after)

    def answer(self, wishes: Sequence[KeyRequest], after: Csn) -> RawAnswer:
        return self._raw(wishes[0].relation).answer(wishes, after)

    def beyond(self, relation: Relation, number: int) -> Iterator[pa.Table]:
        return self._raw(relation).beyond(relation, number)

    def take(self, units: Mapping[str, int]) -> Csn:
        for name, number in units.items():
            found = self._sources[name]
            assert isinstance(found, _RawSource)
            found.take(number)
        return self._catalog.snapshot().moment.csn

    def _raw(self, relation: Relation) -> _RawSource:
        found = self._of(relation)
        assert isinstance(found, _RawSource)
        return found

    def _open(self, name: str) -> HeldSource:
        return _RawSource(self._catalog, self._root, name, self._held, self._files)


class _RawSource(HeldSource):
    def captured(self, relation: Relation, after: Csn) -> pa.Table:
        return self.changed(relation, Interval(after, self.newest))

    def answer(self, wishes: Sequence[KeyRequest], after: Csn) -> RawAnswer:
        """Keys that are too many at once are halved, all in the same snapshot."""
        most = min(self._limits.keys, max(len(wish.keys) for wish in wishes) or 1)
        while True:
            try:
                return self._tried(partial(self._answered, wishes, most, after))
            except AskTooLarge:
                if most == 1:
                    raise
                most //= 2

    def _answered(self, wishes: Sequence[KeyRequest], most: int, after: Csn) -> RawAnswer:
        asks = [(place, ask) for place, wish in enumerate(wishes) for ask in self._pieces(wish, most)]
        self._pace()
        with self._source.moment():
            answer = self._source.ask([ask for _, ask in asks])
            self._read_through(answer.seen)
        rows: list[list[pa.Table]] = [[] for _ in wishes]
        for (place, ask), found in zip(asks, answer.rows, strict=True):
            self._keys += len(ask.keys)
            table = self._table(wishes[place].relation)
            rows[place] += self._fitting(table, partial(_given, found), answer.seen)
        for pieces in rows:
            self._count(*pieces)
        tables = tuple(pa.concat_tables(pieces) if pieces else pa.table({}) for pieces in rows)
        return RawAnswer(tables, self._missed(answer.seen, after), tuple(self._saw_beyond(answer.seen)))

    def _pieces(self, wish: KeyRequest, most: int) -> Iterator[Ask]:
        table, keys = self._table(wish.relation), sorted(wish.keys, key=repr)
        for begin in range(0, len(keys), most):
            some = frozenset(keys[begin : begin + most])
            yield Ask(table.name, table.schema.names, wish.equal, some)

    def _saw_beyond(self, seen: SeenUnits) -> Iterator[bool]:
        for arrived, after in self._beyond:
            saw = seen.saw(arrived.unit, after)
            if saw is None:
                raise AskAgainError
            yield saw

    def take(self, number: int) -> None:
        """The first so many units beyond the ledger get csns; nothing is asked afterwards."""
        if number:
            arrived = [one for one, _ in self._beyond[:number]]
            units = UnitsRead(self._stream.source, self._record, self._snapshot, arrived)
            take(self._catalog, self._root, self._lease, units)

    def beyond(self, relation: Relation, number: int) -> Iterator[pa.Table]:
        own = self._snapshot.get(relation.name)
        remote = next(table.remote for table in self._record.tables if table.relation == relation.name)
        arrived, _ = self._beyond[number]
        if remote in arrived.unit.changes:
            yield from self._net_effect(own, remote, arrived)


def _given(rows: Rows, table: str) -> Iterator[Rows]:
    return iter([rows])
