"""How much of a test is done: all of it by ``make faults``, a part of it otherwise."""

from __future__ import annotations

import os

import pytest

_ASKED = os.environ.get("ROLLVIEW_FAULTS")

FULL = _ASKED == "full"
by_request = pytest.mark.skipif(_ASKED is None, reason="NOT RUN: ROLLVIEW_FAULTS=part or full asks for it")


def times(part: int, full: int) -> int:
    """How often the same kind of thing is tried."""
    return full if FULL else part
