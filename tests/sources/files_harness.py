from __future__ import annotations

import json
import os
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.files.source import FilesSource
from tests.sources.harness import ACCOUNTS, NOTES, Bag, Row, Write

TYPES = {"account": {"id": "int", "owner": "string", "balance": "decimal(12,2)"}, "note": {"text": "string"}}


class FilesHarness:
    """Accounts as JSON lines with a key, in a file per account; notes as CSV, in one file that is written anew."""

    kind = "files"
    capabilities = FilesSource.capabilities

    def __init__(self, folder: Path) -> None:
        self.root = folder / "drop"
        self._rows: dict[str, Bag] = {"account": Counter(ACCOUNTS), "note": Counter(NOTES)}
        self._writes = 0
        for table in self._rows:
            (self.root / table).mkdir(parents=True)
            self._save(table)

    def settings(self) -> SourceSettings:
        tables = (
            TableSettings("account", "account", TYPES["account"], ("id",), "json"),
            TableSettings("note", "note", TYPES["note"], (), "csv"),
        )
        return SourceSettings("files", str(self.root), tables, {"settle_seconds": "0.5", "confirm_empty_seconds": "0"})

    def write(self, *writes: Write) -> None:
        for write in writes:
            if write.before is not None:
                self._rows[write.table] -= Counter([write.before])
            if write.after is not None:
                self._rows[write.table] += Counter([write.after])
        for table in {write.table for write in writes}:
            self._save(table)

    def rows(self, table: str) -> Bag:
        return Counter(self._rows[table])

    def empty(self, table: str) -> None:
        self._rows[table] = Counter()
        self._save(table)

    def lose(self) -> None:
        """There is nothing to lose: the folder is compared with what the warehouse holds."""

    def leftovers(self) -> list[str]:
        return [path.name for path in self.root.rglob("*rollview*")]

    def close(self) -> None: ...

    def _save(self, table: str) -> None:
        folder = self.root / table
        if table == "note":
            text = "text\n" + "".join(f"{_csv(row[0])}\n" for row in self._rows[table].elements())
            self._replace(folder / "notes.csv", text)
            return
        wanted = {f"{row[0]}.jsonl": _json(row) for row in self._rows[table]}
        for path in folder.iterdir():
            if path.name not in wanted:
                path.unlink()
        for name, text in wanted.items():
            if not (folder / name).exists() or (folder / name).read_text() != text:
                self._replace(folder / name, text)

    def _replace(self, path: Path, text: str) -> None:
        """Whole at once, and written long ago."""
        self._writes += 1
        half = path.with_suffix(".tmp")
        half.write_text(text, newline="")
        moment = time.time() - 1000 + self._writes
        os.utime(half, (moment, moment))
        half.replace(path)


def _json(row: Row) -> str:
    values: dict[str, Any] = dict(zip(TYPES["account"], row, strict=True))
    if isinstance(values["balance"], Decimal):
        values["balance"] = str(values["balance"])
    return json.dumps(values) + "\n"


def _csv(text: str | None) -> str:
    return "" if text is None else '"' + text.replace('"', '""') + '"'
