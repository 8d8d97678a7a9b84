"""One part of one relation: a folder of Parquet files with a Delta log.

Law: ``commit(base, add, remove)`` makes a version whose files are ``files(base) - remove + add``, whatever was left
in the log by a process that died. Staged files that no version names do not exist for any reader.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa

from rollview.core import durable
from rollview.core.interval import Interval
from rollview.core.lazy import lazy_module
from rollview.core.lent import Lent
from rollview.core.names import COUNT, CSN, quoted
from rollview.core.phases import phase
from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt, EnvironmentFault
from rollview.store import links, parquet
from rollview.store.buckets import Buckets
from rollview.store.datafile import DataFile, safe_places
from rollview.store.loaded import FILES
from rollview.store.log import DeltaLog
from rollview.types.arrow import arrow_schema, arrow_type, constant, spark_schema, spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import functions as sf
    from pyspark.sql.pandas import types as spark_arrow
    from pyspark.sql.types import StructType
else:
    sf = lazy_module("pyspark.sql.functions")
    spark_arrow = lazy_module("pyspark.sql.pandas.types")

_ENCODED = re.compile("%[0-9A-Fa-f]{2}")
_FOLDER = re.compile(r"s-[0-9a-f]{32}")

_GLOB = re.compile(r"[][{}*?\\]")

# The paths are exact: no pattern, no partition columns read out of them.
_READ_OPTIONS = {
    "__globPaths__": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
# Where a folder above looks like a pattern, Spark would take each file once for each of the others.
_PATTERN = {"recursiveFileLookup": "true"}
# Files of others may have bounds of floats that leave NaN out: Spark would skip its rows by them.
_UNBOUNDED = {
    "parquet.filter.stats.enabled": "false",
    "parquet.filter.columnindex.enabled": "false",
    "parquet.filter.dictionary.enabled": "false",
    "parquet.filter.bloom.enabled": "false",
}


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

    def link(self, lent: Sequence[Lent], folder: str) -> tuple[DataFile, ...]:
        """Files of others under names below ``folder``, in no version; UnlinkableError if that cannot be."""
        place = self._staging(folder)
        with durable.disk(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            return links.link(self.root, place, lent, self.schema)

    def declare(self, columns: Iterable[Column]) -> None:
        """Other programs that read the table see these columns from its next version on, NULL in files without them."""
        self._log.declare(arrow_schema(Schema(tuple(columns))))

    def retype(self, columns: Iterable[Column]) -> None:
        """Other programs that read the table see these types from its next version on."""
        wider = tuple(columns)
        if wider:
            self._log.retype(arrow_schema(Schema(wider)))

    def declared(self) -> frozenset[str]:
        """The names of all columns that its files have had."""
        return self._log.declared()

    def withdraw(self, place: str, pinned: int) -> None:
        """Before a staging folder is discarded: whoever reads the newest version must not look for it."""
        self._log.withdraw(place, pinned)

    def read(self, spark: SparkSession, files: Iterable[DataFile]) -> DataFrame:
        """The rows of these files under their logical names."""
        groups: dict[tuple[bool, tuple[str, ...]], list[DataFile]] = {}
        for file in files:
            groups.setdefault((file.linked, tuple(file.constants)), []).append(file)
        if not groups:
            return empty(spark, self.schema)
        read = [self._read_files(spark, tuple(some), *about) for about, some in groups.items()]
        return reduce(lambda left, right: left.unionAll(right), read)

    def read_folder(self, spark: SparkSession, place: Path) -> DataFrame:
        """The rows of whatever files of this schema are in a folder."""
        return self._read(spark, _READ_OPTIONS, parquet.uri(place))

    def read_places(
        self, spark: SparkSession, places: Iterable[Path], more: Mapping[str, str] | None = None
    ) -> DataFrame:
        """The rows of files that were proven to be safe to read, each below its own root."""
        named = list(places)
        pattern = _PATTERN if any(_GLOB.search(str(place)) for place in named) else {}
        return self._read(spark, {**_READ_OPTIONS, **pattern, **(more or {})}, *map(parquet.uri, named))

    def _read_files(
        self, spark: SparkSession, files: tuple[DataFile, ...], linked: bool, constants: tuple[str, ...]
    ) -> DataFrame:
        unbounded = linked and self._has_floats
        data = self.read_places(spark, safe_places(self.root, files), _UNBOUNDED if unbounded else {})
        return data.selectExpr(*(_constant_sql(column, constants) for column in self.schema)) if constants else data

    @property
    def _has_floats(self) -> bool:
        return any(pa.types.is_floating(type_) for type_ in arrow_schema(self.schema).types)

    def _read(self, spark: SparkSession, options: Mapping[str, str], *places: str) -> DataFrame:
        data = spark.read.schema(_read_as(self.schema)).options(**options).parquet(*places)
        plain = arrow_schema(self.schema).names == list(self.schema.names)
        return data if plain else data.toDF(*self.schema.names)

    def load(self, files: Iterable[DataFile], csns: Interval | None = None) -> pa.Table:
        """The same rows in this process: only for files that are known to be small, or few ``csns`` of a delta."""
        physical = arrow_schema(self.schema)
        typed = [self._load(file, csns) for file in files]
        return pa.concat_tables([physical.empty_table(), *typed]).rename_columns(list(self.schema.names))

    def _load(self, file: DataFile, csns: Interval | None) -> pa.Table:
        def read() -> pa.Table:
            # What is known already is not opened, so nothing has to be proven of its path.
            (place,) = safe_places(self.root, (file,))
            return as_declared(parquet.load(place, csns=csns), self.schema, file.constants)

        return read() if csns is not None or file.linked else FILES.rows(self.root / file.path, self.schema, read)

    def load_columns(self, files: Iterable[DataFile], names: Iterable[str], csns: Interval) -> pa.Table:
        """Some columns of the changes in the interval, in this process: only for files that are known to be small."""
        schema = self.schema.only(names)
        stored = set(arrow_schema(schema).names)
        typed = [arrow_schema(schema).empty_table()]
        chosen = tuple(files)
        for place, file in zip(safe_places(self.root, chosen), chosen, strict=True):
            there = [name for name in parquet.columns(place) if name in stored]
            typed.append(as_declared(parquet.load(place, there, csns), schema, file.constants))
        return pa.concat_tables(typed).rename_columns(list(schema.names))

    def load_counts(self, file: DataFile, csns: Interval) -> pa.Table:
        """Of one file of a delta only ``_count`` and ``_csn``, where they are in the interval."""
        (place,) = safe_places(self.root, (file,))
        return parquet.load(place, [COUNT, CSN], csns)

    def discard(self, folder: str) -> None:
        """Take staged files away that no version names."""
        shutil.rmtree(self._staging(folder), ignore_errors=True)

    def _staging(self, folder: str) -> Path:
        if not _FOLDER.fullmatch(folder):
            raise ValueError(f"not a staging folder: {folder!r}")
        return self.root / folder


def read_together(
    spark: SparkSession, schema: Schema, parts: Sequence[tuple[DeltaFolder, Sequence[DataFile]]]
) -> DataFrame:
    """The rows of several folders under one schema, NULL where a file has no such column.

    In one scan, all but the files of others: Spark plans what is above a union of scans once for each of them.
    """
    own: list[Path] = []
    read: list[DataFrame] = []
    for folder, files in parts:
        own += safe_places(folder.root, tuple(file for file in files if not file.linked))
        linked = tuple(file for file in files if file.linked)
        if linked:
            read.append(_widened(folder.read(spark, linked), folder.schema, schema))
    if own:
        read.append(DeltaFolder(parts[0][0].root, schema).read_places(spark, own))
    return reduce(lambda left, right: left.unionAll(right), read) if read else empty(spark, schema)


def _widened(data: DataFrame, present: Schema, schema: Schema) -> DataFrame:
    """With columns of NULL, whatever a file of others has under their names."""
    return data.select(
        *(
            sf.col(quoted(c.name))
            if present.find(c.name)
            else sf.lit(None).cast(spark_type(arrow_type(c.type, c.name))).alias(c.name)
            for c in schema
        )
    )


def as_declared(table: pa.Table, schema: Schema, constants: Mapping[str, str | None]) -> pa.Table:
    """A file's rows in exactly these columns, under their names in files.

    One that came after the file was written has its constant in it, or NULL. ``constants``: the text of columns that
    have one value in all of its rows.
    """
    there = set(table.column_names)
    physical = arrow_schema(schema)
    size, columns = table.num_rows, []
    for field, column in zip(physical, schema, strict=True):
        if field.name in there and field.name not in constants:
            columns.append(table[field.name])
            continue
        text = constants.get(field.name, column.fill)
        columns.append(pa.repeat(constant(text, field.type), size))
    return pa.Table.from_arrays(columns, names=physical.names).cast(physical)


@lru_cache(maxsize=1024)
def _read_as(schema: Schema) -> str | StructType:
    """What Spark's reader is to find in files; a constant is what it gives for a file without the column."""
    fills = {column.stored: column.fill for column in schema if column.fill is not None}
    if not fills:
        return spark_schema(schema)
    found = spark_arrow.from_arrow_schema(arrow_schema(schema), prefer_timestamp_ntz=True)
    for field in found:
        text = fills.get(field.name)
        if text is not None:
            field.metadata = {"EXISTS_DEFAULT": f"CAST({_literal(text)} AS {field.dataType.simpleString()})"}
    return found


def _literal(text: str) -> str:
    """Text as one literal of Spark, whatever is in it."""
    return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"


def _constant_sql(column: Column, constants: tuple[str, ...]) -> str:
    """The column's value: out of the name of the file's folder, where that tells it."""
    if column.name not in constants:
        return quoted(column.name)
    text = f"split_part(split_part(_metadata.file_path, '/', -2), '.', {constants.index(column.name) + 1})"
    type_ = spark_type(arrow_type(column.type, column.name))
    # What stands for NULL is no hexadecimal number.
    return f"CAST(decode(unhex({text}), 'UTF-8') AS {type_}) AS {quoted(column.name)}"


def frame(spark: SparkSession, rows: pa.Table, schema: Schema) -> DataFrame:
    """Few rows of this process as a DataFrame."""
    typed = pa.schema(list(zip(schema.names, arrow_schema(schema).types, strict=True)))
    # Spark takes a table whose first pieces are empty for an empty one.
    whole = rows.cast(typed).combine_chunks()
    return spark.createDataFrame(whole, spark_arrow.from_arrow_schema(typed, prefer_timestamp_ntz=True))


def empty(spark: SparkSession, schema: Schema) -> DataFrame:
    """No rows, in a form that Spark's optimiser sees through."""
    columns = [sf.lit(None).cast(spark_type(arrow_type(c.type, c.name))).alias(c.name) for c in schema]
    return spark.range(1).where(sf.lit(False)).select(*columns)


def opaque(spark: SparkSession, schema: Schema, name: str) -> DataFrame:
    """Rows of which Spark's optimiser knows nothing but their types; they cannot be looked at.

    Every column is an expression of its own, so that what reads one is never taken for what reads another.
    """
    columns = (
        f"CAST(raise_error('{f'{name}.{c.name}'.encode().hex()}') AS {spark_type(arrow_type(c.type, c.name))}) "
        f"AS {quoted(c.name)}"
        for c in schema
    )
    # One text, because each call of a column's methods is a call of Java.
    return spark.sql(f"SELECT {', '.join(columns)} FROM range(2)")
