"""The algorithm by which a view that asks is kept, and what it needs.

Law: a view that is kept by another algorithm than sweep is a natural join that meets all the algorithm's needs; what it
is promised holds at every csn that it publishes. Whole old rows and ids of global transactions need no check: a source
that does not log whole old rows is not captured, and the ledger knows the parts of every transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from rollview.algebra.natural_join import NaturalJoin, natural_join
from rollview.algebra.routes import NotAskableError
from rollview.algebra.view import ViewPlan
from rollview.catalog import Relation, Snapshot
from rollview.compensate.algorithms import ALGORITHMS
from rollview.compensate.c_strobe import CStrobe
from rollview.compensate.courier import Courier
from rollview.compensate.deadline import Deadline
from rollview.compensate.maintainer import Requirement
from rollview.compensate.pacing import MOST_ROWS, PropagationQueries
from rollview.core.durations import duration
from rollview.errors import UsageError
from rollview.relations.cadence import PROPAGATE, parse_turns

ALGORITHM, AUTO, SWEEP = "rollview.algorithm", "auto", "sweep"
PUBLISH_WITHIN = "rollview.publish_within"
PROPAGATE_ALL, ROLLING = "propagate", "rolling"
MAX_ROWS = "rollview.max_rows"
QUIET = ("eca", "strobe", "t-strobe", "g-strobe")
"""They publish when nothing is unanswered, and what lies between is one change."""
_KEYED = ("strobe", "t-strobe", "g-strobe", "c-strobe", "c-tstrobe")
BY_QUERIES = (PROPAGATE_ALL, ROLLING)
"""They run propagation queries on tables as they are, and compensate for what those saw too much."""
NAMES = (AUTO, SWEEP, *QUIET, "c-strobe", "c-tstrobe", *BY_QUERIES)


@dataclass(frozen=True, slots=True)
class KeptView:
    """A view as it is declared."""

    name: str
    plan: ViewPlan
    properties: Mapping[str, str]


def algorithm_of(properties: Mapping[str, str]) -> str:
    name = properties.get(ALGORITHM, AUTO)
    if name not in NAMES:
        raise UsageError(f"There is no algorithm '{name}' for views.", hint=f"Choose one of {', '.join(NAMES)}.")
    return SWEEP if name == AUTO else name


def publish_within(properties: Mapping[str, str]) -> timedelta | None:
    """After how long a view is published whether its sources are quiet or not; None: it waits."""
    text = properties.get(PUBLISH_WITHIN)
    if text is None:
        return None
    if algorithm_of(properties) not in QUIET:
        raise UsageError(
            f"'{PUBLISH_WITHIN}' is for views that wait for quiet sources: {', '.join(QUIET)}.",
            hint="Leave it out: this view is published at every csn.",
        )
    return duration(text)


def needs_keys(properties: Mapping[str, str]) -> bool:
    """Whether the key of every table has to be stored with the view's rows."""
    return algorithm_of(properties) in _KEYED or PUBLISH_WITHIN in properties


def max_rows(properties: Mapping[str, str], otherwise: int = MOST_ROWS) -> int:
    """Of one propagation query."""
    text = properties.get(MAX_ROWS)
    if text is None:
        return otherwise
    table_by_table = PROPAGATE in properties and parse_turns(properties[PROPAGATE]) is not None
    if algorithm_of(properties) not in BY_QUERIES and not table_by_table:
        raise UsageError(
            f"'{MAX_ROWS}' is for views that are kept by propagation queries, {' and '.join(BY_QUERIES)}, or go table "
            "by table.",
            hint="Leave it out: other views are asked for within the limits of their sources.",
        )
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"'{MAX_ROWS}' is a number of rows, and not '{text}'.")
    return int(text)


def is_by_queries(view: Relation) -> bool:
    return view.definition is not None and algorithm_of(view.definition.properties) in BY_QUERIES


def waits_for_quiet(view: Relation) -> bool:
    return view.definition is not None and algorithm_of(view.definition.properties) in QUIET


def is_compensated(view: Relation) -> bool:
    """Whether an algorithm of ``compensate`` keeps the view, where it has to ask."""
    return view.definition is not None and algorithm_of(view.definition.properties) != SWEEP


def join_of(snapshot: Snapshot, view: KeptView) -> NaturalJoin:
    """The view as its algorithm sees it; refused, with the reason, where it does not meet what that needs."""
    algorithm, sources = algorithm_of(view.properties), sources_of(snapshot, view.plan)
    try:
        join = natural_join(view.plan, sources)
        _check_needs(algorithm, join, needs_keys=publish_within(view.properties) is not None)
    except NotAskableError as refusal:
        raise UsageError(
            f"View '{view.name}' cannot be kept by {algorithm}: {refusal}.",
            hint=f"Leave '{ALGORITHM}' out: {SWEEP} keeps more views and promises more.",
            view=view.name,
        ) from None
    return join


def machine_of(properties: Mapping[str, str], join: NaturalJoin) -> Courier:
    """The same machine as in the lab, behind one that hands it messages in order."""
    maintainer = ALGORITHMS[algorithm_of(properties)](join.view)
    if publish_within(properties) is not None:
        maintainer = Deadline(maintainer, CStrobe(join.view, by_transaction=True))
    return Courier(maintainer)


def sources_of(snapshot: Snapshot, plan: ViewPlan) -> Mapping[str, str]:
    """By table, of those that the view reads."""
    below = (snapshot.get(relation.name) for relation in plan.reads)
    return {lower.name: lower.source for lower in below if lower.source is not None}


def _check_needs(algorithm: str, join: NaturalJoin, *, needs_keys: bool) -> None:
    needs = PropagationQueries().needs if algorithm in BY_QUERIES else ALGORITHMS[algorithm](join.view).needs
    if Requirement.ONE_SOURCE in needs and len(join.view.sources) > 1:
        raise NotAskableError(f"its tables are at several sources ({', '.join(join.view.sources)}), and it takes one")
    if Requirement.KEYS not in needs and not needs_keys:
        return
    for one in join.view.occurrences:
        missing = [name for name in one.key if name not in join.view.shown]
        if not one.key:
            raise NotAskableError(f"table '{join.tables[one.name].relation}' has no key")
        if missing:
            raise NotAskableError(
                f"the key of '{one.name}', by which it tells rows apart, is not stored with its rows, as it is where a "
                "view is created with this algorithm"
            )
