"""Files become visible: steps, what dead processes left behind, and files replaced by better ones.

Law: a step is recorded before its first file is written, and finished in the transaction that makes its files visible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.publish.belonging import check_belongs
    from rollview.publish.recover import discard_abandoned, has_let_go
    from rollview.publish.restored import accept_catalog, look_at_catalog

__all__ = ["accept_catalog", "check_belongs", "discard_abandoned", "has_let_go", "look_at_catalog"]
__getattr__ = lazy_names(
    __name__,
    {
        "accept_catalog": "rollview.publish.restored",
        "check_belongs": "rollview.publish.belonging",
        "discard_abandoned": "rollview.publish.recover",
        "has_let_go": "rollview.publish.recover",
        "look_at_catalog": "rollview.publish.restored",
    },
)
