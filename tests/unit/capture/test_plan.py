"""Which sources are captured together."""

from __future__ import annotations

from datetime import timedelta

from rollview.capture.plan import plan_capture
from rollview.catalog import SourceRecord
from rollview.core.order import Order

BY_TIME = Order(by_time=True, delay=timedelta(seconds=1))


def source(name: str, *, is_global: bool = False) -> SourceRecord:
    settings = {"global_transactions": {"sources": []}} if is_global else {}
    return SourceRecord(1, name, "sqlite", settings, "active", "1", {}, None, None, ())


def test_sources_that_wait_for_nobody_come_alone() -> None:
    plan = plan_capture([source("a"), source("b"), source("c")], ["c", "a"], Order())
    assert plan.groups == (("c",), ("a",))


def test_sources_of_global_transactions_come_together_whoever_of_them_is_asked_for() -> None:
    records = [source("a", is_global=True), source("b"), source("c", is_global=True)]
    assert plan_capture(records, ["b", "c"], Order()).groups == (("b",), ("a", "c"))
    assert plan_capture(records, ["b"], Order()).groups == (("b",),)


def test_in_the_order_of_commit_times_all_come_together() -> None:
    assert plan_capture([source("a"), source("b")], ["b"], BY_TIME).groups == (("a", "b"),)
