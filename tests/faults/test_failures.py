"""A step fails in the middle and nobody is killed. The view stops alone and says why; nothing wrong is ever shown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.faults.crew import Place
from tests.faults.shop import VIEWS, Shop, check_newest_is_pinned, check_stored, folders, pinned_folders

from rollview import errors
from rollview.catalog import Part, Pin
from rollview.relations.reader import Reader
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BIG = 9_000_000_000_000_000_000


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return Shop.founded(Place(tmp_path / "shop"), spark)


def problems(warehouse: Warehouse) -> dict[str, str | None]:
    return {view.name: view.problem for view in warehouse.status().views}


def csns(warehouse: Warehouse) -> dict[str, int]:
    return {view.name: view.csn for view in warehouse.status().views}


def check_nothing_is_left(shop: Shop, warehouse: Warehouse, before: set[str]) -> None:
    assert warehouse.catalog.steps(status="running") == ()
    check_newest_is_pinned(shop, warehouse.snapshot())
    assert folders(shop.place.root) - before - pinned_folders(shop.place.root, warehouse.snapshot()) == set()


def test_a_sum_that_overflows_stops_alone_and_comes_back(shop: Shop) -> None:
    with shop.opened() as warehouse:
        warehouse.sql("CREATE TABLE amount (k INT, x BIGINT)")
        warehouse.create_view("CREATE MATERIALIZED VIEW total AS SELECT k, SUM(x) AS x FROM amount GROUP BY k")
        warehouse.create_view("CREATE MATERIALIZED VIEW above AS SELECT x FROM total WHERE x > 0")
        warehouse.create_view("CREATE MATERIALIZED VIEW beside AS SELECT k, COUNT(*) AS n FROM amount GROUP BY k")
        warehouse.sql(f"INSERT INTO amount VALUES (1, {BIG}), (2, 2)")
        warehouse.refresh()
        good, before = warehouse.snapshot().moment.csn, folders(shop.place.root)

        warehouse.sql(f"INSERT INTO amount VALUES (1, {BIG})")
        with pytest.raises(errors.EngineFailed, match=r"'total'.*overflow") as refusal:
            warehouse.refresh()
        bad = warehouse.snapshot().moment.csn
        assert refusal.value.facts["views"] == ["above", "total"]
        assert csns(warehouse) == {**dict.fromkeys(VIEWS, bad), "total": good, "above": good, "beside": bad}
        told = problems(warehouse)
        assert all("overflow" in (told.pop(name) or "") for name in ("total", "above"))
        assert set(told.values()) == {None}
        assert sorted(map(tuple, warehouse.read("total").collect())) == [(1, BIG), (2, 2)]
        assert sorted(map(tuple, warehouse.read("above").collect())) == [(2,), (BIG,)]
        assert warehouse.verify("beside").equal
        check_nothing_is_left(shop, warehouse, before)

        before = folders(shop.place.root)
        warehouse.sql(f"DELETE FROM amount WHERE x = {BIG}")
        with pytest.raises(errors.EngineFailed, match="'above'"):
            warehouse.refresh()
        assert problems(warehouse)["total"] is None, "one view has no value at a csn on the way; the other needs none"
        warehouse.refresh(["above"], mode="recompute")
        assert set(problems(warehouse).values()) == {None}
        assert set(csns(warehouse).values()) == {warehouse.snapshot().moment.csn}
        assert sorted(map(tuple, warehouse.read("total").collect())) == [(2, 2)]
        assert all(warehouse.verify(view.name).equal for view in warehouse.snapshot().views())
        check_nothing_is_left(shop, warehouse, before)


def test_a_delta_that_deletes_what_is_not_there_is_never_applied(shop: Shop) -> None:
    with shop.opened() as warehouse:
        warehouse.refresh()
        good, before = shop.csn, folders(shop.place.root)
        shop.commit(warehouse)
        warehouse.propagate()
        put_bad_row(warehouse)
        for select in ((), ("by_state",), ()):
            with pytest.raises((errors.Corrupt, errors.EngineFailed)) as refusal:
                warehouse.refresh(select)
            if not select:
                assert isinstance(refusal.value, errors.Corrupt)
                assert '"state":"XX"' in refusal.value.message
                assert refusal.value.facts["views"] == ["sales"]
            assert csns(warehouse) == {"sales": good, "by_state": good, "visitors": shop.csn}
            assert "XX" in (problems(warehouse)["sales"] or "")
            check_stored(shop, warehouse.snapshot())
        with pytest.raises(errors.Corrupt):
            warehouse.roll(("sales", "visitors"), shop.csn)
        assert csns(warehouse)["sales"] == good
        check_nothing_is_left(shop, warehouse, before)


def test_a_view_that_was_stopped_for_good_is_replaced(shop: Shop) -> None:
    with shop.opened() as warehouse:
        shop.commit(warehouse)
        warehouse.propagate()
        put_bad_row(warehouse)
        with pytest.raises(errors.Corrupt) as refusal:
            warehouse.refresh()
        assert "REPLACE" in (refusal.value.hint or "")
        warehouse.drop_view("by_state")
        warehouse.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW sales AS {VIEWS['sales']}")
        warehouse.create_view(f"CREATE MATERIALIZED VIEW by_state AS {VIEWS['by_state']}")
        warehouse.refresh()
        assert set(problems(warehouse).values()) == {None}
        check_stored(shop, warehouse.snapshot())


def put_bad_row(warehouse: Warehouse) -> None:
    """As a fault of the disk or of rollview would: the pinned delta of a view deletes a row that was never there."""
    snapshot = warehouse.snapshot()
    relation, reader = snapshot.get("sales"), Reader(warehouse.spark, warehouse.root / "data", snapshot)
    folder, pin = reader.stored("sales").folder("delta"), relation.pins[Part.DELTA]
    names = [field.name for field in folder.schema]
    types = [pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.int64()]
    values = zip(["XX", 1, 1, -1, pin.through], types, strict=True)
    rows = pa.table([pa.array([value], type_) for value, type_ in values], names=names)
    version = folder.commit(pin.version, folder.stage(rows, folder.new_folder()), (), {})
    with warehouse.catalog.write() as writer:
        writer.pin("sales", Pin(Part.DELTA, version, pin.after, pin.through, pin.rows + 1))
