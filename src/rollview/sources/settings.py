"""What a user says of a source: its kind, where it is, which tables, and what their values are to become.

Law: settings hold references to secrets, never secrets, so they can be stored and shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from rollview.core.durations import duration
from rollview.core.names import same
from rollview.core.references import anchored, holds_secret, is_literal_secret, is_reference
from rollview.errors import UsageError

ON_BAD_VALUE = "on_bad_value"
IN_PLACE = "in_place"
ALLOW_OUTSIDE = "allow_outside"
OPEN_ALARM = "open_alarm"
SPOOL_LIMIT = "spool_limit"
TIMEOUT = "timeout"
NEW_COLUMNS = "new_columns"
ASKING = {"ask_keys": 1_000, "ask_rows": 100_000, "ask_seconds": 30, "asks_per_minute": 600}
"""Options that bound how a source is asked, and what they are where nothing is said."""
_TIMEOUT = "5 minutes"

_CHANGEABLE = (
    SPOOL_LIMIT,
    OPEN_ALARM,
    ALLOW_OUTSIDE,
    ON_BAD_VALUE,
    "log_alarm",
    "settle_seconds",
    "confirm_empty_seconds",
    NEW_COLUMNS,
    *ASKING,
)
_KAFKA = "kafka."
_OPEN_ALARM = "15 minutes"
_SPOOL_LIMIT = "50 GB"
_SIZE = re.compile(r"(\d+)\s*([KMGT]?)i?B?", re.IGNORECASE)
_WHOLE = ("files", "debezium")
_FILES = ("sqlite", "files", "delta", "debezium")
_ANSWERING = ("mariadb", "postgres", "sqlite")
"""Kinds that give rows by keys, and tell which commits they saw."""


class NewColumns(StrEnum):
    """What becomes of a file whose columns are not those of its table."""

    TAKE = "take"
    """Columns are known by their names, and new ones are taken."""
    IGNORE = "ignore"
    """Columns are known by their names, and new ones are left out."""
    STOP = "stop"
    """It stops the source."""


class OnBadValue(StrEnum):
    """What becomes of a row that has no representation."""

    STOP = "stop"
    """It stops the source."""
    QUARANTINE = "quarantine"
    """It is put aside."""


@dataclass(frozen=True, slots=True)
class TableSettings:
    """``remote`` is the table's name at the source. ``types``: Spark types that columns are to have; ``key``: columns
    that are unique, where the source cannot tell; ``columns``: those that are captured, all if it is empty; ``rows``: a
    condition that captured rows fulfil, all if it is empty. ``needed``: both are what views need, and grow with it.
    ``asked``: and no rows are copied; the source is asked for those that a refresh needs."""

    relation: str
    remote: str
    types: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    format: str | None = None
    columns: tuple[str, ...] = ()
    rows: str = ""
    needed: bool = False
    asked: bool = False

    @property
    def is_open(self) -> bool:
        """Whether nothing was said yet of the columns that views need; one that has no type here is none of them."""
        return self.needed and not self.columns

    @property
    def follows_names(self) -> bool:
        """Whether a column is still the same one under another name. A source is asked by the names that views know."""
        return not self.asked

    @property
    def takes_new(self) -> bool:
        """Whether columns are captured that the table gets later."""
        return not self.columns and not self.needed

    def takes(self, column: str) -> bool:
        return not self.columns or any(same(column, name) for name in self.columns)


@dataclass(frozen=True, slots=True)
class AskLimits:
    """Keys and rows of one ask, seconds of one statement, and asks within a minute."""

    keys: int
    rows: int
    seconds: int
    per_minute: int


@dataclass(frozen=True, slots=True)
class GlobalSettings:
    """Transactions that several sources have parts of. Their ids come from the source's own two-phase commits, or from
    a captured table into which the application puts a row in each part: ``id`` and ``parts`` are columns of it, the
    second a number of parts or the names of the sources. ``sources`` take part where no row says who does. ``limit``:
    how long a part may wait before somebody should decide."""

    table: str | None = None
    id: str | None = None
    parts: str | None = None
    sources: tuple[str, ...] = ()
    limit: str = "10 minutes"

    def __post_init__(self) -> None:
        duration(self.limit)
        if (self.table is None) != (self.id is None) or (self.parts is not None and self.table is None):
            raise UsageError("A table of global transactions needs the column of the id.", hint="Name table and id.")
        if not self.sources and self.parts is None:
            raise UsageError(
                "Nothing says which sources take part in a global transaction.",
                hint="Name the column that tells its parts, or the sources.",
            )


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """A source of a ``kind`` (``postgres``, ``mariadb``, ``mysql``, ``sqlite``, ``delta``, ``files``, ``debezium``) at
    an ``address``: a URL as ``env:NAME`` or ``file:PATH``, or a path. ``options`` are what the kind understands."""

    kind: str
    address: str
    tables: tuple[TableSettings, ...]
    options: Mapping[str, str] = field(default_factory=dict)
    global_transactions: GlobalSettings | None = None

    def __post_init__(self) -> None:
        self._refuse_secrets()
        self._refuse_options()
        self._refuse_tables()

    def _refuse_secrets(self) -> None:
        if holds_secret(self.address):
            raise UsageError(
                "A password does not belong in a source's settings.",
                hint="Put the address into the environment and write env:NAME, or into a file and write file:PATH.",
            )
        for option, value in self.options.items():
            if is_literal_secret(option, value):
                raise UsageError(
                    f"The secret '{option}' does not belong in a source's settings.",
                    hint="Put it into the environment and write env:NAME, or into a file and write file:PATH.",
                )

    def _refuse_options(self) -> None:
        if self.timeout <= 0:
            raise UsageError(f"{TIMEOUT} is '{self.options[TIMEOUT]}'.", hint="Write for example '5 minutes'.")
        if self.options.get(ON_BAD_VALUE, OnBadValue.STOP) not in list(OnBadValue):
            raise UsageError(f"{ON_BAD_VALUE} is '{self.options[ON_BAD_VALUE]}'.", hint="It is stop or quarantine.")
        if self.options.get(NEW_COLUMNS, NewColumns.STOP) not in list(NewColumns):
            raise UsageError(f"{NEW_COLUMNS} is '{self.options[NEW_COLUMNS]}'.", hint="It is take, ignore or stop.")
        for option in (IN_PLACE, ALLOW_OUTSIDE):
            if self.options.get(option, "true") not in ("true", "false"):
                raise UsageError(f"{option} is '{self.options[option]}'.", hint="It is true or false.")
        for option in ASKING:
            if not (said := self.options.get(option, "1")).isdecimal() or int(said) < 1:
                raise UsageError(f"{option} is '{said}'.", hint="It is a whole number of at least 1.")
        # In two statements a source that ignores case would give one row for both spellings of a key.
        if self.asking.keys > ASKING["ask_keys"]:
            raise UsageError(f"ask_keys is '{self.asking.keys}'.", hint=f"It is at most {ASKING['ask_keys']}.")
        duration(self.options.get(OPEN_ALARM, _OPEN_ALARM))
        size(self.options.get(SPOOL_LIMIT, _SPOOL_LIMIT))

    def _refuse_tables(self) -> None:
        if not self.tables:
            raise UsageError("The source has no tables.", hint="Name at least one.")
        if self.kind in _WHOLE and any(table.needed or table.columns for table in self.tables):
            raise UsageError(
                f"Of a source of kind '{self.kind}' all columns are captured that its settings name.",
                hint="Leave out columns and copy; rows can be said.",
            )
        unasked = [table for table in self.tables if table.asked and self.kind not in _ANSWERING]
        if unasked:
            raise UsageError(
                f"Table '{unasked[0].remote}' has to be copied: a source of kind '{self.kind}' cannot be asked for "
                "rows as of a known commit.",
                hint=f"Say copy: needed or copy: all. Kinds that can be asked: {', '.join(_ANSWERING)}.",
            )
        marker = self.global_transactions and self.global_transactions.table
        if marker and marker not in self.remotes:
            raise UsageError(f"Table '{marker}' of global transactions is not captured.", hint="Add it to the tables.")
        for place, table in enumerate(self.tables):
            if any(same(table.relation, other.relation) for other in self.tables[:place]):
                raise UsageError(
                    f"Two tables would be called '{table.relation}'.", hint="Give one of them another name: NAME=TABLE."
                )

    @property
    def quarantines(self) -> bool:
        """Whether a row that has no representation is put aside rather than stopping the source."""
        return self.options.get(ON_BAD_VALUE) == OnBadValue.QUARANTINE

    @property
    def timeout(self) -> float:
        """So many seconds may a server give nothing while it is asked something."""
        return duration(self.options.get(TIMEOUT, _TIMEOUT)).total_seconds()

    @property
    def asking(self) -> AskLimits:
        return AskLimits(*(int(self.options.get(option, most)) for option, most in ASKING.items()))

    @property
    def copies(self) -> bool:
        """Whether tables are copied that could be read where they are."""
        return self.options.get(IN_PLACE, "true") == "false"

    @property
    def allows_outside(self) -> bool:
        """Whether files are read that lie outside of the source's folder."""
        return self.options.get(ALLOW_OUTSIDE, "false") == "true"

    def changes_options(self, before: SourceSettings) -> bool:
        """Whether options differ, and only such as change nothing of what rows mean or in which order they are read."""
        keys = {*self.options, *before.options}
        changed = [key for key in keys if self.options.get(key) != before.options.get(key)]
        return bool(changed) and all(key in _CHANGEABLE or key.startswith(_KAFKA) for key in changed)

    @property
    def open_alarm(self) -> timedelta:
        """How long a transaction may be open before somebody should look at it."""
        return duration(self.options.get(OPEN_ALARM, _OPEN_ALARM))

    @property
    def spool_limit(self) -> int:
        """Bytes of rows that may be on disk while the source is captured."""
        return size(self.options.get(SPOOL_LIMIT, _SPOOL_LIMIT))

    def called(self, remote: str, new: str) -> SourceSettings:
        """The same where a table has another name at the source."""
        tables = tuple(replace(one, remote=new) if one.remote == remote else one for one in self.tables)
        marks = self.global_transactions
        if marks is not None and marks.table == remote:
            marks = replace(marks, table=new)
        return replace(self, tables=tables, global_transactions=marks)

    def table(self, remote: str) -> TableSettings:
        return next(table for table in self.tables if table.remote == remote)

    @property
    def remotes(self) -> tuple[str, ...]:
        return tuple(table.remote for table in self.tables)

    def anchored(self, folder: Path) -> SourceSettings:
        """The same settings, understood from anywhere: paths are meant from ``folder``."""
        if is_reference(self.address):
            return replace(self, address=anchored(self.address, folder))
        if self.kind in _FILES and "://" not in self.address:
            return replace(self, address=str((folder / Path(self.address).expanduser()).absolute()))
        return self

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        if self.global_transactions is None:
            del plain["global_transactions"]
        return plain

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SourceSettings:
        tables = tuple(
            TableSettings(**{**table, "key": tuple(table["key"]), "columns": tuple(table.get("columns", ()))})
            for table in data["tables"]
        )
        told = data.get("global_transactions")
        together = None if told is None else GlobalSettings(**{**told, "sources": tuple(told["sources"])})
        return cls(data["kind"], data["address"], tables, data["options"], together)


def size(text: str) -> int:
    """``500 MB`` in bytes."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a size.", hint="Write for example '500 MB' or '10 GB'.")
    return int(found[1]) << 10 * ("", "k", "m", "g", "t").index(found[2].lower())


def table_named(text: str) -> TableSettings:
    """``TABLE``, or ``NAME=TABLE`` where the table is to have another name here."""
    relation, given, remote = text.partition("=")
    if not given:
        return TableSettings(text.rpartition(".")[2], text)
    return TableSettings(relation, remote)
