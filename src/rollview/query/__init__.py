"""Answers: a relation at a csn, its changes, and the proof that a view is right.

Law: reading never changes anything, and everything read in one call is read at one csn.
"""

from rollview.query.explain import explain
from rollview.query.status import status
from rollview.query.verify import verify

__all__ = ["explain", "status", "verify"]
