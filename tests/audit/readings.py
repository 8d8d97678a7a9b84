"""Definitions as rollview reads them, beside what Spark makes of their texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from rollview.algebra.definition import Declared
from rollview.algebra.resolve import Known
from rollview.algebra.view import Outline, authors_query, our_reading, outline
from rollview.engine.binding import run_query
from rollview.engine.meaning import mean_the_same
from rollview.errors import RollviewError
from rollview.propagate.reading import unseen
from rollview.relations.reader import prepare_author

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_ALL = {"ignoreNullFields": "false"}


def read(text: str, known: Mapping[str, Known], columns: tuple[str, ...] = ()) -> Outline | None:
    """None if the text is refused."""
    try:
        return outline(Declared("v", columns, None, {}, text, False), known)
    except RollviewError:
        return None


def strikes(spark: SparkSession, texts: Iterable[tuple[str, tuple[str, ...]]], tables: Iterable[Known]) -> list[str]:
    """The texts of views with an incremental form that are read otherwise than by Spark."""
    known = {table.name.lower(): table for table in tables}
    frames = unseen(spark, known.values())
    found = []
    for text, columns in texts:
        made = read(text, known, columns)
        if made is not None and made.rel is not None:
            author, ours = both(spark, made, frames)
            if author is not None and (ours is None or not mean_the_same(author, ours)):
                found.append(text)
    return found


def both(
    spark: SparkSession, made: Outline, frames: Mapping[str, DataFrame]
) -> tuple[DataFrame | None, DataFrame | None]:
    """The author's text and our reading of it, analysed by Spark; None where it does not take it."""
    from pyspark.errors import AnalysisException, ParseException

    answers: list[DataFrame | None] = []
    author = replace(prepare_author(authors_query(made.resolved)), outputs=None)
    for run in (lambda: author.run(spark, frames), lambda: run_query(spark, our_reading(made.resolved), frames)):
        try:
            answers.append(run())
        except (AnalysisException, ParseException):
            answers.append(None)
    return answers[0], answers[1]


def rows_of(answers: Mapping[int, tuple[DataFrame, DataFrame]]) -> dict[int, tuple[list[str], ...]]:
    """The rows of both DataFrames under each number, as text, from one job for all of them, unless one fails."""
    try:
        return _rows_at_once(answers)
    except (PySparkException, Py4JJavaError):
        if len(answers) > 1:
            numbers = list(answers)
            halves = numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]
            return {k: v for half in halves for k, v in rows_of({n: answers[n] for n in half}).items()}
        ((number, (author, ours)),) = answers.items()
        return {number: (_or_failed(author), _or_failed(ours))}


def _or_failed(data: DataFrame) -> list[str]:
    try:
        return sorted(str(tuple(row)) for row in data.collect())
    except (PySparkException, Py4JJavaError):
        return ["fails"]


def _rows_at_once(answers: Mapping[int, tuple[DataFrame, DataFrame]]) -> dict[int, tuple[list[str], ...]]:
    told = [
        data.toDF(*(f"c{i}" for i in range(len(data.columns)))).select(
            sf.lit(number).alias("number"), sf.lit(side).alias("side"), sf.to_json(sf.struct("*"), _ALL).alias("row")
        )
        for number, sides in answers.items()
        for side, data in enumerate(sides)
    ]
    found: dict[int, tuple[list[str], ...]] = {number: ([], []) for number in answers}
    for row in reduce(lambda one, other: one.unionAll(other), told).collect():
        found[row["number"]][row["side"]].append(row["row"])
    return {number: tuple(sorted(rows) for rows in sides) for number, sides in found.items()}
