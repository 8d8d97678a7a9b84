"""CREATE and DROP of views.

Law: a view begins at one csn, after its tables have what it needs; one that others read is not dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from sqlglot import exp

from rollview.algebra.definition import Declared, declare, refuse_unknown
from rollview.algebra.unsafe import refuse_unsafe
from rollview.capture.asking import SourceLookup
from rollview.capture.requests import asked_tables, cover
from rollview.catalog import Definition, Relation, RelationKind, Snapshot
from rollview.core.states import Policy
from rollview.engine.meter import Meter
from rollview.errors import InUse, UsageError
from rollview.evolve.needs import names_any
from rollview.maintain.settings import check_properties
from rollview.propagate import RefreshMode, check_strict, plan_create, refresh_mode, run_create
from rollview.propagate.asked import ViewToKeep, check_asked, missing, whole_stand_ins
from rollview.propagate.begin import check_begin
from rollview.publish.step import drop, dropped
from rollview.publish.workplace import Workplace
from rollview.relations.maintenance import RowsFrom, maintenance_of
from rollview.relations.plans import REFRESH_MODE, plan_of
from rollview.relations.policies import check_legal, check_reads
from rollview.relations.rolling import check_even, check_turns
from rollview.relations.weak import check_reads_no_weak, check_weak
from rollview.results import ReplacementPlan, ViewCreated, ViewSet
from rollview.sql.former_names import telling_new_names
from rollview.sql.redefine import check_unread, explain_redefinition, is_subscribed, redefine


def create_view(place: Workplace, text: str | exp.Expr) -> ViewCreated:
    """``text``: CREATE MATERIALIZED VIEW, as it is written or parsed."""
    with telling_new_names(place.catalog):
        return _create_view(place, text)


def _create_view(place: Workplace, text: str | exp.Expr) -> ViewCreated:
    declared = declare(text)
    refuse_unsafe(declared.query)
    check_properties(declared.properties)
    place.recover()
    notes = cover(place.catalog, place.data, declared)
    existing = place.snapshot().find(declared.name)
    is_view = existing is not None and existing.kind is RelationKind.VIEW
    if declared.replace and is_view and not _asks(place, declared):
        done = redefine(place, declared, notes)
        if done is not None:
            return done
    with place.catalog.lease("definitions", f"relation:{declared.name}") as lease:
        reader = place.reader()
        if existing is not None and declared.replace:
            check_unread(reader.snapshot, existing)
        view = plan_create(place.spark, reader.snapshot, declared)
        check_begin(reader.snapshot, view)
        about = (declared.name, declared.properties, view.depends_on)
        policy = place.policies.of_new(reader.snapshot, *about)
        check_reads(reader.snapshot, place.policies, declared.name, policy, view.depends_on)
        check_weak(reader.snapshot, declared.name, declared.properties, subscribed=is_subscribed(place, declared.name))
        check_reads_no_weak(reader.snapshot, declared.name, view.depends_on)
        with closing(SourceLookup(place.catalog, place.data)) as lookup:
            kept = ViewToKeep(declared.name, view.plan, declared.properties, policy)
            check_asked(reader.snapshot, kept, asked_tables(place.catalog), lookup)
            check_turns(reader.snapshot, declared.name, view.plan, declared.properties, policy)
            reader.stand_ins = whole_stand_ins(reader, missing(reader.snapshot, view), view.at, lookup)
            lookup.release()
            rows = run_create(reader, place.catalog, lease, view, Meter())
    if policy.in_commits:
        place.following.catch_up(declared.name, policy)
    return ViewCreated(declared.name, view.at, rows, view.plan.mode.shown, view.replaces, (*notes, *view.notes))


def _asks(place: Workplace, declared: Declared) -> bool:
    """Whether rows of what it reads may have to be asked for: such a view is made anew."""
    missing = {table.name for table in place.snapshot().tables() if not table.is_kept}
    own = maintenance_of(declared.properties) is RowsFrom.SOURCE_QUERIES
    return own or names_any(declared, missing | asked_tables(place.catalog))


def explain_replace(place: Workplace, name: str, texts: Sequence[str]) -> ReplacementPlan:
    """``texts``: among them CREATE [OR REPLACE] MATERIALIZED VIEW of that view."""
    declared = next((one for one in map(declare, texts) if one.name.lower() == name.lower()), None)
    if declared is None:
        hint = "Write CREATE OR REPLACE MATERIALIZED VIEW."
        raise UsageError(f"View '{name}' is not defined there.", hint=hint)
    refuse_unsafe(declared.query)
    check_properties(declared.properties)
    with telling_new_names(place.catalog):
        return explain_redefinition(place, declared)


def set_view(place: Workplace, name: str, properties: Mapping[str, str]) -> ViewSet:
    """Properties of a view that is there; nothing is rebuilt. An empty value removes one."""
    refuse_unknown(name, properties)
    check_properties({key: value for key, value in properties.items() if value})
    place.recover()
    policy = _policy_with(place, place.snapshot(), name, properties)
    if policy is Policy.IMMEDIATE:
        # Before it, so that a view that cannot be refreshed does not stop every transaction.
        place.following.catch_up(name, policy)
    _check_asked_with(place, place.snapshot(), name, properties, policy)
    with place.catalog.lease("definitions", f"relation:{name}") as lease, place.catalog.write(lease) as writer:
        snapshot = writer.snapshot()
        view = snapshot.view(name)
        _check_not_waiting(view)
        policy = _policy_with(place, snapshot, name, properties)
        definition = _with(view, properties)
        _check_mode(snapshot, view, definition)
        writer.replace_definition(view.name, view.schema, definition, view.depends_on, view.folder)
    if policy.in_commits:
        place.following.catch_up(name, policy)
    return ViewSet(view.name, dict(definition.properties), policy)


def _check_not_waiting(view: Relation) -> None:
    """The definition that a view is to get has properties of its own, which would take the place of these."""
    if view.pending is not None:
        raise UsageError(
            f"View '{view.name}' has another definition from csn {view.pending.csn} on, and no rows of it yet: its "
            "properties cannot be set.",
            hint=f"Run: rollview refresh --select {view.name}",
            view=view.name,
        )


def _policy_with(place: Workplace, snapshot: Snapshot, name: str, properties: Mapping[str, str]) -> Policy:
    """The policy that it would have, if that is legal."""
    view = snapshot.view(name)
    policy = place.policies.of_new(snapshot, view.name, _with(view, properties).properties, view.depends_on)
    check_legal(snapshot, place.policies, view.name, policy)
    return policy


def _check_asked_with(
    place: Workplace, snapshot: Snapshot, name: str, properties: Mapping[str, str], policy: Policy
) -> None:
    """Whether it could still be kept by asking, if it is."""
    view = snapshot.view(name)
    kept = ViewToKeep(view.name, plan_of(snapshot, view), _with(view, properties).properties, policy)
    with closing(SourceLookup(place.catalog, place.data)) as sources:
        check_asked(snapshot, kept, asked_tables(place.catalog), sources)
    check_turns(snapshot, view.name, kept.plan, kept.properties, policy)
    check_weak(snapshot, view.name, kept.properties, subscribed=is_subscribed(place, view.name))
    if policy.in_commits:
        check_even(snapshot, view, "propagated in commits")


def _with(view: Relation, properties: Mapping[str, str]) -> Definition:
    assert view.definition is not None
    merged = {**view.definition.properties, **properties}
    return replace(view.definition, properties={key: value for key, value in merged.items() if value})


def _check_mode(snapshot: Snapshot, view: Relation, definition: Definition) -> None:
    wanted = refresh_mode(definition.properties.get(REFRESH_MODE, RefreshMode.AUTO))
    check_strict(view.name, plan_of(snapshot, view), wanted)


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
