"""Views that lose something: substitutes, what is dispensable, decisions. On Spark, beside recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollview import errors
from rollview.core.states import Extent, ViewState
from rollview.core.substitutes import Substitute
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Opened = Callable[..., Warehouse]


@pytest.fixture
def opened(tmp_path: Path, spark: SparkSession) -> Iterator[Opened]:
    """A new warehouse with substitutes."""
    made: list[Warehouse] = []

    def open_(*substitutes: Substitute) -> Warehouse:
        if not made:
            Warehouse.create(tmp_path / "w").close()
        made.append(Warehouse.open(tmp_path / "w", spark=spark, substitutes=substitutes))
        return made[-1]

    yield open_
    for one in made:
        one.close()


def rows(warehouse: Warehouse, name: str, at: int | None = None) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in warehouse.read(name, at).collect()), key=str)


def newest(warehouse: Warehouse) -> int:
    return warehouse.snapshot().moment.csn


def test_example_2_of_the_paper_keeps_the_row_that_reordering_loses(opened: Opened) -> None:
    registered = Substitute("customer", "registered_user", {"name": "login"}, Extent.EQUAL, "substitutes.0")
    warehouse = opened(registered)
    warehouse.sql(
        "CREATE TABLE customer (name STRING, address STRING, phone STRING)",
        "CREATE TABLE flight_res (name STRING, age INT, flight_no STRING, dest STRING)",
        "CREATE TABLE registered_user (login STRING, since INT)",
        "INSERT INTO customer VALUES ('Tom', 'MA', '123'), ('Bob', 'CA', '146')",
        "INSERT INTO registered_user VALUES ('Tom', 1999)",
        "INSERT INTO flight_res VALUES ('Tom', 17, 'AA43', 'Asia'), ('Ben', 18, 'A34', 'Asia'), ('Bob', 20, 'B', 'EU')",
        """CREATE MATERIALIZED VIEW asia_customer AS
           SELECT C.name, F.age, F.flight_no, F.dest -- as in the paper
           FROM customer C, flight_res F
           WHERE C.name = F.name AND F.dest = 'Asia'""",
        "DROP TABLE customer",
        # In flight: it comes while the view has not taken its new definition.
        "INSERT INTO registered_user VALUES ('Ben', 2004)",
    )
    s = newest(warehouse) - 1
    assert rows(warehouse, "asia_customer") == [("Tom", 17, "AA43", "Asia")]
    warehouse.refresh()
    assert rows(warehouse, "asia_customer") == [("Ben", 18, "A34", "Asia"), ("Tom", 17, "AA43", "Asia")]
    assert rows(warehouse, "asia_customer", s) == [("Tom", 17, "AA43", "Asia")]
    for csn in (s - 1, s, s + 1):
        assert warehouse.verify("asia_customer", csn).equal
    _, second = warehouse.view_log("asia_customer").definitions
    assert second.csn == s
    assert "registered_user" in second.why
    assert "-- as in the paper" in second.query
    assert "registered_user" in second.query
    with pytest.raises(errors.NotFound):
        warehouse.query("SELECT * FROM customer")
    assert len(warehouse.query("SELECT * FROM customer", as_of=s - 1).rows.collect()) == 2  # type: ignore[union-attr]


def test_what_is_dispensable_is_left_out_and_the_rest_goes_on_from_stored_rows(opened: Opened) -> None:
    warehouse = opened()
    warehouse.sql(
        "CREATE TABLE t (id INT, a STRING, b STRING, region INT)",
        "CREATE TABLE region (id INT PRIMARY KEY, name STRING)",
        "INSERT INTO region VALUES (1, 'north')",
        "INSERT INTO t VALUES (1, 'x', 'y', 1), (2, 'u', 'v', 2)",
        """CREATE MATERIALIZED VIEW short TBLPROPERTIES ('rollview.dispensable' = 'column a') AS
           SELECT id, -- the key
                  a, b FROM t""",
        "CREATE MATERIALIZED VIEW star TBLPROPERTIES ('rollview.dispensable' = 'columns') AS SELECT * FROM t",
        "CREATE MATERIALIZED VIEW above TBLPROPERTIES ('rollview.dispensable' = 'column a') AS SELECT a, b FROM short",
        "CREATE MATERIALIZED VIEW counts AS SELECT count(*) AS n FROM short",
        "CREATE MATERIALIZED VIEW widened TBLPROPERTIES ('rollview.dispensable' = 'condition on a', "
        "'rollview.extent' = 'superset') AS SELECT id FROM t WHERE a = 'x' AND id > 0",
        "CREATE MATERIALIZED VIEW equal TBLPROPERTIES ('rollview.dispensable' = 'conditions') AS "
        "SELECT id FROM t WHERE a = 'x' AND id > 0",
        "CREATE MATERIALIZED VIEW joined TBLPROPERTIES ('rollview.dispensable' = 'join region, column name') AS "
        "SELECT t.id, r.name FROM t LEFT JOIN region r ON r.id = t.region",
        "ALTER TABLE t DROP COLUMN a",
        "DROP TABLE region",
        "INSERT INTO t VALUES (3, 'w', 1)",
    )
    warehouse.refresh()
    assert rows(warehouse, "short") == [(1, "y"), (2, "v"), (3, "w")]
    assert rows(warehouse, "star") == [(1, "y", 1), (2, "v", 2), (3, "w", 1)]
    assert rows(warehouse, "above") == [("v",), ("w",), ("y",)]
    assert rows(warehouse, "counts") == [(3,)]
    assert rows(warehouse, "widened") == [(1,), (2,), (3,)]
    assert rows(warehouse, "joined") == [(1,), (2,), (3,)]
    assert rows(warehouse, "joined", 2) == [(1, "north"), (2, None)]
    assert "-- the key" in warehouse.view_log("short").definitions[-1].query
    stopped = warehouse.snapshot().get("equal")
    assert stopped.state is ViewState.SCHEMA_CHANGED
    assert "more than those that it has" in str(stopped.problem)
    s = newest(warehouse) - 2
    checked = (("short", s), ("star", s), ("above", s + 2), ("counts", s), ("widened", s - 1), ("joined", s + 1))
    for view, csn in checked:
        assert warehouse.verify(view, csn).equal, (view, csn)
    assert rows(warehouse, "equal") == [(1,)]


def test_a_diamond_with_mixed_policies_waits_where_it_is_asked_and_catches_up(opened: Opened) -> None:
    warehouse = opened(Substitute("t", "u", {"id": "id", "a": "b"}, Extent.EQUAL, "substitutes.0"))
    warehouse.sql(
        "CREATE TABLE t (id INT, a STRING, c STRING)",
        "CREATE TABLE u (id INT, b STRING)",
        "INSERT INTO t VALUES (1, 'x', 'p')",
        "INSERT INTO u VALUES (1, 'x'), (2, 'z')",
        "CREATE MATERIALIZED VIEW v1 AS SELECT id, a FROM t",
        "CREATE MATERIALIZED VIEW v2 TBLPROPERTIES ('rollview.on_schema_change' = 'ask') AS "
        "SELECT a, count(*) AS n FROM t GROUP BY a",
        "CREATE MATERIALIZED VIEW v3 AS SELECT v1.id, v2.n FROM v1 JOIN v2 ON v1.a = v2.a",
        "ALTER TABLE t DROP COLUMN a",
        "INSERT INTO u VALUES (3, 'x')",
    )
    s = newest(warehouse) - 1
    warehouse.refresh()
    assert rows(warehouse, "v1") == [(1, "x"), (2, "z"), (3, "x")]
    snapshot = warehouse.snapshot()
    for view in ("v2", "v3"):
        assert snapshot.get(view).state is ViewState.SCHEMA_CHANGED
        assert snapshot.get(view).shown.through == s - 1  # type: ignore[union-attr]
    assert rows(warehouse, "v3") == [(1, 1)]
    assert (rows(warehouse, "v1", s - 1), rows(warehouse, "v2")) == ([(1, "x")], [("x", 1)])
    waits = warehouse.view_changes("v3")
    assert waits.proposals == ()
    assert "'v2'" in waits.refused[0]
    found = warehouse.view_changes("v2")
    assert (found.csn, found.lost) == (s, ("t.a",))
    assert [(one.number, one.extent, one.steps) for one in found.proposals] == [(1, Extent.EQUAL, ("'u' for 't'",))]
    with pytest.raises(errors.NotFound, match="v2"):
        warehouse.decide_view("v2", 2)
    # A column that comes and a name that changes meanwhile take nothing from the decision.
    warehouse.sql("ALTER TABLE u RENAME COLUMN b TO d", "INSERT INTO u VALUES (4, 'z')")
    decided = warehouse.decide_view("v2", 1)
    assert (decided.csn, decided.above) == (s, ("v3",))
    warehouse.refresh()
    assert rows(warehouse, "v2") == [("x", 2), ("z", 2)]
    assert rows(warehouse, "v2", s) == [("x", 1), ("z", 1)]
    assert rows(warehouse, "v3") == [(1, 2), (2, 2), (3, 2), (4, 2)]
    for view, csn in (("v1", s), ("v2", s - 1), ("v2", s), ("v2", s + 2), ("v3", s), ("v3", newest(warehouse))):
        assert warehouse.verify(view, csn).equal, (view, csn)
    assert warehouse.view_changes("v2").csn is None


def test_substitutes_that_do_not_do_are_refused_with_their_place(opened: Opened) -> None:
    wrong = Substitute("t", "u", {"a": "nothing"}, Extent.EQUAL, "rollview.yaml: substitutes.0")
    warehouse = opened(wrong)
    warehouse.sql(
        "CREATE TABLE t (id INT, a STRING)",
        "CREATE TABLE u (id BIGINT, b STRING)",
        "CREATE MATERIALIZED VIEW v AS SELECT id, a FROM t",
    )
    with pytest.raises(errors.UsageError, match=r"substitutes.0: 'u' has no column 'nothing'"):
        warehouse.sql("ALTER TABLE t DROP COLUMN a")
    asks = opened(
        Substitute("t", "gone", {"id": "id", "a": "b"}, Extent.EQUAL, "first"),
        Substitute("t", "u", {"a": "b"}, Extent.EQUAL, "second"),
        Substitute("t", "u", {"id": "id", "a": "b"}, Extent.SUBSET, "third"),
    )
    asks.sql(
        "CREATE MATERIALIZED VIEW renamed TBLPROPERTIES ('rollview.on_schema_change' = 'ask') AS SELECT id, a FROM t",
        "INSERT INTO t VALUES (1, 'x')",
        "ALTER TABLE t RENAME TO s",
        "INSERT INTO s VALUES (2, 'y')",
        "INSERT INTO u VALUES (3, 'z')",
    )
    asks.refresh()
    assert rows(asks, "v") == [(1, "x"), (2, "y")]
    assert asks.verify("v", 1).equal
    (only,) = asks.view_changes("renamed").proposals
    assert only.steps[0] == "as it is"
    asks.decide_view("renamed", 1)
    asks.refresh()
    assert rows(asks, "renamed") == [(1, "x"), (2, "y")]
    asks.sql("DROP TABLE s")
    view = asks.snapshot().get("v")
    assert view.state is ViewState.SCHEMA_CHANGED
    for said in ("there is no table or view 'gone'", "it needs column 'id'", "a part of those that it has"):
        assert said in str(view.problem)
    asks.set_view("v", {"rollview.extent": "subset"})
    (taken,) = asks.view_changes("v").proposals
    assert (taken.extent, taken.columns) == (Extent.SUBSET, ("id", "a"))
    asks.decide_view("v", 1)
    asks.refresh()
    # Of a wider type: names and order stay.
    assert asks.read("v").dtypes == [("id", "bigint"), ("a", "string")]
    assert rows(asks, "v") == [(3, "z")]
    for csn in range(newest(asks) - 2, newest(asks) + 1):
        assert asks.verify("v", csn).equal
    changes = asks.delta("v", newest(asks) - 1, newest(asks)).collect()
    assert sorted((row[0], row[1], row["_count"]) for row in changes) == [(1, "x", -1), (2, "y", -1), (3, "z", 1)]
