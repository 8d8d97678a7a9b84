"""What a term reads of the next table, by declared keys and foreign keys; and that it is still exact."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from tests.property.duck import Duck, Texts, View
from tests.property.histories import random_history
from tests.property.schemas import KEYED
from tests.sizes import times

from rollview.algebra.resolve import Known
from rollview.algebra.script import Motion
from rollview.algebra.view import ViewPlan
from rollview.core.schema import Column, Constraints, ForeignKey, Schema

NONE, INSERTS, NO_UPDATES = Motion(False, False, False), Motion(True, False, False), Motion(True, True, False)
CHILD_AND_PARENT = "SELECT c.x, p.w FROM c JOIN p ON c.pid = p.id"


@cache
def keyed() -> Duck:
    return Duck(KEYED)


def compiled(query: str) -> ViewPlan:
    return keyed().compile("v", query)


def read(plan: ViewPlan, motion: dict[str, Motion], **known: object) -> set[tuple[str, str]]:
    return set(plan.propagation(motion, **known).inputs)  # type: ignore[arg-type]


def test_nothing_is_known_so_both_states_are_read() -> None:
    assert {("c", "old"), ("p", "old")} <= read(compiled(CHILD_AND_PARENT), {})


def test_new_parents_read_no_old_child() -> None:
    plan = compiled(CHILD_AND_PARENT)
    assert ("c", "old") not in read(plan, {"p": INSERTS})
    assert ("c", "old") not in read(plan, {"p": NO_UPDATES})
    assert ("c", "old") in read(plan, {"p": Motion()})


def test_a_term_that_can_have_no_rows_is_left_out_with_the_reason() -> None:
    terms = compiled(CHILD_AND_PARENT).propagation({"p": INSERTS, "c": NONE}).terms
    assert [(term.relation, term.kept) for term in terms] == [("p", False)]
    assert "foreign key c → p and only new keys" in terms[0].reason
    gone = compiled(CHILD_AND_PARENT).propagation({"p": NO_UPDATES, "c": NONE}).terms
    assert [(term.relation, term.kept) for term in gone] == [("p", False)]


@pytest.mark.parametrize(("not_null", "by_key"), [((), False), (("code",), True)])
def test_a_key_that_may_be_null_tells_no_rows_apart(not_null: tuple[str, ...], by_key: bool) -> None:
    columns = Schema((Column("id", "int"), Column("code", "int")))
    tables = (Known("a", columns), Known("b", columns, Constraints(("id",), unique=(("code",),), not_null=not_null)))
    plan = Duck(tables).compile("v", "SELECT a.id, b.id AS other FROM a JOIN b ON a.code = b.code")
    assert any("by key" in term.reason for term in plan.propagation({}).terms) is by_key


REFERS = Known("a", Schema((Column("id", "int"), Column("ref", "int"))))
COMPARED = "SELECT a.id, b.v FROM a JOIN b ON a.ref = b.k"


def keyed_by(type_: str) -> Known:
    return Known("b", Schema((Column("k", type_), Column("v", "int"))), Constraints(("k",)))


@pytest.mark.parametrize(
    ("type_", "query", "by_key"),
    [
        ("int", COMPARED, True),
        ("bigint", COMPARED, True),
        ("string", COMPARED, False),
        ("decimal(8,2)", COMPARED, False),
        ("varchar(4)", "SELECT a.v, b.v AS w FROM (SELECT DISTINCT v, k FROM b) AS a JOIN b ON a.k = b.k", True),
        ("int", "SELECT a.n FROM (SELECT ref, COUNT(*) AS n FROM a GROUP BY ref) AS a JOIN b ON a.ref = b.k", True),
        ("bigint", "SELECT a.ref FROM (SELECT ref, COUNT(*) AS n FROM a GROUP BY ref) AS a JOIN b ON a.n = b.k", True),
        ("int", "SELECT a.ref FROM (SELECT ref, BIT_OR(id) AS n FROM a GROUP BY ref) AS a JOIN b ON a.n = b.k", False),
        ("int", "SELECT a.r FROM (SELECT ref AS r FROM a UNION ALL SELECT v FROM b) AS a JOIN b ON a.r = b.k", True),
        (
            "string",
            "SELECT a.r FROM (SELECT ref AS r FROM a UNION ALL SELECT k FROM b) AS a JOIN b ON a.r = b.k",
            False,
        ),
        (
            "int",
            "SELECT l.id FROM (SELECT a.id, o.v FROM a LEFT JOIN b o ON a.id = o.v) AS l JOIN b ON l.v = b.k",
            True,
        ),
    ],
)
def test_a_key_tells_rows_apart_by_its_own_type(type_: str, query: str, by_key: bool) -> None:
    plan = Duck((REFERS, keyed_by(type_))).compile("v", query)
    assert any("by key" in term.reason for term in plan.propagation({}).terms) is by_key


def test_one_number_may_equal_two_texts() -> None:
    duck = Duck((REFERS, keyed_by("string")))
    duck.commit(1, {"b": [(("1", 10), 1)]})
    duck.commit(2, {"b": [(("01", 20), 1)], "a": [((7, 1), 1)]})
    view = View(duck, "v", duck.compile("v", COMPARED), 1)
    view.propagate(2)
    assert view.at(2) == view.recompute(2) == {(7, 10): 1, (7, 20): 1}


def test_closed_references_read_no_base_row_at_all() -> None:
    plan = compiled(CHILD_AND_PARENT)
    assert read(plan, {"p": NO_UPDATES}, closed=frozenset({("c", "p")})) == {("c", "delta"), ("p", "delta")}


def test_each_foreign_key_is_for_its_own_parent() -> None:
    key = Constraints(primary_key=("id",))
    foreign = Constraints(foreign_keys=(ForeignKey(("aid",), "a", ("id",)), ForeignKey(("bid",), "b", ("id",))))
    parents = (Known(name, Schema((Column("id", "int"), Column("w", "int"))), key) for name in ("a", "b"))
    child = Known("c", Schema((Column("aid", "int"), Column("bid", "int"))), foreign)
    plan = Duck((*parents, child)).compile("v", "SELECT c.aid, b.w FROM c JOIN b ON c.bid = b.id")
    assert read(plan, {"b": NO_UPDATES}, closed=frozenset({("c", "b")})) == {("c", "delta"), ("b", "delta")}


def test_closed_references_by_other_columns_prove_nothing() -> None:
    plan = compiled("SELECT l.n, o.x FROM l JOIN o ON l.a = o.a AND l.n = o.b")
    assert ("o", "old") in read(plan, {"o": NO_UPDATES}, closed=frozenset({("l", "o")}))
    plan = compiled("SELECT j.m, h.v FROM j JOIN h ON j.m = h.id")
    assert ("h", "old") in read(plan, {"h": NO_UPDATES}, closed=frozenset({("j", "h")}))


def test_new_parents_of_another_alias_prove_nothing() -> None:
    plan = compiled("SELECT a.w, c.x FROM p AS a JOIN p AS b ON a.g = b.g JOIN c ON c.pid = b.id")
    assert ("c", "old") in read(plan, {"p": INSERTS})


def test_closed_references_of_another_alias_prove_nothing() -> None:
    plan = compiled("SELECT a.x, p.w FROM c AS a JOIN c AS b ON a.id = b.pid JOIN p ON b.pid = p.id")
    assert ("p", "old") in read(plan, {"p": NO_UPDATES}, closed=frozenset({("c", "p")}))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT c.x, p.w FROM c JOIN p ON c.pid + 0 = p.id",
        "SELECT c.x, p.w FROM c JOIN p ON c.pid < p.id",
        "SELECT c.x, p.w FROM c JOIN p ON c.x = p.id",
        "SELECT c.x, p.w FROM c JOIN p ON c.pid = p.g",
        "SELECT c.x, h.v FROM c JOIN h ON c.pid = h.id",
        "SELECT l.n, o.x FROM l JOIN o ON l.a = o.a",
        "SELECT l.n, o.x FROM l JOIN o ON l.a = o.b AND l.b = o.a",
    ],
)
def test_what_is_not_the_whole_foreign_key_proves_nothing(query: str) -> None:
    plan = compiled(query)
    child, parent = (known.name for known in plan.reads)
    assert (child, "old") in read(plan, {parent: INSERTS})


@pytest.mark.parametrize(
    "query",
    [
        CHILD_AND_PARENT,
        "SELECT d.y, c.x, p.w FROM d JOIN c ON d.cid = c.id JOIN p ON c.pid = p.id",
        "SELECT l.n, o.x FROM o JOIN l ON l.b = o.b AND o.a = l.a",
        "SELECT j.m, h.v FROM j JOIN h ON j.code = h.code",
        "SELECT j.m, h.v, h.id FROM h JOIN j ON h.code = j.code",
        "SELECT a.v, b.v AS w FROM h AS a JOIN h AS b ON a.code = b.id",
        "SELECT p.g, SUM(c.x) AS t FROM p JOIN c ON p.id = c.pid GROUP BY p.g",
        "SELECT c.x, p.w FROM c JOIN p ON c.x = p.g AND p.g = p.id",
        "SELECT d.y, p.id FROM d JOIN c ON d.cid = c.id JOIN p ON c.pid = p.id WHERE p.id > 1",
        "SELECT p.g, COUNT(*) AS n FROM p LEFT JOIN h ON p.g = h.code GROUP BY p.g",
        "SELECT p.w FROM p LEFT JOIN o ON o.a = p.id AND o.b = p.g",
        "SELECT l.n, o.b FROM l JOIN o ON l.a = o.a AND l.b = o.b",
    ],
)
def test_constraints_never_cost_a_row(query: str) -> None:
    duck = keyed()
    plan, texts = duck.compile("v", query), Texts()
    for seed in range(times(4, full=50)):
        random = Random(f"{query} {seed}")
        duck.reset()
        for csn, transaction in enumerate(random_history(random, KEYED, 8), 1):
            duck.commit(csn, transaction)
        view = View(duck, "v", plan, 1, texts)
        while view.high_water_mark < 8:
            view.propagate(min(8, view.high_water_mark + random.randint(1, 4)))
        for csn in range(1, 9):
            expected, found = view.recompute(csn), view.at(csn)
            assert found == expected, f"seed {seed} csn {csn}: missing {expected - found}, surplus {found - expected}"


def test_children_that_come_and_go_with_their_parents_need_one_term() -> None:
    moved = {"p": Motion(True, True, False, one_csn=True), "c": Motion()}
    propagation = compiled(CHILD_AND_PARENT).propagation(moved, closed=frozenset({("c", "p")}))
    assert [(term.relation, term.kept) for term in propagation.terms] == [("c", True), ("p", False)]
    assert set(propagation.inputs) == {("c", "delta"), ("p", "delta")}


@pytest.mark.parametrize("seed", range(times(8, full=40)))
def test_whole_families_come_and_go(seed: int) -> None:
    random = Random(seed)
    duck, alive, children = keyed(), dict[int, tuple[int, int, str]](), dict[int, tuple[int, int, int]]()
    duck.reset()
    for csn in range(1, 13):
        gone = random.sample(sorted(alive), min(len(alive), random.randint(0, 2)))
        orphans = [child for child in children.values() if child[1] in gone]
        parents = [(10 * csn + i, random.randint(0, 2), "w") for i in range(random.randint(0, 2))]
        born = [(100 * parent[0] + i, parent[0], i) for parent in parents for i in range(random.randint(0, 3))]
        changes = {
            "p": [(alive.pop(key), -1) for key in gone] + [(parent, 1) for parent in parents],
            "c": [(children.pop(child[0]), -1) for child in orphans] + [(child, 1) for child in born],
        }
        alive |= {parent[0]: parent for parent in parents}
        children |= {child[0]: child for child in born}
        duck.commit(csn, {name: rows for name, rows in changes.items() if rows})
    view = View(duck, "v", duck.compile("v", "SELECT p.g, SUM(c.x) AS t FROM p JOIN c ON p.id = c.pid GROUP BY p.g"), 1)
    while view.high_water_mark < 12:
        view.propagate(min(12, view.high_water_mark + random.choice([1, 1, 2])))
    for csn in range(1, 13):
        assert view.at(csn) == view.recompute(csn)
