"""How much of a test is done: all of it by ``make faults``, a part of it otherwise."""

from __future__ import annotations

import os

FULL = os.environ.get("ROLLVIEW_FAULTS") == "full"
