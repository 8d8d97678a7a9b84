"""Subscribers: somebody outside who has a view's changes, each at a position of its own.

Law: what a subscriber has at position p is the view at p. It gets whole commits, in order, each once: the same interval
comes again, under the same name, until it is acknowledged, and nothing that it still has to read is given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollview.core.lazy import lazy_names

if TYPE_CHECKING:
    from rollview.subscribers.batch import ChangeBatch
    from rollview.subscribers.delivering import deliver
    from rollview.subscribers.pulling import acknowledge, batches, pull
    from rollview.subscribers.requests import add, remove, resync, status
    from rollview.subscribers.sink import anchored

__all__ = ["ChangeBatch", "acknowledge", "add", "anchored", "batches", "deliver", "pull", "remove", "resync", "status"]
__getattr__ = lazy_names(
    __name__,
    {
        "ChangeBatch": "rollview.subscribers.batch",
        "anchored": "rollview.subscribers.sink",
        "deliver": "rollview.subscribers.delivering",
        **dict.fromkeys(("acknowledge", "batches", "pull"), "rollview.subscribers.pulling"),
        **dict.fromkeys(("add", "remove", "resync", "status"), "rollview.subscribers.requests"),
    },
)
