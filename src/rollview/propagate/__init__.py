"""View deltas: what changed in the relations a view reads becomes what changed in the view.

Law (Salem et al., *How To Roll a Join*): after a step over (a, b] the stored view delta is a timed delta of the view
from its first csn to b, and the high-water mark is b. Delta and mark become visible in one catalog transaction.
"""

from rollview.propagate.choice import RefreshMode, check_strict, mode_of, refresh_mode
from rollview.propagate.create import ViewToCreate, plan_create, run_create
from rollview.propagate.plan import PropagateStep, plan_propagate
from rollview.propagate.run import run_propagate

__all__ = [
    "PropagateStep",
    "RefreshMode",
    "ViewToCreate",
    "check_strict",
    "mode_of",
    "plan_create",
    "plan_propagate",
    "refresh_mode",
    "run_create",
    "run_propagate",
]
