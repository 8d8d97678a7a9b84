"""What a version of a Delta table changed.

Law: the rows of the files that it added, without the rows of the files that it removed. A version that only moved rows
says so, and is not read. Where the writer has put down the changes themselves (change data feed) those are read; they
say the same in fewer rows, which is checked by their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rollview.sources.delta.columns import Located, Remembered, columns_of
from rollview.sources.delta.files import (
    LOG,
    BadLogError,
    DataLostError,
    File,
    added_files,
    in_columns,
    load_file,
    place_of,
    read_rows,
)
from rollview.sources.inside import Inside
from rollview.sources.json_text import NotJsonError, load_json
from rollview.types.arrow import arrow_type

_KIND = "_change_type"
_SIGNS: Mapping[str, int] = {"insert": +1, "update_postimage": +1, "delete": -1, "update_preimage": -1}

Signed = Iterator[tuple[pa.Table, int]]
"""Rows that come (+1) or go (-1)."""


@dataclass(frozen=True, slots=True)
class Version:
    """A version and the one before it. ``feed``: files of its change data feed; ``moves``: it changed no row.
    ``before`` and ``after``: what has the values of captured columns in the one and the other."""

    old: DeltaTable
    new: DeltaTable
    before: Located
    after: Located
    gone: tuple[File, ...]
    come: tuple[File, ...]
    feed: tuple[Mapping[str, Any], ...]
    moves: bool
    inside: Inside

    @property
    def keeps_columns(self) -> bool:
        """Whether all that is captured has its values in the same columns in both."""
        pairs = zip(self.before, self.after, strict=True)
        return all(
            old is not None and new is not None and old.is_one_with(new) and old.type == new.type
            for (_, old), (_, new) in pairs
        )

    @property
    def grows(self) -> int | None:
        """By how many rows, as far as the log says."""
        come: list[int | None] = [file["num_records"] for file in self.come]
        gone: list[int | None] = [file["num_records"] for file in self.gone]
        if None in come or None in gone:
            return None
        return sum(count or 0 for count in come) - sum(count or 0 for count in gone)


def version_of(old: DeltaTable, new: DeltaTable, captured: Remembered, root: Path, inside: Inside) -> Version:
    before, after = added_files(old), added_files(new)
    gone = tuple(file for path, file in before.items() if path not in after)
    come = tuple(file for path, file in after.items() if path not in before)
    actions = _actions(root / LOG / f"{new.version():020d}.json", inside)
    data = [action for kind, action in actions if kind in ("add", "remove")]
    moves = bool(data) and not any(action.get("dataChange", True) for action in data)
    feed = tuple(action for kind, action in actions if kind == "cdc")
    located = (captured.located(columns_of(old)), captured.located(columns_of(new)))
    return Version(old, new, *located, gone, come, feed, moves, inside)


def changed_rows(version: Version) -> Signed:
    # Where columns have changed, rows that only moved may have other values here.
    if version.moves and version.grows == 0 and version.keeps_columns:
        return
    fed = None
    if version.feed and version.keeps_columns:
        # The feed may be vacuumed, too; the files themselves then tell what they can.
        with suppress(DataLostError):
            fed = _fed(version)
    if fed is not None:
        yield from fed
        return
    for file in version.gone:
        yield read_rows(version.old, file, version.before, version.inside), -1
    for file in version.come:
        yield read_rows(version.new, file, version.after, version.inside), +1


def _fed(version: Version) -> list[tuple[pa.Table, int]] | None:
    """None if it does not say what the files say."""
    found = [piece for action in version.feed for piece in _feed_file(version, action)]
    grows = sum(sign * rows.num_rows for rows, sign in found)
    return found if version.grows in (None, grows) else None


def _feed_file(version: Version, action: Mapping[str, Any]) -> Signed:
    rows = load_file(place_of(version.new, action["path"], version.inside), version.inside)
    values = dict(_typed(action.get("partitionValues") or {}, version.after))
    kinds, whole = rows[_KIND], in_columns(rows, values, version.after)
    if pc.any(pc.invert(pc.is_in(kinds, pa.array(list(_SIGNS))))).as_py():
        raise DataLostError(f"the feed '{action['path']}' has changes of another kind")
    for sign in (-1, +1):
        named = pa.array([kind for kind, own in _SIGNS.items() if own == sign])
        yield whole.filter(pc.is_in(kinds, named)), sign


def _typed(values: Mapping[str, str | None], columns: Located) -> Iterator[tuple[str, Any]]:
    """What the log says of a partition, as ``added_files`` tells it."""
    for column, own in columns:
        if own is not None and own.physical in values:
            type_ = arrow_type(column.type, column.name)
            if pa.types.is_temporal(type_) and not pa.types.is_date(type_):
                raise DataLostError(f"the feed's partitions are of type {type_}")
            yield f"partition.{own.name}", pa.array([values[own.physical]], pa.string()).cast(type_)[0].as_py()


def _actions(commit: Path, inside: Inside) -> list[tuple[str, Mapping[str, Any]]]:
    """What a commit says; nothing if it is only in a checkpoint."""
    with inside.reading():
        try:
            lines = commit.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        except UnicodeDecodeError:
            raise BadLogError(f"'{commit.name}' of its log is not text") from None
    return [pair for line in lines if line.strip() for pair in _action(commit, line)]


def _action(commit: Path, line: str) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        action = load_json(line)
    except NotJsonError as error:
        raise BadLogError(f"'{commit.name}' of its log: {error}") from None
    if not isinstance(action, dict) or not all(isinstance(said, dict) for said in action.values()):
        raise BadLogError(f"'{commit.name}' of its log has an action that is none")
    return list(action.items())
