"""Incremental or recompute: by sizes, by history, and never at the price of a csn."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rollview import errors
from rollview.algebra.definition import Declared
from rollview.algebra.resolve import Known
from rollview.algebra.view import Mode, ViewPlan, outline, plan
from rollview.catalog import Definition, Relation, RelationKind, Step
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.costs.refreshing import RefreshWork, refresh_seconds
from rollview.propagate.choice import RefreshMode, check_strict, choose, mode_of, refresh_mode

R = Known("r", Schema((Column("k", "bigint"), Column("x", "bigint"))), Constraints())
MUCH = RefreshWork(delta_rows=500_000, read_rows=1_000_000, csns=(7, 7))


def plan_for(query: str) -> ViewPlan:
    return plan(outline(Declared("v", (), None, {}, query, False), {"r": R}), {})


LINEAR = plan_for("SELECT k, x FROM r WHERE x > 0")
WHOLE = plan_for("SELECT k, RANK() OVER (ORDER BY x) AS place FROM r")
KEYED = plan_for("SELECT k FROM (SELECT k, MAX(x) AS x FROM r GROUP BY k) AS t WHERE x > 3")


def step(
    mode: Mode, seconds: float, *, kind: Any = "propagate", delta: int = 0, read: int = 1_000_000, took: float = 0.0
) -> Step:
    now = datetime.now(UTC)
    profile = {"mode": mode.value, "seconds": seconds, "delta_rows_read": delta, "read_rows": read}
    profile |= {"took": took} if took else {}
    return Step(1, "v", kind, Interval(0, 1), "done", now, now, "me", (), profile)


CREATED_IN_2_S = step(Mode.INCREMENTAL, 2.0, kind="create")


def chosen(work: RefreshWork, *past: Step, of: ViewPlan = LINEAR, mode: RefreshMode = RefreshMode.AUTO) -> Mode:
    return choose(of, mode, work, refresh_seconds(work, past)).mode


def test_many_changes_that_were_slow_by_deltas_are_recomputed() -> None:
    slow = step(Mode.INCREMENTAL, 4.0, delta=500_000)
    assert chosen(MUCH, slow, CREATED_IN_2_S) is Mode.WHOLE
    reason = choose(LINEAR, RefreshMode.AUTO, MUCH, refresh_seconds(MUCH, (slow, CREATED_IN_2_S))).reason
    assert reason == "expected for 500,000 changes: 4.0 s by deltas, 2.0 s recomputed"


def test_a_recomputation_of_the_past_says_what_one_costs() -> None:
    slow = step(Mode.INCREMENTAL, 4.0, delta=500_000)
    assert chosen(MUCH, slow, step(Mode.WHOLE, 2.0)) is Mode.WHOLE
    assert chosen(MUCH, slow, step(Mode.INCREMENTAL, 2.0, delta=500_000)) is Mode.INCREMENTAL


def test_deltas_that_were_quick_are_kept() -> None:
    assert chosen(MUCH, step(Mode.INCREMENTAL, 1.0, delta=500_000), CREATED_IN_2_S) is Mode.INCREMENTAL


def test_past_seconds_grow_with_the_rows() -> None:
    assert chosen(MUCH, step(Mode.INCREMENTAL, 1.0, delta=50_000), CREATED_IN_2_S) is Mode.WHOLE
    assert (
        chosen(MUCH, step(Mode.INCREMENTAL, 4.0, delta=500_000), step(Mode.WHOLE, 2.0, read=100_000)) is not Mode.WHOLE
    )


def test_without_a_history_of_deltas_a_change_counts_as_four_rows() -> None:
    assert chosen(RefreshWork(400_000, 1_000_000, (7, 7)), CREATED_IN_2_S) is Mode.WHOLE
    assert chosen(RefreshWork(200_000, 1_000_000, (7, 7)), CREATED_IN_2_S) is Mode.INCREMENTAL


def test_the_quickest_of_the_past_refreshes_by_deltas_counts() -> None:
    slow, quick = step(Mode.INCREMENTAL, 9.0, delta=500_000), step(Mode.INCREMENTAL, 1.0, delta=500_000)
    assert chosen(MUCH, slow, quick, CREATED_IN_2_S) is chosen(MUCH, quick, slow, CREATED_IN_2_S) is Mode.INCREMENTAL


@pytest.mark.parametrize(
    ("by_deltas", "recomputed"),
    [
        pytest.param(0.5, 0.1, id="less than half a second is saved"),
        pytest.param(1.0, 0.5, id="just half a second is saved"),
        pytest.param(10.0, 9.0, id="not much cheaper"),
        pytest.param(10.0, 8.0, id="just not much cheaper"),
    ],
)
def test_what_saves_little_is_not_done(by_deltas: float, recomputed: float) -> None:
    past = step(Mode.INCREMENTAL, by_deltas, delta=500_000), step(Mode.WHOLE, recomputed)
    assert chosen(MUCH, *past) is Mode.INCREMENTAL


def test_few_changes_are_a_fiftieth_of_what_is_read() -> None:
    slow = step(Mode.INCREMENTAL, 40.0, delta=20_000)
    assert chosen(RefreshWork(20_000, 1_000_000, (7, 7)), slow, CREATED_IN_2_S) is Mode.INCREMENTAL
    assert chosen(RefreshWork(20_001, 1_000_000, (7, 7)), slow, CREATED_IN_2_S) is Mode.WHOLE


def test_a_past_step_that_did_not_say_what_it_read_says_nothing() -> None:
    now = datetime.now(UTC)
    mute = Step(1, "v", "create", Interval(0, 1), "done", now, now, "me", (), {"mode": "whole", "seconds": 0.1})
    assert chosen(MUCH, mute, step(Mode.INCREMENTAL, 9.0, delta=500_000)) is Mode.INCREMENTAL


def test_a_view_says_its_own_mode_unless_another_is_asked_for() -> None:
    def view(**properties: str) -> Relation:
        named = {name.replace("__", "."): value for name, value in properties.items()}
        definition = Definition("SELECT k, x FROM r", (), None, named, {})
        kind = RelationKind.VIEW
        return Relation(1, "v", kind, R.schema, Constraints(), definition, ("r",), "v-1", 0, {}, (), None)

    own = view(rollview__refresh_mode="recompute")
    assert mode_of(view(), None) is RefreshMode.AUTO
    assert mode_of(own, None) is RefreshMode.RECOMPUTE
    assert mode_of(own, RefreshMode.INCREMENTAL) is RefreshMode.INCREMENTAL


def test_nothing_is_chosen_without_any_history() -> None:
    assert chosen(MUCH) is Mode.INCREMENTAL


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(RefreshWork(500_000, 1_000_000, (7, 8)), id="several csns would become one"),
        pytest.param(RefreshWork(1_000, 1_000_000, (7, 7)), id="few changes"),
        pytest.param(RefreshWork(50_000, 100_000, (7, 7)), id="little data"),
        pytest.param(RefreshWork(0, 1_000_000, None), id="no change"),
    ],
)
def test_where_it_does_not_pay_or_would_lose_a_csn_deltas_are_kept(work: RefreshWork) -> None:
    assert chosen(work, step(Mode.INCREMENTAL, 40.0, delta=work.delta_rows), CREATED_IN_2_S) is Mode.INCREMENTAL


def test_a_view_whose_old_states_are_grouped_may_be_recomputed_for_few_changes() -> None:
    few = RefreshWork(1_000, 1_000_000, (7, 7))
    slow = step(Mode.INCREMENTAL, 9.0, delta=1_000)
    assert chosen(few, slow, CREATED_IN_2_S, of=KEYED) is Mode.WHOLE
    assert chosen(few, slow, CREATED_IN_2_S) is Mode.INCREMENTAL


def test_where_nothing_changed_nothing_is_recomputed() -> None:
    slow = step(Mode.INCREMENTAL, 40.0, delta=1)
    assert chosen(RefreshWork(0, 1_000_000, None), slow, CREATED_IN_2_S, of=KEYED) is Mode.INCREMENTAL


def test_what_is_asked_for_is_done() -> None:
    slow = step(Mode.INCREMENTAL, 40.0, delta=500_000)
    assert chosen(MUCH, slow, CREATED_IN_2_S, mode=RefreshMode.INCREMENTAL) is Mode.INCREMENTAL
    assert chosen(RefreshWork(1, 10, (7, 8)), mode=RefreshMode.RECOMPUTE) is Mode.WHOLE
    assert chosen(RefreshWork(1, 10, (7, 8)), of=WHOLE) is Mode.WHOLE


def test_strict_refuses_a_view_without_incremental_form() -> None:
    check_strict("v", LINEAR, RefreshMode.INCREMENTAL)
    check_strict("v", WHOLE, RefreshMode.AUTO)
    with pytest.raises(errors.UsageError, match=r"View 'v' has no incremental form: .*window"):
        check_strict("v", WHOLE, RefreshMode.INCREMENTAL)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(errors.UsageError, match="no refresh mode 'sometimes'"):
        refresh_mode("sometimes")


def test_several_commits_are_recomputed_only_where_the_view_does_not_keep_them() -> None:
    spread = RefreshWork(500_000, 1_000_000, (6, 7))
    expected = refresh_seconds(spread, (step(Mode.INCREMENTAL, 4.0, delta=500_000), CREATED_IN_2_S))
    assert choose(LINEAR, RefreshMode.AUTO, spread, expected).mode is Mode.INCREMENTAL
    assert choose(LINEAR, RefreshMode.AUTO, spread, expected, merges=True).mode is Mode.WHOLE


FEW = RefreshWork(delta_rows=20, read_rows=2_000, csns=(7, 7))
"""All that there is to pay is planning."""


def planned(by_deltas: float) -> Step:
    return step(Mode.INCREMENTAL, 0.1, delta=20, took=by_deltas)


def created(seconds: float) -> Step:
    return step(Mode.INCREMENTAL, 0.1, kind="create", took=seconds)


def test_little_data_whose_deltas_take_long_to_plan_is_recomputed() -> None:
    past = planned(3.0), planned(9.0), created(1.0)
    assert chosen(FEW, *past) is Mode.WHOLE
    reason = choose(LINEAR, RefreshMode.AUTO, FEW, refresh_seconds(FEW, past)).reason
    assert reason == "expected for 20 changes, planning included: 3.0 s by deltas, 1.0 s recomputed"


@pytest.mark.parametrize(
    "past",
    [
        pytest.param((planned(9.0), created(1.0)), id="one step may have met a cold process"),
        pytest.param((planned(9.0), planned(1.9), created(1.0)), id="less than a second is saved"),
        pytest.param((planned(9.0), planned(8.0), created(4.0)), id="not half"),
        pytest.param((planned(9.0), planned(8.0)), id="never computed from nothing"),
    ],
)
def test_little_data_is_not_recomputed_for_a_little(past: tuple[Step, ...]) -> None:
    assert chosen(FEW, *past) is Mode.INCREMENTAL


def test_little_data_loses_no_csn_by_being_recomputed() -> None:
    past = planned(9.0), planned(9.0), created(1.0)
    several = RefreshWork(20, 2_000, (7, 8))
    assert chosen(several, *past) is Mode.INCREMENTAL
    assert choose(LINEAR, RefreshMode.AUTO, several, refresh_seconds(several, past), merges=True).mode is Mode.WHOLE
    assert chosen(FEW, *past, mode=RefreshMode.INCREMENTAL) is Mode.INCREMENTAL
