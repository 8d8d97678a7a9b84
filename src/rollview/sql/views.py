"""CREATE and DROP of views.

Law: a view begins at one csn, after its tables have what it needs; one that others read is not dropped.
"""

from __future__ import annotations

from sqlglot import exp

from rollview.algebra.definition import declare
from rollview.algebra.unsafe import refuse_unsafe
from rollview.capture.requests import cover
from rollview.engine.meter import Meter
from rollview.errors import InUse
from rollview.maintain.settings import check_properties
from rollview.propagate import plan_create, run_create
from rollview.propagate.begin import check_begin
from rollview.publish.step import drop, dropped
from rollview.publish.workplace import Workplace
from rollview.results import ViewCreated


def create_view(place: Workplace, text: str | exp.Expr) -> ViewCreated:
    """``text``: CREATE MATERIALIZED VIEW, as it is written or parsed."""
    declared = declare(text)
    refuse_unsafe(declared.query)
    check_properties(declared.properties)
    place.recover()
    notes = cover(place.catalog, place.data, declared)
    with place.catalog.lease("definitions", f"relation:{declared.name}") as lease:
        reader = place.reader()
        view = plan_create(place.spark, reader.snapshot, declared)
        check_begin(reader.snapshot, view)
        rows = run_create(reader, place.catalog, lease, view, Meter())
    return ViewCreated(declared.name, view.at, rows, view.plan.mode.shown, view.replaces, (*notes, *view.notes))


def drop_view(place: Workplace, name: str) -> None:
    place.recover()
    with place.catalog.lease("definitions", f"relation:{name}") as lease, place.catalog.write(lease) as writer:
        snapshot = writer.snapshot()
        view = snapshot.view(name)
        readers = tuple(reader.name for reader in snapshot.readers(view.name))
        if readers:
            raise InUse("view", view.name, readers)
        drop(writer, view)
    dropped()
