"""The smallest values: intervals, names, schemas, faults."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollview.core import faults
from rollview.core.interval import Interval, merge_overlapping
from rollview.core.names import fault_in_name, physical, same
from rollview.core.schema import Column, Constraints, ForeignKey, Schema

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


def test_an_interval_is_open_below_and_closed_above() -> None:
    interval = Interval(3, 5)
    assert [csn for csn in range(8) if csn in interval] == [4, 5]
    assert [csn for csn in range(8) if interval.strictly_inside(csn)] == [4]
    assert str(interval) == "(3, 5]"
    assert bool(interval)
    assert not Interval(3, 3)


@pytest.mark.parametrize(("after", "through"), [(-1, 2), (3, 2)])
def test_what_is_not_an_interval_cannot_be_made(after: int, through: int) -> None:
    with pytest.raises(ValueError, match="not an interval"):
        Interval(after, through)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 150))
def test_consecutive_intervals_hold_each_csn_once(start: int, first: int, second: int, csn: int) -> None:
    low, high = Interval(start, start + first), Interval(start + first, start + first + second)
    assert (csn in low) + (csn in high) == (csn in Interval(start, start + first + second))
    assert not low.overlaps(high)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), max_size=8))
def test_merging_keeps_what_is_strictly_inside(pairs: list[tuple[int, int]]) -> None:
    intervals = [Interval(after, after + width) for after, width in pairs]
    merged = merge_overlapping(intervals)
    assert all(not a.overlaps(b) for a in merged for b in merged if a is not b)
    for csn in range(30):
        if any(interval.strictly_inside(csn) for interval in intervals):
            assert any(interval.strictly_inside(csn) for interval in merged)


@given(TEXT, TEXT)
def test_physical_names_are_injective_and_plain(left: str, right: str) -> None:
    assert (physical(left) == physical(right)) == (left == right)
    assert physical(left).isascii()
    assert not set(physical(left)) & set(" ,;{}()\n\t=/\\.`\"'")


@pytest.mark.parametrize("name", ["", "  ", "a\0b", "_count", "_CSN", "_rv_x", "_RV_Y", "x" * 256, "\ud800"])
def test_a_name_that_cannot_be_kept_has_a_reason(name: str) -> None:
    assert fault_in_name(name)


@pytest.mark.parametrize("name", ["a", "_counts", "Ünï", "a.b", "`", "'", "_rvx", "x" * 255, "select", "../x"])
def test_any_other_name_is_fine(name: str) -> None:
    assert fault_in_name(name) is None


def test_names_are_the_same_without_regard_to_case() -> None:
    assert same("Id", "iD")
    assert not same("id", "ld")


@given(st.lists(st.tuples(TEXT, TEXT), max_size=5))
def test_a_schema_survives_json(pairs: list[tuple[str, str]]) -> None:
    schema = Schema(tuple(Column(name, type_) for name, type_ in pairs))
    assert Schema.from_json(schema.to_json()) == schema


def test_constraints_survive_json_and_list_their_keys() -> None:
    made = Constraints(("a",), (("b", "c"),), ("d",), (ForeignKey(("e",), "t", ("f",)),))
    assert Constraints.from_json(made.to_json()) == made
    assert made.keys == (("a",), ("b", "c"))
    assert Constraints().keys == ()


def test_a_step_that_nobody_asked_for_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLVIEW_FAULT", raising=False)
    for step in faults.STEPS:
        faults.reach(step)


def test_an_unknown_step_is_a_mistake_in_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLVIEW_FAULT", "commit.computed")
    with pytest.raises(LookupError, match="no such step"):
        faults.reach("nothing")


@pytest.mark.parametrize(
    ("fault", "reached", "dies"), [("apply.begun", 1, True), ("apply.begun:2", 1, False), ("apply.begun:2", 2, True)]
)
def test_a_step_kills_the_process_the_nth_time_it_is_reached(fault: str, reached: int, dies: bool) -> None:
    code = f"from rollview.core.faults import reach\nfor _ in range({reached}): reach('apply.begun')\nprint('alive')"
    environment = {**os.environ, "ROLLVIEW_FAULT": fault, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == -9) == dies
    assert ("alive" in done.stdout) != dies
