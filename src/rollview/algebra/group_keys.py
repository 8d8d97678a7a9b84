"""Group keys that cannot be compared.

Law: a touched group is found by comparing its keys, and Spark compares no maps.
"""

from __future__ import annotations

from collections.abc import Mapping

from rollview.algebra.operator import Operator, walk
from rollview.algebra.operators.aggregate import Aggregate


def grouped_by_maps(rel: Operator, top: Aggregate | None, types: Mapping[str, str]) -> str | None:
    """Why groups cannot be found again, if their keys hold maps. ``types``: those of the columns that ``top`` reads."""
    for node in (found for found in walk(rel) if isinstance(found, Aggregate)):
        for key in node.keys:
            if "map<" in ((types.get(key) if node is top else node.input.type_of(key)) or ""):
                return "GROUP BY: two maps cannot be compared, so a group with one in its key cannot be found again"
    return None
