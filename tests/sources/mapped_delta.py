"""A Delta table that maps its columns, written as the protocol says: by its log and its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pyarrow as pa
import pyarrow.parquet as pq

_TYPES: Mapping[str, pa.DataType] = {
    "integer": pa.int32(),
    "long": pa.int64(),
    "string": pa.string(),
    "double": pa.float64(),
}
Record = Mapping[int, Any]
"""The values of a row by the numbers of its columns; what is not there is NULL."""


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """``number`` is its field id and never used again; ``physical``: its name in files."""

    number: int
    name: str
    type: str
    physical: str

    def written(self, mode: str) -> dict[str, Any]:
        about = {"delta.columnMapping.id": self.number, "delta.columnMapping.physicalName": self.physical}
        return {
            "name": self.name,
            "type": self.type,
            "nullable": True,
            "metadata": {} if mode == "none" else about,
        }


class MappedTable:
    """``partition``: the number of the column that divides the table."""

    def __init__(
        self,
        root: Path,
        columns: Sequence[tuple[str, str]],
        mode: str = "name",
        partition: int | None = None,
        id_: str = "the first",
    ) -> None:
        self.root, self.mode, self.partition, self.id = root, mode, partition, id_
        self.version, self._last, self._files = -1, 0, 0
        self.columns: tuple[MappedColumn, ...] = ()
        self.files: dict[str, list[Record]] = {}
        (root / "_delta_log").mkdir(parents=True)
        for name, type_ in columns:
            self.columns = (*self.columns, self.new_column(name, type_))
        self._commit([self._protocol(), self._metadata()])

    @property
    def rows(self) -> list[Record]:
        return [row for rows in self.files.values() for row in rows]

    def new_column(self, name: str, type_: str) -> MappedColumn:
        self._last += 1
        return MappedColumn(self._last, name, type_, name if self.mode == "none" else f"col-{self._last}")

    def number(self, name: str) -> int:
        return next(column.number for column in self.columns if column.name == name)

    def append(self, *rows: Mapping[str, Any]) -> None:
        self._commit(self._added([{self.number(name): value for name, value in row.items()} for row in rows]))

    def delete(self, path: str, kept: Sequence[Record]) -> None:
        """The file's rows are the kept ones from here on, in another file."""
        removed = [self._removed(path)]
        self._commit([*removed, *(self._added(kept) if kept else [])])

    def alter(self, columns: Iterable[MappedColumn]) -> None:
        """Another schema, and no file."""
        self.columns = tuple(columns)
        self._commit([self._metadata()])

    def rename(self, **names: str) -> None:
        self.alter(replace(column, name=names.get(column.name, column.name)) for column in self.columns)

    def overwrite(self, columns: Iterable[MappedColumn], rows: Sequence[Record]) -> None:
        """Another schema with all rows, in one version."""
        removed = [self._removed(path) for path in list(self.files)]
        self.columns = tuple(columns)
        self._commit([self._metadata(), *removed, *self._added(rows)])

    def map_columns(self) -> None:
        """The table begins to map its columns: they keep their names in files."""
        self.mode = "name"
        self._commit([self._protocol(), self._metadata()])

    def _protocol(self) -> dict[str, Any]:
        features = ["typeWidening"] if self.mode == "none" else ["columnMapping", "typeWidening"]
        versions = {"minReaderVersion": 3, "minWriterVersion": 7}
        return {"protocol": {**versions, "readerFeatures": features, "writerFeatures": features}}

    def _metadata(self) -> dict[str, Any]:
        schema = {"type": "struct", "fields": [column.written(self.mode) for column in self.columns]}
        mapped = {"delta.columnMapping.mode": self.mode, "delta.columnMapping.maxColumnId": str(self._last)}
        divided = [column.name for column in self.columns if column.number == self.partition]
        return {
            "metaData": {
                "id": str(uuid5(NAMESPACE_URL, self.id)),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps(schema),
                "partitionColumns": divided,
                "configuration": {} if self.mode == "none" else mapped,
                "createdTime": 1,
            }
        }

    def _added(self, rows: Sequence[Record]) -> list[dict[str, Any]]:
        """A file for each value of the partition."""
        divided = sorted({row.get(self.partition or 0) for row in rows}, key=str)
        return [self._file([row for row in rows if row.get(self.partition or 0) == value], value) for value in divided]

    def _file(self, rows: Sequence[Record], value: Any) -> dict[str, Any]:
        self._files += 1
        path = f"f{self._files}.parquet"
        own = [column for column in self.columns if column.number != self.partition]
        fields = [
            pa.field(column.physical, _TYPES[column.type], metadata={"PARQUET:field_id": str(column.number)})
            for column in own
        ]
        arrays = [pa.array([row.get(column.number) for row in rows], _TYPES[column.type]) for column in own]
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), self.root / path)
        self.files[path] = [{c.number: row.get(c.number) for c in self.columns} for row in rows]
        parts = {c.physical: None if value is None else str(value) for c in self.columns if c.number == self.partition}
        size = (self.root / path).stat().st_size
        about = {"path": path, "partitionValues": parts, "size": size, "modificationTime": 1, "dataChange": True}
        return {"add": {**about, "stats": json.dumps({"numRecords": len(rows)})}}

    def _removed(self, path: str) -> dict[str, Any]:
        del self.files[path]
        return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}}

    def _commit(self, actions: Sequence[Mapping[str, Any]]) -> None:
        self.version += 1
        told = [{"commitInfo": {"timestamp": 1000 * (self.version + 1)}}, *actions]
        text = "".join(json.dumps(action) + "\n" for action in told)
        (self.root / "_delta_log" / f"{self.version:020d}.json").write_text(text)
