"""One part of one relation: a folder of Parquet files with a Delta log.

Law: ``commit(base, add, remove)`` makes a version whose files are ``files(base) - remove + add``, whatever was left
in the log by a process that died. Staged files that no version names do not exist for any reader.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from rollview.core.phases import phase
from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt, EnvironmentFault
from rollview.store import durable, parquet
from rollview.store.buckets import Buckets
from rollview.store.datafile import DataFile, safe_places
from rollview.store.log import DeltaLog
from rollview.store.types import arrow_schema, arrow_type, spark_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_FOLDER = re.compile(r"s-[0-9a-f]{32}")

_GLOB = re.compile(r"[][{}*?\\]")

# The paths are exact: no pattern, no partition columns read out of them.
_READ_OPTIONS = {"__globPaths__": "false", "mergeSchema": "false", "datetimeRebaseMode": "CORRECTED"}
# Where a folder above looks like a pattern, Spark would take each file once for each of the others.
_PATTERN_OPTIONS = {**_READ_OPTIONS, "recursiveFileLookup": "true"}


class DeltaFolder:
    """``schema`` has the logical columns of the part, with ``_count`` and ``_csn`` where it is a delta."""

    def __init__(self, root: Path, schema: Schema) -> None:
        self.root = root.absolute()
        if _ENCODED.search(str(self.root)):
            raise EnvironmentFault(
                f"A warehouse cannot be in '{self.root}': Delta readers decode the '%' in it.",
                hint="Rename the folder.",
            )
        self.schema = schema
        self._log = DeltaLog(self.root, arrow_schema(schema))

    @staticmethod
    def new_folder() -> str:
        return f"s-{uuid4().hex}"

    def files(self, version: int) -> tuple[DataFile, ...]:
        return self._log.files(version)

    def stage(
        self,
        data: DataFrame | pa.Table,
        folder: str,
        *,
        buckets: Buckets | None = None,
        sort: tuple[str, ...] = (),
    ) -> tuple[DataFile, ...]:
        """Write rows below ``folder``; they are on disk when this returns, and in no version."""
        place = self._staging(folder)
        with durable.disk(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            parquet.write(data, place, self.schema, buckets, sort)
            return parquet.collect_staged(self.root, place, self.schema)

    @phase("commit")
    def commit(
        self, base: int | None, add: Iterable[DataFile], remove: Iterable[DataFile], note: Mapping[str, str]
    ) -> int:
        target = {file.path: file for file in (() if base is None else self.files(base))}
        for file in remove:
            if target.pop(file.path, None) is None:
                raise Corrupt(f"Version {base} of '{self.root}' has no file {file.path!r} to remove.", path=file.path)
        target.update({file.path: file for file in add})
        return self._log.reconcile(tuple(target.values()), note, base)

    def declare(self, columns: Iterable[Column]) -> None:
        """Other programs that read the table see these columns from its next version on, NULL in files without them."""
        self._log.declare(arrow_schema(Schema(tuple(columns))))

    def withdraw(self, place: str, pinned: int) -> None:
        """Before a staging folder is discarded: whoever reads the newest version must not look for it."""
        self._log.withdraw(place, pinned)

    def read(self, spark: SparkSession, files: Iterable[DataFile]) -> DataFrame:
        """The rows of these files under their logical names."""
        places = [parquet.uri(place) for place in safe_places(self.root, tuple(files))]
        if not places:
            return empty(spark, self.schema)
        options = _PATTERN_OPTIONS if _GLOB.search(str(self.root)) else _READ_OPTIONS
        return self._read(spark, options, *places)

    def read_folder(self, spark: SparkSession, place: Path) -> DataFrame:
        """The rows of whatever files of this schema are in a folder."""
        return self._read(spark, _READ_OPTIONS, parquet.uri(place))

    def _read(self, spark: SparkSession, options: Mapping[str, str], *places: str) -> DataFrame:
        data = spark.read.schema(spark_schema(self.schema)).options(**options).parquet(*places)
        plain = arrow_schema(self.schema).names == list(self.schema.names)
        return data if plain else data.toDF(*self.schema.names)

    def load(self, files: Iterable[DataFile]) -> pa.Table:
        """The same rows in this process: only for files that are known to be small."""
        physical = arrow_schema(self.schema)
        tables = [parquet.load(place) for place in safe_places(self.root, tuple(files))]
        typed = [as_declared(table, physical) for table in tables]
        return pa.concat_tables([physical.empty_table(), *typed]).rename_columns(list(self.schema.names))

    def discard(self, folder: str) -> None:
        """Take staged files away that no version names."""
        shutil.rmtree(self._staging(folder), ignore_errors=True)

    def _staging(self, folder: str) -> Path:
        if not _FOLDER.fullmatch(folder):
            raise ValueError(f"not a staging folder: {folder!r}")
        return self.root / folder


def as_declared(table: pa.Table, physical: pa.Schema) -> pa.Table:
    """A file's rows in exactly these columns; one that came after the file was written is NULL in it."""
    there = set(table.column_names)
    columns = [table[field.name] if field.name in there else pa.nulls(table.num_rows, field.type) for field in physical]
    return pa.Table.from_arrays(columns, names=physical.names).cast(physical)


def frame(spark: SparkSession, rows: pa.Table, schema: Schema) -> DataFrame:
    """Few rows of this process as a DataFrame."""
    from pyspark.sql.pandas.types import from_arrow_schema

    typed = pa.schema(list(zip(schema.names, arrow_schema(schema).types, strict=True)))
    return spark.createDataFrame(rows.cast(typed), from_arrow_schema(typed, prefer_timestamp_ntz=True))


def empty(spark: SparkSession, schema: Schema) -> DataFrame:
    """No rows, in a form that Spark's optimiser sees through."""
    from pyspark.sql import functions as sf

    columns = [sf.lit(None).cast(spark_type(arrow_type(c.type, c.name))).alias(c.name) for c in schema]
    return spark.range(1).where(sf.lit(False)).select(*columns)
