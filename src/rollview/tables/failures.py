"""What Spark says while it runs a user's statement, told as the user's error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rollview.engine.failures import advice, said
from rollview.errors import ConstraintViolated, EngineFailed, RollviewError, SqlError
from rollview.tables.assignment import TOO_LONG

AMBIGUOUS = "rollview: several source rows"

# A place in the text that Spark was given, which is not the user's.
_PLACE = re.compile(r";? line \d+ pos \d+;?")
_OF_THE_DATA = ("ArithmeticException", "NumberFormatException", "DateTimeException", "SparkRuntimeException")


@contextmanager
def statement_failures(table: str) -> Iterator[None]:
    """Inside, Spark analyses or runs a statement that changes ``table``."""
    try:
        yield
    except EngineFailed as error:
        marked = _marked(str(error.__cause__), table) if error.__cause__ is not None else None
        raise (marked or error) from error.__cause__
    except RollviewError:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("pyspark", "py4j", "grpc"):
            raise
        raise _marked(str(error), table) or _told(error) from error


def _told(error: Exception) -> RollviewError:
    kind = type(error).__name__
    if kind in ("AnalysisException", "ParseException") or kind in _OF_THE_DATA:
        return SqlError(f"Spark cannot run the statement: {_PLACE.sub('', said(error))}")
    return EngineFailed(f"Spark could not compute the rows: {said(error)}", hint=advice(error))


def _marked(text: str, table: str) -> RollviewError | None:
    """Refusals that rollview itself wrote into the query."""
    for mark, constraint in ((TOO_LONG, "the length of a column"), (AMBIGUOUS, "MERGE's rule of one source row")):
        _, found, after = text.partition(f"{mark}: ")
        if found:
            return ConstraintViolated(table, constraint, after.splitlines()[0].partition(" SQLSTATE")[0].strip(" ."))
    return None
