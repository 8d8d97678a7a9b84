"""Settings of a source whose table calls columns otherwise.

Law: what a user has said of a column is said of it under its new name as well: which columns and rows are captured,
what is a key, and which type a column has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from rollview.algebra.text import parse_one, render
from rollview.core.names import same
from rollview.sources.settings import SourceSettings, TableSettings


def renamed_settings(settings: SourceSettings, remote: str, called: Mapping[str, str]) -> SourceSettings:
    """``called``: new names of columns of the table ``remote``, by the old ones."""
    tables = tuple(renamed_table(one, called) if one.remote == remote else one for one in settings.tables)
    marks = settings.global_transactions
    if marks is not None and marks.table == remote:
        names = (None if name is None else _now(name, called) for name in (marks.id, marks.parts))
        marks = replace(marks, id=next(names), parts=next(names))
    return replace(settings, tables=tables, global_transactions=marks)


def renamed_table(table: TableSettings, called: Mapping[str, str]) -> TableSettings:
    return replace(
        table,
        types=_types(table.types, called),
        key=_names(table.key, called),
        columns=_names(table.columns, called),
        rows=_condition(table.rows, called),
    )


def _names(names: Iterable[str], called: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_now(name, called) for name in names))


def _types(types: Mapping[str, str], called: Mapping[str, str]) -> dict[str, str]:
    """Without that of a column that is gone, or was not captured, and whose name another one has now."""
    taken = [new for new in called.values() if not any(same(new, old) for old in called)]
    kept = {name: type_ for name, type_ in types.items() if not any(same(name, new) for new in taken)}
    return {_now(name, called): type_ for name, type_ in kept.items()}


def _condition(text: str, called: Mapping[str, str]) -> str:
    """As it was written where it names none of the columns."""
    tree = parse_one(text) if text else None
    named = [] if tree is None else [one for one in tree.find_all(exp.Column) if _now(one.name, called) != one.name]
    if tree is None or not named:
        return text
    for column in named:
        column.set("this", exp.to_identifier(_now(column.name, called), quoted=True))
    return render(tree)


def _now(name: str, called: Mapping[str, str]) -> str:
    return next((new for old, new in called.items() if same(old, name)), name)
