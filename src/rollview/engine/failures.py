"""Spark's exceptions, told as ours: the condition and its sentence, without the Java trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rollview.errors import EngineFailed, RollviewError, SqlError

# A place in the text that Spark was given, which is not the user's.
_PLACE = re.compile(r";? line \d+ pos \d+;?")
_OF_THE_DATA = ("ArithmeticException", "NumberFormatException", "DateTimeException", "SparkRuntimeException")


@contextmanager
def spark_failures(doing: str) -> Iterator[None]:
    """Inside, no exception of Spark or Java gets out bare. ``doing`` completes the sentence "Spark failed to …"."""
    try:
        yield
    except RollviewError:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j", "grpc"):
            raise
        raise EngineFailed(f"Spark failed to {doing}: {said(error)}", hint=advice(error)) from error


@contextmanager
def spark_analysis(what: str, *, hint: str | None = None) -> Iterator[None]:
    """Inside, Spark analyses a user's text: what it finds wrong is an error in that text."""
    try:
        yield
    except RollviewError:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] != "pyspark":
            raise
        raise SqlError(f"Spark does not accept {what}: {said(error)}", hint=hint) from error


@contextmanager
def users_query_failures() -> Iterator[None]:
    """Inside, Spark analyses or runs what a user wrote: what it finds wrong there or in the data is theirs."""
    try:
        yield
    except RollviewError:
        raise
    except Exception as error:
        if not is_sparks(error):
            raise
        raise as_users_error(error) from error


def is_sparks(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j", "grpc")


def as_users_error(error: Exception) -> RollviewError:
    kind = type(error).__name__
    if kind in ("AnalysisException", "ParseException") or kind in _OF_THE_DATA:
        return SqlError(f"Spark cannot run the statement: {_PLACE.sub('', said(error))}")
    return EngineFailed(f"Spark could not compute the rows: {said(error)}", hint=advice(error))


def said(error: BaseException) -> str:
    """The first paragraph of what Spark said."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    kept = []
    for line in lines:
        if not line or line.startswith(("JVM stacktrace", "== SQL", "at org.", "'", "+-", "==")):
            break
        kept.append(line)
    return " ".join(kept)[:600] or type(error).__name__


def advice(error: BaseException) -> str:
    text = str(error)
    if "ARITHMETIC_OVERFLOW" in text or "NUMERIC_VALUE_OUT_OF_RANGE" in text or "CAST_OVERFLOW" in text:
        return "A value no longer fits its type: widen the column or cast in the view's definition."
    return "What was published stays as it was. Mend what Spark names, then run the command again."
