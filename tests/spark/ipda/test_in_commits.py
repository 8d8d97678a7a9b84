"""Views that are propagated, and applied, in the commit of what they read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.oracle.warehouses import assert_verified, copied, extent, fresh, rows

from rollview.catalog import Part
from rollview.core.states import Policy
from rollview.errors import NotFollowed, Retryable, UsageError
from rollview.propagate.create import _log_first_parts
from rollview.propagate.recompute import log_recompute
from rollview.propagate.run import log_propagate
from rollview.publish.step import LoggedVersion, OpenStep
from rollview.relations.policies import Policies
from rollview.results import Progress
from rollview.tables import commit
from rollview.tables.constraints import Written
from rollview.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TOTALS = "SELECT owner, SUM(money) AS m, COUNT(*) AS n FROM account GROUP BY owner"
NAMED = "SELECT a.id, o.name, a.money FROM account a LEFT JOIN owner o ON a.owner = o.id"
RICH = "SELECT owner, m FROM totals WHERE m > 5"


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("written") / "bank"
    with fresh(spark, root) as warehouse:
        warehouse.sql(
            "CREATE TABLE account (id INT PRIMARY KEY, owner INT, money INT)",
            "CREATE TABLE owner (id INT PRIMARY KEY, name STRING)",
            "CREATE TABLE other (id INT)",
            "INSERT INTO account VALUES (1, 1, 10), (2, 2, 20)",
            "INSERT INTO owner VALUES (1, 'Ann')",
        )
    return root


@pytest.fixture
def bank(spark: SparkSession, written: Path, tmp_path: Path) -> Iterator[Warehouse]:
    with copied(spark, written, tmp_path / "bank") as warehouse:
        yield warehouse


def create(warehouse: Warehouse, name: str, query: str, policy: str) -> None:
    warehouse.create_view(f"CREATE MATERIALIZED VIEW {name} TBLPROPERTIES ('rollview.policy' = '{policy}') AS {query}")


def marks(warehouse: Warehouse, name: str) -> tuple[int, int]:
    """How far the view's delta goes, and where its extent is."""
    pins = warehouse.snapshot().get(name).pins
    return pins[Part.DELTA].through, pins[Part.EXTENT].through


def test_an_immediate_view_is_there_when_the_commit_is(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "immediate")
    create(bank, "named", NAMED, "immediate")
    create(bank, "rich", RICH, "immediate")
    for statement in (
        "INSERT INTO account VALUES (3, 1, 5)",
        "UPDATE account SET money = money - 7 WHERE id = 2",
        "INSERT INTO owner VALUES (2, 'Bob')",
        "DELETE FROM account WHERE owner = 1",
    ):
        (done,) = bank.sql(statement)
        assert marks(bank, "named") == (done.csn, done.csn)
        assert_verified(bank)
    assert rows(bank, "rich") == {(2, 13): 1}
    for csn in range(2, 6):
        assert bank.verify("totals", at=csn).equal


def test_an_ipda_view_has_its_delta_and_keeps_its_extent(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "ipda")
    before = extent(bank, "totals")
    bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    (done,) = bank.sql("DELETE FROM account WHERE id = 2")
    assert marks(bank, "totals") == (done.csn, done.csn - 2)
    assert extent(bank, "totals") == before
    assert rows(bank, "totals", done.csn) == {(1, 15, 2): 1}
    assert bank.roll(["totals"], done.csn - 1).csn == done.csn - 1
    assert_verified(bank)


def test_a_commit_that_touches_nothing_below_leaves_the_view_alone(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "immediate")
    steps = len(bank.catalog.steps("totals", None))
    bank.sql("INSERT INTO other VALUES (1)")
    assert len(bank.catalog.steps("totals", None)) == steps
    assert bank.status().views[0].staleness_commits == 0
    (done,) = bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    assert marks(bank, "totals") == (done.csn, done.csn)
    assert_verified(bank)


def test_what_an_immediate_view_reads_beside_the_tables_of_the_commit_comes_along(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "ipda")
    create(bank, "names", "SELECT id, UPPER(name) AS name FROM owner", "ipda")
    create(bank, "both", "SELECT n.name, t.m FROM totals t JOIN names n ON t.owner = n.id", "immediate")
    bank.sql("INSERT INTO other VALUES (1)")
    (done,) = bank.sql("UPDATE account SET money = 11 WHERE id = 1")
    assert marks(bank, "both") == (done.csn, done.csn)
    assert rows(bank, "both") == {("ANN", 11): 1}
    assert_verified(bank, "both")


def test_a_transaction_that_an_immediate_view_cannot_follow_is_undone(bank: Warehouse) -> None:
    create(bank, "halves", "SELECT id, 100 / money AS h FROM account", "immediate")
    create(bank, "totals", TOTALS, "immediate")
    before = bank.snapshot().moment.csn, marks(bank, "totals")
    with pytest.raises(NotFollowed, match="'halves'") as raised:
        bank.sql("INSERT INTO account VALUES (3, 1, 0)")
    assert "rollview view set halves rollview.policy=dpda" in (raised.value.hint or "")
    assert (bank.snapshot().moment.csn, marks(bank, "totals")) == before
    assert bank.catalog.steps(status="running") == ()
    assert rows(bank, "account") == {(1, 1, 10): 1, (2, 2, 20): 1}
    bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    assert_verified(bank)
    bank.set_view("halves", {"rollview.policy": "dpda"})
    bank.sql("INSERT INTO account VALUES (4, 1, 0)")
    assert_verified(bank, "totals")


def test_an_ipda_view_that_cannot_follow_falls_behind_alone(bank: Warehouse) -> None:
    create(bank, "halves", "SELECT id, 100 / money AS h FROM account", "ipda")
    create(bank, "above", "SELECT h FROM halves", "ipda")
    create(bank, "totals", TOTALS, "immediate")
    at = marks(bank, "halves")
    (done,) = bank.sql("INSERT INTO account VALUES (3, 1, 0)")
    assert marks(bank, "totals") == (done.csn, done.csn)
    assert marks(bank, "halves") == marks(bank, "above") == at
    status = {view.name: view for view in bank.status().views}
    assert (status["halves"].state, status["above"].state) == ("stopped", "ok")
    bank.sql("DELETE FROM account WHERE id = 3")
    bank.refresh(mode="recompute")
    assert_verified(bank)
    (done,) = bank.sql("INSERT INTO account VALUES (3, 1, 4)")
    assert marks(bank, "above")[0] == done.csn


def test_a_view_that_fails_as_nobody_foresaw_falls_behind_alone(
    bank: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(bank, "named", NAMED, "ipda")
    create(bank, "totals", TOTALS, "ipda")
    at = marks(bank, "named")

    def fails(reader: Any, catalog: Any, lease: Any, step: Any, meter: Any) -> Any:
        if step.view == "named":
            raise ZeroDivisionError("of ours")
        return log_propagate(reader, catalog, lease, step, meter)

    monkeypatch.setattr("rollview.schedule.bring.log_propagate", fails)
    (done,) = bank.sql("INSERT INTO account VALUES (3, 1, 7)")
    assert (marks(bank, "totals")[0], marks(bank, "named")) == (done.csn, at)
    status = {view.name: view for view in bank.status().views}
    assert "ZeroDivisionError" in (status["named"].problem or "")
    assert status["totals"].problem is None


def test_an_immediate_view_that_is_stopped_refuses_the_transaction(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "immediate")
    with bank.catalog.write() as writer:
        writer.set_problem("totals", "it was stopped by hand")
    with pytest.raises(NotFollowed, match="stopped by hand"):
        bank.sql("INSERT INTO account VALUES (3, 1, 0)")
    assert rows(bank, "account") == {(1, 1, 10): 1, (2, 2, 20): 1}


def test_a_policy_is_changed_in_place(bank: Warehouse) -> None:
    bank.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}")
    folder = bank.snapshot().get("totals").folder
    (done,) = bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    assert marks(bank, "totals")[1] < (done.csn or 0)
    bank.sql("ALTER MATERIALIZED VIEW totals SET TBLPROPERTIES ('rollview.policy' = 'immediate', 'about' = 'money')")
    assert marks(bank, "totals") == (done.csn, done.csn)
    (done,) = bank.sql("INSERT INTO account VALUES (4, 1, 5)")
    assert marks(bank, "totals") == (done.csn, done.csn)
    told = bank.set_view("totals", {"rollview.policy": "", "rollview.schedule": "manual"})
    assert (told.policy, told.properties) == (Policy.DPDA, {"about": "money", "rollview.schedule": "manual"})
    bank.sql("DELETE FROM account WHERE id = 4")
    assert marks(bank, "totals") == (done.csn, done.csn)
    assert bank.snapshot().get("totals").folder == folder
    bank.refresh()
    assert_verified(bank)


def test_what_is_in_commits_reads_nothing_that_comes_later(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "dpda")
    with pytest.raises(UsageError, match="'rich' cannot be ipda: it reads view 'totals', which is dpda") as raised:
        create(bank, "rich", RICH, "ipda")
    assert raised.value.hint == "First run: rollview view set totals rollview.policy=ipda"
    assert bank.snapshot().find("rich") is None
    bank.set_view("totals", {"rollview.policy": "ipda"})
    create(bank, "rich", RICH, "immediate")
    with pytest.raises(UsageError, match="view 'rich' reads it") as raised:
        bank.set_view("totals", {"rollview.policy": "snapshot"})
    assert raised.value.hint == "First run: rollview view set rich rollview.policy=dpda"
    with pytest.raises(UsageError, match="There is no policy 'sometimes'"):
        bank.set_view("totals", {"rollview.policy": "sometimes"})
    with pytest.raises(UsageError, match=r"no property 'rollview[.]polity'"):
        bank.set_view("totals", {"rollview.polity": "ipda"})


def test_an_immediate_view_is_not_rolled(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "immediate")
    with pytest.raises(UsageError, match="is immediate") as raised:
        bank.roll(["totals"], 1)
    assert "--as-of" in (raised.value.hint or "")
    with pytest.raises(UsageError, match="is immediate"):
        bank.refresh(["totals"], to=1)


def test_a_snapshot_view_is_recomputed_when_asked_and_keeps_no_delta(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "snapshot")
    create(bank, "named", NAMED, "snapshot")
    bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    (done,) = bank.sql("DELETE FROM account WHERE id = 2")
    bank.propagate()
    assert marks(bank, "totals")[1] < (done.csn or 0)
    told = {view.name: view for view in bank.refresh().views}
    assert (told["totals"].mode, told["totals"].reason) == ("whole", "policy snapshot")
    for name in ("totals", "named"):
        delta = bank.snapshot().get(name).pins[Part.DELTA]
        assert (delta.after, delta.through, delta.rows) == (done.csn, done.csn, 0)
    assert_verified(bank)


def test_a_snapshot_view_that_is_read_stores_its_difference(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "snapshot")
    create(bank, "rich", RICH, "dpda")
    bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    (done,) = bank.sql("DELETE FROM account WHERE id = 2")
    bank.refresh(["rich"])
    assert marks(bank, "rich")[0] < (done.csn or 0), "nobody asked for what it reads"
    bank.refresh()
    assert marks(bank, "rich") == marks(bank, "totals") == (done.csn, done.csn)
    assert_verified(bank)
    bank.set_view("totals", {"rollview.policy": "dpda"})
    bank.sql("INSERT INTO account VALUES (5, 1, 5)")
    bank.refresh()
    assert_verified(bank)


def test_the_project_says_the_policy_of_views_that_say_none(bank: Warehouse, spark: SparkSession) -> None:
    bank.sql(f"CREATE MATERIALIZED VIEW totals AS {TOTALS}", f"CREATE MATERIALIZED VIEW named AS {NAMED}")
    over = ((frozenset({"account"}), Policy.IPDA),)
    with Warehouse.open(bank.root, spark=spark, policies=Policies(Policy.SNAPSHOT, over=over)) as other:
        policies = {view.name: view.policy for view in other.status().views}
        assert policies == {"totals": Policy.IPDA, "named": Policy.SNAPSHOT}
        (done,) = other.sql("INSERT INTO account VALUES (3, 1, 5)")
        assert (marks(other, "totals")[0], marks(other, "named")[0]) == (done.csn, 1)


def test_a_snapshot_view_is_not_begun_anew_under_one_that_came_to_read_it(
    bank: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(bank, "totals", TOTALS, "snapshot")
    bank.sql("INSERT INTO account VALUES (3, 1, 5)")

    def meanwhile(*about: Any) -> OpenStep:
        done = log_recompute(*about)
        create(bank, "rich", RICH, "dpda")
        return done

    monkeypatch.setattr("rollview.schedule.view_steps.log_recompute", meanwhile)
    with pytest.raises(Retryable, match="read by now"):
        bank.refresh(["totals"])
    assert bank.catalog.steps(status="running") == ()
    bank.refresh()
    assert_verified(bank)
    assert rows(bank, "rich") == {(1, 15): 1, (2, 20): 1}


def test_a_view_does_not_begin_where_the_changes_of_what_it_reads_are_gone(
    bank: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(bank, "totals", TOTALS, "snapshot")
    bank.sql("INSERT INTO account VALUES (3, 1, 5)")

    def meanwhile(*about: Any) -> tuple[LoggedVersion, ...]:
        logged = _log_first_parts(*about)
        bank.refresh(["totals"])
        return logged

    with monkeypatch.context() as patched:
        patched.setattr("rollview.propagate.create._log_first_parts", meanwhile)
        with pytest.raises(Retryable, match="recomputed meanwhile"):
            create(bank, "rich", RICH, "dpda")
    assert bank.catalog.steps(status="running") == ()
    create(bank, "rich", RICH, "dpda")
    assert rows(bank, "rich") == {(1, 15): 1, (2, 20): 1}


def test_a_refresh_that_is_broken_off_leaves_no_step_of_a_snapshot(bank: Warehouse) -> None:
    create(bank, "totals", TOTALS, "snapshot")
    create(bank, "named", NAMED, "dpda")
    bank.sql("INSERT INTO account VALUES (3, 1, 5)")

    def stop(progress: Progress) -> None:
        if progress.relation == "named":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bank.refresh(on_progress=stop)
    assert bank.catalog.steps(status="running") == ()
    bank.refresh()
    assert_verified(bank)


def test_a_view_that_becomes_immediate_is_not_passed_by_beside_one_that_is_held(
    bank: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(bank, "named", NAMED, "ipda")
    monkeypatch.setattr("rollview.tables.commit._PATIENCE", 0.1)
    settled = commit._settled

    def meanwhile(*about: Any) -> tuple[Written, ...]:
        if bank.snapshot().find("totals") is None:
            create(bank, "totals", TOTALS, "immediate")
        return settled(*about)

    monkeypatch.setattr("rollview.tables.commit._settled", meanwhile)
    with bank.catalog.lease("relation:named"), pytest.raises(Retryable, match="have to follow"):
        bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    assert marks(bank, "totals")[1] == bank.snapshot().moment.csn
    (done,) = bank.sql("INSERT INTO account VALUES (3, 1, 5)")
    assert marks(bank, "totals") == (done.csn, done.csn)
    assert_verified(bank)
