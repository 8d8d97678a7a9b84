"""Looking one table or view up for the commands that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.cli.answers import Kind, RelationDetail, describe
from rollview.errors import NotFound

if TYPE_CHECKING:
    from rollview.relations.points import Point
    from rollview.warehouse import Warehouse


def show_relation(warehouse: Warehouse, name: str, kind: Kind, at: Point | None = None) -> RelationDetail:
    """``at``: as it is defined there."""
    snapshot = warehouse.snapshot()
    if at is not None:
        snapshot = snapshot.at(warehouse.resolve(at, name))
    elif snapshot.get(name).rolled is not None:
        snapshot = snapshot.at(snapshot.get(name).shown.through)
    relation = snapshot.get(name)
    if relation.kind != kind:
        hint = f"'{relation.name}' is a {relation.kind}: see 'rollview {relation.kind} show'."
        raise NotFound(kind, name, hint=hint)
    folder = str(warehouse.root / "data" / relation.folder)
    # The command line alone loads no catalog; an open warehouse has.
    from rollview.query.places import table_places
    from rollview.relations.former import former_names

    valid = warehouse.valid_time(relation.name)
    return describe(
        snapshot, relation, folder, valid, former_names(snapshot, relation), table_places(snapshot, relation)
    )
