from __future__ import annotations

import pytest
from tests.unit.catalog.samples import add_view

from rollview import errors
from rollview.catalog import Catalog, CatalogWriter, StepKind, StepStatus
from rollview.core.interval import Interval


def step(writer: CatalogWriter, relation: str, kind: StepKind, status: StepStatus | None = "done") -> int:
    step_id = writer.begin_step(relation, kind, Interval(2, 5), "me@here pid 1", ("s-1", "s-2"))
    if status:
        writer.finish_step(step_id, status, {"rows": 7})
    return step_id


def test_a_step_is_told_from_begin_to_end(catalog: Catalog) -> None:
    with catalog.write() as writer:
        step_id = step(writer, "not there yet", "create", None)
    (running,) = catalog.steps()
    assert (running.id, running.relation, running.kind, running.status) == (
        step_id,
        "not there yet",
        "create",
        "running",
    )
    assert (running.interval, running.owner, running.folders) == (Interval(2, 5), "me@here pid 1", ("s-1", "s-2"))
    assert (running.finished, running.profile) == (None, {})
    with catalog.write() as writer:
        writer.finish_step(step_id, "done", {"rows": 7})
    (done,) = catalog.steps()
    assert (done.status, done.profile) == ("done", {"rows": 7})
    assert done.finished is not None
    assert done.finished >= done.started


def test_steps_come_newest_first_and_filtered(catalog: Catalog) -> None:
    with catalog.write() as writer:
        ids = [step(writer, name, "apply", status) for name in ("a", "B") for status in ("done", "failed", None)]
    assert [s.id for s in catalog.steps()] == ids[::-1]
    assert [s.id for s in catalog.steps("b")] == ids[:2:-1]
    assert [s.id for s in catalog.steps(status="running")] == [ids[5], ids[2]]
    assert [s.id for s in catalog.steps(limit=2)] == ids[:3:-1]
    assert [s.id for s in catalog.steps("a", status="failed")] == [ids[1]]


def test_the_last_step_of_a_relation_is_its_newest_finished_refresh(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_view(writer, "V")
        add_view(writer, "w")
        wanted = [step(writer, "v", "propagate"), step(writer, "v", "apply")]
        step(writer, "v", "fold")
        step(writer, "v", "apply", "failed")
        step(writer, "v", "apply", None)
    assert {name: s.id for name, s in catalog.last_steps().items()} == {"V": wanted[-1]}


def test_a_new_view_does_not_inherit_the_steps_of_a_dropped_one(catalog: Catalog) -> None:
    with catalog.write() as writer:
        add_view(writer, "v")
        step(writer, "v", "apply")
        writer.drop_relation("v")
        add_view(writer, "v")
    assert catalog.last_steps() == {}
    assert len(catalog.steps("v")) == 1


def test_an_unknown_step_cannot_be_finished(catalog: Catalog) -> None:
    with pytest.raises(errors.NotFound, match="no step '99'"), catalog.write() as writer:
        writer.finish_step(99, "done", {})


def test_the_newest_finished_step_of_a_kind_is_found_by_name(catalog: Catalog) -> None:
    with catalog.write() as writer:
        wanted = step(writer, "V", "compress")
        step(writer, "v", "compress", "failed")
        step(writer, "v", "merge")
    found = catalog.last_step("v", "compress")
    assert found is not None
    assert found.id == wanted
    assert catalog.last_step("v", "prune") is None


def test_a_relation_is_settled_since_its_last_step_ended(catalog: Catalog) -> None:
    assert catalog.settled("v") is None
    with catalog.write() as writer:
        step(writer, "V", "apply")
        step(writer, "v", "apply", "failed")
        step(writer, "v", "apply", None)
    assert catalog.settled("v") == max(s.finished for s in catalog.steps("v") if s.finished is not None)
