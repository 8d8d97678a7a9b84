"""A table that may stand for another one when that is gone.

Law: nothing is guessed. Only columns that are declared stand for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollview.core.states import Extent


@dataclass(frozen=True, slots=True)
class Substitute:
    """``columns``: of table ``of``, and those of ``by`` that stand for them. ``extent``: of the rows of ``by`` beside
    those of ``of``. ``place``: where it is declared."""

    of: str
    by: str
    columns: Mapping[str, str]
    extent: Extent = Extent.EQUAL
    place: str = "substitutes"
