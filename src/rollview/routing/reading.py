"""What Spark makes of an author's text, found out once for each text.

Law: a query is answered from views that it does not name only where Spark reads its text as it was read here; the
answer has the names and types that Spark gives to that text. Both follow from the text and the types of what it names,
because SQL means the same in every session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sqlglot import exp

from rollview.algebra.resolve import Known
from rollview.algebra.words import spelled
from rollview.catalog import Snapshot
from rollview.propagate.reading import misread, unseen
from rollview.relations import references
from rollview.relations.plans import known_as
from rollview.routing.question import Question

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

_MOST_KEPT = 1_000
_Key = tuple[str | None, tuple[Known, ...]]


@dataclass(frozen=True, slots=True)
class AuthorsColumns:
    """Of the text as Spark reads it."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]


_kept: WeakKeyDictionary[SparkSession, dict[_Key, AuthorsColumns | None]] = WeakKeyDictionary()


def authors_columns(spark: SparkSession, tree: exp.Query, snapshot: Snapshot, asked: Question) -> AuthorsColumns | None:
    """None where Spark reads the author's text otherwise than it was read here."""
    known = tuple(known_as(snapshot.get(one.name)) for one in asked.read.resolved.reads)
    text = spelled(tree)
    if text is None:
        return _analysed(spark, tree, snapshot, asked, known)
    kept, key = _kept.setdefault(spark, {}), (text, known)
    if key not in kept:
        if len(kept) >= _MOST_KEPT:
            kept.clear()
        kept[key] = _analysed(spark, tree, snapshot, asked, known)
    return kept[key]


def _analysed(
    spark: SparkSession, tree: exp.Query, snapshot: Snapshot, asked: Question, known: tuple[Known, ...]
) -> AuthorsColumns | None:
    """The text, analysed over tables of which only the types are known."""
    tables = unseen(spark, known)
    bare = tree.copy()
    for part in asked.above:
        bare.set(part, None)
    author: DataFrame = references.run(spark, bare, lambda name: tables[f"{snapshot.get(name).name}@rows"])
    if misread(asked.read, author, tables):
        return None
    return AuthorsColumns(tuple(author.columns), tuple(field.dataType for field in author.schema))
