"""Files become visible: steps, what dead processes left behind, and files replaced by better ones.

Law: a step is recorded before its first file is written, and finished in the transaction that makes its files visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.publish.recover import discard_abandoned, has_let_go

__all__ = ["discard_abandoned", "has_let_go"]
__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "rollview.publish.recover"))
