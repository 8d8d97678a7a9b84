"""Running a sqlglot query over DataFrames that stand for the tables it names.

Law: a name from outside is an identifier of the tree or a DataFrame; it never becomes text of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from sqlglot import exp

from rollview.algebra.text import render

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_query(spark: SparkSession, query: exp.Expr, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """The query's result; ``inputs`` are keyed by the exact table names in the tree."""
    stem = f"rv_{uuid4().hex}"
    bound = query.copy()
    used: dict[str, DataFrame] = {}
    for table in bound.find_all(exp.Table):
        if table.name in inputs and isinstance(table.this, exp.Identifier):
            place = f"{stem}_{list(inputs).index(table.name)}"
            used[place] = inputs[table.name]
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
            table.set("this", exp.to_identifier(place, quoted=True))
    text = render(bound).replace("{", "{{").replace("}", "}}")
    for place in used:
        text = text.replace(f"`{place}`", f"{{{place}}}")
    return spark.sql(text, **used)  # type: ignore[arg-type]
