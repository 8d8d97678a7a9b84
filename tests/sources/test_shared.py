"""What every kind of source promises."""

from __future__ import annotations

import random
import threading
from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlglot import parse_one

from rollview.core.interval import Interval
from rollview.errors import AlreadyExists, UsageError
from rollview.sources.protocol import Capability
from rollview.tables.ddl import drop_table
from rollview.tables.transaction import Transaction
from rollview.warehouse import Warehouse
from tests.sources.harness import ACCOUNTS, NOTES, Harness, Row, Write, account, capture, stored


def check(warehouse: Warehouse, harness: Harness) -> None:
    for table in ("account", "note"):
        assert stored(warehouse, table) == harness.rows(table)


def test_the_first_copy_is_the_source(warehouse: Warehouse, harness: Harness) -> None:
    assert stored(warehouse, "account") == Counter(ACCOUNTS)
    assert stored(warehouse, "note") == Counter(NOTES)
    (entry,) = warehouse.catalog.ledger()
    assert (entry.source, entry.transaction, entry.csn) == ("bank", "first copy", 1)
    assert {change.relation: change.inserted for change in entry.changes} == {"account": 3, "note": 3}
    (source,) = warehouse.sources()
    assert (source.state, source.problem, source.tables) == ("active", None, ("account", "note"))
    assert source.position == entry.position


def test_the_key_and_types_are_known(warehouse: Warehouse, harness: Harness) -> None:
    relation = warehouse.snapshot().get("account")
    assert relation.constraints.primary_key == (("id",) if Capability.KEYS in harness.capabilities else ())
    assert relation.schema.names == ("id", "owner", "balance")
    assert [column.type for column in relation.schema][2] == "decimal(12,2)"
    assert relation.source == "bank"
    assert warehouse.snapshot().get("note").constraints.primary_key == ()


@pytest.mark.parametrize(
    "writes",
    [
        pytest.param([Write("account", None, account(4, "dan", "0.01"))], id="insert"),
        pytest.param([Write("account", ACCOUNTS[0], account(1, "ann", "11.00"))], id="update"),
        pytest.param([Write("account", ACCOUNTS[1])], id="delete"),
        pytest.param([Write("account", ACCOUNTS[0], account(9, "ann", "10.00"))], id="key update"),
        pytest.param(
            [Write("account", ACCOUNTS[0]), Write("account", None, ACCOUNTS[0])], id="delete and insert again"
        ),
        pytest.param([Write("account", ACCOUNTS[0], ACCOUNTS[0])], id="update to itself"),
        pytest.param(
            [Write("account", ACCOUNTS[0]), Write("account", None, account(1, "eve", None))], id="another in its place"
        ),
        pytest.param(
            [Write("account", None, account(5, "x", "1.00")), Write("account", account(5, "x", "1.00"))],
            id="come and go",
        ),
        pytest.param([Write("note", None, ("same",))], id="one more of the same"),
        pytest.param([Write("note", ("same",))], id="one fewer of the same"),
        pytest.param([Write("note", ("same",), ("other",))], id="one of the same changed"),
        pytest.param([Write("account", ACCOUNTS[2], account(3, "zoë 表 🦆", "-5.00"))], id="from NULL"),
        pytest.param([Write("account", ACCOUNTS[0], account(1, None, None))], id="to NULL"),
        pytest.param([Write("note", None, ('a\ttab, "quotes", \\N and\nlines\r\n',))], id="hard text"),
        pytest.param([Write("account", ACCOUNTS[0]), Write("note", None, ("gone",))], id="two tables"),
    ],
)
def test_a_transaction_is_captured(warehouse: Warehouse, harness: Harness, writes: list[Write]) -> None:
    before = {table: stored(warehouse, table) for table in ("account", "note")}
    harness.write(*writes)
    changes = any(harness.rows(table) != before[table] for table in before)
    several = Capability.ACROSS_TABLES not in harness.capabilities and len({write.table for write in writes}) > 1
    commits = 2 if several else int(changes)
    assert capture(warehouse).units == commits
    check(warehouse, harness)
    assert warehouse.snapshot().moment.csn == 1 + commits
    for table, bag in before.items():
        assert stored(warehouse, table, 1) == bag


def test_keys_change_places(warehouse: Warehouse, harness: Harness) -> None:
    one, two, _ = ACCOUNTS
    swap = [(one, (77, *one[1:])), (two, (1, *two[1:])), ((77, *one[1:]), (2, *one[1:]))]
    harness.write(*(Write("account", before, after) for before, after in swap))
    capture(warehouse)
    check(warehouse, harness)
    (change,) = warehouse.catalog.changes("account", Interval(1, 2))
    updated = 2 if Capability.KEYS in harness.capabilities else None
    assert (change.inserted, change.deleted, change.updated) == (2, 2, updated)


def test_a_table_is_emptied_and_filled_again(warehouse: Warehouse, harness: Harness) -> None:
    harness.write(Write("note", None, ("new",)))
    harness.empty("note")
    harness.write(Write("note", None, ("newer",)))
    capture(warehouse)
    check(warehouse, harness)
    harness.empty("account")
    capture(warehouse)
    check(warehouse, harness)
    assert stored(warehouse, "account") == Counter()


def test_nothing_new_is_nothing(warehouse: Warehouse, harness: Harness) -> None:
    harness.write(Write("note", None, ("x",)))
    assert capture(warehouse).units == 1
    assert capture(warehouse).units == 0
    assert warehouse.snapshot().moment.csn == 2


def test_every_transaction_has_its_csn(warehouse: Warehouse, harness: Harness) -> None:
    if Capability.TRANSACTIONS not in harness.capabilities:
        pytest.skip("this kind of source does not tell where one transaction ends")
    history = [harness.rows("account")]
    for number in range(10, 30):
        harness.write(Write("account", None, account(number, "n", "1.00")))
        history.append(harness.rows("account"))
    assert capture(warehouse).units == 20
    for csn, bag in enumerate(history, 1):
        assert stored(warehouse, "account", csn) == bag
    entries = warehouse.catalog.ledger()
    assert len({entry.transaction for entry in entries}) == len({entry.position for entry in entries}) == 21


@pytest.mark.parametrize("seed", range(3))
def test_random_histories(warehouse: Warehouse, harness: Harness, seed: int) -> None:
    chance = random.Random(seed)
    history = {1: harness.rows("account")}
    exact = Capability.TRANSACTIONS in harness.capabilities
    for _ in range(60):
        before = harness.rows("account")
        harness.write(*random_writes(chance, before))
        if chance.random() < 0.4 or not exact:
            capture(warehouse)
            history[warehouse.snapshot().moment.csn] = harness.rows("account")
    capture(warehouse)
    check(warehouse, harness)
    for csn, bag in history.items():
        assert stored(warehouse, "account", csn) == bag


def random_writes(chance: random.Random, rows: Counter[Row]) -> list[Write]:
    present = {row[0]: row for row in rows}
    writes = []
    for _ in range(chance.randint(1, 6)):
        number = chance.randint(1, 5)
        new = account(number, chance.choice(["a", "b", None]), str(Decimal(chance.randint(0, 3))))
        if number not in present:
            writes.append(Write("account", None, new))
            present[number] = new
        elif chance.random() < 0.5:
            writes.append(Write("account", present.pop(number)))
        else:
            writes.append(Write("account", present[number], new))
            present[number] = new
    return writes


def test_the_source_writes_while_it_is_copied(empty_warehouse: Warehouse, harness: Harness) -> None:
    """The log goes on exactly where the copy ends."""
    if harness.kind == "files":
        pytest.skip("files that are rewritten all the time are never whole")
    stop = threading.Event()

    def work() -> None:
        number = 100
        while not stop.is_set():
            harness.write(Write("account", None, account(number, "w", "1.00")), Write("note", None, (str(number),)))
            harness.write(Write("account", account(number, "w", "1.00"), account(number, "v", "2.00")))
            number += 1
            stop.wait(0.02)

    writer = threading.Thread(target=work)
    writer.start()
    try:
        empty_warehouse.add_source("bank", harness.settings())
        for _ in range(5):
            capture(empty_warehouse)
    finally:
        stop.set()
        writer.join()
    capture(empty_warehouse)
    check(empty_warehouse, harness)
    assert len(stored(empty_warehouse, "account")) > 3


def test_two_processes_capture_once(warehouse: Warehouse, harness: Harness) -> None:
    for number in range(10, 40):
        harness.write(Write("account", None, account(number, "n", "1.00")))
    problems: list[str | None] = []

    def work() -> None:
        with Warehouse.open(warehouse.root) as other:
            problems.extend(done.problem for done in other.capture().sources)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == [None] * 3
    check(warehouse, harness)


def test_a_lost_position_is_told_and_copied_again(warehouse: Warehouse, harness: Harness) -> None:
    harness.write(Write("account", ACCOUNTS[0], account(1, "ann", "99.00")), Write("note", ("same",)))
    harness.lose()
    (done,) = warehouse.capture().sources
    if done.problem is None:
        pytest.skip("this kind of source cannot lose its position")
    (source,) = warehouse.sources()
    assert source.state == "lost_position"
    assert source.problem == done.problem
    assert stored(warehouse, "account") == Counter(ACCOUNTS)
    assert warehouse.resnapshot("bank").units == 1
    check(warehouse, harness)
    (entry,) = warehouse.catalog.ledger(Interval(1, 2))
    counts = {change.relation: (change.inserted, change.deleted) for change in entry.changes}
    assert counts == {"account": (1, 1), "note": (0, 1)}
    harness.write(Write("account", None, account(50, "after", "1.00")))
    capture(warehouse)
    check(warehouse, harness)
    assert warehouse.sources()[0].state == "active"


def test_a_removed_source_leaves_nothing(warehouse: Warehouse, harness: Harness) -> None:
    warehouse.remove_source("bank")
    assert harness.leftovers() == []
    assert warehouse.sources() == ()
    assert warehouse.snapshot().tables() == ()
    warehouse.maintain(grace=timedelta(0))
    assert [path for path in (warehouse.root / "data").iterdir() if path.is_dir()] == []
    harness.write(Write("account", ACCOUNTS[0]))
    warehouse.add_source("bank", harness.settings())
    check(warehouse, harness)


def test_a_source_is_added_once(warehouse: Warehouse, harness: Harness) -> None:
    with pytest.raises(AlreadyExists, match="source 'bank'"):
        warehouse.add_source("bank", harness.settings())
    with pytest.raises(AlreadyExists, match="table 'account'"):
        warehouse.add_source("other", harness.settings())
    check(warehouse, harness)


def test_a_captured_table_is_not_changed_here(warehouse: Warehouse) -> None:
    transaction = Transaction(None, warehouse.root / "data", warehouse.catalog)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="captured from source 'bank'"):
        transaction.table("account")
    with pytest.raises(UsageError, match="captured from source 'bank'"):
        drop_table(warehouse.catalog, parse_one("DROP TABLE account"))  # type: ignore[arg-type]


def test_checking_changes_nothing(empty_warehouse: Warehouse, harness: Harness) -> None:
    checked = empty_warehouse.check_source("bank", harness.settings())
    assert checked.ready
    assert harness.leftovers() == []
    assert empty_warehouse.sources() == ()
