"""What is captured of a source that has much to tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rollview.capture.sequencer import FIRST_ROWS, ROWS_AT_ONCE, Sequencer


def test_much_is_published_in_larger_and_larger_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a process that is killed before it has read everything has got on."""
    left, asked, published = 1_000_000, list[int](), list[int]()

    def read(self: Sequencer, limit: int) -> dict[str, Any]:
        asked.append(limit)
        return {"s": SimpleNamespace(complete=limit >= left, rows=min(limit, left))}

    def publish(self: Sequencer, readings: dict[str, Any], arranged: object) -> bool:
        nonlocal left
        published.append(readings["s"].rows)
        left -= readings["s"].rows
        return True

    for name, done in {"_read": read, "_publish": publish, "_positions": lambda self: left}.items():
        monkeypatch.setattr(Sequencer, name, done)
    for name in ("_arrange", "_hold", "_acknowledge"):
        monkeypatch.setattr(Sequencer, name, lambda self, given: None)
    monkeypatch.setattr(Sequencer, "_progress", lambda self: {})
    Sequencer.__new__(Sequencer).run()
    assert asked[:4] == [FIRST_ROWS, 4 * FIRST_ROWS, ROWS_AT_ONCE, ROWS_AT_ONCE]
    assert sum(published) == 1_000_000
