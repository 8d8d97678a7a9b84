"""Rows on disk: the same net effect, however deep they are divided."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from tests.sizes import times

from rollview.core.names import COUNT
from rollview.core.schema import Column, Constraints, Schema
from rollview.sources import spool
from rollview.sources.protocol import SourceTable
from rollview.sources.space import Space

ROWS = times(150, full=500)
SCHEMA = Schema((Column("id", "int"), Column("v", "string")))


@pytest.mark.parametrize("key", [("id",), ()], ids=["key", "bag"])
@pytest.mark.parametrize("large", [0, 2_000, 1 << 30])
def test_the_net_effect_does_not_depend_on_how_it_is_divided(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, key: tuple[str, ...], large: int
) -> None:
    monkeypatch.setattr(spool, "_LARGE", large)
    spooled = spool.Spool(SourceTable("t", SCHEMA, Constraints(primary_key=key)), Space("s", lambda: tmp_path))
    chance, expected = random.Random(1), Counter[tuple[int, str]]()
    for count in (+1, -1, +1):
        rows = [(chance.randrange(ROWS * 3 // 5), "x" * chance.randrange(3)) for _ in range(ROWS)]
        spooled.add(rows, count)
        expected.update({row: count * times for row, times in Counter(rows).items()})
    for _ in range(2):
        found = Counter[tuple[int, str]]()
        for piece in spooled.pieces():
            for row in piece.to_pylist():
                found[row["id"], row["v"]] += row[COUNT]
        assert {row: n for row, n in found.items() if n} == {row: n for row, n in expected.items() if n}
    spooled.close()


def test_equal_rows_cannot_be_divided_and_are_read_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spool, "_LARGE", 0)
    spooled = spool.Spool(SourceTable("t", SCHEMA, Constraints()), Space("s", lambda: tmp_path))
    spooled.add([(1, "x")] * 1000, +1)
    assert sum(sum(piece[COUNT].to_pylist()) for piece in spooled.pieces()) == 1000
    spooled.close()
