"""Levels of consistency: Zhuge et al., *The Strobe Algorithms*, section 4.2. Each one has those before it."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    """How far a view's versions can be trusted."""

    NONE = 0
    """At rest it shows rows that its definition does not have."""
    CONVERGENT = 1
    """At rest it is right."""
    WEAK = 2
    """Each version is right for some prefix of every source's units."""
    STRONG = 3
    """The versions are right for one growing chain of prefixes that splits no global transaction."""
    COMPLETE = 4
    """And the chain goes in single transactions: no state of the sources is left out."""

    def __str__(self) -> str:
        return "not convergent" if self is Level.NONE else self.name.lower()
