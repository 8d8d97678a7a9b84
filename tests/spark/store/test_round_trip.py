"""Every type and every name goes through Spark, Arrow and a plain Delta reader unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rollview.core import names
from rollview.core.schema import Column, Schema
from rollview.errors import Corrupt, EngineFailed
from rollview.store import BUCKET, Buckets, DeltaFolder, bucket_expression
from rollview.store.log import DeltaLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

VALUES = {
    "boolean": "true",
    "tinyint": "-128Y",
    "smallint": "32767S",
    "int": "-2147483648",
    "bigint": "9223372036854775807L",
    "float": "cast('NaN' AS float)",
    "double": "-0.0D",
    "string": "'it''s é \\n 😀'",
    "binary": "X'00FF'",
    "date": "DATE'0001-01-01'",
    "timestamp": "TIMESTAMP'1582-10-04 23:59:59.999999Z'",
    "timestamp_ntz": "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    "decimal(1,0)": "CAST(9 AS DECIMAL(1,0))",
    "decimal(12,2)": "CAST('-9999999999.99' AS DECIMAL(12,2))",
    "decimal(38,18)": "CAST('12345678901234567890.123456789012345678' AS DECIMAL(38,18))",
    "array<int>": "array(1, NULL, 3)",
    "map<string,array<double>>": "map('k', array(1.5D, NULL), 'l', NULL)",
    "struct<a:int,b:struct<c:timestamp_ntz,d:string>>": (
        "named_struct('a', 1, 'b', named_struct('c', TIMESTAMP_NTZ'2020-01-01 00:00:00', 'd', CAST(NULL AS STRING)))"
    ),
    "struct<`we ``ird, x:`:int>": "named_struct('we `ird, x:', 7)",
}

HOSTILE = [
    "plain", "Case", "sp ace", "quo'te", 'dou"ble', "back`tick", "do.t", "new\nline", "tab\tx", "per%cent", "%41",
    "a%20b",
    "ünï", "表", "😀", "select", "from", "../up", "/etc", "semi;colon", "com,ma", "par(en)", "br{ace}", "eq=ual",
    "back\\slash",
    "$dollar", "#hash", "?*[glob]", "--", "/*", "' OR 1=1", "_metadata", "_x", "1", "-", " lead", "trail ",
    "\u200bzero",
    "a:b", "<>",
]  # fmt: skip


def one_row(spark: SparkSession, schema: Schema) -> DataFrame:
    values = ", ".join(f"{VALUES[c.type]} AS `{c.name}`" for c in schema)
    nothing = ", ".join(f"CAST(NULL AS {c.type}) AS `{c.name}`" for c in schema)
    return spark.sql(f"SELECT {values} UNION ALL SELECT {nothing}")


def shown(data: DataFrame) -> list[str]:
    return sorted(map(repr, data.collect()))


@pytest.mark.parametrize("through", ["spark", "arrow"])
def test_every_type_comes_back_with_its_values(spark: SparkSession, tmp_path: Path, through: str) -> None:
    schema = Schema(tuple(Column(f"c{i}", type_) for i, type_ in enumerate(VALUES)))
    data = one_row(spark, schema)
    folder = DeltaFolder(tmp_path, schema)
    files = folder.stage(data if through == "spark" else data.toArrow(), folder.new_folder())
    version = folder.commit(None, files, (), {})
    DeltaLog._known.clear()
    assert sorted(folder.files(version), key=lambda f: f.path) == sorted(files, key=lambda f: f.path)
    again = folder.read(spark, folder.files(version))
    assert again.schema.simpleString() == data.schema.simpleString()
    assert shown(again) == shown(data)
    assert DeltaTable(tmp_path).to_pyarrow_table().num_rows == 2


def test_hostile_column_names_round_trip(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(tuple(Column(name, "int") for name in HOSTILE))
    values = pa.table({name: pa.array([i], pa.int32()) for i, name in enumerate(HOSTILE)})
    folder = DeltaFolder(tmp_path, schema)
    first = folder.commit(None, folder.stage(values, folder.new_folder()), (), {})
    data = folder.read(spark, folder.files(first))
    assert data.columns == HOSTILE
    second = folder.commit(
        first, folder.stage(data, folder.new_folder(), buckets=Buckets(tuple(HOSTILE), 3), sort=tuple(HOSTILE)), (), {}
    )
    again = folder.read(spark, folder.files(second))
    assert [tuple(row) for row in again.collect()] == [tuple(range(len(HOSTILE)))] * 2
    assert DeltaTable(tmp_path).schema().to_arrow().names == [names.physical(name) for name in HOSTILE]
    assert all(part.isascii() for file in folder.files(second) for part in file.path)


@pytest.mark.parametrize("name", ["sp ace", "[a]{b,c}*?", "ünï#code", "a:b", "100%"])
def test_an_oddly_named_warehouse_is_read_once(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = DeltaFolder(tmp_path / name, Schema((Column("id", "bigint"),)))
    files = folder.stage(spark.range(20).repartition(4), folder.new_folder())
    more = folder.stage(spark.range(20, 30), folder.new_folder(), buckets=Buckets(("id",), 4))
    version = folder.commit(None, files + more, (), {})
    assert sorted(row.id for row in folder.read(spark, folder.files(version)).collect()) == list(range(30))


def test_no_files_are_no_rows_of_the_right_schema(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema(tuple(Column(f"c {i}", type_) for i, type_ in enumerate(VALUES)))
    data = DeltaFolder(tmp_path, schema).read(spark, ())
    assert data.schema.simpleString() == one_row(spark, schema).schema.simpleString()
    assert data.collect() == []


def test_no_rows_leave_no_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = DeltaFolder(tmp_path, Schema((Column("id", "bigint"),)))
    name = folder.new_folder()
    assert folder.stage(spark.range(0), name) == ()
    assert list(tmp_path.iterdir()) == []


def test_a_narrower_number_is_widened_to_the_columns_type(spark: SparkSession, tmp_path: Path) -> None:
    folder = DeltaFolder(tmp_path, Schema((Column("id", "decimal(20,2)"),)))
    (file,) = folder.stage(spark.sql("SELECT 1 AS ID"), folder.new_folder())
    assert [str(row.id) for row in folder.read(spark, (file,)).collect()] == ["1.00"]


def test_rows_that_cannot_be_computed_are_an_engine_failure(spark: SparkSession, tmp_path: Path) -> None:
    folder = DeltaFolder(tmp_path, Schema((Column("id", "bigint"),)))
    with pytest.raises(EngineFailed, match="DIVIDE_BY_ZERO"):
        folder.stage(spark.range(3).selectExpr("1 DIV (id - 1) AS id"), folder.new_folder())


def test_a_file_outside_is_never_read(spark: SparkSession, tmp_path: Path) -> None:
    folder = DeltaFolder(tmp_path / "in", Schema((Column("id", "bigint"),)))
    (file,) = folder.stage(spark.range(1).coalesce(1), folder.new_folder())
    (folder.root / file.path).rename(tmp_path / "out.parquet")
    (folder.root / file.path).symlink_to(tmp_path / "out.parquet")
    with pytest.raises(Corrupt):
        folder.read(spark, (file,))


def test_rows_of_a_bucket_are_in_its_one_file_and_sorted(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema((Column("k", "bigint"), Column("v", "string")))
    folder = DeltaFolder(tmp_path, schema)
    data = spark.range(1000).selectExpr("(id * 7919) % 1000 AS k", "'x' AS v").repartition(5)
    buckets = Buckets(("k",), 8)
    files = folder.stage(data, folder.new_folder(), buckets=buckets, sort=("k",))
    assert sorted(file.bucket or 0 for file in files) == list(range(8))
    assert sum(file.rows for file in files) == 1000
    for file in files:
        rows = folder.read(spark, (file,)).select("k", bucket_expression(buckets, schema).alias(BUCKET)).collect()
        assert {row[BUCKET] for row in rows} == {file.bucket}
        assert [row.k for row in rows] == sorted(row.k for row in rows)


def test_equal_keys_share_a_bucket_whatever_their_spelling(spark: SparkSession) -> None:
    schema = Schema((Column("d", "double"), Column("n", "decimal(10,2)")))
    bucket = bucket_expression(Buckets(("d", "n"), 1000), schema)

    def of(d: str, n: str) -> int:
        return int(spark.sql(f"SELECT {d} AS d, {n} AS n").select(bucket).collect()[0][0])

    assert of("0.0D", "1") == of("-0.0D", "1.00") == of("0", "CAST(1 AS DECIMAL(20,5))")
    assert of("CAST('NaN' AS FLOAT)", "NULL") == of("CAST('NaN' AS DOUBLE)", "NULL")
    assert 0 <= of("-5.5", "NULL") < 1000


def test_a_key_without_an_atomic_column_has_one_bucket(spark: SparkSession) -> None:
    schema = Schema((Column("a", "array<int>"),))
    rows = spark.sql("SELECT array(1) AS a UNION ALL SELECT array(2)").select(
        bucket_expression(Buckets(("a",), 9), schema)
    )
    assert {row[0] for row in rows.collect()} == {0}
