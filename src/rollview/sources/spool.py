"""Rows of one table of one transaction, however many they are.

Law: few rows are in memory; more are on disk in buckets, equal rows and equal keys in the same one, so the net effect
of a transaction of any size is computed bucket by bucket, and memory does not grow with it. What is on disk is in the
space that the source was opened with.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from rollview.core.bad_row import BadRow
from rollview.core.names import COUNT
from rollview.errors import BadValue
from rollview.sources.protocol import Changes, Opening, Rows, SourceTable
from rollview.sources.quarantine import sift_rows
from rollview.sources.sections import Section, joined
from rollview.sources.space import Shelf, Space
from rollview.sources.values import UnfitError, as_rows, as_table
from rollview.types.signed_rows import comparable, net_rows

IN_MEMORY = 32 << 20
"""Bytes of a transaction, as the source tells it, from which on it is on disk."""

_BY_ITSELF = 4
"""So many times the room that it takes in Arrow is what a row by itself takes."""

BATCH_BYTES = 32 << 20
"""From here on no further transaction is read at once."""

_BUCKETS = 64
_LARGE = 8 << 20
"""Bytes of a bucket from which on it is divided again."""
_DEEPEST = 3
_PIECE = 8 << 20
_LENGTH = 4


class Spool:
    """On disk until it is closed, or forgotten. ``depth``: how often its rows were divided before."""

    def __init__(self, table: SourceTable, space: Space, depth: int = 0) -> None:
        self._table, self._space, self._depth, self._schema = table, space, depth, table.schema
        key = table.constraints.primary_key or table.schema.names
        self._places = [table.schema.names.index(name) for name in key]
        self._signed = as_table((), self._schema).append_column(COUNT, pa.array([], pa.int64())).schema
        self._shelf = Shelf(space)
        self._writers: dict[int, tuple[pa.OSFile, Any]] = {}

    def add(self, rows: Rows, count: int) -> None:
        table = as_table(rows, self._schema)
        self.add_counted(table.append_column(COUNT, pa.array(np.full(table.num_rows, count, dtype=np.int64))))

    def add_counted(self, table: pa.Table) -> None:
        """Rows with ``_count``."""
        table = table.select([*self._schema.names, COUNT]).cast(self._signed)
        self._shelf.take(table.nbytes)
        buckets = self._buckets(table)
        sorted_ = table.take(np.argsort(buckets, kind="stable"))
        ends = np.cumsum(np.bincount(buckets, minlength=_BUCKETS)).tolist()
        for number, (start, stop) in enumerate(pairwise([0, *ends])):
            if start < stop:
                self._writer(number).write_table(sorted_.slice(start, stop - start))

    def _buckets(self, table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        key = comparable(table.select(self._places))
        values = zip(*(column.to_pylist() for column in key.columns), strict=True)
        divided = _BUCKETS**self._depth
        return np.fromiter((hash(one) // divided % _BUCKETS for one in values), np.int64, table.num_rows)

    def empty_copy(self) -> Spool:
        return Spool(self._table, self._space)

    def pieces(self) -> Iterator[pa.Table]:
        """The net effect as rows with ``_count``, buckets put together as long as they are small; as often as asked."""
        self._finish()
        some: list[pa.Table] = []
        for path in filter(Path.exists, map(self._path, range(_BUCKETS))):
            if path.stat().st_size > _LARGE and self._depth < _DEEPEST:
                yield from self._divided(path)
                continue
            some.append(net_rows(_read(path)))
            if sum(piece.nbytes for piece in some) > _PIECE:
                yield pa.concat_tables(some)
                some = []
        if some:
            yield pa.concat_tables(some)

    def _divided(self, path: Path) -> Iterator[pa.Table]:
        """The pieces of one bucket."""
        inner = Spool(self._table, self._space, self._depth + 1)
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
            for batch in stream:
                inner.add_counted(pa.Table.from_batches([batch]))
        yield from inner.pieces()
        inner.close()

    def close(self) -> None:
        self._finish()
        self._shelf.close()

    def _path(self, number: int) -> Path:
        return self._shelf.folder / f"{number}.arrow"

    def _writer(self, number: int) -> Any:
        if number not in self._writers:
            file = pa.OSFile(str(self._path(number)), "wb")
            self._writers[number] = file, pa.ipc.new_stream(file, self._signed)
        return self._writers[number][1]

    def _finish(self) -> None:
        for file, writer in self._writers.values():
            writer.close()
            file.close()
        self._writers = {}


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


@dataclass(slots=True)
class Collected:
    """What a transaction has done to a table so far. ``bad``: rows of it that have no representation."""

    opening: Opening = field(repr=False)
    table: SourceTable
    replaces: bool = False
    bad: list[BadRow] = field(default_factory=list)
    _before: list[Rows] = field(default_factory=list)
    _after: list[Rows] = field(default_factory=list)
    _size: int = 0
    _spool: Spool | None = None

    def add(self, rows: Rows, count: int, size: int) -> None:
        """Rows that come (+1) or go (-1), and how many bytes they took at the source."""
        pieces = self._after if count > 0 else self._before
        if isinstance(rows, Section):
            pieces.append(rows)
        elif pieces and isinstance(pieces[-1], list):
            pieces[-1].extend(as_rows(rows))
        else:
            pieces.append(list(as_rows(rows)))
        self._size += size if isinstance(rows, Section) else _BY_ITSELF * size
        if self._size > IN_MEMORY:
            self._spill()

    def changes(self) -> Changes:
        if self._spool is None:
            return Changes(_together(self._before), _together(self._after), self.replaces)
        self._spill()
        return Changes((), (), self.replaces, (self._spool,))

    def _spill(self) -> None:
        self._spool = self._spool or Spool(self.table, self.opening.room)
        for pieces, count in ((self._before, -1), (self._after, +1)):
            # Piece by piece, each forgotten at once: sorting them together would take as much room again.
            while pieces:
                self._spill_piece(self._spool, pieces.pop(0), count)
        self._size = 0

    def _spill_piece(self, spool: Spool, rows: Rows, count: int) -> None:
        if self.opening.settings.quarantines:
            rows = sift_rows(self.table, rows, count, self.bad)
        try:
            spool.add(rows, count)
        except UnfitError as error:
            raise BadValue(self.opening.name, self.table.name, error.column, error.reason) from None


def _together(pieces: Sequence[Rows]) -> Rows:
    sections = [piece for piece in pieces if isinstance(piece, Section)]
    if sections and len(sections) == len(pieces):
        return joined(sections)
    return [row for piece in pieces for row in as_rows(piece)]


def changes_and_bad_rows(collected: Mapping[str, Collected]) -> tuple[dict[str, Changes], tuple[BadRow, ...]]:
    """What a transaction did, and what of it is put aside."""
    changes = {remote: one.changes() for remote, one in collected.items()}
    return changes, tuple(bad for one in collected.values() for bad in one.bad)


class Backlog:
    """Messages that wait, on disk when they are many."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._shelf: Shelf | None = None
        self._size = 0
        self._file: IO[bytes] = BytesIO()

    def append(self, message: bytes) -> None:
        self._size += len(message) + _LENGTH
        if self._shelf is None and self._size > IN_MEMORY:
            self._shelf = Shelf(self._space)
            self._shelf.take(self._size)
            self._file = self._moved(self._shelf.folder / "backlog")
        elif self._shelf is not None:
            self._shelf.take(len(message) + _LENGTH)
        self._file.write(len(message).to_bytes(_LENGTH, "big") + message)

    def _moved(self, path: Path) -> IO[bytes]:
        """What waits in memory, into a file."""
        file = path.open("w+b")
        self._file.seek(0)
        shutil.copyfileobj(self._file, file)
        return file

    def close(self) -> None:
        self._file.close()
        if self._shelf is not None:
            self._shelf.close()

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        while length := self._file.read(_LENGTH):
            yield self._file.read(int.from_bytes(length, "big"))
