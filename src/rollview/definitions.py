"""View definitions in Python files, spelled as in ``pyspark.pipelines``.

    @rollview.materialized_view(comment="Revenue by state")
    def revenue_by_state() -> str:
        return "SELECT state, SUM(amount) AS revenue FROM orders GROUP BY state"

Law: the decorator only writes the definition down. The function stays what it was, and nothing is created until the
file is given to ``rollview view create``.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from rollview.errors import RollviewError, SqlError, UsageError

QueryFunction = Callable[[], str]

_collected: ContextVar[list[PythonDefinition] | None] = ContextVar("collected", default=None)


@dataclass(frozen=True, slots=True)
class PythonDefinition:
    name: str
    query: str
    comment: str | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)

    def to_sql(self, *, replace: bool = False) -> str:
        """The same definition as one statement."""
        parts = [f"CREATE {'OR REPLACE ' if replace else ''}MATERIALIZED VIEW {_identifier(self.name)}"]
        if self.comment is not None:
            parts.append(f"COMMENT {_literal(self.comment)}")
        if self.table_properties:
            pairs = (f"{_literal(key)} = {_literal(value)}" for key, value in self.table_properties.items())
            parts.append(f"TBLPROPERTIES ({', '.join(pairs)})")
        return "\n".join([*parts, f"AS {self.query}"])


@overload
def materialized_view(query_function: QueryFunction, /) -> QueryFunction: ...
@overload
def materialized_view(
    *, name: str | None = None, comment: str | None = None, table_properties: Mapping[str, str] | None = None
) -> Callable[[QueryFunction], QueryFunction]: ...
def materialized_view(
    query_function: QueryFunction | None = None,
    *,
    name: str | None = None,
    comment: str | None = None,
    table_properties: Mapping[str, str] | None = None,
) -> QueryFunction | Callable[[QueryFunction], QueryFunction]:
    """Define a materialized view by a function that returns its SQL. The name is the function's unless given."""

    def decorate(function: QueryFunction) -> QueryFunction:
        collected = _collected.get()
        if collected is not None:
            query = _query(function)
            collected.append(PythonDefinition(name or function.__name__, query, comment, table_properties or {}))
        return function

    return decorate if query_function is None else decorate(query_function)


def read_definitions(path: Path) -> tuple[PythonDefinition, ...]:
    """Run a Python file and return the views it defines, in order."""
    with _collecting() as collected:
        try:
            runpy.run_path(str(path), run_name="__rollview__")
        except RollviewError:
            raise
        except Exception as cause:
            raise UsageError(f"'{path}' failed: {type(cause).__name__}: {cause}", file=str(path)) from cause
    if not collected:
        raise UsageError(f"'{path}' defines no view.", hint="Decorate a function with @rollview.materialized_view.")
    return tuple(collected)


@contextmanager
def _collecting() -> Iterator[list[PythonDefinition]]:
    collected: list[PythonDefinition] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def _query(function: QueryFunction) -> str:
    query: object = function()
    if not isinstance(query, str):
        raise SqlError(
            f"The function '{function.__name__}' returns {type(query).__name__}, not SQL text.",
            hint="Return the view's query as a string.",
        )
    return query


def _identifier(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
