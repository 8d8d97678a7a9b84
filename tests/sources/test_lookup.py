"""Rows of tables that are not copied, at any csn: the law of asking, on real databases and without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest

from rollview.capture.asking import SourceLookup
from rollview.core.interval import Interval
from rollview.core.names import COUNT
from rollview.errors import Corrupt, Retryable, SourceDown
from rollview.relations.reader import StandIn
from rollview.sources.asking import SourceAnswer
from rollview.sources.settings import SourceSettings, TableSettings
from rollview.sources.sqlite.asking import LogSeen
from rollview.sources.sqlite.source import SqliteSource
from rollview.warehouse import Warehouse
from tests.sizes import times
from tests.sources.harness import Bag, Harness, Write, account, capture
from tests.sources.mariadb_harness import MariadbHarness
from tests.sources.postgres_harness import PostgresHarness
from tests.sources.sqlite_harness import SqliteHarness

OWNERS = ("ann", "bob", "cid", None)


@pytest.fixture(params=["sqlite", *(pytest.param(k, marks=getattr(pytest.mark, k)) for k in ("postgres", "mariadb"))])
def bank(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    if request.param == "sqlite":
        made: Harness = SqliteHarness(tmp_path)
    elif request.param == "mariadb":
        made = MariadbHarness(request.getfixturevalue("mariadb_server"))
    else:
        made = PostgresHarness(request.getfixturevalue("postgres_server"))
    with closing(made):
        yield made


def asked(bank: Harness, **options: str) -> SourceSettings:
    """All its tables stay where they are; nothing was said of columns, so all are captured."""
    tables = tuple(replace(table, asked=True) for table in bank.settings().tables)
    return replace(bank.settings(), tables=tables, options=options)


def change(bank: Harness, chance: Random) -> None:
    rows = {row[0]: row for row in bank.rows("account")}
    number = chance.randint(1, 6)
    new = account(number, chance.choice(OWNERS), f"{chance.randint(0, 9)}.00") if chance.random() < 0.7 else None
    if number in rows or new is not None:
        bank.write(Write("account", rows.get(number), new))


def found(table: object) -> Bag:
    rows: Bag = Counter()
    for told in table.to_pylist():  # type: ignore[attr-defined]
        count = told.pop(COUNT)
        rows[tuple(told.values())] += count
    return +rows


def whole(stand_in: StandIn) -> Bag:
    rows = found(stand_in.rows) if stand_in.place is None else Counter()
    if stand_in.place is not None:
        for told in pq.read_table(stand_in.place).to_pylist():
            rows[tuple(told.values())] += 1
        for told in stand_in.rows.to_pylist():
            count = told.pop(COUNT)
            rows[tuple(told.values())] += count
    assert not any(count < 0 for count in rows.values())
    return +rows


@pytest.mark.parametrize("seed", range(times(2, 40)))
def test_rows_are_those_of_any_csn_that_changes_reach(bank: Harness, empty_warehouse: Warehouse, seed: int) -> None:
    chance, warehouse = Random(seed), empty_warehouse
    warehouse.add_source("bank", asked(bank, ask_keys="2"))
    states = {warehouse.snapshot().moment.csn: bank.rows("account")}
    for _ in range(6):
        change(bank, chance)
        capture(warehouse)
        states[warehouse.snapshot().moment.csn] = bank.rows("account")
    for _ in range(3):
        # Seen, and not captured yet.
        change(bank, chance)
    owners, numbers = frozenset({("ann",), ("bob",)}), frozenset((n,) for n in range(1, 6))
    table, root = warehouse.snapshot().get("account"), warehouse.root / "data"
    assert not table.is_kept
    with closing(SourceLookup(warehouse.catalog, root)) as lookup:
        for csn, state in states.items():
            by_owner, by_number = (
                lookup.rows(table, (name,), keys, csn) for name, keys in (("owner", owners), ("id", numbers))
            )
            assert found(by_owner) == Counter({row: n for row, n in state.items() if (row[1],) in owners})
            assert found(by_number) == Counter({row: n for row, n in state.items() if (row[0],) in numbers})
            both = frozenset({(1, "ann"), (2, "bob"), (3, "cid")})
            expected = Counter({row: n for row, n in state.items() if row[:2] in both})
            assert found(lookup.rows(table, ("id", "owner"), both, csn)) == expected
            assert whole(lookup.stream(table, csn)) == state
            change(bank, chance)
    assert list(root.glob("x-*")) == []


def test_keys_that_are_too_many_are_halved_and_one_that_is_too_much_waits(
    tmp_path: Path, empty_warehouse: Warehouse
) -> None:
    with closing(SqliteHarness(tmp_path)) as bank:
        bank.write(*(Write("note", None, (word,)) for word in ("a", "b", "c", "c")))
        empty_warehouse.add_source("bank", asked(bank, ask_rows="1", asks_per_minute="9"))
        table = empty_warehouse.snapshot().get("note")
        csn = empty_warehouse.snapshot().moment.csn
        with closing(SourceLookup(empty_warehouse.catalog, empty_warehouse.root / "data")) as lookup:
            rows = lookup.rows(table, ("text",), frozenset({("a",), ("b",), ("x",), ("y",)}), csn)
            assert found(rows) == Counter({("a",): 1, ("b",): 1})
            with pytest.raises(Retryable, match="rows of 1 keys at once: it has more than 1 rows"):
                lookup.rows(table, ("text",), frozenset({("c",)}), csn)
            lookup.rows(table, ("text",), frozenset({("x",)}), csn)
            done = lookup.rows(table, ("text",), frozenset({("x",)}), csn)
            with pytest.raises(Retryable, match="asked 9 times within a minute"):
                [lookup.rows(table, ("text",), frozenset({("x",)}), csn) for _ in range(9)]
            assert done.num_rows == 0
        (source,) = empty_warehouse.sources()
        assert source.asked is not None
        assert source.asked.asks == 9


def test_commits_that_are_captured_and_were_not_seen_are_added(
    tmp_path: Path, empty_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As PostgreSQL does while a standby has to confirm: the log has a commit that no snapshot sees."""
    with closing(SqliteHarness(tmp_path)) as bank:
        empty_warehouse.add_source("bank", asked(bank))
        csns = []
        for number in (7, 8, 9):
            bank.write(Write("account", None, account(number, "new", "1.00")))
            capture(empty_warehouse)
            csns.append(empty_warehouse.snapshot().moment.csn)
        late = next(
            part.position for csn, part in empty_warehouse.catalog.parts("bank", Interval(0, 10**9)) if csn == csns[1]
        )
        ask = SqliteSource.ask

        def unseen(self: SqliteSource, asks: object) -> SourceAnswer:
            answer = ask(self, asks)  # type: ignore[arg-type]
            return replace(answer, rows=tuple(tuple(r for r in rows if r[0] != 8) for rows in answer.rows))

        monkeypatch.setattr(SqliteSource, "ask", unseen)
        table = empty_warehouse.snapshot().get("account")

        def numbers(at: int) -> set[int]:
            with closing(SourceLookup(empty_warehouse.catalog, empty_warehouse.root / "data")) as lookup:
                return {row[0] for row in found(lookup.rows(table, ("owner",), frozenset({("new",)}), at))}

        with pytest.raises(Corrupt, match="does not agree with its log"):
            numbers(csns[0])
        monkeypatch.setattr(LogSeen, "missed", lambda _, position, transaction: position == late)
        assert [numbers(csn) for csn in csns] == [{7}, {7, 8}, {7, 8, 9}]


def test_a_stream_that_is_tried_again_takes_its_space_once(
    tmp_path: Path, empty_warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteHarness(tmp_path)) as bank:
        bank.write(*(Write("account", None, account(number, "new", "1.00")) for number in range(10, 20)))
        empty_warehouse.add_source("bank", asked(bank, spool_limit="1 KB"))
        at, before = empty_warehouse.snapshot().moment.csn, bank.rows("account")
        bank.write(Write("account", None, account(20, "new", "1.00")))
        tries, saw = iter(range(15)), LogSeen.saw
        monkeypatch.setattr(LogSeen, "saw", lambda *about: saw(*about) if next(tries, None) is None else None)
        with closing(SourceLookup(empty_warehouse.catalog, empty_warehouse.root / "data")) as lookup:
            assert whole(lookup.stream(empty_warehouse.snapshot().get("account"), at)) == before
        assert next(tries, None) is None


def test_what_keeps_a_source_from_being_opened_is_noted_with_it(tmp_path: Path, empty_warehouse: Warehouse) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with closing(SqliteHarness(tmp_path / "one")) as one, closing(SqliteHarness(tmp_path / "two")) as two:
        empty_warehouse.add_source("one", asked(one))
        tables = (TableSettings("other", "account", asked=True),)
        empty_warehouse.add_source("two", replace(two.settings(), tables=tables))
        two.path.unlink()
        snapshot = empty_warehouse.snapshot()
        with closing(SourceLookup(empty_warehouse.catalog, empty_warehouse.root / "data")) as lookup:
            first, second = (
                (snapshot.get(name), ("id",), frozenset({(1,)}), snapshot.moment.csn) for name in ("account", "other")
            )
            assert lookup.rows(*first).num_rows == 1
            with pytest.raises(SourceDown) as told:
                lookup.rows(*second)
            lookup.release(told.value.message)
        noted = {source.name: source.asked for source in empty_warehouse.sources()}
        assert {name: asked and (asked.asks, asked.problem) for name, asked in noted.items()} == {
            "one": (1, None),
            "two": (0, told.value.message),
        }
