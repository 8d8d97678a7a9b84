"""Java, the Spark session and the count of what it did. Nothing is started by an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.engine import session

__all__ = ["session"]
__getattr__ = lazy_names(__name__, {"session": "rollview.engine.session"})
