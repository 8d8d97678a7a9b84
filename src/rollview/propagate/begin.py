"""Where a view may begin.

Law: a view begins at a csn at which the captured tables that it reads have what they have now, and the views that it
reads their definitions. What was taken of a source's table later is NULL or missing before that commit, and a view has
other rows by an earlier definition, so a view must not begin before it.
"""

from __future__ import annotations

from rollview.catalog import Relation, Snapshot
from rollview.core.interval import Csn
from rollview.errors import OutOfReach
from rollview.propagate.create import ViewToCreate


def check_begin(snapshot: Snapshot, view: ViewToCreate) -> None:
    name, at = view.declared.name, view.at
    for relation in map(snapshot.get, view.depends_on):
        since = _whole_since(relation)
        if since > at:
            raise OutOfReach(
                f"View '{name}' would begin at csn {at}, but {relation.kind} '{relation.name}' is what it is now since "
                f"{since}.",
                hint="Refresh the views that it reads first.",
                name=name,
                csn=at,
                oldest=since,
            )


def _whole_since(relation: Relation) -> Csn:
    """When a captured table was last given columns or rows that it did not have, or a view its definition; columns that
    went do not matter."""
    pairs = zip(relation.layouts, relation.layouts[1:], strict=False)
    grown = (then.csn for before, then in pairs if not set(then.schema) < set(before.schema))
    defined = (version.csn for version in relation.versions[1:] if not version.pending)
    return max([relation.readable_from, *grown, *defined])
