"""Row messages of many transactions at once, column by column.

Law: what comes out is what reading the messages one by one gives, or nothing does: a message with something out of the
ordinary is left to that. All messages lie in one buffer; of each row the place of its next value is known, so one step
over all rows reads one column, and the values are cut out of the buffer by their places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rollview.sources.postgres.announced import AnnouncedLayout
from rollview.sources.postgres.texts import read_texts
from rollview.sources.sections import NotPlainError, Section
from rollview.types.arrow import arrow_type

Places: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

_INSERT, _UPDATE, _DELETE, _OLD, _NEW, _TEXT, _NULL, _UNCHANGED = b"IUDONtnu"
_HEAD = 6
_PADDING = bytes(8)
_LONGEST = 2**31 - 1 - len(_PADDING)


@dataclass(frozen=True, slots=True)
class Share:
    """What the messages say of one table. ``ends``: for the bounds that were asked for, up to which row that is."""

    layout: AnnouncedLayout
    gone: pa.Table
    come: pa.Table
    gone_ends: Sequence[int]
    come_ends: Sequence[int]
    size_ends: Sequence[int]

    def part(self, number: int) -> tuple[Section, Section, int]:
        """Rows that go, rows that come and their bytes, between this bound and the next."""
        gone = Section(self.gone, self.gone_ends[number], self.gone_ends[number + 1])
        come = Section(self.come, self.come_ends[number], self.come_ends[number + 1])
        return gone, come, self.size_ends[number + 1] - self.size_ends[number]


@dataclass(frozen=True, slots=True)
class _Values:
    """One column of some rows: where each value begins and ends, and of which kind it is."""

    kinds: np.ndarray[Any, np.dtype[np.uint8]]
    begins: Places
    ends: Places

    def at(self, which: Mask | Places) -> _Values:
        return _Values(self.kinds[which], self.begins[which], self.ends[which])


class _Buffer:
    def __init__(self, messages: Sequence[bytes]) -> None:
        whole = b"".join([*messages, _PADDING])
        if len(whole) > _LONGEST:
            raise NotPlainError
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        self.ends: Places = np.cumsum(lengths)
        self.starts: Places = self.ends - lengths
        self.bytes = np.frombuffer(whole, np.uint8)
        self._counts = _everywhere(whole, ">u2")
        self._numbers = _everywhere(whole, ">u4")
        self._arrow = pa.py_buffer(whole)

    def oids(self) -> Places:
        return self._numbers[self.starts + 1].astype(np.int64)

    def values(self, at: Places, count: int) -> tuple[list[_Values], Places]:
        """The columns of the rows that begin there, and where the rows end."""
        _demand(self._counts[at] == count)
        found, at = [], at + 2
        for _ in range(count):
            kinds = self.bytes[at]
            is_text = kinds == _TEXT
            _demand(is_text | (kinds == _NULL) | (kinds == _UNCHANGED))
            begins = np.where(is_text, at + 5, at + 1)
            at = np.where(is_text, begins + self._numbers[at + 1], begins)
            found.append(_Values(kinds, begins, at))
        return found, at

    def cut(self, values: _Values) -> pa.Array:
        """Every second stretch between the places is a value."""
        _demand(values.kinds != _UNCHANGED)
        count = len(values.kinds)
        if not count:
            return pa.array([], pa.binary())
        places = np.column_stack([values.begins, values.ends]).astype(np.int32).ravel()
        stretches = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(places), self._arrow])
        return stretches.take(pa.array(np.arange(0, 2 * count, 2), mask=values.kinds == _NULL))


def _everywhere(data: bytes, type_: str) -> np.ndarray[Any, Any]:
    """The number that begins at each byte."""
    size = np.dtype(type_).itemsize
    return np.ndarray((len(data) - size + 1,), type_, data, strides=(1,))


def read_shares(
    messages: Sequence[bytes], layouts: Mapping[int, AnnouncedLayout], bounds: Sequence[int]
) -> tuple[Share, ...]:
    """``bounds``: places between the messages; what lies between two is one part. NotPlainError: read them singly."""
    try:
        return tuple(_shares(_Buffer(messages), layouts, np.array(bounds)))
    # Places that lead out of the buffer: not a message as we know it.
    except IndexError:
        raise NotPlainError from None


def _shares(buffer: _Buffer, layouts: Mapping[int, AnnouncedLayout], bounds: Places) -> Iterator[Share]:
    oids = buffer.oids()
    for oid, layout in layouts.items():
        which = np.flatnonzero(oids == oid)
        if len(which):
            yield _share(buffer, layout, which, bounds)


def _share(buffer: _Buffer, layout: AnnouncedLayout, which: Places, bounds: Places) -> Share:
    starts, ends = buffer.starts[which], buffer.ends[which]
    kinds, count = buffer.bytes[starts], len(layout.message.columns)
    has_old, has_new = kinds != _INSERT, kinds != _DELETE
    both = has_old & has_new
    _demand(buffer.bytes[starts + 5] == np.where(has_old, _OLD, _NEW))
    old, old_ends = buffer.values(starts[has_old] + _HEAD, count)
    new_starts = starts + _HEAD
    _demand(buffer.bytes[old_ends[both[has_old]]] == _NEW)
    new_starts[both] = old_ends[both[has_old]] + 1
    new, new_ends = buffer.values(new_starts[has_new], count)
    _demand(new_ends == ends[has_new])
    _demand(old_ends[~both[has_old]] == ends[~has_new])
    is_update = both[has_old], both[has_new]
    filled = [_filled(before, after, *is_update) for before, after in zip(old, new, strict=True)]
    sizes = np.concatenate([[0], np.cumsum(ends - starts)])
    return Share(
        layout,
        _table(buffer, layout, old),
        _table(buffer, layout, filled),
        np.searchsorted(which[has_old], bounds).tolist(),
        np.searchsorted(which[has_new], bounds).tolist(),
        sizes[np.searchsorted(which, bounds)].tolist(),
    )


def _filled(before: _Values, after: _Values, has_after: Mask, has_before: Mask) -> _Values:
    """A large value that an update left alone is in the old row; both lie in the same message."""
    lacks = after.kinds == _UNCHANGED
    if not lacks.any():
        return after
    _demand(has_before[lacks])
    source = before.at(has_after).at(lacks[has_before])
    filled = after.at(np.arange(len(lacks)))
    filled.kinds[lacks], filled.begins[lacks], filled.ends[lacks] = source.kinds, source.begins, source.ends
    return filled


def _table(buffer: _Buffer, layout: AnnouncedLayout, values: Sequence[_Values]) -> pa.Table:
    schema = layout.table.schema
    size = len(values[0].kinds) if values else 0
    arrays = [
        pa.repeat(constant, size)
        if place is None
        else read_texts(buffer.cut(values[place]), column.type, oid, arrow_type(column.type, column.name))
        for column, place, oid, constant in zip(schema, layout.places, layout.type_oids, layout.values, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=list(schema.names))


def _demand(holds: Mask) -> None:
    if not holds.all():
        raise NotPlainError
