from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from rollview.sources import SourceSettings, TableSettings
from rollview.sources.delta.source import DeltaSource
from tests.sources.harness import ACCOUNTS, NOTES, Bag, Write

SCHEMAS = {
    "account": pa.schema([("id", pa.int32()), ("owner", pa.string()), ("balance", pa.decimal128(12, 2))]),
    "note": pa.schema([("text", pa.string())]),
}


class DeltaHarness:
    """Insertions append; anything else writes the table anew, as one version."""

    kind = "delta"
    capabilities = DeltaSource.capabilities

    def __init__(self, folder: Path) -> None:
        self.root = folder / "lake"
        self._rows: dict[str, Bag] = {"account": Counter(ACCOUNTS), "note": Counter(NOTES)}
        for table in self._rows:
            self._save(table)

    def settings(self) -> SourceSettings:
        tables = (TableSettings("account", "account"), TableSettings("note", "note"))
        return SourceSettings("delta", str(self.root), tables)

    def write(self, *writes: Write) -> None:
        for table in {write.table for write in writes}:
            own = [write for write in writes if write.table == table]
            for write in own:
                self._rows[table] -= Counter([write.before] if write.before is not None else [])
                self._rows[table] += Counter([write.after] if write.after is not None else [])
            if all(write.before is None for write in own):
                self._append(table, Counter(write.after for write in own if write.after is not None))
            else:
                self._save(table)

    def rows(self, table: str) -> Bag:
        return Counter(self._rows[table])

    def empty(self, table: str) -> None:
        self._rows[table] = Counter()
        self._save(table)

    def lose(self) -> None:
        """The oldest version of the log that was not read yet goes."""
        for table in self._rows:
            (self.root / table / "_delta_log" / f"{1:020d}.json").unlink(missing_ok=True)

    def leftovers(self) -> list[str]:
        return [path.name for path in self.root.rglob("*rollview*")]

    def close(self) -> None: ...

    def _save(self, table: str) -> None:
        write_deltalake(self.root / table, self._table(table, self._rows[table]), mode="overwrite")

    def _append(self, table: str, rows: Bag) -> None:
        write_deltalake(self.root / table, self._table(table, rows), mode="append")

    def _table(self, table: str, rows: Bag) -> pa.Table:
        schema = SCHEMAS[table]
        columns = list(zip(*rows.elements(), strict=True)) or [()] * len(schema)
        return pa.table(
            [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema=schema
        )
