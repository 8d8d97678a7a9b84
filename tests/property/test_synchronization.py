"""Views through schema changes: each definition gives the rows of the view's first one over columns by id."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.property.synchronized import History
from tests.sizes import times

HISTORIES = int(os.environ.get("ROLLVIEW_SYNCHRONIZED", times(48, full=2000)))
CHUNKS = 4
COMMITS, CHANGES = 30, 6


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_definition_gives_the_rows_of_the_first_over_columns_by_id(chunk: int) -> None:
    checked = intervals = 0
    for seed in range(chunk, HISTORIES, CHUNKS):
        history = History(Random(seed))
        try:
            history.run(COMMITS, CHANGES)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        checked += history.checked
        intervals += history.intervals
    assert checked > HISTORIES // CHUNKS * COMMITS
    assert intervals >= HISTORIES // CHUNKS * 8
