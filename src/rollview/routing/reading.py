"""What Spark makes of an author's text, found out once for all texts that differ in values only.

Law: a query is answered from views that it does not name only where Spark reads its text as it was read here; the
answer has the names and types that Spark gives to that text. Both follow from the text and the types of what it names,
because SQL means the same in every session. Where Spark reads a text with unknowns in place of values as it is read
here, it reads every text so that has values there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sqlglot import exp

from rollview.algebra.resolve import Known
from rollview.algebra.text import parse_one, render
from rollview.algebra.view import our_reading
from rollview.algebra.words import forget, spelled
from rollview.catalog import Snapshot
from rollview.core.lazy import lazy_module
from rollview.propagate.reading import is_read_alike, unseen
from rollview.relations import references
from rollview.relations.plans import known_as
from rollview.routing.lifted import LiftedText, lift
from rollview.routing.question import Question

if TYPE_CHECKING:
    from pyspark import errors as spark_errors
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType
else:
    spark_errors = lazy_module("pyspark.errors")

_MOST_KEPT = 1_000
_Key = tuple[Any, str, tuple[Known, ...]]
"""A text or the shape of one, how it is read here, and what it names."""


@dataclass(frozen=True, slots=True)
class AuthorsColumns:
    """Of the text as Spark reads it."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]


_kept: WeakKeyDictionary[SparkSession, dict[_Key, AuthorsColumns | None]] = WeakKeyDictionary()


def authors_columns(spark: SparkSession, tree: exp.Query, snapshot: Snapshot, asked: Question) -> AuthorsColumns | None:
    """None where Spark reads the author's text otherwise than it was read here."""
    return _AuthorsReading(spark, snapshot, asked).of(tree)


@dataclass(frozen=True, slots=True)
class _AuthorsReading:
    spark: SparkSession
    snapshot: Snapshot
    asked: Question

    def of(self, tree: exp.Query) -> AuthorsColumns | None:
        text, ours = spelled(tree), our_reading(self.asked.read.resolved)
        if text is None:
            return self._analysed(tree, ours)
        lifted = lift(text)
        if lifted is not None:
            ours_lifted = lifted.without_values(ours)
            found = self._kept(lifted.shape, ours_lifted, lambda: self._analysed_lifted(lifted, ours_lifted))
            if found is not None:
                return found
        return self._kept(text, ours, lambda: self._analysed(tree, ours))

    def _kept(self, about: Any, ours: exp.Query, analyse: Callable[[], AuthorsColumns | None]) -> AuthorsColumns | None:
        kept, key = _kept.setdefault(self.spark, {}), (about, render(ours), self._known)
        if key not in kept:
            if len(kept) >= _MOST_KEPT:
                kept.clear()
            kept[key] = analyse()
        return kept[key]

    @property
    def _known(self) -> tuple[Known, ...]:
        return tuple(known_as(self.snapshot.get(one.name)) for one in self.asked.read.resolved.reads)

    def _analysed_lifted(self, lifted: LiftedText, ours: exp.Query) -> AuthorsColumns | None:
        try:
            return self._analysed(parse_one(lifted.text), ours)
        except spark_errors.AnalysisException:
            # What is wrong with it is told of the author's own text.
            return None

    def _analysed(self, tree: exp.Expr, ours: exp.Query) -> AuthorsColumns | None:
        """The text, analysed over tables of which only the types are known."""
        tables = unseen(self.spark, self._known)
        bare = tree.copy()
        # Else it is still told in all of its author's words.
        forget(bare)
        for part in self.asked.above:
            bare.set(part, None)
        author: DataFrame = references.run(
            self.spark, bare, lambda name: tables[f"{self.snapshot.get(name).name}@rows"]
        )
        if not is_read_alike(author, ours, tables):
            return None
        return AuthorsColumns(tuple(author.columns), tuple(field.dataType for field in author.schema))
