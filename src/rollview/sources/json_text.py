"""JSON that others wrote.

Law: a number keeps its digits, a name stands once in its object, and whatever cannot be read so is refused with one
kind of error, whichever of Python's it was.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

_LONGEST = 120


class NotJsonError(ValueError):
    """Says why."""


def load_json(text: str | bytes) -> Any:
    try:
        return json.loads(text, parse_float=Decimal, object_pairs_hook=_once)
    # A number of too many digits is a ValueError or ArithmeticError, and values within values end Python's stack.
    except (ValueError, ArithmeticError, RecursionError) as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise NotJsonError(f"it is not JSON that can be read ({reason[:_LONGEST]})") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values of one name neither is the right one."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found
