"""Incremental or recompute, per refresh.

Law: both bring the view to the same rows. Recomputing makes all changes of its interval one change, so it is chosen
unasked only where they are one already, and where the view's own history says that it is much cheaper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from rollview.algebra.view import Mode, ViewPlan
from rollview.catalog import Relation
from rollview.costs.refreshing import RefreshSeconds, RefreshWork
from rollview.errors import UsageError
from rollview.relations.plans import REFRESH_MODE

DELTAS_ONLY = "deltas only"

LITTLE_DATA = 100_000
"""Up to so many rows in all that a view reads, only planning costs enough to choose by."""
FEW_CHANGES = 0.02
"""Up to this share of what is read, only a view that has been slow before is worth thinking about."""
MUCH_CHEAPER = 0.8
WORTH_SECONDS = 0.5
PLANNED_CHEAPER, WORTH_PLANNING = 0.5, 1.0
"""The same of little data, which a busy machine computes in any time between none and a second."""


class RefreshMode(StrEnum):
    AUTO = "auto"
    INCREMENTAL = "incremental"
    RECOMPUTE = "recompute"


@dataclass(frozen=True, slots=True)
class Choice:
    mode: Mode
    reason: str


def refresh_mode(text: str) -> RefreshMode:
    try:
        return RefreshMode(text)
    except ValueError:
        hint = "Choose auto, incremental or recompute."
        raise UsageError(f"There is no refresh mode '{text}'.", hint=hint) from None


def mode_of(relation: Relation, asked: RefreshMode | None) -> RefreshMode:
    """What was asked for this time, or what the view's own property says."""
    own = relation.definition.properties.get(REFRESH_MODE) if relation.definition is not None else None
    return asked or refresh_mode(own or RefreshMode.AUTO)


def check_strict(name: str, plan: ViewPlan, mode: RefreshMode) -> None:
    """Refuse to keep a view by deltas only when it has no incremental form."""
    if mode is RefreshMode.INCREMENTAL and plan.mode is Mode.WHOLE:
        raise UsageError(
            f"View '{name}' has no incremental form: {plan.outline.whole_because}.",
            hint="Let its refresh mode be auto or recompute, or leave it out.",
        )


def choose_without(
    absent: Collection[Relation], anew: Collection[str], name: str, plan: ViewPlan, mode: RefreshMode
) -> Choice | None:
    """Where not all is there to choose: ``absent``, of which only changes can be read; ``anew``, of which no change."""
    if anew:
        return Choice(Mode.WHOLE, f"what changed is not known, because of {_listed(anew)} all rows came anew")
    unkept = [table for table in absent if not table.is_kept]
    if unkept and mode is RefreshMode.RECOMPUTE:
        raise UsageError(
            f"View '{name}' cannot be recomputed: no rows of table '{unkept[0].name}' are kept here.",
            hint=f"To have them here as they are now, run: rollview source resnapshot {unkept[0].source}",
        )
    if absent:
        return Choice(plan.mode, f"{DELTAS_ONLY}: no rows of {_listed(t.name for t in absent)} are kept")
    return None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def choose(
    plan: ViewPlan, mode: RefreshMode, work: RefreshWork, expected: RefreshSeconds, *, merges: bool = False
) -> Choice:
    """``merges``: no csn is lost where several commits become one, because the view does not keep them."""
    if plan.mode is Mode.WHOLE:
        return Choice(Mode.WHOLE, plan.outline.whole_because or "")
    if mode is RefreshMode.RECOMPUTE:
        return Choice(Mode.WHOLE, "asked for")
    if mode is RefreshMode.INCREMENTAL or not _worth_a_thought(plan, work, expected) or not expected.is_known:
        return Choice(plan.mode, DELTAS_ONLY)
    if not merges and (work.csns is None or work.csns[0] != work.csns[1]):
        return Choice(plan.mode, "deltas only: recomputing would make several commits one")
    return _cheaper(plan, work, expected)


def _worth_a_thought(plan: ViewPlan, work: RefreshWork, expected: RefreshSeconds) -> bool:
    if work.read_rows <= LITTLE_DATA:
        return expected.planned is not None and _pays(*expected.planned, PLANNED_CHEAPER, WORTH_PLANNING)
    return plan.groups_states or work.delta_rows > FEW_CHANGES * work.read_rows


def _cheaper(plan: ViewPlan, work: RefreshWork, expected: RefreshSeconds) -> Choice:
    about = f"expected for {work.delta_rows:,} changes"
    if work.read_rows <= LITTLE_DATA and expected.planned is not None:
        return Choice(Mode.WHOLE, f"{about}, planning included: {_told(*expected.planned)}")
    both = expected.by_deltas, expected.recomputed
    pays = _pays(*both, MUCH_CHEAPER, WORTH_SECONDS)
    return Choice(Mode.WHOLE if pays else plan.mode, f"{about}: {_told(*both)}")


def _pays(by_deltas: float, recomputed: float, share: float, seconds: float) -> bool:
    return recomputed < share * by_deltas and by_deltas - recomputed > seconds


def _told(by_deltas: float, recomputed: float) -> str:
    return f"{by_deltas:.1f} s by deltas, {recomputed:.1f} s recomputed"
