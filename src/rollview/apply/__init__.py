"""Extents: a view's stored rows are brought to a csn by the net effect of its delta, and published with others at once.

Law (Beyer et al., *Immediate Propagate Deferred Apply*, theorem 1): extents published together at csn t all equal their
definitions at t; no reader sees one without the others. Net effect: counts added per row, zeroes gone, so deletions and
insertions of one row meet before either is done.
"""

from rollview.apply.plan import ApplyStep, plan_apply
from rollview.apply.run import ExtentsTogether, run_apply

__all__ = ["ApplyStep", "ExtentsTogether", "plan_apply", "run_apply"]
