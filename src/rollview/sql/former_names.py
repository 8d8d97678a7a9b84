"""A text that names a column by a name that it had: whoever wrote it is told the present one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rollview.catalog import Catalog
from rollview.core.names import same
from rollview.errors import SqlError


@contextmanager
def telling_new_names(catalog: Catalog) -> Iterator[None]:
    try:
        yield
    except SqlError as error:
        if "missing" in error.facts:
            error.hint = " ".join(
                (*_new_names(catalog, error.facts["missing"], error.facts["relations"]), error.hint or "")
            )
        raise


def _new_names(catalog: Catalog, name: str, relations: list[str]) -> Iterator[str]:
    columns = catalog.columns()
    present = {(one.relation_id, one.id): one for one in columns if one.until is None}
    for former in columns:
        now = present.get((former.relation_id, former.id))
        if now is None or former.until is None or not same(former.column.name, name) or same(now.column.name, name):
            continue
        if any(same(now.relation, relation) for relation in relations):
            what = f"Column '{former.column.name}' of '{now.relation}'"
            yield f"{what} is called '{now.column.name}' since csn {now.since}."
