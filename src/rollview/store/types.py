"""Spark's spelling of a type, and the same type in Arrow, which Delta and Parquet are written from.

Law: ``spark_type(arrow_type(t))`` reads every value of ``t`` unchanged. A type whose values a Delta table cannot
hold, or whose equality is not the bytes' equality (collations), is refused with the name of its column.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rollview.core import names
from rollview.core.schema import Schema
from rollview.errors import Unsupported

_SIMPLE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "TEXT": pa.string(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPLTZ": pa.timestamp("us", "UTC"),
    "TIMESTAMPNTZ": pa.timestamp("us"),
}

_SPARK: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    # Not "timestamp": what that means is a session's choice.
    pa.timestamp("us", "UTC"): "timestamp_ltz",
    pa.timestamp("us"): "timestamp_ntz",
}


@lru_cache(maxsize=4096)
def arrow_type(type_: str, column: str) -> pa.DataType:
    """The Arrow type of a column declared as ``type_``."""
    try:
        if "collate" in type_.lower().split():
            raise ValueError("a collation")
        return _from_sqlglot(exp.DataType.build(type_, dialect="spark"))
    except (SqlglotError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unsupported(
            f"Column '{column}' has the type '{type_}', which a Delta table cannot hold.",
            hint="Cast it to a type such as STRING, DECIMAL or TIMESTAMP.",
            name=column,
            type=type_,
        ) from error


@lru_cache(maxsize=1024)
def arrow_schema(schema: Schema) -> pa.Schema:
    """The schema as it is in the files: physical names, every column nullable."""
    return pa.schema([(names.physical(c.name), arrow_type(c.type, c.name)) for c in schema])


@lru_cache(maxsize=1024)
def spark_schema(schema: Schema) -> str:
    """The same as DDL text for Spark's reader."""
    return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in arrow_schema(schema))


def spark_type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_):
        return f"array<{spark_type(type_.value_type)}>"
    if pa.types.is_map(type_):
        return f"map<{spark_type(type_.key_type)},{spark_type(type_.item_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{quoted(f.name)}:{spark_type(f.type)}' for f in type_)}>"
    return _SPARK[type_]


def is_atomic(type_: pa.DataType) -> bool:
    return not pa.types.is_nested(type_)


def holds_map(type_: pa.DataType) -> bool:
    """Spark can group by a map but cannot compare two."""
    if pa.types.is_map(type_):
        return True
    if pa.types.is_list(type_):
        return holds_map(type_.value_type)
    return pa.types.is_struct(type_) and any(holds_map(field.type) for field in type_)


def quoted(name: str) -> str:
    """A name as one identifier of Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _from_sqlglot(node: exp.Expression) -> pa.DataType:
    if not isinstance(node, exp.DataType) or not isinstance(node.this, exp.DataType.Type):
        raise ValueError(node)
    kind, parts = node.this.name, node.expressions
    if kind == "DECIMAL":
        precision, scale = [int(part.name) for part in parts] + [10, 0][len(parts) :]
        return pa.decimal128(precision, scale)
    if kind == "ARRAY":
        return pa.list_(_from_sqlglot(parts[0]))
    if kind == "MAP":
        return pa.map_(_from_sqlglot(parts[0]), _from_sqlglot(parts[1]))
    if kind == "STRUCT" and parts:
        return pa.struct([(part.name, _from_sqlglot(part.args["kind"])) for part in parts])
    return _SIMPLE[kind]
