"""What an answer reads stays until it is fetched; if it went all the same, the query is answered anew or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.oracle.bags import bag
from tests.spark.oracle.warehouses import fresh

from rollview.catalog import Part
from rollview.cli.exits import ExitCode, exit_code
from rollview.core.states import Rewrite
from rollview.errors import InDoubt
from rollview.results import Answer, FetchedAnswer
from rollview.routing import answers
from rollview.routing.kept import find_kept
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = "SELECT id, amount FROM orders WHERE amount > 5"
AT_ONCE = timedelta(0)


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Warehouse]:
    with fresh(spark, tmp_path / "w") as warehouse:
        warehouse.sql("CREATE TABLE orders (id INT PRIMARY KEY, amount INT)")
        warehouse.sql("INSERT INTO orders VALUES (1, 10), (2, 3)")
        warehouse.create_view("CREATE MATERIALIZED VIEW large AS SELECT id, amount FROM orders WHERE amount > 5")
        yield warehouse


def asked(warehouse: Warehouse) -> Answer:
    answer = warehouse.query(QUERY, rewrite="require")
    assert [one.relation for one in answer.used] == ["large"]
    return answer


def fetched(answer: Answer) -> FetchedAnswer:
    assert answer.fetch is not None
    return answer.fetch(None)


def told(one: FetchedAnswer) -> Any:
    return bag(tuple(row.values()) for row in one.rows.to_pylist())


def extent_files(warehouse: Warehouse) -> set[Path]:
    return set((warehouse.root / "data" / warehouse.snapshot().get("large").folder / Part.EXTENT).rglob("*.parquet"))


def commit_and_refresh(warehouse: Warehouse, number: int) -> None:
    warehouse.sql(f"INSERT INTO orders VALUES ({number}, {number * 10})")
    warehouse.refresh()


def test_maintenance_leaves_what_an_answer_reads(shop: Warehouse) -> None:
    answer, before = asked(shop), extent_files(shop)
    commit_and_refresh(shop, 3)
    shop.maintain(grace=AT_ONCE)
    shop.maintain(grace=AT_ONCE)
    assert before <= extent_files(shop)
    one = fetched(answer)
    assert told(one) == bag([(1, 10)])
    assert (one.answer.csn, one.still_valid) == (1, False)
    shop.maintain(grace=AT_ONCE)
    assert not before & extent_files(shop)


def test_an_answer_that_nobody_has_any_more_holds_nothing(shop: Warehouse) -> None:
    answer, before = asked(shop), extent_files(shop)
    commit_and_refresh(shop, 3)
    del answer
    shop.catalog.readers.end_left()
    shop.maintain(grace=AT_ONCE)
    assert not before & extent_files(shop)


def test_what_was_expected_and_what_it_took_is_recorded(shop: Warehouse) -> None:
    one = fetched(asked(shop))
    assert one.still_valid
    (recorded,) = shop.catalog.readers.ended()
    assert (recorded.csn, recorded.ways) == (1, {"large": "extent"})
    assert (recorded.expected_seconds, recorded.seconds) == (one.answer.expected_seconds, one.seconds)


def test_an_answer_in_names_of_then_is_held_and_fetched_like_any_other(shop: Warehouse) -> None:
    shop.sql("ALTER TABLE orders RENAME COLUMN amount TO total")
    answer = shop.query("SELECT id, amount FROM orders", as_of=1)
    (live,) = shop.catalog.readers.live()
    assert (live.csn, live.ways, live.relations) == (1, {"orders": "rows"}, {"orders"})
    one = fetched(answer)
    assert told(one) == bag([(1, 10), (2, 3)])
    assert one.rows.column_names == ["id", "amount"]
    assert not one.still_valid, "the column has another name since"
    assert [row.seconds for row in shop.catalog.readers.ended()] == [one.seconds]


def test_files_that_went_all_the_same_are_answered_for_at_a_new_csn(shop: Warehouse) -> None:
    answer, before = asked(shop), extent_files(shop)
    commit_and_refresh(shop, 3)
    for file in before:
        file.unlink()
    one = fetched(answer)
    assert one.answer.csn == 2
    assert told(one) == bag([(1, 10), (3, 30)])


def test_files_that_go_again_leave_the_answer_in_doubt(shop: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(3, 9))

    def lose(*about: object) -> None:
        before = extent_files(shop)
        commit_and_refresh(shop, next(numbers))
        for file in before:
            file.unlink()

    monkeypatch.setattr(answers, "release_with", lose)
    with pytest.raises(InDoubt, match="went away while it was fetched, twice") as found:
        fetched(asked(shop))
    assert exit_code(found.value) is ExitCode.TRY_AGAIN


def test_files_that_the_catalog_still_names_are_no_reason_to_ask_again(shop: Warehouse) -> None:
    answer = asked(shop)
    for file in extent_files(shop):
        file.unlink()
    with pytest.raises(Exception, match="Spark could not compute the rows") as found:
        fetched(answer)
    assert not isinstance(found.value, InDoubt)


def test_what_is_asked_again_is_planned_once_until_something_moves(shop: Warehouse) -> None:
    def planned() -> Any:
        kept = find_kept(shop._place, (QUERY, Rewrite.REQUIRE))
        return None if kept is None else kept.planned.rows

    assert planned() is None
    first = fetched(asked(shop))
    before = planned()
    answer = asked(shop)
    assert planned() is before is not None
    second = fetched(answer)
    assert planned() is before
    assert told(first) == told(second) == bag([(1, 10)])
    assert answer.fetch is not None
    assert answer.fetch(0).rows.num_rows == 0
    assert len(shop.catalog.readers.ended()) == 2, "each is recorded"
    shop.sql("INSERT INTO orders VALUES (3, 30)")
    third = fetched(asked(shop))
    assert (told(third), third.answer.csn) == (bag([(1, 10), (3, 30)]), 2)
    assert not fetched(answer).still_valid
    shop.refresh()
    shop.maintain(grace=AT_ONCE)
    assert told(fetched(asked(shop))) == told(third)
    assert planned() is not before
