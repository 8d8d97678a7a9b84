"""Durations in words."""

from __future__ import annotations

import re
from datetime import timedelta

from rollview.errors import UsageError


def duration(text: str) -> timedelta:
    """``30 seconds``, ``5 minutes``, ``1 hour``."""
    found = re.fullmatch(r"(\d+)\s*(second|minute|hour|day)s?", text.strip(), re.IGNORECASE)
    if found is None:
        raise UsageError(f"{text!r} is not a duration.", hint="Write for example '30 seconds' or '5 minutes'.")
    return timedelta(**{f"{found[2].lower()}s": int(found[1])})
