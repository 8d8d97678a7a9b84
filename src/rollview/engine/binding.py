"""Running a sqlglot query over DataFrames that stand for the tables it names.

Law: a name from outside is an identifier of the tree or a DataFrame; it never becomes text of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlglot import exp

from rollview.algebra.text import render

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Prepared:
    """A query's text with a place for each table that a DataFrame stands for: names by place."""

    text: str
    places: Mapping[str, str]

    def run(self, spark: SparkSession, inputs: Mapping[str, DataFrame]) -> DataFrame:
        frames = {place: inputs[name] for place, name in self.places.items()}
        return spark.sql(self.text, **frames)  # type: ignore[arg-type]


def prepare(query: exp.Expr, names: Collection[str]) -> Prepared:
    """``names``: the exact names, in the tree, of the tables that DataFrames stand for."""
    stem, bound = f"rv_{uuid4().hex}", query.copy()
    places: dict[str, str] = {}
    for table in bound.find_all(exp.Table):
        if table.name in names and isinstance(table.this, exp.Identifier):
            place = places.setdefault(table.name, f"{stem}_{len(places)}")
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
            table.set("this", exp.to_identifier(place, quoted=True))
    text = render(bound).replace("{", "{{").replace("}", "}}")
    for place in places.values():
        text = text.replace(f"`{place}`", f"{{{place}}}")
    return Prepared(text, {place: name for name, place in places.items()})


def run_query(spark: SparkSession, query: exp.Expr, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """The query's result; ``inputs`` are keyed by the exact table names in the tree."""
    return prepare(query, inputs).run(spark, inputs)
