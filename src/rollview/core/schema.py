"""What a relation looks like: columns in order with Spark's types, and the constraints a user declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from rollview.core import names


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and its type in Spark's spelling, for example ``decimal(12,2)``.

    ``place``: its name in files, fixed when it was born; None: that of its name. ``late``: files may be older than the
    column or its type; rows in a file without it have the constant ``fill``, told as text. ``default``: the same for
    rows that are inserted without a value.
    """

    name: str
    type: str
    place: str | None = None
    late: bool = False
    fill: str | None = None
    default: str | None = None

    @property
    def stored(self) -> str:
        """Its name in files. No two columns that a relation ever had share one."""
        return names.physical(self.name) if self.place is None else self.place

    def to_json(self) -> list[Any]:
        told = {"place": self.place, "late": self.late or None, "fill": self.fill, "default": self.default}
        changed = {name: value for name, value in told.items() if value is not None}
        return [self.name, self.type, *([changed] if changed else [])]

    @classmethod
    def from_json(cls, data: list[Any]) -> Column:
        name, type_, *changed = data
        return cls(name, type_, **(changed[0] if changed else {}))


SIGNED = (Column(names.COUNT, "bigint"), Column(names.CSN, "bigint"))
"""What a delta has beside the columns of its relation."""


@dataclass(frozen=True, slots=True)
class Schema:
    columns: tuple[Column, ...]

    def __hash__(self) -> int:
        # Schemas are looked up often, and seldom differ in types alone.
        return hash(self.names)

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        return next((column for column in self.columns if names.same(column.name, name)), None)

    def has(self, column: Column) -> bool:
        """Whether there is a column of exactly this name and type, however it is stored."""
        return any((one.name, one.type) == (column.name, column.type) for one in self.columns)

    def only(self, wanted: Iterable[str]) -> Schema:
        """The named columns that are here, in the order of the names."""
        return Schema(tuple(column for name in wanted if (column := self.find(name)) is not None))

    def looks_like(self, other: Schema) -> bool:
        """Whether the columns are called the same, of the same types and in the same order, however they are stored."""
        return [(one.name, one.type) for one in self] == [(one.name, one.type) for one in other]

    def stored(self, name: str) -> str:
        """What the column is called in files."""
        column = self.find(name)
        return names.physical(name) if column is None else column.stored

    def to_json(self) -> list[list[Any]]:
        return [column.to_json() for column in self.columns]

    @classmethod
    def from_json(cls, data: list[list[Any]]) -> Schema:
        return cls(tuple(map(Column.from_json, data)))


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` here hold values of ``referenced`` (a key) of ``table``, or NULL."""

    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]


class RuleKind(StrEnum):
    PRIMARY_KEY = "primary key"
    UNIQUE = "unique"
    NOT_NULL = "not null"
    FOREIGN_KEY = "foreign key"


@dataclass(frozen=True, slots=True)
class AddedRule:
    """A constraint that was declared when rows were there already. ``table`` and ``referenced``: of a foreign key."""

    name: str
    kind: RuleKind
    columns: tuple[str, ...]
    table: str = ""
    referenced: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Constraints:
    """What holds at every csn; ``added``: what holds since later, which only writers go by."""

    primary_key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    not_null: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    added: tuple[AddedRule, ...] = ()

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        return ((self.primary_key,) if self.primary_key else ()) + self.unique

    @property
    def checked(self) -> Constraints:
        """All that a commit has to keep."""
        if not self.added:
            return self

        def of(kind: RuleKind) -> tuple[AddedRule, ...]:
            return tuple(rule for rule in self.added if rule.kind is kind)

        primary = next((rule.columns for rule in of(RuleKind.PRIMARY_KEY)), self.primary_key)
        required = (name for rule in self.added if rule.kind is RuleKind.NOT_NULL for name in rule.columns)
        references = (ForeignKey(rule.columns, rule.table, rule.referenced) for rule in of(RuleKind.FOREIGN_KEY))
        return Constraints(
            primary,
            (*self.unique, *(rule.columns for rule in of(RuleKind.UNIQUE))),
            tuple(dict.fromkeys((*self.not_null, *required, *primary))),
            (*self.foreign_keys, *references),
        )

    def renamed(self, called: Mapping[str, str]) -> Constraints:
        """The same with other names of the table's own columns."""

        def of(columns: Iterable[str]) -> tuple[str, ...]:
            return tuple(called.get(name, name) for name in columns)

        return Constraints(
            of(self.primary_key),
            tuple(map(of, self.unique)),
            of(self.not_null),
            tuple(replace(key, columns=of(key.columns)) for key in self.foreign_keys),
            tuple(replace(rule, columns=of(rule.columns)) for rule in self.added),
        )

    def referring(self, table: str, name: str, called: Mapping[str, str]) -> Constraints:
        """The same where the table that foreign keys refer to, or columns of it, have other names now."""

        def now(key: ForeignKey) -> ForeignKey:
            if not names.same(key.table, table):
                return key
            return replace(key, table=name, referenced=tuple(called.get(one, one) for one in key.referenced))

        def rule_now(rule: AddedRule) -> AddedRule:
            key = now(ForeignKey(rule.columns, rule.table, rule.referenced))
            return replace(rule, table=key.table, referenced=key.referenced)

        keys, added = tuple(map(now, self.foreign_keys)), tuple(map(rule_now, self.added))
        return replace(self, foreign_keys=keys, added=added)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Constraints:
        return cls(
            primary_key=tuple(data["primary_key"]),
            unique=tuple(tuple(columns) for columns in data["unique"]),
            not_null=tuple(data["not_null"]),
            foreign_keys=tuple(
                ForeignKey(tuple(fk["columns"]), fk["table"], tuple(fk["referenced"])) for fk in data["foreign_keys"]
            ),
            added=tuple(
                AddedRule(
                    rule["name"],
                    RuleKind(rule["kind"]),
                    tuple(rule["columns"]),
                    rule["table"],
                    tuple(rule["referenced"]),
                )
                for rule in data.get("added", ())
            ),
        )
