"""Steps of views whose rows stay at their sources: what is told is the view at every csn that can be read.

The sources are simulated; catalog, extent and delta are those of a warehouse, and few rows need no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.sizes import times
from tests.unit.propagate.test_conversation import COLUMNS, QUERY, Named, Unit, joined, shown
from tests.unit.propagate.test_conversation import World as Sources
from tests.unit.propagate.test_queries import moving, view_at
from tests.unit.propagate.world import World

from rollview.algebra.natural_join import NaturalJoin
from rollview.algebra.view import Mode
from rollview.catalog import NOT_KEPT, Part
from rollview.compensate.maintainer import AskFor, Seen
from rollview.compensate.pacing import TooManyRowsError
from rollview.compensate.rolling import NO_CHANGES
from rollview.compensate.timed import PropagationQuery
from rollview.consistency.bags import Bag, counted, plus
from rollview.core.interval import Interval
from rollview.core.schema import Column, Constraints, Schema
from rollview.costs.refreshing import RefreshWork
from rollview.errors import Retryable
from rollview.propagate.compensated import ToldDelta, told_delta
from rollview.propagate.messages import SourceMessages
from rollview.propagate.plan import PropagateStep
from rollview.propagate.queries import QueryRun, _order, queried_delta
from rollview.relations.answers import RawAnswer
from rollview.relations.reader import Reader

ONE = {"a": "x", "b": "x", "c": "x"}
TWO = {"a": "x", "b": "y", "c": "y"}


def as_shown(join: NaturalJoin, rows: Bag) -> Bag:
    """In the order of the view's own columns."""
    place = [join.view.shown.index(name) for name in join.outputs]
    return {tuple(row[i] for i in place): count for row, count in rows.items()}


HIDDEN = QUERY.replace("a.id, b.id AS bid, c.id AS cid, ", "")
SHOWN = {QUERY: ("id", "bid", "cid", "d"), HIDDEN: ("d",)}


def reader_of(
    root: Path, sources: Mapping[str, str], algorithm: str, rows: Bag, after: int, query: str = QUERY
) -> Reader:
    """Of a view that stores these rows at csn ``after``, over tables that are not copied."""
    world = World(root, 99)
    for name, columns in COLUMNS.items():
        schema = Schema(tuple(Column(column, "bigint") for column in columns))
        world.table(name, schema=schema, constraints=Constraints(("id",)))
        world.relations[name] = replace(world.relations[name], source=sources[name])
        world.pin(name, Part.STATE, version=NOT_KEPT)
    schema = Schema(tuple(Column(name, "bigint") for name in SHOWN[query]))
    changes = [(*row, count, 1) for row, count in rows.items()]
    facts = {"hidden_keys": True} if query == HIDDEN else None
    world.view("v", query, *changes, reads=tuple(COLUMNS), schema=schema, mark=after, facts=facts)
    view = world.relations["v"]
    assert view.definition is not None
    definition = replace(view.definition, properties={"rollview.algorithm": algorithm})
    world.relations["v"] = replace(view, definition=definition)
    reader = Reader(None, root, world.snapshot)  # type: ignore[arg-type]
    for part in (Part.EXTENT, *((Part.GROUPS,) if facts else ())):
        reader.stored("v").folder(part).commit(None, (), (), {})
    return reader


def over(after: int, through: int) -> PropagateStep:
    return PropagateStep("v", Interval(after, through), Mode.INCREMENTAL, {}, {}, RefreshWork(0, 0, None), "")


def told_up_to(told: ToldDelta, csn: int) -> Bag:
    return counted(
        (tuple(row[:-2]), row[-2]) for row in zip(*told.rows.to_pydict().values(), strict=True) if row[-1] <= csn
    )


@pytest.mark.parametrize("sources", [ONE, TWO])
@pytest.mark.parametrize(("algorithm", "through"), [("c-tstrobe", 20), ("c-tstrobe", 24), ("t-strobe", 24)])
def test_the_delta_of_a_machine_is_the_views_where_it_can_be_read(
    tmp_path: Path, sources: Mapping[str, str], algorithm: str, through: int
) -> None:
    join, after, changed = joined(sources), 12, 0
    for seed in range(4):
        world = Sources(Random(seed), sources)
        for _ in range(24):
            world.commit()
        world.capture()
        first = as_shown(join, shown(join, world.at(after)))
        reader = reader_of(tmp_path / str(seed), sources, algorithm, first, after)
        told = told_delta(reader, over(after, through), world, due=False, goes_on=False)  # type: ignore[arg-type]
        assert (told.through, told.problem) == (through, None)
        assert all(after < csn <= through for csn in told.rows["_csn"].to_pylist())
        for csn in range(after, through + 1):
            if not any(stretch.strictly_inside(csn) for stretch in told.coarse):
                assert plus(first, told_up_to(told, csn)) == as_shown(join, shown(join, world.at(csn))), (seed, csn)
        assert all(stretch.through - stretch.after > 1 for stretch in told.coarse)
        assert algorithm == "t-strobe" or not told.coarse
        changed += told.rows.num_rows
    assert changed


@pytest.mark.parametrize("sources", [ONE, TWO])
@pytest.mark.parametrize("algorithm", ["strobe", "t-strobe", "g-strobe", "c-strobe", "c-tstrobe"])
def test_rows_that_look_alike_are_told_apart_by_keys_that_are_not_shown(
    tmp_path: Path, sources: Mapping[str, str], algorithm: str
) -> None:
    join, after, through, alike = joined(sources), 12, 24, 0

    def stored(world: Sources, csn: int) -> Bag:
        """What is shown, the keys, and how many rows that is."""
        rows = as_shown(join, shown(join, world.at(csn)))
        return {(d, a, b, c, 1): count for (a, b, c, d), count in rows.items()}

    # In the histories of 43 and 55 rows look alike most of the time.
    for seed in (43, 55, *range(times(1, 30))):
        world = Sources(Random(seed), sources)
        for _ in range(through):
            world.commit()
        world.capture()
        first = stored(world, after)
        reader = reader_of(tmp_path / str(seed), sources, algorithm, first, after, HIDDEN)
        assert reader.stored("v").columns.names == ("d", "_rv_key0_0", "_rv_key1_0", "_rv_key2_0", "_rv_rows")
        told = told_delta(reader, over(after, through), world, due=False, goes_on=False)  # type: ignore[arg-type]
        assert (told.through, told.problem) == (through, None)
        for csn in range(after, through + 1):
            expected = stored(world, csn)
            alike += len(expected) > len({row[0] for row in expected})
            if not any(stretch.strictly_inside(csn) for stretch in told.coarse):
                assert plus(first, told_up_to(told, csn)) == expected, (seed, csn)
    assert alike


def test_where_no_unit_is_to_be_published_only_the_mark_moves(tmp_path: Path) -> None:
    world = Sources(Random(1), ONE)
    reader = reader_of(tmp_path, ONE, "c-strobe", {}, 3)
    told = told_delta(reader, over(3, 8), world, due=False, goes_on=False)  # type: ignore[arg-type]
    assert (told.through, told.rows.num_rows, told.coarse) == (8, 0, ())


ROWS = [("a", (1, 1), 1), ("b", (1, 1), 1), ("c", (1, 5), 1)]


def hidden_insert(*, deletes: bool) -> Sources:
    """A row of ``a`` that nobody can see yet, and maybe a delete before it."""
    world = Sources(Random(1), ONE, hidden=1.0)
    world.units = [Unit("x", [row], csn) for csn, row in enumerate(ROWS, start=1)]
    world.units.append(Unit("x", [("a", (1, 1), -1)] if deletes else [("a", (9, 9), 1)], 4))
    world.units.append(Unit("x", [("a", (2, 1), 1)], 5))
    return world


def test_what_was_published_before_a_source_failed_to_answer_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollview.propagate.conversation._PAUSE", 0)
    reader = reader_of(tmp_path, ONE, "c-strobe", {(1, 1, 1, 5): 1}, 3)
    told = told_delta(reader, over(3, 5), hidden_insert(deletes=True), due=False, goes_on=False)  # type: ignore[arg-type]
    assert (told.through, told_up_to(told, 5)) == (4, {(1, 1, 1, 5): -1})
    assert told.problem is not None
    assert "has not shown all" in told.problem


def test_where_nothing_was_published_the_step_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.propagate.conversation._PAUSE", 0)
    reader = reader_of(tmp_path, ONE, "c-strobe", {(1, 1, 1, 5): 1}, 3)
    with pytest.raises(Retryable, match="has not shown all"):
        told_delta(reader, over(3, 5), hidden_insert(deletes=False), due=False, goes_on=False)  # type: ignore[arg-type]


def busy(*coming: list[Any]) -> Sources:
    """A row of ``a`` comes at csn 4, with a row of ``b`` that the view has not shown; more is committed while each of
    the answers is read."""
    world = Sources(Random(1), ONE)
    world.units = [Unit("x", [row], csn) for csn, row in enumerate([*ROWS, ("a", (2, 8), 1)], start=1)]
    world.units[0].changes.append(("b", (8, 1), 1))
    world.coming = [*coming]
    return world


def test_sources_that_are_never_quiet_are_left_for_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollview.propagate.conversation.MOST_ROUNDS", 3)
    reader = reader_of(tmp_path, ONE, "t-strobe", {(1, 1, 1, 5): 1}, 3)
    world = busy(*([("a", (n, 8), 1)] for n in range(10, 20)))
    with pytest.raises(Retryable, match="were not quiet"):
        told_delta(reader, over(3, 4), world, due=False, goes_on=True)  # type: ignore[arg-type]
    assert len(world.coming) == 2, "four rounds of two tables each"


def test_what_is_committed_meanwhile_is_published_too_without_rows_that_go_again(tmp_path: Path) -> None:
    """Row 1 of ``a``, which the machine does not know, goes; another row changes and stays in the view."""
    reader = reader_of(tmp_path, ONE, "t-strobe", {(1, 1, 1, 5): 1, (7, 1, 1, 5): 1}, 3)
    world = busy([("a", (1, 1), -1), ("a", (3, 1), 1)])
    world.units[0].changes.append(("a", (7, 1), 1))
    told = told_delta(reader, over(3, 4), world, due=False, goes_on=True)  # type: ignore[arg-type]
    assert (told.through, told.coarse) == (5, (Interval(3, 5),))
    assert told_up_to(told, 5) == {(1, 1, 1, 5): -1, (2, 8, 1, 5): 1, (3, 1, 1, 5): 1}


@pytest.mark.parametrize("algorithm", ["rolling", "propagate"])
def test_the_delta_of_propagation_queries_ends_with_the_step(tmp_path: Path, algorithm: str) -> None:
    """Tables move on, so that queries see csns beyond it."""
    begin, goal, sources = 2, 6, dict.fromkeys(COLUMNS, "x")
    join = joined(sources)
    for seed in range(3):
        tables = moving(seed, 14, goal)
        reader = reader_of(tmp_path / str(seed), sources, algorithm, {}, begin)
        told = queried_delta(reader, over(begin, goal), tables)
        assert told.through == goal
        csns = told.rows["_csn"].to_pylist()
        assert all(begin < csn <= goal for csn in csns)
        first = as_shown(join, view_at(join, tables, begin))
        for csn in range(begin, goal + 1):
            assert plus(first, told_up_to(told, csn)) == as_shown(join, view_at(join, tables, csn)), (seed, csn)


def query_run(tables: Any) -> QueryRun:
    relations: Any = {name: Named(name, "x") for name in COLUMNS}
    return QueryRun(joined(ONE), relations, tables)


def test_a_query_may_have_so_many_rows_and_no_more() -> None:
    whole, part = PropagationQuery(1, (Interval(0, 8), None, None)), PropagationQuery(1, (Interval(7, 8), None, None))
    run = query_run(moving(3, 8, 8))
    run.begin(None)
    run.execute(whole)
    largest = run.keep()
    run.begin(largest)
    run.execute(whole)
    run.execute(part)
    assert run.keep() == largest > 1
    run.begin(largest - 1)
    with pytest.raises(TooManyRowsError):
        run.execute(whole)


def test_a_query_one_of_whose_changes_are_none_asks_nobody() -> None:
    tables = moving(3, 8, 8)
    tables.changes["b"] = []
    run = query_run(tables)
    assert run.execute(PropagationQuery(1, (Interval(0, 8), Interval(0, 8), None))) == NO_CHANGES
    assert tables.asked == 0


def test_a_table_is_asked_by_columns_that_are_known() -> None:
    parts = (None, None, Interval(1, 2))
    assert list(_order(joined(ONE), parts)) == [2, 1, 0], "a joins with b, and b with c"


@dataclass
class Written(Sources):
    """A source that is written to while each of its answers is read."""

    wishes: list[list[str]] = field(default_factory=list)

    def answer(self, wishes: Any, after: int) -> RawAnswer:
        self.wishes.append([wish.relation.name for wish in wishes])
        self.units.append(Unit("x", [("c", (len(self.units), 1), 1)]))
        return super().answer(wishes, after)


def conversation(world: Sources, after: int = 0, *, atomic: bool = False) -> SourceMessages:
    relations: Any = {name: Named(name, source) for name, source in world.sources.items()}
    messages = SourceMessages(joined(world.sources), world, relations, after, atomic)  # type: ignore[arg-type]
    messages.begin()
    return messages


def ask(messages: SourceMessages, rows: Bag) -> AskFor:
    return AskFor(1, "x", (messages.join.view.partial("a", rows),), (("b", "c"),))


def written() -> Written:
    world = Written(Random(1), ONE)
    world.units = [Unit("x", [row], csn) for csn, row in enumerate(ROWS, start=1)]
    return world


def test_tables_of_one_ask_may_be_read_one_after_another_unless_they_must_be_one_state() -> None:
    messages = conversation(written())
    units, (answer,) = messages.answers([ask(messages, {(1, 1): 1})], 3)
    assert [unit.number for unit in units] == [4, 5]
    assert len(answer.partials[0].rows) == 1
    messages = conversation(written(), atomic=True)
    with pytest.raises(Retryable, match="was written to whenever it was asked"):
        messages.answers([ask(messages, {(1, 1): 1})], 3)


def test_what_has_no_rows_asks_for_none() -> None:
    world = written()
    messages = conversation(world)
    no_rows = AskFor(2, "x", (messages.join.view.partial("a", {}),), (("c",),))
    messages.answers([ask(messages, {(1, 1): 1}), no_rows], 3)
    assert world.wishes == [["b"], ["c"]]


def test_an_answer_that_missed_what_the_view_shows_already_saw_no_prefix() -> None:
    world = Sources(Random(1), ONE, hidden=1.0)
    world.units = [Unit("x", [*ROWS], 2)]
    messages = conversation(world, after=2)
    _, (answer,) = messages.answers([ask(messages, {(1, 1): 1})], 0)
    assert answer.seen == Seen(0, frozenset((0,)))


def test_only_parts_at_several_sources_are_one_transaction() -> None:
    world = Sources(Random(1), TWO)
    world.units = [Unit("x", [ROWS[0]], 1), Unit("y", ROWS[1:], 1), Unit("x", [("a", (2, 1), 1)], 2)]
    both, one = conversation(world).captured
    assert {(part.source, part.number, part.transaction, part.parts) for part in both.parts} == {
        ("x", 1, "1", 2),
        ("y", 1, "1", 2),
    }
    assert [(part.number, part.transaction, part.parts) for part in one.parts] == [(2, None, 1)]


def test_a_row_that_points_at_what_the_view_shows_asks_nobody(tmp_path: Path) -> None:
    world = written()
    world.units.append(Unit("x", [("a", (2, 1), 1)], 4))
    reader = reader_of(tmp_path, ONE, "t-strobe", {(1, 1, 1, 5): 1, (7, 1, 1, 5): 1}, 3)
    told = told_delta(reader, over(3, 4), world, due=False, goes_on=False)  # type: ignore[arg-type]
    assert (told.through, told_up_to(told, 4)) == (4, {(2, 1, 1, 5): 1})
    assert world.wishes == []
