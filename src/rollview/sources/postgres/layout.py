"""What PostgreSQL's catalog says of the chosen tables, and what capture would miss there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, LiteralString

from rollview.core.names import double_quoted
from rollview.core.schema import Column, Constraints, Schema
from rollview.errors import Unsupported
from rollview.sources.postgres.values import is_known, spark_type
from rollview.sources.protocol import Finding, SourceTable, projected
from rollview.sources.settings import TableSettings

_TABLE: LiteralString = """
    SELECT c.oid, c.relkind::text, c.relreplident::text, c.relpersistence::text, c.relrowsecurity,
           has_table_privilege(c.oid, 'SELECT'), pg_has_role(c.relowner, 'USAGE'), c.relfilenode::bigint, c.relnatts
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s"""

_COLUMNS: LiteralString = """
    SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, t.typtype::text, t.typbasetype, t.typtypmod,
           format_type(a.atttypid, a.atttypmod), a.attgenerated::text, a.attnum, a.xmin::text,
           CASE WHEN a.atthasmissing THEN (a.attmissingval::text::text[])[1] END
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

_KEY: LiteralString = """
    SELECT a.attname FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY AS k(num, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
    WHERE i.indrelid = %s AND i.indisprimary AND k.place <= i.indnkeyatts ORDER BY k.place"""


@dataclass(frozen=True, slots=True)
class PgColumn:
    """``number`` is never used again in its table; ``version``: by which transaction it was last described;
    ``missing``: the constant that rows have which are older than the column."""

    name: str
    type_oid: int
    modifier: int
    not_null: bool
    category: str
    base: tuple[int, int] | None
    spelled: str
    generated: bool
    number: int
    version: str
    missing: str | None = None


@dataclass(frozen=True, slots=True)
class PgTable:
    """``file`` is another when all rows were written anew; ``last``: the highest number that a column has had."""

    schema: str
    name: str
    oid: int
    kind: str
    identity: str
    persistence: str
    has_row_security: bool
    may_read: bool
    is_owner: bool
    file: int
    last: int
    columns: tuple[PgColumn, ...]
    key: tuple[str, ...]


def split(remote: str) -> tuple[str, str]:
    """``schema.table``; without a schema, ``public``."""
    schema, _, name = remote.rpartition(".")
    return schema or "public", name


def full_name(remote: str) -> str:
    return ".".join(map(double_quoted, split(remote)))


def called_now(connection: Any, remote: str, oid: int) -> str | None:
    """The name of a table that may be called otherwise by now; None if it is gone, or has no name that can be said."""
    query = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %s"
    found = connection.execute(query, (oid,)).fetchone()
    if found is None:
        return None
    schema, name = found
    told = name if schema == "public" and "." not in remote else f"{schema}.{name}"
    return told if split(told) == (schema, name) else None


def read_table(connection: Any, remote: str) -> PgTable | None:
    schema, name = split(remote)
    found: Any = connection.execute(_TABLE, (schema, name)).fetchone()
    if found is None:
        return None
    columns = tuple(_pg_column(row) for row in connection.execute(_COLUMNS, (found[0],)))
    key = tuple(row[0] for row in connection.execute(_KEY, (found[0],)))
    oid, kind, identity, persistence, secured, may_read, is_owner, file, last = found
    about = (oid, kind, identity, persistence, secured, may_read, is_owner)
    return PgTable(schema, name, *about, file, last, columns, key)


def _pg_column(row: Any) -> PgColumn:
    name, oid, modifier, not_null, category, base, base_modifier, spelled, generated, *rest = row
    within = (base, base_modifier) if base else None
    return PgColumn(name, oid, modifier, not_null, category, within, spelled, bool(generated), *rest)


def findings(table: PgTable | None, settings: TableSettings) -> list[Finding]:
    remote, full = settings.remote, full_name(settings.remote)
    if table is None:
        return [Finding(f"there is no table '{remote}'")]
    found = []
    if table.kind != "r":
        found.append(Finding(f"'{remote}' is not an ordinary table"))
    elif table.persistence != "p":
        found.append(
            Finding(f"table '{remote}' is unlogged, so its changes are in no log", f"ALTER TABLE {full} SET LOGGED;")
        )
    elif table.identity != "f":
        what = f"table '{remote}' does not log whole old rows"
        found.append(Finding(what, f"ALTER TABLE {full} REPLICA IDENTITY FULL;"))
    if not table.may_read:
        found.append(Finding(f"table '{remote}' may not be read", f"GRANT SELECT ON {full} TO CURRENT_USER;"))
    if not table.is_owner:
        found.append(Finding(f"table '{remote}' can be published by its owner only"))
    if table.has_row_security:
        found.append(Finding(f"table '{remote}' has row security, so a copy may lack rows that the log has"))
    chosen = [column for column in table.columns if settings.takes(column.name)]
    found += [_unknown(remote, column) for column in chosen if _type(settings, column) is None]
    found += [_generated(remote, column) for column in chosen if column.generated]
    return found


def _unknown(remote: str, column: PgColumn) -> Finding:
    what = f"column '{column.name}' of table '{remote}' is {column.spelled}, which has no exact counterpart"
    return Finding(f"{what}; say its type in the source's settings, for example string or decimal(38,9)")


def _generated(remote: str, column: PgColumn) -> Finding:
    return Finding(
        f"column '{column.name}' of table '{remote}' is generated and not in the log; it is left out", blocks=False
    )


def described(table: PgTable, settings: TableSettings, *, lenient: bool = False) -> SourceTable:
    """``lenient``: without columns that have no type here."""
    chosen = (column for column in table.columns if not column.generated and settings.takes(column.name))
    lenient = lenient or settings.is_open
    known = (column for column in chosen if not lenient or _type(settings, column) is not None)
    columns = tuple(_column(column, settings) for column in known)
    required = tuple(c.name for c in table.columns if c.not_null and not c.generated)
    key = table.key if set(table.key) <= {column.name for column in columns} else ()
    return projected(SourceTable(settings.remote, Schema(columns), Constraints(key, (), required)), settings)


def _column(column: PgColumn, settings: TableSettings) -> Column:
    type_ = _type(settings, column)
    if type_ is None:
        raise Unsupported(f"Column '{column.name}' of table '{settings.remote}' is {column.spelled}.")
    return Column(column.name, type_)


def _type(settings: TableSettings, column: PgColumn) -> str | None:
    chosen = settings.types.get(column.name)
    if chosen is not None:
        return chosen if is_known(chosen) else None
    return spark_type(column.type_oid, column.modifier, column.category, column.base)
