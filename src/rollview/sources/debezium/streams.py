"""Records in order, from a folder or from topics.

Law: a stream gives its records from a place on, each with the place after it, and the same ones when it is asked again.
A line without its end is not there yet. A place that is gone is a lost position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rollview.errors import LostPosition, SourceDown

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

    def records(self, stream: str, after: Place) -> Iterator[Found]: ...
    def close(self) -> None: ...


class FolderStreams:
    """The folder's own files are one stream, in the order of their names; each folder in it is another."""

    def __init__(self, source: str, root: Path) -> None:
        self._source = source
        self._root = root

    def start(self) -> Mapping[str, Place]:
        if not self._root.is_dir():
            raise SourceDown(self._source, f"there is no folder '{self._root}'")
        inner = sorted(path.name for path in self._root.iterdir() if path.is_dir() and path.name[0] not in "._")
        return {stream: [0, "", 0] for stream in ("", *inner)}

    def records(self, stream: str, after: Place) -> Iterator[Found]:
        count, name, offset = after
        folder = self._root / stream
        if name and not (folder / name).is_file():
            raise LostPosition(self._source, f"file '{name}' is gone")
        for path in sorted(path for path in folder.iterdir() if _is_data(path) and path.name >= name):
            begin = offset if path.name == name else 0
            if path.stat().st_size < begin:
                raise LostPosition(self._source, f"file '{name}' is shorter than before")
            for line, end in _lines(path, begin):
                count += 1
                yield Found(stream, [count, path.name, end], line)

    def close(self) -> None:
        """No file stays open."""


def _lines(path: Path, begin: int) -> Iterator[tuple[bytes, int]]:
    with path.open("rb") as file:
        file.seek(begin)
        for line in file:
            if not line.endswith(b"\n"):
                return
            begin += len(line)
            yield line, begin


def _is_data(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in _SUFFIXES and path.name[0] not in "._"
