"""What is special about folders of files: which are whole, and what their values mean."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rollview.errors import BadValue, UsageError
from rollview.sources import SourceSettings, TableSettings
from rollview.warehouse import Warehouse
from tests.sources.harness import capture, stored

ORDERS = {"id": "bigint", "state": "string", "amount": "decimal(12,2)"}


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox" / "orders"
    folder.mkdir(parents=True)
    return folder


def settings(inbox: Path, format_: str, types: dict[str, str] | None = None, *key: str) -> SourceSettings:
    table = TableSettings("orders", "orders", ORDERS if types is None else types, key, format_)
    return SourceSettings("files", str(inbox.parent), (table,), {"confirm_empty_seconds": "0"})


def put(path: Path, text: str, age: float = 60.0) -> None:
    path.write_text(text, newline="")
    os.utime(path, (time.time() - age,) * 2)


def test_files_come_change_and_go(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state,amount\n1,CA,9.90\n2,,\n")
    empty_warehouse.add_source("s", settings(inbox, "csv"))
    one, two = (1, "CA", Decimal("9.90")), (2, None, None)
    assert stored(empty_warehouse, "orders") == Counter([one, two])
    put(inbox / "b.csv", "amount,id,state\n9.90,1,CA\n")
    assert capture(empty_warehouse).rows == 1
    assert stored(empty_warehouse, "orders") == Counter([one, one, two])
    put(inbox / "a.csv", 'id,state,amount\n1,CA,9.90\n2,"",1\n', age=30)
    assert capture(empty_warehouse).rows == 2
    assert stored(empty_warehouse, "orders") == Counter([one, one, (2, "", Decimal("1.00"))])
    (inbox / "b.csv").unlink()
    assert capture(empty_warehouse).rows == 1
    os.utime(inbox / "a.csv", (1, 1))
    assert capture(empty_warehouse).units == 0
    assert stored(empty_warehouse, "orders") == Counter([one, (2, "", Decimal("1.00"))])


def test_a_file_that_is_being_written_waits(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state,amount\n1,CA,9.90\n")
    put(inbox / "new.csv", "id,state,amount\n2,W", age=0)
    put(inbox / "c.csv.tmp", "id,sta")
    put(inbox / ".hidden.csv", "id,sta")
    empty_warehouse.add_source("s", settings(inbox, "csv"))
    assert len(stored(empty_warehouse, "orders")) == 1
    put(inbox / "new.csv", "id,state,amount\n2,WI,1\n")
    assert capture(empty_warehouse).units == 1
    put(inbox / "a.csv", "id,st", age=0)
    put(inbox / "more.csv", "id,state,amount\n3,NY,1\n")
    assert capture(empty_warehouse).units == 0
    put(inbox / "a.csv", "id,state,amount\n1,CA,1\n", age=10)
    assert capture(empty_warehouse).units == 1
    assert stored(empty_warehouse, "orders") == Counter(
        [(1, "CA", Decimal("1.00")), (2, "WI", Decimal("1.00")), (3, "NY", Decimal("1.00"))]
    )


def test_a_declared_key_holds(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state,amount\n1,CA,1\n")
    empty_warehouse.add_source("s", settings(inbox, "csv", None, "id"))
    assert empty_warehouse.snapshot().get("orders").constraints.primary_key == ("id",)
    for bad in ("1,NY,2\n", ",NY,2\n"):
        put(inbox / "b.csv", "id,state,amount\n" + bad)
        (done,) = empty_warehouse.capture().sources
        assert done.problem is not None
        assert "'id'" in done.problem
    put(inbox / "b.csv", "id,state,amount\n2,NY,2\n")
    capture(empty_warehouse)
    assert len(stored(empty_warehouse, "orders")) == 2


def test_a_declared_key_has_one_zero(inbox: Path, empty_warehouse: Warehouse) -> None:
    put(inbox / "a.csv", "id,state\n0.0,CA\n-0.0,NY\n")
    with pytest.raises(BadValue, match="more than once"):
        empty_warehouse.add_source("s", settings(inbox, "csv", {"id": "double", "state": "string"}, "id"))


WRONG = [
    ("csv", "id,state,amount\nx,CA,1\n", "'id'"),
    ("csv", "id,state,amount\n1,CA,1.005\n", "'amount'"),
    ("csv", "id,state,amount\n1,CA,NaN\n", "'amount'"),
    ("csv", "id,state\n1,CA\n", "'amount'"),
    ("csv", "id,state,amount,more\n1,CA,1,x\n", "'more'"),
    ("csv", "id,state,amount\n1,CA\n", "a.csv"),
    ("csv", "", "a.csv"),
    ("json", '{"id": 1.5, "state": "CA", "amount": 1}\n', "'id'"),
    ("json", '{"id": true, "state": "CA", "amount": 1}\n', "'id'"),
    ("json", '{"id": 1, "state": 7, "amount": 1}\n', "'state'"),
    ("json", '{"id": 9223372036854775808, "state": "x", "amount": 1}\n', "'id'"),
    ("json", '{"id": 1, "state": "x", "amount": 0.123}\n', "'amount'"),
    ("json", '{"id": 1, "state": "x", "other": 1}\n', "'other'"),
    ("json", '{"id": 1, "state": "x"', "a.json"),
    ("json", "[1]\n", "a.json"),
    ("parquet", "not a parquet file", "a.parquet"),
]


@pytest.mark.parametrize(("format_", "text", "said"), WRONG)
def test_what_is_not_of_the_declared_type_is_refused(
    inbox: Path, empty_warehouse: Warehouse, format_: str, text: str, said: str
) -> None:
    put(inbox / f"a.{format_}", text)
    with pytest.raises(BadValue, match=said):
        empty_warehouse.add_source("s", settings(inbox, format_))


VALUES: list[tuple[str, str, Any, Any]] = [
    ("bigint", "-9223372036854775808", -(2**63), -(2**63)),
    ("decimal(38,10)", "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789", None),
    ("boolean", "true", True, True),
    ("double", "0.1", 0.1, 0.1),
    ("date", "2026-02-28", "2026-02-28", date(2026, 2, 28)),
    (
        "timestamp_ntz",
        "2026-03-29T02:30:00.123456",
        "2026-03-29T02:30:00.123456",
        datetime(2026, 3, 29, 2, 30, 0, 123456),
    ),
    ("timestamp", "2026-03-29T02:30:00+02:00", "2026-03-29T02:30:00+02:00", datetime(2026, 3, 29, 0, 30, tzinfo=UTC)),
    ("string", '"a ""b"", c\nd"', 'a "b", c\nd', 'a "b", c\nd'),
]


@pytest.mark.parametrize(("type_", "csv", "plain", "expected"), VALUES)
def test_values_come_as_they_are(
    inbox: Path, empty_warehouse: Warehouse, type_: str, csv: str, plain: Any, expected: Any
) -> None:
    expected = Decimal(plain) if expected is None else expected
    put(inbox / "a.csv", f"v,w\n{csv},1\n,2\n")
    empty_warehouse.add_source("s", settings(inbox, "csv", {"v": type_, "w": "int"}))
    assert stored(empty_warehouse, "orders") == Counter([(expected, 1), (None, 2)])
    empty_warehouse.remove_source("s")
    text = f'{{"v": {plain}, "w": 1}}' if type_.startswith("decimal") else json.dumps({"v": plain, "w": 1})
    put(inbox / "a.jsonl", text + '\n{"w": 2}\n')
    empty_warehouse.add_source("s", settings(inbox, "json", {"v": type_, "w": "int"}))
    assert stored(empty_warehouse, "orders") == Counter([(expected, 1), (None, 2)])


def test_parquet_tells_its_own_types(inbox: Path, empty_warehouse: Warehouse) -> None:
    rows = pa.table(
        {
            "id": pa.array([1, None], pa.int32()),
            "at": pa.array([datetime(2026, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "amount": pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)),
            "x": pa.array([float("nan"), -0.0], pa.float64()),
            "raw": pa.array([b"\0", None], pa.binary()),
        }
    )
    pq.write_table(rows, inbox / "a.parquet")
    os.utime(inbox / "a.parquet", (1, 1))
    empty_warehouse.add_source("s", settings(inbox, "parquet", {}))
    types = [column.type for column in empty_warehouse.snapshot().get("orders").schema]
    assert types == ["int", "timestamp_ltz", "decimal(10,2)", "double", "binary"]
    (inbox / "a.parquet").unlink()
    assert capture(empty_warehouse).rows == 2
    assert stored(empty_warehouse, "orders") == Counter()


def test_a_parquet_type_without_counterpart_is_refused(inbox: Path, empty_warehouse: Warehouse) -> None:
    pq.write_table(pa.table({"v": pa.array([1], pa.uint64())}), inbox / "a.parquet")
    os.utime(inbox / "a.parquet", (1, 1))
    with pytest.raises(BadValue, match="uint64"):
        empty_warehouse.add_source("s", settings(inbox, "parquet", {}))


def test_a_table_cannot_lead_out_of_its_folder(inbox: Path, empty_warehouse: Warehouse) -> None:
    table = TableSettings("orders", "../..", ORDERS, (), "csv")
    with pytest.raises(UsageError, match="leads out"):
        empty_warehouse.check_source("s", SourceSettings("files", str(inbox.parent), (table,)))


def test_what_is_missing_is_told(inbox: Path, empty_warehouse: Warehouse) -> None:
    tables = (TableSettings("a", "none", ORDERS, (), "csv"), TableSettings("b", "orders", {}, (), "csv"))
    checked = empty_warehouse.check_source("s", SourceSettings("files", str(inbox.parent), tables))
    assert [finding.blocks for finding in checked.findings] == [True, True]
