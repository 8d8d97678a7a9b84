"""Running a sqlglot query over DataFrames that stand for the tables it names.

Law: a name from outside is an identifier of the tree or a DataFrame; it never becomes text of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlglot import exp

from rollview.algebra.text import render
from rollview.algebra.words import Words
from rollview.core.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query's text with a place for each table that a DataFrame stands for: names by place.

    ``columns``: those of a table that the text may see, where it may not see all. ``outputs``: names of the result.
    """

    text: str
    places: Mapping[str, str]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    outputs: tuple[str, ...] | None = None

    def run(self, spark: SparkSession, inputs: Mapping[str, DataFrame]) -> DataFrame:
        frames = {place: self._seen(name, inputs[name]) for place, name in self.places.items()}
        found = spark.sql(self.text, **frames)  # type: ignore[arg-type]
        return found if self.outputs is None else found.toDF(*self.outputs)

    def _seen(self, name: str, data: DataFrame) -> DataFrame:
        listed = self.columns.get(name)
        return data if listed is None else data.select(*(quoted(column) for column in listed))


def prepare(query: exp.Expr, names: Collection[str]) -> Prepared:
    """``names``: the exact names, in the tree, of the tables that DataFrames stand for."""
    stem, bound = new_place(), query.copy()
    places: dict[str, str] = {}
    for table in bound.find_all(exp.Table):
        if table.name in names and isinstance(table.this, exp.Identifier):
            place = places.setdefault(table.name, f"{stem}_{len(places)}")
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
            table.set("this", exp.to_identifier(place, quoted=True))
    return prepare_placed(bound, {place: name for name, place in places.items()})


def prepare_placed(query: exp.Expr, places: Mapping[str, str]) -> Prepared:
    """A query in which places, names that nobody else can know, stand for tables: the tables' names by place."""
    text = _braced(render(query))
    for place in places:
        text = text.replace(f"`{place}`", f"{{{place}}}")
    return Prepared(text, places)


def new_place() -> str:
    return f"rv_{uuid4().hex}"


def prepare_words(
    words: Words,
    inputs: Mapping[str, str],
    columns: Mapping[str, tuple[str, ...]],
    outputs: tuple[str, ...] | None = None,
) -> Prepared:
    """An author's text as it is. ``inputs``: what DataFrames are called, and ``columns``, by relation in the text."""
    stem = new_place()
    places = {table: f"{stem}_{number}" for number, table in enumerate(dict.fromkeys(words.tables))}
    text = words.with_tables(lambda table: f"{{{places[table]}}}", _braced)
    seen = {inputs[table]: columns[table] for table in places if table in columns}
    return Prepared(text, {place: inputs[table] for table, place in places.items()}, seen, outputs)


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def run_query(spark: SparkSession, query: exp.Expr, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """The query's result; ``inputs`` are keyed by the exact table names in the tree."""
    return prepare(query, inputs).run(spark, inputs)
