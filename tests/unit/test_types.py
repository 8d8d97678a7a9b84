from __future__ import annotations

import pyarrow as pa
import pytest

from rollview.core.schema import Column, Schema
from rollview.errors import Unsupported
from rollview.types.arrow import arrow_schema, arrow_type, holds_map, spark_schema, spark_type, table_of

SAME = [
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp_ltz",
    "timestamp_ntz", "decimal(1,0)", "decimal(12,2)", "decimal(38,18)", "array<int>", "map<string,array<double>>",
    "struct<a:int,b:struct<c:timestamp_ntz>>", "struct<`we ``ird, x:`:int>",
    "struct<select:int,a b:date,é-.:map<string,string>>",
]  # fmt: skip


@pytest.mark.parametrize("text", SAME)
def test_a_type_that_delta_can_hold_comes_back_as_it_was(text: str) -> None:
    again = spark_type(arrow_type(text, "c"))
    assert again.replace("`", "") == text.replace("``", "\0").replace("`", "").replace("\0", "")
    assert spark_type(arrow_type(again, "c")) == again


@pytest.mark.parametrize(
    ("text", "stored"),
    [("timestamp", "timestamp_ltz"), ("char(3)", "string"), ("varchar(9)", "string"), ("decimal", "decimal(10,0)")],
)
def test_a_type_with_another_spelling_is_stored_as_what_it_means(text: str, stored: str) -> None:
    assert spark_type(arrow_type(text, "c")) == stored


@pytest.mark.parametrize(
    "text",
    [
        "variant", "void", "interval day to second", "interval year to month", "time(6)", "string collate UTF8_LCASE",
        "struct<>", "struct<int>", "array<a:int>", "array<int", "array<int>>", "int int",
        "decimal(x)", "decimal(39,1)", "int(3)", "struct<a,b:int>", "struct<a:b:int>",
        "array<variant>", "map<string,void>", "geometry", "", "no such type", "object",
    ],
)  # fmt: skip
def test_a_type_that_delta_cannot_hold_is_refused_with_its_column(text: str) -> None:
    with pytest.raises(Unsupported, match="'the column'"):
        arrow_type(text, "the column")


def test_files_have_physical_names() -> None:
    schema = Schema((Column("a b", "int"), Column("c", "string")))
    assert arrow_schema(schema) == pa.schema([("a%20b", pa.int32()), ("c", pa.string())])
    assert spark_schema(schema) == "`a%20b` int, `c` string"


@pytest.mark.parametrize(
    ("text", "found"), [("map<int,int>", True), ("array<struct<m:map<int,int>>>", True), ("array<int>", False)]
)
def test_maps_are_found_inside_other_types(text: str, found: bool) -> None:
    assert holds_map(arrow_type(text, "c")) is found


def test_rows_are_columns_of_their_types_and_none_of_them_too() -> None:
    schema = Schema((Column("a", "int"), Column("b", "string", place="c")))
    empty, one = table_of((), schema), table_of([(1, "x")], schema)
    assert empty.schema == one.schema == pa.schema([("a", pa.int32()), ("b", pa.string())])
    assert (empty.num_rows, one.to_pylist()) == (0, [{"a": 1, "b": "x"}])
