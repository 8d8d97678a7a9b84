"""Mutants that give the same results by design, each with the reason. They count as living all the same."""

from __future__ import annotations

EQUIVALENT: dict[str, str] = {}
"""By ``Mutant.named``."""
