"""A view's plan: how it is maintained, and the SQL that does it.

Three ways, best first: *summary* (groups with accumulators, no base rows read for a group's sake), *incremental* (the
timed delta of its rows), *whole* (recomputed and compared; the reason is kept).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from sqlglot import exp

from rollview.algebra import zeroes
from rollview.algebra.accumulators import NotLinear
from rollview.algebra.build import Sources, build
from rollview.algebra.clock import check_words
from rollview.algebra.definition import Declared
from rollview.algebra.equalities import KeyedRows, with_hidden_keys
from rollview.algebra.expressions import column, columns_in, named, number, select, table
from rollview.algebra.float_sums import order_dependent_sum
from rollview.algebra.group_keys import grouped_by_maps
from rollview.algebra.notes import notes_of
from rollview.algebra.operator import Operator, OperatorNote, Upkeep, walk
from rollview.algebra.operators.aggregate import Aggregate
from rollview.algebra.operators.leaf import Leaf, leaves
from rollview.algebra.pieces import NotIncremental, TablePiece
from rollview.algebra.product import Product
from rollview.algebra.resolve import ROWS_SUFFIX as ROWS_SUFFIX
from rollview.algebra.resolve import Known, Resolved, rebind
from rollview.algebra.script import InputForm, Motion, Script, TermNote
from rollview.algebra.summary import (
    Summary,
    find_aggregate,
    first_groups,
    groups_ahead,
    groups_delta,
    summarise,
    visible,
    with_types,
)
from rollview.algebra.text import place_of
from rollview.algebra.ties import SettledQuery, settled, told_apart_by
from rollview.algebra.words import Words
from rollview.core.schema import Schema
from rollview.core.states import ViewMode

MISREAD, SETTLED, CHOICES, TOLD_APART_BY = "misread", "settled", "choices", "told_apart_by"
HIDDEN_KEYS = "hidden_keys"
"""What is remembered of a view beside the types that Spark told."""
PROBED = "_rv_probed"


class Mode(StrEnum):
    SUMMARY = "summary"
    INCREMENTAL = "incremental"
    WHOLE = "whole"

    @property
    def shown(self) -> ViewMode:
        """As users see it: keeping a summary's groups is one way to be incremental."""
        return ViewMode.WHOLE if self is Mode.WHOLE else ViewMode.INCREMENTAL


@dataclass(frozen=True, slots=True)
class AuthorsQuery:
    """A definition as its author wrote it. ``columns``: those of each relation that the view knows of."""

    words: Words
    columns: Mapping[str, tuple[str, ...]]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Propagation:
    """A query and the inputs it names: a relation, and in which form."""

    query: exp.Query
    inputs: frozenset[tuple[str, InputForm]]
    terms: tuple[TermNote, ...] = ()
    author: AuthorsQuery | None = None
    """Where it is the view's definition itself: its author's words, which are what is run."""

    @property
    def written(self) -> bool:
        """By rollview, so that its subqueries can be computed in stages."""
        return self.author is None


@dataclass(frozen=True, slots=True)
class Outline:
    """What the text alone says. ``probes`` are the queries whose types Spark must tell before the plan is made: of what
    is aggregated, and of the aggregates over that, called PROBED."""

    resolved: Resolved
    rel: Operator | None
    whole_because: str | None
    settled: SettledQuery
    keyed: KeyedRows | None = None
    """What is stored, where that is the view's rows with keys of tables that it does not show."""

    @property
    def facts(self) -> dict[str, Any]:
        """What to remember of it: the choices that were made, so that they are the same for good."""
        found: dict[str, Any] = {}
        if self.settled.notes:
            found = {SETTLED: self.settled.text.strip(), CHOICES: list(self.settled.notes)}
        if self.keyed is not None:
            found[HIDDEN_KEYS] = True
        keys = told_apart_by(self.resolved)
        return found | {TOLD_APART_BY: [list(key) for key in keys]} if keys else found

    @property
    def probes(self) -> tuple[Propagation, exp.Select] | None:
        top = find_aggregate(self.rel) if self.rel is not None else None
        return None if top is None else _probes(top[0])


@dataclass(frozen=True, slots=True, eq=False)
class ViewPlan:
    outline: Outline
    mode: Mode
    summary: Summary | None
    operators: tuple[OperatorNote, ...]

    @property
    def reads(self) -> tuple[Known, ...]:
        return self.outline.resolved.reads

    @property
    def moved_by(self) -> frozenset[str]:
        """The relations whose changes can change the view; of others, keys prove that they do not."""
        if self.outline.rel is None:
            return frozenset(relation.name for relation in self.reads)
        rel = self.outline.rel if self.outline.keyed is None else self.outline.keyed.groups
        return frozenset(leaf.relation for leaf in leaves(rel))

    @property
    def hidden(self) -> Schema | None:
        """Columns of the stored view delta where they are not the view's own."""
        return self.summary.schema if self.summary is not None else None

    @property
    def keeps_keys(self) -> bool:
        """Whether keys of tables are stored that the view does not show."""
        return self.outline.keyed is not None

    @property
    def groups_states(self) -> bool:
        """Whether an operator other than the groups at the top is not linear, so that whole old states are grouped."""
        return any(node.upkeep is Upkeep.KEYED for node in self._below_the_summary())

    @property
    def aggregates_again(self) -> bool:
        """Whether a touched group costs all of its rows at each commit: it has an aggregate that cannot be combined."""
        return any(isinstance(node, Aggregate) and not node.combines for node in self._below_the_summary())

    def _below_the_summary(self) -> Iterable[Operator]:
        inner = self.outline.rel if self.summary is None else self.summary.input
        return () if inner is None else walk(inner)

    @property
    def joins_several(self) -> bool:
        """Whether more than two inputs are joined in one place."""
        rel = self.outline.rel
        return rel is not None and any(isinstance(node, Product) and len(node.sources) > 2 for node in walk(rel))

    def recomputation(self) -> Propagation:
        """The definition itself, over ``name@rows``."""
        inputs: frozenset[tuple[str, InputForm]] = frozenset((relation.name, "rows") for relation in self.reads)
        return Propagation(our_reading(self.outline.resolved), inputs, author=self.author)

    @property
    def author(self) -> AuthorsQuery:
        return authors_query(self.outline.resolved)

    def first_groups(self) -> Propagation:
        assert self.summary is not None
        script = Script()
        return Propagation(first_groups(self.summary, script), frozenset(script.inputs))

    def visible(self, groups: str, extra: tuple[str, ...] = ()) -> exp.Select:
        assert self.summary is not None
        return visible(self.summary, groups, extra)

    def propagation(
        self,
        motion: Mapping[str, Motion] | None = None,
        *,
        small: bool = True,
        sizes: Mapping[str, int] | None = None,
        closed: frozenset[tuple[str, str]] = frozenset(),
        ahead: bool = False,
        absent: frozenset[str] = frozenset(),
        many: bool = False,
        moving: str | None = None,
    ) -> Propagation:
        """The timed delta (of the groups, for a summary) over an interval of which as much is known as is told.

        ``ahead``: for a summary, ``groups_ahead``, which tells the state at the end as well. ``absent``: relations of
        which there are only deltas. ``many``: the changes lie at many csns. ``moving``: the changes of one relation
        alone, all of them over intervals of their own.
        """
        assert self.outline.rel is not None
        is_linear = self.summary is None and not self.groups_states
        script = Script(motion or {}, small, sizes or {}, closed, absent, many, moving, counts_add_up=is_linear)
        if self.summary is not None:
            query = (groups_ahead if ahead else groups_delta)(self.summary, script)
        else:
            query = script.finish(_net(script.gathered_delta(self.outline.rel), self.outline.rel))
        return Propagation(query, frozenset(script.inputs), tuple(script.notes))


def authors_query(resolved: Resolved) -> AuthorsQuery:
    columns = {relation.name: relation.schema.names for relation in resolved.reads}
    return AuthorsQuery(resolved.words, columns, resolved.outputs)


def our_reading(resolved: Resolved) -> exp.Query:
    """The definition as it is read here, over ``name@rows``."""
    rename = {relation.name.lower(): relation.name + ROWS_SUFFIX for relation in resolved.reads}
    return rebind(resolved.query, resolved.reads, rename)


def outline(declared: Declared, known: Mapping[str, Known], *, keeps_keys: bool = False) -> Outline:
    """Resolve the query and find its incremental form, or the reason why there is none.

    ``keeps_keys``: the key of every table is stored, whether it is shown or not.
    """
    found = settled(declared, known)
    resolved = found.resolved
    check_words(resolved)
    pieces = [TablePiece(relation.name, relation.schema, relation.constraints) for relation in resolved.reads]
    stored = {piece.name.lower(): Leaf.build(piece) for piece in pieces}
    try:
        whole = build(resolved.query, Sources(stored))
        rel = whole.pruned(set(whole.columns))
        keyed = with_hidden_keys(whole) if keeps_keys else None
    except NotIncremental as refusal:
        line, _ = place_of(refusal.node)
        where = f" (line {line})" if line else ""
        return Outline(resolved, None, f"{refusal.operator}{where}: {refusal.reason}", found)
    return Outline(resolved, rel, None, found, keyed)


def plan(outline: Outline, facts: Mapping[str, Any]) -> ViewPlan:
    """``facts``: the types Spark gave to the probes, ``{"input": {column: type}, "results": {column: type}}``.

    Under ``MISREAD`` they say why the view is not what its text was taken for here.
    """
    if outline.rel is not None and MISREAD in facts:
        return plan(replace(outline, rel=None, whole_because=str(facts[MISREAD]), keyed=None), facts)
    choices = tuple(_choice_note(note) for note in facts.get(CHOICES, outline.settled.notes))
    if outline.rel is None:
        note = OperatorNote("query", "whole", outline.whole_because or "")
        return ViewPlan(outline, Mode.WHOLE, None, (note, *choices))
    if outline.keyed is not None:
        return _with_keys(outline, outline.keyed, choices)
    top, summary, not_linear = find_aggregate(outline.rel), None, None
    try:
        summary = summarise(top, facts["input"], facts["results"]) if top is not None else None
    except NotLinear as refusal:
        not_linear = str(refusal)
    at_top = outline.rel, top[0] if top else None, facts.get("input", {})
    again = order_dependent_sum(*at_top, kept=summary is not None) or grouped_by_maps(*at_top)
    if again is not None:
        return plan(replace(outline, rel=None, whole_because=again), facts)
    rel = outline.rel
    if top is not None and summary is None:
        rel = with_types(rel, facts["input"], facts["results"])
        outline = replace(outline, rel=rel)
    mode = Mode.INCREMENTAL if summary is None else Mode.SUMMARY
    notes = notes_of(rel, [relation.name for relation in outline.resolved.reads], not_linear, summary)
    return ViewPlan(outline, mode, summary, (*notes, *choices))


def _with_keys(outline: Outline, keyed: KeyedRows, choices: tuple[OperatorNote, ...]) -> ViewPlan:
    assert outline.rel is not None
    summary = summarise((keyed.groups, keyed.shown, ()), keyed.types, {})
    hidden = ", ".join(f"{alias}.{name}" for alias, name in sorted(columns_in(one.expression for one in keyed.hidden)))
    notes = notes_of(outline.rel, [relation.name for relation in outline.resolved.reads], None, None)
    note = OperatorNote("keys of tables", "stored", f"not shown: {hidden}")
    return ViewPlan(outline, Mode.SUMMARY, summary, (*notes, note, *choices))


def _choice_note(note: str) -> OperatorNote:
    operator, _, reason = note.partition(": ")
    return OperatorNote(operator, "settled", reason)


def _probes(aggregate: Aggregate) -> tuple[Propagation, exp.Select]:
    script = Script()
    columns = [column(None, name) for name in aggregate.input.columns]
    inputs = script.finish(select(*columns).from_(table(script.old(aggregate.input))))
    calls = [named(output.expression.copy(), output.name) for output in aggregate.aggregates] or [
        named(number(1), "_rv_one")
    ]
    results = select(*calls).from_(table(PROBED))
    if aggregate.keys:
        results = results.group_by(*[column(None, key) for key in aggregate.keys], copy=False)
    return Propagation(inputs, frozenset(script.inputs)), results


def _net(rows: str, rel: Operator) -> exp.Select:
    """Net effect per csn: counts added, zeroes gone."""
    return zeroes.net_by_csn(rel, select().from_(table(rows)))
