"""What the information schema says of the chosen tables, and what capture would miss there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollview.core.names import quoted
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import Unsupported
from rollview.sources.binlog.charsets import is_read_alike
from rollview.sources.protocol import Finding, SourceTable, projected
from rollview.sources.settings import TableSettings

_COLUMNS = """
    SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, is_nullable, column_key,
           character_octet_length, extra, character_set_name
    FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position"""
_KEY = """
    SELECT column_name FROM information_schema.key_column_usage
    WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position"""
_TABLE = "SELECT table_type, engine FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"

_SIGNED: Mapping[str, str] = {
    "tinyint": "tinyint",
    "smallint": "smallint",
    "mediumint": "int",
    "int": "int",
    "bigint": "bigint",
}
_UNSIGNED: Mapping[str, str] = {
    "tinyint": "smallint",
    "smallint": "int",
    "mediumint": "int",
    "int": "bigint",
    "bigint": "decimal(20,0)",
}
_OTHERS: Mapping[str, str] = {
    "float": "float",
    "double": "double",
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "time"), "string"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "binary"),
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "year": "int",
}
_UNKNOWN = ("vector",)
"""Nothing after such a column can be read, whether or not it is wanted."""
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    name: str
    kind: str
    spelled: str
    digits: int | None
    scale: int | None
    nullable: bool
    length: int | None
    virtual: bool
    charset: str | None

    @property
    def shown(self) -> str:
        read = is_read_alike(self.kind, self.charset)
        return self.spelled if read else f"{self.spelled} in character set {self.charset}"


@dataclass(frozen=True, slots=True)
class BinlogLayout:
    remote: str
    kind: str
    engine: str
    columns: tuple[ColumnLayout, ...]
    key: tuple[str, ...]


def read_table(connection: Any, database: str, remote: str) -> BinlogLayout | None:
    with connection.cursor() as cursor:
        cursor.execute(_TABLE, (database, remote))
        found = cursor.fetchone()
        if found is None:
            return None
        cursor.execute(_COLUMNS, (database, remote))
        columns = tuple(_column(row) for row in cursor.fetchall())
        cursor.execute(_KEY, (database, remote))
        return BinlogLayout(remote, found[0], found[1] or "", columns, tuple(row[0] for row in cursor.fetchall()))


def _column(row: Any) -> ColumnLayout:
    name, kind, spelled, digits, scale, nullable, _, length, extra, charset = row
    is_virtual = "VIRTUAL" in extra
    return ColumnLayout(name, kind.lower(), spelled, digits, scale, nullable == "YES", length, is_virtual, charset)


def spark_type(column: ColumnLayout) -> str | None:
    if not is_read_alike(column.kind, column.charset):
        return None
    if column.kind == "decimal":
        digits, scale = column.digits or 0, column.scale or 0
        return f"decimal({digits},{scale})" if digits <= _MOST_DIGITS else None
    if column.kind in _SIGNED:
        return (_UNSIGNED if "unsigned" in column.spelled else _SIGNED)[column.kind]
    return _OTHERS.get(column.kind)


def findings(table: BinlogLayout | None, settings: TableSettings) -> list[Finding]:
    remote = settings.remote
    if table is None:
        return [Finding(f"there is no table '{remote}'")]
    found = []
    if table.kind != "BASE TABLE":
        found.append(Finding(f"'{remote}' is not an ordinary table"))
    elif table.engine != "InnoDB":
        what = f"table '{remote}' is kept by {table.engine}, which knows no transactions"
        found.append(Finding(what, f"ALTER TABLE {quoted(remote)} ENGINE = InnoDB;"))
    found += [
        Finding(f"column '{column.name}' of table '{remote}' is {column.spelled}, which the log's reader does not know")
        for column in table.columns
        if column.kind in _UNKNOWN
    ]
    for column in (column for column in table.columns if settings.takes(column.name)):
        if column.virtual:
            what = f"column '{column.name}' of table '{remote}' is computed and not in the log; it is left out"
            found.append(Finding(what, blocks=False))
        elif spark_type(column) is None:
            what = f"column '{column.name}' of table '{remote}' is {column.shown}, which has no exact counterpart"
            found.append(Finding(what))
    if settings.types:
        found.append(Finding(f"types of columns of '{remote}' are declared, but the server tells them itself"))
    return found


def described(table: BinlogLayout, settings: TableSettings) -> SourceTable:
    columns = []
    for column in (column for column in stored(table) if settings.takes(column.name)):
        type_ = spark_type(column)
        if type_ is None and settings.is_open:
            continue
        if type_ is None:
            raise Unsupported(f"Column '{column.name}' of table '{table.remote}' is {column.shown}.")
        columns.append(Column(column.name, type_))
    required = tuple(column.name for column in stored(table) if not column.nullable)
    whole = SourceTable(table.remote, Schema(tuple(columns)), Constraints(table.key, (), required))
    return projected(whole, settings)


def recorded(table: BinlogLayout) -> dict[str, list[Any]]:
    """What is remembered of the columns: the log does not tell their types as exactly."""
    return {column.name: [column.kind, column.spelled, column.length] for column in stored(table)}


def stored(table: BinlogLayout) -> tuple[ColumnLayout, ...]:
    return tuple(column for column in table.columns if not column.virtual)
