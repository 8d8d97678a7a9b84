"""The kinds of sources by name. A kind's driver is imported when a source of that kind is opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from rollview.core.references import resolve
from rollview.errors import UsageError
from rollview.sources.boundary import guarded, named
from rollview.sources.protocol import Opening, Source, SourceTable
from rollview.sources.settings import SourceSettings
from rollview.sources.space import Space

KINDS: Mapping[str, str] = {
    "debezium": "rollview.sources.debezium.source.DebeziumSource",
    "delta": "rollview.sources.delta.source.DeltaSource",
    "files": "rollview.sources.files.source.FilesSource",
    "mariadb": "rollview.sources.mariadb.source.MariadbSource",
    "mysql": "rollview.sources.mysql.source.MysqlSource",
    "postgres": "rollview.sources.postgres.source.PostgresSource",
    "sqlite": "rollview.sources.sqlite.source.SqliteSource",
}
"""Where the class of each kind lives."""


def new_memory() -> dict[str, str]:
    """A tag of its own for whatever a source puts into a database, so that two warehouses never meet."""
    return {"tag": uuid4().hex[:12]}


def open_new(name: str, settings: SourceSettings) -> Source:
    """A source that the catalog does not know yet."""
    return _open(Opening(name, settings, _address(name, settings), new_memory(), {}, _new_attempt()))


def open_known(
    name: str,
    settings: SourceSettings,
    memory: Mapping[str, Any],
    tables: Mapping[str, SourceTable],
    fence: Callable[[], None],
    space: Space | None,
    keep: Callable[[Mapping[str, Any]], None],
    *,
    as_it_is: bool,
) -> Source:
    """A source that was opened before: with what it had to remember, and its tables as they were captured last."""
    address, attempt = _address(name, settings), _new_attempt()
    return _open(Opening(name, settings, address, memory, tables, attempt, fence, space, keep, as_it_is))


def _new_attempt() -> str:
    return uuid4().hex[:8]


def _address(name: str, settings: SourceSettings) -> str:
    return resolve(settings.address, Path.cwd(), f"source '{name}'")


def ask_statement(kind: str, table: SourceTable, equal: Sequence[str]) -> str:
    """The text with which a source of a kind is asked for rows of a table, with places for the keys."""
    text: str = _class_of(kind).statement(table, equal)
    return text


def _open(opening: Opening) -> Source:
    kind = _class_of(opening.settings.kind)
    with named(opening.name):
        source: Source = kind(opening)
        return guarded(opening.name, source)


def _class_of(kind: str) -> Any:
    found = KINDS.get(kind)
    if found is None:
        known = ", ".join(sorted(KINDS))
        told = kind if kind.isidentifier() else "…"
        raise UsageError(f"There is no kind of source '{told}'.", hint=f"There are: {known}.")
    module, _, made = found.rpartition(".")
    return getattr(import_module(module), made)
