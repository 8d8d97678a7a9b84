"""An unexpected exception, reported without its message.

Law: a message may quote an address or a value; the kind of the exception and the line of ours that met it never do.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath

from rollview.errors import EngineFailed, RollviewError

_OURS = "rollview"


def kind_and_line(error: BaseException) -> str:
    """``RecursionError in sources/debezium/records.py, line 60``."""
    kind = type(error).__name__
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if _OURS in PurePath(frame.filename).parts]
    if not ours:
        return kind
    parts = PurePath(ours[-1].filename).parts
    below = parts[len(parts) - parts[::-1].index(_OURS) :]
    return f"{kind} in {'/'.join(below)}, line {ours[-1].lineno}"


def unexpected_error(error: Exception) -> RollviewError:
    """Whatever goes wrong is kind_and_line, and the work goes on."""
    if isinstance(error, RollviewError):
        return error
    return EngineFailed(
        f"Something went wrong that was not foreseen: {kind_and_line(error)}.",
        hint="The rest goes on. Please report it.",
    )
