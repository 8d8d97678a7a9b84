"""Spark's exceptions, told as ours: the condition and its sentence, without the Java trace.

Law: what is told is the root cause. A failure inside a broadcast or a stage comes wrapped in others that say only that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rollview.errors import EngineFailed, RollviewError, SqlError

# A place in the text that Spark was given, which is not the user's.
_PLACE = re.compile(r";? line \d+ pos \d+;?")
_WRAPPED = ("Exception thrown in awaitResult", "Job aborted", "Multiple failures in stage materialization")
# What py4j says before the Java exception's own words.
_CALLED = re.compile(r"^An error occurred while calling \S+\s*:\s*(?:[\w.$]+: ?)?")
_CAUSE = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
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
    kinds = {type(one).__name__ for one in _chain(error)}
    if not kinds.isdisjoint(("AnalysisException", "ParseException", *_OF_THE_DATA)):
        return SqlError(f"Spark cannot run the statement: {_PLACE.sub('', said(error))}")
    return EngineFailed(f"Spark could not compute the rows: {said(error)}", hint=advice(error))


def said(error: BaseException) -> str:
    """The first paragraph of what Spark said, or of the cause where it said only that something failed."""
    own = _CALLED.sub("", _paragraph(str(error)))
    return (_root_cause(error) if not own or own.startswith(_WRAPPED) else own)[:600] or type(error).__name__


def in_full(error: BaseException) -> str:
    """All that is known of a failure: its own text, and the Java trace with the causes."""
    traces = (getattr(error, name, None) for name in ("_stackTrace", "_stacktrace"))
    return "\n".join([str(error), *(trace for trace in traces if isinstance(trace, str))])


def _root_cause(error: BaseException) -> str:
    """The innermost cause that names a condition, else the innermost, else what the failure itself says."""
    whole = in_full(error)
    causes = _CAUSE.findall(whole)
    named = [found[0] for cause in causes if (found := _CONDITION.search(cause))]
    return next(reversed(named or _CONDITION.findall(whole)[:1] or causes), _paragraph(str(error))).strip()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The failure and its causes, as PySpark tells them."""
    while error is not None:
        yield error
        error = getattr(error, "_cause", None)


def _paragraph(text: str) -> str:
    kept = []
    for line in (line.strip() for line in text.strip().splitlines()):
        if not line or line.startswith(("JVM stacktrace", "== SQL", "at org.", "'", "+-", "==")):
            break
        kept.append(line)
    return " ".join(kept)


def advice(error: BaseException) -> str:
    text = in_full(error)
    if "ARITHMETIC_OVERFLOW" in text or "NUMERIC_VALUE_OUT_OF_RANGE" in text or "CAST_OVERFLOW" in text:
        return "A value no longer fits its type: widen the column or cast in the view's definition."
    return "What was published stays as it was. Correct what Spark names, then run the command again."
