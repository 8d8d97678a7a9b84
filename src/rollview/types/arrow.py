"""Spark's spelling of a type, and the same type in Arrow, which Delta and Parquet are written from.

Law: ``spark_type(arrow_type(t))`` reads every value of ``t`` unchanged. A type whose values a Delta table cannot
hold, or whose equality is not the bytes' equality (collations), is refused with the name of its column.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from rollview.core.names import quoted
from rollview.core.schema import Schema
from rollview.errors import Unsupported
from rollview.types import spelling
from rollview.types.spelling import Spelled

_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
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
        return _to_arrow(spelling.parse(type_))
    except (ValueError, KeyError) as error:
        raise Unsupported(
            f"Column '{column}' has the type '{type_}', which a Delta table cannot hold.",
            hint="Cast it to a type such as STRING, DECIMAL or TIMESTAMP.",
            name=column,
            type=type_,
        ) from error


@lru_cache(maxsize=1024)
def arrow_schema(schema: Schema) -> pa.Schema:
    """The schema as it is in the files: physical names, every column nullable."""
    return pa.schema([(c.stored, arrow_type(c.type, c.name)) for c in schema])


@lru_cache(maxsize=1024)
def spark_schema(schema: Schema) -> str:
    """The same as DDL text for Spark's reader."""
    return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in arrow_schema(schema))


def constant(text: str | None, type_: pa.DataType) -> pa.Scalar:
    """The value that a constant of a column is the text of."""
    return pa.scalar(None, type_) if text is None else pa.array([text]).cast(type_)[0]


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


def holds_float(type_: pa.DataType) -> bool:
    if pa.types.is_nested(type_):
        return any(holds_float(type_.field(place).type) for place in range(type_.num_fields))
    return bool(pa.types.is_floating(type_))


def holds_map(type_: pa.DataType) -> bool:
    """Spark can group by a map but cannot compare two."""
    if pa.types.is_map(type_):
        return True
    if pa.types.is_list(type_):
        return holds_map(type_.value_type)
    return pa.types.is_struct(type_) and any(holds_map(field.type) for field in type_)


def _to_arrow(type_: Spelled) -> pa.DataType:
    match type_:
        case Spelled("decimal" | "dec" | "numeric", numbers=numbers, parts=()):
            return pa.decimal128(*numbers) if numbers else pa.decimal128(10, 0)
        case Spelled("char" | "varchar", numbers=(_,), parts=()):
            return pa.string()
        case Spelled("array", numbers=(), parts=((None, element),)):
            return pa.list_(_to_arrow(element))
        case Spelled("map", numbers=(), parts=((None, key), (None, value))):
            return pa.map_(_to_arrow(key), _to_arrow(value))
        case Spelled("struct", numbers=(), parts=(_, *_)):
            return pa.struct([(_named(name), _to_arrow(part)) for name, part in type_.parts])
        case Spelled(word, numbers=(), parts=()):
            return _ARROW[word]
    raise ValueError(type_)


def _named(name: str | None) -> str:
    if name is None:
        raise ValueError("a field without a name")
    return name


def table_of(rows: Iterable[tuple[Any, ...]], schema: Schema) -> pa.Table:
    """Rows as columns of these types; where there are none, it has the columns all the same."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema.names)
    arrays = [pa.array(list(some), type_) for some, type_ in zip(columns, arrow_schema(schema).types, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(schema.names))
