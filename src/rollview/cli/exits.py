"""How a command ends: 0 done, 1 failed, 2 wrong usage, 3 try again later.

Law: an error is one sentence and a hint; a traceback only for who asks for it.
"""

from __future__ import annotations

from enum import IntEnum

from rollview.errors import RollviewError, UsageError


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    USAGE = 2
    TRY_AGAIN = 3
    INTERRUPTED = 130


def exit_code(error: RollviewError) -> ExitCode:
    if error.retryable:
        return ExitCode.TRY_AGAIN
    return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.FAILED


def unexpected(error: BaseException) -> RollviewError:
    """An error that no part of rollview foresaw, as one of its own."""
    first_line = next(iter(str(error).strip().splitlines()), "")
    wrapped = RollviewError(
        f"Something unexpected happened: {type(error).__name__}: {first_line}",
        hint="Run the command again with --debug to see where.",
    )
    wrapped.__cause__ = error
    return wrapped
