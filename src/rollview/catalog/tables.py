"""The catalog's tables.

Laws: the clock has one row, and the ledger one row per csn from behind the horizon on, without a hole; before it, only
the last row of each source and the last change of each relation are left. A relation that is dropped keeps its
row, for the ledger's sake, and loses its ``folded`` name, so the name is unique among living relations only. A lease
row is never deleted, so its token never goes back. A source's row holds the position up to which its units of work are
in the ledger. A captured table has one layout row for each layout it has had, from the csn of the first row read by it.
A column has an entry for each name and type it has had, which holds from csn ``since`` on and before ``until``.
A unit of work with parts from several sources has the first in the ledger and the others in ``part``. The identity has
one row: whose data the catalog describes, and how many steps it has ever begun. A running step that is past ``expires``
has given no sign of life for long. Every view has a row in ``definition`` for each definition it has had within reach,
from the csn on from which that holds; the relation's own row repeats the newest of which the view has rows. A
subscriber's position only grows, except by a resync, which changes its token.
A view has a row in ``place`` for each table of which its delta holds changes ahead of its mark, or has held them.
A reader's row is there before its snapshot is taken, and has ended, or is past ``expires``, when nobody reads by it.

All names start with ``rollview_``: the database may be shared with others.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

PREFIX = "rollview_"
VERSION_TABLE = f"{PREFIX}version"
HEAD = "0014"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(sa.types.TypeDecorator[datetime]):
    """A moment in UTC as whole microseconds: the same on every database, and exact."""

    impl = sa.BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> int | None:
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else _EPOCH + value * _MICROSECOND


class FreeText(sa.types.TypeDecorator[str]):
    """Text from outside. What a database cannot store (NUL, half a surrogate pair) is kept as a visible escape."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        if value is None:
            return None
        return value.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _relation_id(**options: Any) -> sa.Column[int]:
    return sa.Column("relation_id", sa.Integer, sa.ForeignKey(f"{PREFIX}relation.id"), **options)


clock = sa.Table(
    f"{PREFIX}clock",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("csn", sa.BigInteger, nullable=False),
    sa.Column("time", Instant, nullable=False),
    sa.Column("boot", sa.Text),
    sa.Column("uptime", sa.BigInteger),
    sa.Column("wall", Instant),
    sa.Column("accepted", Instant),
    sa.CheckConstraint("id = 1", name="one_row"),
)

horizon = sa.Table(
    f"{PREFIX}horizon",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("csn", sa.BigInteger, nullable=False),
    sa.Column("time", Instant, nullable=False),
    sa.CheckConstraint("id = 1", name="one_row"),
)

identity = sa.Table(
    f"{PREFIX}identity",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("warehouse", sa.Text, nullable=False),
    sa.Column("previous", sa.Text),
    sa.Column("begun", sa.BigInteger, nullable=False),
    sa.CheckConstraint("id = 1", name="one_row"),
)

relation = sa.Table(
    f"{PREFIX}relation",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded", sa.Text, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("columns", sa.JSON, nullable=False),
    sa.Column("constraints", sa.JSON, nullable=False),
    sa.Column("definition", sa.JSON(none_as_null=True)),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("created", sa.BigInteger, nullable=False),
    sa.Column("dropped", sa.BigInteger),
    sa.Column("coarse", sa.JSON, nullable=False),
    sa.Column("problem", FreeText),
    sa.Column("state", sa.Text),
    sa.Column("replaced", sa.JSON),
)

definition = sa.Table(
    f"{PREFIX}definition",
    metadata,
    _relation_id(primary_key=True),
    sa.Column("csn", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("definition", sa.JSON, nullable=False),
    sa.Column("columns", sa.JSON, nullable=False),
    sa.Column("reads", sa.JSON, nullable=False),
    sa.Column("why", FreeText, nullable=False),
    sa.Column("recorded", Instant, nullable=False),
    sa.Column("anew", sa.Boolean, nullable=False),
    sa.Column("pending", sa.Boolean, nullable=False),
    sa.Column("stored", sa.JSON(none_as_null=True)),
)

dependency = sa.Table(
    f"{PREFIX}dependency",
    metadata,
    _relation_id(primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("reads_id", sa.Integer, sa.ForeignKey(f"{PREFIX}relation.id"), nullable=False),
)

pin = sa.Table(
    f"{PREFIX}pin",
    metadata,
    _relation_id(primary_key=True),
    sa.Column("part", sa.Text, primary_key=True),
    sa.Column("version", sa.BigInteger, nullable=False),
    sa.Column("after", sa.BigInteger, nullable=False),
    sa.Column("through", sa.BigInteger, nullable=False),
    sa.Column("rows", sa.BigInteger, nullable=False),
)

place = sa.Table(
    f"{PREFIX}place",
    metadata,
    _relation_id(primary_key=True),
    sa.Column("reads_id", sa.Integer, sa.ForeignKey(f"{PREFIX}relation.id"), primary_key=True),
    sa.Column("csn", sa.BigInteger, nullable=False),
    sa.Column("moved", Instant, nullable=False),
    sa.Column("queries", sa.JSON(none_as_null=True)),
)

ledger = sa.Table(
    f"{PREFIX}ledger",
    metadata,
    sa.Column("csn", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("source", FreeText, nullable=False),
    sa.Column("position", FreeText, nullable=False),
    sa.Column("transaction", FreeText, nullable=False),
    sa.Column("source_time", Instant, nullable=False),
    sa.Column("ledger_time", Instant, nullable=False, unique=True),
    sa.Column("effective", Instant, nullable=False, server_default="0", index=True),
    sa.Column("global_id", FreeText),
)

part = sa.Table(
    f"{PREFIX}part",
    metadata,
    sa.Column("csn", sa.BigInteger, sa.ForeignKey(f"{PREFIX}ledger.csn"), primary_key=True),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("source", FreeText, nullable=False),
    sa.Column("position", FreeText, nullable=False),
    sa.Column("transaction", FreeText, nullable=False),
    sa.Column("source_time", Instant, nullable=False),
)

change = sa.Table(
    f"{PREFIX}change",
    metadata,
    _relation_id(primary_key=True),
    sa.Column("csn", sa.BigInteger, sa.ForeignKey(f"{PREFIX}ledger.csn"), primary_key=True, index=True),
    sa.Column("inserted", sa.BigInteger, nullable=False),
    sa.Column("deleted", sa.BigInteger, nullable=False),
    sa.Column("updated", sa.BigInteger),
)

step = sa.Table(
    f"{PREFIX}step",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _relation_id(index=True),
    sa.Column("relation", FreeText, nullable=False),
    sa.Column("folded", FreeText, nullable=False, index=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("after", sa.BigInteger, nullable=False),
    sa.Column("through", sa.BigInteger, nullable=False),
    sa.Column("status", sa.Text, nullable=False, index=True),
    sa.Column("started", Instant, nullable=False),
    sa.Column("finished", Instant),
    sa.Column("owner", FreeText, nullable=False),
    sa.Column("folders", sa.JSON, nullable=False),
    sa.Column("profile", sa.JSON, nullable=False),
    sa.Column("tokens", sa.JSON),
    sa.Column("expires", Instant),
)

lease = sa.Table(
    f"{PREFIX}lease",
    metadata,
    sa.Column("thing", FreeText, primary_key=True),
    sa.Column("token", sa.BigInteger, nullable=False),
    sa.Column("holder", sa.Text),
    sa.Column("owner", FreeText, nullable=False),
    sa.Column("machine", FreeText, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("pid_started", sa.Text, nullable=False),
    sa.Column("acquired", Instant, nullable=False),
    sa.Column("expires", Instant, nullable=False),
    sa.Column("waiting", sa.JSON(none_as_null=True)),
)

source = sa.Table(
    f"{PREFIX}source",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded", sa.Text, nullable=False, unique=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("position", FreeText),
    sa.Column("memory", sa.JSON, nullable=False),
    sa.Column("problem", FreeText),
    sa.Column("read", Instant),
    sa.Column("known", Instant),
    sa.Column("latest", Instant),
    sa.Column("health", sa.JSON(none_as_null=True)),
)

source_table = sa.Table(
    f"{PREFIX}source_table",
    metadata,
    _relation_id(primary_key=True),
    sa.Column("source_id", sa.Integer, sa.ForeignKey(f"{PREFIX}source.id"), nullable=False, index=True),
    sa.Column("remote", FreeText, nullable=False),
)

layout = sa.Table(
    f"{PREFIX}layout",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _relation_id(nullable=False, index=True),
    sa.Column("csn", sa.BigInteger, nullable=False),
    sa.Column("position", FreeText, nullable=False),
    sa.Column("columns", sa.JSON, nullable=False),
    sa.Column("reason", FreeText, nullable=False),
)

column = sa.Table(
    f"{PREFIX}column",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _relation_id(nullable=False, index=True),
    sa.Column("relation", FreeText, nullable=False),
    sa.Column("column_id", sa.Integer, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("name", FreeText, nullable=False),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("described", sa.JSON, nullable=False),
    sa.Column("since", sa.BigInteger, nullable=False),
    sa.Column("until", sa.BigInteger),
    sa.Column("new_relation", FreeText),
    sa.Column("new_name", FreeText),
    sa.Column("reason", FreeText),
    sa.Column("ended", FreeText),
)

quarantine = sa.Table(
    f"{PREFIX}quarantine",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    _relation_id(nullable=False, index=True),
    sa.Column("source", FreeText, nullable=False),
    sa.Column("position", FreeText, nullable=False),
    sa.Column("column", FreeText, nullable=False),
    sa.Column("reason", FreeText, nullable=False),
    sa.Column("row", FreeText, nullable=False),
    sa.Column("count", sa.BigInteger, nullable=False),
    sa.Column("taken", Instant, nullable=False),
)

held = sa.Table(
    f"{PREFIX}held",
    metadata,
    sa.Column("source_id", sa.Integer, sa.ForeignKey(f"{PREFIX}source.id"), primary_key=True),
    sa.Column("global_id", FreeText, nullable=False),
    sa.Column("position", FreeText, nullable=False),
    sa.Column("since", Instant, nullable=False),
    sa.Column("missing", sa.JSON, nullable=False),
)

decision = sa.Table(
    f"{PREFIX}decision",
    metadata,
    sa.Column("global_id", FreeText, primary_key=True),
    sa.Column("choice", sa.Text, nullable=False),
    sa.Column("owner", FreeText, nullable=False),
    sa.Column("made", Instant, nullable=False),
)

reader = sa.Table(
    f"{PREFIX}reader",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("csn", sa.BigInteger, nullable=False),
    sa.Column("ways", sa.JSON, nullable=False),
    sa.Column("relations", sa.JSON, nullable=False),
    sa.Column("expected", sa.Float, nullable=False),
    sa.Column("taken", sa.Float),
    sa.Column("owner", FreeText, nullable=False),
    sa.Column("machine", FreeText, nullable=False),
    sa.Column("pid", sa.BigInteger, nullable=False),
    sa.Column("pid_started", sa.Text, nullable=False),
    sa.Column("begun", Instant, nullable=False),
    sa.Column("expires", Instant, nullable=False),
    sa.Column("ended", Instant),
)

subscriber = sa.Table(
    f"{PREFIX}subscriber",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("folded", sa.Text, nullable=False, unique=True),
    _relation_id(nullable=False, index=True),
    sa.Column("warehouse", sa.Text, nullable=False),
    sa.Column("folder", sa.Text, nullable=False),
    sa.Column("columns", sa.JSON, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),
    sa.Column("full", sa.Boolean, nullable=False),
    sa.Column("offered", sa.BigInteger),
    sa.Column("sink", FreeText),
    sa.Column("added", Instant, nullable=False),
    sa.Column("moved", Instant),
    sa.Column("problem", FreeText),
)

version = sa.Table(VERSION_TABLE, sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))
