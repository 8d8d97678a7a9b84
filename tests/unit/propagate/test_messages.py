"""What several snapshots of one source saw together."""

from __future__ import annotations

import pytest

from rollview.compensate.maintainer import Seen
from rollview.propagate.messages import _together


@pytest.mark.parametrize(
    ("hops", "known", "seen"),
    [
        ([[True, True]], 2, Seen(2)),
        # Another unit was committed between the two: both saw all that was known before.
        ([[True, False], [True, True]], 1, Seen(2)),
        # The first did not see what was known, though the second did.
        ([[True, False], [True, True]], 2, Seen(2, frozenset({2}))),
        # One that is logged and cannot be seen yet, before one that can.
        ([[True, False, True]], 1, Seen(3, frozenset({2}))),
        ([[False, False]], 0, Seen(0)),
        ([[False, False]], 1, Seen(0, frozenset({1}))),
    ],
)
def test_what_snapshots_saw_together(hops: list[list[bool]], known: int, seen: Seen) -> None:
    assert _together(hops, known) == seen
