"""Notes of files that are out of use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from rollview.maintain.notes import Notes, read_notes, write_notes

NOTED = datetime(2026, 1, 1, tzinfo=UTC)


def test_maintainers_who_note_at_once_leave_whole_notes_and_nothing_else(tmp_path: Path) -> None:
    notes = [Notes({f"files/{n}/{place}": NOTED for place in range(200)}) for n in range(8)]
    with ThreadPoolExecutor(8) as crew:
        list(crew.map(lambda one: [write_notes(tmp_path, one) for _ in range(20)], notes))
    assert read_notes(tmp_path) in notes
    assert [path.name for path in tmp_path.iterdir()] == ["unused.json"]
