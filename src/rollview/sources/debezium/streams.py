"""Records in order, from a folder or from topics.

Law: a stream gives its records from a place on, each with the place after it, and the same ones when it is asked again.
A line without its end is not there yet. A place that is gone is a lost position, and so is a file that was never read
and comes before the place in the order of the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rollview.errors import LostPosition, SourceDown
from rollview.sources.inside import Inside

Place = list[Any]
"""How many records came before, and where the stream goes on."""

_SUFFIXES = (".json", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class Found:
    stream: str
    place: Place
    data: bytes | None


class Streams(Protocol):
    def start(self) -> Mapping[str, Place]:
        """Where each stream begins."""

    def listed(self) -> Mapping[str, Sequence[str]]:
        """The files of each stream, as ``start`` has found them; nothing where streams are not made of files."""

    def check(self, places: Mapping[str, Place], known: Mapping[str, Sequence[str]] | None) -> None:
        """LostPosition if a file before one of the places is not among those that were ``known`` when it was read."""

    def records(self, stream: str, after: Place) -> Iterator[Found]: ...
    def is_beyond(self, place: Place, other: Place) -> bool:
        """Of two places of a stream, whether the first is after the second."""

    def close(self) -> None: ...


_Key = Callable[[str], tuple[Any, ...]]


def _by_name(name: str) -> tuple[Any, ...]:
    return (name,)


def _by_number(name: str) -> tuple[Any, ...]:
    """Texts and numbers in turn; names that differ in nothing but leading zeroes by their names.

    The name stands beside the parts, not after them: a name that another begins with would be compared with a number.
    """
    parts = re.split(r"([0-9]+)", name)
    return tuple((1, int(part)) if place % 2 else (0, part) for place, part in enumerate(parts)), name


FILE_ORDERS: Mapping[str, _Key] = {"name": _by_name, "natural": _by_number}


class FolderStreams:
    """The folder's own files are one stream, in the order of their names; each folder in it is another.

    ``order``: one of FILE_ORDERS. Without it, by name, and names that the orders do not agree on are refused.
    """

    def __init__(self, inside: Inside, order: str | None = None) -> None:
        self._inside = inside
        self._source = inside.source
        self._is_sure = order in FILE_ORDERS
        self._key = FILE_ORDERS.get(order or "name", _by_name)
        self._listed: dict[str, list[str]] = {}

    def start(self) -> Mapping[str, Place]:
        if not self._inside.root.is_dir():
            raise SourceDown(self._source, f"there is no folder '{self._inside.root}'")
        with self._inside.reading(), os.scandir(self._inside.root) as entries:
            inner = sorted(entry.name for entry in entries if entry.name[0] not in "._" and entry.is_dir())
        self._listed = {stream: self._names(stream) for stream in ("", *inner)}
        return {stream: [0, "", 0] for stream in self._listed}

    def listed(self) -> Mapping[str, Sequence[str]]:
        return self._listed

    def check(self, places: Mapping[str, Place], known: Mapping[str, Sequence[str]] | None) -> None:
        for stream, (_, name, _) in places.items():
            if stream not in self._listed or (name and not self._listed[stream]):
                raise SourceDown(self._source, f"there is nothing in folder '{self._inside.root / stream}'")
            if name and name not in self._listed[stream]:
                raise LostPosition(self._source, f"file '{name}' is gone")
            below = [other for other in self._listed[stream] if self._key(other) < self._key(name)]
            unread = sorted(set(below).difference(below if known is None else known.get(stream, ())))
            if unread and name:
                what = f"file '{unread[0]}' was never read, and comes before '{name}', which was"
                raise LostPosition(self._source, f"{what}{'' if self._is_sure else _ADVICE}")
            self._check_order([other for other in self._listed[stream] if self._key(other) >= self._key(name)])

    def records(self, stream: str, after: Place) -> Iterator[Found]:
        count, name, offset = after
        for current in [one for one in self._listed[stream] if self._key(one) >= self._key(name)]:
            path, begin = self._inside.root / stream / current, offset if current == name else 0
            if self._inside.facts(path).st_size < begin:
                raise LostPosition(self._source, f"file '{name}' is shorter than before")
            for line, end in self._lines(path, begin):
                count += 1
                yield Found(stream, [count, current, end], line)

    def is_beyond(self, place: Place, other: Place) -> bool:
        # Records are counted from the oldest file that there is.
        (_, name, offset), (_, before, until) = place, other
        return (self._key(name), offset) > (self._key(before), until)

    def close(self) -> None:
        """No file stays open."""

    def _names(self, stream: str) -> list[str]:
        """The data files in their order."""
        folder = self._inside.place(self._inside.root / stream)
        with self._inside.reading(), os.scandir(folder) as entries:
            names = [entry.name for entry in entries if _is_data(entry.name) and not entry.is_dir()]
        for name in names:
            self._inside.facts(folder / name)
        return sorted(names, key=self._key)

    def _check_order(self, names: Sequence[str]) -> None:
        if self._is_sure:
            return
        for one, other in zip(names, sorted(names, key=_by_number), strict=True):
            if one != other:
                what = f"by their names file '{one}' comes before '{other}', and by the numbers in them after it"
                raise LostPosition(self._source, f"{what}{_ADVICE}")

    def _lines(self, path: Path, begin: int) -> Iterator[tuple[bytes, int]]:
        with self._inside.open(path) as file, self._inside.reading():
            file.seek(begin)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                begin += len(line)
                yield line, begin


_ADVICE = "; remove the source, and add it with the option file_order: natural, or name if names alone count"


def _is_data(name: str) -> bool:
    return Path(name).suffix.lower() in _SUFFIXES and name[0] not in "._"
