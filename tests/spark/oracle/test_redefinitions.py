"""A view whose definition changes: rows, changes and verification at every csn, by the definition of that csn.

The oracle evaluates the text that held at a csn over the tables at that csn, and knows nothing of what is stored.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.sizes import times
from tests.spark.oracle.warehouses import copied, fresh

from rollview import errors
from rollview.catalog import Part
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Bag = Counter[tuple[Any, ...]]

SEEDS = int(os.environ.get("ROLLVIEW_REDEFINITIONS", times(1, full=60)))

BY_KIND = "SELECT kind, SUM(amount) AS total, COUNT(*) AS n FROM sale GROUP BY kind"
TEXTS = (
    BY_KIND,
    "SELECT kind, SUM(amount) AS total, COUNT(*) AS n FROM sale WHERE amount > 3 GROUP BY kind",
    "SELECT kind, SUM(amount) AS total, COUNT(*) AS n, MAX(id) AS newest FROM sale GROUP BY kind",
    "SELECT kind, amount AS total, id AS n FROM sale",
    "SELECT kind, amount AS total, id AS n FROM sale WHERE amount < 7",
    "SELECT s.kind, s.amount AS total, s.id AS n, k.name FROM sale s JOIN kind k ON k.kind = s.kind",
    "SELECT kind, total, n FROM (SELECT kind, SUM(amount) AS total, COUNT(*) AS n FROM sale GROUP BY kind) WHERE n > 1",
    "SELECT DISTINCT kind, amount AS total, amount AS n FROM sale",
    "SELECT COUNT(*) AS n, kind, SUM(amount) AS total FROM sale GROUP BY kind",
    "SELECT id AS n, kind, amount AS total FROM sale WHERE 7 > amount",
    "SELECT kind, total, n FROM low",
    "SELECT kind, n, SUM(total) AS total FROM low GROUP BY kind, n",
)
"""All have kind, total and n of one type, which the view above reads."""
LOW = (
    "SELECT kind, amount AS total, id AS n FROM sale WHERE amount > 1",
    "SELECT kind, SUM(amount) AS total, COUNT(*) AS n, MAX(id) AS newest FROM sale GROUP BY kind",
    "SELECT id AS n, amount AS total, kind FROM sale WHERE amount > 1",
)
"""The same of a view below."""


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written") / "w"
    with fresh(spark, root) as opened:
        opened.sql("CREATE TABLE sale (id BIGINT, kind STRING, amount BIGINT)")
        opened.sql("CREATE TABLE kind (kind STRING PRIMARY KEY, name STRING)")
        opened.sql("INSERT INTO kind VALUES ('a', 'apple'), ('b', 'pear')")
        opened.sql("INSERT INTO sale VALUES (1, 'a', 5), (2, 'a', 2), (3, 'b', 9)")
        opened.create_view(f"CREATE MATERIALIZED VIEW low AS {LOW[0]}")
        opened.create_view(f"CREATE MATERIALIZED VIEW v AS {BY_KIND}")
    return root


@pytest.fixture
def warehouse(spark: SparkSession, written: Path, tmp_path: Path) -> Iterator[Warehouse]:
    with copied(spark, written, tmp_path / "w") as opened:
        yield opened


def replace(warehouse: Warehouse, text: str, name: str = "v") -> int:
    return warehouse.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {text}").csn


def bag(frame: Any) -> Bag:
    return Counter(tuple(row) for row in frame.collect())


def expected(warehouse: Warehouse, csn: int) -> Bag:
    """The text of that csn over the tables as they were; where it reads the view below, over that one's text."""
    text, low = (
        next((one.query for one in reversed(warehouse.view_log(name).definitions) if one.csn <= csn), "")
        for name in ("v", "low")
    )
    return bag(warehouse.query(text.replace("FROM low", f"FROM ({low}) AS low"), as_of=csn, rewrite="off").rows)


def check_all(warehouse: Warehouse, first: int, chance: random.Random, deltas: int = 2) -> None:
    newest = warehouse.snapshot().get("v").pins["delta"].through  # type: ignore[index]
    for csn in range(first, newest + 1):
        assert bag(warehouse.read("v", as_of=csn)) == expected(warehouse, csn), csn
    for _ in range(deltas):
        after, through = sorted(chance.choices(range(first, newest + 1), k=2))
        check_delta(warehouse, after, through)


def check_delta(warehouse: Warehouse, after: int, through: int) -> None:
    """π(V@after) with the changes is V@through, in the columns of ``through``."""
    versions = warehouse.view_log("v").definitions
    old, new = ([one for one in versions if one.csn <= csn][-1] for csn in (after, through))
    types = {csn: dict(warehouse.read("v", as_of=csn).dtypes) for csn in (after, through)}
    steps = [one for one in versions if after < one.csn <= through]
    same = {
        name
        for name in new.columns
        if name in old.columns
        and types[after][name] == types[through][name]
        and all(dict(warehouse.read("v", as_of=one.csn).dtypes).get(name) == types[after][name] for one in steps)
    }
    rows = [row.asDict() for row in warehouse.read("v", as_of=after).collect()]
    found = Counter(tuple(row[name] if name in same else None for name in new.columns) for row in rows)
    for row in warehouse.delta("v", after, through).collect():
        found[tuple(row[name] for name in new.columns)] += row["_count"]
    assert +found == bag(warehouse.read("v", as_of=through)), (after, through)
    assert all(count >= 0 for count in found.values())


def test_below_the_csn_of_a_redefinition_everything_is_as_it_was(warehouse: Warehouse) -> None:
    first = warehouse.snapshot().moment.csn
    warehouse.sql("INSERT INTO sale VALUES (4, 'b', 1)")
    before = {csn: bag(warehouse.read("v", as_of=csn)) for csn in (first,)}
    at = replace(warehouse, TEXTS[3])
    assert at == first + 2
    assert bag(warehouse.read("v", as_of=first)) == before[first]
    warehouse.sql("UPDATE sale SET amount = 8 WHERE id = 1")
    warehouse.refresh()
    check_all(warehouse, first, random.Random(1))
    assert all(warehouse.verify("v", at=csn).equal for csn in (first, at - 1, at, at + 1))
    assert [one.csn for one in warehouse.view_log("v").definitions] == [first, at]
    assert warehouse.snapshot().at(at - 1).get("v").schema.names == ("kind", "total", "n")


def test_a_view_is_rolled_below_a_redefinition_and_back(warehouse: Warehouse) -> None:
    first = warehouse.snapshot().moment.csn
    warehouse.sql("INSERT INTO sale VALUES (4, 'b', 1)")
    at = replace(warehouse, "SELECT id, kind, amount FROM sale WHERE amount > 1")
    renamed = replace(warehouse, "SELECT id, kind AS k, amount FROM sale WHERE amount > 1")
    warehouse.sql("INSERT INTO sale VALUES (5, 'b', 7)")
    warehouse.refresh()
    newest = warehouse.snapshot().moment.csn
    for csn, columns in (
        (at - 1, ["kind", "total", "n"]),
        (first, ["kind", "total", "n"]),
        (at, ["id", "kind", "amount"]),
        (at - 1, ["kind", "total", "n"]),
        (renamed, ["id", "k", "amount"]),
        (first, ["kind", "total", "n"]),
    ):
        rolled = warehouse.roll(["v"], csn)
        assert warehouse.read("v").columns == columns
        rows = bag(warehouse.read("v"))
        assert rows == expected(warehouse, csn), csn
        assert rolled.views[0].rows == sum(rows.values())
        assert next(one.csn for one in warehouse.status().views if one.name == "v") == csn
        assert warehouse.snapshot().get("v").pins[Part.DELTA].through == newest
    warehouse.maintain(prune_before=newest, grace=timedelta(0))
    assert bag(warehouse.read("v")) == expected(warehouse, first)
    assert [piece.through for piece in warehouse.layouts_over("v", first)] == [at - 1, at, newest]
    warehouse.refresh()
    assert bag(warehouse.read("v")) == expected(warehouse, newest)
    assert warehouse.verify("v").csn == newest


def test_a_view_above_follows_a_redefinition_as_any_other_change(warehouse: Warehouse) -> None:
    warehouse.create_view("CREATE MATERIALIZED VIEW top AS SELECT kind, total * 2 AS twice FROM v WHERE n > 0")
    warehouse.create_view("CREATE MATERIALIZED VIEW most AS SELECT MAX(n) AS most FROM v")
    warehouse.create_view("CREATE MATERIALIZED VIEW copy AS SELECT * FROM v")
    first = warehouse.snapshot().moment.csn
    warehouse.sql("INSERT INTO sale VALUES (4, 'c', 4)")
    at = replace(warehouse, TEXTS[1])
    warehouse.sql("INSERT INTO sale VALUES (5, 'c', 6)")
    warehouse.refresh()
    for name in ("v", "top", "most", "copy"):
        assert all(warehouse.verify(name, at=csn).equal for csn in range(first, at + 2)), name
    with pytest.raises(errors.UsageError, match="view 'top' reads its column 'total'"):
        replace(warehouse, "SELECT kind, COUNT(*) AS n FROM sale GROUP BY kind")
    assert len(warehouse.view_log("v").definitions) == 2


def test_what_cannot_be_computed_leaves_the_view_as_it_was(warehouse: Warehouse) -> None:
    was = bag(warehouse.read("v"))
    with pytest.raises(errors.EngineFailed, match="keeps the definition that it has"):
        replace(warehouse, "SELECT kind, 1 / (amount - 5) AS total, id AS n FROM sale")
    assert bag(warehouse.read("v")) == was
    assert len(warehouse.view_log("v").definitions) == 1
    warehouse.sql("INSERT INTO sale VALUES (9, 'a', 1)")
    warehouse.refresh()
    assert warehouse.verify("v").equal


def test_a_failure_on_the_way_to_the_csn_costs_no_csn(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse.sql("INSERT INTO sale VALUES (4, 'b', 1)")
    was = warehouse.snapshot().get("v")

    def fail(*_: Any) -> None:
        raise errors.EngineFailed("Spark has gone.")

    with monkeypatch.context() as patch:
        patch.setattr(type(warehouse._place.following), "catch_up", fail)
        with pytest.raises(errors.EngineFailed, match="keeps the definition that it has") as refusal:
            replace(warehouse, TEXTS[3])
    assert "rollview refresh --select v" in (refusal.value.hint or "")
    now = warehouse.snapshot().get("v")
    assert (now.folder, now.pins, now.versions, now.problem) == (was.folder, was.pins, (), None)
    replace(warehouse, TEXTS[3])
    assert len(warehouse.view_log("v").definitions) == 2


def test_a_comment_or_a_property_is_no_commit(warehouse: Warehouse) -> None:
    was = warehouse.snapshot()
    done = warehouse.create_view(
        f"CREATE OR REPLACE MATERIALIZED VIEW v COMMENT 'totals' TBLPROPERTIES ('rollview.group' = 'g') AS {BY_KIND}"
    )
    now = warehouse.snapshot()
    assert (now.moment, now.get("v").folder, done.replaced) == (was.moment, was.get("v").folder, True)
    definition = now.get("v").definition
    assert definition is not None
    assert (definition.comment, definition.properties["rollview.group"]) == ("totals", "g")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_redefinitions_in_a_random_history(warehouse: Warehouse, seed: int) -> None:
    chance = random.Random(seed)
    first = warehouse.snapshot().moment.csn
    warehouse.create_view(
        "CREATE MATERIALIZED VIEW top AS SELECT kind, SUM(total) AS s FROM v WHERE n > 0 GROUP BY kind"
    )
    for number in range(times(9, 30)):
        choice = chance.random()
        if choice < 0.3:
            replace(warehouse, chance.choice(TEXTS))
        elif choice < 0.45:
            replace(warehouse, chance.choice(LOW), "low")
        elif choice < 0.55:
            warehouse.refresh()
        else:
            kind = chance.choice("abc")
            warehouse.sql(
                chance.choice(
                    (
                        f"INSERT INTO sale VALUES ({10 + number}, '{kind}', {chance.randrange(10)})",
                        f"DELETE FROM sale WHERE kind = '{kind}' AND amount < 5",
                        f"UPDATE sale SET amount = amount + 1 WHERE kind = '{kind}'",
                    )
                )
            )
    warehouse.refresh()
    check_all(warehouse, first, chance, deltas=4)
    newest = warehouse.snapshot().moment.csn
    for csn in {newest, *chance.sample(range(first, newest), 2)}:
        assert warehouse.verify("top", at=csn).equal, csn


def test_names_and_order_of_columns_change_without_a_word_to_spark(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def told(spark: object, declared: Any, made: object) -> Any:
        asked.append(declared.query)
        raise errors.SqlError("asked")

    monkeypatch.setattr("rollview.propagate.create._told_by_spark", told)
    replace(warehouse, "SELECT kind AS k, SUM(amount) AS sum_of, COUNT(*) AS n FROM sale GROUP BY kind")
    replace(warehouse, "SELECT SUM(amount) AS total, kind, COUNT(*) AS n FROM sale GROUP BY kind")
    replace(warehouse, "SELECT id AS number, kind, amount AS total FROM sale WHERE amount > 1", "low")
    assert (asked, warehouse.verify("v").equal, warehouse.verify("low").equal) == ([], True, True)
    # A name that is also a column's may mean that one by then; another condition has other types, perhaps.
    for text in (
        "SELECT SUM(amount) AS amount, kind, COUNT(*) AS n FROM sale GROUP BY kind",
        "SELECT SUM(amount) AS total, kind, COUNT(*) AS n FROM sale WHERE id > 1 GROUP BY kind",
    ):
        with pytest.raises(errors.SqlError, match="asked"):
            replace(warehouse, text)


def test_names_and_order_of_columns_change_without_a_job_or_a_file(warehouse: Warehouse) -> None:
    first = warehouse.snapshot().moment.csn
    warehouse.sql("INSERT INTO sale VALUES (4, 'b', 1)")
    warehouse.refresh()
    warehouse.create_view("CREATE MATERIALIZED VIEW rows AS SELECT id, kind AS k, amount FROM sale WHERE amount > 1")
    was = warehouse.snapshot()
    steps = len(warehouse.catalog.steps(limit=None))
    at = replace(warehouse, "SELECT COUNT(*) AS n, kind, SUM(amount) AS sum_of FROM sale GROUP BY kind")
    warehouse.create_view(
        "CREATE OR REPLACE MATERIALIZED VIEW rows AS SELECT amount AS a, id, kind FROM sale WHERE 1 < amount"
    )
    now = warehouse.snapshot()
    for name in ("v", "rows"):
        assert (now.get(name).folder, now.get(name).pins) == (was.get(name).folder, was.get(name).pins)
    assert len(warehouse.catalog.steps(limit=None)) == steps
    warehouse.sql("UPDATE sale SET amount = 8 WHERE id = 1")
    warehouse.refresh()
    for csn in range(first, at + 3):
        assert warehouse.verify("v", at=csn).equal, csn
    assert warehouse.read("v").columns == ["n", "kind", "sum_of"]
    assert warehouse.read("v", as_of=at - 1).columns == ["kind", "total", "n"]
    assert all(warehouse.verify("rows", at=csn).equal for csn in range(at - 1, at + 3))
    delta = warehouse.delta("v", first)
    assert delta.columns == ["n", "kind", "sum_of", "_count", "_csn"]
    old = {(row.n, row.kind, row.total): 1 for row in warehouse.read("v", as_of=first).collect()}
    found = Counter(old)
    for row in delta.collect():
        found[(row.n, row.kind, row.sum_of)] += row._count
    assert +found == bag(warehouse.read("v"))


def test_columns_with_other_names_go_on_from_before_the_rows_were_others(warehouse: Warehouse) -> None:
    create = "CREATE OR REPLACE MATERIALIZED VIEW r AS SELECT"
    first = warehouse.create_view(f"{create} id, amount FROM sale").csn
    warehouse.sql("INSERT INTO sale VALUES (4, 'b', 1)")
    warehouse.refresh()
    warehouse.create_view(f"{create} id, amount, kind FROM sale WHERE amount > 2")
    at = warehouse.create_view(f"{create} kind AS k, id, amount AS a FROM sale WHERE amount > 2").csn
    warehouse.sql("INSERT INTO sale VALUES (5, 'b', 6)")
    warehouse.refresh()
    assert warehouse.snapshot().get("r").pins[Part.BRIDGE].through == at - 1
    for through in (at, at + 1):
        found = Counter((None, row.id, row.amount) for row in warehouse.read("r", as_of=first).collect())
        for row in warehouse.delta("r", first, through).collect():
            found[(row.k, row.id, row.a)] += row._count
        assert +found == bag(warehouse.read("r", as_of=through))
        assert all(count >= 0 for count in found.values())


class Cut(Exception):
    """The process that asked for a definition ended before the view had rows of it."""


def cut_off(warehouse: Warehouse, text: str) -> None:
    def cut(point: str) -> None:
        raise Cut(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollview.sql.redefine.reach", cut)
        with pytest.raises(Cut):
            replace(warehouse, text)
    assert warehouse.snapshot().get("v").pending is not None


def test_a_definition_that_replaces_a_waiting_one_is_in_the_names_of_its_own_csn(warehouse: Warehouse) -> None:
    first = warehouse.snapshot().moment.csn
    cut_off(warehouse, "SELECT kind, amount AS total, id AS n FROM sale")
    with pytest.raises(errors.UsageError, match="its properties cannot be set"):
        warehouse.set_view("v", {"rollview.group": "g"})
    with pytest.raises(errors.UsageError, match="'v' waits for the rows"):
        warehouse.sql("ALTER TABLE sale DROP COLUMN amount")
    for old, new in (("id", "x"), ("amount", "id"), ("x", "amount")):
        warehouse.sql(f"ALTER TABLE sale RENAME COLUMN {old} TO {new}")
    before = warehouse.snapshot().moment.csn
    at = replace(warehouse, "SELECT kind, amount AS total, id AS n FROM sale")
    assert at == before + 1
    assert bag(warehouse.read("v")) == Counter({("a", 1, 5): 1, ("a", 2, 2): 1, ("b", 3, 9): 1})
    assert bag(warehouse.read("v", as_of=before)) == bag(warehouse.read("v", as_of=first))
    assert [one.csn for one in warehouse.view_log("v").definitions] == [first, at]


DERIVED = (
    (
        "SELECT kind, id % 2 AS odd, SUM(amount) AS s, AVG(amount) AS a FROM sale GROUP BY kind, id % 2",
        "SELECT kind, SUM(amount) AS s FROM sale GROUP BY kind",
    ),
    (
        "SELECT kind, id % 2 AS odd, SUM(amount) AS s FROM sale GROUP BY kind, id % 2",
        "SELECT UPPER(kind) AS up, SUM(amount) AS s, COUNT(*) AS n FROM sale WHERE id % 2 = 1 GROUP BY UPPER(kind)",
    ),
    (
        "SELECT kind, SUM(amount) AS s FROM sale GROUP BY kind",
        "SELECT kind, SUM(amount) AS s FROM sale GROUP BY kind HAVING SUM(amount) > 8",
    ),
    ("SELECT id, kind, amount FROM sale", "SELECT kind, amount + 1 AS more FROM sale WHERE id > 1"),
    (
        "SELECT s.id, s.kind, k.name FROM sale s JOIN kind k ON k.kind = s.kind WHERE s.amount > 1",
        "SELECT k.name FROM sale s JOIN kind k ON k.kind = s.kind WHERE s.amount > 1 AND s.id < 3",
    ),
)


IN_PART = (
    ("SELECT id, kind FROM sale WHERE amount > 4", "SELECT id, kind FROM sale WHERE amount > 1"),
    (
        "SELECT kind, SUM(amount) AS s FROM sale GROUP BY kind",
        "SELECT kind, SUM(amount) AS s, SUM(id) AS ids, AVG(id) AS mean FROM sale GROUP BY kind",
    ),
    (
        "SELECT id, kind FROM sale",
        "SELECT s.id, s.kind, k.name FROM sale s JOIN kind k ON k.kind = s.kind",
    ),
    (
        "SELECT kind, id FROM sale WHERE id > 1",
        "SELECT kind, id FROM sale WHERE id > 1 UNION ALL SELECT name, NULL FROM kind",
    ),
    (
        "SELECT kind, SUM(n) AS n FROM (SELECT kind, amount AS n FROM sale) GROUP BY kind",
        "SELECT kind, SUM(n) AS n FROM (SELECT kind, amount AS n FROM sale UNION ALL SELECT kind, 1 FROM kind) "
        "GROUP BY kind",
    ),
)
"""The same, with the part that is not stored."""

DEARER = (
    (
        "SELECT kind, amount FROM sale UNION ALL SELECT kind, id FROM sale WHERE id > 1",
        "SELECT kind, id FROM sale WHERE id > 1 UNION ALL SELECT name, NULL FROM kind",
    ),
)
"""Looking for what goes among few rows takes longer than computing all of them."""


@pytest.mark.parametrize(("texts", "mode"), [(DERIVED, "stored rows"), (IN_PART, "in part"), (DEARER, "recomputed")])
def test_what_is_stored_tells_the_new_rows(warehouse: Warehouse, texts: tuple[tuple[str, str], ...], mode: str) -> None:
    at = {}
    for number, (old, new) in enumerate(texts):
        name = f"w{number}"
        warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} AS {old}")
        at[name] = warehouse.create_view(f"CREATE OR REPLACE MATERIALIZED VIEW {name} AS {new}").csn
        step = warehouse.catalog.last_step(name, "adapt")
        assert step is not None
        assert step.profile["mode"] == mode, (new, step.profile["reason"])
    warehouse.sql("INSERT INTO sale VALUES (4, 'c', 4), (5, 'a', 7)")
    warehouse.sql("DELETE FROM sale WHERE id = 1")
    warehouse.refresh()
    newest = warehouse.snapshot().moment.csn
    for name, csn in at.items():
        assert warehouse.verify(name, at=csn).equal, name
        assert warehouse.verify(name, at=newest).equal, name


def test_what_an_earlier_definition_has_stored_goes_when_it_is_pruned(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE note (kind STRING, text STRING)")
    warehouse.create_view("CREATE MATERIALIZED VIEW w AS SELECT kind, text FROM note")
    at = warehouse.create_view("CREATE OR REPLACE MATERIALIZED VIEW w AS SELECT kind, id FROM sale").csn
    old = warehouse.root / "data" / warehouse.snapshot().at(at - 1).get("w").folder
    warehouse.drop_table("note")
    assert warehouse.snapshot().find("note") is None
    assert warehouse.verify("w", at=at - 1).equal
    warehouse.maintain(("w",), grace=timedelta(0))
    assert warehouse.read("w", as_of=at - 1).count() == 0
    warehouse.maintain(prune_before=at, grace=timedelta(0))
    warehouse.maintain(grace=timedelta(0))
    assert not old.exists()
    with pytest.raises(errors.OutOfReach):
        warehouse.read("w", as_of=at - 1)
    assert warehouse.verify("w", at=at).equal
    assert all(len(one.schema) for one in warehouse.snapshot().relations.values())
