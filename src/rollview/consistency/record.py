"""Histories as JSON, for ``rollview lab check``.

Law: reading what was written gives the same history; what cannot be a history is refused with the place of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rollview.consistency.bags import Bag, Row, bag, listed
from rollview.consistency.history import History, HistoryUnit, PublishedVersion, Update
from rollview.consistency.join_view import COMPARES, Comparison, JoinView, Occurrence
from rollview.errors import UsageError

_HINT = "See the form in docs/lab.md, or have one written: rollview lab run strobe-5 --history FILE."


def write_history(history: History) -> str:
    view = history.view
    told = {
        "view": {
            "tables": [
                {"name": o.name, "columns": o.columns, "key": o.key, "source": o.source, "table": o.table}
                for o in view.occurrences
            ],
            "shown": view.shown,
            "where": [[one.column, one.sign, one.value] for one in view.where],
        },
        "initial": {table: listed(rows) for table, rows in sorted(history.initial.items())},
        "units": [_unit(unit) for unit in history.units],
        "versions": [_version(version) for version in history.versions],
        "at_rest": history.at_rest,
    }
    return json.dumps(told, ensure_ascii=False, indent=1) + "\n"


def read_history(text: str) -> History:
    try:
        told = json.loads(text)
        return _history(told)
    except json.JSONDecodeError as cause:
        raise UsageError(f"This is no JSON: {cause}.", hint=_HINT) from None
    except (KeyError, TypeError, ValueError, AttributeError) as cause:
        what = f"'{cause.args[0]}' is missing" if isinstance(cause, KeyError) else str(cause)
        raise UsageError(f"This is no history: {what}.", hint=_HINT) from None


def _history(told: Mapping[str, Any]) -> History:
    view = _view(told["view"])
    tables = {one.table: one for one in view.occurrences}
    initial = {table: _rows(tables, table, rows) for table, rows in told.get("initial", {}).items()}
    units = tuple(_read_unit(tables, one) for one in told["units"])
    parts = [(unit.transaction, unit.source) for unit in units if unit.transaction is not None]
    if len(set(parts)) != len(parts):
        raise ValueError("a global transaction has two units at one source")
    versions = tuple(_read_version(one, len(view.shown)) for one in told["versions"])
    if not versions:
        raise ValueError("there are no versions")
    return History(view, initial, units, versions, bool(told.get("at_rest", True)))


def _view(told: Mapping[str, Any]) -> JoinView:
    occurrences = tuple(
        Occurrence(
            str(one["name"]),
            tuple(map(str, one["columns"])),
            tuple(map(str, one.get("key", ()))),
            str(one["source"]),
            str(one.get("table", one["name"])),
        )
        for one in told["tables"]
    )
    where = tuple(Comparison(str(column), str(sign), value) for column, sign, value in told.get("where", ()))
    known = {column for one in occurrences for column in one.columns}
    shown = tuple(map(str, told["shown"]))
    unknown = ({*shown} | {one.column for one in where}) - known
    if unknown:
        raise ValueError(f"the view has no column {', '.join(sorted(unknown))}")
    strange = {one.sign for one in where} - COMPARES.keys()
    if strange:
        raise ValueError(f"{', '.join(sorted(strange))} is no comparison")
    return JoinView(occurrences, shown, where)


def _rows(tables: Mapping[str, Occurrence], table: str, rows: Any) -> Bag:
    return bag(_row(tables, table, row) for row in rows)


def _row(tables: Mapping[str, Occurrence], table: str, row: Any) -> Row:
    if table not in tables:
        raise ValueError(f"the view has no table '{table}'")
    if len(row) != len(tables[table].columns):
        raise ValueError(f"{row} is no row of table '{table}'")
    return _values(row)


def _values(row: Any) -> Row:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


def _unit(unit: HistoryUnit) -> dict[str, Any]:
    changes = [[one.table, "+" if one.count > 0 else "-", list(one.row)] for one in unit.updates]
    told: dict[str, Any] = {"source": unit.source, "changes": changes}
    told |= {"transaction": unit.transaction} if unit.transaction is not None else {}
    return told | ({"csn": unit.csn} if unit.csn is not None else {})


def _read_unit(tables: Mapping[str, Occurrence], told: Mapping[str, Any]) -> HistoryUnit:
    source = str(told["source"])
    updates = tuple(_update(tables, source, *change) for change in told["changes"])
    transaction = told.get("transaction")
    return HistoryUnit(source, updates, None if transaction is None else str(transaction), told.get("csn"))


def _update(tables: Mapping[str, Occurrence], source: str, table: str, sign: str, row: Any) -> Update:
    found = _row(tables, table, row)
    if tables[table].source != source:
        raise ValueError(f"table '{table}' is not at source '{source}'")
    if sign not in ("+", "-"):
        raise ValueError(f"a change is + or -, not {sign!r}")
    return Update(table, found, 1 if sign == "+" else -1)


def _version(version: PublishedVersion) -> dict[str, Any]:
    told: dict[str, Any] = {"rows": listed(version.rows)}
    if isinstance(version.through, int):
        told["csn"] = version.through
    elif version.through is not None:
        told["through"] = dict(version.through)
    return told


def _read_version(told: Mapping[str, Any], width: int) -> PublishedVersion:
    rows = [_values(row) for row in told["rows"]]
    wrong = next((row for row in rows if len(row) != width), None)
    if wrong is not None:
        raise ValueError(f"{list(wrong)} is no row of the view")
    through = told.get("through", told.get("csn"))
    return PublishedVersion(bag(rows), through)
