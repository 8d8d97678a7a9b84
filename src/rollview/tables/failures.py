"""What Spark says while it runs a user's statement, told as the user's error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rollview.engine.failures import as_users_error, is_sparks
from rollview.errors import ConstraintViolated, EngineFailed, RollviewError
from rollview.tables.assignment import TOO_LONG

AMBIGUOUS = "rollview: several source rows"


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
        if not is_sparks(error):
            raise
        raise _marked(str(error), table) or as_users_error(error) from error


def _marked(text: str, table: str) -> RollviewError | None:
    """Refusals that rollview itself wrote into the query."""
    for mark, constraint in ((TOO_LONG, "the length of a column"), (AMBIGUOUS, "MERGE's rule of one source row")):
        _, found, after = text.partition(f"{mark}: ")
        if found:
            return ConstraintViolated(table, constraint, after.splitlines()[0].partition(" SQLSTATE")[0].strip(" ."))
    return None
