"""A refresh that is repeated changes nothing: not a byte of what is published, nothing in the ledger, no csn."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.crew import Place
from tests.faults.shop import VIEWS, Shop, check_every_csn, check_ledger, check_stored
from tests.sizes import times

from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDS = times(4, full=12)


def test_each_refresh_one_to_three_times(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(20)
    once, often = (Shop.founded(Place(tmp_path / name), spark) for name in ("once", "often"))
    for _ in range(ROUNDS):
        selections = chance.choice([((),), ((), ("by_state",)), (("visitors",), ()), (("sales",), ("+by_state",), ())])
        for shop, refreshes in ((once, 1), (often, chance.randint(1, 3))):
            with shop.opened() as warehouse:
                for _ in range(chance.randint(1, 2) if shop is once else once.count - often.count):
                    shop.commit(warehouse)
                for select in ((),) if shop is once else selections:
                    warehouse.refresh(select)
                before = everything(warehouse)
                for _ in range(refreshes - 1):
                    warehouse.refresh()
                assert everything(warehouse) == before
        with once.opened() as one, often.opened() as other:
            assert extents(one) == extents(other)
            assert ledger(one) == ledger(other)
    for shop in (once, often):
        with shop.opened() as warehouse:
            check_stored(shop, warehouse.snapshot())
            check_ledger(shop, warehouse)
            check_every_csn(shop, warehouse)


@pytest.mark.parametrize("target", [2, "latest"])
def test_a_repeated_roll_changes_nothing(spark: SparkSession, tmp_path: Path, target: Any) -> None:
    shop = Shop.founded(Place(tmp_path / "shop"), spark)
    with shop.opened() as warehouse:
        shop.commit(warehouse)
        warehouse.refresh()
        warehouse.roll(tuple(VIEWS), target)
        before = everything(warehouse)
        warehouse.roll(tuple(VIEWS), target)
        assert everything(warehouse) == before


def everything(warehouse: Warehouse) -> Any:
    """All files with their bytes, all pins and the whole ledger."""
    files = sorted(path for path in (warehouse.root / "data").rglob("*") if path.is_file())
    bytes_ = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    snapshot = warehouse.snapshot()
    return bytes_, {name: r.pins for name, r in snapshot.relations.items()}, snapshot.moment, warehouse.catalog.ledger()


def extents(warehouse: Warehouse) -> dict[str, list[str]]:
    """The bytes of the published files."""
    from rollview.catalog import Part
    from rollview.store.folder import DeltaFolder

    found = {}
    for view in warehouse.snapshot().views():
        folder = DeltaFolder(warehouse.root / "data" / view.folder / Part.EXTENT, view.schema)
        files = folder.files(view.pins[Part.EXTENT].version)
        found[view.name] = sorted(hashlib.sha256((folder.root / f.path).read_bytes()).hexdigest() for f in files)
    return found


def ledger(warehouse: Warehouse) -> list[Any]:
    return [(entry.csn, entry.source, entry.position, entry.changes) for entry in warehouse.catalog.ledger()]
