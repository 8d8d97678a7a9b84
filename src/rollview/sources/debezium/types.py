"""Types of columns, as schema blocks tell them, and what rows have in a column that came after them.

Law: a type is told only where every value of the column has it. A default proves nothing of older rows: it may stand in
the block for an expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ColumnSchema = Mapping[str, Any]

_PLAIN = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "binary",
}
_NAMED = {
    "io.debezium.time.Date": "date",
    "org.apache.kafka.connect.data.Date": "date",
    "io.debezium.time.Timestamp": "timestamp_ntz",
    "org.apache.kafka.connect.data.Timestamp": "timestamp_ntz",
    "io.debezium.time.MicroTimestamp": "timestamp_ntz",
    "io.debezium.time.NanoTimestamp": "timestamp_ntz",
    "io.debezium.time.ZonedTimestamp": "timestamp",
    "io.debezium.time.Year": "int",
    "io.debezium.data.Enum": "string",
    "io.debezium.data.Json": "string",
    "io.debezium.data.Uuid": "string",
    "io.debezium.data.Xml": "string",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_LONGEST = 38


def type_of(schema: ColumnSchema) -> str | None:
    """In Spark's spelling; None where no type is sure to hold all values."""
    name = schema.get("name")
    if name == _DECIMAL:
        return _decimal(schema.get("parameters"))
    return _PLAIN.get(str(schema.get("type"))) if name is None else _NAMED.get(str(name))


def _decimal(parameters: Any) -> str | None:
    told = parameters if isinstance(parameters, dict) else {}
    precision, scale = str(told.get("connect.decimal.precision", "")), str(told.get("scale", ""))
    if not precision.isdecimal() or not scale.isdecimal() or not int(scale) <= int(precision) <= _LONGEST:
        return None
    return f"decimal({int(precision)},{int(scale)})"


def is_null_before(schema: ColumnSchema) -> bool:
    """Whether rows that are older than a column have NULL in it, as far as its block tells."""
    return schema.get("optional") is True and schema.get("default") is None
