"""What a relation looks like: columns in order with Spark's types, and the constraints a user declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rollview.core import names


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name and its type in Spark's spelling, for example ``decimal(12,2)``."""

    name: str
    type: str


SIGNED = (Column(names.COUNT, "bigint"), Column(names.CSN, "bigint"))
"""What a delta has beside the columns of its relation."""


@dataclass(frozen=True, slots=True)
class Schema:
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def find(self, name: str) -> Column | None:
        return next((column for column in self.columns if names.same(column.name, name)), None)

    def only(self, wanted: Iterable[str]) -> Schema:
        """The named columns that are here, in the order of the names."""
        return Schema(tuple(column for name in wanted if (column := self.find(name)) is not None))

    def to_json(self) -> list[list[str]]:
        return [[column.name, column.type] for column in self.columns]

    @classmethod
    def from_json(cls, data: list[list[str]]) -> Schema:
        return cls(tuple(Column(name, type_) for name, type_ in data))


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` here hold values of ``referenced`` (a key) of ``table``, or NULL."""

    columns: tuple[str, ...]
    table: str
    referenced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    primary_key: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    not_null: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        return ((self.primary_key,) if self.primary_key else ()) + self.unique

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
        )
