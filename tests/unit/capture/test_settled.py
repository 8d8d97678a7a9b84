"""A unit of work on disk in several parts is one net effect, counted and written alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rollview.capture.arrange import Entry
from rollview.capture.commit_stream import Arrived
from rollview.capture.settled import Settled, settle
from rollview.catalog import Change, Relation, RelationKind
from rollview.core.schema import Column, Constraints, Schema
from rollview.sources.protocol import Changes, SourceTable, UnitOfWork
from rollview.sources.space import Space
from rollview.sources.spool import Spool

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = Schema((Column("id", "int"), Column("x", "double")))
KEY = Constraints(primary_key=("id",))
TABLE = Relation(1, "t", RelationKind.TABLE, SCHEMA, KEY, None, (), "t-1", 0, {}, (), None, "s")
REMOTE = ("s", "remote")
CSN = 7

Row = tuple[int, float | None]


@pytest.fixture
def space(tmp_path: Path) -> Iterator[Space]:
    folder = tmp_path / "spool"
    folder.mkdir()
    yield Space("s", lambda: folder)
    assert not any(folder.iterdir()), "what was poured is taken away again"


def spooled(space: Space, gone: Sequence[Row], come: Sequence[Row]) -> Spool:
    spool = Spool(SourceTable("remote", SCHEMA, KEY), space)
    spool.add(list(gone), -1)
    spool.add(list(come), +1)
    return spool


def settled(tmp_path: Path, *parts: Changes) -> Settled:
    units = [UnitOfWork(str(place), "t", NOW, {"remote": changes}) for place, changes in enumerate(parts)]
    entry = Entry(tuple(Arrived("s", unit, NOW) for unit in units), NOW)
    return settle(tmp_path, {REMOTE: TABLE}, [entry], CSN)


def written(found: Settled) -> Counter[tuple[Any, ...]]:
    pieces = found.tables[REMOTE]
    rows = [tuple(row.values()) for piece in pieces.each() for row in piece.to_pylist()]
    assert len(rows) == pieces.num_rows
    return Counter(rows)


def test_what_one_part_brings_and_another_takes_is_not_there(tmp_path: Path, space: Space) -> None:
    first = Changes(spools=(spooled(space, [(1, 1.0)], [(1, 2.0), (5, 5.0)]),))
    then = Changes(spools=(spooled(space, [(1, 2.0), (5, 5.0)], [(1, 3.0), (6, -0.0)]),))
    found = settled(tmp_path, first, then)
    assert written(found) == Counter([(1, 1.0, -1, CSN), (1, 3.0, 1, CSN), (6, 0.0, 1, CSN)])
    assert written(found) == written(found), "as often as it is asked"
    assert [entry.counts for entry in found.entries] == [(Change("t", 2, 1, 1),)]


def test_rows_in_memory_and_on_disk_are_one_net_effect(tmp_path: Path, space: Space) -> None:
    first = Changes(spools=(spooled(space, [], [(1, 1.0), (2, None)]),))
    found = settled(tmp_path, first, Changes([(1, 1.0)], [(1, 4.0)]), Changes([(1, 4.0)], []))
    assert written(found) == Counter([(2, None, 1, CSN)])
    assert found.entries[0].counts == (Change("t", 1, 0, 0),)


def test_a_unit_whose_parts_undo_each_other_has_no_csn(tmp_path: Path, space: Space) -> None:
    first = Changes(spools=(spooled(space, [(1, 1.0)], [(2, float("nan"))]),))
    then = Changes(spools=(spooled(space, [(2, float("nan"))], [(1, 1.0)]),))
    found = settled(tmp_path, first, then)
    assert (found.entries, dict(found.tables)) == ((), {})


def test_one_part_alone_is_what_it_says(tmp_path: Path, space: Space) -> None:
    found = settled(tmp_path, Changes(spools=(spooled(space, [(1, 1.0)], [(1, 1.0), (1, 2.0)]),)))
    assert written(found) == Counter([(1, 2.0, 1, CSN)])
