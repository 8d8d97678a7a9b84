"""Autonomous sources: every commit, once, in order, without touching anyone.

Law: the first copy at position p, and then the units of work after p in order, are the source's tables after each of
its commits. A unit of work is in the ledger once, with the position up to which the source was read.
"""

from rollview.sources.settings import GlobalSettings, SourceSettings, TableSettings

__all__ = ["GlobalSettings", "SourceSettings", "TableSettings"]
