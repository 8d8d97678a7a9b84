"""Levels by hand, and the judge beside a slow one that tries every order of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from rollview.consistency.bags import Bag, bag, frozen
from rollview.consistency.history import History, HistoryUnit, PublishedVersion, Update
from rollview.consistency.join_view import natural
from rollview.consistency.judge import judge
from rollview.consistency.levels import Level
from rollview.consistency.states import Lattice, Vector

VIEW = natural("r1(A*B)@x ⋈ r2(BC*)@y")
R1, R2 = Update("r1", (1, 2), 1), Update("r2", (2, 3), 1)
ROW = (1, 2, 3)
OTHER = Update("r1", (4, 2), 1)


def history(*units: HistoryUnit, versions: list[Bag], at_rest: bool = True) -> History:
    return History(VIEW, {}, units, tuple(map(PublishedVersion, versions)), at_rest)


def one(source: str, *updates: Update, transaction: str | None = None, csn: int | None = None) -> HistoryUnit:
    return HistoryUnit(source, updates, transaction, csn)


BOTH = bag([ROW, (4, 2, 3)])
THREE = (one("y", R2), one("x", R1), one("x", OTHER))


@pytest.mark.parametrize(
    ("versions", "level"),
    [
        ([{}, bag([ROW]), BOTH], Level.COMPLETE),
        ([{}, {}, bag([ROW]), bag([ROW]), BOTH, BOTH], Level.COMPLETE),
        ([{}, BOTH], Level.COMPLETE),  # r1's rows first: the view is empty until r2's comes
        ([{}, bag([ROW]), {}, BOTH], Level.WEAK),
        ([{}, bag([(4, 2, 3)]), BOTH], Level.CONVERGENT),
        ([{}, bag([ROW])], Level.NONE),
        ([{}, bag([ROW, ROW]), BOTH], Level.CONVERGENT),
    ],
)
def test_levels(versions: list[Bag], level: Level) -> None:
    assert judge(history(*THREE, versions=versions)).level is level


def test_a_state_that_was_skipped_is_named() -> None:
    gone = one("x", Update("r1", (1, 2), -1))
    verdict = judge(
        history(one("x", R1, transaction=None), one("y", R2), gone, one("x", OTHER), versions=[{}, bag([(4, 2, 3)])])
    )
    assert verdict.level is Level.COMPLETE
    alone = natural("r1(A*B)@x")
    told = History(
        alone, {}, (one("x", R1), one("x", OTHER)), tuple(map(PublishedVersion, [{}, bag([(1, 2), (4, 2)])]))
    )
    verdict = judge(told)
    assert verdict.level is Level.STRONG
    assert verdict.mapping == ((0,), (2,))
    wrong = verdict.counterexample
    assert wrong is not None
    assert (wrong.breaks, wrong.versions, wrong.nearest) == (Level.COMPLETE, (0, 1), (1,))
    assert (wrong.missing, wrong.surplus) == ({}, bag([(4, 2)]))


def test_a_version_of_no_state_is_the_smallest_counterexample() -> None:
    verdict = judge(history(*THREE, versions=[{}, bag([(4, 2, 3)]), BOTH]))
    wrong = verdict.counterexample
    assert wrong is not None
    assert (wrong.breaks, wrong.versions) == (Level.WEAK, (1,))
    assert (wrong.missing, wrong.surplus) in (({}, bag([(4, 2, 3)])), (bag([ROW]), {}))
    assert verdict.mapping[1] is None


def test_two_versions_in_the_wrong_order_are_the_smallest_counterexample() -> None:
    verdict = judge(history(*THREE, versions=[{}, bag([ROW]), {}, BOTH]))
    wrong = verdict.counterexample
    assert wrong is not None
    assert (wrong.breaks, wrong.versions) == (Level.STRONG, (1, 2))


def test_a_global_transaction_is_never_split() -> None:
    parts = (one("x", R1, transaction="T"), one("y", R2, transaction="T"))
    more = Update("r2", (2, 5), 1)
    first = one("y", more)
    verdict = judge(history(first, *parts, versions=[{}, bag([(1, 2, 5)]), bag([ROW, (1, 2, 5)])]))
    assert verdict.level is Level.WEAK
    assert verdict.counterexample is not None
    assert verdict.counterexample.versions == (1,)
    whole = judge(history(first, *parts, versions=[{}, bag([ROW, (1, 2, 5)])]))
    assert (whole.level, whole.mapping) == (Level.COMPLETE, ((0, 1), (1, 2)))


def test_a_history_that_is_not_at_rest_is_judged_so_far() -> None:
    verdict = judge(history(*THREE, versions=[{}, bag([ROW])], at_rest=False))
    assert (verdict.level, verdict.so_far) == (Level.COMPLETE, True)
    assert judge(history(*THREE, versions=[{}, BOTH, bag([ROW])], at_rest=False)).level is Level.WEAK
    assert judge(history(*THREE, versions=[{}, bag([(9, 9, 9)])], at_rest=False)).level is Level.CONVERGENT


def test_more_states_than_the_bound_are_undecided() -> None:
    verdict = judge(history(*THREE, versions=[{}, BOTH]), bound=3)
    assert (verdict.level, verdict.undecided) == (Level.CONVERGENT, True)


def claiming(versions: list[tuple[Bag, int]], at_rest: bool = True) -> History:
    units = tuple(one(unit.source, *unit.updates, csn=csn) for csn, unit in enumerate(THREE, start=1))
    return History(VIEW, {}, units, tuple(PublishedVersion(rows, csn) for rows, csn in versions), at_rest)


@pytest.mark.parametrize(
    ("versions", "level"),
    [
        ([({}, 0), ({}, 1), (bag([ROW]), 2), (BOTH, 3)], Level.COMPLETE),
        ([({}, 0), (bag([ROW]), 2), (BOTH, 3)], Level.COMPLETE),
        ([({}, 0), (BOTH, 3)], Level.STRONG),
        ([({}, 0), (bag([ROW]), 2), ({}, 1), (BOTH, 3)], Level.WEAK),
        ([({}, 0), (bag([ROW]), 1), (BOTH, 3)], Level.CONVERGENT),
        ([({}, 0), (bag([ROW]), 2)], Level.NONE),
    ],
)
def test_claims_of_csns(versions: list[tuple[Bag, int]], level: Level) -> None:
    assert judge(claiming(versions)).level is level


def test_the_order_of_csns_binds_where_there_are_csns() -> None:
    """In another order the empty view could become both rows at once; with csns it cannot."""
    found = judge(claiming([({}, 0), (BOTH, 3)]))
    assert found.counterexample is not None
    assert (found.counterexample.breaks, found.counterexample.nearest) == (Level.COMPLETE, (1, 1))


def test_claims_of_vectors_are_checked_against_those() -> None:
    versions = [PublishedVersion({}, {"x": 0, "y": 0}), PublishedVersion(bag([ROW]), {"x": 1, "y": 1})]
    told = History(VIEW, {}, (one("x", R1), one("y", R2)), tuple(versions))
    assert judge(told).level is Level.COMPLETE
    split = (one("x", R1, transaction="T"), one("y", R2, transaction="T"))
    versions.insert(1, PublishedVersion({}, {"x": 1}))
    verdict = judge(History(VIEW, {}, split, tuple(versions)))
    assert verdict.level is Level.WEAK
    assert verdict.counterexample is not None
    assert verdict.counterexample.versions == (1,)


def test_claims_take_one_evaluation_for_each_csn(monkeypatch: pytest.MonkeyPatch) -> None:
    units = tuple(one("x", Update("r1", (csn, csn), 1), csn=csn) for csn in range(1, 201))
    alone = natural("r1(A*B)@x")
    rows: list[Bag] = [bag([(n, n) for n in range(1, csn + 1)]) for csn in range(201)]
    told = History(alone, {}, units, tuple(PublishedVersion(some, csn) for csn, some in enumerate(rows)))
    evaluated: list[Vector] = []
    show = Lattice.show

    def counting(self: Lattice, at: Vector) -> Bag:
        if at not in self._shown:
            evaluated.append(at)
        return show(self, at)

    monkeypatch.setattr(Lattice, "show", counting)
    assert judge(told).level is Level.COMPLETE
    assert len(evaluated) == 201


# The slow judge


def _orders(states: Lattice) -> Iterator[list[Vector]]:
    """Every way of single steps from the first state to the last."""

    def go(way: list[Vector]) -> Iterator[list[Vector]]:
        if way[-1] == states.last:
            yield way
        for later in states.steps(way[-1]):
            yield from go([*way, later])

    return go([states.first])


def slow_level(told: History) -> Level:
    states = Lattice(told)
    shown = [frozen(version.rows) for version in told.versions]
    shown = [shown[0], *(b for a, b in pairwise(shown) if a != b)]
    if shown[-1] != frozen(states.show(states.last)):
        return Level.NONE
    if not set(shown) <= {frozen(states.show(at)) for at in states.every()}:
        return Level.CONVERGENT
    level = Level.WEAK
    for way in _orders(states):
        passed = [frozen(states.show(at)) for at in way]
        merged = [passed[0], *(b for a, b in pairwise(passed) if a != b)]
        if merged == shown:
            return Level.COMPLETE
        places = iter(passed)
        if all(any(state == wanted for state in places) for wanted in shown):
            level = Level.STRONG
    return level


@pytest.mark.parametrize("seed", range(150))
def test_the_judge_agrees_with_one_that_tries_every_order(seed: int) -> None:
    random = Random(seed)
    units: list[HistoryUnit] = []
    rows: dict[str, set[tuple[int, int]]] = {"r1": set(), "r2": set()}
    for number in range(random.randint(2, 4)):
        both = random.random() < 0.4
        for table, source in [("r1", "x"), ("r2", "y")] if both else [random.choice([("r1", "x"), ("r2", "y")])]:
            row = (random.randrange(2), random.randrange(2))
            count = -1 if row in rows[table] else 1
            rows[table] ^= {row}
            units.append(one(source, Update(table, row, count), transaction=f"T{number}" if both else None))
    probe = Lattice(History(VIEW, {}, tuple(units), (PublishedVersion({}),)))
    way = random.choice(list(_orders(probe)))
    versions = [probe.show(at) for at in way]
    vectors = list(probe.every())
    for _ in range(random.randint(0, 2)):
        place = random.randrange(len(versions))
        if random.random() < 0.5:
            versions.insert(place, probe.show(random.choice(vectors)))
        elif len(versions) > 1 and 0 < place < len(versions) - 1:
            del versions[place]
    told = history(*units, versions=versions)
    assert judge(told).level is slow_level(told)


def test_rows_that_come_go_and_come_again_between_two_claims_were_skipped() -> None:
    alone = natural("r1(A*B)@x")
    gone = Update("r1", (1, 2), -1)
    units = tuple(one("x", update, csn=csn) for csn, update in enumerate([R1, gone, R1], start=1))
    told = History(alone, {}, units, (PublishedVersion({}, 0), PublishedVersion(bag([(1, 2)]), 3)))
    verdict = judge(told)
    assert verdict.level is Level.STRONG
    assert verdict.counterexample is not None
    assert verdict.counterexample.nearest == (2,)


def test_a_global_transaction_waits_for_what_is_before_it_at_each_of_its_sources() -> None:
    first = one("y", Update("r2", (2, 5), 1))
    parts = (one("x", R1, transaction="T"), one("y", R2, transaction="T"))
    states = Lattice(history(first, *parts, versions=[{}]))
    assert list(states.steps((0, 0))) == [(0, 1)]
    assert list(states.steps((0, 1))) == [(1, 2)]
    assert [at for at in states.every() if not states.is_whole(at)] == [(0, 2), (1, 0), (1, 1)]
