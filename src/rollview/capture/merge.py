"""MERGE INTO as signed rows."""
from __future__ import annotations

from sqlglot import exp

from rollview.capture.statements import Changes, Scope
from rollview.errors import Unsupported


def merge(tree: exp.Merge, scope: Scope) -> Changes:
    raise Unsupported("MERGE is not supported yet.")
